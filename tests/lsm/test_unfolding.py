"""What a few bytes stand for: read in pieces or refused, never all in memory at once.

A block leaves out what keys share with the key before, and compression what repeats. Both are legal
to any extent, and either can make gigabytes of some hundred kilobytes.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from itertools import chain, pairwise
from pathlib import Path

import cramjam
import pytest

from lsm import kernels, loaded_filter
from lsm.comparator import BYTEWISE, Comparator, CustomComparator
from lsm.disk import compression, plain_block
from lsm.disk.compression import ROOM, ZSTD
from lsm.disk.filter_blocks import FilterPlan
from lsm.disk.keys import NEWEST, PUT, Entry, pack, rank_of
from lsm.disk.properties import METAINDEX_KEY, Properties
from lsm.disk.table import TableReader
from lsm.disk.table_builder import TableBuilder, TableFormat
from lsm.errors import CorruptionError
from lsm.kernels.python import block as block_module
from lsm.kernels.python.block import Block
from lsm.kernels.python.block_builder import BlockBuilder
from lsm.kernels.python.table import Table
from lsm.kernels.python.table_body import KEYS_TO_FILE
from lsm.storage import Mapped
from policies import NoFilterPolicy
from tests.lsm.independent_table import TRAILER, closed, contents_of, footer, stored, varint
from tests.lsm.peak_memory import at_most
from tests.lsm.simulated import SimulatedStorage

NAME = "db/000005.ldb"
MIB = 1 << 20
REVERSED = CustomComparator("reversed", lambda one, other: (one < other) - (one > other))


def block_of(entries: list[Entry], interval: int) -> bytes:
    """A block of all these entries, as our builder writes it."""
    builder, at = BlockBuilder(interval), 0
    while at < len(entries):
        at = builder.fill(entries, at, 1 << 40)
    return builder.finish()


def long_keys(count: int, length: int) -> list[Entry]:
    """Keys that share nearly all they have."""
    return [
        (b"%0*d" % (length, number), rank_of(number + 1, PUT), b"v%d" % number)
        for number in range(count)
    ]


def versions(count: int, length: int) -> list[Entry]:
    """Versions of one key, the newest first."""
    return [(bytes(length), rank_of(count - number, PUT), b"v") for number in range(count)]


LEGAL: dict[str, list[Entry]] = {
    "long keys": long_keys(300, 700),
    "short keys": long_keys(600, 9),
    "versions of a long key": versions(200, 900),
    "long keys with versions": [
        (key, rank_of(9 - n, PUT), b"") for key, _, _ in long_keys(40, 500) for n in range(6)
    ],
    "one huge key": [(bytes(300_000), rank_of(5, PUT), b"v")],
    "large values": [(b"k%03d" % n, rank_of(5, PUT), bytes(20_000)) for n in range(40)],
}


def flat(pieces: Iterator[list[Entry]]) -> list[Entry]:
    return list(chain.from_iterable(pieces))


def flat_backwards(pieces: Iterator[list[Entry]]) -> list[Entry]:
    return list(chain.from_iterable(reversed(list(pieces))))


@pytest.mark.parametrize("comparator", [BYTEWISE, REVERSED], ids=["bytewise", "reversed"])
@pytest.mark.parametrize("interval", [1, 16, 65535])
@pytest.mark.parametrize("what", LEGAL)
def test_pieces_are_the_block(
    what: str,
    interval: int,
    comparator: Comparator,
    rng: random.Random,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Forwards and backwards, from any key and up to any key, however small they are."""
    entries = LEGAL[what]
    if comparator is REVERSED:
        entries = sorted(entries, key=lambda entry: (bytes(255 - b for b in entry[0]), entry[1]))
        entries = [(comparator.wrap(k), r, v) for k, r, v in entries]  # type: ignore[misc]
    contents = block_of(
        [(comparator.unwrap(key), rank, value) for key, rank, value in entries], interval
    )
    block = Block(contents, comparator.wrap)
    for piece_bytes, key_bytes in ((1 << 18, 1 << 20), (1000, 1 << 20), (1 << 18, 2000), (1, 1)):
        monkeypatch.setattr(block_module, "PIECE_BYTES", piece_bytes)
        monkeypatch.setattr(block_module, "PIECE_KEY_BYTES", key_bytes)
        assert flat(block.pieces()) == flat_backwards(block.pieces_backwards()) == entries
        if piece_bytes == 1:
            assert max(map(len, block.pieces())) == 1
        for key, _, _ in rng.sample(entries, min(4, len(entries))):
            assert flat(block.pieces_from(key)) == [e for e in entries if not e[0] < key]
            up_to = [e for e in entries if not key < e[0]]
            assert flat_backwards(block.pieces_through(key)) == up_to


