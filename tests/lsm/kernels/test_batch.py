"""Write batches on both kernels: the record that a log gets, whatever was collected and how."""

from __future__ import annotations

import gc
import weakref
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsm.disk.keys import MAX_SEQUENCE
from lsm.kernels.python import batch as readable
from lsm.kernels.python.batch import decode_batch, encode_batch, joined
from tests.effort import examples

native = pytest.importorskip("lsm.kernels.native.batch")
kernels = pytest.importorskip("lsm.kernels.native")

Operations = list[tuple[bytes, bytes | None]]
FIELDS = st.one_of(
    st.binary(max_size=3),
    st.integers(120, 135).map(bytes),
    st.sampled_from([bytes(16_383), bytes(16_384), bytes(70_000)]),
)
OPERATIONS = st.lists(st.tuples(FIELDS, st.none() | FIELDS), max_size=6)


class Native:
    """A store that a compiled batch takes for one."""

    @staticmethod
    def store() -> Any:
        return type("Store", (kernels.Readable,), {"closed_error": lambda _: KeyError("closed")})()


class Readable:
    """The same for the readable one."""

    @staticmethod
    def store() -> Any:
        def check_open() -> None:
            if store.closed_by is not None:
                raise KeyError("closed")

        store = SimpleNamespace(closed_by=None, check_open=check_open)
        return store


BOTH = pytest.mark.parametrize(
    ("module", "kind"), [(readable, Readable), (native, Native)], ids=["python", "native"]
)


def made(module: ModuleType, kind: Any, prefix: bytes = b"", operations: Any = ()) -> Any:
    batch = module.Batch()
    batch._store, batch._prefix = kind.store(), prefix
    fill(batch, operations)
    return batch


def fill(batch: Any, operations: Any) -> None:
    for key, value in operations:
        if value is None:
            batch.delete(key)
        else:
            batch.put(key, value)


def stamped(batch: Any, sequence: int = 7) -> bytes:
    return joined(sequence, batch.count, [batch.record_to_stamp()])


@BOTH
@examples(100)
@given(prefix=st.sampled_from([b"", b"p", b"prefix" * 30]), operations=OPERATIONS)
def test_the_record_is_that_of_the_operations(
    module: ModuleType, kind: Any, prefix: bytes, operations: Operations
) -> None:
    whole = [(prefix + key, value) for key, value in operations]
    batch = made(module, kind, prefix, operations)
    assert stamped(batch) == encode_batch(7, whole)
    assert decode_batch(stamped(batch)) == (7, whole)
    assert batch.count == len(whole)
    assert batch.payload == sum(len(key) + len(value or b"") for key, value in whole)
    assert batch.approximate_size() == len(encode_batch(7, whole))


@BOTH
@examples(50)
@given(parts=st.lists(OPERATIONS, max_size=5), data=st.data())
def test_appending_and_clearing(
    module: ModuleType, kind: Any, parts: list[Operations], data: st.DataObject
) -> None:
    batch, model = made(module, kind, b"never seen"), []
    for operations in parts:
        other = made(module, kind, b"p", operations)
        batch.append(other)
        model += [(b"p" + key, value) for key, value in operations]
        other.clear()
        assert stamped(other) == encode_batch(7, [])
        if data.draw(st.booleans()):
            batch.append(batch)
            model += model
        if data.draw(st.integers(0, 5)) == 0:
            batch.clear()
            model = []
    assert stamped(batch) == encode_batch(7, model)


@BOTH
def test_any_buffer_is_taken_and_copied(module: ModuleType, kind: Any) -> None:
    key, value = bytearray(b"key"), bytearray(b"value")
    batch = made(module, kind)
    batch.put(key, memoryview(value))
    batch.delete(memoryview(key)[::2])
    key[0] = value[0] = 0
    assert decode_batch(stamped(batch))[1] == [(b"key", b"value"), (b"ky", None)]


@BOTH
def test_what_is_refused_leaves_the_batch_as_it_was(module: ModuleType, kind: Any) -> None:
    batch = made(module, kind, b"", [(b"key", b"value")])
    record = stamped(batch)
    calls: list[Any] = [
        lambda: batch.put("key", b""),
        lambda: batch.put(b"key", None),
        lambda: batch.delete(7),
        lambda: batch.append(b""),
    ]
    for call in calls:
        with pytest.raises(TypeError):
            call()
    batch._store.closed_by = "closed"
    closed: list[Any] = [
        lambda: batch.put(b"key", b""),
        lambda: batch.delete(b"key"),
        lambda: batch.append(batch),
        batch.clear,
        batch.approximate_size,
    ]
    for call in closed:
        with pytest.raises(KeyError, match="closed"):
            call()
    assert stamped(batch) == record


@BOTH
def test_many_operations_grow_a_batch(module: ModuleType, kind: Any) -> None:
    operations: Operations = [(b"%d" % number, b"v" * (number % 300)) for number in range(5000)]
    batch = made(module, kind, b"", operations)
    assert stamped(batch, MAX_SEQUENCE - 5000) == encode_batch(MAX_SEQUENCE - 5000, operations)
    with pytest.raises(ValueError, match="5000 operations cannot start"):
        stamped(batch, MAX_SEQUENCE - 4998)


def test_native_batches_are_collected() -> None:
    batch = made(native, Native, b"p", [(b"key", bytes(100_000))])
    batch._store.closed_by = batch
    gone = weakref.ref(batch._store)
    del batch
    gc.collect()
    assert gone() is None
