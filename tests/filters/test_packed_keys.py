"""Keys that share a buffer, and answers that go into one: the same as lists of either."""

from __future__ import annotations

import mmap
import random
import sys
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate, pairwise
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from filters import PackedKeys
from tests.effort import examples, once
from tests.filters.cases import (
    Case,
    every_case_of_both_kinds,
    every_family,
    every_family_of_both_kinds,
    every_growing_family,
    needs_native,
    outcome,
    random_keys,
    twins,
)
from tests.interpreter import fresh

WIDTH = 16
SEED, SALT = 0x0123_4567_89AB_CDEF, 0xFEDC_BA98_7654_3210
OFFSET_TYPES = ["i", "I", "l", "L", "q", "Q"]


def offsets_of(keys: Sequence[bytes], start: int = 0) -> list[int]:
    return list(accumulate(map(len, keys), initial=start))


def packed(keys: Sequence[bytes], typecode: str = "i", before: bytes = b"") -> PackedKeys:
    """Keys of any lengths, behind bytes that are no key's and before some more."""
    ends = array(typecode, offsets_of(keys, len(before)))
    return PackedKeys(before + b"".join(keys) + b"behind", offsets=ends)


def secrets(case: Case) -> dict[str, int]:
    return {"seed": SEED, "salt": SALT} if case.salted else {}


# ---- a sequence of bytes ----

KEYS = [b"apple", b"", b"fig", b"\0", b"x" * 300, b"apple"]


@pytest.mark.parametrize("typecode", OFFSET_TYPES)
@pytest.mark.parametrize("before", [b"", b"before"])
def test_keys_with_offsets_are_a_sequence(typecode: str, before: bytes) -> None:
    keys = packed(KEYS, typecode, before)
    assert len(keys) == len(KEYS)
    assert list(keys) == KEYS
    assert [keys[i] for i in range(-6, 6)] == KEYS * 2
    assert keys[1:-1:2] == KEYS[1:-1:2]
    assert keys[::-1] == KEYS[::-1]
    assert keys[10:] == []
    assert (b"fig" in keys, b"pear" in keys) == (True, False)
    assert (keys.index(b"fig"), keys.count(b"apple")) == (2, 2)
    assert list(reversed(keys)) == KEYS[::-1]
    assert {type(key) for key in keys} == {bytes}
    assert keys.width == 0
    assert keys.offsets is not None
    assert keys.offsets.tolist() == offsets_of(KEYS, len(before))
    size = len(before) + sum(map(len, KEYS)) + len(b"behind")
    assert repr(keys) == f"<PackedKeys: 6 keys in {size} bytes, offsets>"
    for beyond in (6, -7, 100):
        with pytest.raises(IndexError, match=f"key {beyond} of 6 packed keys"):
            keys[beyond]


def test_keys_of_one_width_are_a_sequence() -> None:
    keys = PackedKeys(b"onetwosix\0\0\0", width=3)
    assert list(keys) == [b"one", b"two", b"six", b"\0\0\0"]
    assert len(keys) == 4
    assert (keys[0], keys[-1], keys[-4]) == (b"one", b"\0\0\0", b"one")
    assert keys[1:3] == [b"two", b"six"]
    assert (keys.width, keys.offsets, bytes(keys.data)) == (3, None, b"onetwosix\0\0\0")
    assert repr(keys) == "<PackedKeys: 4 keys in 12 bytes, width=3>"
    for beyond in (4, -5):
        with pytest.raises(IndexError, match=f"key {beyond} of 4 packed keys"):
            keys[beyond]
    assert list(PackedKeys(b"abc", width=1)) == [b"a", b"b", b"c"]
    assert list(PackedKeys(b"", width=7)) == []
    nothing: Any = np.zeros((0, 16), dtype=np.uint8)
    assert list(PackedKeys(nothing, width=16)) == []
    assert list(PackedKeys(b"abc", offsets=array("q", [1]))) == []
    assert list(PackedKeys(b"", offsets=array("i", [0, 0, 0]))) == [b"", b""]


@examples(100)
@given(keys=st.lists(st.binary(max_size=30), max_size=30), before=st.binary(max_size=5))
def test_what_is_packed_comes_out_again(keys: list[bytes], before: bytes) -> None:
    for typecode in OFFSET_TYPES:
        assert list(packed(keys, typecode, before)) == keys


