"""iterator(): bounds, directions, steps back and forth, and seeking.

A cursor stands between two entries. Where plyvel's differs from that picture, test_quirks.py says
so, and the programs of test_programs.py hold both implementations to the same steps.
"""

from __future__ import annotations

import functools
import random
import tempfile
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.effort import examples
from tests.lsm.manners.outcomes import compact, keys, only_plyvel

Open = Callable[..., Any]

ALL = [b"1", b"2", b"3", b"4", b"5"]
MISSING = object()


def test_a_database_is_iterated_in_the_order_of_its_keys(db: Any, rng: random.Random) -> None:
    entries = [(rng.randbytes(rng.randrange(6)), b"%d" % number) for number in range(200)]
    model = dict(entries)
    for key, value in entries:
        db.put(key, value)
    assert list(db) == list(db.iterator()) == list(iter(db)) == sorted(model.items())


def test_iterating_a_database_again_begins_again(digits: Any) -> None:
    assert [key for key, _ in digits] == [key for key, _ in digits] == ALL


def test_entries_are_pairs_keys_values_or_nothing(digits: Any) -> None:
    first = {
        (True, True): (b"1", b"value 1"),
        (True, False): b"1",
        (False, True): b"value 1",
        (False, False): None,
    }
    for (key, value), expected in first.items():
        iterator = digits.iterator(include_key=key, include_value=value)
        entry = next(iterator)
        assert entry == expected
        assert type(entry) is type(expected)
        assert len(list(iterator)) == 4
        assert (
            iterator.prev()
            == {
                (True, True): (b"5", b"value 5"),
                (True, False): b"5",
                (False, True): b"value 5",
                (False, False): None,
            }[key, value]
        )


BOUNDS: list[tuple[dict[str, Any], list[bytes]]] = [
    ({}, ALL),
    ({"start": None, "stop": None, "prefix": None}, ALL),
    ({"start": b"2"}, [b"2", b"3", b"4", b"5"]),
    ({"start": b"15"}, [b"2", b"3", b"4", b"5"]),
    ({"start": b""}, ALL),
    ({"start": b"6"}, []),
    ({"stop": b"4"}, [b"1", b"2", b"3"]),
    ({"stop": b"35"}, [b"1", b"2", b"3"]),
    ({"stop": b""}, []),
    ({"stop": b"", "include_stop": True}, []),
    ({"stop": b"6"}, ALL),
    ({"start": b"2", "stop": b"4"}, [b"2", b"3"]),
    ({"start": b"2", "stop": b"4", "include_stop": True}, [b"2", b"3", b"4"]),
    ({"start": b"2", "stop": b"4", "include_start": False}, [b"3"]),
    (
        {"start": b"2", "stop": b"4", "include_start": False, "include_stop": True},
        [b"3", b"4"],
    ),
    ({"start": b"15", "stop": b"45", "include_start": False, "include_stop": True}, ALL[1:4]),
    ({"start": b"4", "stop": b"2"}, []),
    ({"start": b"4", "stop": b"2", "include_stop": True}, []),
    ({"start": b"3", "stop": b"3"}, []),
    ({"start": b"3", "stop": b"3", "include_start": False, "include_stop": True}, []),
    ({"start": b"3", "include_start": False}, [b"4", b"5"]),
    ({"start": b"5", "include_start": False}, []),
    ({"include_start": False}, ALL),
    ({"include_stop": True}, ALL),
    ({"prefix": b""}, ALL),
    ({"prefix": b"6"}, []),
    ({"prefix": b"33"}, []),
    ({"prefix": b"\xff"}, []),
    ({"start": b"3", "include_start": None}, [b"4", b"5"]),
    ({"stop": b"3", "include_stop": None}, [b"1", b"2"]),
    ({"verify_checksums": True, "fill_cache": False}, ALL),
    ({"verify_checksums": None, "fill_cache": None}, ALL),
]


