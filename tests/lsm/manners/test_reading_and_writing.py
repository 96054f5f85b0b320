"""put, get and delete: what keys and values may be, and what comes back."""

from __future__ import annotations

import array
import random
import tempfile
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.effort import examples
from tests.lsm.manners.outcomes import compact, keys, only_lsm, only_plyvel

Open = Callable[..., Any]


class Key(bytes):
    """A kind of bytes."""


def test_what_is_put_comes_back(db: Any) -> None:
    assert db.put(b"key", b"value") is None
    assert db.get(b"key") == b"value"
    assert type(db.get(b"key")) is bytes


def test_what_is_missing_is_none_or_the_default(db: Any) -> None:
    default = object()
    assert db.get(b"key") is None
    assert db.get(b"key", b"default") == b"default"
    assert db.get(b"key", default) is default
    assert db.get(b"key", default=default) is default
    db.put(b"key", b"")
    assert db.get(b"key", default) == b""


def test_putting_again_replaces(db: Any) -> None:
    for value in (b"first", b"", b"third" * 1000, b"fourth"):
        db.put(b"key", value)
        assert db.get(b"key") == value
    assert list(db) == [(b"key", b"fourth")]


def test_deleting_makes_it_missing(db: Any) -> None:
    db.put(b"key", b"value")
    assert db.delete(b"key") is None
    assert db.get(b"key") is None
    assert db.get(b"key", b"default") == b"default"
    assert list(db) == []
    db.put(b"key", b"again")
    assert db.get(b"key") == b"again"


def test_deleting_what_is_missing_does_nothing(digits: Any) -> None:
    entries = list(digits)
    for key in (b"0", b"6", b"", b"11"):
        assert digits.delete(key) is None
        assert digits.delete(key) is None
    assert list(digits) == entries


@pytest.mark.parametrize(
    "key",
    [
        b"",
        b"\0",
        b"\0\0",
        b"\xff",
        b"\xff" * 9,
        b"a\0b",
        b"\r\n",
        bytes(range(256)),
        b"k" * 100_000,
    ],
    ids=lambda key: repr(key[:12]),
)
def test_a_key_is_any_bytes(db: Any, key: bytes) -> None:
    db.put(key, b"value")
    db.put(key + b"\0", b"another")
    assert db.get(key) == b"value"
    db.compact_range()
    assert db.get(key) == b"value"
    assert list(db) == [(key, b"value"), (key + b"\0", b"another")]
    db.delete(key)
    assert db.get(key) is None
    assert keys(db) == [key + b"\0"]


@pytest.mark.parametrize(
    "value",
    [b"", b"\0", b"\xff" * 9, bytes(range(256)) * 20, b"long" * 1_000_000],
    ids=lambda value: repr(value[:12]),
)
def test_a_value_is_any_bytes(db: Any, value: bytes) -> None:
    db.put(b"key", value)
    assert db.get(b"key") == value
    db.compact_range()
    assert db.get(b"key") == value
    assert list(db) == [(b"key", value)]


BUFFERS: list[Any] = [
    bytearray(b"abcdef"),
    memoryview(b"abcdef"),
    memoryview(bytearray(b"abcdef")),
    memoryview(b"-abcdef-")[1:-1],
    memoryview(b"abcdef").cast("B", (2, 3)),
    array.array("B", b"abcdef"),
    Key(b"abcdef"),
]


@pytest.mark.parametrize("value", BUFFERS, ids=lambda value: type(value).__name__)
def test_a_value_is_any_buffer_and_comes_back_as_bytes(db: Any, value: Any) -> None:
    db.put(b"key", value)
    assert db.get(b"key") == b"abcdef"
    with db.write_batch() as batch:
        batch.put(b"batch", value)
    assert list(db) == [(b"batch", b"abcdef"), (b"key", b"abcdef")]
    assert {type(found) for pair in db for found in pair} == {bytes}


def test_a_buffer_of_wider_items_gives_its_bytes(db: Any) -> None:
    numbers = array.array("I", [1, 2, 3])
    db.put(b"key", numbers)
    db.prefixed_db(b"prefix ").put(b"key", memoryview(numbers))
    assert db.get(b"key") == db.get(b"prefix key") == numbers.tobytes()


def test_a_value_is_copied_when_it_is_put(db: Any) -> None:
    value = bytearray(b"before")
    db.put(b"key", value)
    batch = db.write_batch()
    batch.put(b"batch", value)
    value[:] = b"after!"
    batch.write()
    assert db.get(b"key") == db.get(b"batch") == b"before"


@pytest.mark.parametrize("value", [None, "text", 1, True, 1.5, [1], [b"a"], {}], ids=repr)
def test_a_value_is_nothing_else(digits: Any, value: Any) -> None:
    entries = list(digits)
    for put in (digits.put, digits.write_batch().put, digits.prefixed_db(b"").put):
        with pytest.raises(TypeError):
            put(b"1", value)
    assert list(digits) == entries


