"""Compactions on both kernels: the same tables to the byte, and those that the rules ask for."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from types import ModuleType
from typing import Any

import attrs
import pytest

import policies
from filters import hashing
from lsm import kernels
from lsm.comparator import BYTEWISE
from lsm.disk.compression import KINDS
from lsm.disk.filter_blocks import FilterPlan
from lsm.disk.keys import PUT, Entry, pack, rank_of
from lsm.disk.table import TableReader
from lsm.disk.table_builder import TableBuilder, TableFormat
from lsm.errors import CorruptionError
from lsm.kernels.python.batch import encode_batch
from lsm.storage import Mapped
from policies import FilterPolicy
from tests.effort import by_effort
from tests.lsm.forging import Parts, mutated
from tests.lsm.independent_table import DEFLATE, RAW, SNAPPY, ZSTD, parse
from tests.lsm.simulated import SimulatedStorage

NAMES = kernels.available()
PYTHON = kernels.load("python")
NAME = "db/000005.ldb"

needs_both = pytest.mark.skipif(len(NAMES) < 2, reason="there is one kernel here")


@pytest.fixture(autouse=True)
def same_salts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Filters draw a salt each, and are to have the same bytes on both kernels."""
    monkeypatch.setattr(hashing, "random64", lambda: 7)


class Slices:
    """A file's bytes as some storage may have them: in slices, and not as a buffer."""

    def __init__(self, data: bytes):
        self._data = data

    def __len__(self) -> int:
        return len(self._data)

    def __getitem__(self, part: slice) -> bytes:
        return self._data[part]


@attrs.define(kw_only=True)
class Plan:
    """A compaction, of which a run is the entries of a memtable, or bytes of tables."""

    runs: list[list[bytes] | list[Entry]]
    horizon: int | None = None
    deeper: Any = None
    max_file_size: int | None = None
    grandparents: Sequence[tuple[bytes, int]] = ()
    overlap_limit: int = 0
    block_size: int = 300
    interval: int = 16
    compression: str = "none"
    policy: FilterPolicy = attrs.field(factory=lambda: policies.create("none"))
    layout: str = "table"
    in_slices: bool = False


def survivors_of(kernel: ModuleType, plan: Plan, pause: Callable[[], object] = bool) -> Any:
    """The survivors of a plan."""
    runs: list[Any] = []
    for run in plan.runs:
        if run and isinstance(run[0], bytes):
            runs.append(opened(kernel, run, plan.in_slices))  # type: ignore[arg-type]
        else:
            runs.append(memtable_of(kernel, run))  # type: ignore[arg-type]
    return kernel.Survivors(
        runs,
        BYTEWISE,
        horizon=plan.horizon,
        deeper=plan.deeper,
        max_file_size=plan.max_file_size,
        grandparents=plan.grandparents,
        overlap_limit=plan.overlap_limit,
        pause=pause,
    )


def opened(kernel: ModuleType, tables: list[bytes], in_slices: bool) -> Iterator[Any]:
    for data in tables:
        mapped: Any = Mapped(Slices(data) if in_slices else data)  # type: ignore[arg-type]
        yield kernel.Table(TableReader(NAME, mapped), None)


def memtable_of(kernel: ModuleType, entries: list[Entry]) -> Any:
    """A memtable with these entries, in some order."""
    memtable = kernel.Memtable(BYTEWISE)
    for key, rank, value in sorted(entries, key=lambda entry: -entry[1]):
        memtable.apply(encode_batch(-rank >> 8, [(key, value if rank & 1 else None)]))
    return memtable


def format_of(kernel: ModuleType, plan: Plan) -> TableFormat:
    return TableFormat(
        comparator=BYTEWISE,
        block_size=plan.block_size,
        block_restart_interval=plan.interval,
        compression=KINDS[plan.compression],
        table_body=kernel.TableBody,
    )


def builder_of(kernel: ModuleType, plan: Plan, storage: SimulatedStorage) -> TableBuilder:
    filter_plan = FilterPlan(
        level=2,
        policy=plan.policy,
        layout=plan.layout,
        reason="compaction",
        none_below=lambda first, last: False,
    )
    return TableBuilder(storage.create("table"), format_of(kernel, plan), filter_plan)


def run(kernel: ModuleType, plan: Plan, at_once: int = 1 << 22) -> list[bytes]:
    """The tables that a kernel makes of a plan, some bytes of them at a time."""
    tables, survivors = [], survivors_of(kernel, plan)
    while survivors.has_more():
        storage = SimulatedStorage()
        builder = builder_of(kernel, plan, storage)
        while not builder.fill(lambda body, _: survivors.write(body, at_once)):
            pass
        builder.finish()
        tables.append(storage.read("table"))
    return tables


