"""What statistics tell of the filters of tables, found out once for each file.

Who asks for statistics every few seconds may not open tables and read filters each time, take the
room of others for that, or make it look as if they were in use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import attrs

from lsm.filter_summary import FilterSummary

if TYPE_CHECKING:
    from lsm.kernels import TableFile
    from lsm.state import State
    from lsm.version import PlacedTable, Version

# What a file says of its filter stays so. Why another one has no say may pass, or be mended.
_LASTING = ("built", "none", "declined")


@attrs.frozen
class FilterFacts:
    """What statistics tell of the filter of one table."""

    state: str
    policy: str
    bytes: int
    num_keys: int | None
    expected_fpr: float | None

    @classmethod
    def of(cls, state: State, placed: PlacedTable) -> Self:
        """Those of a table, which is opened for that, and its filter loaded or looked at."""
        found = FilterSummary.of(state, placed)
        return cls(found.state, found.policy, found.bytes, found.num_keys, found.expected_fpr)

    def hold_of(self, file: TableFile) -> bool:
        """Whether there is nothing new to be found out."""
        if self.state not in _LASTING:
            return False
        loaded = None if file.opened is None else file.opened.filter
        return loaded is None or loaded.state == self.state


def of_tables(state: State, version: Version) -> dict[int, FilterFacts]:
    """The facts of all tables of a version, by the numbers of their files."""
    known, found = state.filter_facts, {}
    for placed in version.tables():
        file = placed.file
        facts = known.get(file.number)
        if facts is None or not facts.hold_of(file):
            facts = FilterFacts.of(state, placed)
        found[file.number] = facts
    state.filter_facts = found
    return found
