"""Comparators: orders of the caller's own."""

from __future__ import annotations

import functools
import os
import random
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from tests.lsm.manners.outcomes import keys, raw_items, refused

Open = Callable[..., Any]


def falling(a: bytes, b: bytes) -> int:
    return (a < b) - (a > b)


def caseless(a: bytes, b: bytes) -> int:
    a, b = a.lower(), b.lower()
    return (a > b) - (a < b)


def by_length(a: bytes, b: bytes) -> int:
    return len(a) - len(b) or (a > b) - (a < b)


FALLING: dict[str, Any] = {"comparator": falling, "comparator_name": b"falling"}
CASELESS: dict[str, Any] = {"comparator": caseless, "comparator_name": b"caseless"}
BY_LENGTH: dict[str, Any] = {"comparator": by_length, "comparator_name": b"by length"}


@pytest.mark.parametrize("compact", [False, True])
def test_entries_are_in_the_order_of_the_comparator(open_db: Open, compact: bool) -> None:
    db = open_db(**FALLING)
    for key in (b"2", b"1", b"", b"3", b"22"):
        db.put(key, b"")
    if compact:
        db.compact_range()
    assert keys(db) == [b"3", b"22", b"2", b"1", b""]
    assert keys(db.iterator(reverse=True)) == [b"", b"1", b"2", b"22", b"3"]
    assert keys(db.snapshot()) == keys(db)
    assert [key for key, _ in raw_items(db.raw_iterator())] == keys(db)
    assert db.get(b"22") == b""
    assert db.get(b"4") is None


def test_bounds_are_in_the_order_of_the_comparator(open_db: Open) -> None:
    db = open_db(**FALLING)
    for digit in b"12345":
        db.put(b"%c" % digit, b"")
    assert keys(db.iterator(start=b"4", stop=b"2")) == [b"4", b"3"]
    assert keys(db.iterator(start=b"2", stop=b"4")) == []
    assert keys(db.iterator(start=b"35")) == [b"3", b"2", b"1"]
    assert keys(db.iterator(stop=b"35")) == [b"5", b"4"]
    assert keys(db.iterator(start=b"4", stop=b"2", include_start=False, include_stop=True)) == [
        b"3",
        b"2",
    ]
    assert keys(db.iterator(start=b"4", stop=b"1", reverse=True)) == [b"2", b"3", b"4"]
    assert keys(db.snapshot().iterator(start=b"2")) == [b"2", b"1"]


def test_seeking_is_in_the_order_of_the_comparator(open_db: Open) -> None:
    db = open_db(**FALLING)
    for digit in b"12345":
        db.put(b"%c" % digit, b"")
    iterator = db.iterator(include_value=False)
    iterator.seek(b"35")
    assert next(iterator) == b"3"
    assert iterator.prev() == b"3"
    assert iterator.prev() == b"4"
    iterator.seek(b"9")
    assert next(iterator) == b"5"
    iterator.seek(b"0")
    assert next(iterator, None) is None
    raw = db.raw_iterator()
    raw.seek(b"35")
    assert raw.key() == b"3"
    raw.seek_to_first()
    assert raw.key() == b"5"


@pytest.mark.parametrize("compact", [False, True])
def test_keys_that_compare_equal_are_one_key(open_db: Open, compact: bool) -> None:
    db = open_db(**CASELESS)
    for key in (b"B", b"a", b"C"):
        db.put(key, b"value of " + key)
    if compact:
        db.compact_range()
    db.put(b"b", b"value of b")
    assert db.get(b"A") == b"value of a"
    assert db.get(b"B") == db.get(b"b") == b"value of b"
    db.delete(b"c")
    assert db.get(b"C") is None
    if compact:
        db.compact_range()
    assert len(keys(db)) == 2
    with db.write_batch() as batch:
        batch.delete(b"A")
        batch.put(b"x", b"1")
        batch.put(b"X", b"2")
    assert db.get(b"a") is None
    assert db.get(b"x") == b"2"


@pytest.mark.parametrize("compact", [False, True])
def test_of_equal_keys_the_one_put_last_comes_back(open_db: Open, compact: bool) -> None:
    db = open_db(**CASELESS)
    for key in (b"Key", b"other", b"kEY", b"OTHER"):
        db.put(key, key)
        if compact:
            db.compact_range(start=b"", stop=b"\xff")
    snapshot = db.snapshot()
    db.put(b"key", b"key")
    assert list(db) == [(b"key", b"key"), (b"OTHER", b"OTHER")]
    assert list(db.iterator(reverse=True)) == [(b"OTHER", b"OTHER"), (b"key", b"key")]
    assert raw_items(db.raw_iterator()) == list(db)
    assert list(snapshot) == [(b"kEY", b"kEY"), (b"OTHER", b"OTHER")]
    assert list(snapshot.iterator(reverse=True))[::-1] == list(snapshot)


def test_bounds_compare_equal_too(open_db: Open) -> None:
    db = open_db(**CASELESS)
    for key in (b"a", b"B", b"c"):
        db.put(key, b"")
    assert keys(db.iterator(start=b"b")) == [b"B", b"c"]
    assert keys(db.iterator(start=b"b", include_start=False)) == [b"c"]
    assert keys(db.iterator(stop=b"b")) == [b"a"]
    assert keys(db.iterator(stop=b"b", include_stop=True)) == [b"a", b"B"]
    iterator = db.iterator(include_value=False)
    iterator.seek(b"b")
    assert next(iterator) == b"B"


