"""Blocks and bodies of tables on both kernels: the same bytes, and the same keys for filters."""

from __future__ import annotations

import random
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsm import kernels
from lsm.comparator import BYTEWISE
from lsm.disk.compression import KINDS
from lsm.disk.footer import Handle
from lsm.disk.keys import PUT, Entry, rank_of
from lsm.disk.plain_block import read_block
from lsm.disk.table import TableReader
from lsm.errors import CorruptionError
from lsm.storage import Mapped
from tests.effort import by_effort, examples
from tests.lsm.forging import Parts, mutated
from tests.lsm.independent_table import contents_of, varint
from tests.lsm.kernels.test_survivors import Plan, some_runs, table_of

NAMES = kernels.available()
PYTHON = kernels.load("python")

pytestmark = pytest.mark.skipif(len(NAMES) < 2, reason="there is one kernel here")

# Neighbours, keys within each other, keys that cannot be raised, and long ones.
KEYS = st.one_of(
    st.binary(max_size=4),
    st.lists(st.sampled_from(b"\x00\x01ab\xfe\xff"), max_size=6).map(bytes),
    st.tuples(st.sampled_from([b"shared", b"\xff" * 9, bytes(200)]), st.binary(max_size=3)).map(
        b"".join
    ),
)
VALUES = st.one_of(
    st.binary(max_size=9),
    st.sampled_from([0, 127, 128, 129, 3000, 70_000]).map(bytes),
    st.integers(0, 400).map(lambda size: random.Random(size).randbytes(size)),
)
VERSIONS = st.one_of(st.integers(0, 2000), st.integers(0, 2**64 - 1))
ENTRIES = st.dictionaries(st.tuples(KEYS, VERSIONS), VALUES, max_size=40).map(
    lambda found: sorted((key, -version, value) for (key, version), value in found.items())
)


def native() -> ModuleType:
    return kernels.load("native")


@examples(150)
@given(entries=ENTRIES, interval=st.integers(1, 20), target=st.integers(1, 600))
def test_both_builders_build_the_same_blocks(
    entries: list[Entry], interval: int, target: int
) -> None:
    one, other = PYTHON.BlockBuilder(interval), native().BlockBuilder(interval)
    at = 0
    while at < len(entries):
        end = one.fill(entries, at, target)
        assert other.fill(entries, at, target) == end
        assert (one.size, one.last_key, bool(one)) == (other.size, other.last_key, bool(other))
        if one.size >= target:
            assert one.finish() == other.finish()
        at = end
    assert one.finish() == other.finish()
    assert (one.size, one.last_key, bool(one)) == (other.size, other.last_key, bool(other))


def states(body: Any) -> tuple[object, ...]:
    """What a body says of itself, while it is being written."""
    return body.offset, body.size, body.num_entries, body.smallest, body.largest


def taken(body: Any) -> tuple[bytes, list[bytes], list[tuple[int, int]]]:
    blocks = body.take()
    keys, ends = body.take_keys()
    return bytes(blocks), list(keys), ends


@examples(150)
@given(
    entries=ENTRIES,
    block_size=st.sampled_from([1, 64, 300, 4096]),
    interval=st.integers(1, 20),
    compression=st.sampled_from(list(KINDS)),
    with_keys=st.booleans(),
    seed=st.integers(0, 2**32),
)
def test_both_bodies_are_the_same(
    entries: list[Entry],
    block_size: int,
    interval: int,
    compression: str,
    with_keys: bool,
    seed: int,
) -> None:
    rng = random.Random(seed)
    given = block_size, interval, KINDS[compression], BYTEWISE, with_keys
    one, other = PYTHON.TableBody(*given), native().TableBody(*given)
    at, keys = 0, []
    while at < len(entries):
        end = rng.choice((None, at + 1, min(at + 7, len(entries))))
        at, before = one.add(entries, at, end), at
        assert other.add(entries, before, end) == at
        assert states(one) == states(other)
        if rng.random() < 0.4:
            some = taken(one)
            assert taken(other) == some
            keys += some[1]
    one.close_block()
    other.close_block()
    assert states(one) == states(other)
    some = taken(one)
    assert taken(other) == some
    assert keys + some[1] == ([key for key, _, _ in entries] if with_keys else [])
    assert one.index() == other.index()


def test_the_index_of_both_leads_to_the_blocks(rng: random.Random) -> None:
    entries = sorted((b"%d" % rng.randrange(9**9), rank_of(5, PUT), bytes(90)) for _ in range(99))
    for kernel in (PYTHON, native()):
        body = kernel.TableBody(500, 16, 0)
        at = 0
        while at < len(entries):
            at = body.add(entries, at)
        body.close_block()
        blocks = body.take()
        _, ends = body.take_keys()
        places = [Handle.decode(each, "a handle") for each in read_block(body.index()).values()]
        assert [place.offset + place.size + 5 for place in places] == [end for _, end in ends]
        assert ends[-1] == (len(entries), len(blocks))


@pytest.mark.parametrize(
    ("entry", "error"),
    [
        ((b"k", 1, b"v"), ValueError),
        ((None, 0, b"v"), TypeError),
        ((b"k", 0, None), TypeError),
        ((b"k", 0), ValueError),
        (("k", 0, b"v"), TypeError),
    ],
)
def test_what_is_no_entry_is_refused(entry: Any, error: type[Exception]) -> None:
    for add in (
        lambda: native().TableBody(100, 16, 0).add([entry], 0),
        lambda: native().BlockBuilder(16).fill([entry], 0, 100),
    ):
        with pytest.raises(error):
            add()


# -- Opening tables ------------------------------------------------------------------------------


def index_of(kernel: ModuleType, data: bytes) -> object:
    """What a kernel finds in a table's index, or in words why it does not."""
    try:
        table = kernel.Table(TableReader("table", Mapped(data)), None)
    except CorruptionError as error:
        return str(error)
    return list(table.bounds()), table.handles


def lie(rng: random.Random) -> Callable[[list[tuple[bytes, bytes]]], bytes]:
    """An index that says something else, is malformed, or is written in another way."""
    what = rng.random()
    if what < 0.2:
        return lambda pairs: contents_of(pairs, rng.choice((1, 16)))
    if what < 0.6:
        return lambda pairs: mutated(rng, contents_of(pairs, 1))
    odd = [0, 127, 128, 2**32, 2**63, 2**64 - 1, 2**64, 2**70]

    def elsewhere(pairs: list[tuple[bytes, bytes]]) -> bytes:
        at = rng.randrange(len(pairs))
        place = varint(rng.choice(odd)) + varint(rng.choice(odd)) + rng.choice((b"", b"more"))
        pairs[at] = pairs[at][0], place
        return contents_of(pairs, 1)

    return elsewhere


def test_both_kernels_find_the_same_in_an_index(rng: random.Random) -> None:
    outcomes = {"refused": 0, "read": 0}
    for _ in range(by_effort(150, 1500, 100_000)):
        entries = [entry for run in some_runs(rng) for entry in run]
        if not entries:
            continue
        plan = Plan(runs=[], block_size=rng.choice((64, 300)), compression=rng.choice(list(KINDS)))
        parts = Parts.of(table_of(sorted(entries), plan))
        parts.index = lie(rng)
        data = parts.assembled()
        found = index_of(native(), data)
        assert found == index_of(PYTHON, data)
        outcomes["refused" if isinstance(found, str) else "read"] += 1
    assert min(outcomes.values()) > 0
