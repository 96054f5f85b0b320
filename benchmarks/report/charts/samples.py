"""Choosing the rows of a record that a chart is about."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from benchmarks.rows import Row

RANDOM = "random"
OUT_OF_PROPORTION = 4


def of_kind(rows: Iterable[Row]) -> list[Row]:
    """Rows over random keys, or over the first kind of keys there is where there are none."""
    found = list(rows)
    kinds = dict.fromkeys(row.at.get("keys") for row in found)
    kind = RANDOM if RANDOM in kinds else next(iter(kinds), None)
    return [row for row in found if row.at.get("keys") == kind]


def sizes(rows: Iterable[Row]) -> list[int]:
    """The numbers of keys that were measured, ascending."""
    return sorted({int(row.at["n"]) for row in rows if "n" in row.at and row.value is not None})


def shown_whole(values: Sequence[float]) -> list[float]:
    """Without those so large that they leave no room for the others; they lie on the edge."""
    found = sorted(values)
    for at in range(len(found) // 2, len(found) - 1):
        if found[at + 1] > OUT_OF_PROPORTION * found[at]:
            return found[: at + 1]
    return found
