"""Snappy on both kernels: the same bytes, and no bytes that are believed."""

from __future__ import annotations

import mmap
import random
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsm.disk import compression
from lsm.disk.coding import varint
from lsm.errors import CorruptionError
from lsm.kernels.python import snappy as readable
from tests.effort import by_effort, examples
from tests.lsm.peak_memory import at_most

HAS_NATIVE = find_spec("lsm.kernels.native.snappy") is not None
KERNELS = ("python", "native") if HAS_NATIVE else ("python",)
FRAGMENT = 1 << 16


@pytest.fixture(scope="module", params=KERNELS)
def kernel(request: pytest.FixtureRequest) -> ModuleType:
    """Each kernel's module of this name."""
    return import_module(f"lsm.kernels.{request.param}.snappy")


@pytest.fixture(scope="module", params=KERNELS[1:])
def native(request: pytest.FixtureRequest) -> ModuleType:
    """The compiled kernel's, where there is one."""
    return import_module(f"lsm.kernels.{request.param}.snappy")


def library(data: bytes) -> bytes:
    return bytes(cramjam.snappy.compress_raw(data))


# -- What there is to compress -------------------------------------------------------------------


def noise(rng: random.Random, size: int) -> bytes:
    return rng.randbytes(size)


def letters(rng: random.Random, size: int) -> bytes:
    """Short matches at every distance."""
    return bytes(rng.choices(b"abcdefgh"[: rng.randint(2, 8)], k=size))


def words(rng: random.Random, size: int) -> bytes:
    known = [letters(rng, rng.randint(2, 12)) for _ in range(rng.randint(2, 300))]
    text = bytearray()
    while len(text) < size:
        text += rng.choice(known) + b" "
    return bytes(text[:size])


def runs(rng: random.Random, size: int) -> bytes:
    text = bytearray()
    while len(text) < size:
        text += rng.randbytes(1) * rng.choice((1, 3, 4, 5, 11, 12, 60, 64, 65, 67, 68, 200, 5000))
    return bytes(text[:size])


def entries(rng: random.Random, size: int) -> bytes:
    """As a block of a table has them: keys that ascend, and values that half repeat themselves."""
    text = bytearray()
    while len(text) < size:
        value = rng.randbytes(rng.randint(0, 60))
        text += bytes((8, 8, 2 * len(value))) + b"%016d" % len(text) + value * 2
    return bytes(text[:size])


def mixed(rng: random.Random, size: int) -> bytes:
    """Pieces of all that, and of what came before, near and far."""
    text = bytearray()
    while len(text) < size:
        if text and rng.random() < 0.4:
            start = rng.randrange(len(text))
            text += text[start : start + rng.randint(1, 300)]
        else:
            text += rng.choice((noise, letters, words, runs))(rng, rng.randint(1, 200))
    return bytes(text[:size])


Kind = Callable[[random.Random, int], bytes]
KINDS: tuple[Kind, ...] = (noise, letters, words, runs, entries, mixed)

LENGTHS = sorted(
    {
        *(base + more for base in (59, 256, 1024, 2048, 4096, 16384) for more in range(-3, 4)),
        *(FRAGMENT + more for more in range(-20, 21)),
        *(2 * FRAGMENT + more for more in (-1, 0, 1, 15, 16, 17, 18)),
    }
)


@pytest.mark.parametrize("kind", KINDS)
def test_every_short_length_has_the_bytes_of_the_library(
    native: ModuleType, kind: Kind, rng: random.Random
) -> None:
    for size in range(301):
        for _ in range(by_effort(2, 8, 100)):
            data = kind(rng, size)
            stored = native.compress(data)
            assert stored == library(data), (size, data)
            assert native.decompress(stored) == data


@pytest.mark.parametrize("kind", KINDS)
def test_lengths_where_something_changes_have_the_bytes_of_the_library(
    native: ModuleType, kind: Kind, rng: random.Random
) -> None:
    for size in LENGTHS:
        data = kind(rng, size)
        stored = native.compress(data)
        assert stored == library(data), size
        assert native.decompress(stored) == data


