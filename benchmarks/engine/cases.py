"""The rows of ``python -m benchmarks engine``, in the order they are shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from operator import attrgetter
from typing import Any

import attrs

from benchmarks.engine import reads
from benchmarks.engine.bench import MOST_READ, Bench
from benchmarks.engine.case import HELD, Case, Figures, Group
from benchmarks.engine.cases_of_writing import (
    CROWDED,
    MICRO,
    MILLI,
    SUSTAINED,
    WRITING,
    aims_of,
    crowded,
    sustained,
    times,
    writing,
)
from benchmarks.engine.data import THREADED_NAME, THREADS
from benchmarks.engine.engines import (
    ONE_OF_OURS,
    PLYVEL,
    THAT_MERGE,
    THAT_REPLAY,
    WITH_A_LOG,
)
from benchmarks.engine.ours import BLOCKED, PLUG_IN
from benchmarks.engine.reads import Read
from benchmarks.engine.settings import Scale
from benchmarks.engine.targets import IDLE, ONE_THREAD, SLOW_GET_AIM
from benchmarks.rows import HIGHER, number
from lsm.options import MIB

NANO = 1e9

COMPACTED = Group(
    "Looking up, compacted", "everything merged, all blocks in the cache; in random order"
)
FILLED = Group(
    "Looking up, five levels",
    "the same entries in five runs, each 3.5 times the one above, on the levels 1 to 5",
    "five levels",
)
UNCOMPRESSED = Group(
    "Reading, uncompressed", "everything on one level, not compressed, all blocks in the cache"
)
PLUGGED = Group(
    "Looking up, filters in Python",
    "five levels, each filter asked through a plug-in's key_may_match, in Python",
    "plug-in",
)
THREADED = Group("Looking up, several threads", "wall clock, all processors, present keys")
RANGES = Group("Ranges", "everything merged, all blocks in the cache")
OPENING = Group("Opening", "wall clock, until the database can be asked", "opening")
DISTURBED = Group(
    "Lookups while everything is merged", "present keys, compact_range() in another thread"
)
COSTS = Group("What it takes", "compact_range() after the load, and what it leaves")
GROUPS = (
    WRITING, SUSTAINED, COMPACTED, FILLED, PLUGGED, THREADED, CROWDED, RANGES, UNCOMPRESSED,
    OPENING, DISTURBED, COSTS, HELD,
)  # fmt: skip


def all_cases(scale: Scale) -> list[Case]:
    """Every row there is with so many keys."""
    cases = [
        *writing(), *sustained(), *looking_up(), *plugged(), *threaded(), *crowded(), *ranges(),
        *uncompressed(), *opening(), *disturbed(), *costs(),
    ]  # fmt: skip
    if not scale.large:
        return cases
    return [
        attrs.evolve(case, engines=tuple(name for name in case.engines if name in ONE_OF_OURS))
        for case in cases
        if case.large
    ]


def looking_up() -> Iterator[Case]:
    """Lookups, where everything is on one level and where it is on five."""
    merged, filled = partial(_lookups, COMPACTED, _read), partial(_lookups, FILLED, _read_filled)
    yield merged(
        reads.ABSENT, target="absent", large=True,
        seconds=lambda scale: 2 + 3e-5 * scale.keys + 2e-5 * scale.probes,
    )  # fmt: skip
    yield merged(
        reads.PRESENT, target="present", large=True, seconds=lambda scale: 8e-5 * scale.probes
    )
    for read in reads.MANY_PRESENT:
        yield merged(
            read, target="many present", large=True, seconds=lambda scale: 8e-5 * scale.probes
        )
    for read in reads.MANY_ABSENT:
        yield merged(
            read, target="many absent", large=True, seconds=lambda scale: 2e-5 * scale.probes
        )
    yield merged(reads.SNAPSHOT_ABSENT, target="absent", seconds=lambda scale: 2e-5 * scale.probes)
    yield merged(
        reads.SNAPSHOT_PRESENT, target="present", seconds=lambda scale: 8e-5 * scale.probes
    )
    yield filled(
        reads.ABSENT, target="absent, five levels", large=True,
        seconds=lambda scale: 0.2 + 1.2e-5 * scale.keys + 5e-5 * scale.probes,
    )  # fmt: skip
    yield filled(
        reads.PRESENT, target="present, five levels", large=True,
        seconds=lambda scale: 1.2e-4 * scale.probes,
    )  # fmt: skip


def plugged() -> Iterator[Case]:
    """Lookups on five levels whose filters no compiled code can ask."""
    of = partial(_lookups, PLUGGED, _read_plugged, engines=(PLUG_IN, PLYVEL))
    yield of(
        reads.ABSENT, target="plug-in absent",
        seconds=lambda scale: 0.1 + 1.5e-5 * scale.keys + 1e-4 * scale.probes,
    )  # fmt: skip
    yield of(reads.PRESENT, target="plug-in present", seconds=lambda scale: 1e-4 * scale.probes)


def threaded() -> Iterator[Case]:
    """Lookups that several threads make at once."""
    of = partial(Case, THREADED, engines=ONE_OF_OURS)
    yield of(
        THREADED_NAME, "ns", _threaded, target="threads",
        seconds=lambda scale: 1e-4 * scale.probes * scale.repeats / 5,
    )  # fmt: skip
    yield of(f"keys a second, {THREADS} threads for 1", "x", _gain, better=HIGHER)


def ranges() -> Iterator[Case]:
    """Iterating, seeking and scanning."""
    ranged = partial(_lookups, RANGES, _read, engines=ONE_OF_OURS)
    yield ranged(
        reads.FORWARDS, target="iteration", large=True,
        seconds=lambda scale: scale.keys * (4e-6 + 1.2e-6 * scale.passes),
    )  # fmt: skip
    for read in (reads.BACKWARDS, reads.KEYS_FORWARDS, reads.KEYS_BACKWARDS):
        yield ranged(
            read, target="iteration",
            seconds=lambda scale: scale.keys * (4e-6 + 1e-6 * scale.passes),
        )  # fmt: skip
    for read in (reads.VALUES_FORWARDS, reads.VALUES_BACKWARDS):
        yield ranged(read, seconds=lambda scale: scale.keys * (4e-6 + 1e-6 * scale.passes))
    yield ranged(reads.SEEK, target="seek", seconds=lambda scale: 1.5e-4 * scale.ranges)
    yield ranged(
        reads.PREFIX, target="prefix",
        seconds=lambda scale: 2.7e-4 * scale.ranges + 5e-7 * scale.keys,
    )  # fmt: skip


def uncompressed() -> Iterator[Case]:
    """Lookups and ranges without compression, beside those with it."""
    of = partial(_lookups, UNCOMPRESSED, _read_uncompressed, engines=ONE_OF_OURS)
    yield of(reads.ABSENT, seconds=lambda scale: 0.1 + 1.2e-5 * scale.keys + 2e-5 * scale.probes)
    for read in (reads.PRESENT, reads.MANY_PRESENT[-1]):
        yield of(read, seconds=lambda scale: 8e-5 * scale.probes)
    for read in (reads.FORWARDS, reads.BACKWARDS):
        yield of(read, seconds=lambda scale: scale.keys * (4e-6 + 1e-6 * scale.passes))
    yield of(reads.SEEK, seconds=lambda scale: 1.5e-4 * scale.ranges)
    yield of(reads.PREFIX, seconds=lambda scale: 2.7e-4 * scale.ranges)


def opening() -> Iterator[Case]:
    """Opening, with little and with much in the log."""
    yield Case(OPENING, "with an empty log", "ms", _open, target="opening", large=True)
    for compressed, suffix in (True, "per entry"), (False, "uncompressed"):
        yield Case(
            OPENING, f"replaying a log into a table, {suffix}", "us",
            partial(_replay, compressed=compressed), THAT_REPLAY,
            target="replay", seconds=lambda scale: 8e-6 * scale.keys * scale.writes,
        )  # fmt: skip
    yield Case(OPENING, "closed right after the load", "ms", _reopen, WITH_A_LOG)


def disturbed() -> Iterator[Case]:
    """Latencies beside background work."""
    of = partial(Case, DISTURBED, unit="us", engines=THAT_MERGE)
    yield of(
        "p50 of a get", measure=partial(_latency, percent=50), target="p50 while merging",
        seconds=lambda scale: 1.2e-5 * scale.keys * scale.disturbances,
    )  # fmt: skip
    yield of("p99 of a get", measure=partial(_latency, percent=99), target="p99 while merging")
    yield of(
        "p99.9 of a get", measure=partial(_latency, percent=99.9, aim=SLOW_GET_AIM),
        target="p99.9 while merging",
    )  # fmt: skip
    yield of(
        "the slowest get", measure=partial(_latency, percent=100), target="slowest while merging"
    )


def costs() -> Iterator[Case]:
    """Time, bytes and memory."""
    yield Case(COSTS, "compact_range()", "s", _merge, WITH_A_LOG, target="compaction", large=True)
    yield Case(
        COSTS, "compact_range(), uncompressed", "s", _merge_uncompressed, THAT_MERGE,
        target="compaction", large=True,
    )  # fmt: skip
    name = "bytes to tables per byte written"
    yield Case(COSTS, name, "x", _amplification, WITH_A_LOG, target="amplification", large=True)
    yield Case(COSTS, "on disk", "MiB", _disk, large=True)
    name = "in memory after reading every key"
    yield Case(COSTS, name, "MiB", _memory, target="memory", large=True)


def _lookups(group: Group, measure: Callable[..., Figures], read: Read, **more: Any) -> Case:
    return Case(group, read.name, "ns", partial(measure, read=read), **more)


def _read(bench: Bench, *, read: Read) -> Figures:
    return Figures(bench.read(read))


def _read_filled(bench: Bench, *, read: Read) -> Figures:
    return Figures(bench.read_filled(read), _without_levels(bench, "it has no levels: one tree"))


def _read_uncompressed(bench: Bench, *, read: Read) -> Figures:
    same = "it compresses nothing: the same database as above"
    return Figures(bench.read_uncompressed(read), _without_levels(bench, same))


def _without_levels(bench: Bench, note: str) -> dict[str, str]:
    return {name: note for name, engine in bench.engines.items() if not engine.has_levels}


def _read_plugged(bench: Bench, *, read: Read) -> Figures:
    return Figures(bench.read_plugged(read), {PLYVEL: "with its own filters"})


def _threaded(bench: Bench) -> Figures:
    alone, together = bench.threaded[1], bench.threaded[THREADS]
    taken, aims = dict(together), {}
    if BLOCKED in alone:
        taken[ONE_THREAD] = alone[BLOCKED]
    if PLYVEL in together:
        aims[ONE_THREAD] = min(alone[PLYVEL]) / min(together[PLYVEL])
    notes = {name: f"alone {number(min(each))} ns" for name, each in alone.items() if each}
    return Figures(taken, notes, aims)


def _gain(bench: Bench) -> Figures:
    alone, together = bench.threaded[1], bench.threaded[THREADS]
    return Figures({name: [min(alone[name]) / min(each)] for name, each in together.items()})


def _open(bench: Bench) -> Figures:
    return Figures(times(bench.opened, MILLI))


def _replay(bench: Bench, *, compressed: bool) -> Figures:
    taken = bench.replayed if compressed else bench.replayed_uncompressed
    return Figures(times(taken, MICRO / bench.scale.keys))


def _reopen(bench: Bench) -> Figures:
    found = bench.reopened
    notes = {
        name: f"to replay: {' and '.join(f'{each.log_bytes / MIB:.1f}' for each in some)} MiB"
        for name, some in found.items()
    }
    return Figures(
        {name: [each.seconds * MILLI for each in some] for name, some in found.items()}, notes
    )


def _latency(bench: Bench, *, percent: float, aim: float | None = None) -> Figures:
    found = bench.disturbed
    merging, idle = (
        {name: [latencies(each).percentile(percent) / NANO for each in some]
         for name, some in found.items()}
        for latencies in (attrgetter("merging"), attrgetter("idle"))
    )  # fmt: skip
    notes = {
        name: f"{len(some[-1].merging.nanoseconds):,} gets in {some[-1].merging.seconds:.2f} s; "
        f"{number(min(idle[name]) * MICRO)} us with nothing going on"
        for name, some in found.items()
    }
    taken = merging | ({IDLE: idle[BLOCKED]} if BLOCKED in idle else {})
    aims = {} if aim is None else aims_of(merging, aim)
    return Figures(times(taken, MICRO), notes, aims)


def _merge(bench: Bench) -> Figures:
    found = bench.merged.items()
    return Figures({name: [each.seconds for each in some] for name, some in found})


def _merge_uncompressed(bench: Bench) -> Figures:
    found = bench.sustained_uncompressed.items()
    taken = {name: [each.merging for each in some if each.merging] for name, some in found}
    return Figures({name: some for name, some in taken.items() if some})


def _amplification(bench: Bench) -> Figures:
    found = {
        name: [each.amplification for each in some if each.amplification is not None]
        for name, some in bench.merged.items()
    }
    return Figures({name: some for name, some in found.items() if some})


def _disk(bench: Bench) -> Figures:
    found = bench.merged.items()
    return Figures({name: [each.disk_bytes / MIB for each in some] for name, some in found})


def _memory(bench: Bench) -> Figures:
    found = bench.memory
    some = f"after a million of {bench.scale.keys:,}; " if bench.scale.keys > MOST_READ else ""
    notes = {
        name: f"{some}and {each.mapped / MIB:.0f} MiB of mapped files; allowed: "
        f"{bench.engines[name].memory_allowed}"
        for name, each in found.items()
    }
    return Figures({name: [each.own / MIB] for name, each in found.items()}, notes)
