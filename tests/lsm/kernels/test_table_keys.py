"""The keys of a table for a filter, on both kernels: those that its writer has given one."""

from __future__ import annotations

import random
from types import ModuleType
from typing import Any

import pytest

from lsm import kernels
from lsm.comparator import BYTEWISE
from lsm.disk.compression import KINDS
from lsm.disk.footer import TRAILER_BYTES
from lsm.disk.keys import PUT, Entry, pack, rank_of
from lsm.disk.table import TableReader
from lsm.errors import CorruptionError
from lsm.storage import Mapped
from tests.effort import by_effort
from tests.lsm.forging import Parts
from tests.lsm.independent_table import closed, contents_of, parse, varint
from tests.lsm.kernels.test_survivors import (
    NAME,
    NAMES,
    PYTHON,
    Plan,
    Slices,
    forged,
    needs_both,
    some_runs,
    table_of,
)

Ends = list[tuple[int, int]]


def open_in(kernel: ModuleType, data: Any) -> Any:
    return kernel.Table(TableReader(NAME, Mapped(data)), None)


def some_entries(rng: random.Random) -> list[Entry]:
    return sorted(entry for run in some_runs(rng) for entry in run) or [(b"", -257, b"")]


def some_table(rng: random.Random, entries: list[Entry]) -> bytes:
    plan = Plan(
        runs=[],
        block_size=rng.choice((64, 300, 4096)),
        interval=rng.choice((1, 2, 16)),
        compression=rng.choice(list(KINDS)),
    )
    return table_of(entries, plan)


def all_of(keys: Any, most: int) -> tuple[list[bytes], Ends]:
    """All keys, some at a time, and where blocks end, counted from the first one."""
    found: list[bytes] = []
    ends: Ends = []
    while True:
        some, those = keys.take(most)
        if not those:
            return found, ends
        assert those[-1][0] == len(some)
        for count, offset in those:
            if offset > (ends[-1][1] if ends else 0):  # else this block goes on
                ends.append((len(found) + count, offset))
        found += some


def ends_of(data: bytes) -> Ends:
    """Where the blocks end, as a minimal reader finds it."""
    ends, count = [], 0
    for block in parse(data).blocks:
        count += len(block.pairs)
        ends.append((count, block.end))
    return ends


@pytest.mark.parametrize("name", NAMES)
def test_all_keys_are_given_however_few_at_a_time(name: str, rng: random.Random) -> None:
    kernel = kernels.load(name)
    for _ in range(by_effort(40, 300, 10_000)):
        entries = some_entries(rng)
        data = some_table(rng, entries)
        table = open_in(kernel, Slices(data) if rng.random() < 0.1 else data)
        keys = kernel.TableKeys(table, BYTEWISE, True)
        found, ends = all_of(keys, rng.choice((0, 1, 50, 1000, 1 << 20)))
        assert found == [key for key, _, _ in entries]
        assert ends == ends_of(data)
        assert keys.num_entries == len(entries)
        assert keys.key_bytes == sum(map(len, found))
        assert (keys.smallest, keys.largest) == (pack(*entries[0][:2]), pack(*entries[-1][:2]))
        assert keys.take(1) == ([], [])


@pytest.mark.parametrize("name", NAMES)
def test_who_wants_no_keys_gets_the_rest(name: str, rng: random.Random) -> None:
    kernel = kernels.load(name)
    for _ in range(by_effort(10, 60, 1000)):
        entries = some_entries(rng)
        data = some_table(rng, entries)
        keys = kernel.TableKeys(open_in(kernel, data), BYTEWISE, False)
        places = []
        while ends := keys.take(500)[1]:
            places.append(ends[-1][1])
        assert places[-1] == parse(data).blocks[-1].end
        assert (keys.num_entries, keys.largest) == (len(entries), pack(*entries[-1][:2]))


@pytest.mark.parametrize("name", NAMES)
def test_a_piece_is_about_as_large_as_was_asked_for(name: str, rng: random.Random) -> None:
    """By the blocks that are read, and where a block stands for many keys by these."""
    kernel, plan = kernels.load(name), Plan(runs=[], block_size=4096)
    usual = table_of([(b"%07d" % at, -257, rng.randbytes(100)) for at in range(9000)], plan)
    pieces = pieces_of(kernel, usual, 100_000)
    assert all(850 < len(keys) < 1000 for keys, _ in pieces[:-1])
    start = 0
    for _, ends in pieces[:-1]:
        assert 100_000 <= ends[-1][1] - start < 105_000
        start = ends[-1][1]
    plan = Plan(runs=[], block_size=1 << 20, interval=1 << 16)
    long = table_of([(bytes(9000) + b"%07d" % at, -257, b"") for at in range(900)], plan)
    assert len(parse(long).blocks) == 1
    pieces = pieces_of(kernel, long, 100_000)
    assert len(pieces) >= 4
    assert all(end == (len(keys), 0) for keys, [end] in pieces[:-1] if end[1] == 0)
    assert sum(len(keys) for keys, _ in pieces) == 900