def test_nothing_is_copied() -> None:
    data, ends = bytearray(b"onetwo"), array("i", [0, 3, 6])
    keys = PackedKeys(data, offsets=ends)
    data[0] = ord("O")
    ends[1] = 2
    assert list(keys) == [b"On", b"etwo"]
    with pytest.raises(BufferError):
        data.clear()
    with pytest.raises(BufferError):
        ends.append(7)


def wide_buffers() -> Iterator[tuple[str, Any, int]]:
    """Buffers of keys that are equally wide."""
    keys = [b"%016d" % i for i in range(40)]
    data = b"".join(keys)
    mapped = mmap.mmap(-1, len(data))
    mapped[:] = data
    yield "bytes", data, 16
    yield "bytearray", bytearray(data), 16
    yield "memoryview", memoryview(data), 16
    yield "mmap", mapped, 16
    yield "array", array("b", data), 16
    yield "V16", np.array(keys, dtype="V16"), 16
    yield "uint64", np.frombuffer(data, dtype=np.uint64).reshape(40, 2), 16
    yield "big-endian", np.frombuffer(data, dtype=">u4").reshape(40, 4), 16
    yield "float64", np.frombuffer(data, dtype=np.float64).reshape(40, 2), 16
    yield "two dimensions", np.frombuffer(data, dtype=np.uint8).reshape(40, 16), 16
    yield "three dimensions", np.frombuffer(data, dtype=np.uint16).reshape(40, 2, 4), 16
    yield "cast", memoryview(data).cast("B", (40, 16)), 16
    yield "a part", np.frombuffer(b"1234" + data + b"56", dtype=np.uint8)[4:-2], 16


@pytest.mark.parametrize("name", [name for name, _, _ in wide_buffers()])
def test_any_contiguous_buffer_holds_keys_of_one_width(kernel: ModuleType, name: str) -> None:
    keys = [b"%016d" % i for i in range(40)]
    [(data, width)] = [(data, width) for each, data, width in wide_buffers() if each == name]
    given_keys = PackedKeys(data, width=width)
    assert list(given_keys) == keys
    built = kernel.BinaryFuseFilter.build(given_keys, fingerprint_bits=16, seed=1, salt=2)
    assert built == kernel.BinaryFuseFilter.build(keys, fingerprint_bits=16, seed=1, salt=2)
    assert built.might_contain_many(given_keys) == [True] * 40


def test_trailing_zeros_belong_to_a_key(kernel: ModuleType) -> None:
    """NumPy's own items have lost them."""
    names: Any = np.array([b"a", b"ab", b"abc"], dtype="S4")
    zeros_included = PackedKeys(names.view("V4"), width=4)
    built = kernel.CuckooFilter.build(zeros_included, fingerprint_bits=32)
    assert built.might_contain_many([b"a\0\0\0", b"ab\0\0", b"abc\0"]) == [True] * 3
    assert built.might_contain_many(list(names)) == [False] * 3


def offset_buffers() -> Iterator[tuple[str, Any]]:
    ends = [6, 9, 9, 14]
    for typecode in OFFSET_TYPES:
        yield f"array {typecode}", array(typecode, ends)
    for dtype in ("i4", "i8", "u4", "u8", "<i4", "<i8", "=i8", "p"):
        yield f"numpy {dtype}", np.array(ends, dtype=dtype)
    raw = array("q", ends).tobytes()
    yield "cast", memoryview(raw).cast("q")
    yield "cast to n", memoryview(raw).cast("n")  # type: ignore[call-overload]
    mapped = mmap.mmap(-1, 32)
    mapped[:] = raw
    yield "mmap", memoryview(mapped).cast("q")
    yield "a part", np.array([0, *ends, 99], dtype=np.int64)[1:-1]


@pytest.mark.parametrize("name", [name for name, _ in offset_buffers()])
def test_any_row_of_integers_is_offsets(kernel: ModuleType, name: str) -> None:
    [ends] = [ends for each, ends in offset_buffers() if each == name]
    keys = PackedKeys(memoryview(b"beforefigapplebehind"), offsets=ends)
    assert list(keys) == [b"fig", b"", b"apple"]
    built = kernel.CuckooFilter.build(keys, fingerprint_bits=32)
    assert built.might_contain_many([b"fig", b"", b"apple", b"f"]) == [True, True, True, False]
    assert built.might_contain_many(keys) == [True, True, True]


