"""The rows of ``python -m benchmarks kernels`` that are held to a target."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from threading import Thread
from typing import Any

import attrs

from benchmarks import floor
from benchmarks.errors import UnavailableError, WrongAnswersError
from benchmarks.kernels import large
from benchmarks.kernels.bench import Bench, Case, Figures, Group, Settings
from benchmarks.keys import random_packed
from benchmarks.machine import HugePages
from benchmarks.subjects import check_rate
from benchmarks.timing import Sample, by_buffer, run_on
from filters import PackedKeys

LINE_FILTERS = ("blocked", "rocksdb")
RIBBONS = ("ribbon", "bumped-ribbon")
KINDS = {"hit": True, "miss": False}
EMPTY_CALL = "gc.is_tracked(key)"
EMPTY_CALL_NAME = "an empty compiled call"
LINE = "a random cache line"
PREFETCH_DISTANCE = 128


def with_targets(settings: Settings) -> Iterator[Case]:
    """All of them, by headings."""
    yield from single_probes()
    yield from batches_of_lists()
    yield from buffers()
    yield from builds(settings)
    yield from cuckoo()
    yield from ribbons()
    yield from large_filter(settings)
    yield from threads()


def single_probes() -> Iterator[Case]:
    """One key at a time, in both orders."""
    for shuffled, order in ((False, "in order"), (True, "shuffled")):
        group = Group(
            f"One key at a time, {order}",
            "filter.might_contain(key); peer: key in abloom.BloomFilter(n, .01, serializable=True)",
        )
        for family in LINE_FILTERS:
            for kind, known in KINDS.items():
                target = f"{kind}-shuffled" if shuffled else kind
                measure = partial(_single, family=family, known=known, shuffled=shuffled)
                yield Case(group, f"{family}, {kind}", measure, target, "abloom")


def batches_of_lists() -> Iterator[Case]:
    """Batches of a list."""
    group = Group(
        "Batches of 4096 keys from a list, in order",
        "filter.might_contain_many(list); peer: fastbloom_rs contains_bytes_batch(list)",
    )
    for family in LINE_FILTERS:
        for kind, known in KINDS.items():
            measure = partial(_list, family=family, known=known)
            yield Case(group, f"{family}, {kind}", measure, "list", "fastbloom_rs")


def buffers() -> Iterator[Case]:
    """All keys of a buffer at once."""
    group = Group(
        "Keys of a buffer, hashed and answered in one call",
        f"might_contain_many(PackedKeys, out=bytearray); peer: for key in keys: "
        f"{EMPTY_CALL}, which is compiled and returns False; the best of the run",
    )
    for family in LINE_FILTERS:
        for kind, known in KINDS.items():
            measure = partial(_buffer, family=family, known=known)
            yield Case(group, f"{family}, {kind}", measure, "buffer", EMPTY_CALL_NAME)


def builds(settings: Settings) -> Iterator[Case]:
    """Filters built from a list, and binary fuse filters from a buffer of very many keys."""
    group = Group(
        "Building from a list",
        "cls.build(list); peer: a new abloom.BloomFilter and its update(list)",
    )
    for family in LINE_FILTERS:
        measure = partial(_build, family=family, peer="abloom")
        yield Case(group, family, measure, "build", "abloom")
    group = Group(
        "Building binary fuse",
        "8 bits; peer: array('Q', map(xxh3_64_intdigest, list)), then allocate and populate of "
        "pyfusefilter's C; of a buffer: ours of fewer keys",
    )
    measure = partial(_build, family="binary-fuse", peer="pyfusefilter")
    yield Case(group, "from a list", measure, "fuse-build", "pyfusefilter")
    many, few = in_millions(settings.fuse_keys), in_millions(settings.keys)
    name = f"{many} keys of a buffer, beside {few}"
    yield Case(group, name, fuse_of_many, "fuse-build-large", few)


def cuckoo() -> Iterator[Case]:
    """The cuckoo filter beside the blocked one."""
    group = Group("Cuckoo beside blocked", "build(list), might_contain(key); peer: blocked")
    measure = partial(_build, family="cuckoo", peer="blocked")
    yield Case(group, "build", measure, "cuckoo-build", "blocked")
    for kind, known in KINDS.items():
        measure = partial(_single, family="cuckoo", known=known, peer="blocked")
        yield Case(group, kind, measure, "cuckoo-probe", "blocked")


def ribbons() -> Iterator[Case]:
    """The Ribbon filters beside the blocked one."""
    group = Group(
        "Ribbon beside blocked",
        "build(list), might_contain(key), might_contain_many(PackedKeys, out=bytearray); "
        "peer: blocked",
    )
    for family in RIBBONS:
        measure = partial(_build, family=family, peer="blocked")
        yield Case(group, f"{family}, build", measure, "ribbon-build", "blocked")
        for kind, known in KINDS.items():
            measure = partial(_single, family=family, known=known, peer="blocked")
            yield Case(group, f"{family}, {kind}", measure, "ribbon-probe", "blocked")
        for kind, known in KINDS.items():
            measure = partial(_buffer_beside, family=family, known=known, peer="blocked")
            yield Case(group, f"{family}, buffer, {kind}", measure, "ribbon-probe", "blocked")


def large_filter(settings: Settings) -> Iterator[Case]:
    """A filter far larger than the caches, beside the memory it lies in."""
    group = Group(
        f"A half-full blocked filter of {size_of(settings)}",
        "might_contain_many(PackedKeys, out=bytearray); peer: a random line of as much memory with "
        f"pages of the same kind, prefetched {PREFETCH_DISTANCE} ahead",
    )
    yield Case(group, "in memory of the kernel's, huge pages", large_in_own_memory, "large", LINE)
    yield Case(group, "a view of bytes, small pages", large_from_bytes, "large", LINE)


def threads() -> Iterator[Case]:
    """Two threads in one filter."""
    group = Group(
        "Two threads, one blocked filter",
        "might_contain_many(PackedKeys, out=bytearray), own keys and out each; peer: one thread",
    )
    yield Case(group, "misses", two_threads, "threads", "one thread")


def size_of(settings: Settings) -> str:
    """The large filter's size, and that it is a smaller one where it is."""
    if settings.large_bytes == 1 << 30:
        return "1 GB"
    return f"{settings.large_bytes / (1 << 20):g} MB in place of 1 GB"


