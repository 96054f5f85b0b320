"""The rows of ``python -m benchmarks kernels`` that only inform: no target, often no peer."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from functools import partial
from typing import Any

import attrs
from xxhash import xxh3_64_intdigest

from benchmarks import floor
from benchmarks.errors import UnavailableError, WrongAnswersError
from benchmarks.kernels import large
from benchmarks.kernels.bench import Bench, Case, Figures, Group, Settings
from benchmarks.kernels.rows_with_targets import (
    KINDS,
    LINE,
    LINE_FILTERS,
    PREFETCH_DISTANCE,
    in_large,
    random_lines,
    size_of,
)
from benchmarks.machine import HugePages
from benchmarks.subjects import built_and_checked, ours
from benchmarks.timing import Sample, by_buffer, loop
from filters.families import every

OTHER_DISTANCES = (32, 64, 256)
SIMD_LEVELS = ("portable", "avx2", "avx512")


def information(settings: Settings) -> Iterator[Case]:
    """All of them, by headings."""
    yield from large_variants(settings)
    yield from random_line_variants(settings)
    yield from calls()
    yield from forms()
    yield from families()
    yield from sets()
    yield from simd_levels()
    yield from python_kernel(settings)


def large_variants(settings: Settings) -> Iterator[Case]:
    """The large filter in other memory than ``from_bytes`` of bytes leaves it in."""
    group = Group(
        f"The same filter of {size_of(settings)} in other memory",
        "might_contain_many(PackedKeys, out=bytearray); peer: a random line with such pages",
    )
    yield Case(group, "view, lines on cache lines", partial(_aligned, huge=False), peer=LINE)
    measure = partial(_aligned, huge=True)
    yield Case(group, "view, on cache lines, huge pages", measure, peer=LINE)


def random_line_variants(settings: Settings) -> Iterator[Case]:
    """The random cache line in other circumstances."""
    group = Group(
        f"A random cache line of {size_of(settings)}",
        "the loop in C alone, by how many lines ahead it prefetches",
    )
    far = PREFETCH_DISTANCE
    yield Case(group, f"no huge pages, {far} ahead", partial(_lines, huge=False, distance=far))
    for distance in (far, *OTHER_DISTANCES):
        measure = partial(_lines, huge=True, distance=distance)
        yield Case(group, f"huge pages, {distance} ahead", measure)


def calls() -> Iterator[Case]:
    """What Python itself takes for going through a list of keys."""
    group = Group("Python's own cost of a key in a loop", "for key in keys: ...")
    yield Case(group, "pass", partial(_call, body="pass", subject=None))
    yield Case(group, "gc.is_tracked(key): the empty compiled call", _empty_call)
    empty = partial(_call, body="subject(key)", subject=_empty_function)
    yield Case(group, "an empty Python function of one argument", empty)


def forms() -> Iterator[Case]:
    """Other ways to ask the blocked filter, and steps of what it does."""
    group = Group("The blocked filter in other ways", "beside what the row says")
    for kind, known in KINDS.items():
        measure = partial(_bound, known=known)
        yield Case(group, f"bound method, {kind}", measure, peer="abloom")
    for kind, known in KINDS.items():
        measure = partial(_list, known=known)
        yield Case(group, f"list shuffled, {kind}", measure, peer="fastbloom_rs")
    yield Case(group, "digests of a list", digests_of_list, peer="array('Q', map(xxh3, list))")
    yield Case(group, "count_missing(digests); the goal: about 1 ns", verification)


def families() -> Iterator[Case]:
    """Every family in every form."""
    group = Group(
        "Every family at its default",
        "list: batches of 4096 keys that are in; buffer: PackedKeys with out=, keys that are in",
        columns=("build", "hit", "miss", "list", "buffer"),
    )
    for family in every():
        for form in group.columns:
            yield Case(group, family, partial(_form, family=family, form=form), column=form)


def sets() -> Iterator[Case]:
    """Lookups in Python's set, in both orders."""
    group = Group("Python's set, for comparison", "key in set", columns=tuple(KINDS))
    for shuffled, order in ((False, "in order"), (True, "shuffled")):
        for kind, known in KINDS.items():
            measure = partial(_set, known=known, shuffled=shuffled)
            yield Case(group, order, measure, column=kind)


def simd_levels() -> Iterator[Case]:
    """Filters made under each set of vector instructions."""
    group = Group(
        "Vector instructions",
        "might_contain_many(PackedKeys, out=bytearray), keys that are in",
        columns=LINE_FILTERS,
    )
    for level in SIMD_LEVELS:
        for family in LINE_FILTERS:
            measure = partial(_under_simd, level=level, family=family)
            yield Case(group, level, measure, column=family)


