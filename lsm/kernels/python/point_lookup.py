"""One key's newest version: memtables first, then each level's candidate table, newest first.

The key is handed to each filter as it is. A compiled lookup hashes it once for all filters instead:
what it needs is in ``__lsm_probe__`` of the readers.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from lsm.disk.keys import NEWEST, Entry

if TYPE_CHECKING:
    from lsm.comparator import OrderedKey
    from lsm.tables import OpenTable, TableCache
    from lsm.version import PlacedTable, Version
    from lsm.view import View


def find(
    view: View,
    tables: TableCache,
    user_key: bytes,
    key: OrderedKey,
    read_rank: int,
    fill_cache: bool,
) -> Entry | None:
    """The key's newest version at this read rank, tombstones included; None if there is none."""
    for memtable in view.memtables:
        entry = memtable.find(key, read_rank)
        if entry is not None:
            return entry
    return find_in_tables(view.version, tables, user_key, key, read_rank, fill_cache)


def find_in_tables(
    version: Version,
    tables: TableCache,
    user_key: bytes,
    key: OrderedKey,
    read_rank: int,
    fill_cache: bool,
) -> Entry | None:
    """The same in tables only."""
    for placed in version.levels[0]:
        if not (key < placed.low or placed.high < key):
            entry = find_in_table(placed, tables, user_key, key, read_rank, fill_cache)
            if entry is not None:
                return entry
    for level, highs in version.sorted_levels:
        at = bisect_left(highs, key)
        # LevelDB may cut a table between two versions of a key: then the next one has the older.
        while at < len(level) and not key < level[at].low:
            entry = find_in_table(level[at], tables, user_key, key, read_rank, fill_cache)
            if entry is not None:
                return entry
            at += 1
    return None


def find_in_table(
    placed: PlacedTable,
    tables: TableCache,
    user_key: bytes,
    key: OrderedKey,
    read_rank: int,
    fill_cache: bool,
) -> Entry | None:
    """The same in one table: its filter first, then its index, then a block."""
    opened = placed.file.opened
    if opened is None:
        opened = tables.open(placed.file)
    opened.used = True
    loaded = opened.filter
    if loaded is None:
        loaded = tables.load_filter(opened)
    loaded.used = True
    counters = placed.counters or tables.counters(placed, loaded)
    reader = loaded.reader
    if reader is not None:
        try:
            denied = reader.might_contain(user_key) is False  # whatever else it says is "maybe"
        except BaseException as error:
            loaded = tables.probe_failed(opened, loaded, error)
            counters = tables.counters(placed, loaded)
        else:
            if denied:
                counters.skipped += 1
                return None
    table = opened.table
    number = table.block_for(key, read_rank)
    if number == len(opened.blocks):  # the table ends in newer versions of this very key
        if reader is not None and loaded.state == "built":
            counters.true_positives += 1
        return None
    if loaded.windows is not None:
        try:
            reader = loaded.windows.at(table.index_handles[number].offset)
            denied = reader is not None and reader.might_contain(user_key) is False
        except BaseException as error:
            loaded = tables.probe_failed(opened, loaded, error)
            counters = tables.counters(placed, loaded)
        else:
            if denied:
                counters.skipped += 1
                return None
    cached = opened.blocks[number]
    if cached is None:
        tables.lookup_misses += 1
        block = tables.block(opened, number, fill_cache)
    else:
        cached.used = True
        block = cached.block
    entry = block.find(key, read_rank)
    if entry is not None and entry[0] != key:
        entry = None
    if loaded.state != "built":
        counters.count(loaded.state)
        if loaded.patience:
            loaded.went_without()
    elif entry is not None or _has_any(tables, opened, key):
        counters.true_positives += 1
    else:
        counters.false_positives += 1
    return entry


def _has_any(tables: TableCache, opened: OpenTable, key: OrderedKey) -> bool:
    """Whether the table has the key in a version that is too new for this lookup."""
    number = opened.table.block_for(key, NEWEST)
    entry = tables.block(opened, number, fill_cache=False).find(key, NEWEST)
    return entry is not None and bool(entry[0] == key)
