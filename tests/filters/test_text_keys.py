"""Keys that are text: their UTF-8, wherever keys are taken."""

from __future__ import annotations

import random
import sys
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import filters
from filters import kernels
from tests.effort import examples
from tests.filters.cases import (
    Case,
    every_case_of_both_kinds,
    every_family,
    every_family_of_both_kinds,
    every_growing_family,
    needs_native,
    outcome,
    twins,
)

SEED, SALT = 0x0123_4567_89AB_CDEF, 0xFEDC_BA98_7654_3210

# One character for each number of bytes that UTF-8 has, and for each that CPython stores.
CHARACTERS = ["a", "\x7f", "\x80", "é", "ÿ", "Ā", "߿", "ࠀ", "€", "\ud7ff", "\ue000", "\uffff", "😀"]
# Around the bytes that are encoded without asking Python: 1024, by 1 to 4 for each character.
LENGTHS = [0, 1, 2, 7, 8, 255, 256, 257, 341, 342, 511, 512, 513, 1023, 1024, 1025]
LONE = ["\ud800", "a\udfff", "é" * 300 + "\udc80", "\udbff" * 2000]


def texts() -> list[str]:
    rng = random.Random(5)
    keys = [each * length for each in CHARACTERS for length in LENGTHS[1:]]
    keys += ["".join(rng.choices(CHARACTERS, k=rng.randrange(60))) for _ in range(200)]
    return list(dict.fromkeys(["", "\0", *keys]))


def secrets(case: Case) -> dict[str, int]:
    return {"seed": SEED, "salt": SALT} if case.salted else {}


class Shouted(str):
    """A text of a type of its own, which says otherwise when it is asked for its bytes."""

    def encode(self, *_: Any) -> bytes:
        return b"LOUD"


@every_case_of_both_kinds
def test_a_filter_of_texts_is_that_of_their_bytes(kernel: ModuleType, case: Case) -> None:
    keys = texts()
    encoded = [key.encode() for key in keys]
    built = case.build(kernel, keys, **secrets(case))
    assert built == case.build(kernel, encoded, **secrets(case))
    mixed = [key if i % 3 else key.encode() for i, key in enumerate(keys)]
    for form in (mixed, tuple(mixed), iter(mixed), dict.fromkeys(mixed)):
        assert case.build(kernel, form, **secrets(case)) == built
    asked = [*keys, *(key + "?" for key in keys)]
    answers = built.might_contain_many([key.encode() for key in asked])
    assert built.might_contain_many(asked) == answers
    assert built.might_contain_many(iter(asked)) == answers
    assert [built.might_contain(key) for key in asked] == answers
    out = bytearray(len(asked))
    built.might_contain_many(tuple(asked), out)
    assert list(map(bool, out)) == answers


@every_family
def test_digests_of_texts_are_those_of_their_bytes(kernel: ModuleType, case: Case) -> None:
    seed = {"seed": SEED} if case.salted else {}
    salt = {"salt": SALT} if case.salted else {}
    one, two, three = (case.cls(kernel).digests(**seed) for _ in range(3))
    for key in texts():
        one.add(key)
    two.add_many(texts())
    three.add_many([key.encode() for key in texts()])
    wanted = case.build(kernel, three, **salt)
    assert [case.build(kernel, each, **salt) for each in (one, two)] == [wanted] * 2


@every_growing_family
def test_texts_are_added_and_removed_like_their_bytes(kernel: ModuleType, case: Case) -> None:
    keys = texts()
    one, two = (case.cls(kernel).with_capacity(1000, seed=SEED, salt=SALT) for _ in range(2))
    one.add_many(keys)
    for key in keys:
        two.add(key.encode())
    assert one == two
    one.add("one more")
    two.add(b"one more")
    assert one == two
    if hasattr(one, "remove"):
        assert one.remove("one more")
        assert two.remove(b"one more")
        assert one == two


