"""A plausible record of a whole run, from theory: for tests of what is made of a record."""

from __future__ import annotations

import math
import random
import warnings
from collections.abc import Iterator, Mapping

import attrs

from benchmarks.filters.contenders import sizes_to_sweep
from benchmarks.record import SCHEMA, Record
from benchmarks.rows import (
    AS_EXPECTED,
    FAILED,
    INFORMATION,
    NOT_MEASURED,
    UNEXPECTED,
    Row,
    Target,
    counts,
    judged,
    timed,
)
from benchmarks.statistics import MARKED, sigmas, wilson
from benchmarks.subjects import LIVE, as_programs_have_it
from filters import sizing
from filters.costs import Cost
from filters.families import FAMILIES

CACHES = {"L1": 48 << 10, "L2": 2 << 20, "L3": 32 << 20}
ABSENT_KEYS = 1_000_000
LINE, CALL = "a random cache line", "an empty compiled call"

# Nanoseconds of a build and a probe of a family that nobody has measured.
UNMEASURED = Cost(50.0, 60.0)
FIRST = Cost(17.0, 33.0)  # of the first family, which is to be the fastest of all


def _subjects() -> Iterator[tuple[str, float, float, float]]:
    """Subject, nanoseconds of a build, a single probe in a small filter, one in a batch."""
    for at, family in enumerate(FAMILIES.values()):
        cost = (family.cost or UNMEASURED) if at else FIRST
        default = family.parameters.default
        subject = f"{as_programs_have_it(family)} {default.name}={default.value:g}"
        yield subject, cost.build, cost.probe, cost.probe / 8
    yield "blocked bits_per_key=16", 18.0, 34.0, 4.4


SUBJECTS = tuple(_subjects())
PEERS = (
    ("abloom", 26.0, 41.0, 0.0),
    ("fastbloom_rs", 55.0, 62.0, 37.0),
    ("pybloomfiltermmap3", 110.0, 130.0, 0.0),
    ("pyfusefilter", 120.0, 210.0, 0.0),
    ("pyprobables", 9100.0, 5200.0, 0.0),
    ("rbloom", 61.0, 68.0, 0.0),
)
SWEEP = {
    family.name: sizes_to_sweep(family)
    for family in FAMILIES.values()
    if family.policy and family.in_tables
}
FUSE_RATES = (2**-8, 2**-16)
PEER_RATES = (0.1, 0.03, 0.01, 0.003, 0.001, 0.0001)
SHARES = {1: 0.003, 2: 0.012, 3: 0.047, 4: 0.188, 5: 0.75}
CONFIGURATIONS: dict[str, tuple[int | None, ...]] = {
    # Bits per key of a blocked filter on each level; None is none.
    "none": (None,) * 5,
    "blocked 6": (6,) * 5,
    "blocked 10": (10,) * 5,
    "blocked 14": (14,) * 5,
    "more above, fewer below": (20, 17, 14, 11, 9),
    "hits-only": (10, 10, 10, 10, None),
    "mixed": (10, 10, 10, 14, 14),
    "classic 10": (11,) * 5,
    "binary-fuse 8": (12,) * 5,
    "cuckoo 12": (13,) * 5,
    "leveldb 10": (9,) * 5,
}
ENGINES = ("lsm, blocked", "lsm, leveldb", "plyvel", "rocksdict", "lmdb")
QUESTIONS = (
    ("Writing", "put in a batch of 1000", "us", 1.9, (3.1, 3.0, 1, 1.8, 0.9)),
    ("Writing", "put, one by one", "us", 2.4, (4.2, 4.1, 1, 1.6, 5.0)),
    ("Writing", "put with sync=True", "us", 310.0, (1.02, 1.03, 1, 1.1, 2.2)),
    ("Looking up, compacted", "get of an absent key", "ns", 900.0, (0.9, 1.4, 1, 1.3, 0.6)),
    ("Looking up, compacted", "get of a present key", "ns", 1900.0, (3.2, 3.3, 1, 1.2, 0.4)),
    ("Looking up, five levels", "get of an absent key", "ns", 2100.0, (0.7, 1.2, 1, 0.9, 0.3)),
    ("Looking up, five levels", "get of a present key", "ns", 3300.0, (2.6, 2.8, 1, 0.8, 0.3)),
    ("Ranges", "entry of an iteration forwards", "ns", 210.0, (6.1, 6.2, 1, 1.9, 0.7)),
    ("Ranges", "seek and ten entries", "us", 6.0, (9.5, 9.5, 1, 2.2, 0.6)),
    ("Opening", "with an empty log", "ms", 1.6, (2.2, 2.3, 1, 6.0, 0.2)),
    ("What it takes", "on disk", "MiB", 88.0, (1.01, 1.01, 1, 1.02, 1.9)),
    ("What it takes", "in memory after reading every key", "MiB", 190.0, (1.6, 1.6, 1, 1.1, 0.1)),
)
KERNEL_ROWS = (
    ("One key at a time, in order", "blocked, hits", "abloom", 0.95, 0.88),
    ("One key at a time, in order", "blocked, misses", "abloom", 0.6, 0.57),
    ("One key at a time, in order", "rocksdb, hits", "abloom", 0.95, 0.98),
    ("A list of keys", "blocked, hits", "fastbloom_rs", 0.2, 0.11),
    ("A list of keys", "rocksdb, misses", "fastbloom_rs", 0.2, 0.12),
    ("Keys of a buffer", "blocked, hits", "an empty compiled call", 0.5, 0.31),
    ("Building from a list", "blocked", "abloom", 0.7, 0.66),
    ("Building from a list", "rocksdb", "abloom", 0.7, 0.71),
    ("Cuckoo beside blocked", "build", "blocked", 5.0, 3.4),
    ("A half-full blocked filter of 1 GB", "a view of bytes", LINE, 1.6, 1.31),
)
HEAD = {
    "schema": SCHEMA,
    "command": "all",
    "size": "default",
    "date": "2026-01-15T09:30:00+00:00",
    "machine": {
        "processor": "An Example of a Processor @ 2.80GHz",
        "processors": 2,
        "processors_allowed": 2,
        "pinned_to": 1,
        "system": "Linux-6.1-x86_64-with-glibc2.36",
        "architecture": "x86_64",
        "memory_bytes": 16 << 30,
        "cache_bytes": CACHES,
        "huge_pages": "madvise",
        "load_average": [0.12, 0.2, 0.31],
    },
    "kernel": {
        "name": "native",
        "reason": "compiled, and nothing speaks against it",
        "simd": "avx2",
        "simd_available": ["portable", "avx2"],
    },
    "versions": {"python": "CPython 3.11.2", "lsm-filters": "0.1", "plyvel": "1.5.1", "lmdb": None},
    "settings": {"filters": {"seed": 1}, "kernels": {"seed": 1}},
}


