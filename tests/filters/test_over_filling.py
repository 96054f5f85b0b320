"""Who adds more keys than a filter was made for is told so: once, and at that line."""

from __future__ import annotations

import pickle
import random
import sys
import warnings
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest

from filters import CapacityError, PackedKeys, advice
from tests.filters.cases import GROWING, Case, every_growing_family, random_keys

KEYS = [b"%08d" % i for i in range(400)]
SECRETS = {"seed": 0x0123_4567_89AB_CDEF, "salt": 0xFEDC_BA98_7654_3210}
OVER_FILLED = [case for case in GROWING if case.record.can_be_over_filled]
OTHERS = [case for case in GROWING if not case.record.can_be_over_filled]

every_over_filled = pytest.mark.parametrize("case", OVER_FILLED, ids=str)

Told = list[warnings.WarningMessage]


@pytest.fixture
def told() -> Iterator[Told]:
    """The warnings of a test."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield caught


def made(kernel: ModuleType, case: Case, capacity: int = 100) -> Any:
    return case.cls(kernel).with_capacity(capacity, **SECRETS)


def one_by_one(filter_: Any, keys: list[bytes]) -> None:
    for key in keys:
        filter_.add(key)


WAYS: dict[str, Callable[[Any, list[bytes]], Any]] = {
    "add": one_by_one,
    "add_many": lambda filter_, keys: filter_.add_many(keys),
    "of an iterator": lambda filter_, keys: filter_.add_many(iter(keys)),
    "packed": lambda filter_, keys: filter_.add_many(PackedKeys(b"".join(keys), width=8)),
    "update": lambda filter_, keys: filter_.update(keys[:10], keys[10:]),
}


@every_over_filled
@pytest.mark.parametrize("way", WAYS)
def test_who_adds_too_many_is_told_once_and_where(
    kernel: ModuleType, case: Case, way: str, told: Told
) -> None:
    add, filter_ = WAYS[way], made(kernel, case)
    add(filter_, KEYS[:90])
    assert filter_.num_keys <= 100
    assert not told
    add(filter_, KEYS[90:])
    [warning] = told
    assert warning.category is UserWarning
    assert warning.filename == __file__
    assert add.__code__.co_firstlineno <= warning.lineno <= add.__code__.co_firstlineno + 2
    words = f"a {case.family} filter that was made for 100 keys has "
    assert str(warning.message).startswith(words)
    assert case.record.grows in str(warning.message)
    add(filter_, [key[::-1] for key in KEYS])
    assert len(told) == 1


@every_over_filled
def test_the_key_that_is_too_many_is_the_one_behind_the_last(
    kernel: ModuleType, case: Case, told: Told
) -> None:
    filter_ = made(kernel, case)
    for key in KEYS:
        assert not told
        filter_.add(key)
        if filter_.num_keys > 100:
            break
    assert ["has 101," in str(each.message) for each in told] == [True]


@every_over_filled
@pytest.mark.parametrize("way", [way for way in WAYS if way not in ("add", "update")])
def test_a_warning_that_is_an_error_comes_when_all_are_in(
    kernel: ModuleType, case: Case, way: str
) -> None:
    filter_, silent = made(kernel, case), made(kernel, case)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="made for 100 keys"):
            WAYS[way](filter_, KEYS)
        WAYS[way](filter_, KEYS[:3])
    advice.silently(WAYS[way], silent, KEYS)
    silent.add_many(KEYS[:3])
    assert filter_ == silent


@every_over_filled
def test_copies_and_filters_like_it_are_told_of_as_it_is(
    kernel: ModuleType, case: Case, told: Told
) -> None:
    first = made(kernel, case)
    like, copied = case.cls(kernel).with_capacity(like=first), first.copy()
    for number, each in enumerate((first, like, copied), 1):
        each.add_many(KEYS)
        assert len(told) == number
    first.copy().add_many(KEYS)
    first.add_many(KEYS)
    assert len(told) == 3
    case.cls(kernel).with_capacity(like=first).add_many(KEYS)
    assert len(told) == 4


@every_over_filled
def test_a_filter_that_is_cleared_in_time_is_not_over_filled(
    kernel: ModuleType, case: Case, told: Told
) -> None:
    filter_ = made(kernel, case)
    for _ in range(5):
        filter_.add_many(KEYS[:80])
        filter_.clear()
    assert not told
    filter_.add_many(KEYS)
    assert len(told) == 1


@every_over_filled
def test_bytes_do_not_know_how_many_keys_were_expected(
    kernel: ModuleType, case: Case, told: Told
) -> None:
    filter_ = made(kernel, case)
    case.cls(kernel).from_bytes(filter_.to_bytes()).add_many(KEYS)
    pickle.loads(pickle.dumps(filter_)).add_many(KEYS)
    case.build(kernel, KEYS[:50]).add_many(KEYS)
    assert not told
    assert "tells nobody" in str(case.cls(kernel).with_capacity.__doc__)


@pytest.mark.parametrize("case", OTHERS, ids=str)
def test_what_grows_on_or_refuses_tells_nobody(kernel: ModuleType, case: Case, told: Told) -> None:
    filter_ = made(kernel, case)
    try:
        filter_.add_many(KEYS)
    except CapacityError:
        assert not case.record.outgrows
    assert filter_.num_keys > 100
    assert not told


@every_growing_family
def test_nobody_is_told_of_what_was_made_silently(
    kernel: ModuleType, case: Case, told: Told
) -> None:
    silent = advice.silently(made, kernel, case, 300 if case.family == "cuckoo" else 100)
    silent.add_many(KEYS[:300])
    assert not told


@every_over_filled
def test_nobody_is_told_of_what_is_added_silently(
    kernel: ModuleType, case: Case, told: Told
) -> None:
    advice.silently(made(kernel, case).add_many, KEYS)
    assert not told


@pytest.mark.parametrize("case", OVER_FILLED, ids=str)
def test_who_unites_too_many_is_told_once(kernel: ModuleType, case: Case, told: Told) -> None:
    one, two, three = (made(kernel, case) for _ in range(3))
    for number, each in enumerate((one, two, three)):
        each.add_many(KEYS[80 * number :][:80])
    united = one.union(two, three)
    line = sys._getframe().f_lineno - 1
    assert [(each.filename, each.lineno) for each in told] == [(__file__, line)]
    united.add_many(KEYS[240:])
    assert len(told) == 1
    one |= two
    line = sys._getframe().f_lineno - 1
    assert [each.lineno for each in told[1:]] == [line]
    one |= three
    assert len(told) == 2


@pytest.mark.parametrize("case", [case for case in OVER_FILLED if not case.record.removes], ids=str)
def test_an_estimate_a_little_above_is_no_over_filling(
    kernel: ModuleType, case: Case, rng: random.Random, told: Told
) -> None:
    for _ in range(10):
        keys = random_keys(rng, 300)
        first = case.cls(kernel).with_capacity(300)
        parts = [case.cls(kernel).with_capacity(like=first) for _ in range(3)]
        for number, each in enumerate(parts):
            each.add_many(keys[50 * number :][:200])  # 300 in all, most of them twice
        united = first.union(*parts)
        first |= united
        united.add_many(keys)
    assert not told