@pytest.mark.parametrize(("bounds", "expected"), BOUNDS, ids=str)
def test_bounds_select(digits: Any, bounds: dict[str, Any], expected: list[bytes]) -> None:
    assert keys(digits.iterator(**bounds)) == expected


@pytest.mark.parametrize(("bounds", "expected"), BOUNDS, ids=str)
def test_bounds_select_the_same_in_reverse(
    digits: Any, bounds: dict[str, Any], expected: list[bytes]
) -> None:
    assert keys(digits.iterator(reverse=True, **bounds)) == expected[::-1]


def test_a_prefix_selects_the_keys_that_begin_so(db: Any) -> None:
    for key in (b"", b"a", b"a\xff", b"a\xff\xff", b"ab", b"b", b"\xff", b"\xff\xff", b"\xff\xffc"):
        db.put(key, b"")
    for prefix in (b"a", b"a\xff", b"b", b"\xff", b"\xff\xff", b"ab", b"", b"c"):
        expected = [key for key in keys(db) if key.startswith(prefix)]
        assert keys(db.iterator(prefix=prefix)) == expected
        for ignored in ({"include_start": False}, {"include_stop": True}):
            assert keys(db.iterator(prefix=prefix, **ignored)) == expected
        if len(expected) > 1:
            assert keys(db.iterator(prefix=prefix, reverse=True)) == expected[::-1]


@pytest.mark.parametrize("prefix", [b"", b"3"])
@pytest.mark.parametrize(
    "bounds", [{"start": b"3"}, {"stop": b"4"}, {"start": b""}, {"start": b"1", "stop": b"2"}]
)
def test_a_prefix_goes_with_no_other_bounds(
    digits: Any, prefix: bytes, bounds: dict[str, bytes]
) -> None:
    with pytest.raises(TypeError, match="prefix"):
        digits.iterator(prefix=prefix, **bounds)
    assert keys(digits.iterator(prefix=prefix, **dict.fromkeys(bounds))) != []


@pytest.mark.parametrize("bound", ["start", "stop", "prefix"])
@pytest.mark.parametrize("value", ["3", "", 3, True, [b"3"], {}], ids=repr)
def test_a_bound_is_bytes(digits: Any, bound: str, value: Any) -> None:
    for view in (digits, digits.snapshot(), digits.prefixed_db(b"")):
        with pytest.raises(TypeError):
            view.iterator(**{bound: value})


@only_plyvel
@pytest.mark.parametrize("bound", ["start", "stop", "prefix"])
@pytest.mark.parametrize(
    "value", [bytearray(b"3"), memoryview(b"3")], ids=lambda value: type(value).__name__
)
def test_a_bound_is_no_buffer(digits: Any, bound: str, value: Any) -> None:
    with pytest.raises(TypeError):
        digits.iterator(**{bound: value})


FLAGS = [
    "reverse",
    "include_start",
    "include_stop",
    "include_key",
    "include_value",
    "verify_checksums",
    "fill_cache",
]


@pytest.mark.parametrize("flag", FLAGS)
def test_a_flag_is_true_false_or_none(digits: Any, flag: str) -> None:
    for view in (digits, digits.snapshot(), digits.prefixed_db(b"")):
        for right in (True, False, None):
            assert len(list(view.iterator(**{flag: right}))) == 5
        assert list(view.iterator(**{flag: None})) == list(view.iterator(**{flag: False}))
        for wrong in (1, 0, "yes", "", b"", []):
            with pytest.raises(TypeError):
                view.iterator(**{flag: wrong})


def test_unknown_and_positional_arguments_are_refused(digits: Any) -> None:
    for view in (digits, digits.snapshot(), digits.prefixed_db(b"")):
        with pytest.raises(TypeError):
            view.iterator(begin=b"1")
        with pytest.raises(TypeError):
            view.iterator(False)


