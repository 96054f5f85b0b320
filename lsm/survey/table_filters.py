"""The filters of a table of any store, by their names in its metaindex."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from filters import leveldb
from filters.errors import FilterError
from lsm.disk.compression import RAW
from lsm.disk.filter_blocks import FULL_PREFIX, PREFIXED_PREFIX, WINDOWS_KEY, WindowReader
from lsm.disk.footer import Handle
from lsm.disk.partitioned_filters import PARTITIONED_PREFIX
from lsm.errors import CorruptionError
from lsm.survey import own_filters, rocksdb_filters
from lsm.survey.added_keys import AddedKeys, added_to
from lsm.survey.filter_look import Filters, Keys, Opened, found, look, placed
from lsm.survey.found import FilterFound, Guard
from lsm.survey.signed_windows import SignedWindow
from policies import LevelDBPolicy
from policies.block import MAGIC as OWN_MAGIC

if TYPE_CHECKING:
    from lsm.survey.table import Table

SIGNED_WINDOWS_KEY = "filter.rocksdb.BuiltinBloomFilter"

_FILTER = re.compile(r"[a-z]*filter\.")

_Part: TypeAlias = tuple[int, Callable[[int], FilterFound]]


def filters_of(table: Table) -> Filters:
    """All filters, known or not, of which each is looked at when it is asked for."""
    named = ((key.decode("utf-8", "replace"), at) for key, at in table.metaindex.items())
    return Filters([_part(table, name, at) for name, at in named if _FILTER.match(name)])


def _part(table: Table, name: str, handle: Handle) -> _Part:
    """The filters behind a name; one that says what is wrong, where they cannot be told apart."""
    try:
        if name in _BY_NAME:
            return _BY_NAME[name](table, handle)
        if name.startswith(PARTITIONED_PREFIX):
            return own_filters.partitioned(table, handle)
        if name.startswith((FULL_PREFIX, PREFIXED_PREFIX)) and _is_own(table, name, handle):
            return own_filters.full(table, handle)
    except (CorruptionError, FilterError) as error:
        guard = _guard(table, handle)
        problem = placed(table, handle, "filter block", error)
        opened = Opened(family=None, form=f"unreadable: {name}", problem=problem)
        return 1, lambda _: found(opened, "filter block", handle.offset, handle.size, guard)
    opened = Opened(family=None, form=f"unknown: {name}")
    return 1, lambda _: look(table, handle, "filter block", lambda *_: opened)


def _is_own(table: Table, name: str, handle: Handle) -> bool:
    """Whether a block of that name describes itself."""
    if table.store == "lsm" or name.startswith(PREFIXED_PREFIX):
        return True
    return table.source.read(handle.offset, len(OWN_MAGIC), "filter block") == OWN_MAGIC


def _guard(table: Table, handle: Handle) -> Guard:
    """What a block's checksum says, where there is such a block."""
    try:
        return table.blocks.stored(handle, "filter block").guard
    except CorruptionError:
        return Guard()


def _windows(table: Table, handle: Handle, *, is_signed: bool) -> _Part:
    """A filter for the data blocks that begin in each 2 KiB or so; the empty ones are left out."""
    what = "filter block"
    stored = table.blocks.stored(handle, what)
    if stored.guard.checked == "wrong":
        raise table.blocks.mismatch(handle, what)
    windows = WindowReader(table.blocks.contents(handle, what, stored))
    bounds = map(windows.bounds, range(len(windows)))
    numbers = array("Q", (number for number, (low, high) in enumerate(bounds) if low < high))
    added = added_to(table)

    def window(index: int) -> FilterFound:
        number = numbers[index]
        low, high = windows.bounds(number)
        keys = None if added.unknown else partial(_keys_of, table, added, number, windows.base_lg)
        opened = _open_window(windows.contents[low:high], added, keys, is_signed=is_signed)
        offset = handle.offset + low if stored.kind == RAW else handle.offset
        where = f"window {number + 1} of {len(windows)}"
        return found(opened, where, offset, high - low, stored.guard)

    return len(numbers), window


def _keys_of(table: Table, added: AddedKeys, number: int, base_lg: int) -> Iterator[bytes]:
    """What was added of the blocks that begin in a window."""
    offsets = table.data.offsets
    first, end = (bisect_left(offsets, each << base_lg) for each in (number, number + 1))
    return added.of(table.data.keys(first, end))


def _open_window(
    contents: bytes, added: AddedKeys, keys: Keys | None, *, is_signed: bool
) -> Opened:
    """The filter of a window, in LevelDB's bytes."""
    form = "LevelDB's Bloom filter of a window"
    if is_signed:
        form += ", with RocksDB's hash"
    geometry, _ = leveldb.decode(contents)
    return Opened(
        family=leveldb.FAMILY,
        form=f"{form}, {added.note}" if added.note else form,
        parameters={"probes": geometry.num_probes, "bits": geometry.bits},
        reader=SignedWindow(contents) if is_signed else LevelDBPolicy().open(contents),
        keys=keys,
    )


_BY_NAME: dict[str, Callable[[Table, Handle], _Part]] = {
    WINDOWS_KEY: partial(_windows, is_signed=False),
    SIGNED_WINDOWS_KEY: partial(_windows, is_signed=True),
    rocksdb_filters.FULL_KEY: rocksdb_filters.full,
    rocksdb_filters.PARTITIONED_KEY: rocksdb_filters.partitioned,
    rocksdb_filters.FUSE_KEY: rocksdb_filters.fuse,
}
