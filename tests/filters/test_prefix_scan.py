"""Prefixes of ascending keys: each once, the same from both kernels and for all forms of keys."""

from __future__ import annotations

import random
from array import array
from collections.abc import Sequence
from importlib import import_module
from itertools import accumulate
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filters import PackedKeys, kernels
from filters.key_prefixes import prefix_of
from tests.effort import examples

RULES = [(1, b""), (3, b""), (255, b""), (0, b":"), (0, b"::"), (0, b"a:"), (0, b"\0"), (0, b":a:")]
KEYS = st.binary(max_size=6) | st.lists(st.sampled_from(b"a:\xff\0"), max_size=9).map(bytes)


def scan_of(kernel: ModuleType) -> Any:
    return import_module(f"{kernel.__name__}.prefixes").PrefixScan


def packed(keys: Sequence[bytes], typecode: str = "q") -> PackedKeys:
    ends = array(typecode, accumulate(map(len, keys), initial=2))
    return PackedKeys(b"__" + b"".join(keys), offsets=ends)


def expected(keys: Sequence[bytes], rule: tuple[int, bytes]) -> list[bytes]:
    found = (prefix_of(key, *rule) for key in keys)
    return sorted({prefix for prefix in found if prefix is not None})


@pytest.mark.parametrize(
    ("rule", "key", "prefix"),
    [
        ((3, b""), b"abcd", b"abc"),
        ((3, b""), b"abc", b"abc"),
        ((3, b""), b"ab", None),
        ((0, b":"), b"user:17:x", b"user:"),
        ((0, b":"), b":", b":"),
        ((0, b":"), b"user", None),
        ((0, b"::"), b"a:b::c", b"a:b::"),
        ((0, b"::"), b"a:b:c", None),
        ((0, b"::"), b"a:b:", None),
    ],
)
def test_the_prefix_of_one_key(
    kernel: ModuleType, rule: tuple[int, bytes], key: bytes, prefix: bytes | None
) -> None:
    assert prefix_of(key, *rule) == prefix
    for keys in ([key], packed([key]), PackedKeys(key, width=len(key))):
        assert list(scan_of(kernel)(*rule).add_many(keys)) == [prefix] * (prefix is not None)


@examples(300)
@given(keys=st.lists(KEYS, max_size=30), cuts=st.integers(1, 4), rule=st.sampled_from(RULES))
def test_each_prefix_is_found_once_however_keys_are_cut(
    keys: list[bytes], cuts: int, rule: tuple[int, bytes]
) -> None:
    keys.sort()
    for name in kernels.available():
        for form in (list, packed, lambda part: packed(part, "i"), tuple):
            scan, found = scan_of(kernels.load(name))(*rule), list[bytes]()
            for at in range(cuts):
                found += scan.add_many(
                    form(keys[at * len(keys) // cuts : (at + 1) * len(keys) // cuts])
                )
            assert found == expected(keys, rule)


def test_forms_can_take_turns(kernel: ModuleType) -> None:
    keys = [b"%03d:%d" % (number // 7, number) for number in range(700)]
    scan, found = scan_of(kernel)(0, b":"), list[bytes]()
    for at in range(0, 700, 5):
        some = keys[at : at + 5]
        found += scan.add_many(packed(some) if at % 2 else some)
    assert found == expected(keys, (0, b":"))


def test_many_and_long_prefixes_are_kept(kernel: ModuleType, rng: random.Random) -> None:
    keys = sorted(rng.randbytes(rng.randrange(200, 400)) for _ in range(3000))
    assert list(scan_of(kernel)(255, b"").add_many(packed(keys))) == expected(keys, (255, b""))
    wide = PackedKeys(b"".join(b"%08d" % number for number in range(5000)), width=8)
    assert list(scan_of(kernel)(7, b"").add_many(wide)) == expected(list(wide), (7, b""))


def test_keys_that_do_not_ascend_lose_no_prefix(kernel: ModuleType) -> None:
    """A comparator may order them so: what comes twice then is found twice."""
    keys = [b"b:1", b"a:1", b"b:2", b"", b"b:3"]
    assert list(scan_of(kernel)(0, b":").add_many(packed(keys))) == [b"b:", b"a:", b"b:"]


def test_no_keys_have_no_prefixes(kernel: ModuleType) -> None:
    scan = scan_of(kernel)(2, b"")
    for keys in ([], packed([]), PackedKeys(b"", width=3), packed([b"", b"a", b""])):
        assert list(scan.add_many(keys)) == []
    assert list(scan.add_many(packed([b"abc"]))) == [b"ab"]


@pytest.mark.parametrize("end", [1, 99, -1])
def test_offsets_that_lie_name_the_key(kernel: ModuleType, end: int) -> None:
    keys = PackedKeys(b"onetwo", offsets=array("q", [0, 3, end]))
    with pytest.raises(ValueError, match=f"packed key 1 claims bytes 3 to {end}:"):
        scan_of(kernel)(2, b"").add_many(keys)
