"""RocksDB's and Pebble's filters in a table: one for all keys, or an index of partitions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from filters import ribbon, rocksdb, rocksdb_forms
from lsm.disk.footer import TRAILER_BYTES, Handle
from lsm.disk.keys import unpack
from lsm.errors import CorruptionError
from lsm.survey.added_keys import AddedKeys, added_to, order_of
from lsm.survey.filter_look import Keys, Opened, look
from lsm.survey.foreign_blocks import read_index
from lsm.survey.pebble_fuse import PebbleFuseFilter
from lsm.survey.rocksdb_properties import RocksDBProperties
from policies import RocksDBPolicy

if TYPE_CHECKING:
    from lsm.survey.data_blocks import IsAfter
    from lsm.survey.found import FilterFound, Guard
    from lsm.survey.table import Table

FULL_KEY = "fullfilter.rocksdb.BuiltinBloomFilter"
PARTITIONED_KEY = "partitionedfilter.rocksdb.BuiltinBloomFilter"
FUSE_KEY = "fullfilter.binaryfuse"

_FORMS = {
    rocksdb_forms.FAST_LOCAL: "RocksDB's cache-local Bloom filter",
    rocksdb_forms.LEGACY: "RocksDB's Bloom filter of format versions up to 4",
    rocksdb_forms.RIBBON: "RocksDB's Ribbon filter",
    rocksdb_forms.EMPTY: "RocksDB's filter of no keys",
}
_PEBBLES_LINES = "Pebble's Bloom filter of 64-byte lines"


def full(table: Table, handle: Handle) -> tuple[int, Callable[[int], FilterFound]]:
    """The one filter of a table."""
    added = added_to(table)
    counted = None
    if table.properties is not None:
        counted = table.properties.num_filter_entries or None  # 0 where it was not counted
    elif table.own is not None:
        counted = table.own.num_filter_keys
    keys = None if added.unknown else partial(_all_keys, table, added)
    open = partial(_open, table, added, keys, counted)
    return 1, lambda _: look(table, handle, "filter block", open)


def fuse(table: Table, handle: Handle) -> tuple[int, Callable[[int], FilterFound]]:
    """Pebble's binary fuse filter of a table."""
    added = added_to(table)

    def open(contents: bytes, guard: Guard) -> Opened:
        reader = PebbleFuseFilter(contents)
        return Opened(
            family="binary-fuse",
            form=_noted("Pebble's binary fuse filter", added),
            parameters={
                "fingerprint bits": reader.bits,
                "slots": reader.num_slots,
                "segment length": reader.segment_length,
            },
            reader=reader,
            keys=None if added.unknown else partial(_all_keys, table, added),
        )

    return 1, lambda _: look(table, handle, "filter block", open)


def partitioned(table: Table, handle: Handle) -> tuple[int, Callable[[int], FilterFound]]:
    """The filters that a top-level index leads to; CorruptionError where it is damaged."""
    lasts, handles = _partitions(table, handle)
    added, is_after = added_to(table), order_of(table)
    ranges = None
    if is_after is None and table.properties is not None and not added.unknown:
        added = AddedKeys(f"of ranges in the order of {table.properties.comparator}", unknown=True)
    if is_after is not None and not added.unknown:
        ranges = _Ranges(table, lasts, is_after, added)

    def partition(number: int) -> FilterFound:
        keys = None if ranges is None else partial(ranges.keys, number)
        where = f"partition {number + 1} of {len(handles)}"
        return look(table, handles[number], where, partial(_open, table, added, keys, None))

    return len(handles), partition


class _Ranges:
    """The keys of each partition: those that a lookup would ask it for."""

    def __init__(self, table: Table, lasts: Sequence[bytes], is_after: IsAfter, added: AddedKeys):
        self._table = table
        self._lasts = lasts
        self._is_after = is_after
        self._added = added
        self._starts: Sequence[int] | None = None

    def keys(self, number: int) -> Iterator[bytes]:
        """What was added to one partition, as far as its own keys tell."""
        return self._added.of(self._user_keys(number))

    def _user_keys(self, number: int) -> Iterator[bytes]:
        if self._starts is None:
            self._starts = self._table.data.starts(self._lasts, self._is_after)
        low = self._lasts[number - 1] if number else None
        high = self._lasts[number] if number < len(self._lasts) - 1 else None
        for key in self._table.data.keys(self._starts[number]):
            if high is not None and self._is_after(key, high):
                return
            if low is None or self._is_after(key, low):
                yield key


def _partitions(table: Table, handle: Handle) -> tuple[Sequence[bytes], Sequence[Handle]]:
    """The last key of each partition, and its place; behind the last key the last one answers."""
    properties = table.properties or RocksDBProperties()
    lasts: list[bytes] = []
    handles: list[Handle] = []
    contents = table.blocks.opened(handle, "index of the filter's partitions")
    most = table.source.size // TRAILER_BYTES
    delta = properties.has_delta_handles
    for key, found in read_index(contents, has_delta_handles=delta):
        if len(handles) == most:
            raise CorruptionError(f"it has more than the {most} entries that the file has room for")
        lasts.append(key if properties.has_user_keys else unpack(key)[0])
        handles.append(found)
    if not handles:
        raise CorruptionError("it has no entry")
    return lasts, handles


def _all_keys(table: Table, added: AddedKeys) -> Iterator[bytes]:
    return added.of(table.data.keys())


def _open(
    table: Table,
    added: AddedKeys,
    keys: Keys | None,
    num_keys: int | None,
    contents: bytes,
    guard: Guard,
) -> Opened:
    """Any bytes, as RocksDB would read them."""
    form, _ = rocksdb_forms.decode(contents)
    said = _FORMS.get(form.kind) or f"a filter of RocksDB's that answers maybe: {form.reason}"
    if table.store == "Pebble" and form.kind == rocksdb_forms.LEGACY:
        said = _PEBBLES_LINES
    return Opened(
        family=ribbon.FAMILY if form.kind == rocksdb_forms.RIBBON else rocksdb.FAMILY,
        form=_noted(said, added),
        parameters=_parameters(form),
        num_keys=0 if form.kind == rocksdb_forms.EMPTY else num_keys,
        reader=RocksDBPolicy().open(contents),
        keys=keys,
    )


def _parameters(form: rocksdb_forms.Form) -> dict[str, Any]:
    if form.blocks is not None:
        return {"blocks": form.blocks.blocks, "columns": form.blocks.columns, "seed": form.seed}
    if not form.lines:
        return {}
    return {"probes": form.num_probes, "lines": form.lines, "line bytes": form.line_bits // 8}


def _noted(form: str, added: AddedKeys) -> str:
    return f"{form}, {added.note}" if added.note else form
