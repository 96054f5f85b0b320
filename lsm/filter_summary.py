"""What is known of the filter of one table, whether or not it can be asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from lsm.errors import CorruptionError, IOError
from lsm.loaded_filter import FilterInfo, LoadedFilter

if TYPE_CHECKING:
    from lsm.state import State
    from lsm.version import PlacedTable


@attrs.frozen(kw_only=True)
class FilterSummary:
    """What is known of the filter of one table.

    With the layout ``partitioned`` there is a filter for each ``partition_blocks`` data blocks, and
    numbers and rates are of all of them together.

    Filters have ``prefixes``, which it tells as a configuration does, too, or in place of keys.
    ``placement`` is why a budget chose it, as its table's properties have it; empty where none did.
    Of lately, ``missed`` lookups have come by the table whose key it has not, and ``found`` others.
    """

    file_number: int
    policy: str
    params: dict[str, Any] = attrs.field(hash=False)
    layout: str
    written_for_level: int | None
    num_keys: int | None
    bytes: int
    bits_per_key: float | None
    expected_fpr: float | None
    state: str
    num_entries: int | None = None
    placement: dict[str, Any] = attrs.field(factory=dict, hash=False)
    missed: int = 0
    found: int = 0
    partition_blocks: int | None = None
    prefixes: dict[str, Any] = attrs.field(factory=dict, hash=False)

    @classmethod
    def of(cls, state: State, placed: PlacedTable) -> FilterSummary:
        """The summary of a table of an open database."""
        try:
            opened = state.tables.opened(placed.file)
            loaded = state.tables.filters.look(opened)
            expected_fpr = state.tables.filters.expected_fpr(opened, loaded)
        except (IOError, CorruptionError):
            loaded = LoadedFilter(FilterInfo("unreadable", "unreadable"))
            expected_fpr = None
        info = loaded.info
        return cls(
            file_number=placed.number,
            policy=info.policy,
            params=info.params,
            layout=info.layout,
            written_for_level=info.written_for_level,
            num_keys=info.num_keys,
            bytes=info.bytes,
            bits_per_key=info.bytes * 8 / info.num_keys if info.num_keys else None,
            expected_fpr=expected_fpr,
            state=info.state,
            num_entries=info.num_entries,
            placement=info.placement,
            missed=placed.file.missed,
            found=placed.file.found,
            partition_blocks=info.partition_blocks,
            prefixes=info.prefixes,
        )