@only_plyvel
def test_a_buffer_with_gaps_is_no_value(db: Any) -> None:
    for put in (db.put, db.write_batch().put):
        with pytest.raises(BufferError):
            put(b"key", memoryview(b"abcdef")[::2])
    assert db.get(b"key") is None


@only_lsm
def test_a_buffer_with_gaps_gives_its_bytes(db: Any) -> None:
    db.put(b"key", memoryview(b"abcdef")[::2])
    assert db.get(b"key") == b"ace"


def key_uses(db: Any) -> list[Callable[[Any], Any]]:
    """Everything that takes a key."""
    prefixed, snapshot = db.prefixed_db(b""), db.snapshot()
    return [
        db.get,
        lambda key: db.put(key, b"value"),
        db.delete,
        prefixed.get,
        lambda key: prefixed.put(key, b"value"),
        prefixed.delete,
        snapshot.get,
        lambda key: db.write_batch().put(key, b"value"),
        db.write_batch().delete,
        db.iterator().seek,
        db.raw_iterator().seek,
        prefixed.iterator().seek,
        db.prefixed_db,
        prefixed.prefixed_db,
    ]


@pytest.mark.parametrize("key", [None, "text", "", 1, 1.5, True, [b"a"], (b"a",)], ids=repr)
def test_a_key_is_bytes(digits: Any, key: Any) -> None:
    entries = list(digits)
    for use in key_uses(digits):
        with pytest.raises(TypeError):
            use(key)
    assert list(digits) == entries


@only_plyvel
@pytest.mark.parametrize("key", BUFFERS, ids=lambda key: type(key).__name__)
def test_a_key_is_no_buffer(digits: Any, key: Any) -> None:
    for use in key_uses(digits):
        with pytest.raises(TypeError):
            use(key)


@only_lsm
@pytest.mark.parametrize("key", BUFFERS, ids=lambda key: type(key).__name__)
def test_a_key_is_any_buffer(digits: Any, key: Any) -> None:
    for use in key_uses(digits):
        use(key)
    digits.put(key, b"value")
    assert digits.get(b"abcdef") == digits.get(key) == b"value"
    assert digits.prefixed_db(b"abc").get(memoryview(b"def")) == b"value"
    assert keys(digits.iterator(start=key)) == [b"abcdef"]
    assert keys(digits.iterator(prefix=key)) == [b"abcdef"]
    assert keys(digits.iterator(start=b"5", stop=key)) == [b"5"]
    assert {type(found) for found in keys(digits)} == {bytes}
    digits.delete(key)
    assert digits.get(b"abcdef") is None


@only_lsm
def test_a_key_is_copied_when_it_is_put(db: Any) -> None:
    key = bytearray(b"before")
    db.put(key, b"value")
    key[:] = b"after!"
    assert list(db) == [(b"before", b"value")]


FLAGS = {
    "put": lambda db, flag: db.put(b"1", b"value", sync=flag),
    "delete": lambda db, flag: db.delete(b"1", sync=flag),
    "get, checked": lambda db, flag: db.get(b"1", verify_checksums=flag),
    "get, cached": lambda db, flag: db.get(b"1", fill_cache=flag),
    "snapshot, checked": lambda db, flag: db.snapshot().get(b"1", verify_checksums=flag),
    "snapshot, cached": lambda db, flag: db.snapshot().get(b"1", fill_cache=flag),
    "prefixed put": lambda db, flag: db.prefixed_db(b"").put(b"1", b"value", sync=flag),
    "prefixed delete": lambda db, flag: db.prefixed_db(b"").delete(b"1", sync=flag),
    "prefixed, checked": lambda db, flag: db.prefixed_db(b"").get(b"1", verify_checksums=flag),
    "prefixed, cached": lambda db, flag: db.prefixed_db(b"").get(b"1", fill_cache=flag),
    "batch": lambda db, flag: db.write_batch(sync=flag),
    "transaction": lambda db, flag: db.write_batch(transaction=flag),
    "prefixed batch": lambda db, flag: db.prefixed_db(b"").write_batch(sync=flag),
    "raw iterator, checked": lambda db, flag: db.raw_iterator(verify_checksums=flag),
    "raw iterator, cached": lambda db, flag: db.raw_iterator(fill_cache=flag),
}


@pytest.mark.parametrize("use", FLAGS)
def test_a_flag_is_true_false_or_none(digits: Any, use: str) -> None:
    for flag in (True, False, None):
        FLAGS[use](digits, flag)
    for wrong in (1, 0, "yes", "", b"", []):
        with pytest.raises(TypeError):
            FLAGS[use](digits, wrong)