def example_record(seed: int = 1) -> Record:
    """All parts, with rows that failed, missed, surprised or were not measured among them."""
    rng = random.Random(seed)
    rows = [*filter_rows(rng), *kernel_rows(rng), *engine_rows(rng), *level_rows(rng)]
    summary = {**counts(rows), "seconds": 541.2, "load_average": [0.9, 0.8, 0.5]}
    return Record(HEAD, rows, summary)


def large_record(rows: int, seed: int = 1) -> Record:
    """A record of at least so many rows: the example's, over more and more kinds of keys."""
    example, rng = example_record(seed), random.Random(seed)
    found, kinds = list(example.rows), 0
    while len(found) < rows:
        kinds += 1
        for subject, *taken in SUBJECTS:
            found += speed_rows(rng, subject, f"kind {kinds}", 100_000, *taken)
            found += rate_rows(rng, subject, f"kind {kinds}", 100_000, 10.0, 0.0098)
    return attrs.evolve(example, rows=found)


def filter_rows(rng: random.Random) -> Iterator[Row]:
    """Rates, sizes and times of filters."""
    for family, sizes in SWEEP.items():
        for size in sizes:
            [(name, value)] = size.items()
            subject = f"{family} {name}={value}"
            yield from rate_rows(rng, subject, "random", 200_000, *_sized(subject, 200_000))
    for peer, *_ in PEERS:
        fuse = peer == "pyfusefilter"
        for rate in FUSE_RATES if fuse else PEER_RATES:
            bits = math.log2(1 / rate) * (1.13 if fuse else 1.4427 * 1.02)
            yield from rate_rows(rng, f"{peer} fpr={rate:g}", "random", 200_000, bits, rate)
    for kind, n in (
        ("random", 10_000),
        ("random", 100_000),
        ("random", 1_000_000),
        ("URLs", 10**5),
    ):
        for subject, *taken in SUBJECTS:
            bits, rate = _sized(subject, n)
            if kind == "URLs" and subject.startswith("leveldb"):
                yield from rate_rows(rng, subject, kind, n, bits, rate, really=rate * 1.4)
            else:
                yield from rate_rows(rng, subject, kind, n, bits, rate)
            yield from speed_rows(rng, subject, kind, n, *taken)
        for peer, *taken in PEERS:
            subject = f"{peer} fpr=0.01"
            if peer == "pyprobables" and n == 1_000_000:
                yield _filters(
                    "Speed", "build", subject, kind, n, verdict=NOT_MEASURED,
                    reason="pyprobables is written in Python and takes too long for so many keys",
                )  # fmt: skip
                continue
            rate = FUSE_RATES[0] if peer == "pyfusefilter" else 0.0098
            yield from rate_rows(rng, subject, kind, n, 9.5, rate)
            yield from speed_rows(rng, subject, kind, n, *taken)
        yield from speed_rows(rng, "set", kind, n, 38.0, 31.0, 0.0)
    yield _filters(
        "Rates and sizes", "false negatives", "quotient remainder_bits=8", "random", 10_000,
        unit="keys", verdict=FAILED, reason="quotient denies 3 of its 10000 keys, one by one",
    )  # fmt: skip
    yield _filters(
        "Rates and sizes", "false-positive rate", "ribbon fpr=0.01", "random", 10_000,
        unit="share", verdict=NOT_MEASURED,
        reason="ribbon is not installed: pip install acme-ribbon",
    )  # fmt: skip


