"""Blocks on both kernels: the same answers, the same refusals, whatever bytes they are made of."""

from __future__ import annotations

import random
import struct
from bisect import bisect_left
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from itertools import chain
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsm.disk.keys import NEWEST, Entry
from lsm.errors import CorruptionError
from lsm.kernels.python import block as readable
from lsm.kernels.python.block_builder import BlockBuilder
from tests.effort import examples

HAS_NATIVE = find_spec("lsm.kernels.native.block") is not None
MOST = 2**64 - 1

needs_native = pytest.mark.skipif(not HAS_NATIVE, reason="the native kernel is not compiled here")


@pytest.fixture(params=["python", "native"] if HAS_NATIVE else ["python"])
def kernel(request: pytest.FixtureRequest) -> ModuleType:
    """Each kernel's module of blocks."""
    return import_module(f"lsm.kernels.{request.param}.block")


def levels(kernel: ModuleType) -> Iterator[str]:
    """Each level of vector instructions in turn, where the kernel has any."""
    if kernel is readable:
        yield "none"
        return
    simd = import_module("filters.kernels.native.simd")
    for level in simd.available():
        simd.use(level)
        yield level
    simd.use("auto")


def block_of(entries: list[Entry], interval: int) -> bytes:
    """A block of all these entries, as our builder writes it."""
    builder, at = BlockBuilder(interval), 0
    while at < len(entries):
        at = builder.fill(entries, at, 1 << 40)
    return builder.finish()


def in_order(pairs: dict[tuple[bytes, int], bytes]) -> list[Entry]:
    """Entries of these (key, version), in a block's order."""
    return sorted((key, -version, value) for (key, version), value in pairs.items())


KEYS = st.one_of(
    st.binary(max_size=4),
    st.text("ab\0", max_size=12).map(str.encode),
    st.builds(
        bytes.__add__, st.sampled_from([b"user:", bytes(9), b"x" * 300]), st.binary(max_size=12)
    ),
    st.integers(0, 300).map(lambda number: b"key%013d" % number),
)
VERSIONS = st.one_of(
    st.integers(0, 3),
    st.builds(lambda sequence, kind: sequence << 8 | kind, st.integers(0, 400), st.integers(0, 1)),
    st.sampled_from([MOST, MOST - 1, 2**63, 2**63 - 1, 2**63 + 1]),
    st.integers(0, MOST),
)
VALUES = st.one_of(
    st.binary(max_size=8), st.integers(0, 300).map(bytes), st.sampled_from([bytes(20_000)])
)
ENTRIES = st.one_of(
    st.dictionaries(st.tuples(KEYS, VERSIONS), VALUES, max_size=40),
    # Some keys, many versions.
    st.dictionaries(
        st.tuples(st.sampled_from([b"", b"k", b"k\0", bytes(20), bytes(21)]), VERSIONS),
        st.binary(max_size=2),
        max_size=90,
    ),
    # So many that searching narrows before it counts.
    st.integers(60, 400).map(
        lambda count: {
            (b"%0*d" % (count % 20, n), rank): b"" for n in range(count) for rank in (7,)
        }
    ),
).map(in_order)
INTERVALS = st.sampled_from([1, 2, 16, 1000])


def flat(pieces: Iterator[list[Entry]]) -> list[Entry]:
    return list(chain.from_iterable(pieces))


def flat_backwards(pieces: Iterator[list[Entry]]) -> list[Entry]:
    return list(chain.from_iterable(reversed(list(pieces))))


def sought_keys(entries: list[Entry]) -> list[bytes]:
    """Those that are there, and their neighbours."""
    there = {key for key, _, _ in entries}
    near = {key + b"\0" for key in there} | {key[:-1] for key in there}
    near |= {key[:9] for key in there} | {key[:-1] + b"\xff" for key in there}
    return sorted(there | near | {b"", b"\xff" * 30, bytes(30)})


def sought_ranks(entries: list[Entry], rng: random.Random) -> list[int]:
    ranks = {
        rank + by for _, rank, _ in rng.sample(entries, min(3, len(entries))) for by in (-1, 0, 1)
    }
    return sorted(ranks | {0, 1, NEWEST, NEWEST - 1})