def test_flags_go_by_keyword_only(digits: Any) -> None:
    calls: list[Callable[[], Any]] = [
        lambda: digits.put(b"1", b"value", True),
        lambda: digits.delete(b"1", True),
        lambda: digits.get(b"1", None, True),
        lambda: digits.snapshot().get(b"1", None, True),
        lambda: digits.write_batch(True),
        lambda: digits.raw_iterator(True),
        lambda: digits.iterator(True),
        lambda: digits.snapshot(1),
    ]
    for call in calls:
        with pytest.raises(TypeError):
            call()


def test_arguments_may_go_by_keyword(db: Any) -> None:
    db.put(key=b"key", value=b"value")
    assert db.get(key=b"key", default=None) == b"value"
    db.delete(key=b"key")
    assert db.get(key=b"key", default=b"gone") == b"gone"


@pytest.mark.parametrize("count", [0, 1, 3, 4])
def test_a_call_with_too_few_or_too_many_arguments_is_refused(db: Any, count: int) -> None:
    with pytest.raises(TypeError):
        db.put(*[b""] * count)
    if count != 1:
        with pytest.raises(TypeError):
            db.delete(*[b""] * count)
        with pytest.raises(TypeError):
            db.get(*[b""] * count)


def test_reading_options_do_not_change_the_answer(digits: Any) -> None:
    digits.compact_range()
    for checked in (True, False):
        for cached in (True, False):
            options = {"verify_checksums": checked, "fill_cache": cached}
            assert digits.get(b"3", **options) == b"value 3"
            assert digits.get(b"9", **options) is None


def test_synced_and_unsynced_writes_mix(api: ModuleType, open_db: Open, path: str) -> None:
    db = open_db()
    for number in range(10):
        db.put(b"%d" % number, b"", sync=number % 2 == 0)
    db.delete(b"3", sync=True)
    db.delete(b"4", sync=False)
    db.close()
    with api.DB(path) as again:
        assert keys(again) == [b"%d" % number for number in (0, 1, 2, 5, 6, 7, 8, 9)]


def test_a_database_larger_than_its_buffer_keeps_everything(
    api: ModuleType, open_db: Open, path: str, rng: random.Random
) -> None:
    db = open_db(write_buffer_size=64 << 10, compression=None)
    model: dict[bytes, bytes] = {}
    for _ in range(4000):
        key = b"%04x" % rng.randrange(1500)
        if rng.random() < 0.25:
            db.delete(key)
            model.pop(key, None)
        else:
            model[key] = rng.randbytes(rng.randrange(300))
            db.put(key, model[key])
    entries = sorted(model.items())
    assert list(db) == entries
    assert list(db.iterator(reverse=True)) == entries[::-1]
    assert all(db.get(b"%04x" % number) == model.get(b"%04x" % number) for number in range(1500))
    db.close()
    with api.DB(path) as again:
        assert list(again) == entries
        compact(again)
        assert list(again) == entries
        assert all(again.get(key) == value for key, value in entries)


KEYS = st.binary(max_size=3) | st.sampled_from([b"", b"a", b"b", b"\xff", b"\xff\xff"])
STEPS = st.lists(
    st.tuples(st.just("put"), KEYS, st.binary(max_size=9))
    | st.tuples(st.sampled_from(["delete", "get"]), KEYS, st.none())
    | st.tuples(st.sampled_from(["flush", "compact", "reopen", "list"]), st.none(), st.none()),
    max_size=40,
)


@examples(40)
@given(steps=STEPS)
def test_a_database_is_a_sorted_dictionary(api: ModuleType, steps: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as at:
        db, model = api.DB(at, create_if_missing=True), dict[bytes, bytes]()
        for step, key, value in steps:
            if step == "put":
                db.put(key, value)
                model[key] = value
            elif step == "delete":
                db.delete(key)
                model.pop(key, None)
            elif step == "get":
                assert db.get(key) == model.get(key)
            elif step == "flush":
                db.compact_range()
            elif step == "compact":
                compact(db)
            elif step == "reopen":
                db.close()
                db = api.DB(at)
            else:
                assert list(db) == sorted(model.items())
        assert list(db) == sorted(model.items())
        assert list(db.iterator(reverse=True)) == sorted(model.items(), reverse=True)
        db.close()


def test_threads_may_write_read_and_walk_at_once(open_db: Open) -> None:
    db = open_db(write_buffer_size=32 << 10)
    problems = []

    def work(worker: int) -> None:
        try:
            for number in range(300):
                key = b"%d %04d" % (worker, number)
                db.put(key, key * 10)
                assert db.get(key) == key * 10
                if number % 50 == 0:
                    mine = list(db.iterator(prefix=b"%d " % worker, include_value=False))
                    assert mine == [b"%d %04d" % (worker, past) for past in range(number + 1)]
        except BaseException as error:
            problems.append(error)

    workers = [threading.Thread(target=work, args=(worker,)) for worker in range(4)]
    for thread in workers:
        thread.start()
    for thread in workers:
        thread.join()
    assert problems == []
    assert len(list(db)) == 1200