def rate_rows(
    rng: random.Random, subject: str, kind: str, n: int, bits: float, rate: float, really: float = 0
) -> Iterator[Row]:
    """What is counted of one subject."""
    hits = _poisson(rng, (really or rate) * ABSENT_KEYS)
    distance = sigmas(hits, ABSENT_KEYS, rate)
    marked = abs(distance) > MARKED
    share, group = hits / ABSENT_KEYS, "Rates and sizes"
    yield _filters(group, "false negatives", subject, kind, n, unit="keys", value=0.0)
    yield _filters(
        group, "false-positive rate", subject, kind, n,
        unit="share", value=share, expected=rate, interval=wilson(hits, ABSENT_KEYS),
        sigmas=distance, verdict=UNEXPECTED if marked else AS_EXPECTED,
        note=f"{distance:.1f} standard errors from what is expected" if marked else "",
    )  # fmt: skip
    yield _filters(group, "bits per key", subject, kind, n, unit="bits", value=bits)
    bound = bits / math.log2(1 / share) if share else None
    yield _filters(group, "times the lower bound", subject, kind, n, unit="x", value=bound)


def speed_rows(
    rng: random.Random, subject: str, kind: str, n: int, build: float, single: float, batch: float
) -> Iterator[Row]:
    """What is timed of one subject."""
    slower = _outside_caches(n * 10 / 8)
    yield _times(rng, "build", subject, kind, n, build * (1 + slower / 2))
    for known in ("hit", "miss"):
        for order, more in (("in order", 0.0), ("shuffled", 60.0 * slower)):
            took = single * (1 + slower / 4) + more * (1.2 if known == "hit" else 1.0)
            name = f"one key, {known}, {order}"
            yield _times(rng, name, subject, kind, n, took, CALL, 14.0 + more / 2)
        if batch:
            took, floor = batch * (1 + slower), 1.6 + 4 * slower
            yield _times(rng, f"list of 4096, {known}", subject, kind, n, took * 2.2, LINE, floor)
            if subject.split()[0].removesuffix(LIVE) in FAMILIES:
                yield _times(rng, f"buffer, {known}", subject, kind, n, took, LINE, floor)
    taken = _times(rng, "first wave after a cold open", subject, kind, n, 400 + n / 500)
    yield attrs.evolve(taken, group="Opening", unit="us")
    taken = _times(rng, "peak while building", subject, kind, n, 8 + 1e5 / n)
    yield attrs.evolve(taken, group="Memory", unit="bytes/key", repeats=())