@pytest.mark.parametrize("kind", KINDS)
def test_megabytes_have_the_bytes_of_the_library(
    native: ModuleType, kind: Kind, rng: random.Random
) -> None:
    data = kind(rng, rng.randint(1 << 20, by_effort(1, 4, 40) << 20 | 1))
    stored = native.compress(data)
    assert stored == library(data)
    assert native.decompress(stored) == data == readable.decompress(stored)


def test_what_repeats_at_every_distance_has_the_bytes_of_the_library(
    kernel: ModuleType, rng: random.Random
) -> None:
    for period in range(1, 71):
        for size in (period + 5, 100, 131, 132, 133, 1000, FRAGMENT + 100):
            data = (noise(rng, period) * (size // period + 1))[:size]
            for each in (data, data + noise(rng, 20), noise(rng, 40) + data):
                stored = kernel.compress(each)
                assert stored == library(each), (period, size)
                assert kernel.decompress(stored) == each


@examples(400)
@given(st.lists(st.binary(min_size=1, max_size=40), max_size=30), st.data())
def test_whatever_is_compressed_is_the_same_and_read_back(
    native: ModuleType, pieces: list[bytes], drawn: st.DataObject
) -> None:
    order = drawn.draw(st.lists(st.sampled_from(pieces), max_size=100)) if pieces else []
    data = b"".join(pieces + order)
    stored = native.compress(data)
    assert stored == library(data) == readable.compress(data)
    for form in (stored, memoryview(b"xx" + stored)[2:], bytearray(stored)):
        opened = native.decompress(form)
        assert (type(opened), opened) == (bytes, data)
    assert readable.decompress(stored) == data


def test_more_than_a_block_has_is_refused(kernel: ModuleType) -> None:
    """Of memory that is never written, and takes none."""
    with (
        mmap.mmap(-1, (1 << 30) + 1) as zeros,
        memoryview(zeros) as data,
        pytest.raises(ValueError, match="asked for 1073741825 bytes, allowed are 1073741824"),
    ):
        kernel.compress(data)


# -- What others have stored, or have not ----------------------------------------------------------


def literal(data: bytes) -> bytes:
    size = len(data) - 1
    if size < 60:
        return bytes((size << 2,)) + data
    width = (size.bit_length() + 7) // 8
    return bytes((59 + width << 2,)) + size.to_bytes(width, "little") + data


def long_literal(data: bytes, width: int) -> bytes:
    """With more bytes of length than it takes."""
    return bytes((59 + width << 2,)) + (len(data) - 1).to_bytes(width, "little") + data


def copy_1(offset: int, size: int) -> bytes:
    return bytes((offset >> 8 << 5 | size - 4 << 2 | 1, offset & 255))


def copy_2(offset: int, size: int) -> bytes:
    return bytes((size - 1 << 2 | 2,)) + offset.to_bytes(2, "little")


def copy_4(offset: int, size: int) -> bytes:
    return bytes((size - 1 << 2 | 3,)) + offset.to_bytes(4, "little")


def elements(rng: random.Random) -> Iterator[tuple[bytes, bytes]]:
    """Elements that no compressor of ours writes, and what they stand for."""
    text = bytearray()
    while True:
        most = min(len(text), 65535)
        kind = rng.randrange(5) if most else 0
        if kind < 2:
            data = rng.randbytes(rng.choice((1, 15, 16, 17, 60, 61, 300)))
            made = literal(data) if kind else long_literal(data, rng.randint(2, 4))
            text += data
        else:
            size = rng.randint(4, 11) if kind == 2 else rng.randint(1, 64)
            offset = rng.randint(1, min(most, rng.choice((1, 7, 8, 15, 16, 2047, 65535))))
            if kind == 2:
                offset = min(offset, 2047)
            made = (copy_1, copy_2, copy_4)[kind - 2](offset, size)
            for _ in range(size):
                text.append(text[-offset])
        yield made, bytes(text)


def test_elements_of_all_kinds_are_read(kernel: ModuleType, rng: random.Random) -> None:
    for _ in range(by_effort(20, 100, 1000)):
        stored, made = bytearray(), elements(rng)
        for _ in range(rng.randint(1, 60)):
            element, data = next(made)
            stored += element
        assert kernel.decompress(varint(len(data)) + stored) == data


TEN = b"0123456789"


@pytest.mark.parametrize(
    "stored",
    [
        b"\0\0",  # a literal in what holds nothing
        b"\x01",  # nothing in what holds a byte
        b"\x0a" + literal(TEN)[:-1],
        b"\x09" + literal(TEN),
        b"\x0b" + literal(TEN),
        b"\x0a" + literal(TEN) + b"\x01",  # a copy without its offset
        b"\x0e" + literal(TEN) + copy_1(0, 4),
        b"\x0e" + literal(TEN) + copy_1(11, 4),
        b"\x0d" + literal(TEN) + copy_1(10, 4),
        b"\x0b" + literal(TEN) + copy_2(1, 1)[:-1],
        b"\x0b" + literal(TEN) + copy_2(11, 1),
        b"\x0b" + literal(TEN) + copy_4(1, 1)[:-1],
        b"\x0b" + literal(TEN) + copy_4(0, 1),
        b"\x0b" + literal(TEN) + copy_4(1 << 16 | 1, 1),
        b"\x0b" + literal(TEN) + copy_4((1 << 32) - 1, 1),
        b"\x01" + copy_2(1, 1),  # a copy of what is before the first byte
        b"\x0a" + bytes((61 << 2, 9)),
        b"\x0a" + bytes((63 << 2, 255, 255, 255, 255)) + TEN,
        b"\x0a" + bytes((63 << 2, 9, 0, 0)),
    ],
)
def test_damage_is_found(kernel: ModuleType, stored: bytes) -> None:
    with pytest.raises(CorruptionError, match=f"snappy data of {len(stored)} bytes is damaged"):
        kernel.decompress(stored)


@pytest.mark.parametrize(
    ("stored", "message"),
    [
        (b"", "snappy data: the uncompressed length would take bytes 0"),
        (b"\xff" * 4, "the uncompressed length would take bytes 0"),
        (b"\xff" * 9, "the uncompressed length at byte 0 is a varint of more than 5 bytes"),
        (b"\xff\xff\xff\xff\x10", "the uncompressed length at byte 0 is 4563402751, allowed are 0"),
        (varint(2**32 - 1) + bytes(100), "105 bytes claims to hold 4294967295, allowed are 2310"),
        (varint(1 << 30), "5 bytes claims to hold 1073741824, allowed are 110"),
    ],
)
def test_claims_are_checked_before_memory_is_taken(
    kernel: ModuleType, stored: bytes, message: str
) -> None:
    with at_most(1 << 17), pytest.raises(CorruptionError, match=message):
        kernel.decompress(stored)


def opened(kernel: ModuleType, stored: bytes) -> bytes | None:
    try:
        opened: bytes = kernel.decompress(stored)
    except CorruptionError:
        return None
    assert len(opened) <= compression.most(compression.SNAPPY, len(stored))
    return opened


@examples(1000)
@given(st.binary(max_size=300))
def test_any_bytes_are_opened_by_both_kernels_or_by_none(native: ModuleType, data: bytes) -> None:
    """There is no exception: lengths are checked alike before, and elements have one meaning."""
    for stored in (data, varint(len(data)) + data):
        assert opened(native, stored) == opened(readable, stored)


@pytest.mark.parametrize("kind", KINDS)
def test_changed_bytes_are_opened_by_both_kernels_or_by_none(
    native: ModuleType, kind: Kind, rng: random.Random
) -> None:
    found = set()
    for _ in range(by_effort(300, 2000, 50_000)):
        stored = native.compress(kind(rng, rng.choice((20, 70, 300, 3000))))
        changed = bytearray(stored)
        for _ in range(rng.randint(0, 3)):
            changed[rng.randrange(len(stored))] ^= 1 << rng.randrange(8)
        if rng.random() < 0.2:
            del changed[rng.randrange(len(changed)) :]
        answer = opened(native, bytes(changed))
        assert answer == opened(readable, bytes(changed)), bytes(changed)
        found.add(answer is None)
    assert found == {True, False}
