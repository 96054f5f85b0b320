"""The guarantee: whatever was added is never denied."""

from __future__ import annotations

import random
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.effort import CARRIER, by_effort, examples, once
from tests.filters.cases import DEFAULTS, Case, every_case, every_family, random_keys
from tests.interpreter import fresh

LARGE = by_effort(100_000 if CARRIER == "native" else 20_000, 100_000, 200_000)
KEYS = st.lists(st.binary(max_size=70), max_size=120)


@every_case
@examples(25)
@given(keys=KEYS, repeats=st.integers(1, 3))
def test_holds_for_any_keys_sorted_or_not_repeated_or_not(
    kernel: ModuleType, case: Case, keys: list[bytes], repeats: int
) -> None:
    built = case.build(kernel, keys * repeats)
    assert all(built.might_contain_many(keys))
    assert all(built.might_contain(key) for key in keys)
    assert all(case.build(kernel, sorted(keys)).might_contain_many(keys))
    assert all(case.cls(kernel).from_bytes(built.to_bytes()).might_contain_many(keys))


@every_family
def test_holds_for_every_key_length(kernel: ModuleType, case: Case, rng: random.Random) -> None:
    lengths = [*range(300), 1023, 1024, 1025, 4097, 65535]
    keys = [rng.randbytes(length) for length in lengths]
    built = case.build(kernel, keys)
    assert all(built.might_contain_many(keys))


@once
@every_family
@pytest.mark.parametrize("count", [0, 1, 2, 3, 7, 64, 1000, 4000, 11_480, LARGE])
def test_holds_for_every_size(
    kernel: ModuleType, case: Case, count: int, rng: random.Random
) -> None:
    keys = random_keys(rng, count)
    built = case.build(kernel, keys)
    assert all(built.might_contain_many(keys))
    if count == 0:
        assert not any(built.might_contain_many(random_keys(rng, 1000)))


@every_case
@examples(10)
@given(count=st.integers(0, 3000), seed=st.integers(0, 2**32))
def test_holds_for_any_size(kernel: ModuleType, case: Case, count: int, seed: int) -> None:
    keys = random_keys(random.Random(seed), count, length=9)
    assert all(case.build(kernel, keys).might_contain_many(keys))


_CHILD = """
import sys
from filters.families import FAMILIES
kernel, directory, *families = sys.argv[1:]
keys = [b"key%d" % i for i in range(3000)]
for family in families:
    cls = FAMILIES[family].filter_class(kernel)
    with open(f"{directory}/{family}", "rb") as file:
        built = cls.from_bytes(file.read())
    assert all(built.might_contain_many(keys)), f"{family}: a key was lost on the way"
    print(family, sum(built.might_contain_many([b"other%d" % i for i in range(3000)])))
"""


@pytest.mark.parametrize("hash_seed", ["0", "1"])
def test_holds_in_another_process_with_another_hash_seed(
    kernel: ModuleType, hash_seed: str, tmp_path: Path
) -> None:
    keys, others = ([b"%s%d" % (word, i) for i in range(3000)] for word in (b"key", b"other"))
    positives = []
    for case in DEFAULTS:
        built = case.build(kernel, keys)
        (tmp_path / case.family).write_bytes(built.to_bytes())
        positives.append(f"{case.family} {sum(built.might_contain_many(others))}")
    name = kernel.__name__.rpartition(".")[2]
    families = [case.family for case in DEFAULTS]
    child = fresh(_CHILD, name, str(tmp_path), *families, PYTHONHASHSEED=hash_seed)
    assert child.returncode == 0, child.stderr
    assert child.stdout.splitlines() == positives
