"""Write batches: operations that are written together or not at all."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.effort import examples
from tests.lsm.manners.outcomes import keys

Open = Callable[..., Any]


def test_nothing_is_there_before_the_batch_is_written(digits: Any) -> None:
    batch = digits.write_batch()
    assert batch.put(b"6", b"value 6") is None
    assert batch.delete(b"1") is None
    assert keys(digits) == [b"1", b"2", b"3", b"4", b"5"]
    assert digits.get(b"6") is None
    assert batch.write() is None
    assert keys(digits) == [b"2", b"3", b"4", b"5", b"6"]


def test_operations_go_in_the_order_they_came(db: Any) -> None:
    with db.write_batch() as batch:
        batch.put(b"last wins", b"1")
        batch.put(b"last wins", b"2")
        batch.put(b"gone", b"")
        batch.delete(b"gone")
        batch.delete(b"back")
        batch.put(b"back", b"")
    assert list(db) == [(b"back", b""), (b"last wins", b"2")]


def test_an_empty_batch_does_nothing(digits: Any) -> None:
    entries = list(digits)
    digits.write_batch().write()
    with digits.write_batch():
        pass
    with digits.write_batch(transaction=True, sync=True):
        pass
    assert list(digits) == entries


def test_clearing_forgets_what_was_to_be_written(digits: Any) -> None:
    batch = digits.write_batch()
    batch.put(b"6", b"")
    batch.delete(b"1")
    assert batch.clear() is None
    batch.put(b"7", b"")
    batch.write()
    assert keys(digits) == [b"1", b"2", b"3", b"4", b"5", b"7"]


def test_writing_keeps_what_is_in_the_batch(db: Any) -> None:
    batch = db.write_batch()
    batch.put(b"key", b"value")
    batch.write()
    assert batch.approximate_size() > 12
    db.delete(b"key")
    batch.put(b"more", b"")
    batch.write()
    assert list(db) == [(b"key", b"value"), (b"more", b"")]


def test_the_end_of_a_block_writes_and_clears(db: Any) -> None:
    with db.write_batch() as batch:
        batch.put(b"key", b"value")
        assert db.get(b"key") is None
    assert db.get(b"key") == b"value"
    assert batch.approximate_size() == 12
    db.delete(b"key")
    with batch:
        batch.put(b"another", b"")
    assert keys(db) == [b"another"]


def test_a_block_hands_out_the_batch_itself(db: Any) -> None:
    batch = db.write_batch()
    with batch as same:
        assert same is batch


def fail_within(batch: Any, error: type[BaseException]) -> None:
    """Put one key in the batch's block, and fail."""
    with batch:
        batch.put(b"before", b"")
        raise error


def test_an_error_in_a_block_does_not_keep_it_from_writing(db: Any) -> None:
    batch = db.write_batch()
    with pytest.raises(ValueError):  # noqa: PT011 - it has no words
        fail_within(batch, ValueError)
    assert keys(db) == [b"before"]
    assert batch.approximate_size() == 12


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_in_a_transaction_writes_nothing(db: Any, error: type[BaseException]) -> None:
    batch = db.write_batch(transaction=True)
    with pytest.raises(error):
        fail_within(batch, error)
    assert list(db) == []
    assert batch.approximate_size() == 12
    batch.write()
    assert list(db) == []


def test_a_transaction_without_an_error_is_written(db: Any) -> None:
    with db.write_batch(transaction=True) as batch:
        batch.put(b"key", b"value")
    assert db.get(b"key") == b"value"


def test_a_transaction_can_be_written_by_hand(db: Any) -> None:
    batch = db.write_batch(transaction=True)
    batch.put(b"key", b"value")
    batch.write()
    batch.clear()
    batch.put(b"within", b"")
    with batch:
        batch.write()
        batch.clear()
    with pytest.raises(KeyError):
        fail_within(batch, KeyError)
    assert keys(db) == [b"key", b"within"]


@pytest.mark.parametrize("sync", [True, False, None])
@pytest.mark.parametrize("transaction", [True, False, None])
def test_every_kind_of_batch_writes(
    api: ModuleType, open_db: Open, path: str, sync: bool, transaction: bool
) -> None:
    db = open_db()
    with db.write_batch(sync=sync, transaction=transaction) as batch:
        batch.put(b"key", b"value")
    db.close()
    with api.DB(path) as again:
        assert list(again) == [(b"key", b"value")]