@examples(100)
@given(keys=st.lists(st.text(), max_size=20), seed=st.integers(0, 2**64 - 1))
def test_any_text(keys: list[str], seed: int) -> None:
    for kernel in (kernels.load(name) for name in kernels.available()):
        built = kernel.CuckooFilter.build(keys, fingerprint_bits=32, seed=seed, salt=1)
        assert built == kernel.CuckooFilter.build(
            [key.encode() for key in keys], fingerprint_bits=32, seed=seed, salt=1
        )
        for key in keys:
            assert filters.digest(key, seed) == filters.digest(key.encode(), seed)
            assert built.might_contain_digest(filters.digest(key, seed))


@every_family_of_both_kinds
def test_a_type_of_text_is_its_characters(kernel: ModuleType, case: Case) -> None:
    built = case.build(kernel, [Shouted("quiet"), Shouted("é")], **secrets(case))
    assert built == case.build(kernel, [b"quiet", "é"], **secrets(case))
    assert built.might_contain(Shouted("quiet"))


@every_family_of_both_kinds
@pytest.mark.parametrize("lone", LONE, ids=ascii)
def test_a_lone_surrogate_is_an_error_that_names_the_key(
    kernel: ModuleType, case: Case, lone: str
) -> None:
    built = case.build(kernel, [b"key"], **secrets(case))
    uses = [
        lambda: case.build(kernel, ["fine", lone]),
        lambda: built.might_contain(lone),
        lambda: built.might_contain_many(["fine", lone]),
        lambda: built.might_contain_many(iter(["fine", lone]), bytearray(2)),
    ]
    if hasattr(built, "digests"):
        uses.append(lambda: built.digests().add(lone))
        uses.append(lambda: built.digests().add_many(["fine", lone]))
    for use in uses:
        with pytest.raises(UnicodeEncodeError, match="has a lone surrogate") as refused:
            use()
        assert refused.value.object == lone
        assert repr(lone[:40]) in str(refused.value)


@every_growing_family
def test_a_lone_surrogate_changes_nothing(kernel: ModuleType, case: Case) -> None:
    grown = case.cls(kernel).with_capacity(10)
    grown.add("key")
    before = grown.to_bytes()
    for lone in LONE:
        for change in (grown.add, *([grown.remove] if hasattr(grown, "remove") else [])):
            with pytest.raises(ValueError, match="has a lone surrogate"):
                change(lone)
    assert grown.to_bytes() == before


@every_family_of_both_kinds
def test_a_text_in_the_place_of_keys_is_refused(kernel: ModuleType, case: Case) -> None:
    built = case.build(kernel, [b"key"])
    for use in (case.cls(kernel).build, built.might_contain_many):
        with pytest.raises(TypeError, match="not as one str: pass a single key in a list"):
            use("key")


@pytest.mark.parametrize("name", ["SurfFilter", "GrafiteFilter"])
def test_bounds_may_be_texts(kernel: ModuleType, name: str) -> None:
    built = getattr(kernel, name).build(["bär", "dachs"], seed=SEED, salt=SALT)
    for low, high in (("b", "c"), ("dachs", None), (None, "c"), ("e", None), ("bär", "bäs")):
        bounds = [None if each is None else each.encode() for each in (low, high)]
        assert built.may_contain_range(low, high) == built.may_contain_range(*bounds)
    with pytest.raises(UnicodeEncodeError, match="has a lone surrogate"):
        built.may_contain_range("\ud800", None)


@needs_native
@every_family_of_both_kinds
def test_kernels_say_the_same_of_texts(case: Case) -> None:
    for wrong in (["fine", "\ud800"], "text", ["fine", 7], ["fine", None], [Shouted("\ud800")]):
        told = []
        for kernel in twins():
            built = case.build(kernel, [b"key"], **secrets(case))
            told.append([outcome(use, wrong) for use in (built.might_contain_many, built.build)])
        assert told[0] == told[1]


@needs_native
def test_texts_grow_no_utf_8_of_their_own() -> None:
    """CPython would keep it as long as the text, once it was asked for it."""
    native = twins()[1]
    keys = [f"schlüssel{i}€" for i in range(100)]
    before = [sys.getsizeof(key) for key in keys]
    built = native.BlockedBloomFilter.build(keys)
    assert all(built.might_contain_many(keys))
    assert all(map(built.might_contain, keys))
    assert [sys.getsizeof(key) for key in keys] == before
