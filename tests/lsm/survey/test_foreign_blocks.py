"""RocksDB's and Pebble's blocks, in the form in which all others are read."""

from __future__ import annotations

import contextlib
import random
import struct
from collections.abc import Callable

import pytest

from lsm.disk.footer import Handle
from lsm.disk.plain_block import read_entries
from lsm.errors import CorruptionError
from lsm.survey.foreign_blocks import plain_form, plain_restarts, read_index
from tests.effort import spread
from tests.lsm.independent_table import contents_of, varint

PAIRS = [(b"key%02d" % number, b"value%d" % number) for number in range(40)]
PLAIN = contents_of(PAIRS)
HASH_INDEX, EVENLY_SPREAD, RESERVED, VALUES_APART = (1 << bit for bit in (31, 30, 29, 28))


def flagged(flags: int, behind: bytes = b"") -> bytes:
    """The block with flags in the number of its restarts, and something before that."""
    [count] = struct.unpack("<I", PLAIN[-4:])
    return PLAIN[:-4] + behind + struct.pack("<I", count | flags)


def test_what_rocksdb_adds_to_a_block_is_taken_away() -> None:
    buckets = bytes(range(200, 213)) + struct.pack("<H", 13)
    assert plain_form(PLAIN) == PLAIN
    assert plain_form(flagged(EVENLY_SPREAD)) == PLAIN
    assert plain_form(flagged(HASH_INDEX, buckets)) == PLAIN
    assert plain_form(flagged(HASH_INDEX | EVENLY_SPREAD, buckets)) == PLAIN
    assert dict(read_entries(plain_form(flagged(HASH_INDEX, buckets)))) == dict(PAIRS)
    for short in (b"", b"a", b"abc"):
        assert plain_form(short) == short


@pytest.mark.parametrize("flags", [RESERVED, VALUES_APART, HASH_INDEX | VALUES_APART])
def test_what_may_come_is_refused(flags: int) -> None:
    apart = "its values stand apart" if flags & VALUES_APART else "not read here$"
    with pytest.raises(CorruptionError, match=f"flags {flags >> 28:#x}.*{apart}"):
        plain_form(flagged(flags))


def test_a_hash_index_that_has_no_room_is_refused() -> None:
    for block in (struct.pack("<I", HASH_INDEX), b"\xff\xff" + struct.pack("<I", HASH_INDEX | 1)):
        with pytest.raises(CorruptionError, match="has no room for an index of"):
            plain_form(block) and plain_form(struct.pack("<HI", 65535, HASH_INDEX))


def test_what_pebble_says_in_restarts_is_taken_away() -> None:
    [count] = struct.unpack("<I", PLAIN[-4:])
    start = len(PLAIN) - 4 * (count + 1)
    restarts = [each | 1 << 31 for each in struct.unpack(f"<{count}I", PLAIN[start:-4])]
    block = PLAIN[:start] + struct.pack(f"<{count}I", *restarts) + PLAIN[-4:]
    assert plain_restarts(block) == PLAIN
    for short in (b"", b"abc", struct.pack("<I", 7)):
        assert plain_restarts(short) == short


def delta_index(handles: list[Handle], interval: int, first_keys: bool) -> bytes:
    """An index in which a handle is told by the one before, unless its key stands alone."""
    body, restarts, last, before = b"", [], b"", Handle(0, 0)
    for number, handle in enumerate(handles):
        key, shared = b"key%05d" % number, 0
        if number % interval:
            while shared < len(last) and last[shared] == key[shared]:
                shared += 1
        else:
            restarts.append(len(body))
        body += varint(shared) + varint(len(key) - shared) + key[shared:]
        change = handle.size - before.size
        signed = change << 1 if change >= 0 else (-change << 1) - 1
        body += varint(signed) if shared else varint(handle.offset) + varint(handle.size)
        body += varint(5) + b"first" if first_keys else b""
        last, before = key, handle
    return body + struct.pack(f"<{len(restarts) + 1}I", *restarts, len(restarts))


@pytest.mark.parametrize("first_keys", [False, True])
@pytest.mark.parametrize("interval", [1, 4, 16])
def test_handles_are_told_by_those_before(
    interval: int, first_keys: bool, rng: random.Random
) -> None:
    handles, at = [], 0
    for _ in range(60):
        handles.append(Handle(at, rng.randrange(5000)))
        at += handles[-1].size + 5
    index = delta_index(handles, interval, first_keys)
    found = list(read_index(index, has_delta_handles=True, has_first_keys=first_keys))
    assert found == [(b"key%05d" % number, handle) for number, handle in enumerate(handles)]
    plain = contents_of([(key, handle.encode()) for key, handle in found], interval)
    assert list(read_index(plain, has_delta_handles=False)) == found


def damaged(data: bytes, rng: random.Random) -> list[bytes]:
    """Every truncation, some bits flipped, and noise."""
    others = [data[:size] for size in spread(range(len(data)), quick=60)]
    for bit in spread(range(8 * len(data)), quick=300):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        others.append(bytes(flipped))
    return others + [rng.randbytes(rng.randrange(60)) for _ in range(100)]


READERS: dict[str, tuple[bytes, Callable[[bytes], object]]] = {
    "delta": (
        delta_index([Handle(105 * place, 100) for place in range(20)], 4, False),
        lambda data: list(read_index(data, has_delta_handles=True)),
    ),
    "first keys": (
        delta_index([Handle(105 * place, 100) for place in range(20)], 4, True),
        lambda data: list(read_index(data, has_delta_handles=True, has_first_keys=True)),
    ),
    "hash index": (
        flagged(HASH_INDEX, bytes(9) + b"\x09\0"),
        lambda data: list(read_entries(plain_form(data))),
    ),
    "restarts": (PLAIN, plain_restarts),
}


@pytest.mark.parametrize("form", READERS)
def test_damage_is_an_error_of_ours(form: str, rng: random.Random) -> None:
    data, read = READERS[form]
    read(data)
    for other in damaged(data, rng):
        with contextlib.suppress(CorruptionError):
            read(other)
