"""Every family as the shared tests see it: at its default, and under the examples of its record."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any

import attrs
import pytest

from filters import kernels
from filters.families import FAMILIES, KEY_FAMILIES, every
from filters.family import Family


def class_of(kernel: ModuleType, family: str) -> Any:
    """A kernel's class for a family."""
    return every()[family].filter_class(kernel.__name__.rpartition(".")[2])


@attrs.frozen
class Case:
    """One family under one sizing parameter, or with another option."""

    family: str
    sizes: dict[str, Any]

    def build(self, kernel: ModuleType, keys: Any, **more: Any) -> Any:
        """Build the filter; unwise sizes are meant here, so their warnings are not."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self.cls(kernel).build(keys, **self.sizes, **more)

    def cls(self, kernel: ModuleType) -> Any:
        return class_of(kernel, self.family)

    @property
    def record(self) -> Family:
        return every()[self.family]

    @property
    def class_name(self) -> str:
        return self.record.class_name

    @property
    def salted(self) -> bool:
        return self.record.is_salted

    def __str__(self) -> str:
        return "-".join([self.family, *(f"{name}={value}" for name, value in self.sizes.items())])


DEFAULTS = [Case(name, {}) for name in FAMILIES]
CASES = [
    Case(name, dict(size)) for name, family in FAMILIES.items() for size in ({}, *family.examples)
]
# Those that have to see keys themselves.
KEY_CASES = [
    Case(name, dict(size))
    for name, family in KEY_FAMILIES.items()
    for size in ({}, *family.examples)
]
SALTED = [case for case in CASES if case.salted]
SALTED_DEFAULTS = [case for case in DEFAULTS if case.salted]
# All but those that answer for ranges: these take keys as they are.
DIGESTED = [case for case in CASES if not case.record.answers_ranges]
DIGESTED_DEFAULTS = [case for case in DEFAULTS if not case.record.answers_ranges]
SALTED_DIGESTED_DEFAULTS = [case for case in DIGESTED_DEFAULTS if case.salted]
GROWING = [case for case in DEFAULTS if hasattr(case.cls(kernels.load("python")), "add")]

# All others can be sized in bits, too, and have to be told how many keys will come.
OF_A_RATE_ONLY = {name for name, family in FAMILIES.items() if family.outgrows}
OF_ANY_CAPACITY = OF_A_RATE_ONLY

UNITING = [case for case in GROWING if hasattr(case.cls(kernels.load("python")), "union")]

every_case = pytest.mark.parametrize("case", CASES, ids=str)
every_family = pytest.mark.parametrize("case", DEFAULTS, ids=str)
every_case_of_both_kinds = pytest.mark.parametrize("case", [*CASES, *KEY_CASES], ids=str)
every_family_of_both_kinds = pytest.mark.parametrize(
    "case", [Case(name, {}) for name in every()], ids=str
)
every_salted_case = pytest.mark.parametrize("case", SALTED, ids=str)
every_salted_family = pytest.mark.parametrize("case", SALTED_DEFAULTS, ids=str)
every_digested_case = pytest.mark.parametrize("case", DIGESTED, ids=str)
every_digested_family = pytest.mark.parametrize("case", DIGESTED_DEFAULTS, ids=str)
every_salted_digested_family = pytest.mark.parametrize("case", SALTED_DIGESTED_DEFAULTS, ids=str)
every_growing_family = pytest.mark.parametrize("case", GROWING, ids=str)
every_uniting_family = pytest.mark.parametrize("case", UNITING, ids=str)

over_filling = pytest.mark.filterwarnings("ignore:a .* filter that was made for:UserWarning")


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
