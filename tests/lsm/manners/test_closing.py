"""Closing: what goes with the database, what still answers, and who holds it open."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from tests.lsm.manners.outcomes import LOCKED, refused

Open = Callable[..., Any]
CLOSED = "(?i)closed"


def test_closed_says_whether_it_is(db: Any) -> None:
    assert db.closed is False
    assert db.close() is None
    assert db.closed is True


def test_closing_again_does_nothing(db: Any) -> None:
    for _ in range(3):
        assert db.close() is None
    assert db.closed


def test_a_block_closes_the_database_at_its_end(api: ModuleType, path: str) -> None:
    with api.DB(path, create_if_missing=True) as db:
        assert not db.closed
    assert db.closed


def test_a_block_hands_out_the_database_itself(db: Any) -> None:
    with db as same:
        assert same is db


def test_an_error_ends_the_block_and_goes_on(db: Any) -> None:
    def fail() -> None:
        with db:
            db.put(b"key", b"value")
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        fail()
    assert db.closed


def test_closing_inside_the_block_is_fine(db: Any) -> None:
    with db:
        db.close()
    assert db.closed


def test_a_block_of_a_closed_database_is_fine(db: Any) -> None:
    db.close()
    with db:
        assert db.closed


def test_after_closing_it_can_be_opened_again(api: ModuleType, digits: Any, path: str) -> None:
    entries = list(digits)
    digits.close()
    with api.DB(path) as again:
        assert list(again) == entries


USES = {
    "get": lambda db: db.get(b"1"),
    "get with a default": lambda db: db.get(b"1", b"default"),
    "put": lambda db: db.put(b"1", b""),
    "delete": lambda db: db.delete(b"1"),
    "write_batch": lambda db: db.write_batch(),
    "transaction": lambda db: db.write_batch(transaction=True),
    "iterator": lambda db: db.iterator(),
    "iterator with bounds": lambda db: db.iterator(start=b"1", stop=b"2", reverse=True),
    "iterator with bounds that are wrong": lambda db: db.iterator(start=b"1", prefix=b"2"),
    "iter": iter,
    "raw_iterator": lambda db: db.raw_iterator(),
    "snapshot": lambda db: db.snapshot(),
    "get_property": lambda db: db.get_property(b"leveldb.stats"),
    "get_property, unknown": lambda db: db.get_property(b"unknown"),
    "compact_range": lambda db: db.compact_range(),
    "approximate_size": lambda db: db.approximate_size(b"1", b"2"),
    "approximate_sizes": lambda db: db.approximate_sizes((b"1", b"2")),
    "approximate_sizes of nothing": lambda db: db.approximate_sizes(),
    "prefixed get": lambda db: db.prefixed_db(b"1").get(b""),
    "prefixed put": lambda db: db.prefixed_db(b"1").put(b"", b""),
    "prefixed delete": lambda db: db.prefixed_db(b"1").delete(b""),
    "prefixed iterator": lambda db: db.prefixed_db(b"1").iterator(),
    "prefixed iter": lambda db: iter(db.prefixed_db(b"1")),
    "prefixed snapshot": lambda db: db.prefixed_db(b"1").snapshot(),
    "prefixed batch": lambda db: db.prefixed_db(b"1").write_batch().put(b"", b""),
}


@pytest.mark.parametrize("use", USES)
def test_a_closed_database_answers_nothing(digits: Any, use: str) -> None:
    digits.close()
    with pytest.raises(RuntimeError, match=CLOSED):
        USES[use](digits)


def test_a_closed_database_can_still_be_prefixed(db: Any) -> None:
    db.close()
    prefixed = db.prefixed_db(b"a").prefixed_db(b"b")
    assert prefixed.prefix == b"ab"
    assert prefixed.db is db


ITERATORS = {
    "iterator": lambda db: db.iterator(),
    "iter": iter,
    "reverse iterator": lambda db: db.iterator(reverse=True),
    "iterator of a snapshot": lambda db: db.snapshot().iterator(),
    "iterator of a prefixed database": lambda db: db.prefixed_db(b"").iterator(),
    "iterator of its snapshot": lambda db: db.prefixed_db(b"").snapshot().iterator(),
}

STEPS = {
    "next": next,
    "prev": lambda iterator: iterator.prev(),
    "seek": lambda iterator: iterator.seek(b"1"),
    "seek_to_start": lambda iterator: iterator.seek_to_start(),
    "seek_to_stop": lambda iterator: iterator.seek_to_stop(),
}

RAW_ITERATORS = {
    "raw_iterator": lambda db: db.raw_iterator(),
    "raw_iterator of a snapshot": lambda db: db.snapshot().raw_iterator(),
}

RAW_STEPS = {
    "valid": lambda iterator: iterator.valid(),
    "seek_to_first": lambda iterator: iterator.seek_to_first(),
    "seek_to_last": lambda iterator: iterator.seek_to_last(),
    "seek": lambda iterator: iterator.seek(b"1"),
    "next": lambda iterator: iterator.next(),
    "prev": lambda iterator: iterator.prev(),
    "key": lambda iterator: iterator.key(),
    "value": lambda iterator: iterator.value(),
    "item": lambda iterator: iterator.item(),
}


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("make", ITERATORS)
def test_closing_the_database_closes_its_iterators(digits: Any, make: str, step: str) -> None:
    iterator = ITERATORS[make](digits)
    next(iterator)
    digits.close()
    for _ in range(2):
        with pytest.raises(RuntimeError, match=CLOSED):
            STEPS[step](iterator)
    assert iter(iterator) is iterator
    assert iterator.close() is None


@pytest.mark.parametrize("step", RAW_STEPS)
@pytest.mark.parametrize("make", RAW_ITERATORS)
def test_closing_the_database_closes_its_raw_iterators(digits: Any, make: str, step: str) -> None:
    iterator = RAW_ITERATORS[make](digits)
    iterator.seek_to_first()
    digits.close()
    for _ in range(2):
        with pytest.raises(RuntimeError, match=CLOSED):
            RAW_STEPS[step](iterator)
    assert iterator.close() is None


@pytest.mark.parametrize("step", STEPS)
def test_a_closed_iterator_does_nothing(digits: Any, step: str) -> None:
    iterator = digits.iterator()
    next(iterator)
    for _ in range(2):
        assert iterator.close() is None
        with pytest.raises(RuntimeError, match=CLOSED):
            STEPS[step](iterator)
    assert digits.get(b"1") == b"value 1"


@pytest.mark.parametrize("step", RAW_STEPS)
def test_a_closed_raw_iterator_does_nothing(digits: Any, step: str) -> None:
    iterator = digits.raw_iterator()
    iterator.seek_to_first()
    for _ in range(2):
        assert iterator.close() is None
        with pytest.raises(RuntimeError, match=CLOSED):
            RAW_STEPS[step](iterator)
    assert digits.get(b"1") == b"value 1"


@pytest.mark.parametrize("make", [*ITERATORS, *RAW_ITERATORS])
def test_a_block_closes_its_iterator(digits: Any, make: str) -> None:
    iterator = {**ITERATORS, **RAW_ITERATORS}[make](digits)
    with iterator as same:
        assert same is iterator
        iterator.seek(b"2")
    with pytest.raises(RuntimeError, match=CLOSED):
        iterator.seek(b"2")
    with iterator:
        pass
    with pytest.raises(KeyError), iterator:
        raise KeyError("goes on")


@pytest.mark.parametrize("prefixed", [False, True])
def test_closing_the_database_closes_its_snapshots(digits: Any, prefixed: bool) -> None:
    snapshot = (digits.prefixed_db(b"") if prefixed else digits).snapshot()
    digits.close()
    for use in (snapshot.iterator, snapshot.raw_iterator, snapshot.__iter__):
        with pytest.raises(RuntimeError, match=CLOSED):
            use()
    with pytest.raises(RuntimeError, match=CLOSED):
        snapshot.get(b"1", b"default")
    with snapshot:
        assert snapshot.close() is None
        assert snapshot.release() is None


BATCH_USES = {
    "put": lambda batch: batch.put(b"1", b""),
    "delete": lambda batch: batch.delete(b"1"),
    "clear": lambda batch: batch.clear(),
    "write": lambda batch: batch.write(),
    "append": lambda batch: batch.append(batch),
    "approximate_size": lambda batch: batch.approximate_size(),
    "block": lambda batch: batch.__enter__(),
    "end of a block": lambda batch: batch.__exit__(None, None, None),
}


@pytest.mark.parametrize("use", BATCH_USES)
@pytest.mark.parametrize("transaction", [False, True])
def test_closing_the_database_ends_its_batches(digits: Any, use: str, transaction: bool) -> None:
    batch = digits.write_batch(transaction=transaction)
    batch.put(b"1", b"")
    digits.close()
    with pytest.raises(RuntimeError, match=CLOSED):
        BATCH_USES[use](batch)


@pytest.mark.parametrize("transaction", [False, True])
def test_closing_the_database_within_the_block_of_a_batch_is_an_error(
    api: ModuleType, digits: Any, path: str, transaction: bool
) -> None:
    def close_within() -> None:
        with digits.write_batch(transaction=transaction) as batch:
            batch.put(b"1", b"never written")
            digits.close()

    with pytest.raises(RuntimeError, match=CLOSED):
        close_within()
    with api.DB(path) as again:
        assert again.get(b"1") == b"value 1"


def test_a_database_that_nobody_holds_is_closed(api: ModuleType, path: str) -> None:
    db = api.DB(path, create_if_missing=True)
    db.put(b"key", b"value")
    del db
    gc.collect()
    with api.DB(path) as again:
        assert again.get(b"key") == b"value"


HOLDERS = {
    "iterator": (lambda db: db.iterator(), lambda held: next(held) == (b"1", b"")),
    "raw iterator": (
        lambda db: db.raw_iterator(),
        lambda held: (held.seek_to_first(), held.key()) == (None, b"1"),
    ),
    "snapshot": (lambda db: db.snapshot(), lambda held: held.get(b"1") == b""),
    "prefixed database": (lambda db: db.prefixed_db(b"1"), lambda held: held.get(b"") == b""),
    "batch": (lambda db: db.write_batch(), lambda held: held.write() is None),
}


@pytest.mark.parametrize("holder", HOLDERS)
def test_what_was_made_of_a_database_holds_it_open(api: ModuleType, path: str, holder: str) -> None:
    make, works = HOLDERS[holder]
    db = api.DB(path, create_if_missing=True)
    db.put(b"1", b"")
    held = make(db)
    del db
    gc.collect()
    with refused(api, "IOError", LOCKED):
        api.DB(path)
    assert works(held)
    del held
    gc.collect()
    with api.DB(path) as again:
        assert list(again) == [(b"1", b"")]


@pytest.mark.parametrize("make", [*ITERATORS, *RAW_ITERATORS])
def test_a_database_does_not_hold_its_iterators(digits: Any, make: str) -> None:
    iterator = {**ITERATORS, **RAW_ITERATORS}[make](digits)
    gone = weakref.ref(iterator)
    assert gone() is iterator
    del iterator
    gc.collect()
    assert gone() is None
    digits.close()


def test_a_thousand_forgotten_iterators_are_no_burden(digits: Any) -> None:
    for _ in range(1000):
        next(digits.iterator())
        digits.raw_iterator()
        digits.snapshot()
    digits.close()
