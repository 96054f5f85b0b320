"""raw_iterator(): a cursor that stands at an entry, or nowhere."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from tests.lsm.manners.outcomes import compact, raw_items, refused

Open = Callable[..., Any]

NEEDS_AN_ENTRY = ["key", "value", "item", "next", "prev"]


def check_nowhere(api: Any, raw: Any) -> None:
    """It stands at no entry, and every question about one says so."""
    for name in NEEDS_AN_ENTRY:
        assert raw.valid() is False
        with refused(api, "IteratorInvalidError"):
            getattr(raw, name)()
    assert raw.valid() is False


@pytest.mark.parametrize("compact", [False, True])
def test_a_new_one_stands_nowhere(api: Any, digits: Any, compact: bool) -> None:
    if compact:
        digits.compact_range()
    check_nowhere(api, digits.raw_iterator())
    check_nowhere(api, digits.snapshot().raw_iterator())


def test_it_stands_nowhere_in_an_empty_database(api: Any, db: Any) -> None:
    raw = db.raw_iterator()
    for move in (
        raw.seek_to_first,
        raw.seek_to_last,
        lambda: raw.seek(b""),
        lambda: raw.seek(b"a"),
    ):
        assert move() is None
        check_nowhere(api, raw)


def test_it_goes_to_the_first_and_the_last(digits: Any) -> None:
    raw = digits.raw_iterator()
    assert raw.seek_to_last() is None
    assert raw.valid() is True
    assert (raw.key(), raw.value(), raw.item()) == (b"5", b"value 5", (b"5", b"value 5"))
    assert raw.seek_to_first() is None
    assert raw.valid() is True
    assert (raw.key(), raw.value(), raw.item()) == (b"1", b"value 1", (b"1", b"value 1"))
    assert type(raw.key()) is type(raw.value()) is bytes
    assert type(raw.item()) is tuple


def test_reading_does_not_move_it(digits: Any) -> None:
    raw = digits.raw_iterator()
    raw.seek(b"3")
    for _ in range(3):
        assert raw.valid()
        assert (raw.key(), raw.value(), raw.item()) == (b"3", b"value 3", (b"3", b"value 3"))


@pytest.mark.parametrize(
    ("start", "step", "end", "order"),
    [
        ("seek_to_first", "next", "seek_to_last", (b"1", b"2", b"3", b"4", b"5")),
        ("seek_to_last", "prev", "seek_to_first", (b"5", b"4", b"3", b"2", b"1")),
    ],
    ids=["up", "down"],
)
def test_it_walks_up_and_down_and_off_either_end(
    api: Any, digits: Any, start: str, step: str, end: str, order: tuple[bytes, ...]
) -> None:
    raw = digits.raw_iterator()
    getattr(raw, start)()
    for digit in order:
        assert raw.item() == (digit, b"value " + digit)
        assert getattr(raw, step)() is None
    check_nowhere(api, raw)
    getattr(raw, end)()
    assert raw.key() == order[-1]


def test_it_turns_around_anywhere(digits: Any) -> None:
    raw = digits.raw_iterator()
    raw.seek_to_first()
    seen = []
    for step in ("next", "next", "prev", "next", "next", "prev", "prev", "next"):
        getattr(raw, step)()
        seen.append(raw.key())
    assert seen == [b"2", b"3", b"2", b"3", b"4", b"3", b"2", b"3"]


@pytest.mark.parametrize(
    ("target", "key"),
    [(b"", b"1"), (b"0", b"1"), (b"1", b"1"), (b"11", b"2"), (b"4", b"4"), (b"45", b"5")],
)
def test_it_seeks_the_first_key_from_there_on(digits: Any, target: bytes, key: bytes) -> None:
    raw = digits.raw_iterator()
    assert raw.seek(target) is None
    assert raw.key() == key
    raw.seek(target=target)
    assert raw.key() == key


@pytest.mark.parametrize("target", [b"51", b"6", b"\xff" * 9])
def test_seeking_past_the_last_key_leads_nowhere(api: Any, digits: Any, target: bytes) -> None:
    raw = digits.raw_iterator()
    raw.seek_to_first()
    raw.seek(target)
    check_nowhere(api, raw)
    raw.seek(b"2")
    assert raw.key() == b"2"


def test_it_sees_the_database_as_it_was_made(digits: Any) -> None:
    entries = list(digits)
    raw = digits.raw_iterator()
    digits.put(b"0", b"")
    digits.delete(b"1")
    digits.put(b"5", b"new")
    compact(digits)
    assert raw_items(raw) == raw_items(raw) == entries
    assert raw_items(digits.raw_iterator()) == list(digits)


def test_it_does_not_see_what_was_deleted(digits: Any) -> None:
    for key in (b"1", b"3", b"5"):
        digits.delete(key)
    raw = digits.raw_iterator()
    assert [key for key, _ in raw_items(raw)] == [b"2", b"4"]
    raw.seek(b"3")
    assert raw.key() == b"4"
    raw.prev()
    assert raw.key() == b"2"
    raw.seek_to_last()
    assert raw.key() == b"4"


def test_it_is_no_iterator_of_pythons(digits: Any) -> None:
    raw = digits.raw_iterator()
    with pytest.raises(TypeError):
        iter(raw)
    with pytest.raises(TypeError):
        next(raw)


def test_it_takes_reading_options_by_keyword(digits: Any) -> None:
    for view in (digits, digits.snapshot()):
        for flag in (True, False, None):
            raw = view.raw_iterator(verify_checksums=flag, fill_cache=flag)
            assert len(raw_items(raw)) == 5
        with pytest.raises(TypeError):
            view.raw_iterator(True)
        with pytest.raises(TypeError):
            view.raw_iterator(start=b"1")


def test_it_walks_over_a_large_database(open_db: Open, rng: random.Random) -> None:
    db = open_db(write_buffer_size=64 << 10, compression=None)
    model: dict[bytes, bytes] = {}
    for _ in range(2500):
        key = b"%04x" % rng.randrange(1200)
        if rng.random() < 0.2:
            db.delete(key)
            model.pop(key, None)
        else:
            model[key] = rng.randbytes(100)
            db.put(key, model[key])
    entries = sorted(model.items())
    raw = db.raw_iterator()
    assert raw_items(raw) == entries
    raw.seek_to_last()
    backwards = []
    while raw.valid():
        backwards.append(raw.item())
        raw.prev()
    assert backwards == entries[::-1]
    for number in rng.sample(range(1300), 200):
        raw.seek(b"%04x" % number)
        expected = next((entry for entry in entries if entry[0] >= b"%04x" % number), None)
        assert (raw.item() if raw.valid() else None) == expected
