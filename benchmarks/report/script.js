"use strict";
// What the page can do beyond showing itself: tell the row behind a number, sort tables, show one
// family alone. All text of the record is put in as text, never as markup.

const record = JSON.parse(document.getElementById("record").textContent);
const panel = document.getElementById("panel");
const tip = document.getElementById("tip");
const rows = new Map();

function idOf({ part, group, name, subject, at }) {
  const where = Object.entries(at ?? {}).map(([coordinate, value]) => `${coordinate}=${value}`);
  return [part, group, name, subject, where.join(",")].filter(Boolean).join("/");
}

const inOrder = [];
for (const { common, places, rows: own } of record.groups) {
  own.forEach((each, index) => {
    const row = { ...common, ...each };
    inOrder[places[index]] = { id: idOf(row), ...row };
  });
}
for (const row of inOrder) rows.set(row.id, row);

function element(name, text, more = {}) {
  return Object.assign(document.createElement(name), { textContent: text }, more);
}

function shown(value) {
  if (Array.isArray(value)) return value.map(shown).join(", ");
  if (value !== null && typeof value === "object") {
    return Object.entries(value).map(([name, each]) => `${name} ${shown(each)}`).join(", ");
  }
  return String(value);
}

// The panel with a row of the record.

const MEMBERS = ["value", "unit", "verdict", "reason", "note", "expected", "interval", "sigmas", "repeats"];
let opener = null;

function describe(row) {
  const list = element("dl", "");
  const first = MEMBERS.filter((name) => name in row);
  for (const name of new Set([...first, ...Object.keys(row)])) {
    if (name === "id") continue;
    const told = element("dd", shown(row[name]));
    told.dataset.member = name;
    list.append(element("dt", name.replaceAll("_", " ")), told);
  }
  return [element("h2", row.id), list];
}

function open(target) {
  const ids = [target.dataset.row, target.dataset.also].filter((id) => rows.has(id));
  if (!ids.length) return;
  const close = element("button", "×", { type: "button", className: "close", ariaLabel: "Close" });
  close.addEventListener("click", shut);
  panel.replaceChildren(close, ...ids.flatMap((id) => describe(rows.get(id))));
  panel.hidden = false;
  panel.scrollTop = 0;
  tip.hidden = true;
  opener = target;
  panel.focus({ preventScroll: true });
}

function shut() {
  if (panel.hidden) return;
  panel.hidden = true;
  (opener?.querySelector("button") ?? opener)?.focus({ preventScroll: true });
}

document.addEventListener("click", (event) => {
  const target = event.target.closest("[data-row]");
  if (target) open(target);
  else if (!panel.contains(event.target)) panel.hidden = true;
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") shut();
  const target = event.target.closest?.("g[data-row]");
  if (target && (event.key === "Enter" || event.key === " ")) {
    event.preventDefault();
    open(target);
  }
});

// Marks can be reached by keyboard, and tell what they are without the browser's own delay.

for (const mark of document.querySelectorAll("figure g[data-row]")) {
  const title = mark.querySelector("title");
  mark.closest("svg").setAttribute("role", "group");
  mark.setAttribute("tabindex", "0");
  mark.setAttribute("role", "button");
  mark.setAttribute("aria-label", title?.textContent ?? mark.dataset.row);
  title?.remove();
}
for (const picture of document.querySelectorAll("figure > svg > title")) picture.remove();

function hint(target) {
  tip.textContent = target.getAttribute("aria-label");
  tip.hidden = false;
  const mark = target.getBoundingClientRect();
  const box = tip.getBoundingClientRect();
  const left = mark.left + mark.width / 2 - box.width / 2;
  const above = mark.top - box.height - 8;
  tip.style.left = `${Math.max(8, Math.min(left, innerWidth - box.width - 8))}px`;
  tip.style.top = `${above > 8 ? above : mark.bottom + 8}px`;
}

for (const [kind, show] of [["pointerover", true], ["focusin", true], ["pointerout", false], ["focusout", false]]) {
  document.addEventListener(kind, (event) => {
    const target = event.target.closest?.("g[data-row][aria-label]");
    if (target && show) hint(target);
    else tip.hidden = true;
  });
}

// A family alone: while its name in a legend is pointed at, or until it is clicked again.

let kept = null;

function alone(family) {
  document.body.classList.toggle("dim", family !== null);
  for (const each of document.querySelectorAll("[data-family]")) {
    each.classList.toggle("lit", each.dataset.family === family);
  }
}

for (const button of document.querySelectorAll(".legend button")) {
  button.addEventListener("pointerenter", () => alone(button.dataset.family));
  button.addEventListener("pointerleave", () => alone(kept));
  button.addEventListener("click", () => {
    kept = kept === button.dataset.family ? null : button.dataset.family;
    for (const other of document.querySelectorAll(".legend button")) {
      other.setAttribute("aria-pressed", String(other.dataset.family === kept));
    }
    alone(kept);
  });
}

// Tables: numbers by size, words by the alphabet, empty cells last.

function key(cell) {
  const text = (cell?.textContent ?? "").trim();
  const number = Number.parseFloat(text.replaceAll(",", ""));
  return Number.isNaN(number) ? text : number;
}

function compare(one, other) {
  if (one === "" || other === "") return 0;
  if (typeof one === typeof other) return typeof one === "number" ? one - other : one.localeCompare(other);
  return typeof one === "number" ? -1 : 1;
}

function sort(heading) {
  const down = heading.getAttribute("aria-sort") === "ascending";
  const column = heading.cellIndex;
  const body = heading.closest("table").tBodies[0];
  for (const other of heading.parentElement.children) other.setAttribute("aria-sort", "none");
  heading.setAttribute("aria-sort", down ? "descending" : "ascending");
  const lines = [...body.rows].map((line) => [key(line.cells[column]), line]);
  const empty = ([value]) => value === "";
  lines.sort((one, other) => empty(one) - empty(other) || (down ? -1 : 1) * compare(one[0], other[0]));
  body.append(...lines.map(([, line]) => line));
}

for (const heading of document.querySelectorAll("th[aria-sort] button")) {
  heading.addEventListener("click", () => sort(heading.closest("th")));
}

// The record as a file, from the page itself.

function wholeRecord() {
  const { groups, summary, ...head } = record;
  return JSON.stringify({ ...head, rows: inOrder, summary }, null, 1);
}

document.getElementById("download").addEventListener("click", (event) => {
  const file = new Blob([wholeRecord()], { type: "application/json" });
  event.currentTarget.href = URL.createObjectURL(file);
});
