"""The rows of ``python -m benchmarks engine``, in the order they are shown."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from benchmarks.bench import Group
from benchmarks.engine import reads
from benchmarks.engine.bench import Bench
from benchmarks.engine.engines import OURS, PLYVEL
from benchmarks.engine.reads import Read
from benchmarks.engine.rows import Case, Figures
from lsm.options import MIB

BLOCKED = OURS[0]
NANO, MICRO, MILLI = 1e9, 1e6, 1e3

WRITING = Group("Writing", "wall clock, with all that a writer has to wait for")
LOOKING_UP = Group("Looking up", "everything merged, all blocks in the cache; in random order")
RANGES = Group("Ranges", "the same databases")
OPENING = Group("Opening", "wall clock, lsm.DB(path) until it returns")
DISTURBED = Group(
    "Lookups while everything is merged", "present keys, compact_range() in another thread"
)
COSTS = Group("What it takes", "compact_range() after the load, and what it leaves")

READS = (
    (LOOKING_UP, reads.ABSENT, "absent", OURS),
    (LOOKING_UP, reads.PRESENT, "present", OURS),
    (LOOKING_UP, reads.MANY, None, (BLOCKED,)),
    (LOOKING_UP, reads.SNAPSHOT, None, (BLOCKED,)),
    (RANGES, reads.FORWARDS, "iteration", (BLOCKED,)),
    (RANGES, reads.BACKWARDS, None, (BLOCKED,)),
    (RANGES, reads.SEEK, None, (BLOCKED,)),
    (RANGES, reads.PREFIX, None, (BLOCKED,)),
)
PERCENTILES = (50, 99, 99.9, 100)


def all_cases() -> list[Case]:
    """Every row there is."""
    return [*writing(), *reading(), *opening(), *disturbed(), *costs()]


def writing() -> Iterator[Case]:
    """Putting, in batches and one by one."""
    for ours in OURS:
        yield Case(WRITING, "put in a batch of 1000", "us", _load, ours, PLYVEL, "load")
    for sync in (False, True):
        name = "put with sync=True" if sync else "put, one by one"
        yield Case(WRITING, name, "us", partial(_puts, sync=sync), BLOCKED, PLYVEL)


def reading() -> Iterator[Case]:
    """Lookups and ranges."""
    for group, read, target, engines in READS:
        for ours in engines:
            yield Case(group, read.name, "ns", partial(_read, read=read), ours, PLYVEL, target)


def opening() -> Iterator[Case]:
    """Opening, with little and with much in the log."""
    yield Case(OPENING, "with an empty log", "ms", _open, BLOCKED, PLYVEL, "opening")
    name = "replaying a log into a table, per entry"
    yield Case(OPENING, name, "us", _replay, BLOCKED, PLYVEL, "replay")
    yield Case(OPENING, "closed right after the load", "ms", _reopen, BLOCKED, PLYVEL)


def disturbed() -> Iterator[Case]:
    """Latencies beside background work."""
    for percent in PERCENTILES:
        name = f"p{percent:g} of a get" if percent < 100 else "the slowest get"
        measure = partial(_latency, percent=percent)
        yield Case(DISTURBED, name, "us", measure, BLOCKED, PLYVEL)


def costs() -> Iterator[Case]:
    """Time, bytes and memory."""
    for ours in OURS:
        yield Case(COSTS, "compact_range()", "s", _merge, ours, PLYVEL)
    yield Case(COSTS, "bytes to tables per byte written", "x", _amplification, BLOCKED, PLYVEL)
    yield Case(COSTS, "on disk", "MiB", _disk, BLOCKED, PLYVEL)
    for ours in OURS:
        measure = partial(_memory, ours=ours)
        yield Case(COSTS, "in memory after reading every key", "MiB", measure, ours, PLYVEL)


def _load(bench: Bench) -> Figures:
    return Figures(_per(bench.loaded, MICRO / bench.settings.keys))


def _puts(bench: Bench, *, sync: bool) -> Figures:
    pairs = bench.data.pairs[: bench.settings.sync_puts if sync else bench.settings.puts]
    return Figures(_per(bench.single_puts(pairs, sync=sync), MICRO / len(pairs)))


def _read(bench: Bench, *, read: Read) -> Figures:
    return Figures(bench.read(read))


def _open(bench: Bench) -> Figures:
    return Figures(_per(bench.opened, MILLI))


def _replay(bench: Bench) -> Figures:
    return Figures(_per(bench.replayed, MICRO / bench.settings.keys))


def _reopen(bench: Bench) -> Figures:
    found = bench.reopenings()
    sizes = (
        f"{name} {' and '.join(f'{each.log_bytes / MIB:.1f}' for each in reopenings)} MiB"
        for name, reopenings in found.items()
    )
    seconds = {name: [each.seconds for each in reopenings] for name, reopenings in found.items()}
    return Figures(_per(seconds, MILLI), f"to replay: {'; '.join(sizes)}")


def _latency(bench: Bench, *, percent: float) -> Figures:
    found = {name: taken for name, (_, taken) in bench.disturbed.items()}
    taken = {name: [each.percentile(percent) / 1e3] for name, each in found.items()}
    gets = (
        f"{name} {len(each.nanoseconds):,} gets in {each.seconds:.2f} s"
        for name, each in found.items()
    )
    return Figures(taken, "; ".join(gets) if percent == PERCENTILES[0] else "")


def _merge(bench: Bench) -> Figures:
    return Figures({name: [each.seconds] for name, each in bench.merged.items()})


def _amplification(bench: Bench) -> Figures:
    note = "tables of load and compact_range(); logs come on top"
    return Figures({name: [each.amplification] for name, each in bench.merged.items()}, note)


def _disk(bench: Bench) -> Figures:
    return Figures({name: [each.disk_bytes / MIB] for name, each in bench.merged.items()})


def _memory(bench: Bench, *, ours: str) -> Figures:
    found = bench.memory
    note = (
        f"and {found[ours].mapped / MIB:.0f} MiB of mapped files; "
        f"allowed: {bench.engines[ours].memory_allowed}"
    )
    return Figures({name: [each.own / MIB] for name, each in found.items()}, note)


def _per(seconds: dict[str, list[float]], factor: float) -> dict[str, list[float]]:
    return {name: [each * factor for each in taken] for name, taken in seconds.items()}
