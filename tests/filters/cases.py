"""Every family as the shared tests see it: its class's name and the sizes to try."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any

import attrs
import pytest

from filters import kernels


@attrs.frozen
class Case:
    """One family under one size."""

    family: str
    class_name: str
    sizes: dict[str, Any]
    salted: bool = True

    def build(self, kernel: ModuleType, keys: Any, **more: Any) -> Any:
        """Build the filter; unwise sizes are meant here, so their warnings are not."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return getattr(kernel, self.class_name).build(keys, **self.sizes, **more)

    def cls(self, kernel: ModuleType) -> Any:
        return getattr(kernel, self.class_name)

    def __str__(self) -> str:
        return "-".join([self.family, *(f"{name}={value}" for name, value in self.sizes.items())])


def _cases() -> list[Case]:
    table: list[tuple[str, str, bool, list[dict[str, Any]]]] = [
        (
            "classic",
            "ClassicBloomFilter",
            True,
            [{}, {"bits_per_key": 1}, {"bits_per_key": 16.5}, {"fpr": 0.01}, {"num_probes": 3}],
        ),
        (
            "counting",
            "CountingBloomFilter",
            True,
            [{}, {"counters_per_key": 1}, {"fpr": 0.01}, {"num_probes": 3}],
        ),
        (
            "cuckoo",
            "CuckooFilter",
            True,
            [
                {},
                {"fingerprint_bits": 6},
                {"fingerprint_bits": 32},
                {"bits_per_key": 10},
                {"fpr": 0.01},
            ],
        ),
        (
            "blocked",
            "BlockedBloomFilter",
            True,
            [{}, {"bits_per_key": 1}, {"bits_per_key": 24}, {"fpr": 0.01}, {"num_probes": 3}],
        ),
        (
            "leveldb",
            "LevelDBBloomFilter",
            False,
            [{}, {"bits_per_key": 1}, {"bits_per_key": 20}, {"fpr": 0.02}],
        ),
        (
            "rocksdb",
            "RocksDBBloomFilter",
            False,
            [{}, {"bits_per_key": 1.5}, {"fpr": 0.01}, {"optimize_filters_for_memory": False}],
        ),
        (
            "binary-fuse",
            "BinaryFuseFilter",
            True,
            [{}, {"fingerprint_bits": 16}, {"bits_per_key": 9}, {"fpr": 0.001}],
        ),
        (
            "ribbon",
            "RocksDBRibbonFilter",
            False,
            [{}, {"bits_per_key": 1.5}, {"fpr": 0.0123}],
        ),
        (
            "scalable",
            "ScalableBloomFilter",
            True,
            [{}, {"fpr": 0.2, "tightening": 0.5, "growth": 4}],
        ),
        ("xor", "XorFilter", True, [{}, {"fingerprint_bits": 16}, {"bits_per_key": 10}]),
        (
            "cassandra",
            "CassandraBloomFilter",
            False,
            [{}, {"fp_chance": 0.1}, {"fp_chance": 0.0001}],
        ),
        (
            "bumped-ribbon",
            "BumpedRibbonFilter",
            True,
            [{}, {"bits_per_key": 4.3}, {"fpr": 1e-6}],
        ),
    ]
    return [Case(f, c, w, s) for f, c, s, sizes in table for w in sizes]


CASES = _cases()
DEFAULTS = [case for case in CASES if not case.sizes]
SALTED = [case for case in CASES if case.salted]
SALTED_DEFAULTS = [case for case in DEFAULTS if case.salted]
GROWING_FAMILIES = {"classic", "counting", "blocked", "cuckoo", "scalable"}
GROWING = [case for case in DEFAULTS if case.family in GROWING_FAMILIES]

# All others can be asked for in bits, too, and have to be told how many keys will come.
OF_A_RATE_ONLY = {"scalable"}
OF_ANY_CAPACITY = {"scalable"}

every_case = pytest.mark.parametrize("case", CASES, ids=str)
every_family = pytest.mark.parametrize("case", DEFAULTS, ids=str)
every_salted_case = pytest.mark.parametrize("case", SALTED, ids=str)
every_salted_family = pytest.mark.parametrize("case", SALTED_DEFAULTS, ids=str)
every_growing_family = pytest.mark.parametrize("case", GROWING, ids=str)


def random_keys(rng: random.Random, count: int, length: int = 16) -> list[bytes]:
    """Distinct random keys."""
    keys: set[bytes] = set()
    while len(keys) < count:
        keys.add(rng.randbytes(length))
    return sorted(keys)


def positives(filter_: Any, keys: list[bytes]) -> int:
    """How many of the keys the filter answers "maybe" to."""
    return sum(filter_.might_contain_many(keys))


needs_native = pytest.mark.skipif(
    "native" not in kernels.available(), reason=str(kernels._why_not("native"))
)


def twins() -> tuple[ModuleType, ModuleType]:
    """The readable kernel and the compiled one."""
    return kernels.load("python"), kernels.load("native")


def outcome(ask: Callable[..., Any], *arguments: Any) -> Any:
    """What a call returns, or the type and the text of what it raises."""
    try:
        return ask(*arguments)
    except Exception as error:
        return type(error), str(error)
