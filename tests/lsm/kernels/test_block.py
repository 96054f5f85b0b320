"""Blocks on both kernels: the same answers, the same refusals, whatever bytes they are made of."""

from __future__ import annotations

import os
import random
import struct
import sys
from bisect import bisect_left
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from itertools import chain, product
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lsm.disk.keys import NEWEST, PUT, VERSION_BYTES, Entry, pack, rank_of
from lsm.errors import CorruptionError
from lsm.kernels.python import block as readable
from lsm.kernels.python.block_builder import BlockBuilder
from tests.effort import examples
from tests.interpreter import fresh
from tests.lsm.independent_table import closed, varint
from tests.lsm.peak_memory import at_most

HAS_NATIVE = find_spec("lsm.kernels.native.block") is not None
KERNELS = ("python", "native") if HAS_NATIVE else ("python",)
MOST = 2**64 - 1
MIB = 1 << 20


@pytest.fixture(scope="module", params=KERNELS)
def kernel(request: pytest.FixtureRequest) -> ModuleType:
    """Each kernel's module of blocks."""
    return import_module(f"lsm.kernels.{request.param}.block")


@pytest.fixture(scope="module", params=KERNELS[1:])
def native(request: pytest.FixtureRequest) -> ModuleType:
    """The compiled kernel's, where there is one."""
    return import_module(f"lsm.kernels.{request.param}.block")


def each_level(kernel: ModuleType) -> Iterator[str]:
    """Each level of vector instructions while it is in use, if the kernel uses any."""
    if kernel is readable:
        yield "none"
        return
    simd = import_module("filters.kernels.native.simd")
    before = simd.in_use()
    try:
        for level in simd.available():
            simd.use(level)
            yield level
    finally:
        simd.use(before)


def block_of(entries: list[Entry], interval: int = 16) -> bytes:
    """A block of all these entries, as our builder writes it."""
    builder, at = BlockBuilder(interval), 0
    while at < len(entries):
        at = builder.fill(entries, at, 1 << 40)
    return builder.finish()


def in_order(values: dict[tuple[bytes, int], bytes]) -> list[Entry]:
    """The entries of these keys and versions, as a block has them."""
    return sorted((key, -version, value) for (key, version), value in values.items())


# -- What blocks are made of ---------------------------------------------------------------------

PREFIXES = st.sampled_from([b"user:", bytes(9), b"x" * 300])
KEYS = st.one_of(
    st.binary(max_size=4),
    st.text("ab\0\1", max_size=12).map(str.encode),
    st.builds(bytes.__add__, PREFIXES, st.text("a\0", max_size=12).map(str.encode)),
    st.integers(0, 300).map(lambda number: b"key%013d" % number),
)
VERSIONS = st.one_of(
    st.integers(0, 3),
    st.integers(0, 800).map(lambda number: number << 8 & ~0xFF | number & 1),
    st.sampled_from([MOST, MOST - 1, 2**63 - 1, 2**63, 2**63 + 1]),
    st.integers(0, MOST),
)
VALUES = st.one_of(st.binary(max_size=8), st.integers(0, 300).map(bytes), st.just(b"large" * 4000))
FEW_KEYS = st.sampled_from(
    [b"", b"k", b"k\0", b"k\1", b"k\1\1", bytes(20), bytes(21), b"\xff" * 8, b"\xff" * 12]
)


def numbered(count: int, length: int) -> list[Entry]:
    """So many entries that a search narrows before it counts."""
    return [(b"%0*d" % (length, number), rank_of(number, PUT), b"") for number in range(count)]


ENTRIES = st.one_of(
    st.dictionaries(st.tuples(KEYS, VERSIONS), VALUES, max_size=30).map(in_order),
    st.dictionaries(st.tuples(FEW_KEYS, VERSIONS), st.binary(max_size=2), max_size=60).map(
        in_order
    ),
    st.builds(numbered, st.sampled_from([63, 64, 65, 72, 130, 400]), st.sampled_from([3, 12])),
)
INTERVALS = st.sampled_from([1, 2, 16, 1000])