@pytest.mark.parametrize("interval", [16, 65535])
def test_legal_keys_of_gigabytes_are_read_in_pieces(interval: int) -> None:
    """3,000 keys of 40,000 bytes with one prefix: 120 MB in 60 KB, or in 7 MB with restarts."""
    contents = block_of(long_keys(3000, 40_000), interval)
    block = Block(contents)
    sought = b"%040000d" % 1500
    readings: list[Callable[[], Iterator[list[Entry]]]] = [
        block.pieces,
        block.pieces_backwards,
        lambda: block.pieces_from(sought),
        lambda: block.pieces_through(sought),
    ]
    for reading, expected in zip(readings, (3000, 3000, 1500, 1501), strict=True):
        # Two pieces while the next one is made, and the keys of restarts.
        with at_most(4 * MIB + 2 * len(contents)):
            assert sum(map(len, reading())) == expected
    with at_most(MIB + 2 * len(contents)):
        found = block.find(sought, NEWEST)
    assert found is not None
    assert found[2] == b"v1500"


def test_the_versions_of_a_key_share_it() -> None:
    """A merge holds all of them at once."""
    entries = versions(5000, 100_000)
    block = Block(block_of(entries, 65535))
    with at_most(4 * MIB):
        found = flat(block.pieces())
    assert found == entries


def test_restarts_take_no_more_than_the_block() -> None:
    """Neither many at one entry, nor entries that overlap."""
    key = pack(bytes(50_000), -257)
    entry = varint(0) + varint(len(key)) + varint(0) + key
    overlapping = varint(0) + varint(20_000) + varint(0)
    entries = overlapping * 5000 + bytes(20_000)
    restarts = list(range(0, len(overlapping) * 5000, len(overlapping)))
    for contents in (
        closed(entry, [0] * 10_000),
        closed(entry + entry, [0, *[len(entry)] * 4000]),
        closed(entries, restarts),
    ):
        with at_most(MIB), pytest.raises(CorruptionError, match=r"place: .*repair_db"):
            Block(contents, None, "place").find(b"x", NEWEST)


# -- Index, metaindex, properties --------------------------------------------------------------


def bomb(key: bytes, value: bytes, count: int, step: bytes = b"") -> bytes:
    """A block in which so many keys share the first but for its last bytes."""
    entries = varint(0) + varint(len(key)) + varint(len(value)) + key + value
    entries += (
        varint(len(key) - len(step)) + varint(len(step)) + varint(len(value)) + step + value
    ) * count
    return closed(entries, [0])


DATA = stored(contents_of([(pack(b"a", -257), b"x")]))
INDEX = contents_of([(pack(b"a", -257), varint(0) + varint(len(DATA) - TRAILER))])


def table(*, meta: bytes, index: bytes = INDEX, kind: int = 0, more: bytes = b"") -> bytes:
    """A table of one entry with any metaindex and index."""
    data, handles = DATA + more, []
    for contents, its_kind in ((meta, 0), (index, kind)):
        squeezed = contents if its_kind == 0 else bytes(cramjam.zstd.compress(contents, 1))
        handles.append(varint(len(data)) + varint(len(squeezed)))
        data += stored(squeezed, its_kind)
    return data + footer(*handles)


LONG = bytes(100_000)


def test_an_index_that_unfolds_to_gigabytes_is_refused() -> None:
    key = pack(LONG, -257)
    data = table(meta=contents_of([]), index=bomb(key, varint(0) + varint(20), 66_000))
    assert len(data) < 700_000
    with (
        at_most(3 * ROOM),
        pytest.raises(CorruptionError, match=rf"{NAME}.*index.*allowed.*repair"),
    ):
        Table(TableReader(NAME, Mapped(data)), None)