@given(ENTRIES, INTERVALS, st.randoms(use_true_random=False))
@examples(300)
def check_finds(
    kernel: ModuleType, entries: list[Entry], interval: int, rng: random.Random
) -> None:
    block = kernel.Block(block_of(entries, interval))
    keys, ranks = sought_keys(entries), sought_ranks(entries, rng)
    sought = [(key, rank) for key in keys for rank in ranks]
    sought += [(key, rank + by) for key, rank, _ in entries for by in (-1, 0, 1)]
    expected = [
        entries[at] if at < len(entries) else None
        for at in (bisect_left(entries, each, key=lambda entry: entry[:2]) for each in sought)
    ]
    for level in levels(kernel):
        assert [block.find(*each) for each in sought] == expected, level


def test_finds_the_first_entry_from_any_position_on(kernel: ModuleType) -> None:
    check_finds(kernel)


@given(
    ENTRIES,
    INTERVALS,
    st.sampled_from([(1 << 18, 1 << 20), (1000, 1 << 20), (1 << 18, 99), (1, 1)]),
)
@examples(150)
def check_pieces(
    kernel: ModuleType, entries: list[Entry], interval: int, room: tuple[int, int]
) -> None:
    block = kernel.Block(block_of(entries, interval))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel, "PIECE_BYTES", room[0])
        patch.setattr(kernel, "PIECE_KEY_BYTES", room[1])
        assert flat(block.pieces()) == flat_backwards(block.pieces_backwards()) == entries
        assert all(block.pieces())
        for key in sought_keys(entries):
            behind = bisect_left(entries, (key, 1))
            before = bisect_left(entries, (key,))
            assert flat(block.pieces_from(key)) == entries[before:]
            assert flat_backwards(block.pieces_through(key)) == entries[:behind]


def test_pieces_are_the_block(kernel: ModuleType) -> None:
    check_pieces(kernel)


def damaged(contents: bytes, rng: random.Random) -> bytes:
    """The block with some bytes changed, left out or put in."""
    block = bytearray(contents)
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(block) + 1)
        kind = rng.randrange(4)
        if kind == 0:
            block[at : at + 1] = bytes(
                [rng.choice([0, 1, 8, 9, 127, 128, 255, rng.randrange(256)])]
            )
        elif kind == 1:
            del block[at : at + rng.randint(1, 5)]
        elif kind == 2:
            block[at:at] = rng.randbytes(rng.randint(1, 5))
        elif len(block) >= 8:
            at = 4 * rng.randint(1, min(len(block) // 4, 4))
            block[-at : len(block) - at + 4] = struct.pack(
                "<I", rng.choice([0, 1, 2, 3, 40, 2**32 - 1])
            )
    return bytes(block)


RAW = st.one_of(
    st.builds(
        lambda entries, interval, rng: damaged(block_of(entries, interval), rng),
        ENTRIES,
        INTERVALS,
        st.randoms(use_true_random=False),
    ),
    st.binary(max_size=60),
    # Entries of lengths that may fit, before one restart.
    st.lists(
        st.tuples(st.integers(0, 12), st.integers(0, 12), st.integers(0, 3), st.randoms()),
        max_size=30,
    ).map(
        lambda each: (
            b"".join(bytes(e[:3]) + e[3].randbytes(e[1] + e[2]) for e in each)
            + struct.pack("<2I", 0, 1)
        )
    ),
)


def outcome(kernel: ModuleType, contents: bytes) -> tuple[Any, str]:
    try:
        return kernel.Block(contents, place="x.ldb: the data block at byte 7"), ""
    except CorruptionError as error:
        return None, str(error)


@given(RAW)
@examples(2000)
def check_hostile(kernel: ModuleType, contents: bytes) -> None:
    block, refusal = outcome(kernel, contents)
    expected, its_refusal = outcome(readable, contents)
    assert refusal == its_refusal
    if block is None:
        return
    entries = flat(expected.pieces())
    assert flat(block.pieces()) == flat_backwards(block.pieces_backwards()) == entries
    for _ in levels(kernel):
        for key in sought_keys(entries):
            for rank in (NEWEST, -9, 0):
                found = block.find(key, rank)
                assert found is None or found in entries
            assert all(each in entries for each in flat(block.pieces_from(key)))
            assert all(each in entries for each in flat(block.pieces_through(key)))


def test_hostile_blocks_are_refused_or_read_alike(kernel: ModuleType) -> None:
    check_hostile(kernel)


def test_a_block_may_have_no_entries(kernel: ModuleType) -> None:
    for contents in (struct.pack("<2I", 0, 1), struct.pack("<3I", 0, 0, 2)):
        block = kernel.Block(contents)
        assert block.find(b"", NEWEST) is None
        assert list(block.pieces()) == list(block.pieces_backwards()) == []
        assert list(block.pieces_from(b"")) == list(block.pieces_through(b"k")) == []