def sought_keys(entries: list[Entry]) -> list[bytes]:
    """Some keys that are there, and neighbours of them."""
    there = {key for key, _, _ in entries[:: len(entries) // 16 + 1]}
    near = {key + b"\0" for key in there} | {key[:-1] for key in there}
    near |= {key[:9] for key in there} | {key[:-1] + b"\xff" for key in there}
    return sorted(there | near | {b"", b"\xff" * 30, bytes(30), bytes(400)})


def flat(pieces: Iterator[list[Entry]]) -> list[Entry]:
    return list(chain.from_iterable(pieces))


def flat_backwards(pieces: Iterator[list[Entry]]) -> list[Entry]:
    return list(chain.from_iterable(reversed(list(pieces))))


# -- Answers -------------------------------------------------------------------------------------


@given(entries=ENTRIES, interval=INTERVALS)
@example(entries=numbered(1, 12), interval=1)
@examples(200)
def test_finds_the_first_entry_from_any_position_on(
    kernel: ModuleType, entries: list[Entry], interval: int
) -> None:
    block = kernel.Block(block_of(entries, interval))
    ranks = [1 << 70, 1, 0, -9, -(1 << 63), 1 - (1 << 63), NEWEST, NEWEST - 1, -(1 << 70)]
    sought = list(product(sought_keys(entries), ranks))
    sought += [(key, rank + by) for key, rank, _ in entries for by in (-1, 0, 1)]
    positions = [entry[:2] for entry in entries]
    at = [bisect_left(positions, each) for each in sought]
    expected = [(*entries, None)[index] for index in at]
    for level in each_level(kernel):
        assert [block.find(*each) for each in sought] == expected, level


@given(
    entries=ENTRIES,
    interval=INTERVALS,
    room=st.sampled_from([(1 << 18, 1 << 20), (1000, 1 << 20), (1 << 18, 99), (1, 1)]),
)
@examples(200)
def test_pieces_are_the_block(
    kernel: ModuleType, entries: list[Entry], interval: int, room: tuple[int, int]
) -> None:
    """Forwards and backwards, from any key and up to any key, however small they are."""
    block = kernel.Block(block_of(entries, interval))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel, "PIECE_BYTES", room[0])
        patch.setattr(kernel, "PIECE_KEY_BYTES", room[1])
        assert flat(block.pieces()) == flat_backwards(block.pieces_backwards()) == entries
        assert all(block.pieces())
        assert all(block.pieces_backwards())
        if room == (1, 1):
            assert max(map(len, block.pieces()), default=1) == 1
            assert max(map(len, block.pieces_backwards()), default=1) == 1
        for key in sought_keys(entries):
            first = bisect_left(entries, (key,))
            end = bisect_left(entries, (key, 1))
            assert flat(block.pieces_from(key)) == entries[first:]
            assert flat_backwards(block.pieces_through(key)) == entries[:end]


def test_a_block_may_have_no_entries(kernel: ModuleType) -> None:
    for contents in (closed(b"", [0]), closed(b"", [0, 0])):
        block = kernel.Block(contents)
        assert [block.find(b"", NEWEST) for _ in each_level(kernel)][-1] is None
        assert list(block.pieces()) == list(block.pieces_backwards()) == []
        assert list(block.pieces_from(b"")) == list(block.pieces_through(b"k")) == []


@pytest.mark.parametrize("interval", [16, 65535])
def test_what_keys_unfold_to_is_never_in_memory(kernel: ModuleType, interval: int) -> None:
    """1,500 keys of 40,000 bytes with one prefix, and the versions of one such key."""
    sought = b"%040000d" % 700
    contents = block_of(numbered(1500, 40_000), interval)
    block = kernel.Block(contents)
    for pieces, expected in (
        (block.pieces, 1500),
        (block.pieces_backwards, 1500),
        (lambda: block.pieces_from(sought), 800),
        (lambda: block.pieces_through(sought), 701),
    ):
        with at_most(4 * MIB + 2 * len(contents)):
            assert sum(map(len, pieces())) == expected
    with at_most(MIB + 2 * len(contents)):
        assert block.find(sought, NEWEST) == (sought, rank_of(700, PUT), b"")


def test_the_versions_of_a_key_share_it(kernel: ModuleType) -> None:
    """A merge holds all of them at once."""
    entries = [(bytes(50_000), rank_of(1000 - number, PUT), b"v") for number in range(1000)]
    block = kernel.Block(block_of(entries, 65535))
    for pieces in (block.pieces, block.pieces_backwards):
        with at_most(4 * MIB):
            found = flat(pieces())
        assert found == entries


# -- Hostile bytes -------------------------------------------------------------------------------


def damaged(contents: bytes, rng: random.Random) -> bytes:
    """The block with some bytes changed, left out or put in, or with a restart changed."""
    block = bytearray(contents)
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(block) + 1)
        byte = rng.choice([0, 1, 8, 9, 127, 128, 255, rng.randrange(256)])
        kind = rng.randrange(4)
        if kind == 0:
            block[at : at + 1] = bytes([byte])
        elif kind == 1:
            del block[at : at + rng.randint(1, 5)]
        elif kind == 2:
            block[at:at] = bytes([byte]) * rng.randint(1, 5)
        elif len(block) >= 8:
            at = len(block) - 4 * rng.randint(1, min(len(block) // 4, 4))
            number = rng.choice([0, 1, 2, 3, len(block) - 8, len(block), 2**32 - 1])
            block[at : at + 4] = struct.pack("<I", number)
    return bytes(block)


def made_up(lengths: list[tuple[int, int, int]], rng: random.Random) -> bytes:
    """Entries whose keys do not ascend, before one restart."""
    before, entries = 0, b""
    for shared, unshared, value_length in lengths:
        shared = min(shared, before)
        before = max(shared + unshared, VERSION_BYTES)
        unshared = before - shared
        own = bytes(rng.choice(b"\0\0\1\xff") for _ in range(unshared))
        entries += varint(shared) + varint(unshared) + varint(value_length) + own
        entries += bytes(value_length)
    return closed(entries, [0])


RANDOMS = st.randoms(use_true_random=False)
LENGTHS = st.tuples(st.integers(0, 40), st.integers(0, 20), st.sampled_from([0, 1, 130]))
ANY_BYTES = st.one_of(
    st.builds(damaged, st.builds(block_of, ENTRIES, INTERVALS), RANDOMS),
    st.builds(made_up, st.lists(LENGTHS, max_size=100), RANDOMS),
    st.builds(bytes.__add__, st.binary(max_size=40), st.sampled_from([b"", closed(b"", [0])])),
)


def outcome(kernel: ModuleType, contents: bytes) -> Any:
    """The block that these bytes are, or why they are none."""
    try:
        return kernel.Block(contents, None, "000005.ldb: the data block at byte 7")
    except CorruptionError as error:
        return str(error)


@given(contents=ANY_BYTES)
@examples(1200)
def test_any_bytes_are_refused_or_read_alike(kernel: ModuleType, contents: bytes) -> None:
    block, expected = outcome(kernel, contents), outcome(readable, contents)
    if isinstance(expected, str):
        assert block == expected
        return
    entries = flat(expected.pieces())
    assert flat(block.pieces()) == flat_backwards(block.pieces_backwards()) == entries
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel, "PIECE_BYTES", 1)
        assert list(block.pieces()) == [[entry] for entry in entries]
    keys = sought_keys(entries)[:40]
    for _ in each_level(kernel):
        for key in keys:
            assert {block.find(key, NEWEST), block.find(key, -9)} <= {None, *entries}
    for key in keys:
        assert {*flat(block.pieces_from(key)), *flat(block.pieces_through(key))} <= {*entries}


ENTRY = varint(0) + varint(9) + varint(0) + pack(b"k", -257)


REFUSED = {
    "nothing": (b"", "has 0 bytes and no room for its 0 restarts"),
    "no restart": (bytes(4), "has 4 bytes and no room for its 0 restarts"),
    "billions of restarts": (b"\xff" * 8, "8 bytes and no room for its 4294967295 restarts"),
    "more restarts than entries": (closed(ENTRY, [0] * 4), "no room for its 4 restarts"),
    "a late first restart": (closed(ENTRY, [1]), "restarts lie outside of its 12 bytes"),
    "a restart outside": (closed(ENTRY, [0, 13]), "restarts lie outside of its 12 bytes"),
    "a restart at the end": (closed(ENTRY, [0, 12]), "entry at byte 12 is malformed"),
    "a restart twice": (closed(ENTRY, [0, 0]), "entry at byte 0 is malformed"),
    "a restart within": (closed(ENTRY + ENTRY, [0, 5]), "entry at byte 12 is malformed"),
    "a cut key": (closed(ENTRY[:-1], [0]), "entry at byte 0 is malformed"),
    "shares too much": (closed(ENTRY + b"\x0a\0\0", [0]), "entry at byte 12 is malformed"),
    "a short key": (closed(ENTRY + b"\3\4\0kkkk", [0]), "entry at byte 12 is malformed"),
    "six bytes of length": (closed(b"\x80" * 5 + ENTRY, [0]), "entry at byte 0 is malformed"),
    "a huge value": (closed(ENTRY + b"\x09\0" + varint(2**32 - 1), [0]), "12 is malformed"),
    "cut lengths": (closed(ENTRY + b"\0\0", [0]), "entry at byte 12 is malformed"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_refusal_names_place_and_remedy(kernel: ModuleType, what: str) -> None:
    contents, why = REFUSED[what]
    refusal = outcome(kernel, contents)
    assert refusal == outcome(readable, contents)
    assert refusal.startswith("000005.ldb: the data block at byte 7: ")
    assert why in refusal
    assert "lsm.repair_db()" in refusal


def test_lengths_may_take_five_bytes(kernel: ModuleType) -> None:
    block = kernel.Block(closed(b"\x80" * 4 + ENTRY, [0]))
    assert block.find(b"", NEWEST) == (b"k", -257, b"")
    assert flat(block.pieces()) == [(b"k", -257, b"")]


def test_compiled_blocks_take_bytes_only(native: ModuleType) -> None:
    contents = block_of(numbered(3, 5))
    with pytest.raises(ValueError, match=r"a block: .*readable kernel"):
        native.Block(contents, bytes)
    with pytest.raises(TypeError, match="bytes"):
        native.Block(bytearray(contents))
    for arguments in ((bytearray(b"k"), 0), ("k", 0), (None, 0), (b"k", None), (b"k", 0.5)):
        with pytest.raises(TypeError):
            native.Block(contents).find(*arguments)


# -- In a cache ----------------------------------------------------------------------------------


class _Table:
    def __init__(self, blocks: list[Any]):
        self.blocks = blocks

    def cached(self, number: int) -> Any:
        return self.blocks[number]

    def place(self, number: int, block: Any) -> None:
        self.blocks[number] = block


def test_a_block_that_is_evicted_leaves_only_its_own_place(kernel: ModuleType) -> None:
    block, other = (kernel.Block(block_of(numbered(3, 5))) for _ in range(2))
    assert (block.owner, block.used, block.held) == (None, False, None)
    block.evict()
    table = _Table([other, block])
    block.owner, block.number, block.used, block.held = lambda: table, 0, True, True
    assert (block.used, block.held) == (True, True)
    block.evict()
    assert table.blocks == [other, block]
    block.number = 1
    block.evict()
    assert table.blocks == [other, None]


@given(entries=ENTRIES)
@examples(50)
def test_a_block_is_charged_for_what_it_holds(native: ModuleType, entries: list[Entry]) -> None:
    """Its bytes; of each entry a word, its place, and its version if some versions share bytes."""
    contents = block_of(entries)
    block = native.Block(contents, None, "some place")
    assert block.charge == sys.getsizeof(block)
    own = block.charge - native.Block.__basicsize__
    offset = 2 if len(contents) < 1 << 16 else 4
    sizes = {
        (8 * 8 + each * len(entries) + len(contents) + 63) // 64 * 64
        for each in (8 + offset, 16 + offset)
    }
    assert own in sizes


HOLD = """
import os, sys
from pathlib import Path
from importlib import import_module
from lsm.kernels.python.block_builder import BlockBuilder

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")

Block = import_module(sys.argv[1]).Block
builder, count = BlockBuilder(16), 1000
builder.fill([(b"%012d" % number, -1, b"") for number in range(2000)], 0, 1 << 40)
contents = builder.finish()
held = [Block(contents)]
before, said = resident(), count * sys.getsizeof(held[0])
held += [Block(contents) for _ in range(count)]
print((resident() - before) / said)
for _ in range(2 * count):
    held[0] = Block(contents)
print((resident() - before) / said)
"""


@pytest.mark.skipif(
    not Path("/proc/self/statm").exists() or "ASAN_OPTIONS" in os.environ,
    reason="there is no /proc here, or freed memory is kept to be watched",
)
@pytest.mark.parametrize("name", [f"lsm.kernels.{each}.block" for each in KERNELS[1:]])
def test_blocks_hold_what_they_say_and_give_it_back(name: str) -> None:
    child = fresh(HOLD, name)
    first, last = map(float, child.stdout.split() or pytest.fail(child.stderr))
    assert 0.9 < first < 1.2
    assert 0.9 < last < 1.2
