"""The guarantee: whatever was added is never denied."""

from __future__ import annotations

import random
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.effort import examples
from tests.filters.cases import Case, every_case, every_family, random_keys
from tests.interpreter import fresh

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


@every_family
@pytest.mark.parametrize("count", [0, 1, 2, 3, 7, 64, 1000, 4000, 11_480, 100_000])
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
family, kernel, path = sys.argv[1:]
cls = FAMILIES[family].filter_class(kernel)
with open(path, "rb") as file:
    built = cls.from_bytes(file.read())
keys = [b"key%d" % i for i in range(3000)]
assert all(built.might_contain_many(keys)), "a key was lost on the way"
print(sum(built.might_contain_many([b"other%d" % i for i in range(3000)])))
"""


@every_family
def test_holds_in_another_process_with_another_hash_seed(
    kernel: ModuleType, case: Case, tmp_path: object
) -> None:
    path = f"{tmp_path}/filter"
    built = case.build(kernel, [b"key%d" % i for i in range(3000)])
    with open(path, "wb") as file:
        file.write(built.to_bytes())
    name = kernel.__name__.rpartition(".")[2]
    others = sum(built.might_contain_many([b"other%d" % i for i in range(3000)]))
    for hash_seed in ("0", "1"):
        child = fresh(_CHILD, case.family, name, path, PYTHONHASHSEED=hash_seed)
        assert child.returncode == 0, child.stderr
        assert int(child.stdout) == others
