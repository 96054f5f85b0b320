"""``make demo``: every family over the same keys, in one table.

For each family: stored bits per key, the rate it expects of itself, the rate measured on absent
keys, and what building and probing cost. A filter that denies one of its keys is shown as wrong.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable
from typing import Any, TypeVar

import filters
from filters import sizing
from filters.kernels import CLASS_NAMES, filter_class, fuse_library

Result = TypeVar("Result")

WISHES: dict[str, dict[str, Any]] = {
    "classic": {"bits_per_key": 10},
    "counting": {"counters_per_key": 10},
    "cuckoo": {"fingerprint_bits": 12},
    "blocked": {"bits_per_key": 10},
    "leveldb": {"bits_per_key": 10},
    "rocksdb": {"bits_per_key": 10},
    "binary-fuse": {"fingerprint_bits": 8},
}
COLUMNS = ("family", "asked for", "bits/key", "expected", "measured", "bound", "build", "probe")
ROW = "{:<12} {:<22} {:>8} {:>9} {:>9} {:>7} {:>8} {:>8}"


def timed(action: Callable[[], Result]) -> tuple[Result, float]:
    """What an action returns, and the seconds it took."""
    start = time.perf_counter()
    result = action()
    return result, time.perf_counter() - start


def fuse_builder() -> str:
    """Who builds binary fuse filters here: only the readable kernel leaves that to a library."""
    if filters.KERNEL == "native":
        return "the native kernel"
    return "Python" if fuse_library.why_not() else "pyfusefilter"


def measure(family: str, present: list[bytes], absent: list[bytes]) -> tuple[str, ...]:
    """One family's row of the table."""
    cls: Any = filter_class(family)
    wish = WISHES[family]
    built, build_seconds = timed(lambda: cls.build(present, **wish))
    missing = built.might_contain_many(present).count(False)
    answers, probe_seconds = timed(lambda: built.might_contain_many(absent))
    rate = sum(answers) / len(absent)
    return (
        family,
        ", ".join(f"{name}={value}" for name, value in wish.items()),
        f"{built.bits_per_key:.2f}",
        f"{built.expected_fpr:.3%}",
        f"{rate:.3%}" if not missing else f"WRONG: {missing} lost",
        f"{sizing.lower_bound(rate):.2f}" if rate else "-",
        f"{build_seconds / len(present) * 1e9:.0f} ns",
        f"{probe_seconds / len(absent) * 1e9:.0f} ns",
    )


def main() -> int:
    """Print the table; the exit status is 1 if any filter lost a key."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.demo", description=__doc__)
    parser.add_argument("--keys", type=int, default=100_000, help="how many keys (100000)")
    parser.add_argument("--seed", type=int, default=1, help="of the random 16-byte keys (1)")
    arguments = parser.parse_args()
    if not 1 <= arguments.keys <= 10_000_000:
        parser.error("--keys must lie between 1 and 10000000")
    rng = random.Random(arguments.seed)
    present = [rng.randbytes(16) for _ in range(arguments.keys)]
    absent = [rng.randbytes(17) for _ in range(arguments.keys)]
    print(f"{arguments.keys} random keys of 16 bytes, as many absent ones; seed {arguments.seed}")
    print(f"{filters.KERNEL} kernel ({filters.KERNEL_REASON})")
    print(f"binary fuse built by {fuse_builder()}\n")
    print(ROW.format(*COLUMNS))
    wrong = False
    for family in CLASS_NAMES:
        row = measure(family, present, absent)
        print(ROW.format(*row), flush=True)
        wrong |= "WRONG" in row[4]
    print("\nbound: the bits/key that no filter with the measured rate can go below")
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