def test_an_index_of_more_entries_than_blocks_is_refused() -> None:
    index = bomb(pack(b"k", -257), b"\0\1", 3_000_000)
    data = table(meta=contents_of([]), index=index, kind=ZSTD)
    assert len(data) < 10_000
    with (
        at_most(4 * len(index)),
        pytest.raises(CorruptionError, match=rf"{NAME}.*more entries than"),
    ):
        Table(TableReader(NAME, Mapped(data)), None)


@pytest.mark.parametrize("entries", [(LONG, 66_000), (b"key", 400_000)], ids=["long", "many"])
def test_a_metaindex_that_unfolds_costs_the_filter_and_no_more(entries: tuple[bytes, int]) -> None:
    data = table(meta=bomb(entries[0], b"", entries[1]))
    with at_most(3 * ROOM):
        opened = Table(TableReader(NAME, Mapped(data)), None)
        assert loaded_filter.load(opened.reader, paranoid=False).state == "corrupt"
        with pytest.raises(CorruptionError, match=rf"{NAME}.*allowed"):
            loaded_filter.load(opened.reader, paranoid=True)
    assert flat(opened.read(0).pieces()) == [(b"a", -257, b"x")]


def properties(params: str) -> bytes:
    return Properties(
        level=1,
        num_entries=1,
        num_filter_keys=1,
        filter_policy="blocked",
        filter_params=params,
        filter_state="declined",
    ).encode()


def with_properties(contents: bytes) -> TableReader:
    place = varint(len(DATA)) + varint(len(contents))
    meta = contents_of([(METAINDEX_KEY, place)])
    return TableReader(NAME, Mapped(table(meta=meta, more=stored(contents))))


def test_properties_that_unfold_are_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    opened = with_properties(bomb(LONG, b"", 66_000))
    with at_most(3 * ROOM):
        assert loaded_filter.load(opened, paranoid=True).state == "none"
    assert NAME in caplog.text


@pytest.mark.parametrize("opening", ["[", '{"a":', '{"a":[', "[[0],"])
@pytest.mark.parametrize("depth", [40, 900, 100_000])
def test_parameters_nested_without_end_are_no_parameters(opening: str, depth: int) -> None:
    closing = {"[": "]", '{"a":': "}", '{"a":[': "]}", "[[0],": "]"}[opening]
    for params in (opening * depth, opening * depth + "1" + closing * depth):
        loaded = loaded_filter.load(with_properties(properties(params)), paranoid=True)
        assert (loaded.state, loaded.info.params) == ("declined", {})
        assert "params={}" in repr(loaded.info)


def test_parameters_of_usual_depth_are_shown() -> None:
    params = {"a": [1, {"b": [2, 3]}], "c": "[[[["}
    loaded = loaded_filter.load(with_properties(properties(json.dumps(params))), paranoid=True)
    assert loaded.info.params == params


def test_an_index_of_long_keys_counts_as_what_it_takes() -> None:
    """Else the cache would keep far more of them open than it may."""
    pairs = [(pack(b"%09000d" % number, -257), b"\0\1") for number in range(20)]
    data = table(meta=contents_of([]), index=contents_of(pairs, 1))
    assert Table(TableReader(NAME, Mapped(data)), None).charge in range(20 * 9000, 20 * 9500)


@pytest.mark.parametrize("interval", [1, 16])
def test_long_keys_of_an_index_are_legal(interval: int) -> None:
    """Written whole they take what the block takes; sharing, as RocksDB may, some room."""
    pairs = [(pack(b"%09000d" % number, -257), b"\0\1") for number in range(1000)]
    contents = contents_of(pairs, interval)
    assert list(plain_block.read_entries(contents)) == pairs


# -- Compression -------------------------------------------------------------------------------


def test_the_limits_are_what_the_documents_say() -> None:
    text = (
        (Path(__file__).parents[2] / "docs/engine-format.md")
        .read_text()
        .partition("## How much")[2]
    )
    for number in (
        f"{ROOM // MIB} MiB",
        f"{plain_block.ROOM_FOR_KEYS // MIB} MiB",
        f"{compression._SNAPPY_GROWTH} times",
        f"{compression._GROWTH_BEYOND_ROOM} times",
        f"{compression._DEFLATE_GROWTH} times",
        f"each {TRAILER} bytes",
        f"| {plain_block.MOST_NAMES} |",
        f"{block_module.PIECE_BYTES // 1024} KiB of the block",
        f"{block_module.PIECE_KEY_BYTES // MIB} MiB of keys",
        f"{KEYS_TO_FILE} times",
    ):
        assert number in text


