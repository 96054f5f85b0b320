"""The report: what stands in the page of a record, and what it does in a real browser."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import attrs
import pytest

from benchmarks import report
from benchmarks.advice import advice
from benchmarks.browser import Browser, BrowserError
from benchmarks.record import Record
from benchmarks.report import tables
from benchmarks.report.page import page
from benchmarks.report.picture import MOST_BYTES, picture
from benchmarks.rows import FAILED, MISSED, NOT_MEASURED, UNEXPECTED, Row
from tests.benchmarks.example_record import HEAD, example_record, large_record
from tests.benchmarks.test_browser import need_browser, png_size

HOSTILE = """</script></title></svg><img src=x onerror="stolen=1"><script>stolen=1</script>'"&lt;"""
PHONE, DESK = (390, 844), (1280, 900)
CHARTS = ["rates", "speed", "reads", "memory", "building", "standing", "engines", "targets"]


@pytest.fixture(scope="module")
def record() -> Record:
    return example_record()


@pytest.fixture(scope="module")
def few(record: Record) -> Record:
    """Every seventh of its rows, where it matters what they are like and not how many."""
    return attrs.evolve(record, rows=record.rows[::7])


@pytest.fixture(scope="module")
def html(record: Record) -> str:
    return page(record)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    need_browser()
    with Browser() as started:
        yield started


