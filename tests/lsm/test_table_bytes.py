"""Tables to the byte: written as the format says, read back, and never believed."""

from __future__ import annotations

import random
import re
import zlib
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lsm
import policies
from filters.families import FAMILIES
from lsm import kernels, loaded_filter
from lsm.comparator import BYTEWISE, Comparator, CustomComparator
from lsm.disk.compression import DEFLATE, KINDS, SNAPPY, ZSTD
from lsm.disk.compression import compress as squeezed
from lsm.disk.filter_blocks import FilterPlan
from lsm.disk.keys import MAX_SEQUENCE, NEWEST, Entry, is_put
from lsm.disk.table import TableReader
from lsm.disk.table_builder import TableBuilder, TableFormat, WrittenTable
from lsm.errors import CorruptionError
from lsm.kernels import TableFile
from lsm.kernels.python.block import Block
from lsm.kernels.python.cursor import Source
from lsm.kernels.python.table import Table
from lsm.options import LEVELS, Options
from lsm.stats import Counters
from lsm.storage import Mapped
from lsm.tables import TableCache
from lsm.version import PlacedTable, Version
from policies import FilterPolicy
from tests.effort import examples
from tests.lsm import independent_table as independent
from tests.lsm.independent_table import (
    LEVELDB_FILTER,
    TRAILER,
    WINDOW,
    closed,
    contents_of,
    footer,
    forge,
    internal_key,
    stored,
    varint,
)
from tests.lsm.simulated import SimulatedStorage
from tests.policies import independent_block

NAME = "db/000005.ldb"
REVERSED = CustomComparator("reversed", lambda one, other: (one < other) - (one > other))
COMPARATORS: list[Comparator] = [BYTEWISE, REVERSED]
COMPRESSIONS = list(KINDS)

# A version of a key: its sequence number, 1 for a put and 0 for a delete, its value.
KeyVersion = tuple[int, int, bytes]


