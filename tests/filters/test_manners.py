"""Filters as Python has it of a set: ``in``, ``bytes``, ``copy``, ``update``, ``clear``, ``|``."""

from __future__ import annotations

import copy
import inspect
import itertools
import random
from types import ModuleType
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from filters import GeometryMismatchError, header, kernels
from tests.effort import by_effort, examples
from tests.filters.cases import (
    Case,
    every_case_of_both_kinds,
    every_family_of_both_kinds,
    every_growing_family,
    every_uniting_family,
    needs_native,
    outcome,
    random_keys,
    twins,
)

KEYS = [b"key%d" % i for i in range(200)]
OTHERS = [b"other%d" % i for i in range(200)]
SECRETS = {"seed": 0x0123_4567_89AB_CDEF, "salt": 0xFEDC_BA98_7654_3210}


def grown(kernel: ModuleType, case: Case, keys: list[Any], capacity: int = 1000) -> Any:
    """A filter that keys were added to; of a scalable one, in several slices."""
    capacity = 20 if case.record.outgrows else capacity
    made = case.cls(kernel).with_capacity(capacity, **SECRETS)
    made.add_many(keys)
    return made


# ---- in ----


@every_case_of_both_kinds
def test_in_answers_as_might_contain_does(kernel: ModuleType, case: Case) -> None:
    built = case.build(kernel, KEYS)
    forms = [bytes, bytes.decode, bytearray, memoryview]
    for key in KEYS[:40] + OTHERS[:40]:
        for form in forms:
            answer = form(key) in built
            assert answer is built.might_contain(form(key)) is built.might_contain(key)
    assert all(key in built for key in KEYS)
    assert "grüße" * 99 in case.build(kernel, ["grüße" * 99])


@every_family_of_both_kinds
@pytest.mark.parametrize("wrong", [None, 3, 2.5, "\ud800", ["key"], memoryview(b"abcd")[::2]])
def test_in_refuses_what_might_contain_refuses(kernel: ModuleType, case: Case, wrong: Any) -> None:
    built = case.build(kernel, KEYS)
    assert outcome(lambda: wrong in built) == outcome(lambda: built.might_contain(wrong))


@every_family_of_both_kinds
def test_in_says_that_it_means_maybe(kernel: ModuleType, case: Case) -> None:
    assert "maybe" in str(inspect.getdoc(case.cls(kernel).__contains__))


@needs_native
@every_family_of_both_kinds
def test_in_says_maybe_of_what_was_never_built(case: Case) -> None:
    cls = case.cls(twins()[1])
    assert b"key" in cls.__new__(cls)


# ---- bytes and copies ----


@every_case_of_both_kinds
def test_bytes_are_those_of_to_bytes(kernel: ModuleType, case: Case) -> None:
    built = case.build(kernel, KEYS)
    assert bytes(built) == built.to_bytes()
    assert case.cls(kernel).from_bytes(bytes(built)) == built


@every_family_of_both_kinds
@pytest.mark.parametrize("how", [lambda built: built.copy(), copy.copy, copy.deepcopy])
def test_a_copy_is_equal_and_knows_as_much(kernel: ModuleType, case: Case, how: Any) -> None:
    built = case.build(kernel, KEYS)
    copied = how(built)
    assert type(copied) is type(built)
    assert copied == built
    assert copied.num_keys == built.num_keys
    assert (copied is built) == (not hasattr(built, "add"))


@every_growing_family
@pytest.mark.parametrize("view", [False, True])
def test_a_copy_goes_its_own_way(kernel: ModuleType, case: Case, view: bool) -> None:
    made = grown(kernel, case, KEYS[:100])
    before = made.to_bytes()
    made = case.cls(kernel).from_bytes(before) if view else made
    copied, again = made.copy(), made.copy()
    copied.add_many(OTHERS)
    assert made.to_bytes() == again.to_bytes() == before
    assert all(copied.might_contain_many(KEYS[:100] + OTHERS))
    made.add_many(OTHERS)
    assert made.to_bytes() == copied.to_bytes()
    assert again.to_bytes() == before


# ---- clear and update ----


