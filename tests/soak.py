"""``make soak``: no false negative at any size, the long way.

Every family is built and probed with all its keys at sizes from 0 to 200,000, close enough to meet
every probe count, bucket count and segment length there is; the binary fuse and the xor filter,
whose construction can fail, and the bumped ribbon filter, whose cannot, are built at each single
size up to 20,000; and the scalable filter grows to all these sizes from room for one key. Then both
kernels read hostile bytes that no run of the tests has drawn before. Takes some forty minutes.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Iterator

from filters import kernels
from filters.families import FAMILIES
from tests.filters.cases import CASES, Case
from tests.filters.hostile import Attack
from tests.filters.stories import assert_alike

LARGEST = 200_000
EVERY_SIZE_UP_TO = 20_000
HOSTILE_INPUTS = 20_000  # of each family


def sizes() -> Iterator[int]:
    """0 to 100, then steps of three percent, with the neighbours of each power of two."""
    exact = set(range(101)) | {LARGEST}
    exact |= {(1 << power) + step for power in range(6, 18) for step in (-1, 0, 1)}
    size = 100.0
    while size < LARGEST:
        exact.add(round(size))
        size *= 1.03
    yield from sorted(size for size in exact if size <= LARGEST)


def soak_case(name: str, case: Case, keys: list[bytes]) -> None:
    """One family under one size at all sizes."""
    kernel = kernels.load(name)
    for size in sizes():
        part = keys[:size]
        built = case.build(kernel, part)
        lost = built.might_contain_many(part).count(False)
        if lost:
            sys.exit(f"{case} on the {name} kernel denies {lost} of its {size} keys")
        progress(f"{name} {case}", size, LARGEST)


def soak_peeled(name: str, family: str, rng: random.Random) -> None:
    """One family at every size; build_shard raises where no geometry peels the keys."""
    module = getattr(kernels.load(name), family)
    digests = [rng.getrandbits(64) for _ in range(EVERY_SIZE_UP_TO)]
    for width in (8, 16):
        for size in range(EVERY_SIZE_UP_TO + 1):
            module.build_shard(sorted(digests[:size]), width)
            if size % 100 == 0:
                progress(f"{name} {family} {width} bits, each size", size, EVERY_SIZE_UP_TO)


def soak_growth(name: str, keys: list[bytes]) -> None:
    """The scalable filter at all sizes on its way, read back from its bytes at each of them."""
    cls = kernels.load(name).ScalableBloomFilter
    for size in ({}, {"fpr": 0.3, "tightening": 0.5, "growth": 4}, {"fpr": 1e-7}):
        grown, done = cls.with_capacity(1, **size), 0
        for size in sizes():
            grown.add_many(keys[done:size])
            done = size
            grown = cls.from_bytes(grown.to_bytes())
            lost = grown.might_contain_many(keys[:size]).count(False)
            if lost or grown.expected_fpr > grown.fpr:
                sys.exit(
                    f"scalable {size} on the {name} kernel denies {lost} of its {size} keys, "
                    f"and expects a rate of {grown.expected_fpr}"
                )
            progress(f"{name} scalable {size}, growing", size, LARGEST)


def soak_ribbon(name: str, rng: random.Random) -> None:
    """Bumped ribbon at every size on the compiled kernel, at every 97th on the readable one."""
    cls = kernels.load(name).BumpedRibbonFilter
    step = 1 if name == "native" else 97
    digests = cls.digests(seed=1)
    for size in range(EVERY_SIZE_UP_TO + 1):
        if size % step == 0:
            built = cls.build(digests, fpr=0.02, salt=rng.getrandbits(64))
            lost = built.count_missing(digests)
            if lost or built.num_keys != size or built.expected_fpr > 0.0200001:
                sys.exit(f"bumped-ribbon on the {name} kernel fails at {size} keys: {built!r}")
            progress(f"{name} bumped-ribbon, each size", size, EVERY_SIZE_UP_TO)
        digests.add_digest(rng.getrandbits(64))


def soak_hostile(seed: int) -> None:
    """Hostile bytes of every family; an error ends with the line that its corpus is to keep."""
    for family in FAMILIES:
        attack = Attack(random.Random(f"{seed} {family}"))
        for index in range(HOSTILE_INPUTS):
            assert_alike(family, attack.bytes_of(family))
            if index % 100 == 0:
                progress(f"hostile bytes, {family}", index, HOSTILE_INPUTS)


def progress(what: str, done: int, total: int) -> None:
    """One line that is written over and over."""
    print(f"\r{what:<60} {done:>7} of {total}", end="", file=sys.stderr, flush=True)


def main() -> None:
    """Run everything on every kernel; the seed that is printed repeats it."""
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else random.SystemRandom().getrandbits(32)
    print(f"python -m tests.soak {seed}")
    rng = random.Random(seed)
    keys = [rng.randbytes(rng.randrange(6, 40)) for _ in range(LARGEST)]
    start = time.monotonic()
    for name in kernels.available():
        soak_peeled(name, "binary_fuse", rng)
        # Python peels xor filters by itself, which takes an hour: only where nothing is compiled.
        if name == kernels.available()[-1]:
            soak_peeled(name, "xor", rng)
        soak_growth(name, keys)
        soak_ribbon(name, rng)
        for case in CASES:
            soak_case(name, case, keys)
    if "native" in kernels.available():
        soak_hostile(seed)
    print(f"\nno key was lost; {time.monotonic() - start:.0f} s")


if __name__ == "__main__":
    main()