def test_the_two_buffers_of_an_arrow_array_are_packed_keys(kernel: ModuleType) -> None:
    """As pyarrow's ``buffers()`` has them: padded, and a slice keeps both and starts further on."""
    keys = [b"%d" % i * (i % 5) for i in range(100)]
    data: Any = np.zeros(4096, dtype=np.uint8)
    ends: Any = np.zeros(128, dtype=np.int32)
    joined = b"".join(keys)
    data[: len(joined)] = np.frombuffer(joined, dtype=np.uint8)
    ends[:101] = offsets_of(keys)
    whole = PackedKeys(memoryview(data), offsets=memoryview(ends.view(np.uint8)).cast("i")[:101])
    part = PackedKeys(memoryview(data), offsets=memoryview(ends)[30:51])
    assert list(whole) == keys
    assert list(part) == keys[30:50]
    built = kernel.BlockedBloomFilter.build(part, seed=1, salt=2)
    assert built == kernel.BlockedBloomFilter.build(keys[30:50], seed=1, salt=2)
    assert built.might_contain_many(whole) == built.might_contain_many(keys)


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ({}, TypeError, "takes either width= or offsets=, and not both"),
        ({"width": 1, "offsets": array("i", [0])}, TypeError, "either width= or offsets="),
        ({"width": 0}, ValueError, "width=0 is out of range: a packed key takes 1 byte or more"),
        ({"width": -3}, ValueError, "width=-3 is out of range"),
        ({"width": "3"}, TypeError, "width is an int, not str"),
        ({"width": True}, TypeError, "width is an int, not bool"),
        ({"width": 3.0}, TypeError, "width is an int, not float"),
        ({"width": 4}, ValueError, "6 bytes are no whole keys of 4 bytes: 2 are left over"),
        ({"width": 7}, ValueError, "6 bytes are no whole keys of 7 bytes: 6 are left over"),
        ({"offsets": array("i")}, ValueError, "one more than the keys: there is none at all"),
        ({"offsets": b"\0\0\0\0"}, TypeError, r"of format 'B'.*memoryview\(...\).cast\('i'\)"),
        ({"offsets": array("h", [0, 3])}, TypeError, "32-bit or 64-bit integers.*'h'"),
        ({"offsets": array("d", [0, 3])}, TypeError, "32-bit or 64-bit integers.*'d'"),
        ({"offsets": np.array([0, 3], ">i4")}, TypeError, "of format '>i'"),
        ({"offsets": np.array([[0, 3]])}, TypeError, "not 2 of format"),
        ({"offsets": np.array([0, 3, 6])[::2]}, ValueError, "offsets lie in one contiguous buffer"),
        ({"offsets": [0, 3, 6]}, TypeError, "bytes-like|buffer"),
    ],
    ids=str,
)
def test_what_is_no_packed_keys_is_refused_with_advice(
    arguments: dict[str, Any], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        PackedKeys(b"onetwo", **arguments)


@pytest.mark.parametrize(
    ("data", "width", "error", "says"),
    [
        (np.array([b"a", b"bbb"]), 3, TypeError, r"NumPy's S3, pads.*array.view\('V3'\), width=3"),
        (np.array([b"a", b"b"]), 1, TypeError, "NumPy's S1, pads its keys with zeros"),
        (
            np.array(["a", "bbb"]),
            12,
            TypeError,
            "NumPy's U3, has four bytes.*pass the array itself",
        ),
        (np.array(["a", "bbb"]).astype(">U3"), 12, TypeError, "NumPy's U3, has four bytes"),
        (np.array([b"a", "b"], object), 8, TypeError, r"addresses.*array.tolist\(\)"),
        (np.arange(4), 4, ValueError, "width=4 does not match.*items take 8 bytes: pass width=8"),
        (np.arange(4), 16, ValueError, r"width=16 does not match.*memoryview\(...\).cast\('B'\)"),
        (array("h", [1, 2]), 4, ValueError, "format 'h' whose items take 2 bytes"),
        (np.zeros((4, 6), np.uint8), 3, ValueError, "rows take 6 bytes: pass width=6"),
        (np.zeros(2, "V5"), 10, ValueError, "items take 5 bytes"),
    ],
    ids=str,
)
def test_items_that_would_be_cut_or_are_padded_are_refused_with_advice(
    data: Any, width: int, error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        PackedKeys(data, width=width)
    if error is TypeError:
        with pytest.raises(error, match=says):
            PackedKeys(data, offsets=array("q", [0, width]))


def test_items_as_wide_as_keys_are_keys() -> None:
    assert list(PackedKeys(array("h", [1, 258]), width=2)) == [
        (1).to_bytes(2, sys.byteorder),
        (258).to_bytes(2, sys.byteorder),
    ]
    assert list(PackedKeys(np.zeros(2, "V5"), width=5)) == [bytes(5)] * 2
    assert list(PackedKeys(np.zeros((2, 3, 4), "i2"), width=24)) == [bytes(24)] * 2


def test_data_that_is_no_buffer_in_one_piece_is_refused() -> None:
    columns: Any = np.zeros((4, 4), dtype=np.uint8)[:, :2]
    with pytest.raises(ValueError, match="one contiguous buffer: copy the array first"):
        PackedKeys(columns, width=2)
    with pytest.raises(ValueError, match="one contiguous buffer"):
        PackedKeys(memoryview(b"abcdef")[::2], width=1)
    for wrong in ("text", [b"one"], 7):
        with pytest.raises(TypeError):
            PackedKeys(wrong, width=1)  # type: ignore[arg-type]


# ---- filters take them as they take lists ----


def key_lists() -> Iterator[list[bytes]]:
    """Of all lengths around the groups of 64 in which keys are digested."""
    rng = random.Random(7)
    for count in (0, 1, 2, 63, 64, 65, 127, 128, 129, 200):
        yield [rng.randbytes(rng.randrange(40)) for _ in range(count)]
    yield [b"same"] * 100
    yield [b""] * 3
    yield [rng.randbytes(250 + i) for i in range(70)]


@every_case_of_both_kinds
def test_packed_keys_build_and_ask_like_lists(kernel: ModuleType, case: Case) -> None:
    absent = [b"absent%d" % i for i in range(70)]
    for keys in key_lists():
        listed = case.build(kernel, keys, **secrets(case))
        for typecode in ("i", "q"):
            built = case.build(kernel, packed(keys, typecode, b"before"), **secrets(case))
            assert built.to_bytes() == listed.to_bytes()
            assert built.num_keys == listed.num_keys
            assert built.might_contain_many(packed(keys, typecode)) == [True] * len(keys)
        asked = keys + absent
        assert listed.might_contain_many(packed(asked)) == listed.might_contain_many(asked)
    wide = random_keys(random.Random(8), 150, length=7)
    listed = case.build(kernel, wide, **secrets(case))
    assert case.build(kernel, PackedKeys(b"".join(wide), width=7), **secrets(case)) == listed


@every_growing_family
def test_packed_keys_are_added_like_lists(kernel: ModuleType, case: Case) -> None:
    for keys in key_lists():
        one, two = (case.cls(kernel).with_capacity(1000, seed=SEED, salt=SALT) for _ in range(2))
        if keys == [b"same"] * 100 and case.family == "cuckoo":
            keys = keys[:8]
        one.add_many(keys)
        two.add_many(packed(keys, "q", b"before"))
        assert two.to_bytes() == one.to_bytes()


@every_family
def test_packed_keys_are_digested_like_lists(kernel: ModuleType, case: Case) -> None:
    for keys in key_lists():
        given_seed = {"seed": SEED} if case.salted else {}
        one, two = case.cls(kernel).digests(**given_seed), case.cls(kernel).digests(**given_seed)
        one.add_many(keys)
        two.add_many(packed(keys, "q", b"before"))
        assert len(two) == len(one) == len(keys)
        salt = {"salt": SALT} if case.salted else {}
        assert case.build(kernel, two, **salt) == case.build(kernel, one, **salt)


@every_family_of_both_kinds
@pytest.mark.parametrize(
    "buffer",
    [b"key", bytearray(b"key"), memoryview(b"key"), array("B", [1]), np.zeros(3, np.int8), "key"],
    ids=lambda buffer: type(buffer).__name__,
)
def test_a_bare_buffer_in_the_place_of_keys_is_refused_with_advice(
    kernel: ModuleType, case: Case, buffer: Any
) -> None:
    built = case.build(kernel, [b"key"])
    says = rf"not as one {type(buffer).__name__}: .*filters.PackedKeys\(buffer, width=...\)"
    with pytest.raises(TypeError, match=says):
        case.cls(kernel).build(buffer)
    with pytest.raises(TypeError, match=says):
        built.might_contain_many(buffer)
    with pytest.raises(TypeError, match=says):
        built.might_contain_many(buffer, bytearray(3))
    if hasattr(built, "digests"):
        with pytest.raises(TypeError, match=says):
            built.digests().add_many(buffer)
    if hasattr(built, "add_many"):
        with pytest.raises(TypeError, match=says):
            built.add_many(buffer)


class Half(PackedKeys):
    """A sequence of its own: every second of the keys."""

    __slots__ = ()

    def __len__(self) -> int:
        return super().__len__() // 2

    def __iter__(self) -> Iterator[bytes]:
        return (self._key(2 * i) for i in range(len(self)))


@every_family_of_both_kinds
def test_a_subclass_is_asked_for_its_keys(kernel: ModuleType, case: Case) -> None:
    keys = [b"%04d" % i for i in range(200)]
    half = Half(b"".join(keys), width=4)
    assert case.build(kernel, half, **secrets(case)) == case.build(
        kernel, keys[::2], **secrets(case)
    )


# ---- offsets that lie ----

BAD: dict[str, Callable[[int, int], int]] = {
    "fall": lambda start, size: start - 1,
    "are negative": lambda start, size: -5,
    "end behind the data": lambda start, size: size + 1,
    "are huge": lambda start, size: 2**31 - 1,
    "are huge in 64 bits": lambda start, size: 2**62,
    "wrap around to the key's length": lambda start, size: start + 2**32,
    "are the least of all": lambda start, size: -(2**63),
}
BAD_IN_32_BITS = {"fall", "are negative", "end behind the data", "are huge"}
COUNT = 5 * 64 + 7


def with_a_bad_key(count: int, index: int, how: str, typecode: str) -> tuple[PackedKeys, str]:
    """Keys of which one claims what it cannot have, and what is to be said about it."""
    ends = list(range(10, 10 + WIDTH * (count + 1), WIDTH))
    size = 10 + WIDTH * count
    ends[index + 1] = BAD[how](ends[index], size)
    keys = PackedKeys(random.Random(count).randbytes(size), offsets=array(typecode, ends))
    return keys, rf"packed key {index} claims bytes {ends[index]} to {ends[index + 1]}: .* {size} "


def uses(kernel: ModuleType, case: Case) -> Iterator[Callable[[PackedKeys], Any]]:
    """All that reads many keys."""
    cls = case.cls(kernel)
    built = case.build(kernel, [b"key"])
    yield cls.build
    yield built.might_contain_many
    yield lambda keys: built.might_contain_many(keys, bytearray(len(keys)))
    if hasattr(cls, "digests"):
        yield cls.digests().add_many
    if hasattr(cls, "with_capacity"):
        yield cls.with_capacity(1000).add_many


@every_family_of_both_kinds
@pytest.mark.parametrize(
    ("typecode", "how"),
    [
        (typecode, how)
        for typecode in "iq"
        for how in BAD
        if typecode == "q" or how in BAD_IN_32_BITS
    ],
)
def test_offsets_that_lie_name_the_key(
    kernel: ModuleType, case: Case, typecode: str, how: str
) -> None:
    for index in (0, 5, 63, 64, 2 * 64 + 30, COUNT - 2, COUNT - 1):
        keys, says = with_a_bad_key(COUNT, index, how, typecode)
        for use in uses(kernel, case):
            with pytest.raises(ValueError, match=says):
                use(keys)


def test_unsigned_offsets_that_lie_name_the_key(kernel: ModuleType) -> None:
    built = kernel.ClassicBloomFilter.build([b"key"])
    for typecode, number in (("I", 2**32 - 1), ("Q", 2**64 - 1), ("Q", 2**63), ("I", 2**31)):
        ends = array(typecode, [0, 3, number])
        for use in (kernel.ClassicBloomFilter.build, built.might_contain_many, built.add_many):
            with pytest.raises(ValueError, match=f"packed key 1 claims bytes 3 to {number}:"):
                use(PackedKeys(b"onetwo", offsets=ends))
        starts = array(typecode, [number, number])
        with pytest.raises(ValueError, match=f"packed key 0 claims bytes {number} to {number}:"):
            built.might_contain_many(PackedKeys(b"onetwo", offsets=starts))


@pytest.mark.parametrize("index", [0, 65_535, 65_536, 65_600, 2 * 65_536 - 1, 2 * 65_536, 131_199])
@pytest.mark.parametrize("name", ["ClassicBloomFilter", "BlockedBloomFilter", "CuckooFilter"])
@needs_native
def test_offsets_that_lie_name_the_key_in_a_later_batch(name: str, index: int) -> None:
    cls = getattr(twins()[1], name)
    keys, says = with_a_bad_key(131_200, index, "fall", "q")
    for use in (cls.build, cls.build([]).might_contain_many, cls.digests().add_many):
        with pytest.raises(ValueError, match=says):
            use(keys)


def test_offsets_that_lie_are_refused_when_a_key_is_asked_for() -> None:
    for how in BAD:
        keys, says = with_a_bad_key(COUNT, 70, how, "q")
        with pytest.raises(ValueError, match=says + "bytes of data"):
            keys[70]
        with pytest.raises(ValueError, match=says):
            list(keys)
        assert keys[69] == keys.data[10 + 69 * WIDTH :][:WIDTH]


@every_family
@needs_native
def test_batches_are_the_same_in_every_form(case: Case, rng: random.Random) -> None:
    """In a build of more than 65,536 keys, and of more than twice as many."""
    native = twins()[1]
    keys = random_keys(rng, 131_200, length=8)
    rng.shuffle(keys)
    for count in (65_535, 65_536, 65_537, 131_200):
        part = keys[:count]
        listed = case.build(native, part, **secrets(case))
        wide = PackedKeys(b"".join(part), width=8)
        assert case.build(native, wide, **secrets(case)) == listed
        assert case.build(native, packed(part), **secrets(case)) == listed
        digests = case.cls(native).digests(**({"seed": SEED} if case.salted else {}))
        digests.add_many(wide)
        salt = {"salt": SALT} if case.salted else {}
        assert case.build(native, digests, **salt) == listed
        assert case.build(native, [bytearray(key) for key in part], **secrets(case)) == listed
        assert listed.num_keys == count
        assert listed.count_missing(digests) == 0


GUARDED = """
import ctypes, mmap, os, random, sys
from array import array
from filters import CapacityError, PackedKeys, hashing, kernels

native = kernels.load("native")
page = mmap.PAGESIZE
memory = mmap.mmap(-1, 2 * page)
rng = random.Random(int(sys.argv[2]))
hashing.random64 = lambda: rng.getrandbits(64)
memory[:page] = rng.randbytes(page)
# Memory that nobody may touch: whatever reads beyond a page's end dies of it.
start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
libc = ctypes.CDLL(None, use_errno=True)
libc.mprotect.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
assert libc.mprotect(start + page, page, 0) == 0, os.strerror(ctypes.get_errno())
view = memoryview(memory)
names = [name for name in native.__all__ if name != "Digests"]
classes = [getattr(native, name) for name in names]

if sys.argv[1] == "keys":
    for size in [*range(601), 1000, 1024, 2048, page - 1, page]:
        tail = view[page - size : page]
        offsets = PackedKeys(tail, offsets=array("q", [0, size]))
        for cls in classes:
            built = cls.build(offsets)
            assert built.might_contain_many(offsets) == [True]
            if size:
                assert built.might_contain_many(PackedKeys(tail, width=size)) == [True]
            if hasattr(cls, "digests"):
                cls.digests().add_many(offsets)
elif sys.argv[1] == "offsets":
    for bad in ([0, page + 1], [0, 2 * page], [page, 2 * page], [-1, 5], [2**62, 2**62 + 9]):
        keys = PackedKeys(view[:page], offsets=array("q", bad))
        for cls in classes:
            uses = [cls.build, cls.build([]).might_contain_many]
            if hasattr(cls, "digests"):
                uses.append(cls.digests().add_many)
            for use in uses:
                try:
                    use(keys)
                except ValueError as error:
                    assert "packed key 0 claims" in str(error)
                else:
                    raise AssertionError(bad)
elif sys.argv[1] == "filters":
    keys = [b"key%d" % i for i in range(100)]
    sizes = {"CuckooFilter": [{"fingerprint_bits": bits} for bits in range(6, 33)]}
    for name, cls in zip(names, classes):
        for size in sizes.get(name, [{}]):
            for count in (0, 1, 2, 5, 20, 100):
                data = cls.build(keys[:count], **size).to_bytes()
                memory[page - len(data) : page] = data
                built = cls.from_bytes(view[page - len(data) : page].toreadonly())
                assert all(built.might_contain_many(keys[:count]))
                [built.might_contain(b"other%d" % i) for i in range(200)]
                built.might_contain_many([b"other%d" % i for i in range(200)])
                built.fill, built.expected_fpr
                try:
                    hasattr(built, "add") and built.add(b"one more")
                except CapacityError:
                    pass
                assert all(built.might_contain_many(keys[:count]))
print("alive")
"""


@needs_native
@pytest.mark.skipif(sys.platform == "win32", reason="mprotect() is POSIX")
@pytest.mark.parametrize("what", ["keys", "offsets", "filters"])
def test_nothing_is_read_beyond_the_end(what: str, test_seed: int) -> None:
    """Of a page behind which lies one that must not be read."""
    child = fresh(GUARDED, what, str(test_seed))
    assert child.stdout == "alive\n", child.stderr


@contextmanager
def zeros(size: int) -> Iterator[memoryview]:
    """So many of them, which take no memory until they are read."""
    try:
        memory = mmap.mmap(-1, size)
    except OSError:
        pytest.skip(f"there is no room for {size} zeros")
    with memory, memoryview(memory) as data:
        yield data


@needs_native
def test_unsigned_offsets_reach_beyond_two_gigabytes() -> None:
    with zeros(2**31 + 64) as data:
        keys = PackedKeys(data, offsets=array("I", [2**31 - 8, 2**31, 2**31 + 16]))
        assert list(keys) == [bytes(8), bytes(16)]
        built = twins()[1].CuckooFilter.build([bytes(8), bytes(16)])
        try:
            answers = built.might_contain_many(keys)
        finally:
            keys.data.release()
        assert answers == [True, True]


def test_negative_offsets_are_not_large_ones(kernel: ModuleType) -> None:
    with zeros(2**32 + 64) as data:
        keys = PackedKeys(data, offsets=array("i", [-16, -8]))
        built = kernel.CuckooFilter.build([bytes(8)])
        refused = outcome(built.might_contain_many, keys)
        keys.data.release()
    assert refused[0] is ValueError
    assert "packed key 0 claims bytes -16 to -8" in refused[1]


# ---- answers that go into the caller's memory ----

SIZES = [0, 1, 63, 64, 65, 127, 128, 129, 191, 192, 1023, 1024, 1025]


@pytest.fixture(scope="module")
def asked_keys() -> tuple[list[bytes], list[bytes]]:
    """500 keys that are built in, and 70,000 to ask for, half of which are these."""
    rng = random.Random(11)
    keys = random_keys(rng, 500, length=9)
    return keys, [
        rng.choice(keys) if rng.random() < 0.5 else rng.randbytes(9) for _ in range(70_000)
    ]


def outs(count: int) -> Iterator[Any]:
    """All kinds of room for answers, filled with what is no answer."""
    yield bytearray(b"\x55" * count)
    yield np.full(count, True)
    yield np.full(count, 0x55, dtype=np.uint8)
    yield np.full(count, 0x55, dtype=np.int8)
    yield memoryview(bytearray(b"\x55" * count))
    yield memoryview(bytearray(b"\x55" * (count + 9)))[4 : count + 4]
    yield array("b", b"\x55" * count)


def forms(keys: list[bytes]) -> Iterator[Any]:
    """All kinds of many keys."""
    yield keys
    yield tuple(keys)
    yield iter(keys)
    yield (key for key in keys)
    yield dict(enumerate(keys)).values()
    yield packed(keys, "i", b"before")
    yield packed(keys, "Q")
    yield PackedKeys(b"".join(keys), width=9)
    yield [bytearray(key) for key in keys]


@every_family_of_both_kinds
def test_answers_are_the_same_in_every_form_and_at_every_size(
    kernel: ModuleType, case: Case, asked_keys: tuple[list[bytes], list[bytes]]
) -> None:
    keys, asked = asked_keys
    built = case.build(kernel, keys, **secrets(case))
    for size in SIZES:
        part = asked[-size:] if size else []
        single = [built.might_contain(key) for key in part]
        assert any(single) == (size > 0)
        for form in forms(part):
            assert built.might_contain_many(form) == single
        for out in outs(size):
            assert built.might_contain_many(part, out) is out
            assert bytes(out) == bytes(single)
        for form in forms(part):
            out = bytearray(b"\x55" * size)
            assert built.might_contain_many(form, out=out) is out
            assert out == bytes(single)


@once
@every_family_of_both_kinds
def test_answers_are_the_same_for_seventy_thousand_keys(
    case: Case, kernel: ModuleType, asked_keys: tuple[list[bytes], list[bytes]]
) -> None:
    keys, asked = asked_keys
    built = case.build(kernel, keys, **secrets(case))
    answers = built.might_contain_many(asked)
    assert len(answers) == len(asked)
    known = set(keys)
    assert all(answer for key, answer in zip(asked, answers, strict=True) if key in known)
    assert 0.48 < sum(answers) / len(asked) < 0.53
    if kernel.__name__.endswith("python"):
        return
    assert answers == [built.might_contain(key) for key in asked]
    for form in forms(asked):
        out = np.full(len(asked), True)
        assert built.might_contain_many(form, out) is out
        assert out.tolist() == answers


@pytest.mark.parametrize(
    ("out", "error", "says"),
    [
        ("text", TypeError, "out= takes a writable buffer of 3 bytes, not str"),
        ([0, 0, 0], TypeError, "out= takes a writable buffer of 3 bytes, not list"),
        (7, TypeError, "out= takes a writable buffer of 3 bytes, not int"),
        (bytes(3), TypeError, r"format 'B', shape \(3,\) and is read-only"),
        (memoryview(bytearray(3)).toreadonly(), TypeError, "and is read-only"),
        (array("i", [0, 0, 0]), TypeError, r"format 'i', shape \(3,\)$"),
        (np.zeros(3), TypeError, r"format 'd', shape \(3,\)$"),
        (np.zeros((1, 3), dtype=bool), TypeError, r"shape \(1, 3\)$"),
        (np.zeros((3, 1), dtype=bool), TypeError, r"shape \(3, 1\)$"),
        (np.zeros(6, dtype=bool)[::2], TypeError, r"one row of writable single bytes.*shape \(3,"),
        (memoryview(bytearray(6))[::-2], TypeError, "one row of writable single bytes"),
        (bytearray(2), ValueError, "out= has room for 2 answers, and there are 3 keys"),
        (bytearray(4), ValueError, "out= has room for 4 answers, and there are 3 keys"),
        (bytearray(), ValueError, "out= has room for 0 answers, and there are 3 keys"),
        (np.zeros(30, dtype=bool), ValueError, "out= has room for 30 answers, and there are 3"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else value[:20],
)
def test_room_that_does_not_fit_is_refused(
    kernel: ModuleType, out: Any, error: type[Exception], says: str
) -> None:
    built = kernel.BlockedBloomFilter.build([b"one"])
    keys = [b"one", b"two", b"six"]
    for form in (keys, tuple(keys), iter(keys), packed(keys), PackedKeys(b"onetwosix", width=3)):
        with pytest.raises(error, match=says):
            built.might_contain_many(form, out)


def test_what_is_answered_into_is_free_again(kernel: ModuleType) -> None:
    built = kernel.BlockedBloomFilter.build([b"one"])
    out = bytearray(1)
    for keys in ([b"one"], PackedKeys(b"one", width=3)):
        assert built.might_contain_many(keys, out) is out
        out.append(1)  # BufferError if anything still held it
        out.pop()
    with pytest.raises(ValueError, match="packed key 0"):
        built.might_contain_many(PackedKeys(b"one", offsets=array("i", [5, 6])), out)
    with pytest.raises(TypeError, match="bytes-like"):
        built.might_contain_many([7], out)
    out.append(1)


def test_packed_buffers_are_free_again(kernel: ModuleType) -> None:
    data, ends = bytearray(b"onetwo"), array("i", [0, 3, 6])
    keys = PackedKeys(data, offsets=ends)
    built = kernel.ClassicBloomFilter.build(keys)
    built.might_contain_many(keys)
    built.add_many(keys)
    built.digests().add_many(keys)
    del keys
    data.append(1)
    ends.append(6)


@examples(60)
@given(
    cuts=st.lists(st.integers(-3, 30), max_size=8),
    data=st.binary(max_size=24),
    typecode=st.sampled_from(["i", "q"]),
)
@example(cuts=[0, 0], data=b"", typecode="i")
@example(cuts=[24, 24], data=bytes(24), typecode="q")
@example(cuts=[25, 25], data=bytes(24), typecode="q")
def test_any_offsets_are_read_or_refused_alike(
    kernel: ModuleType, cuts: list[int], data: bytes, typecode: str
) -> None:
    if not cuts:
        return
    keys = PackedKeys(data, offsets=array(typecode, cuts))
    wrong = [i for i, (one, two) in enumerate(pairwise(cuts)) if not 0 <= one <= two <= len(data)]
    built = kernel.CuckooFilter.build([data])
    if wrong:
        for use in (built.might_contain_many, kernel.CuckooFilter.build, list):
            with pytest.raises(ValueError, match=f"packed key {wrong[0]} claims bytes"):
                use(keys)
    else:
        listed = [data[one:two] for one, two in pairwise(cuts)]
        assert list(keys) == listed
        assert built.might_contain_many(keys) == built.might_contain_many(listed)