def python_kernel(settings: Settings) -> Iterator[Case]:
    """The compiled kernel beside the readable one."""
    group = Group(
        f"The kernels beside each other, blocked, {settings.python_keys:,} keys",
        "ours: native; peer: python",
    )
    for form in ("build", *KINDS):
        yield Case(group, form, partial(_both_kernels, form=form), peer="python")


def digests_of_list(bench: Bench) -> Figures:
    """Hashing a list of keys, and keeping the digests."""
    keys = bench.keys.in_order[True]

    def digest() -> Any:
        digests = bench.kernel.BlockedBloomFilter.digests()
        digests.add_many(keys)
        return digests

    peer = Sample(lambda: array("Q", map(xxh3_64_intdigest, keys)), len(keys))
    return bench.measure(Sample(digest, len(keys)), peer)


def verification(bench: Bench) -> Figures:
    """Asking a filter for all of its keys, by digests."""
    built, keys = bench.built("blocked"), bench.keys.in_order[True]
    digests = built.digests(seed=built.digest_seed)
    digests.add_many(keys)
    if missed := built.count_missing(digests):
        raise WrongAnswersError(f"blocked denies {missed} of its {len(keys)} keys, by digests")
    return bench.measure(Sample(lambda: built.count_missing(digests), len(keys)))


def _empty_function(key: object) -> None:
    pass


def _call(bench: Bench, body: str, subject: object) -> Figures:
    return bench.measure(loop(body, bench.keys.in_order[True], subject))


def _empty_call(bench: Bench) -> Figures:
    return Figures(bench.empty_calls)


def _bound(bench: Bench, known: bool) -> Figures:
    bound = bench.built("blocked").might_contain
    sample = loop("subject(key)", bench.keys.in_order[known], bound)
    return bench.measure(sample, bench.ask("abloom", known))


def _list(bench: Bench, known: bool) -> Figures:
    return bench.measure(
        bench.ask_list("blocked", known, shuffled=True),
        bench.ask_list("fastbloom_rs", known, shuffled=True),
    )


def _set(bench: Bench, known: bool, shuffled: bool) -> Figures:
    return bench.measure(bench.ask("set", known, shuffled=shuffled))


def _form(bench: Bench, family: str, form: str) -> Figures:
    if form == "build":
        return bench.measure(bench.build(family))
    if form == "list":
        return bench.measure(bench.ask_list(family, True))
    if form == "buffer":
        return bench.measure(bench.ask_buffer(family, True))
    return bench.measure(bench.ask(family, KINDS[form]))


def _under_simd(bench: Bench, level: str, family: str) -> Figures:
    from filters.kernels.native import simd

    if level not in simd.available():
        raise UnavailableError(f"{level} cannot be used on this processor")
    keys, before = bench.keys, simd.in_use()
    simd.use(level)
    try:
        subject = bench.subject(family)
        built = built_and_checked(subject, keys.in_order[True], keys.in_order[False])
    finally:
        simd.use(before)
    return bench.measure(by_buffer(built, keys.packed(True)))


def _both_kernels(bench: Bench, form: str) -> Figures:
    native = _in_kernel(bench, "native", form)
    python = _in_kernel(bench, "python", form)
    figures = bench.measure(native, python)
    times = min(figures.peer) / min(figures.ours)
    return attrs.evolve(figures, note=f"python takes {times:.0f} times as long")


def _in_kernel(bench: Bench, kernel: str, form: str) -> Sample:
    """The blocked filter of a kernel, built or asked, over fewer keys than elsewhere."""
    keys = bench.python_keys.in_order
    subject = ours(kernel, "blocked")
    built = built_and_checked(subject, keys[True], keys[False])
    if form == "build":
        return Sample(lambda: subject.build(keys[True]), len(keys[True]))
    return loop(subject.ask, keys[KINDS[form]], built)


def _aligned(bench: Bench, huge: bool) -> Figures:
    cls = bench.kernel.BlockedBloomFilter
    return in_large(
        bench,
        lambda: cls.from_bytes(large.on_cache_lines(bench.large_filter, huge=huge)),
        huge=huge,
    )


def _lines(bench: Bench, huge: bool, distance: int) -> Figures:
    pages = HugePages()
    with floor.Memory(bench.settings.large_bytes, huge=huge) as memory:
        sample = random_lines(memory, bench.settings.large_keys, distance)
        return bench.measure(sample, note=pages.taken())
