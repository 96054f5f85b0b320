"""The frame around every payload of our own: how it is put around one."""

from __future__ import annotations

import random
import tracemalloc
from types import ModuleType
from typing import Any

import pytest
from xxhash import xxh3_64, xxh3_64_intdigest

from filters import header
from filters.errors import CorruptFilterError
from filters.header import Checked, Header, pack, unpack
from tests.filters.cases import Case, every_salted_family

HEAD = Header("blocked", parameter=6, size=4, num_keys=9, seed=1, salt=2)


def test_a_payload_comes_back_from_its_parts(rng: random.Random) -> None:
    parts = [rng.randbytes(rng.randrange(100)) for _ in range(5)]
    packed = pack(HEAD, *parts)
    head, payload = unpack(packed, "blocked")
    assert (head, bytes(payload)) == (HEAD, b"".join(parts))
    assert len(packed) == header.OVERHEAD + len(payload)
    assert xxh3_64_intdigest(packed[:-8]).to_bytes(8, "little") == packed[-8:]


@pytest.mark.parametrize("length", [1, 64, 5000])
def test_the_checksum_is_that_of_the_bytes_returned(
    length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where somebody changes the payload between hashing and copying it."""
    payload = bytearray(length)

    class Meddling:
        def __init__(self, data: Any):
            self._real = xxh3_64(data)

        def update(self, data: Any) -> None:
            self._real.update(data)
            payload[-1] ^= 1

        def intdigest(self) -> int:
            return self._real.intdigest()

    monkeypatch.setattr(header, "xxh3_64", Meddling)
    packed = pack(HEAD, payload)
    assert type(packed) is bytes
    assert bytes(unpack(packed, "blocked")[1]) == bytes(payload) == bytes(length - 1) + b"\1"


def test_a_payload_is_copied_once() -> None:
    payload = bytes(1 << 22)
    tracemalloc.start()
    try:
        pack(HEAD, payload)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(payload) < peak < 1.1 * len(payload)


def test_checked_bytes_are_not_hashed_and_all_else_of_them_is_checked() -> None:
    packed = bytearray(pack(HEAD, bytes(256)))
    packed[-1] ^= 1
    with pytest.raises(CorruptFilterError, match="checksum does not match"):
        unpack(packed, "blocked")
    checked = Checked(memoryview(bytes(packed)))
    assert unpack(checked, "blocked")[0] == HEAD
    assert checked.__buffer__(0) == packed  # what memoryview asks for, from Python 3.12 on
    packed[6] = 1
    with pytest.raises(CorruptFilterError, match="flags 0x01"):
        unpack(Checked(memoryview(bytes(packed))), "blocked")


@every_salted_family
def test_either_kernel_reads_checked_bytes(kernel: ModuleType, case: Case) -> None:
    keys = [b"key%d" % number for number in range(40)]
    whole = case.build(kernel, keys).to_bytes()
    data = whole[:-1] + bytes((whole[-1] ^ 1,))
    with pytest.raises(CorruptFilterError):
        case.cls(kernel).from_bytes(data)
    opened = case.cls(kernel).from_bytes(Checked(memoryview(data)))
    assert all(opened.might_contain_many(keys))
    assert opened.to_bytes() == whole
