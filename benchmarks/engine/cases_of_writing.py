"""The rows about writing: alone, until nothing is left to do, and beside who reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from benchmarks.engine.bench import Bench
from benchmarks.engine.case import Case, Figures, Group
from benchmarks.engine.crowd import Done
from benchmarks.engine.data import LOADED_NAMES, SUSTAINED_NAMES, THREADS
from benchmarks.engine.engines import ONE_OF_OURS, PLYVEL, THAT_MERGE, WITH_A_LOG
from benchmarks.engine.loading import Load
from benchmarks.engine.ours import BLOCKED
from benchmarks.engine.peer_lmdb import LMDB
from benchmarks.engine.settings import Scale
from benchmarks.engine.targets import LONGEST_BATCH_AIM, ONE_OF_EACH
from benchmarks.rows import number
from lsm.options import MIB

MICRO, MILLI = 1e6, 1e3

WRITING = Group("Writing", "wall clock, with all that a writer has to wait for")
SUSTAINED = Group(
    "Loading until idle",
    "wall clock, everything in batches of 1000, until nothing is left to be flushed or compacted",
)
CROWDED = Group(
    "Writers and readers at once",
    "wall clock, all processors; puts, and gets of present keys in the same database",
)
UNCOMPRESSED = ", uncompressed"
_SAME = "it compresses nothing: the same number as compressed"


def writing() -> Iterator[Case]:
    """Putting, in batches and one by one."""
    yield Case(
        WRITING, "put in a batch of 1000", "us", _load, target="load", large=True,
        seconds=lambda scale: 0.0 if scale.large else 1.7e-5 * scale.keys * scale.writes,
    )  # fmt: skip
    yield Case(
        WRITING, "put, one by one", "us", partial(_puts, sync=False), target="puts",
        seconds=lambda scale: 2.4e-5 * scale.puts * scale.repeats,
    )  # fmt: skip
    yield Case(
        WRITING, "put with sync=True", "us", partial(_puts, sync=True),
        seconds=lambda scale: 1e-3 * scale.sync_puts * scale.repeats,
    )  # fmt: skip


def sustained() -> Iterator[Case]:
    """Loading everything, with all the work that comes of it: time, waits, bytes and memory."""
    of = partial(Case, SUSTAINED, large=True, engines=ONE_OF_OURS)
    for at, (found, seconds) in enumerate(((_compressed, 2e-5), (_uncompressed, 1.6e-5))):
        held, suffix = (True, "") if at == 0 else (False, UNCOMPRESSED)
        yield of(
            SUSTAINED_NAMES[at], "us", partial(_idle, found=found),
            target="sustained", seconds=partial(_loads, each=seconds),
        )  # fmt: skip
        yield of(
            f"the longest batch{suffix}", "ms", partial(_longest, found=found),
            target="longest batch" if held else None,
        )  # fmt: skip
        yield of(
            LOADED_NAMES[at], "x", partial(_amplification, found=found),
            target="amplification" if held else None, engines=_THAT_TELL,
        )  # fmt: skip
    yield of(
        "in memory while loading, at most", "MiB", _memory, engines=THAT_MERGE,
        target="memory while loading", seconds=lambda scale: 1.5 + 1.5e-5 * scale.keys,
    )  # fmt: skip


def crowded() -> Iterator[Case]:
    """Several writers beside as many readers."""
    of = partial(Case, CROWDED, unit="us", engines=ONE_OF_OURS)
    who = f"{THREADS} writers and {THREADS} readers"
    yield of(
        f"an operation, {who}", measure=partial(_crowd, count=lambda done: done.puts + done.gets),
        target="crowd", seconds=lambda scale: 9 * scale.disturbances * (scale.crowd_seconds + 0.04),
    )  # fmt: skip
    yield of(f"a put, {who}", measure=partial(_crowd, count=lambda done: done.puts))
    yield of(f"a get, {who}", measure=partial(_crowd, count=lambda done: done.gets))


def times(seconds: Mapping[str, Sequence[float]], factor: float) -> dict[str, list[float]]:
    """The same in another unit."""
    return {name: [each * factor for each in taken] for name, taken in seconds.items()}


_THAT_TELL = tuple(name for name in ONE_OF_OURS if name in WITH_A_LOG)
Loads = Mapping[str, Sequence[Load]]


def _loads(scale: Scale, *, each: float) -> float:
    return each * scale.keys * scale.loads


def _load(bench: Bench) -> Figures:
    return Figures(times(bench.loaded, MICRO / bench.scale.keys))


def _puts(bench: Bench, *, sync: bool) -> Figures:
    pairs = bench.data.pairs[: bench.scale.sync_puts if sync else bench.scale.puts]
    return Figures(times(bench.single_puts(pairs, sync=sync), MICRO / len(pairs)))


def _compressed(bench: Bench) -> tuple[Loads, Mapping[str, str]]:
    return bench.sustained, {}


def _uncompressed(bench: Bench) -> tuple[Loads, Mapping[str, str]]:
    """LMDB's numbers are those of the rows with compression."""
    same = {name: some for name, some in bench.sustained.items() if name == LMDB.name}
    return bench.sustained_uncompressed | same, dict.fromkeys(same, _SAME)


Found = Callable[[Bench], tuple[Loads, Mapping[str, str]]]


def _idle(bench: Bench, *, found: Found) -> Figures:
    loads, notes = found(bench)
    left = {
        name: f"{min(each.idle - each.calls for each in some):.2f} s of it after the last call"
        for name, some in loads.items()
    }
    told = {name: "; ".join((left[name], *filter(None, [notes.get(name)]))) for name in left}
    each = {name: [load.idle for load in some] for name, some in loads.items()}
    return Figures(times(each, MICRO / bench.scale.keys), told)


def _longest(bench: Bench, *, found: Found) -> Figures:
    loads, notes = found(bench)
    longest = {name: [load.longest for load in some] for name, some in loads.items()}
    return Figures(times(longest, MILLI), notes, aims_of(longest, LONGEST_BATCH_AIM))


def aims_of(taken: Mapping[str, Sequence[float]], seconds: float) -> dict[str, float]:
    """So many seconds as a multiple of plyvel's time, which may not be missed in any case."""
    theirs = min(taken.get(PLYVEL, [0.0]))
    return {PLYVEL: min(1.0, seconds / theirs)} if theirs else {}


def _amplification(bench: Bench, *, found: Found) -> Figures:
    loads, _ = found(bench)
    told = {
        name: [each.amplification for each in some if each.amplification is not None]
        for name, some in loads.items()
    }
    return Figures({name: some for name, some in told.items() if some})


def _memory(bench: Bench) -> Figures:
    found = bench.loading_memory
    notes = {name: f"allowed: {bench.engines[name].memory_allowed}" for name in found}
    return Figures({name: [each / MIB] for name, each in found.items()}, notes)


def _crowd(bench: Bench, *, count: Callable[[Done], int]) -> Figures:
    taken, alone = (
        {name: [done.seconds * MICRO / count(done) for done in some]
         for name, some in bench.crowded[each].items()}
        for each in (THREADS, 1)
    )  # fmt: skip
    notes = {name: f"{ONE_OF_EACH}: {number(min(each))} us" for name, each in alone.items()}
    beside = {ONE_OF_EACH: alone[BLOCKED]} if BLOCKED in alone else {}
    return Figures(taken | beside, notes)