def level_rows(rng: random.Random) -> Iterator[Row]:
    """What configurations read."""
    keys, lookups = 300_000, 20_000
    for subject, levels in CONFIGURATIONS.items():
        rates = [
            1.0 if bits is None else _sized(f"blocked bits_per_key={bits}", 200_000)[1]
            for bits in levels
        ]
        bits = sum((each or 0) * share for each, share in zip(levels, SHARES.values(), strict=True))
        counted = [_poisson(rng, rate * lookups) if rate < 1 else lookups for rate in rates]
        for level, hits, rate in zip(SHARES, counted, rates, strict=True):
            yield _reads("absent key", subject, str(level), hits, lookups, rate)
        all_rates, memory = sum(rates), "Filter memory"
        yield _reads("absent key", subject, "all", sum(counted), lookups, all_rates)
        wasted = 1 + sum(rates[:-1])
        yield _reads("present key", subject, "all", round(wasted * lookups), lookups, wasted)
        at = {"level": "all"}
        size = bits * keys / 8
        yield Row(part="levels", group=memory, name="bytes", subject=subject, at=at, unit="bytes",
                  value=size)  # fmt: skip
        yield Row(part="levels", group=memory, name="bits per key", subject=subject, at=at,
                  unit="bits", value=bits)  # fmt: skip
        for storage, latency in (
            ("memory", 0.0), ("flash, 100 us a block", 100.0), ("disk, 10 ms a block", 10_000.0),
        ):  # fmt: skip
            for name, blocks in (("absent key", sum(counted) / lookups), ("present key", wasted)):
                yield Row(part="levels", group="Time per lookup", name=name, subject=subject,
                          at={"storage": storage}, unit="us",
                          value=2.1 + blocks * 3 + blocks * latency)  # fmt: skip
    yield Row(
        part="levels", group="Filter memory", name="bytes", subject="quotient",
        at={"level": "all"}, unit="bytes", verdict=NOT_MEASURED, reason="quotient is not installed",
    )  # fmt: skip


def engine_rows(rng: random.Random) -> Iterator[Row]:
    """Engines beside plyvel; lmdb was not installed for the larger size."""
    for n in (100_000, 1_000_000):
        for group, name, unit, base, factors in QUESTIONS:
            plyvel = _repeats(rng, base * (1 + math.log10(n / 1e5) / 3))
            for engine, factor in zip(ENGINES, factors, strict=True):
                yield _engine_row(rng, group, name, unit, engine, n, factor, plyvel)
    for group, name, unit, base, (ours, _, *factors) in QUESTIONS:
        for peer, factor in zip(ENGINES[2:], factors, strict=True):
            yield _held_row(rng, f"{group}: {name}", unit, base * ours, peer, base * factor)


def kernel_rows(rng: random.Random) -> Iterator[Row]:
    """Rows with targets, two of them missed, and some for information."""
    for group, name, peer, limit, ratio in KERNEL_ROWS:
        theirs = _repeats(rng, 20.0)
        ours = _repeats(rng, min(theirs) * ratio)
        row = Row(
            part="kernels", group=group, name=name, subject=name.partition(",")[0], unit="ns",
            value=min(ours), repeats=ours, peer=peer, peer_repeats=theirs,
            ratio=min(ours) / min(theirs), target=Target(limit, f"at most {limit:g} x {peer}"),
        )  # fmt: skip
        yield judged(row)
    theirs, ours = _repeats(rng, 6.0), _repeats(rng, 3.2)
    row = Row(
        part="kernels", group="Two threads, one blocked filter", name="misses", subject="blocked",
        unit="ns", value=min(ours), repeats=ours, peer="one thread", peer_repeats=theirs,
        ratio=min(theirs) / min(ours),
        target=Target(1.7, "two threads: at least 1.7 x the keys of one", at_least=True),
    )  # fmt: skip
    yield judged(row)
    yield Row(
        part="kernels", group="Building binary fuse", name="from a list", subject="binary-fuse",
        unit="ns", verdict=NOT_MEASURED, target=Target(1.0, "at most 1 x pyfusefilter's C layer"),
        reason="pyfusefilter is not installed: pip install pyfusefilter",
    )  # fmt: skip
    for family in FAMILIES:
        for column in ("build", "hit", "miss", "list", "buffer"):
            taken = _repeats(rng, 30.0)
            yield Row(
                part="kernels", group="Every family at its default", name=family, subject=family,
                at={"column": column}, unit="ns", value=min(taken), repeats=taken,
            )  # fmt: skip