def test_an_iterator_is_its_own_iterator(digits: Any) -> None:
    iterator = digits.iterator()
    assert iter(iterator) is iterator
    with pytest.raises(TypeError):
        len(iterator)
    with pytest.raises(TypeError):
        reversed(iterator)


@pytest.mark.parametrize("reverse", [False, True])
def test_the_end_is_the_end_however_often_asked(digits: Any, reverse: bool) -> None:
    iterator = digits.iterator(reverse=reverse)
    assert len(list(iterator)) == 5
    for _ in range(3):
        with pytest.raises(StopIteration):
            next(iterator)
        assert list(iterator) == []
        assert next(iterator, MISSING) is MISSING


@pytest.mark.parametrize("reverse", [False, True])
def test_an_empty_database_has_no_entries_on_either_side(db: Any, reverse: bool) -> None:
    for bounds in ({}, {"start": b"a"}, {"stop": b"b"}, {"start": b"a", "stop": b"b"}):
        iterator = db.iterator(reverse=reverse, **bounds)
        for move in (
            lambda: None,
            iterator.seek_to_start,
            iterator.seek_to_stop,
            functools.partial(iterator.seek, b""),
            functools.partial(iterator.seek, b"a"),
        ):
            assert move() is None
            for _ in range(2):
                with pytest.raises(StopIteration):
                    next(iterator)
                with pytest.raises(StopIteration):
                    iterator.prev()
    assert list(db) == []


@pytest.mark.parametrize("reverse", [False, True])
def test_prev_gives_back_what_next_gave(digits: Any, reverse: bool) -> None:
    order = ALL[:: -1 if reverse else 1]
    iterator = digits.iterator(reverse=reverse, include_value=False)
    for key in order:
        for _ in range(3):
            assert next(iterator) == key
            assert iterator.prev() == key
        assert next(iterator) == key
    with pytest.raises(StopIteration):
        next(iterator)
    for key in order[::-1]:
        for _ in range(3):
            assert iterator.prev() == key
            assert next(iterator) == key
        assert iterator.prev() == key
    for _ in range(2):
        with pytest.raises(StopIteration):
            iterator.prev()
    assert list(iterator) == order


@pytest.mark.parametrize("reverse", [False, True])
def test_prev_takes_no_arguments(digits: Any, reverse: bool) -> None:
    with pytest.raises(TypeError):
        digits.iterator(reverse=reverse).prev(1)


@pytest.mark.parametrize("include_start", [True, False])
@pytest.mark.parametrize("include_stop", [True, False])
@pytest.mark.parametrize("reverse", [False, True])
def test_walking_to_and_fro_stays_within_the_bounds(
    digits: Any, include_start: bool, include_stop: bool, reverse: bool
) -> None:
    inside = [b"1", b"2", b"3", b"4", b"5"][1 - include_start : 4 + include_stop]
    if reverse:
        inside.reverse()
    iterator = digits.iterator(
        start=b"1",
        stop=b"5",
        include_start=include_start,
        include_stop=include_stop,
        reverse=reverse,
        include_value=False,
    )
    for _ in range(2):
        with pytest.raises(StopIteration):
            iterator.prev()
        assert list(iterator) == inside
        back = []
        for _ in inside:
            back.append(iterator.prev())
        assert back == inside[::-1]


def test_seek_to_start_and_stop_rewind_a_forward_iterator(digits: Any) -> None:
    iterator = digits.iterator(include_value=False)
    for _ in range(2):
        assert iterator.seek_to_start() is None
        with pytest.raises(StopIteration):
            iterator.prev()
        assert next(iterator) == b"1"
        assert iterator.seek_to_stop() is None
        with pytest.raises(StopIteration):
            next(iterator)
        assert iterator.prev() == b"5"
        iterator.seek_to_start()
        assert list(iterator) == ALL
        iterator.seek_to_stop()
        assert list(iterator) == []


