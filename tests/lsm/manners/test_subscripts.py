"""What Python asks of containers, as databases, their parts and snapshots answer it."""

from __future__ import annotations

import copy
import pickle
import random
import tempfile
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lsm
from tests.effort import examples
from tests.lsm.manners.outcomes import keys, only_lsm, only_plyvel

Open = Callable[..., Any]

READERS: dict[str, Callable[[Any], Any]] = {
    "DB": lambda db: db,
    "PrefixedDB": lambda db: db.prefixed_db(b""),
    "Snapshot": lambda db: db.snapshot(),
}
KEPT: dict[str, Callable[[Any], Any]] = {
    **READERS,
    "WriteBatch": lambda db: db.write_batch(),
    "Iterator": lambda db: db.iterator(),
    "RawIterator": lambda db: db.raw_iterator(),
}


@only_plyvel
def test_plyvel_looks_for_a_key_among_the_pairs(digits: Any) -> None:
    assert b"1" not in digits
    assert (b"1", b"value 1") in digits


@only_lsm
@pytest.mark.parametrize("kind", READERS)
def test_in_is_whether_the_key_has_a_value(digits: Any, kind: str) -> None:
    digits.put(b"empty", b"")
    digits.delete(b"2")
    reader = READERS[kind](digits)
    for _ in range(2):
        assert b"1" in reader
        assert b"empty" in reader
        assert bytearray(b"3") in reader
        assert b"2" not in reader
        assert b"" not in reader
        assert b"11" not in reader
        digits.compact_range()  # and the same of tables


@only_lsm
@pytest.mark.parametrize("kind", READERS)
@pytest.mark.parametrize("key", ["1", None, 1, (b"1", b"value 1")], ids=repr)
def test_in_takes_keys_only(digits: Any, kind: str, key: Any) -> None:
    with pytest.raises(TypeError, match="key is bytes"):
        key in READERS[kind](digits)  # noqa: B015 - it raises
    with pytest.raises(TypeError, match="key is bytes"):
        READERS[kind](digits)[key]


@only_lsm
def test_a_subscript_is_the_value(digits: Any) -> None:
    snapshot, part = digits.snapshot(), digits.prefixed_db(b"p:")
    digits[b"1"] = b"new"
    part[memoryview(b"key")] = bytearray(b"of the part")
    assert digits[b"1"] == digits.get(b"1") == b"new"
    assert snapshot[b"1"] == b"value 1"
    assert part[b"key"] == digits[b"p:key"] == b"of the part"
    assert type(part[b"key"]) is bytes
    assert b"key" in part
    assert b"p:key" not in snapshot


@only_lsm
@pytest.mark.parametrize("kind", READERS)
def test_a_subscript_without_a_value_is_a_key_error_that_has_the_key(
    digits: Any, kind: str
) -> None:
    digits.delete(b"1")
    for key in (b"absent", b"1"):
        with pytest.raises(KeyError) as caught:
            READERS[kind](digits)[key]
        assert caught.value.args == (key,)


@only_lsm
def test_del_deletes_and_looks_for_nothing_before(digits: Any) -> None:
    part = digits.prefixed_db(b"p:")
    part[b"1"] = b"of the part"
    del digits[b"1"]
    assert b"1" not in digits
    assert b"1" in part
    del part[b"1"]
    assert keys(digits) == [b"2", b"3", b"4", b"5"]
    del digits[b"absent"]  # as delete() and LevelDB have it, and unlike a dictionary
    del part[b"absent"]
    assert keys(digits) == [b"2", b"3", b"4", b"5"]


@only_lsm
def test_nothing_but_bytes_is_assigned(digits: Any) -> None:
    entries = list(digits)
    for key, value in ((b"1", "text"), ("text", b"1"), (b"1", None), (None, b"1")):
        with pytest.raises(TypeError):
            digits[key] = value
    with pytest.raises(TypeError):
        del digits["1"]
    assert list(digits) == entries


@only_lsm
def test_a_snapshot_is_not_assigned_to(digits: Any) -> None:
    snapshot = digits.snapshot()
    with pytest.raises(TypeError):
        snapshot[b"1"] = b"new"
    with pytest.raises(TypeError):
        del snapshot[b"1"]
    assert digits[b"1"] == b"value 1"


@only_lsm
@pytest.mark.parametrize("kind", READERS)
def test_a_length_is_refused_with_the_way_to_count(digits: Any, kind: str) -> None:
    reader = READERS[kind](digits)
    with pytest.raises(TypeError, match=rf"lsm\.{kind} has no len") as caught:
        len(reader)
    way = str(caught.value).partition("sum(")[2].partition("))")[0]
    assert eval(f"sum({way}))", {"db": reader}) == 5
    assert bool(reader)
    assert len(list(reader)) == 5  # which asks for a length first