def write(
    entries: Sequence[Entry],
    *,
    chunks: int = 1,
    comparator: Comparator = BYTEWISE,
    block_size: int = 4096,
    interval: int = 16,
    compression: str = "none",
    policy: FilterPolicy | None = None,
    layout: str = "table",
) -> tuple[bytes, WrittenTable]:
    """The bytes of a table, its entries added in so many pieces, and what the writer says of it."""
    storage = SimulatedStorage()
    form = TableFormat(
        comparator=comparator,
        block_size=block_size,
        block_restart_interval=interval,
        compression=KINDS[compression],
        table_body=kernels.of(comparator).TableBody,
    )
    plan = FilterPlan(
        level=2,
        policy=policy or policies.create("none"),
        layout=layout,
        reason="flush",
        none_below=lambda first, last: False,
    )
    builder = TableBuilder(storage.create("table"), form, plan)
    size = -(-len(entries) // chunks)
    for start in range(0, len(entries), size):
        builder.add(list(entries[start : start + size]))
    written = builder.finish()
    return storage.read("table"), written


def read(data: bytes, comparator: Comparator = BYTEWISE) -> Table:
    return Table(TableReader(NAME, Mapped(data)), comparator.wrap)


def pair_of(entry: Entry) -> tuple[bytes, bytes]:
    """An entry as the file has it."""
    key, rank, value = entry
    return internal_key(key, -rank >> 8, -rank & 0xFF), value


def in_order(keys: dict[bytes, list[KeyVersion]], comparator: Comparator = BYTEWISE) -> list[Entry]:
    """Entries in the order of files: by key, and of each key the newest version first."""
    return [
        (key, -(sequence << 8 | kind), value if kind else b"")
        for key in sorted(keys, reverse=comparator is REVERSED)
        for sequence, kind, value in sorted(keys[key], reverse=True)
    ]


def wrapped(entries: Sequence[Entry], comparator: Comparator) -> list[Entry]:
    """The entries with keys that order themselves."""
    wrap = comparator.wrap
    return list(entries) if wrap is None else [(wrap(k), rank, v) for k, rank, v in entries]


def unwrapped(entries: Sequence[Entry], comparator: Comparator) -> list[Entry]:
    if comparator.wrap is None:
        return list(entries)
    return [(comparator.unwrap(key), rank, value) for key, rank, value in entries]


def noise(length: int) -> bytes:
    return random.Random(length).randbytes(length)


STEMS = [b"", b"a", b"shared", b"shared-further", b"\xff\xff"]
some_keys = st.one_of(
    st.tuples(st.sampled_from(STEMS), st.binary(max_size=5)).map(b"".join),
    # Neighbours, and what cannot be raised.
    st.lists(st.sampled_from(b"\x00\x01ab\xfe\xff"), min_size=1, max_size=4).map(bytes),
)
some_values = st.one_of(
    st.binary(max_size=20),
    st.integers(0, 3000).map(noise),
    st.integers(0, 3000).map(lambda length: b"ab" * length),
)
some_versions = st.lists(
    st.tuples(st.integers(0, MAX_SEQUENCE), st.integers(0, 1), some_values),
    min_size=1,
    max_size=3,
    unique_by=lambda version: version[0],
)
some_data = st.dictionaries(some_keys, some_versions, min_size=1, max_size=25)
comparators = st.sampled_from(COMPARATORS)


# ---- writing ----


@examples(80)
@given(
    data=some_data,
    comparator=comparators,
    block_size=st.sampled_from([64, 200, 1024, 4096]),
    interval=st.integers(1, 32),
    compression=st.sampled_from(COMPRESSIONS),
    chunks=st.integers(1, 5),
)
def test_a_table_is_written_as_the_format_says(
    data: dict[bytes, list[KeyVersion]],
    comparator: Comparator,
    block_size: int,
    interval: int,
    compression: str,
    chunks: int,
) -> None:
    entries = in_order(data, comparator)
    table, written = write(
        entries,
        chunks=chunks,
        comparator=comparator,
        block_size=block_size,
        interval=interval,
        compression=compression,
    )
    parsed = independent.parse(table)
    pairs = [pair_of(entry) for entry in entries]
    assert parsed.pairs == pairs
    assert (written.size, written.num_entries) == (len(table), len(entries))
    assert (written.smallest, written.largest) == (pairs[0][0], pairs[-1][0])
    check_blocks(parsed, block_size, interval, KINDS[compression])
    check_index(parsed, comparator)
    check_places(parsed)


def check_blocks(table: independent.Table, size: int, interval: int, compression: int) -> None:
    """Each is cut where it is full, restarts where it should, and is compressed where that pays."""
    for block in table.blocks:
        check_shared(block, interval)
        assert (block is table.blocks[-1]) or len(block.contents) >= size
        *before, last = block.entries
        if before:
            had = sum(1 for restart in block.restarts if restart < last.at)
            assert last.at + 4 * (had + 1) < size, "it was full one entry earlier"
        assert block.kind == squeezed(compression, block.contents)[0]
    assert table.index.kind == squeezed(compression, table.index.contents)[0]
    check_shared(table.index, 1)
    check_shared(table.metaindex, 1)


def check_shared(block: independent.Block, interval: int) -> None:
    assert block.restarts == tuple(entry.at for entry in block.entries[::interval])
    last = b""
    for place, entry in enumerate(block.entries):
        same = 0
        while same < min(len(last), len(entry.key)) and last[same] == entry.key[same]:
            same += 1
        assert entry.shared == (same if place % interval else 0)
        last = entry.key


def check_index(table: independent.Table, comparator: Comparator) -> None:
    firsts = [block.pairs[0][0] for block in table.blocks[1:]]
    for (key, _), block, first in zip(
        table.index.pairs, table.blocks, [*firsts, None], strict=True
    ):
        assert key == shortened(block.pairs[-1][0], first, comparator)


def shortened(last: bytes, first: bytes | None, comparator: Comparator) -> bytes:
    """LevelDB's index key between a block's last key and the next block's first, if there is one.

    Shorter user keys come with the highest version, which no entry of theirs precedes.
    """
    key = last[:-8]
    if comparator is not BYTEWISE:
        return last
    if first is None:
        at = next((at for at, byte in enumerate(key) if byte != 0xFF), len(key))
        raised = at < len(key)
    else:
        other = first[:-8]
        pairs = enumerate(zip(key, other, strict=False))
        at = next((at for at, (one, two) in pairs if one != two), len(key))
        raised = at < min(len(key), len(other)) and key[at] + 1 < other[at]
    if raised and at + 1 < len(key):
        return internal_key(key[:at] + bytes((key[at] + 1,)), MAX_SEQUENCE)
    return last


def check_places(table: independent.Table) -> None:
    """One thing follows the other without a gap: blocks, what metaindex names, both indexes."""
    data_end = table.blocks[-1].end
    assert [block.offset for block in table.blocks] == [
        0,
        *(block.end for block in table.blocks[:-1]),
    ]
    rest = sorted([*table.meta.values(), table.metaindex, table.index], key=lambda b: b.offset)
    assert rest[-2:] == [table.metaindex, table.index]
    for block in rest:
        assert block.offset == data_end
        data_end = block.end
    assert data_end == len(table.data) - independent.FOOTER


@examples(60)
@given(
    data=some_data,
    block_size=st.sampled_from([64, 300, 1500, 2043, 5000]),
    more=st.integers(0, 3),
    bits=st.integers(1, 20),
)
def test_windows_hold_the_filters_of_the_blocks_that_begin_in_them(
    data: dict[bytes, list[KeyVersion]], block_size: int, more: int, bits: int
) -> None:
    data |= {b"more%d" % number: [(1, 1, noise(1900 * number))] for number in range(more)}
    policy = policies.create("leveldb", bits_per_key=bits)
    table, written = write(in_order(data), block_size=block_size, policy=policy, layout="block")
    parsed = independent.parse(table)
    assert set(parsed.meta) == {LEVELDB_FILTER, b"lsm.properties"}
    found = independent.windows(parsed.meta[LEVELDB_FILTER])
    end = parsed.blocks[-1].end
    assert len(found) == max(end // WINDOW, parsed.blocks[-1].offset // WINDOW + 1)
    for number, contents in enumerate(found):
        blocks = [block for block in parsed.blocks if block.offset // WINDOW == number]
        keys = [key[:-8] for block in blocks for key, _ in block.pairs]
        assert contents == (policy.create_filter(keys) if keys else b"")
        assert all(independent_block.leveldb_answer(contents, key) for key in keys)
    assert written.filter.num_keys == len(parsed.pairs)
    loaded = loaded_filter.load(read(table).reader, paranoid=True)
    assert (loaded.state, loaded.info.layout, loaded.info.num_keys) == (
        "built",
        "block",
        len(parsed.pairs),
    )
    assert loaded.windows is not None
    for block in parsed.blocks:
        reader = loaded.windows.at(block.offset)
        assert reader is not None
        assert all(reader.might_contain(key[:-8]) for key, _ in block.pairs)


NAMES: dict[str, bytes | None] = {
    family.name: (family.table_key or f"fullfilter.{family.name}").encode()
    for family in FAMILIES.values()
    if family.policy
}
NAMES["none"] = None


@pytest.mark.parametrize("name", NAMES)
def test_a_filter_of_the_table_lies_under_its_name_beside_the_properties(name: str) -> None:
    data = {b"key%d" % number: [(number, 1, b""), (number + 50, 0, b"")] for number in range(40)}
    table, written = write(in_order(data), block_size=300, policy=policies.create(name))
    parsed = independent.parse(table)
    key = NAMES[name]
    assert set(parsed.meta) == {b"lsm.properties"} | ({key} if key else set())
    properties = dict(parsed.meta[b"lsm.properties"].pairs)
    assert properties == {
        b"lsm.level": varint(2),
        b"lsm.num.entries": varint(80),
        b"lsm.num.filter.keys": varint(written.filter.num_keys),
        b"lsm.filter.policy": name.encode(),
        b"lsm.filter.params": properties[b"lsm.filter.params"],
        b"lsm.filter.state": b"built" if key else b"none",
    }
    assert properties[b"lsm.filter.params"][:1] == b"{"
    if key is None:
        return
    contents = parsed.meta[key].contents
    assert parsed.meta[key].kind == independent.RAW
    if FAMILIES[name].table_key:
        assert contents == policies.create(name).create_filter(sorted(data))
        return
    reader = independent_block.Reader(contents)
    assert reader.block.name == name
    assert all(reader.answer(each) for each in data)
    assert not all(reader.answer(b"other%d" % number) for number in range(100))


@pytest.mark.parametrize(
    ("policy", "count", "unsaid"),
    [("rocksdb", 300, "rocksdb"), ("ribbon", 300, "ribbon"), ("ribbon", 30, "rocksdb")],
)
def test_rocksdbs_bytes_say_who_made_them_where_the_properties_do_not(
    policy: str, count: int, unsaid: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = {b"key%d" % number: [(number, 1, b"")] for number in range(count)}
    table, _ = write(in_order(data), policy=policies.create(policy, bits_per_key=10))
    loaded = loaded_filter.load(read(table).reader, paranoid=False)
    assert (loaded.state, loaded.info.policy, loaded.info.num_keys) == ("built", policy, count)
    assert loaded.info.params == policies.create(policy, bits_per_key=10).params()
    monkeypatch.setattr(TableReader, "properties", lambda self: None)
    loaded = loaded_filter.load(read(table).reader, paranoid=False)
    assert (loaded.state, loaded.info.policy, loaded.info.num_keys) == ("built", unsaid, None)
    assert loaded.reader is not None
    assert all(loaded.reader.might_contain(key) for key in data)


def test_the_filter_follows_the_tables_compression_no_more_than_leveldbs_does() -> None:
    data = {b"key%03d" % number: [(number, 1, b"v" * 100)] for number in range(300)}
    for layout, policy in (("block", "leveldb"), ("table", "blocked")):
        table, _ = write(
            in_order(data), compression="zstd", policy=policies.create(policy), layout=layout
        )
        parsed = independent.parse(table)
        assert {block.kind for block in parsed.blocks} == {ZSTD}
        assert {block.kind for block in parsed.meta.values()} == {independent.RAW}


# ---- reading ----


@examples(60)
@given(
    data=some_data,
    comparator=comparators,
    block_size=st.sampled_from([64, 500, 4096]),
    interval=st.integers(1, 32),
    compression=st.sampled_from(COMPRESSIONS),
)
def test_what_is_written_is_read_back(
    data: dict[bytes, list[KeyVersion]],
    comparator: Comparator,
    block_size: int,
    interval: int,
    compression: str,
) -> None:
    entries = in_order(data, comparator)
    written, _ = write(
        entries,
        comparator=comparator,
        block_size=block_size,
        interval=interval,
        compression=compression,
    )
    table = read(written, comparator)
    check_reading(table, entries, comparator)


def check_reading(table: Table, entries: list[Entry], comparator: Comparator) -> None:
    """All entries, and each lookup that begins at, before or behind one of them."""
    numbers = range(len(table.handles))
    assert [
        entry
        for number in numbers
        for piece in table.read(number).pieces()
        for entry in unwrapped(piece, comparator)
    ] == entries
    ordered = wrapped(entries, comparator)
    places = [(entry[0], entry[1] + change) for entry in ordered for change in (-1, 0, 1)]
    places += [(key, NEWEST) for key, _ in places[::3]]
    for key, rank in places:
        at = bisect_left(ordered, (key, rank))
        number = table.block_for(key, rank)
        found = None if number == len(numbers) else table.read(number).find(key, rank)
        if found is None and number < len(numbers):
            # An index key may lie beyond its block's last entry, in the gap before the next block.
            number += 1
            found = None if number == len(numbers) else table.read(number).find(key, rank)
            assert found is None or key < found[0]
        assert found == (ordered[at] if at < len(ordered) else None)


@st.composite
def irregular_blocks(draw: st.DrawFn, entries: list[Entry]) -> tuple[bytes, list[int]]:
    """A block as no writer we know makes it: it shares less than it could, restarts at will."""
    body, restarts, last = b"", [0], b""
    for place, entry in enumerate(entries):
        key, value = pair_of(entry)
        same = 0
        while same < min(len(last), len(key)) and last[same] == key[same]:
            same += 1
        shared = draw(st.sampled_from([same, same, 0, same // 2]))
        if place and not shared and draw(st.booleans()):
            restarts.append(len(body))
        lengths = varint(shared) + varint(len(key) - shared) + varint(len(value))
        body += lengths + key[shared:] + value
        last = key
    return closed(body, restarts), restarts


def zstd_without_size(contents: bytes) -> bytes:
    """As a streaming writer leaves it."""
    import cramjam

    writer = cramjam.zstd.Compressor(3)
    writer.compress(contents)
    return bytes(writer.finish())


def zstd(contents: bytes) -> bytes:
    import cramjam

    return bytes(cramjam.zstd.compress(contents, 19))


def snappy(contents: bytes) -> bytes:
    import cramjam

    return bytes(cramjam.snappy.compress_raw(contents))


EVERY_KIND = [
    (0, bytes),
    (SNAPPY, snappy),
    (ZSTD, zstd),
    (ZSTD, zstd_without_size),
    (ZSTD, zlib.compress),
    (DEFLATE, independent.deflated),
]


@examples(60)
@given(
    data=some_data, comparator=comparators, draw=st.data(), turn=st.integers(0, len(EVERY_KIND) - 1)
)
def test_what_other_writers_may_write_is_read(
    data: dict[bytes, list[KeyVersion]], comparator: Comparator, draw: Any, turn: int
) -> None:
    """Restarts anywhere, another compression in each block, other index keys, other metadata."""
    entries = in_order(data, comparator)
    blocks, start = [], 0
    while start < len(entries):
        end = start + draw.draw(st.integers(1, 9))
        contents, _ = draw.draw(irregular_blocks(entries[start:end]))
        key = pair_of(entries[start:end][-1])[0]
        if end >= len(entries) and draw.draw(st.booleans()):
            key = key[:-8] + bytes(8)  # behind every version of the last key
        elif end < len(entries) and entries[end - 1][0] != entries[end][0]:
            key = key[:-8] + draw.draw(st.sampled_from([key[-8:], bytes(8)]))
        blocks.append((key, contents))
        start = end
    kinds = EVERY_KIND[turn:] + EVERY_KIND[:turn]
    meta = [(b"filter.of-somebody-else", b"?"), (b"\xff\xfe", b""), (b"zzz", b"z" * 100)]
    made = forge(blocks, meta, kinds=kinds)
    if turn:
        made = forge(blocks, meta, kinds=kinds, size=len(made) + 100)
    assert independent.parse(made).pairs == [pair_of(entry) for entry in entries]
    table = read(made, comparator)
    check_reading(table, entries, comparator)
    assert table.reader.properties() is None
    loaded = loaded_filter.load(table.reader, paranoid=True)
    assert loaded.state == "unknown"
    assert (loaded.reader, loaded.windows) == (None, None)


@examples(100)
@given(
    data=some_data,
    comparator=comparators,
    draw=st.data(),
    sought=st.lists(some_keys, max_size=8),
    rank=st.integers(NEWEST, 0),
)
def test_a_block_answers_as_a_sorted_list_does(
    data: dict[bytes, list[KeyVersion]],
    comparator: Comparator,
    draw: Any,
    sought: list[bytes],
    rank: int,
) -> None:
    entries = in_order(data, comparator)
    contents, restarts = draw.draw(irregular_blocks(entries))
    ordered = wrapped(entries, comparator)
    for fresh in (True, False):
        block = Block(contents, comparator.wrap)
        assert block.restarts == tuple(restarts)
        for raw in [*sought, *data]:
            key = raw if comparator.wrap is None else comparator.wrap(raw)
            if fresh:
                block = Block(contents, comparator.wrap)
            low = next((at for at, each in enumerate(ordered) if not each[0] < key), len(ordered))
            high = next((at for at, each in enumerate(ordered) if key < each[0]), len(ordered))
            assert list(chain.from_iterable(block.pieces_from(key))) == ordered[low:]
            assert list(chain.from_iterable(block.pieces_through(key))) == ordered[:high]
            of_key = [each[1] for each in ordered[low:high]]
            for at_rank in [rank, NEWEST, 0, *of_key, *(each + 1 for each in of_key)]:
                behind = [each for each in ordered if not (each[0], each[1]) < (key, at_rank)]
                assert block.find(key, at_rank) == (behind[0] if behind else None)
        assert list(chain.from_iterable(block.pieces())) == ordered


def test_an_empty_block_has_no_entries() -> None:
    for contents in (closed(b"", [0]), closed(b"", [0, 0])):
        block = Block(contents)
        assert list(block.pieces()) == list(block.pieces_backwards()) == []
        assert list(block.pieces_from(b"")) == list(block.pieces_through(b"x")) == []
        assert block.find(b"", NEWEST) is None


def test_a_table_of_no_blocks_has_nothing() -> None:
    table = read(forge([]))
    assert table.handles == []
    assert table.block_for(b"x", NEWEST) == 0
    assert table.offset_of(b"x") == 0


@pytest.mark.parametrize("size", [64, 70, 100])
@pytest.mark.parametrize("comparator", COMPARATORS, ids=lambda each: each.name)
def test_versions_of_one_key_may_straddle_blocks(size: int, comparator: Comparator) -> None:
    """Then equal user keys stand in the index, and the version tells which block to read."""
    data: dict[bytes, list[KeyVersion]] = {
        b"before": [(7, 1, b"x" * 30)],
        b"key": [(sequence, sequence % 3 > 0, b"%d" % sequence) for sequence in range(100, 200)],
        b"keys": [(9, 1, b"y" * 30), (8, 1, b"")],
    }
    entries = in_order(data, comparator)
    made, _ = write(entries, comparator=comparator, block_size=size, interval=3)
    table = read(made, comparator)
    indexed = unwrapped([(key, 0, b"") for key, _ in table.bounds()], comparator)
    same = [key for key, _, _ in indexed if key == b"key"]
    assert len(same) > 10
    check_reading(table, entries, comparator)
    wrap = comparator.wrap
    key = b"key" if wrap is None else wrap(b"key")
    for sequence in range(95, 205):
        number = table.block_for(key, -(sequence << 8 | 0xFF))
        found = (
            None
            if number == len(same) + 2
            else table.read(number).find(key, -(sequence << 8 | 0xFF))
        )
        if found is not None and unwrapped([found], comparator)[0][0] == b"key":
            assert -found[1] >> 8 == min(sequence, 199)
        else:
            assert sequence < 100


# ---- damage ----


DAMAGED: dict[str, dict[str, Any]] = {
    "blocked": {"policy": policies.create("blocked")},
    "windows": {"policy": policies.create("leveldb"), "layout": "block"},
    "rocksdb": {"policy": policies.create("rocksdb")},
    "snappy": {"policy": policies.create("classic"), "compression": "snappy"},
    "zstd": {"compression": "zstd"},
}


def small_table(form: str) -> tuple[bytes, list[Entry]]:
    data: dict[bytes, list[KeyVersion]] = {
        b"key%02d" % number: [
            (number + 1, 1, b"value" * (number % 4)),
            (number + 60, number % 2, b""),
        ]
        for number in range(0, 12, 2)
    }
    entries = in_order(data)
    return write(entries, block_size=90, interval=3, **DAMAGED[form])[0], entries


def damages(data: bytes) -> Iterator[bytes]:
    """The table with each byte changed in two ways, cut after every byte, and longer by some."""
    for at in range(len(data)):
        for change in (1, 0xFF):
            yield data[:at] + bytes((data[at] ^ change,)) + data[at + 1 :]
        yield data[:at]
    yield data + b"\0"
    yield bytes(5) + data


class OneFile(SimulatedStorage):
    """A storage of one table, made quickly."""

    def __init__(self, data: bytes):
        self.data = data

    def exists(self, path: str) -> bool:
        return path == NAME

    def map(self, path: str) -> Mapped:
        return Mapped(self.data)


OPTIONS = {paranoid: Options(paranoid_checks=paranoid) for paranoid in (False, True)}
LEAST, MOST = internal_key(b"", 0), internal_key(b"z" * 9, 0)


class OneTable:
    """A table that is read as a database reads it."""

    def __init__(self, data: bytes, *, paranoid: bool):
        self.tables = TableCache(OneFile(data), "db", OPTIONS[paranoid], BYTEWISE)
        self.placed = PlacedTable.at(0, TableFile(5, len(data)), LEAST, MOST, BYTEWISE)
        self.kernel = kernels.of(BYTEWISE)
        self.view = self.kernel.View((), Version([[self.placed], *[[]] * (LEVELS - 1)]))
        self.source = Source(self.view, self.tables, NEWEST)

    def get(self, key: bytes) -> bytes | None:
        value: bytes | None = self.kernel.find(self.view, self.tables, key, key, NEWEST, True)
        return value

    def all(self) -> list[Entry]:
        return [entry for window in self.source.ascending(None) for entry in window]

    @property
    def counters(self) -> Counters:
        tally = self.placed.tally
        assert tally is not None
        return Counters.of(tally)


def attempt(ask: Callable[[], object]) -> object:
    """What comes of it, or the corruption that was found instead; nothing else is to be raised."""
    try:
        return ask()
    except CorruptionError as error:
        return error


def is_helpful(error: CorruptionError) -> bool:
    """Whether it says which file, and what to do."""
    advice = re.search(r"repair_db\(\)|paranoid_checks", str(error))
    return str(error).startswith(NAME) and advice is not None


@pytest.mark.parametrize("paranoid", [False, True])
@pytest.mark.parametrize("form", DAMAGED)
def test_damage_is_found_or_does_no_harm(form: str, paranoid: bool) -> None:
    data, entries = small_table(form)
    newest: dict[bytes, bytes | None] = {}
    for key, rank, value in reversed(entries):
        newest[key] = value if is_put(rank) else None
    keys = [list(newest)[2], b"key05"]
    outcomes = {"found": 0, "harmless": 0}
    for damaged in damages(data):
        reader = OneTable(damaged, paranoid=paranoid)
        answers = [(attempt(partial(reader.get, key)), newest.get(key)) for key in keys]
        answers.append((attempt(reader.all), entries))
        errors = [answer for answer, _ in answers if isinstance(answer, CorruptionError)]
        assert all(is_helpful(error) for error in errors)
        assert all(answer == right for answer, right in answers if answer not in errors)
        outcomes["found" if errors else "harmless"] += 1
    assert outcomes["found"] > len(data)
    # Behind the data lie filter, properties and metaindex, and zeros in the footer.
    assert outcomes["harmless"] > (20 if paranoid else 100)


@pytest.mark.parametrize("form", DAMAGED)
def test_without_its_first_or_last_byte_no_table_is_opened(form: str) -> None:
    data, _ = small_table(form)
    for damaged in (data[1:], data[:-1], b"", data[-48:], data[-47:], data + b"\0"):
        with pytest.raises(CorruptionError, match=re.escape(NAME)):
            read(damaged)


def test_damaged_filters_are_counted_and_named(caplog: pytest.LogCaptureFixture) -> None:
    data, _ = small_table("blocked")
    block = independent.parse(data).meta[b"fullfilter.blocked"]
    damaged = bytearray(data)
    damaged[block.offset + 9] ^= 1
    reader = OneTable(bytes(damaged), paranoid=False)
    assert reader.get(b"absent") is None
    assert (reader.counters.corrupt, reader.counters.skipped) == (1, 0)
    assert f"{NAME}: reading on without its filter (corrupt)" in caplog.text


# ---- forged ----


A, B, C = (internal_key(key, 5) for key in (b"a", b"bb", b"ccc"))


def raw_entry(shared: int, unshared: int, length: int, rest: bytes) -> bytes:
    return varint(shared) + varint(unshared) + varint(length) + rest


GOOD = raw_entry(0, 9, 1, A + b"x")
AT = len(GOOD)

# Data blocks under right checksums; what of it must be refused: by find, in order, from a key on.
BAD_BLOCKS: dict[str, bytes] = {
    "no bytes": b"",
    "three bytes": b"\0\0\0",
    "zero restarts": closed(GOOD, []),
    "only a count of zero": bytes(4),
    "more restarts than fit": closed(GOOD, [0], 100),
    "2^32 - 1 restarts": closed(GOOD, [0], 2**32 - 1),
    "2^30 restarts": closed(GOOD, [0], 2**30),
    "a first restart that is not 0": closed(GOOD + GOOD, [AT]),
    "a restart behind the entries": closed(GOOD, [0, AT + 1]),
    "a restart of 2^32 - 1": closed(GOOD, [0, 2**32 - 1]),
    "a shared first key": closed(raw_entry(1, 8, 0, A[1:]), [0]),
    "a key longer than the block": closed(raw_entry(0, 100, 0, A), [0]),
    "a key of 2^32 - 1 bytes": closed(raw_entry(0, 2**32 - 1, 0, A), [0]),
    "a value longer than the block": closed(raw_entry(0, 9, 2, A + b"x"), [0]),
    "a value into the restarts": closed(raw_entry(0, 9, 5, A + b"x"), [0]),
    "a value of 2^32 - 1 bytes": closed(raw_entry(0, 9, 2**32 - 1, A + b"x"), [0]),
    "a key without a version": closed(raw_entry(0, 7, 0, A[2:]), [0]),
    "an empty key": closed(raw_entry(0, 0, 1, b"x"), [0]),
    "more shared than the key before has": closed(GOOD + raw_entry(10, 8, 0, A), [0]),
    "2^32 - 1 shared": closed(GOOD + raw_entry(2**32 - 1, 8, 0, A), [0]),
    "a second key without a version": closed(GOOD + raw_entry(3, 4, 0, A[3:7]), [0]),
    "one length": closed(b"\0", [0]),
    "two lengths": closed(b"\0\x09", [0]),
    "two lengths, behind an entry": closed(GOOD + b"\0\x09", [0]),
    "a varint without an end": closed(GOOD + b"\xff", [0]),
    "a varint of six bytes": closed(GOOD + b"\x80\x80\x80\x80\x80\0" + b"\x09\0" + A, [0]),
    "a varint of 2^35": closed(GOOD + b"\xff\xff\xff\xff\x7f" + b"\x09\0" + A, [0]),
    "varints all the way": closed(GOOD + b"\xff" * 40, [0]),
    "a cut entry": closed(GOOD + GOOD[:-3], [0]),
}
# What searches find and reading in order does not: it needs no restarts.
BAD_RESTARTS: dict[str, bytes] = {
    "a restart in an entry": closed(GOOD + raw_entry(0, 10, 0, B), [0, 3]),
    "a restart at a shared key": closed(GOOD + raw_entry(1, 9, 0, B[1:]), [0, AT]),
    "a restart at the end": closed(GOOD, [0, AT]),
}


def forged(contents: bytes, size: int | None = None) -> bytes:
    """A table of one good block and of this one."""
    good = contents_of([(B, b"1"), (C, b"2")])
    return forge([(A, contents), (C, good)], size=size)


def reads(reader: OneTable) -> dict[str, Callable[[], object]]:
    return {
        "get": lambda: reader.get(b"a"),
        "all": reader.all,
        "all backwards": lambda: list(reader.source.descending(None)),
        "from": lambda: list(reader.source.ascending(b"a")),
        "through": lambda: list(reader.source.descending(b"a")),
    }


@pytest.mark.parametrize("what", BAD_BLOCKS)
def test_a_block_under_a_right_checksum_is_not_believed(what: str) -> None:
    """Neither by a lookup nor by reading in order, whether or not the block was in the cache."""
    for name, ask in reads(OneTable(forged(BAD_BLOCKS[what]), paranoid=False)).items():
        for found in (attempt(ask), attempt(ask)):
            if isinstance(found, CorruptionError):
                assert is_helpful(found), (name, found)
                continue
            # A search ends where it has found what it sought: before the damage.
            assert name == "get", name
            assert BAD_BLOCKS[what].startswith(GOOD), what
            assert found == b"x", what


@pytest.mark.parametrize("what", BAD_RESTARTS)
def test_restarts_under_a_right_checksum_are_not_believed(what: str) -> None:
    for name, ask in reads(OneTable(forged(BAD_RESTARTS[what]), paranoid=False)).items():
        if name in ("get", "from", "through"):
            with pytest.raises(CorruptionError, match=re.escape(NAME)):
                ask()


def test_the_good_block_of_a_forged_table_is_read_all_the_same() -> None:
    for contents in (*BAD_BLOCKS.values(), *BAD_RESTARTS.values()):
        reader = OneTable(forged(contents), paranoid=False)
        assert reader.get(b"bb") == b"1"
        assert reader.get(b"c") is None


DATA = stored(closed(GOOD, [0]))
META = stored(contents_of([]))


def with_index(contents: bytes, kind: int = 0) -> bytes:
    """A table of one block with this for its index."""
    body = DATA + META
    handles = [varint(len(DATA)) + varint(len(META) - TRAILER)]
    handles.append(varint(len(body)) + varint(len(contents)))
    return body + stored(contents, kind) + footer(*handles)


def with_footer(end: bytes) -> bytes:
    return DATA + META + stored(contents_of([(A, varint(0) + varint(len(DATA) - TRAILER))])) + end


def handle(offset: int, size: int) -> bytes:
    return varint(offset) + varint(size)


HUGE = [2**31, 2**32, 2**63 - 1, 2**63, 2**64 - 100, 2**64 - 6, 2**64 - 5, 2**64 - 1]
OVERLONG = [b"\x80" * 10 + b"\0", b"\xff" * 9 + b"\x02", b"\xff" * 11]

# Opening must refuse these.
BAD_TABLES: dict[str, bytes] = {
    "an index without restarts": with_index(closed(b"", [])),
    "an index of no bytes": with_index(b""),
    "an index with too many restarts": with_index(closed(b"", [0], 3)),
    "an index key without a version": with_index(contents_of([(b"short", handle(0, 30))])),
    "an index entry without a handle": with_index(contents_of([(A, b"")])),
    "an index entry with half a handle": with_index(contents_of([(A, varint(0))])),
    "an index entry with an endless handle": with_index(contents_of([(A, b"\x80" * 9)])),
    "an index that shares too much": with_index(
        closed(raw_entry(3, 9, 2, A + handle(0, len(DATA) - TRAILER)), [0])
    ),
    "an index that ends too early": with_index(closed(raw_entry(0, 90, 2, A + handle(0, 30)), [0])),
    "an index of an unknown compression": with_index(b"", kind=9),
    **{
        f"index at {offset}": with_footer(footer(handle(0, 4), handle(offset, 20)))
        for offset in HUGE
    },
    **{
        f"index of {size} bytes": with_footer(footer(handle(0, 4), handle(40, size)))
        for size in HUGE
    },
    **{
        f"overlong varint {place} in the footer": with_footer(
            (overlong + bytes(40))[:40] + footer(b"", b"")[-8:]
        )
        for place, overlong in enumerate(OVERLONG)
    },
    "a footer of handles without an end": with_footer(b"\xff" * 40 + footer(b"", b"")[-8:]),
    "another magic number": with_footer(footer(handle(0, 4), handle(40, 20))[:-1] + b"\xda"),
    "RocksDB's magic number": with_footer(bytes(40) + bytes.fromhex("f7cff485b741e288")),
    "nothing": b"",
    "only a footer": footer(handle(0, 0), handle(0, 0)),
}


@pytest.mark.parametrize("what", BAD_TABLES)
def test_a_table_that_cannot_be_one_is_not_opened(what: str) -> None:
    reader = OneTable(BAD_TABLES[what], paranoid=False)
    for ask in (lambda: reader.get(b"a"), reader.all):
        with pytest.raises(CorruptionError, match=re.escape(NAME)):
            ask()


@pytest.mark.parametrize("offset", [1, len(DATA), *HUGE])
def test_a_handle_that_leads_elsewhere_is_refused_when_it_is_followed(offset: int) -> None:
    size = len(DATA) - TRAILER
    pairs = [(A, handle(offset, size)), (B, handle(0, offset)), (C, handle(0, size))]
    reader = OneTable(with_index(contents_of(pairs)), paranoid=False)
    for key in (b"a", b"b", b"bb"):
        with pytest.raises(CorruptionError, match=re.escape(NAME)):
            reader.get(key)
    assert reader.get(b"c") is None
    with pytest.raises(CorruptionError, match=re.escape(NAME)):
        reader.all()


def with_meta(name: bytes, value: bytes) -> bytes:
    """A table of one block whose metaindex says this."""
    meta = stored(contents_of([(name, value)]))
    index = stored(contents_of([(A, handle(0, len(DATA) - TRAILER))]))
    places = handle(len(DATA), len(meta) - TRAILER)
    more = handle(len(DATA) + len(meta), len(index) - TRAILER)
    return DATA + meta + index + footer(places, more)


FILTER_NAMES = [LEVELDB_FILTER, b"fullfilter.blocked", b"fullfilter.rocksdb.BuiltinBloomFilter"]
BAD_HANDLES = [b"", b"\x80", *OVERLONG, *(handle(each, 5) for each in HUGE), handle(3, 2**64 - 9)]


@pytest.mark.parametrize("name", [*FILTER_NAMES, b"lsm.properties", b"filter.", b"fullfilter.\xff"])
def test_a_metaindex_that_leads_nowhere_costs_the_filter_and_no_more(name: bytes) -> None:
    for value in BAD_HANDLES:
        reader = OneTable(with_meta(name, value), paranoid=False)
        assert reader.get(b"a") == b"x"
        assert reader.get(b"b") is None
        assert reader.all() == [(b"a", -0x501, b"x")]
        if name in FILTER_NAMES:
            assert reader.counters.corrupt == 1
            strict = OneTable(with_meta(name, value), paranoid=True)
            with pytest.raises(CorruptionError, match=re.escape(NAME)):
                strict.get(b"a")
            assert strict.all() == [(b"a", -0x501, b"x")]


# Filter blocks that LevelDB's own reader takes for no filter, or that it would misread.
BAD_WINDOWS: dict[str, bytes] = {
    "no bytes": b"",
    "four bytes": b"\0\0\0\x0b",
    "offsets behind the end": b"\xff" * 9 + b"\x0a\0\0\0\x0b",
    "offsets at 2^32 - 1": b"\xff" * 9 + b"\xff\xff\xff\xff\x0b",
    "offsets that go backwards": bytes(9) + b"\x09\0\0\0" + b"\x03\0\0\0" + b"\x09\0\0\0\x0b",
    "an odd number of bytes of offsets": bytes(9) + b"\0\0\0\0" + b"\0" + b"\x09\0\0\0\x0b",
    "windows of 2^200 bytes": bytes(9) + b"\0\0\0\0" + b"\x09\0\0\0\xc8",
}


@pytest.mark.parametrize("what", BAD_WINDOWS)
def test_a_malformed_block_of_windows_costs_the_filter_and_no_more(what: str) -> None:
    made = forge([(A, closed(GOOD, [0]))], [(LEVELDB_FILTER, BAD_WINDOWS[what])])
    reader = OneTable(made, paranoid=False)
    assert reader.get(b"a") == b"x"
    assert reader.counters.corrupt == 1
    with pytest.raises(CorruptionError, match=re.escape(NAME)):
        OneTable(made, paranoid=True).get(b"a")


def test_a_window_that_is_empty_or_missing_says_maybe() -> None:
    """Of the block that begins there it saw no keys; then rather read the block."""
    for contents in (b"\0\0\0\0\x0b", b"\0\0\0\0" + b"\0\0\0\0\x0b"):
        reader = OneTable(
            forge([(A, closed(GOOD, [0]))], [(LEVELDB_FILTER, contents)]), paranoid=True
        )
        assert reader.get(b"a") == b"x"


@examples(150)
@given(st.binary(max_size=60), st.lists(st.integers(0, 70), max_size=3), st.booleans())
def test_any_bytes_for_a_block_are_read_or_refused(
    body: bytes, restarts: list[int], well_begun: bool
) -> None:
    contents = closed(GOOD + body if well_begun else body, [0, *restarts])
    for ask in reads(OneTable(forged(contents), paranoid=False)).values():
        found = attempt(ask)
        assert not isinstance(found, CorruptionError) or is_helpful(found)


@examples(100)
@given(st.binary(max_size=60), st.lists(st.integers(0, 70), max_size=2))
def test_any_bytes_for_an_index_are_read_or_refused(body: bytes, restarts: list[int]) -> None:
    reader = OneTable(with_index(closed(body, [0, *restarts])), paranoid=False)
    for ask in (partial(reader.get, b"a"), reader.all):
        found = attempt(ask)
        assert not isinstance(found, CorruptionError) or is_helpful(found)


def test_a_database_names_the_table_whose_block_is_malformed() -> None:
    """Through the doors that programs use."""
    storage = SimulatedStorage()
    with lsm.DB("db", create_if_missing=True, storage=storage) as db:
        for key in (b"a", b"bb", b"ccc"):
            db.put(key, noise(400))
        db.flush()
    [name] = [name for name in storage.list("db") if name.endswith(".ldb")]
    data = storage.read(f"db/{name}")
    made = forge([(C, closed(GOOD + b"\xff" * 40, [0]))], size=len(data))
    file = storage.create(f"db/{name}")
    file.append(made)
    file.close()
    with lsm.DB("db", storage=storage) as db:
        for ask in (
            lambda: db.get(b"bb"),
            lambda: db.get_many([b"bb"]),
            lambda: list(db),
            lambda: list(db.iterator(reverse=True)),
            lambda: list(db.iterator(start=b"b")),
            lambda: db.explain(b"bb"),
        ):
            with pytest.raises(CorruptionError, match=re.escape(name)):
                ask()