def _engine_row(
    rng: random.Random, group: str, name: str, unit: str, engine: str, n: int, factor: float,
    plyvel: list[float],
) -> Row:  # fmt: skip
    row = Row(part="engine", group=group, name=name, subject=engine, at={"n": n}, unit=unit)
    if engine == "lmdb" and n == 1_000_000:
        reason = "lmdb is not installed: pip install lmdb"
        return attrs.evolve(row, verdict=NOT_MEASURED, reason=reason)
    if engine == "plyvel":
        return attrs.evolve(row, value=min(plyvel), repeats=plyvel)
    taken = _repeats(rng, min(plyvel) * factor)
    return attrs.evolve(
        row, value=min(taken), repeats=taken, peer="plyvel", peer_repeats=plyvel,
        ratio=min(taken) / min(plyvel),
    )  # fmt: skip


def _held_row(
    rng: random.Random, name: str, unit: str, ours: float, peer: str, theirs: float
) -> Row:
    """Ours beside one engine; lmdb was not installed."""
    row = Row(
        part="engine", group="Targets", name=name, subject=ENGINES[0], unit=unit,
        at={"n": 1_000_000, "beside": peer}, target=Target(2.0, f"{name}: at most 2 x {peer}"),
        aim=1.2,
    )  # fmt: skip
    if peer == "lmdb":
        reason = "no ratio: lmdb is not installed: pip install lmdb"
        return attrs.evolve(row, verdict=NOT_MEASURED, reason=reason)
    return timed(attrs.evolve(row, peer=peer), _repeats(rng, ours), _repeats(rng, theirs))


def _filters(group: str, name: str, subject: str, kind: str, n: int, **more: object) -> Row:
    members: Mapping[str, object] = {"verdict": INFORMATION} | more
    return Row(
        part="filters", group=group, name=name, subject=subject, at={"keys": kind, "n": n},
        **members,  # type: ignore[arg-type]
    )  # fmt: skip


def _times(
    rng: random.Random, name: str, subject: str, kind: str, n: int, base: float, peer: str = "",
    floor: float = 0.0,
) -> Row:  # fmt: skip
    taken = _repeats(rng, base)
    theirs = _repeats(rng, floor) if peer else []
    return _filters(
        "Speed", name, subject, kind, n, unit="ns", value=min(taken), repeats=taken, peer=peer,
        peer_repeats=theirs, ratio=min(taken) / min(theirs) if theirs else None,
    )  # fmt: skip


def _reads(name: str, subject: str, level: str, blocks: int, lookups: int, expected: float) -> Row:
    share = blocks / lookups
    low, high = wilson(min(blocks, lookups), lookups)
    return Row(
        part="levels", group="Blocks read per lookup", name=name, subject=subject,
        at={"level": level}, unit="blocks", value=share, expected=expected,
        interval=(low, high) if share <= 1 else (share * 0.99, share * 1.01),
        sigmas=sigmas(blocks, lookups, min(expected, 1.0)) if expected < 1 else 0.0,
        verdict=AS_EXPECTED,
    )  # fmt: skip


def _sized(subject: str, n: int) -> tuple[float, float]:
    family, _, size = subject.partition(" ")
    name, _, value = size.partition("=")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of sizes that a family is not made for
        given = {name: float(value) if "." in value or "e" in value else int(value)}
        family = family.removesuffix(LIVE)
        return sizing.bits_per_key(family, n=n, **given), sizing.fpr(family, n=n, **given)


def _outside_caches(size: float) -> float:
    """0 within the second cache, and more the further beyond."""
    return max(0.0, math.log2(size / CACHES["L2"] + 1)) / 2


def _repeats(rng: random.Random, base: float) -> list[float]:
    return [base * (1 + rng.expovariate(40)) for _ in range(5)]


def _poisson(rng: random.Random, mean: float) -> int:
    """A count of so many on average; by the normal distribution where that is near enough."""
    if mean > 50:
        return max(0, round(rng.gauss(mean, math.sqrt(mean))))
    count, left = 0, math.exp(-mean)
    product = rng.random()
    while product > left:
        count += 1
        product *= rng.random()
    return count