def test_a_batch_is_one_step_to_iterators_and_snapshots(digits: Any) -> None:
    entries = list(digits)
    iterator, snapshot = digits.iterator(), digits.snapshot()
    with digits.write_batch() as batch:
        batch.delete(b"1")
        batch.put(b"3", b"new")
    assert list(iterator) == list(snapshot) == entries
    assert digits.get(b"1") is None


def test_several_batches_do_not_know_of_each_other(db: Any) -> None:
    first, second = db.write_batch(), db.write_batch()
    first.put(b"key", b"first")
    second.put(b"key", b"second")
    second.write()
    first.write()
    assert db.get(b"key") == b"first"


def test_the_size_is_that_of_the_bytes_to_be_written(db: Any) -> None:
    # A sequence number and a count: 8 and 4 bytes. Then a byte for the kind, and each string
    # behind its length, which takes one byte for each seven bits.
    batch = db.write_batch()
    sizes = [batch.approximate_size()]
    batch.put(b"key", b"value")
    sizes.append(batch.approximate_size())
    batch.delete(b"key")
    sizes.append(batch.approximate_size())
    batch.put(b"", b"")
    sizes.append(batch.approximate_size())
    batch.put(b"k" * 127, b"v" * 128)
    sizes.append(batch.approximate_size())
    batch.delete(b"k" * 128)
    sizes.append(batch.approximate_size())
    batch.put(b"k" * 300, b"v" * 16384)
    sizes.append(batch.approximate_size())
    batch.clear()
    sizes.append(batch.approximate_size())
    added = [11, 5, 3, 1 + 1 + 127 + 2 + 128, 1 + 2 + 128, 1 + 2 + 300 + 3 + 16384]
    assert sizes == [*itertools.accumulate(added, initial=12), 12]


def test_appending_copies_what_the_other_holds(db: Any) -> None:
    first, second = db.write_batch(), db.write_batch()
    first.put(b"a", b"first")
    first.put(b"b", b"first")
    second.put(b"b", b"second")
    second.delete(b"a")
    assert first.append(second) is None
    second.clear()
    second.put(b"never", b"")
    first.write()
    assert list(db) == [(b"b", b"second")]


def test_appending_leaves_the_other_as_it_was(db: Any) -> None:
    first, second = db.write_batch(), db.write_batch()
    second.put(b"key", b"value")
    size = second.approximate_size()
    first.append(second)
    assert first.approximate_size() == second.approximate_size() == size
    second.write()
    assert db.get(b"key") == b"value"


def test_a_batch_can_be_appended_to_itself(db: Any) -> None:
    batch = db.write_batch()
    batch.put(b"key", b"value")
    size = batch.approximate_size()
    batch.append(batch)
    assert batch.approximate_size() == 12 + 2 * (size - 12)
    batch.write()
    assert list(db) == [(b"key", b"value")]


def test_a_batch_of_another_database_can_be_appended(open_db: Open, path: str) -> None:
    here, there = open_db(path), open_db(f"{path}-there")
    batch, foreign = here.write_batch(), there.write_batch()
    foreign.put(b"key", b"value")
    batch.append(foreign)
    batch.write()
    assert list(here) == [(b"key", b"value")]
    assert list(there) == []


@pytest.mark.parametrize("source", [None, b"", {}, [], 1], ids=repr)
def test_only_a_batch_can_be_appended(db: Any, source: Any) -> None:
    with pytest.raises(TypeError):
        db.write_batch().append(source)


def test_the_batch_of_a_prefixed_database_writes_under_its_prefix(digits: Any) -> None:
    digits.put(b"p1", b"")
    with digits.prefixed_db(b"p").write_batch() as batch:
        batch.put(b"key", b"value")
        batch.put(b"", b"empty")
        batch.delete(b"1")
    assert list(digits.iterator(start=b"6")) == [(b"p", b"empty"), (b"pkey", b"value")]
    assert digits.get(b"1") == b"value 1"