@only_lsm
@pytest.mark.parametrize("kind", READERS)
def test_subscripts_of_what_is_closed_say_so(digits: Any, kind: str) -> None:
    reader = READERS[kind](digits)
    digits.close()
    assert bool(reader)
    for use in (lambda: reader[b"1"], lambda: b"1" in reader):
        with pytest.raises(RuntimeError, match="closed"):
            use()
    if kind != "Snapshot":
        with pytest.raises(RuntimeError, match="closed"):
            reader[b"1"] = b""
        with pytest.raises(RuntimeError, match="closed"):
            del reader[b"1"]


@only_lsm
@pytest.mark.parametrize("kind", KEPT)
def test_pickling_and_copying_are_refused_in_words(digits: Any, kind: str) -> None:
    thing = KEPT[kind](digits)
    for refused in (pickle.dumps, copy.deepcopy):
        with pytest.raises(
            TypeError, match=rf"lsm\.{kind} can be neither pickled nor copied.*path"
        ):
            refused(thing)
    if kind != "PrefixedDB":  # which another one can be had of
        with pytest.raises(TypeError, match="neither pickled nor copied"):
            copy.copy(thing)


@only_lsm
def test_in_does_not_copy_the_value(db: Any) -> None:
    if lsm.KERNEL != "native":
        pytest.skip("the readable kernel has the value at hand, and copies none either way")
    size = 4 << 20
    db.put(b"large", bytes(size))
    tracemalloc.start()
    try:
        assert b"large" in db
        looked = tracemalloc.get_traced_memory()[1]
        tracemalloc.reset_peak()
        assert len(db[b"large"]) == size
        copied = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert looked < size <= copied


KEYS = st.binary(max_size=2)
STEPS = st.lists(
    st.tuples(st.sampled_from(["put", "delete", "flush", "compact"]), KEYS, st.binary(max_size=4)),
    max_size=30,
)


@only_lsm
@examples(60)
@given(steps=STEPS, asked=st.lists(KEYS, max_size=8), prefix=st.binary(max_size=1))
def test_in_and_subscripts_agree_with_get(
    api: Any, steps: list[Any], asked: list[bytes], prefix: bytes
) -> None:
    with tempfile.TemporaryDirectory() as at, api.DB(at, create_if_missing=True) as db:
        model: dict[bytes, bytes] = {}
        snapshots: list[tuple[Any, dict[bytes, bytes]]] = []
        for step, key, value in steps:
            if step == "put":
                db[key] = model[key] = value
            elif step == "delete":
                del db[key]
                model.pop(key, None)
            elif step == "flush":
                db.flush()
                snapshots.append((db.snapshot(), dict(model)))
            else:
                db.compact_range()
        readers = [(db, model), *snapshots]
        part = {key[len(prefix) :]: model[key] for key in model if key.startswith(prefix)}
        readers.append((db.prefixed_db(prefix), part))
        for reader, entries in readers:
            for key in (*asked, *entries):
                assert (key in reader) == (key in entries)
                if key in entries:
                    assert reader[key] == entries[key] == reader.get(key)


@only_lsm
def test_in_counts_what_a_lookup_counts(open_db: Open, rng: random.Random) -> None:
    db = open_db()
    for number in range(500):
        db.put(b"%04d" % number, rng.randbytes(20))
    db.flush()

    def totals() -> list[int]:
        counted = [each.counters for each in db.stats().filters]
        names = ("skipped", "true_positives", "false_positives")
        return [sum(getattr(each, name) for each in counted) for name in names]

    def counted(ask: Callable[[bytes], object]) -> list[int]:
        before = totals()
        for number in range(0, 1000, 7):
            ask(b"%04d" % number)
        return [new - old for old, new in zip(before, totals(), strict=True)]

    assert any(counted(lambda key: key in db))
    assert counted(lambda key: db.get(key)) == counted(lambda key: key in db)


@only_lsm
def test_keys_with_an_order_of_their_own_are_found_too(open_db: Open) -> None:
    def backwards(one: bytes, other: bytes) -> int:
        return (other > one) - (one > other)

    db = open_db(comparator=backwards, comparator_name=b"backwards")
    db[b"a"], db[b"b"] = b"1", b"2"
    db.compact_range()
    assert b"a" in db
    assert b"c" not in db
    assert db[b"b"] == b"2"
    del db[b"b"]
    assert keys(db) == [b"a"]