def test_start_and_stop_are_those_of_the_keys_in_a_reverse_iterator_too(digits: Any) -> None:
    iterator = digits.iterator(include_value=False, reverse=True)
    iterator.seek_to_start()
    with pytest.raises(StopIteration):
        next(iterator)
    assert iterator.prev() == b"1"
    iterator.seek_to_stop()
    with pytest.raises(StopIteration):
        iterator.prev()
    assert list(iterator) == ALL[::-1]


def test_seek_to_start_and_stop_keep_to_the_bounds(digits: Any) -> None:
    iterator = digits.iterator(start=b"2", stop=b"5", include_value=False)
    iterator.seek_to_stop()
    assert iterator.prev() == b"4"
    iterator.seek_to_start()
    assert next(iterator) == b"2"
    iterator = digits.iterator(
        start=b"2", stop=b"5", include_start=False, include_stop=True, include_value=False
    )
    iterator.seek_to_stop()
    assert iterator.prev() == b"5"
    iterator.seek_to_start()
    assert next(iterator) == b"3"


@pytest.mark.parametrize(
    ("target", "after"),
    [
        (b"", ALL),
        (b"0", ALL),
        (b"1", ALL),
        (b"11", ALL[1:]),
        (b"3", ALL[2:]),
        (b"5", ALL[4:]),
        (b"6", []),
        (b"\xff" * 20, []),
    ],
)
def test_seeking_stands_before_the_first_key_from_there_on(
    digits: Any, target: bytes, after: list[bytes]
) -> None:
    iterator = digits.iterator(include_value=False)
    assert iterator.seek(target) is None
    assert list(iterator) == after
    iterator.seek(target=target)
    iterator.seek(target)
    before = ALL[: len(ALL) - len(after)]
    assert [iterator.prev() for _ in before] == before[::-1]
    with pytest.raises(StopIteration):
        iterator.prev()
    assert list(iterator) == ALL


@pytest.mark.parametrize("target", [b"1", b"2", b"15", b"3", b"5"])
def test_after_seeking_next_and_prev_meet(digits: Any, target: bytes) -> None:
    for reverse in (False, True):
        iterator = digits.iterator(include_value=False, reverse=reverse)
        iterator.seek(target)
        step = next(iterator, None)
        if step is not None:
            assert iterator.prev() == step
            assert next(iterator) == step


def test_seeking_in_a_reverse_iterator_goes_down_from_there(digits: Any) -> None:
    iterator = digits.iterator(include_value=False, reverse=True)
    iterator.seek(b"3")
    assert list(iterator) == [b"2", b"1"]
    iterator.seek(b"35")
    assert list(iterator) == [b"3", b"2", b"1"]
    iterator.seek(b"3")
    assert [iterator.prev() for _ in range(3)] == [b"3", b"4", b"5"]
    iterator.seek(b"9")
    assert next(iterator) == b"5"
    iterator.seek(b"0")
    with pytest.raises(StopIteration):
        next(iterator)
    assert iterator.prev() == b"1"


def test_seeking_keeps_to_the_bounds(digits: Any) -> None:
    iterator = digits.iterator(start=b"2", stop=b"5", include_value=False)
    for target in (b"", b"1", b"15", b"2"):
        iterator.seek(target)
        assert list(iterator) == [b"2", b"3", b"4"]
    for target in (b"5", b"55", b"\xff"):
        iterator.seek(target)
        assert list(iterator) == []
        iterator.seek(target)
        assert iterator.prev() == b"4"
    iterator.seek(b"3")
    assert list(iterator) == [b"3", b"4"]
    prefixed = digits.iterator(prefix=b"3", include_value=False)
    prefixed.seek(b"1")
    assert list(prefixed) == [b"3"]
    prefixed.seek(b"4")
    assert list(prefixed) == []