def test_a_data_block_cannot_unfold_a_gigabyte() -> None:
    key = pack(b"a", -257)
    contents = contents_of([(key, bytes(2 * ROOM))])
    squeezed = bytes(cramjam.zstd.compress(contents, 1))
    assert len(squeezed) < 10_000
    data = stored(squeezed, ZSTD)
    index = contents_of([(key, varint(0) + varint(len(squeezed)))])
    places = [varint(len(data)) + varint(len(index)), varint(len(data)) + varint(len(index))]
    opened = Table(TableReader(NAME, Mapped(data + stored(index) + footer(*places))), None)
    with (
        at_most(MIB),
        pytest.raises(CorruptionError, match=rf"{NAME}.*byte 0: .*allowed are {ROOM}"),
    ):
        opened.read(0)


@pytest.mark.parametrize("kind", [0, 1, 2])
def test_any_value_that_is_written_is_read(kind: int) -> None:
    """Zeros beyond what may unfold are not compressed."""
    value = bytes(ROOM + 1)
    storage, builder = built([(b"a", rank_of(1, PUT), value)], kind=kind)
    builder.finish()
    opened = Table(TableReader(NAME, storage.map("table")), None)
    (entry,) = flat(opened.pieces())
    assert entry[2] == value


# -- Writing -----------------------------------------------------------------------------------


def built(
    entries: list[Entry], *, kind: int = 0, interval: int = 16, block_size: int = 4096
) -> tuple[SimulatedStorage, TableBuilder]:
    storage = SimulatedStorage()
    form = TableFormat(
        comparator=BYTEWISE,
        block_size=block_size,
        block_restart_interval=interval,
        compression=kind,
        table_body=kernels.of(BYTEWISE).TableBody,
    )
    plan = FilterPlan(
        level=1,
        policy=NoFilterPolicy(),
        layout="table",
        reason="compaction",
        none_below=lambda first, last: False,
    )
    builder = TableBuilder(storage.create("table"), form, plan)
    builder.add(entries)
    return storage, builder


def test_a_table_counts_as_large_when_its_keys_take_much_memory() -> None:
    """A compaction ends it there; else a file of 2 MiB could hold gigabytes until it is written."""
    entries = long_keys(300, 40_000)
    key_bytes = sum(len(key) for key, _, _ in entries)
    for interval in (16, 65535):
        storage, builder = built(entries, interval=interval, block_size=4 * MIB, kind=2)
        assert builder.size >= key_bytes // 16
        assert len(storage.read("table")) < key_bytes // 16
        builder.abandon()


def test_usual_keys_do_not_make_a_table_larger(rng: random.Random) -> None:
    entries = [(b"user%08d" % n, rank_of(1, PUT), rng.randbytes(9)) for n in range(3000)]
    _, builder = built(entries)
    assert builder.size == builder._offset


# -- Order -------------------------------------------------------------------------------------


def table_of_blocks(*blocks: list[tuple[bytes, int]]) -> Table:
    data, index = b"", []
    for keys in blocks:
        contents = contents_of([(pack(key, rank), b"") for key, rank in keys])
        index.append((pack(*keys[-1]), varint(len(data)) + varint(len(contents))))
        data += stored(contents)
    at, contents = len(data), contents_of(index)
    place = varint(at) + varint(len(contents))
    return Table(TableReader(NAME, Mapped(data + stored(contents) + footer(place, place))), None)


def test_whoever_writes_anew_is_told_what_does_not_ascend() -> None:
    a, b, b2, c = (b"a", -257), (b"b", -513), (b"b", -257), (b"c", -257)
    for blocks in ([a, b, b2, c],), ([a, b], [b2, c]), ([a, a], [a, c]):
        assert len(flat(table_of_blocks(*blocks).pieces())) == sum(map(len, blocks))
    for blocks in ([b, a], [c]), ([a, c], [b]), ([a, b2, b],), ([a], [b2], [b]):
        with pytest.raises(CorruptionError, match=rf"{NAME}: the data block at byte \d+.*ascend"):
            flat(table_of_blocks(*blocks).pieces())
    assert all(one <= other for one, other in pairwise([a, b, b2, c]))