def attempt(kernel: ModuleType, plan: Plan) -> list[bytes] | str:
    """The tables, or in words why there are none."""
    try:
        return run(kernel, plan)
    except CorruptionError as error:
        return str(error)


def table_of(entries: list[Entry], plan: Plan) -> bytes:
    """A table that the readable kernel has written."""
    storage = SimulatedStorage()
    builder = builder_of(PYTHON, plan, storage)
    builder.add(entries)
    builder.finish()
    return storage.read("table")


# -- What compactions are drawn from -------------------------------------------------------------


def some_keys(rng: random.Random, count: int) -> list[bytes]:
    """Keys that share much, little, or are in each other; some are empty or very long."""
    prefix = rng.choice((b"", b"user:", b"\xff\xff", bytes(rng.choice((3, 130, 9000)))))
    width = rng.choice((1, 2, 4, 20))
    alphabet = rng.choice((b"ab", b"\x00\x01\xfe\xff", bytes(range(256))))
    keys = {prefix + bytes(rng.choices(alphabet, k=rng.randrange(width + 1))) for _ in range(count)}
    return sorted(keys)


def some_value(rng: random.Random) -> bytes:
    size = rng.choice((0, 1, 20, 100, 127, 128, 300, 20_000 if rng.random() < 0.02 else 5))
    return rng.choice((b"ab" * (size // 2), rng.randbytes(size)))


def some_runs(rng: random.Random) -> list[list[Entry]]:
    """Runs of one history: each version is in one of them."""
    keys = some_keys(rng, rng.choice((1, 5, 60, 400)))
    runs: list[list[Entry]] = [[] for _ in range(rng.choice((1, 1, 2, 4, 9)))]
    deletes = rng.choice((0, 0.2, 0.8))
    for sequence in range(1, rng.choice((2, 20, 600))):
        key = rng.choice(keys)
        if rng.random() < deletes:
            runs[rng.randrange(len(runs))].append((key, rank_of(sequence, 0), b""))
        else:
            runs[rng.randrange(len(runs))].append((key, rank_of(sequence, PUT), some_value(rng)))
    return [sorted(each) for each in runs]


def in_tables(rng: random.Random, entries: list[Entry], plan: Plan) -> list[bytes]:
    """A run as tables, the versions of a key perhaps in two of them."""
    written = attrs.evolve(
        plan,
        compression=rng.choice(list(KINDS)),
        block_size=rng.choice((64, 300, 4096)),
        interval=rng.choice((1, 2, 16)),
        policy=policies.create("none"),
        layout="table",
    )
    count = rng.choice((1, 1, 3))
    cuts = sorted(rng.randrange(len(entries)) for _ in range(count - 1))
    pieces = [entries[a:b] for a, b in pairwise([0, *cuts, len(entries)])]
    return [table_of(piece, written) for piece in pieces if piece]


def some_plan(rng: random.Random) -> Plan:
    filters = [name for name in sorted(policies.available()) if "." not in name]
    name = rng.choice(["none", *filters])
    plan = Plan(
        runs=[],
        block_size=rng.choice((64, 300, 4096)),
        interval=rng.choice((1, 2, 16)),
        compression=rng.choice(list(KINDS)),
        policy=policies.create(name),
        layout="block" if name == "leveldb" and rng.random() < 0.7 else "table",
        max_file_size=rng.choice((None, 0, 700, 3000)),
        horizon=rng.choice((None, 0, rank_of(rng.randrange(600), PUT), rank_of(10**6))),
        in_slices=rng.random() < 0.1,
    )
    runs = some_runs(rng)
    keys = sorted({key for entries in runs for key, _, _ in entries})
    for entries in runs:
        if entries and rng.random() < 0.7:
            plan.runs.append(in_tables(rng, entries, plan))
        else:
            plan.runs.append(entries)
    if keys and rng.random() < 0.5:
        highs = sorted(set(rng.choices(keys, k=rng.randrange(9))))
        plan.grandparents = [(high, rng.randrange(500)) for high in highs]
        plan.overlap_limit = rng.randrange(800)
    if keys and rng.random() < 0.7:
        plan.deeper = [some_ranges(rng, keys) for _ in range(rng.randrange(3))]
    return plan


def some_ranges(rng: random.Random, keys: list[bytes]) -> tuple[list[bytes], list[bytes]]:
    """The bounds of a level's tables."""
    bounds = sorted(rng.choices(keys, k=2 * rng.randrange(1, 5)))
    return bounds[::2], bounds[1::2]


# -- What is asked for, the naive way ------------------------------------------------------------


def entries_of(plan: Plan) -> list[Entry]:
    """All entries of a plan in order."""
    entries: list[Entry] = []
    for each in plan.runs:
        if each and isinstance(each[0], bytes):
            for table in opened(PYTHON, each, False):  # type: ignore[arg-type]
                entries += [entry for piece in table.pieces() for entry in piece]
        else:
            entries += each  # type: ignore[arg-type]
    return sorted(entries)


def is_visible(plan: Plan, entries: list[Entry], at: int) -> bool:
    """Whether a snapshot sees an entry, or has to see it as a tombstone over something deeper."""
    key, rank, _ = entries[at]
    if plan.horizon is None or rank < plan.horizon:
        return True
    newer = [
        other for other, at_rank, _ in entries[:at] if other == key and at_rank >= plan.horizon
    ]
    if newer:
        return False
    if rank & 1 or plan.deeper is None:
        return True
    return any(
        low <= key <= high
        for lows, highs in plan.deeper
        for low, high in zip(lows, highs, strict=True)
    )


def expected(plan: Plan) -> list[bytes]:
    """The tables that the rules ask for, an entry at a time."""
    everything = entries_of(plan)
    kept = [entry for at, entry in enumerate(everything) if is_visible(plan, everything, at)]
    tables: list[list[Entry]] = []
    body: Any = None
    overlap, last = 0, None
    for entry in kept:
        key = entry[0]
        if body is not None and last is not None and key != last:
            overlap += sum(size for high, size in plan.grandparents if last <= high < key)
            is_full = plan.max_file_size is not None and body.size >= plan.max_file_size
            if is_full or overlap > plan.overlap_limit:
                body = None
        if body is None:
            overlap = 0
            tables.append([])
            body = PYTHON.TableBody(plan.block_size, plan.interval, KINDS[plan.compression])
        body.add([entry], 0)
        tables[-1].append(entry)
        last = key
    return [table_of(table, plan) for table in tables]


# -- Tests ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_what_survives_is_what_the_rules_ask_for(name: str, rng: random.Random) -> None:
    kernel = kernels.load(name)
    for _ in range(by_effort(25, 120, 5000)):
        plan = some_plan(rng)
        assert run(kernel, plan) == expected(plan)


@needs_both
def test_both_kernels_write_the_same_bytes(rng: random.Random) -> None:
    for _ in range(by_effort(60, 400, 20_000)):
        plan = some_plan(rng)
        assert run(kernels.load("native"), plan) == run(PYTHON, plan)


@pytest.mark.parametrize("name", NAMES)
def test_tables_are_the_same_however_much_is_written_at_once(name: str, rng: random.Random) -> None:
    kernel = kernels.load(name)
    for _ in range(by_effort(20, 60, 1000)):
        plan = some_plan(rng)
        assert run(kernel, plan, rng.choice((1, 100, 1000))) == run(kernel, plan)


@needs_both
def test_forged_tables_are_refused_in_the_same_words_or_read_the_same(rng: random.Random) -> None:
    outcomes = {"refused": 0, "read": 0}
    for _ in range(by_effort(150, 1500, 100_000)):
        plan = some_plan(rng)
        tables = [each for each in plan.runs if each and isinstance(each[0], bytes)]
        if not tables:
            continue
        victim = rng.choice(tables)
        at = rng.randrange(len(victim))
        victim[at] = forged(rng, victim[at])  # type: ignore[arg-type, call-overload]
        found = attempt(kernels.load("native"), plan)
        assert found == attempt(PYTHON, plan)
        outcomes["refused" if isinstance(found, str) else "read"] += 1
    assert min(outcomes.values()) > 0


def forged(rng: random.Random, data: bytes) -> bytes:
    """The table with something wrong in one of its data blocks, under right checksums or not."""
    if rng.random() < 0.2:
        at = rng.randrange(len(data) - 60)
        return data[:at] + bytes((data[at] ^ 1 << rng.randrange(8),)) + data[at + 1 :]
    parts = Parts.of(data)
    at = rng.randrange(len(parts.blocks))
    key, contents, kind = parts.blocks[at]
    what = rng.random()
    if what < 0.5:
        kind = rng.choice((RAW, SNAPPY, ZSTD, DEFLATE))
        parts.blocks[at] = key, mutated(rng, contents), kind
    elif what < 0.7:
        squeezed = mutated(rng, parts.squeeze(kind, contents))
        whole = parts.squeeze
        parts.blocks[at] = key, squeezed, rng.choice((kind, SNAPPY, 3, DEFLATE))
        parts.squeeze = lambda kind, data: data if data is squeezed else whole(kind, data)
    else:
        other = rng.randrange(len(parts.blocks))
        parts.blocks[at], parts.blocks[other] = parts.blocks[other], parts.blocks[at]
    return parts.assembled()


@pytest.mark.parametrize("name", NAMES)
def test_tables_of_one_run_that_overlap_are_refused(name: str) -> None:
    plan = Plan(runs=[])
    first, second = ([(key, -257, b"v")] for key in (b"b", b"a"))
    plan.runs = [[table_of(first, plan), table_of(second, plan)]]
    with pytest.raises(CorruptionError, match=rf"{NAME}: the data block at byte 0: .*ascend"):
        run(kernels.load(name), plan)


@pytest.mark.parametrize("name", NAMES)
def test_nothing_of_nothing(name: str) -> None:
    kernel = kernels.load(name)
    assert run(kernel, Plan(runs=[])) == []
    assert run(kernel, Plan(runs=[[], []])) == []
    hidden: list[Entry] = [(b"%d" % at, rank_of(at + 1, 0), b"") for at in range(200_000)]
    plan = Plan(runs=[hidden[:100]], horizon=rank_of(10**6), deeper=[])
    assert run(kernel, plan) == []


@pytest.mark.parametrize("name", NAMES)
def test_who_pauses_can_stop_it(name: str, rng: random.Random) -> None:
    """Also where nothing survives for long."""
    kernel = kernels.load(name)
    entries: list[Entry] = [(b"%07d" % at, rank_of(at + 1, 0), b"") for at in range(70_000)]
    table = table_of(entries, Plan(runs=[], block_size=4096))
    for plan in (
        Plan(runs=[[table]], horizon=rank_of(10**6), deeper=[]),
        Plan(runs=[[table]]),
    ):
        asked = 0

        def pause() -> None:
            nonlocal asked
            asked += 1
            if asked == 2:
                raise InterruptedError

        survivors = survivors_of(kernel, plan, pause)
        body = kernel.TableBody(4096, 16, 0)
        with pytest.raises(InterruptedError):
            write_all(survivors, body, 4096)


def write_all(survivors: Any, body: Any, at_once: int) -> None:
    while survivors.has_more() and not survivors.write(body, at_once):
        pass


@pytest.mark.parametrize("name", NAMES)
def test_tables_are_opened_when_it_is_their_turn(name: str) -> None:
    kernel, plan = kernels.load(name), Plan(runs=[])
    tables = [table_of([(b"%d" % at, -257, b"v" * 400)], plan) for at in range(5)]
    when: list[int] = []

    def turns() -> Iterator[Any]:
        for table in opened(kernel, tables, False):
            when.append(body.num_entries)
            yield table

    body = kernel.TableBody(300, 16, 0)
    survivors = kernel.Survivors([turns()], BYTEWISE)
    write_all(survivors, body, 1)
    assert when[2:] == sorted(set(when[2:]))
    assert len(when) == 5


@needs_both
def test_a_memtable_is_sorted_once_while_readers_sort_it(rng: random.Random) -> None:
    """Whoever is first: all see the same entries, and nothing is lost."""
    kernel = kernels.load("native")
    for _ in range(by_effort(3, 20, 200)):
        count = rng.choice((1000, 20_000))
        keys = [b"%08d" % rng.randrange(count) for _ in range(count)]
        memtable = kernel.Memtable(BYTEWISE)
        memtable.apply(encode_batch(1, [(key, key) for key in keys]))
        if rng.random() < 0.5:
            next(memtable.ascending(None))
            memtable.apply(encode_batch(count + 1, [(key, b"") for key in keys[:100]]))
        seen: list[list[Entry]] = []
        readers = [threading.Thread(target=read_all, args=(memtable, seen)) for _ in range(2)]
        for reader in readers:
            reader.start()
        bounds = memtable.bounds()
        for reader in readers:
            reader.join()
        assert bounds == (min(keys), max(keys))
        assert seen[0] == seen[1] == memtable.entries()
        assert len(seen[0]) == memtable.count
        (table,) = run_of(kernel, memtable)
        assert [key for key, _ in parse(table).pairs] == [
            pack(key, rank) for key, rank, _ in seen[0]
        ]


def read_all(memtable: Any, seen: list[list[Entry]]) -> None:
    seen.append(memtable.entries())


def run_of(kernel: ModuleType, memtable: Any) -> list[bytes]:
    """What a flush makes of a memtable."""
    storage, plan = SimulatedStorage(), Plan(runs=[])
    builder = builder_of(kernel, plan, storage)
    survivors = kernel.Survivors([memtable], BYTEWISE)
    while not builder.fill(survivors.write):
        pass
    builder.finish()
    return [storage.read("table")]