@every_growing_family
@pytest.mark.parametrize("view", [False, True])
def test_a_cleared_filter_is_as_it_was_made(kernel: ModuleType, case: Case, view: bool) -> None:
    data = grown(kernel, case, KEYS).to_bytes()
    kept = bytes(bytearray(data))
    made = case.cls(kernel).from_bytes(data) if view else grown(kernel, case, KEYS)
    empty = grown(kernel, case, [])
    for _ in range(3):
        assert made.clear() is None
        assert made.to_bytes() == empty.to_bytes()
        assert (made.num_keys, made.fill) == (0, 0)
        assert not any(made.might_contain_many(KEYS))
        made.add_many(OTHERS)
        assert made.to_bytes() == grown(kernel, case, OTHERS).to_bytes()
        made.add_many(KEYS)  # a scalable one takes more slices than before, then fewer
    assert data == kept


@every_growing_family
def test_update_adds_the_keys_of_each(kernel: ModuleType, case: Case) -> None:
    made = grown(kernel, case, [])
    assert made.update(KEYS[:50], iter(KEYS[50:70]), (), set(KEYS[70:71])) is None
    made.update()
    assert made.to_bytes() == grown(kernel, case, KEYS[:71]).to_bytes()
    made.update([OTHERS[0], None], [None, OTHERS[1]], nulls="skip")
    assert made.might_contain_many(OTHERS[:2]) == [True, True]


@every_growing_family
@pytest.mark.parametrize("keys", [lambda keys: keys, iter])
def test_update_keeps_what_came_before_a_wrong_key(
    kernel: ModuleType, case: Case, keys: Any
) -> None:
    made = grown(kernel, case, [])
    with pytest.raises(TypeError):
        made.update(KEYS[:3], keys([KEYS[3], 7, KEYS[4]]), KEYS[5:])
    assert made.to_bytes() == grown(kernel, case, KEYS[:4]).to_bytes()


# ---- unions ----


def claiming(made: Any, num_keys: int) -> Any:
    """The same filter in bytes that claim so many keys."""
    fields, payload = header.unpack(made.to_bytes(), made.family)
    changed = attrs.evolve(fields, num_keys=num_keys)
    return type(made).from_bytes(header.pack(changed, payload))


def payload_of(made: Any) -> bytes:
    return bytes(header.unpack(made.to_bytes(), made.family)[1])


@every_uniting_family
@examples(20)
@given(
    parts=st.lists(
        st.lists(st.integers(0, 60).map(b"%d".__mod__), max_size=25), min_size=1, max_size=4
    ),
    capacity=st.integers(100, 400),
)
def test_a_union_is_the_same_in_any_order(
    case: Case, parts: list[list[bytes]], capacity: int
) -> None:
    seen = set()
    for kernel in map(kernels.load, kernels.available()):
        filters = [grown(kernel, case, part, capacity) for part in parts]
        before = [each.to_bytes() for each in filters]
        for order in itertools.permutations(filters):
            first, *rest = order
            united = first.union(*rest)
            seen.add(united.to_bytes())
            assert united is not first
        assert [each.to_bytes() for each in filters] == before
        together = grown(kernel, case, list(itertools.chain(*parts)), capacity)
        assert payload_of(together) == payload_of(united)
        counts = [each.num_keys for each in filters]
        assert max(counts) <= united.num_keys <= sum(counts)
    assert len(seen) == 1