def in_millions(keys: int) -> str:
    """A number of keys in words."""
    return f"{keys / 1e6:g} M"


def fuse_of_many(bench: Bench) -> Figures:
    """Very many keys, in turn with few of them; both filters are checked first."""
    cls = bench.kernel.BinaryFuseFilter
    many = random_packed(bench.settings.fuse_keys, bench.settings.seed + 2)
    few = bench.keys.packed(True)
    for packed in (many, few):
        built = cls.build(packed)
        missed = len(packed) - sum(built.might_contain_many(packed, out=bytearray(len(packed))))
        if missed:
            raise WrongAnswersError(f"binary-fuse denies {missed} of its {len(packed)} keys")
        absent = bench.keys.packed(False)
        rate = sum(built.might_contain_many(absent, out=bytearray(len(absent)))) / len(absent)
        check_rate("binary-fuse", rate, built.expected_fpr, len(absent))
    return bench.measure(
        Sample(lambda: cls.build(many), len(many)), Sample(lambda: cls.build(few), len(few))
    )


def large_from_bytes(bench: Bench) -> Figures:
    """The large filter as ``from_bytes`` opens it: a view of these bytes, wherever they lie."""
    cls = bench.kernel.BlockedBloomFilter
    data = bench.large_filter
    return in_large(bench, lambda: cls.from_bytes(data), huge=False)


def large_in_own_memory(bench: Bench) -> Figures:
    """The large filter as ``build`` leaves it: one key more moves a view into such memory."""

    def copied() -> Any:
        built = bench.kernel.BlockedBloomFilter.from_bytes(bench.large_filter)
        built.add(b"one key more")
        return built

    return in_large(bench, copied, huge=True)


def in_large(bench: Bench, opened: Callable[[], Any], *, huge: bool) -> Figures:
    """A large filter beside as much memory, once its share of "maybe" is what it must be."""
    keys, settings, pages = bench.large_keys, bench.settings, HugePages()
    built = opened()
    note = pages.taken()
    share = large.check_share(built.might_contain_many(keys, out=bytearray(len(keys))))
    with floor.Memory(settings.large_bytes, huge=huge) as memory:
        lines = random_lines(memory, settings.large_keys)
        return bench.measure(by_buffer(built, keys), lines, note=f"{note}, {share:.2%} maybe")


def random_lines(memory: floor.Memory, count: int, distance: int = PREFETCH_DISTANCE) -> Sample:
    """So many random cache lines."""
    return Sample(lambda: memory.touch(count, distance), count)


def two_threads(bench: Bench) -> Figures:
    """Two threads at once and one alone, each on a processor of its own."""
    if len(bench.processors) < 2:
        raise UnavailableError("this process may use one processor only: two threads need two")
    built, count = bench.built("blocked"), bench.settings.keys
    jobs = [
        (random_packed(count, bench.settings.seed + 3 + each), bytearray(count), processor)
        for each, processor in enumerate(bench.processors[:2])
    ]
    passes, got = bench.settings.thread_passes, [0.0]
    both = Sample(
        lambda: got.append(_together(built, jobs, passes)), 2 * count * passes, time.perf_counter
    )
    alone = Sample(lambda: _together(built, jobs[1:], passes), count * passes, time.perf_counter)
    figures = bench.measure(both, alone)
    return attrs.evolve(figures, note=f"the two had at best {max(got):.0%} of two processors")


def _together(built: Any, jobs: list[tuple[PackedKeys, bytearray, int]], passes: int) -> float:
    """Every job in a thread of its own, until all are done; the share of processors they got."""
    worked: list[float] = []

    def work(keys: PackedKeys, out: bytearray, processor: int) -> None:
        run_on([processor])
        for _ in range(passes):
            built.might_contain_many(keys, out=out)
        worked.append(time.thread_time())

    threads = [Thread(target=work, args=job) for job in jobs]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(worked) / len(jobs) / (time.perf_counter() - start)


def _single(
    bench: Bench, family: str, known: bool, shuffled: bool = False, peer: str = "abloom"
) -> Figures:
    sample = bench.ask(family, known, shuffled=shuffled)
    return bench.measure(sample, bench.ask(peer, known, shuffled=shuffled))


def _list(bench: Bench, family: str, known: bool) -> Figures:
    return bench.measure(bench.ask_list(family, known), bench.ask_list("fastbloom_rs", known))


def _buffer(bench: Bench, family: str, known: bool) -> Figures:
    """The empty call's best is the run's: its repeats beside the filter's and those alone."""
    figures = bench.measure(bench.ask_buffer(family, known), bench.empty_call())
    return attrs.evolve(figures, peer=[*figures.peer, *bench.empty_calls])


def _buffer_beside(bench: Bench, family: str, known: bool, peer: str) -> Figures:
    return bench.measure(bench.ask_buffer(family, known), bench.ask_buffer(peer, known))


def _build(bench: Bench, family: str, peer: str) -> Figures:
    return bench.measure(bench.build(family), bench.build(peer))