def test_a_prefix_counts_in_the_size(db: Any) -> None:
    plain, prefixed = db.write_batch(), db.prefixed_db(b"prefix").write_batch()
    plain.put(b"prefixkey", b"value")
    prefixed.put(b"key", b"value")
    assert plain.approximate_size() == prefixed.approximate_size()


def test_appended_keys_keep_the_prefix_they_came_with(db: Any) -> None:
    plain, prefixed = db.write_batch(), db.prefixed_db(b"p-").write_batch()
    plain.put(b"plain", b"")
    prefixed.put(b"prefixed", b"")
    prefixed.append(plain)
    plain.append(prefixed)
    prefixed.write()
    assert keys(db) == [b"p-prefixed", b"plain"]
    db.delete(b"p-prefixed")
    plain.write()
    assert keys(db) == [b"p-prefixed", b"plain"]


@pytest.mark.parametrize("transaction", [True, False])
def test_a_prefixed_transaction_is_like_any_other(db: Any, transaction: bool) -> None:
    batch = db.prefixed_db(b"p-").write_batch(transaction=transaction, sync=True)
    with pytest.raises(KeyError):
        fail_within(batch, KeyError)
    assert keys(db) == ([] if transaction else [b"p-before"])


def test_a_batch_is_no_collection(db: Any) -> None:
    batch = db.write_batch()
    with pytest.raises(TypeError):
        len(batch)
    with pytest.raises(TypeError):
        iter(batch)


def test_a_refused_operation_leaves_the_batch_as_it_was(db: Any) -> None:
    batch = db.write_batch()
    batch.put(b"key", b"value")
    size = batch.approximate_size()
    calls: list[Callable[[], Any]] = [
        lambda: batch.put("key", b""),
        lambda: batch.put(b"key", "value"),
        lambda: batch.put(b"key", None),
        lambda: batch.delete(None),
        lambda: batch.append(b""),
        lambda: batch.put(b"key"),
        lambda: batch.delete(),
    ]
    for call in calls:
        with pytest.raises(TypeError):
            call()
    assert batch.approximate_size() == size
    batch.write()
    assert list(db) == [(b"key", b"value")]


def test_a_large_batch_is_written_whole(api: ModuleType, open_db: Open, path: str) -> None:
    db = open_db(write_buffer_size=64 << 10)
    entries = [(b"%05d" % number, b"value" * 20) for number in range(3000)]
    with db.write_batch() as batch:
        for key, value in entries:
            batch.put(key, value)
    assert list(db) == entries
    db.close()
    with api.DB(path) as again:
        assert list(again) == entries


OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from([b"", b"a", b"b", b"ab", b"\xff"]), st.none() | st.binary(max_size=3)
    ),
    max_size=8,
)
BATCHES = st.lists(
    st.tuples(
        OPERATIONS,
        st.sampled_from(["write", "write twice", "clear", "block", "transaction", "append"]),
        st.booleans(),
    ),
    max_size=8,
)


def fill(batch: Any, operations: list[tuple[bytes, bytes | None]]) -> None:
    for key, value in operations:
        if value is None:
            batch.delete(key)
        else:
            batch.put(key, value)


@examples(40)
@given(batches=BATCHES)
def test_batches_do_to_a_database_what_they_do_to_a_dictionary(
    api: ModuleType, batches: list[Any]
) -> None:
    model: dict[bytes, bytes] = {}
    with tempfile.TemporaryDirectory() as at, api.DB(at, create_if_missing=True) as db:
        for operations, way, prefixed in batches:
            target = db.prefixed_db(b"p") if prefixed else db
            batch = target.write_batch(transaction=way == "transaction")
            if way == "block":
                with batch:
                    fill(batch, operations)
            elif way == "transaction":
                fill(batch, operations)
                with pytest.raises(KeyError):
                    fail_within(batch, KeyError)
            elif way == "append":
                outer = db.prefixed_db(b"never seen").write_batch()
                fill(batch, operations)
                outer.append(batch)
                outer.write()
            else:
                fill(batch, operations)
                if way == "clear":
                    batch.clear()
                batch.write()
                if way == "write twice":
                    batch.write()
            if way not in ("transaction", "clear"):
                for key, value in operations:
                    whole = b"p" + key if prefixed else key
                    if value is None:
                        model.pop(whole, None)
                    else:
                        model[whole] = value
            assert list(db) == sorted(model.items())