def pieces_of(kernel: ModuleType, data: bytes, most: int) -> list[tuple[Any, Ends]]:
    keys = kernel.TableKeys(open_in(kernel, data), BYTEWISE, True)
    return list(iter(lambda: keys.take(most), ([], [])))


@pytest.mark.parametrize("name", NAMES)
def test_a_block_without_entries_ends_too(name: str) -> None:
    kernel = kernels.load(name)
    parts = Parts.of(table_of([(b"a", -257, b""), (b"b", -257, b"")], Plan(runs=[], block_size=1)))
    parts.blocks.insert(1, (pack(b"a", -257), closed(b"", [0]), 0))
    data = parts.assembled()
    found, ends = all_of(kernel.TableKeys(open_in(kernel, data), BYTEWISE, True), 1)
    assert found == [b"a", b"b"]
    assert ends == ends_of(data)


@needs_both
def test_forged_tables_are_refused_in_the_same_words_or_read_the_same(rng: random.Random) -> None:
    outcomes = {"refused": 0, "read": 0}
    for _ in range(by_effort(200, 1500, 100_000)):
        data = forged(rng, some_table(rng, some_entries(rng)))
        found = attempt(kernels.load("native"), data)
        assert found == attempt(PYTHON, data)
        outcomes["refused" if isinstance(found, str) else "read"] += 1
    assert min(outcomes.values()) > 0


def attempt(kernel: ModuleType, data: bytes) -> Any:
    try:
        return all_of(kernel.TableKeys(open_in(kernel, data), BYTEWISE, True), 1 << 20)
    except CorruptionError as error:
        return str(error)


@pytest.mark.parametrize("name", NAMES)
def test_disorder_is_told_whenever_it_is_asked(name: str) -> None:
    kernel = kernels.load(name)
    parts = Parts.of(table_of([(b"%d" % at, -257, b"") for at in range(3)], Plan(runs=[])))
    contents = contents_of([(pack(key, rank_of(1, PUT)), b"") for key in (b"0", b"2", b"1")])
    parts.blocks[0] = parts.blocks[0][0], contents, 0
    keys = kernel.TableKeys(open_in(kernel, parts.assembled()), BYTEWISE, True)
    with pytest.raises(CorruptionError, match=rf"{NAME}: the data block at byte 0: .*ascend"):
        keys.take(1 << 20)


@pytest.mark.parametrize("name", NAMES)
def test_where_the_data_end_is_told_if_they_lie_without_a_gap(
    name: str, rng: random.Random
) -> None:
    kernel = kernels.load(name)
    for _ in range(by_effort(10, 50, 1000)):
        data = some_table(rng, some_entries(rng))
        assert open_in(kernel, data).data_end() == parse(data).blocks[-1].end
    blocks = [(0, 10), (10 + TRAILER_BYTES, 7)]
    assert open_in(kernel, indexed(blocks)).data_end() == 17 + 2 * TRAILER_BYTES
    for odd in (
        [],
        [(1, 10)],
        [(0, 10), (10, 7)],
        [(0, 10), (16, 7)],
        [(15, 10), (0, 10)],
        [(0, 10), (0, 10)],
        [(0, 2**64 - 1)],
        [(0, 2**64 - 5), (0, 3)],
        [(0, 2**64 - 6), (2**64 - 1, 2**64 - 1)],
    ):
        assert open_in(kernel, indexed(odd)).data_end() is None, odd
    assert open_in(kernel, indexed([(0, 2**64 - 6)])).data_end() == 2**64 - 1


def indexed(handles: list[tuple[int, int]]) -> bytes:
    """A table whose index says that its blocks lie there."""
    pairs = [
        (pack(b"%d" % at, -257), varint(offset) + varint(size))
        for at, (offset, size) in enumerate(handles)
    ]
    parts = Parts.of(table_of([(b"a", -257, b"v" * 300)], Plan(runs=[])))
    parts.index = lambda _: contents_of(pairs)
    return parts.assembled()