def test_seeking_starts_over_wherever_it_stood(digits: Any) -> None:
    iterator = digits.iterator(include_value=False)
    assert list(iterator) == ALL
    iterator.seek(b"2")
    iterator.seek(b"4")
    iterator.seek(b"3")
    assert next(iterator) == b"3"
    iterator.seek(b"1")
    with pytest.raises(StopIteration):
        iterator.prev()
    iterator.seek(b"4")
    assert iterator.prev() == b"3"


def test_an_iterator_does_not_see_later_writes(digits: Any) -> None:
    entries = list(digits)
    untouched, running = digits.iterator(), digits.iterator()
    assert next(running) == entries[0]
    digits.put(b"25", b"")
    digits.put(b"3", b"new")
    digits.delete(b"4")
    digits.delete(b"1")
    assert list(untouched) == entries
    assert list(running) == entries[1:]
    for iterator in (untouched, running):
        iterator.seek_to_start()
        assert list(iterator) == entries
        iterator.seek(b"25")
        assert next(iterator) == (b"3", b"value 3")
    assert keys(digits) == [b"2", b"25", b"3", b"5"]


def test_an_iterator_survives_flushes_and_compactions(open_db: Open, rng: random.Random) -> None:
    db = open_db(write_buffer_size=64 << 10, compression=None)
    model = {b"%04d" % number: rng.randbytes(100) for number in range(1000)}
    for key, value in model.items():
        db.put(key, value)
    forward, backward = db.iterator(), db.iterator(reverse=True)
    first = [next(forward) for _ in range(100)]
    last = [next(backward) for _ in range(100)]
    for key in model:
        db.put(key, rng.randbytes(100))
    compact(db)
    for key in model:
        db.delete(key)
    compact(db)
    assert first + list(forward) == sorted(model.items())
    assert last + list(backward) == sorted(model.items(), reverse=True)
    assert list(db) == []


def test_writing_while_iterating_is_fine(digits: Any) -> None:
    for key, value in digits:
        digits.put(key + b" copy", value)
        digits.delete(key)
    assert keys(digits) == [key + b" copy" for key in ALL]


def test_iterators_do_not_disturb_each_other(digits: Any) -> None:
    one, two = digits.iterator(include_value=False), digits.iterator(include_value=False)
    assert [(next(one), next(two)) for _ in range(2)] == [(b"1", b"1"), (b"2", b"2")]
    one.seek(b"5")
    assert next(two) == b"3"
    one.close()
    assert next(two) == b"4"


KEYS = st.binary(max_size=2) | st.sampled_from([b"", b"a", b"ab", b"b", b"\xff"])


@examples(60)
@given(
    entries=st.dictionaries(KEYS, st.binary(max_size=2), max_size=12),
    start=st.none() | KEYS,
    stop=st.none() | KEYS,
    include_start=st.booleans(),
    include_stop=st.booleans(),
    in_tables=st.booleans(),
)
def test_bounds_select_as_comparisons_do(
    api: ModuleType,
    entries: dict[bytes, bytes],
    start: bytes | None,
    stop: bytes | None,
    include_start: bool,
    include_stop: bool,
    in_tables: bool,
) -> None:
    expected = [
        (key, value)
        for key, value in sorted(entries.items())
        if (start is None or key > start or (include_start and key == start))
        and (stop is None or key < stop or (include_stop and key == stop))
    ]
    bounds = {
        "start": start,
        "stop": stop,
        "include_start": include_start,
        "include_stop": include_stop,
    }
    with tempfile.TemporaryDirectory() as at, api.DB(at, create_if_missing=True) as db:
        for key, value in entries.items():
            db.put(key, value)
        if in_tables:
            compact(db)
        assert list(db.iterator(**bounds)) == expected
        assert list(db.snapshot().iterator(**bounds)) == expected
        if [key for key, _ in expected] != [start]:  # test_quirks.py has that one
            assert list(db.iterator(reverse=True, **bounds)) == expected[::-1]
