"""What a survey has found, as text and as JSON: files, and the filters in them.

Partitions of a filter that are alike are one line of text, with their keys and bytes together; in
JSON each stands by itself.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from typing import Any

import attrs

from lsm.cli import output
from lsm.survey.found import FileFound, FilterFound, Guard

_UNKNOWN = "unknown"
_TOLD = (
    *("where", "offset", "size", "family", "form", "guard", "parameters", "num_keys"),
    *("bits_per_key", "fill", "expected_fpr", "problem"),
)
_NUMBER = re.compile("[0-9]+")


@attrs.frozen
class Alike:
    """Filters of one file that differ only in number, place, size and keys."""

    filters: Sequence[FilterFound]

    @property
    def first(self) -> FilterFound:
        """The first of them."""
        return self.filters[0]

    @property
    def where(self) -> str:
        """What they are in the file."""
        count = len(self.filters)
        return self.first.where if count == 1 else f"{self.first.where}, and {count - 1} like it"

    @property
    def parameters(self) -> dict[str, Any]:
        """Their parameters: those of all, and of numbers that differ the least and the largest."""
        told = {}
        for name in self.first.parameters:
            values = [each.parameters.get(name) for each in self.filters]
            if all(value == values[0] for value in values):
                told[name] = values[0]
                continue
            numbers = [value for value in values if isinstance(value, int | float)]
            if len(numbers) == len(values):
                told[name] = f"{min(numbers)}..{max(numbers)}"
        return told

    @property
    def size(self) -> int:
        """The bytes of all."""
        return sum(each.size for each in self.filters)

    @property
    def num_keys(self) -> int | None:
        """The keys of all; None where one does not tell."""
        keys = [each.num_keys for each in self.filters]
        return None if None in keys else sum(each or 0 for each in keys)

    @property
    def bits_per_key(self) -> float | None:
        """Their stored bits for each key."""
        return 8 * self.size / self.num_keys if self.num_keys else None

    @property
    def fill(self) -> float | None:
        """Their fill, by their bytes."""
        return _mean((each.fill, each.size) for each in self.filters)

    @property
    def expected_fpr(self) -> float | None:
        """Their rate, by their keys, or else by their bytes."""
        return _mean((each.expected_fpr, each.num_keys or each.size) for each in self.filters)


def _mean(weighed: Iterable[tuple[float | None, float]]) -> float | None:
    """The mean of numbers with their weights; None where one is not known."""
    pairs = list(weighed)
    known = [(value, weight) for value, weight in pairs if value is not None]
    total = sum(weight for _, weight in known)
    if len(known) < len(pairs) or not total:
        return None
    return sum(value * weight for value, weight in known) / total


def bare(filter: FilterFound) -> FilterFound:
    """A filter without what would keep its bytes in memory."""
    return attrs.evolve(filter, reader=None, keys=None, expected_fpr=filter.expected_fpr)


def alike(filters: Iterable[FilterFound]) -> list[Alike]:
    """Filters in groups of what is told of them on one line, in the order of the first of each."""
    groups: dict[object, list[FilterFound]] = {}
    for each in filters:
        kind = _NUMBER.sub("0", each.where)
        said = (kind, each.family, each.form, each.guard, _NUMBER.sub("0", each.problem))
        groups.setdefault(said, []).append(each)
    return [Alike(some) for some in groups.values()]


def filter_as_json(filter: FilterFound) -> dict[str, Any]:
    """What there is to say of a filter, as JSON has it."""
    told: dict[str, Any] = {name: getattr(filter, name) for name in _TOLD}
    return told | {"guard": attrs.asdict(filter.guard)}


def file_as_json(found: FileFound, filters: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What there is to say of a file, with what is to be said of its filters."""
    return {
        "path": found.path,
        "size": found.size,
        "store": found.store,
        "kind": found.kind,
        "facts": found.facts,
        "filters": list(filters),
        "problems": list(found.problems),
    }


# -- One file ------------------------------------------------------------------------------------


def show_file(found: FileFound) -> None:
    """Print whose a file is, and what it says of itself."""
    output.heading(f"{found.path}: {found.store} {found.kind}, {output.size(found.size)}")
    output.facts((f"  {name}", output.value(value)) for name, value in found.facts.items())
    for problem in found.problems:
        output.problem(f"  {problem}")


def show_filters(group: Alike, more: Iterable[tuple[str, object]] = ()) -> None:
    """Print what filters are, and ``more`` that was found out."""
    first = group.first
    output.heading(f"  {group.where}: {first.form}")
    output.facts((f"    {name}", value) for name, value in (*_facts_of(group), *more))
    if first.problem:
        output.problem(f"    {first.problem}")


def _facts_of(group: Alike) -> list[tuple[str, object]]:
    first = group.first
    shown = [
        ("family", first.family or _UNKNOWN),
        ("parameters", output.params(group.parameters)),
        ("place", f"byte {first.offset}, {output.size(group.size)}"),
        ("keys", _UNKNOWN if group.num_keys is None else f"{group.num_keys:,}"),
        ("bits/key", output.number(group.bits_per_key)),
        ("fill", "-" if group.fill is None else f"{group.fill:.2%}"),
        ("expected rate", output.rate(group.expected_fpr)),
        ("checksum", checksum(first.guard)),
    ]
    return [(name, value) for name, value in shown if value not in ("", "-")]


def checksum(guard: Guard) -> str:
    """What became of a checksum, in words."""
    if not guard.is_there:
        return "none: a flipped bit would be noticed by nobody"
    if guard.checked == "unknown":
        return f"{guard.kind}, which is not computed here"
    return f"{guard.kind}, {guard.checked}"


# -- Many files ----------------------------------------------------------------------------------

HEADINGS = ("file", "store", "filter", "keys", "bits/key", "expected", "checksum")
LEFT = ("file", "store", "filter", "checksum")


def rows_of(
    found: FileFound, groups: Sequence[Alike], directory: str = ""
) -> list[tuple[object, ...]]:
    """The lines for a file among others: one for each kind of filter in it, or that it has none.

    Its name is that in the ``directory``, if one is given.
    """
    name = os.path.relpath(found.path, directory) if directory else found.path
    if not groups:
        return [(name, found.store, "none", "-", "-", "-", "-")]
    return [
        (
            name,
            found.store,
            _named(group),
            "-" if group.num_keys is None else f"{group.num_keys:,}",
            output.number(group.bits_per_key),
            output.rate(group.expected_fpr),
            group.first.guard.checked,
        )
        for group in groups
    ]


def _named(group: Alike) -> str:
    count, first = len(group.filters), group.first
    name = f"{first.family or _UNKNOWN} {output.params(group.parameters)}".rstrip()
    return name if count == 1 else f"{count} x {name}"