@pytest.fixture(scope="module")
def path(html: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("report") / "report.html"
    target.write_text(html)
    return target


@pytest.fixture
def shown(browser: Browser, path: Path) -> Browser:
    """The browser with the example's report, all tables open."""
    browser.set_viewport(*DESK)
    browser.open(path)
    browser.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    return browser


class Outline(HTMLParser):
    """What a page consists of: its elements and their attributes, and the text of its scripts."""

    def __init__(self, text: str):
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self._within = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._within = tag
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self._within = ""

    def handle_data(self, data: str) -> None:
        if self._within == "script":
            self.scripts[-1] += data

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [given for each, given in self.elements if each == tag]


def hostile(row: Row) -> Row:
    """The row with a name, a subject, coordinates and remarks from somebody who means harm."""
    return attrs.evolve(
        row,
        subject=row.subject + HOSTILE if row.part != "engine" else row.subject,
        note=HOSTILE,
        peer=HOSTILE if row.peer else "",
        reason=HOSTILE,
    )


def test_every_row_of_the_record_has_its_place_in_a_table(record: Record, html: str) -> None:
    cells = {given.get("data-row") for given in Outline(html).of("td")}
    cells |= {given.get("data-row") for given in Outline(html).of("tr")}
    assert {row.id for row in record.rows} <= cells


def test_the_record_within_the_page_is_the_record(record: Record, html: str) -> None:
    data = json.loads(Outline(html).scripts[0])
    assert {name: data[name] for name in HEAD} == HEAD
    assert data["summary"] == record.summary
    found: dict[int, dict[str, Any]] = {}
    for group in data["groups"]:
        for place, members in zip(group["places"], group["rows"], strict=True):
            found[place] = group["common"] | members
    assert len(found) == len(record.rows)
    for place, row in enumerate(record.rows):
        again = Row.from_dict(found[place])
        assert again.id == row.id
        assert again.value == (row.value and pytest.approx(row.value, rel=1e-8))
        assert again.repeats == pytest.approx(row.repeats, rel=1e-8)
        assert again.interval == (row.interval and pytest.approx(row.interval, rel=1e-8))
        assert (again.verdict, again.note, again.target) == (row.verdict, row.note, row.target)


def test_the_page_asks_for_nothing(html: str) -> None:
    outline = Outline(html)
    for name in ("src", "href", "action", "srcset", "poster", "background"):
        found = {given.get(name) for _, given in outline.elements if name in given}
        assert found <= {"record.json"}, name
    assert "url(" not in html
    assert "@import" not in html
    assert "http://" not in html
    assert "https://" not in html
    (policy,) = (
        given["content"] for given in outline.of("meta")
        if given.get("http-equiv") == "Content-Security-Policy"
    )  # fmt: skip
    assert policy is not None
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-")
    assert "unsafe-eval" not in policy


def test_head_and_advice_come_first_and_lead_to_their_rows(record: Record, html: str) -> None:
    header = html[: html.index("<figure")]
    for words in ("2026-01-15 09:30", "default run of all", "An Example of a Processor @ 2.8",
                  "native kernel (avx2)", "load 0.12 before and 0.9 after", "9 minu"):  # fmt: skip
        assert words in header
    for verdict in ("met", MISSED, "information", UNEXPECTED, FAILED, NOT_MEASURED):
        count = sum(row.verdict == verdict for row in record.rows)
        assert f"<strong>{count:,}</strong> {verdict}</li>" in header
    answers = list(advice(record))
    assert len(answers) >= 4
    cited = {given.get("data-row") for given in Outline(header).of("button")}
    for each in answers:
        assert each.question in header
        assert set(each.rows) <= cited


def test_names_that_mean_harm_are_text_and_nothing_else(few: Record) -> None:
    evil = attrs.evolve(few, rows=[hostile(row) for row in few.rows])
    harmed, calm = Outline(page(evil)), Outline(page(few))
    for tag in ("script", "title", "img", "meta", "style"):
        assert len(harmed.of(tag)) == len(calm.of(tag)), tag
    handlers = [name for _, given in harmed.elements for name in given if name.startswith("on")]
    assert handlers == []
    assert json.loads(harmed.scripts[0])["schema"] == HEAD["schema"]


def test_six_thousand_rows_fit_into_three_megabytes() -> None:
    large = large_record(6000)
    assert len(large.rows) >= 6000
    assert len(page(large).encode()) < 3_000_000


def test_what_failed_missed_or_surprised_is_marked_with_words(html: str) -> None:
    marked = re.findall(r'<em class="bad">([^<]+)</em>', html)
    assert set(marked) == {FAILED, MISSED, UNEXPECTED}
    assert "not measured: ribbon is not installed: pip install acme-ribbon" in html
    assert "failed: quotient denies 3 of its 10000 keys, one by one" in html


def test_a_grid_has_a_line_for_each_subject_and_a_column_for_each_name(record: Record) -> None:
    rows = [row for row in record.of("filters") if row.group == "Rates and sizes"]
    made = tables.table(rows)
    columns = re.findall(r'aria-sort="none"><button type="button">([^<]*)', made)
    assert columns == ["subject", "keys", "n", "false negatives", "false-positive rate",
                       "bits per key", "times the lower bound"]  # fmt: skip
    assert made.count("<tr>") == 1 + len({(row.subject, *row.at.values()) for row in rows})
    assert "<small>%</small>" in made


def test_a_list_leaves_out_columns_that_would_be_empty(record: Record) -> None:
    rows = [row for row in record.of("kernels") if row.group == "A list of keys"]
    assert "why, remarks" not in tables.listing(rows)
    assert "why, remarks" in tables.listing([attrs.evolve(rows[0], note="odd"), *rows[1:]])


def test_a_record_of_nothing_is_a_page_that_says_so() -> None:
    made = page(Record({"schema": 2}, [], {}))
    assert made.count('class="nothing"') == 8
    assert "<svg" not in made
    assert "What to use" not in made


def test_without_a_browser_there_is_a_report_and_a_line_that_says_so(
    few: Record, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setenv("CHROMIUM", "/no/such/program")
    assert report.write(few, tmp_path) == tmp_path / "report.html"
    assert [each.name for each in tmp_path.iterdir()] == ["report.html"]
    told = capsys.readouterr().err
    assert told.startswith("no report.png: no browser")
    assert "apt install chromium" in told


def test_a_browser_that_fails_does_not_cost_the_report(
    few: Record, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setenv("CHROMIUM", "/bin/true")
    assert report.write(few, tmp_path).read_text().startswith("<!DOCTYPE html>")
    assert "the browser" in capsys.readouterr().err


def run(*words: str) -> int:
    parser = argparse.ArgumentParser()
    report.add_arguments(parser)
    return report.main(parser.parse_args(words), parser)


def test_the_command_makes_the_report_of_a_record_again(
    few: Record, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setenv("CHROMIUM", "/no/such/program")
    few.write(tmp_path / "record.json")
    assert run(str(tmp_path)) == 0
    assert (tmp_path / "report.html").read_text() == page(Record.read(tmp_path))
    assert run(str(tmp_path / "record.json"), "--directory", str(tmp_path / "new" / "one")) == 0
    assert (tmp_path / "new" / "one" / "report.html").exists()
    assert run(str(tmp_path), "--picture", str(tmp_path / "asked.png")) == 1
    assert "no picture: no browser" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["{}/none.json"], "there is no record here"),
        (["{}", "--width", "100"], "--width must lie between 320 and 4000, not 100"),
        (["{}/new.json"], "has schema 99"),
    ],
)
def test_wrong_options_are_told(
    words: list[str], told: str, few: Record, tmp_path: Path, capsys: Any
) -> None:
    few.write(tmp_path / "record.json")
    (tmp_path / "new.json").write_text('{"schema": 99, "rows": []}')
    with pytest.raises(SystemExit) as raised:
        run(*(word.format(tmp_path) for word in words))
    assert raised.value.code == 2
    assert told in capsys.readouterr().err


def test_the_report_comes_with_a_picture_of_its_beginning(record: Record, tmp_path: Path) -> None:
    need_browser()
    report.write(record, tmp_path)
    target = tmp_path / "report.png"
    width, height = png_size(target)
    assert width == 1280
    assert 1000 < height < 2600
    assert target.stat().st_size <= MOST_BYTES


def test_the_command_pictures_the_report_as_it_is_told(few: Record, tmp_path: Path) -> None:
    need_browser()
    few.write(tmp_path / "record.json")
    target = tmp_path / "small.png"
    assert run(str(tmp_path), "--picture", str(target), "--width", "950", "--dark") == 0
    assert png_size(target)[0] == 950
    assert not (tmp_path / "report.png").exists()


def test_nothing_goes_wrong_and_nothing_is_asked_for(shown: Browser, path: Path) -> None:
    assert shown.messages == []
    assert shown.requests == [path.resolve().as_uri()]
    assert shown.evaluate("document.querySelectorAll('figure > svg.wide').length") == len(CHARTS)
    assert shown.evaluate("matchMedia('(prefers-color-scheme: dark)').matches") is False


def test_a_mark_leads_to_its_row_with_all_that_the_record_has(
    shown: Browser, record: Record
) -> None:
    rows = {row.id: row for row in record.rows}
    for chart in CHARTS:
        selector = f"#{chart} svg.wide g.mark"
        shown.evaluate("document.getElementById('one')?.removeAttribute('id')")
        name = shown.evaluate(
            f"(() => {{ const all = document.querySelectorAll('{selector}');"
            "const one = all[all.length - 1]; one.id = 'one'; return one.dataset.row })()"
        )
        shown.evaluate("document.getElementById('one').dispatchEvent("
                       "new MouseEvent('click', {bubbles: true}))")  # fmt: skip
        row = rows[name]
        assert shown.evaluate("document.querySelector('#panel h2').textContent") == row.id
        value = shown.evaluate("document.querySelector('#panel [data-member=value]').textContent")
        assert float(value) == pytest.approx(row.value, rel=1e-8)
        if row.repeats:
            told = shown.evaluate(
                "document.querySelector('#panel [data-member=repeats]').textContent"
            )
            assert [float(each) for each in told.split(", ")] == pytest.approx(list(row.repeats))
    shown.press("Escape")
    assert shown.evaluate("document.getElementById('panel').hidden") is True


def test_a_real_click_opens_the_panel_and_another_beside_it_closes_it(shown: Browser) -> None:
    visible = "document.getElementById('panel').getClientRects().length > 0"
    for selector in (
        "#rates svg.wide g.mark",
        "td[data-row] button",
        ".advice button",
        "h2 button",
    ):
        shown.click(selector)
        assert shown.evaluate(visible) is True, selector
        shown.click("h1")
        assert shown.evaluate(visible) is False
    shown.click("td[data-row] button")
    shown.click("#panel .close")
    assert shown.evaluate(visible) is False
    assert shown.evaluate("document.activeElement.closest('td') !== null") is True


def test_every_number_that_is_shown_leads_to_a_row_that_is_there(shown: Browser) -> None:
    lost = shown.evaluate(
        "[...document.querySelectorAll('[data-row]')].flatMap(e => [e.dataset.row, e.dataset.also])"
        ".filter(id => id !== undefined && !rows.has(id))"
    )
    assert lost == []


def test_marks_are_reached_and_opened_by_keyboard_and_tell_what_they_are(shown: Browser) -> None:
    shown.evaluate("document.querySelector('#rates svg.wide g.mark').focus()")
    tip = "document.getElementById('tip')"
    assert shown.evaluate(f"{tip}.hidden") is False
    assert "false-positive rate" in shown.evaluate(f"{tip}.textContent")
    shown.press("Enter")
    assert shown.evaluate("document.getElementById('panel').hidden") is False
    shown.press("Escape")
    assert shown.evaluate("document.activeElement.dataset.row !== undefined") is True
    roles = shown.evaluate(
        "[...new Set([...document.querySelectorAll('figure > svg')].map(e => e.role))]"
    )
    assert roles == ["group"]


def column(browser: Browser, index: int) -> list[str]:
    found: list[str] = browser.evaluate(
        f"[...document.querySelector('.part table').tBodies[0].rows]"
        f".map(line => line.cells[{index}]?.textContent ?? '')"
    )
    return found


def test_tables_sort_numbers_by_size_both_ways_with_empty_cells_last(shown: Browser) -> None:
    heading = ".part thead th:nth-child({}) button"
    sort = "document.querySelector('.part thead').rows[0].cells[{}].ariaSort"
    for index in (2, 4):
        for word in ("ascending", "descending"):
            shown.click(heading.format(index + 1))
            assert shown.evaluate(sort.format(index)) == word
            texts = column(shown, index)
            filled = [text for text in texts if text]
            assert texts[: len(filled)] == filled
            numbers = [float(found[0].replace(",", "")) for text in filled
                       if (found := re.match(r"[-0-9.,e]+", text))]  # fmt: skip
            assert len(numbers) > 90
            assert numbers == sorted(numbers, reverse=word == "descending")
    assert shown.evaluate(sort.format(2)) == "none"
    shown.click(heading.format(1))
    words = column(shown, 0)
    assert words == sorted(words, key=str.lower)


def test_pointing_at_a_name_shows_its_family_alone_everywhere(shown: Browser) -> None:
    opacity = (
        "[...document.querySelectorAll('svg.wide [data-family={}]')]"
        ".map(e => e.getAnimations().forEach(a => a.finish()) ?? getComputedStyle(e).opacity)"
    )
    shown.click("#rates .legend button[data-family=cuckoo]")
    pressed = "document.querySelectorAll('.legend button[aria-pressed=true]').length"
    assert shown.evaluate(pressed) == 3 - 1  # in the legends of rates and of speed
    shown.evaluate("document.querySelectorAll('*').length")
    assert set(shown.evaluate(opacity.format("cuckoo"))) == {"1"}
    assert set(shown.evaluate(opacity.format("classic"))) == {"0.14"}
    shown.click("#rates .legend button[data-family=cuckoo]")
    assert shown.evaluate(pressed) == 0


@pytest.mark.parametrize("width", [320, 390, 768, 1024])
def test_no_width_scrolls_sideways(shown: Browser, width: int) -> None:
    shown.set_viewport(width, 800)
    assert shown.evaluate("document.documentElement.scrollWidth") <= width
    assert shown.evaluate("document.querySelectorAll('figure > svg').length") == 2 * len(CHARTS)
    drawn = shown.evaluate(
        "[...document.querySelectorAll('figure > svg')].filter(e => e.getClientRects().length)"
        ".map(e => e.classList.value)"
    )
    assert drawn == len(CHARTS) * ["narrow" if width <= 900 else "wide"]


@pytest.mark.parametrize("width", [360, 390, 560, 901, 1280])
def test_text_of_charts_is_never_tiny_or_cut_off(shown: Browser, width: int) -> None:
    shown.set_viewport(width, 800)
    found = shown.evaluate(
        """[...document.querySelectorAll('figure > svg')].filter(e => e.getClientRects().length)
        .flatMap(svg => [...svg.querySelectorAll('text')].map(text => {
            const box = text.getBoundingClientRect();
            const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
            return [text.textContent, scale * parseFloat(getComputedStyle(text).fontSize),
                    box.left, box.right];
        }))"""
    )
    assert len(found) > 200
    for words, size, left, right in found:
        assert size >= 10, words
        assert left >= 0, words
        assert right <= width, words


CONTRASTS = """(() => {
    const parse = text => text.match(/[0-9.]+/g).map(Number);
    const light = ([r, g, b]) => [r, g, b].map(v => v / 255)
        .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
        .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
    const behind = element => {
        for (let each = element; each; each = each.parentElement) {
            const colour = parse(getComputedStyle(each).backgroundColor);
            if (colour.length < 4 || colour[3] > 0) return colour;
        }
        return [255, 255, 255];
    };
    const found = [];
    for (const each of document.querySelectorAll('body *')) {
        const own = [...each.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
        if (!own || !each.getClientRects().length || each.closest('script, style')) continue;
        const style = getComputedStyle(each);
        const colour = parse(each.closest('svg') ? style.fill : style.color);
        const [low, high] = [light(colour), light(behind(each))].sort((a, b) => a - b);
        found.push([(high + 0.05) / (low + 0.05), each.textContent.slice(0, 40)]);
    }
    return found;
})()"""


@pytest.mark.parametrize("dark", [False, True])
def test_all_text_stands_out_in_light_and_in_dark(shown: Browser, dark: bool) -> None:
    shown.set_viewport(*DESK, dark=dark)
    shown.click("td[data-row] button")
    found = shown.evaluate(CONTRASTS)
    assert len(found) > 1000
    low = {words: ratio for ratio, words in found if ratio < 4.5}
    assert not low


def test_dark_colours_are_others(shown: Browser) -> None:
    colours = "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.querySelector('.line')).stroke]"  # noqa: E501
    light = shown.evaluate(colours)
    shown.set_viewport(*DESK, dark=True)
    dark = shown.evaluate(colours)
    assert all(one != other for one, other in zip(light, dark, strict=True))


def test_without_javascript_charts_and_tables_are_there(browser: Browser, path: Path) -> None:
    browser.set_viewport(*DESK)
    browser.open(path, javascript=False)
    assert browser.messages == []
    assert browser.evaluate("typeof rows") == "undefined"
    boxes = browser.evaluate(
        "[...document.querySelectorAll('svg.wide')].map(e => e.getBoundingClientRect().height)"
    )
    assert len(boxes) == len(CHARTS)
    assert min(boxes) > 200
    browser.click("summary")
    height = "document.querySelector('.part').getBoundingClientRect().height"
    assert browser.evaluate(height) > 1000
    assert browser.evaluate("document.getElementById('panel').getClientRects().length") == 0
    assert browser.evaluate("document.querySelector('g.mark title').textContent.length") > 20


def test_hostile_names_run_nothing(browser: Browser, few: Record, tmp_path: Path) -> None:
    target = tmp_path / "report.html"
    target.write_text(page(attrs.evolve(few, rows=[hostile(row) for row in few.rows])))
    browser.set_viewport(*DESK)
    browser.open(target)
    browser.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    browser.click("td[data-row] button")
    assert "onerror" in browser.evaluate("document.getElementById('panel').textContent")
    browser.evaluate("document.querySelector('g.mark').focus()")
    assert "onerror" in browser.evaluate("document.getElementById('tip').textContent")
    assert browser.evaluate("typeof stolen") == "undefined"
    assert browser.evaluate("document.images.length") == 0
    assert browser.messages == []
    assert len(browser.requests) == 1


def test_a_script_that_got_in_would_not_run(browser: Browser, html: str, tmp_path: Path) -> None:
    """The policy of the page forbids what its escaping lets through."""
    target = tmp_path / "report.html"
    target.write_text(html.replace("<header>", "<header><script>var stolen = 1</script>", 1))
    browser.open(target)
    assert browser.evaluate("typeof stolen") == "undefined"
    assert any("Content Security Policy" in each for each in browser.messages)


def test_the_record_can_be_downloaded_and_read_again(
    shown: Browser, record: Record, tmp_path: Path
) -> None:
    shown.evaluate("document.getElementById('download').addEventListener('click',"
                   "event => event.preventDefault())")  # fmt: skip
    shown.evaluate("document.getElementById('download').click()")
    assert shown.evaluate("document.getElementById('download').href.slice(0, 5)") == "blob:"
    target = tmp_path / "record.json"
    target.write_text(shown.evaluate("wholeRecord()"))
    again = Record.read(target)
    assert again.head == record.head
    assert [row.id for row in again.rows] == [row.id for row in record.rows]
    assert [row.verdict for row in again.rows] == [row.verdict for row in record.rows]


def test_ids_are_made_again_as_they_were(browser: Browser, tmp_path: Path) -> None:
    rows = [
        Row(part="filters", group="G", name="a", subject="s", value=1.0, at={"x": 1.0, "n": 10**6}),
        Row(part="filters", group="", name="b", subject="", value=2.0),
        Row(part="other", group="G/H", name="c", subject="t", value=None, reason="why"),
    ]
    target = tmp_path / "report.html"
    target.write_text(page(Record(HEAD, rows, {})))
    browser.open(target)
    assert browser.messages == []
    assert browser.evaluate("[...rows.keys()]") == [row.id for row in rows]


def test_a_page_that_is_gone_is_told(tmp_path: Path) -> None:
    need_browser()
    with pytest.raises(BrowserError, match=r"gone\.html cannot be opened"):
        picture(tmp_path / "gone.html", tmp_path / "x.png")


def test_levels_of_another_tree_stand_on_lines_of_their_own() -> None:
    row = Row(
        part="levels", group="Blocks read per lookup", name="absent key", subject="blocked 10"
    )
    ats: list[dict[str, str | int]] = [
        {"level": "all"},
        {"level": "all", "growth": 10},
        {"shape": "T = 4", "lookups": "even"},
    ]
    rows = [attrs.evolve(row, at=at, value=float(value)) for value, at in enumerate(ats, start=1)]
    text = tables.table(rows)
    found = re.findall(r"<tr><th scope=\"row\">blocked 10</th><td>(.*?)</td>", text)
    assert found == ["", "T = 10", "T = 4"]
    assert all(f'data-row="{row.id}"' in text for row in rows)
