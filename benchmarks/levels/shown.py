"""The rows of one group as one table, in a terminal and in documents."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import attrs

from benchmarks.levels.budget import PART
from benchmarks.rows import Row
from benchmarks.text import aligned, markdown


@attrs.frozen
class Shown:
    """A group of rows, what stands above it, and the lines of its table, heads first."""

    group: str
    title: str
    table: Callable[[Sequence[Row]], list[list[str]]]

    def lines(self, rows: Sequence[Row]) -> Iterator[str]:
        """All of it for a terminal; nothing where nothing was measured."""
        found = self._of_group(rows)
        if found:
            yield ""
            yield self.title
            yield from aligned(self.table(found))

    def documented(self, rows: Sequence[Row]) -> Iterator[str]:
        """The same for documents."""
        yield from markdown(self.table(self._of_group(rows)))

    def _of_group(self, rows: Sequence[Row]) -> list[Row]:
        """Its rows that have a number."""
        found = [row for row in rows if (row.part, row.group) == (PART, self.group)]
        return [row for row in found if row.value is not None]