@every_uniting_family
def test_a_union_of_many_knows_how_many_keys_there_are(
    kernel: ModuleType, case: Case, rng: random.Random
) -> None:
    """Also where the parts overlap: of two at a time, each estimate begins with the one before."""
    count = by_effort(300, 2000, 2000)
    keys = random_keys(rng, count)
    parts = [grown(kernel, case, rng.sample(keys, count // 4), 4 * count) for _ in range(12)]
    there = len({key for key in keys if any(key in part for part in parts)})
    united = parts[0].union(*parts[1:])
    if case.record.removes:
        assert united.num_keys == sum(part.num_keys for part in parts)
    else:
        assert united.num_keys == pytest.approx(there, rel=0.05)


@every_uniting_family
def test_a_union_without_others_is_a_copy(kernel: ModuleType, case: Case) -> None:
    made = grown(kernel, case, KEYS)
    united = made.union()
    assert united == made
    united.add(OTHERS[0])
    assert united != made


@every_uniting_family
def test_operators_unite(kernel: ModuleType, case: Case) -> None:
    one, two = grown(kernel, case, KEYS), grown(kernel, case, OTHERS)
    united = one.union(two)
    before = one.to_bytes()
    assert (one | two) == (two | one) == united
    assert one.to_bytes() == before
    same = one
    one |= two
    assert one is same
    assert one == united


@every_uniting_family
def test_a_filter_can_be_united_with_itself(kernel: ModuleType, case: Case) -> None:
    made = grown(kernel, case, KEYS)
    twice = made.union(made)
    made |= made
    assert made == twice
    assert all(made.might_contain_many(KEYS))


@every_uniting_family
def test_uniting_a_view_in_place_leaves_its_bytes(kernel: ModuleType, case: Case) -> None:
    data = grown(kernel, case, KEYS).to_bytes()
    kept = bytes(bytearray(data))
    view = case.cls(kernel).from_bytes(data)
    view |= grown(kernel, case, OTHERS)
    assert all(view.might_contain_many(KEYS + OTHERS))
    assert data == kept


def unlike(kernel: ModuleType, case: Case) -> list[Any]:
    """Filters that one of ``grown`` cannot be united with."""
    cls = case.cls(kernel)
    made = [cls.with_capacity(9000, **SECRETS), cls.with_capacity(1000, **SECRETS, num_probes=3)]
    made += [cls.with_capacity(1000, **{**SECRETS, each: 1}) for each in SECRETS]
    others = (kernel.ClassicBloomFilter, kernel.CountingBloomFilter, kernel.BlockedBloomFilter)
    made += [each.with_capacity(1000, **SECRETS) for each in others if each.family != case.family]
    for each in made:
        each.add_many(OTHERS)
    return made


@every_uniting_family
def test_what_is_unlike_is_refused_and_nothing_has_changed(kernel: ModuleType, case: Case) -> None:
    made = grown(kernel, case, KEYS)
    alike, before = grown(kernel, case, OTHERS), made.to_bytes()
    for other in unlike(kernel, case):
        with pytest.raises(GeometryMismatchError, match="equal "):
            made.union(alike, other)
        with pytest.raises(GeometryMismatchError, match="equal "):
            made |= other
        with pytest.raises(GeometryMismatchError, match="equal "):
            made | other
        assert made.to_bytes() == before


@every_uniting_family
def test_what_is_no_such_filter_is_refused(kernel: ModuleType, case: Case) -> None:
    made = grown(kernel, case, KEYS)
    before = made.to_bytes()
    for other in (3, None, {b"key"}, [made], kernel.CuckooFilter.with_capacity(10)):
        with pytest.raises(TypeError, match="unsupported operand"):
            made | other
        with pytest.raises(TypeError, match="unsupported operand"):
            other | made
        with pytest.raises(TypeError, match="unsupported operand"):
            made |= other
        with pytest.raises(TypeError, match="union takes a"):
            made.union(made, other)
    assert made.to_bytes() == before


@every_uniting_family
def test_a_union_claims_no_more_keys_than_there_may_be(kernel: ModuleType, case: Case) -> None:
    most = claiming(grown(kernel, case, KEYS), header.MAX_KEYS)
    united = most.union(*[most] * 40)
    assert united.num_keys == header.MAX_KEYS
    assert case.cls(kernel).from_bytes(united.to_bytes()) == united


@every_uniting_family
def test_a_union_has_no_fewer_keys_than_any_of_its_parts(kernel: ModuleType, case: Case) -> None:
    """Whatever it looks like: bits may coincide, and bytes may claim anything."""
    made = grown(kernel, case, KEYS)
    parts = [claiming(made, 7), claiming(made, 5000), claiming(made, 60)]
    united = {first.union(*rest).to_bytes() for first, *rest in itertools.permutations(parts)}
    assert len(united) == 1
    assert case.cls(kernel).from_bytes(united.pop()).num_keys in (5000, 5067)
    few = claiming(made, 1)
    assert few.union(few).num_keys == 2