@pytest.mark.parametrize(
    ("options", "first", "last"),
    [(FALLING, b"\xff", b""), (CASELESS, b"", b"\xff"), (BY_LENGTH, b"", b"\xff" * 9)],
)
def test_a_larger_database_keeps_the_order(
    api: ModuleType,
    path: str,
    rng: random.Random,
    options: dict[str, Any],
    first: bytes,
    last: bytes,
) -> None:
    # Not so large that it is compacted in the background: plyvel holds the GIL while it waits for
    # that at its closing, and that waits for the GIL to call the comparator.
    model: dict[bytes, bytes] = {}
    with api.DB(path, create_if_missing=True, **options) as db:
        for step in range(800):
            key = b"%x" % rng.randrange(600)
            model[key] = rng.randbytes(100)
            db.put(key, model[key])
            if step == 500:
                db.compact_range(start=first, stop=last)
        for key in rng.sample(sorted(model), 50):
            del model[key]
            db.delete(key)
        order = functools.cmp_to_key(options["comparator"])
        entries = sorted(model.items(), key=lambda entry: order(entry[0]))
        assert list(db) == entries
    with api.DB(path, **options) as db:
        db.compact_range(start=first, stop=last)
        assert list(db) == entries
        assert list(db.iterator(reverse=True)) == entries[::-1]
        assert all(db.get(key) == value for key, value in entries)
        assert db.get(b"601") is None


def test_prefixed_databases_get_and_put_under_any_order(open_db: Open) -> None:
    prefixed = open_db(**FALLING).prefixed_db(b"p")
    prefixed.put(b"key", b"value")
    assert prefixed.get(b"key") == prefixed.snapshot().get(b"key") == b"value"
    with prefixed.write_batch() as batch:
        batch.delete(b"key")
    assert prefixed.get(b"key") is None


def test_sizes_are_those_of_ranges_in_the_order(open_db: Open) -> None:
    db = open_db(compression=None, **FALLING)
    for number in range(500):
        db.put(b"%03d" % number, b"value" * 20)
    db.compact_range(start=b"999", stop=b"000")
    backwards, forwards = db.approximate_sizes((b"499", b"001"), (b"001", b"499"))
    assert backwards > 0
    assert forwards == 0


@pytest.mark.parametrize(
    "make", [lambda sign: sign * 1.0, lambda sign: sign * 2**40, lambda sign: sign * 7]
)
def test_only_the_sign_of_a_comparison_counts(open_db: Open, make: Callable[[int], Any]) -> None:
    db = open_db(comparator=lambda a, b: make((a > b) - (a < b)), comparator_name=b"signs")
    for key in (b"2", b"1", b"3", b"2"):
        db.put(key, key)
    assert keys(db) == [b"1", b"2", b"3"]


class Order:
    """A comparator that is an object."""

    def __call__(self, a: bytes, b: bytes) -> int:
        assert type(a) is type(b) is bytes
        return falling(a, b)


def test_a_comparator_is_anything_that_can_be_called_with_bytes(open_db: Open) -> None:
    db = open_db(comparator=Order(), comparator_name=b"object")
    for key in (b"1", b"2"):
        db.put(key, bytearray(b"value"))
    assert keys(db) == [b"2", b"1"]


@pytest.mark.parametrize(
    ("error", "options"),
    [
        (ValueError, {"comparator": falling}),
        (ValueError, {"comparator_name": b"falling"}),
        (ValueError, {"comparator": falling, "comparator_name": None}),
        (ValueError, {"comparator": None, "comparator_name": b"falling"}),
        (ValueError, {"comparator": 1}),
        (TypeError, {"comparator": 1, "comparator_name": b"number"}),
        (TypeError, {"comparator": "falling", "comparator_name": b"text"}),
        (TypeError, {"comparator": falling, "comparator_name": "falling"}),
        (TypeError, {"comparator": falling, "comparator_name": 1}),
    ],
)
def test_a_comparator_and_its_name_go_together(
    api: ModuleType, path: str, error: type[Exception], options: dict[str, Any]
) -> None:
    with pytest.raises(error, match="comparator"):
        api.DB(path, create_if_missing=True, **options)
    assert not os.path.exists(path)
    with pytest.raises(error, match="comparator"):
        api.repair_db(path, **options)
    assert not os.path.exists(path)


def test_a_database_remembers_the_name_of_its_comparator(api: ModuleType, path: str) -> None:
    with api.DB(path, create_if_missing=True, **FALLING) as db:
        db.put(b"1", b"")
        db.put(b"2", b"")
    for options in ({}, CASELESS, {**FALLING, "comparator_name": b"another name"}):
        with refused(api, "Error", "comparator"):
            api.DB(path, **options)
        with refused(api, "Error", "falling"):
            api.DB(path, create_if_missing=True, **options)
    with api.DB(path, comparator=lambda a, b: falling(a, b), comparator_name=b"falling") as db:
        assert keys(db) == [b"2", b"1"]


def test_a_database_of_plain_order_takes_no_comparator(api: ModuleType, path: str) -> None:
    with api.DB(path, create_if_missing=True) as db:
        db.put(b"1", b"")
    with refused(api, "Error", "comparator"):
        api.DB(path, **FALLING)
    with api.DB(path) as db:
        assert keys(db) == [b"1"]


def test_repairing_takes_the_comparator(api: ModuleType, path: str) -> None:
    with api.DB(path, create_if_missing=True, **FALLING) as db:
        for number in range(50):
            db.put(b"%02d" % number, b"value")
    assert api.repair_db(path, **FALLING) is None
    with api.DB(path, **FALLING) as db:
        assert keys(db) == [b"%02d" % number for number in reversed(range(50))]
