"""Checksums in C: those of the library, with and without the processor's instructions."""

from __future__ import annotations

import random
import sys
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import crc32c as library
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsm.disk import checksum
from tests.effort import by_effort, examples

HAS_NATIVE = find_spec("lsm.kernels.native.crc32c") is not None
pytestmark = pytest.mark.skipif(not HAS_NATIVE, reason="the engine's kernel is not compiled")
NAMES = ("crc32c", "crc32c_portable")


@pytest.fixture(scope="module", params=NAMES)
def take(request: pytest.FixtureRequest) -> Any:
    """Each way to take a checksum."""
    return getattr(import_module("lsm.kernels.native.crc32c"), request.param)


def test_every_length_has_the_checksum_of_the_library(take: Any, rng: random.Random) -> None:
    data = memoryview(rng.randbytes(700))
    for size in range(601):
        value = rng.getrandbits(32)
        for start in by_effort([size % 9], [*range(9)], [*range(9)]):
            piece = data[start : start + size]
            assert take(piece) == library.crc32c(piece), (start, size)
            assert take(piece, value) == library.crc32c(piece, value), (start, size, value)


def test_lengths_that_are_taken_in_stretches_have_the_checksum_of_the_library(
    take: Any, rng: random.Random
) -> None:
    """Stretches have 64, 336 and 1344 bytes, and go three at a time."""
    data = memoryview(rng.randbytes(20_000))
    whole = {3 * each * times for each in (64, 336, 1344) for times in (1, 2, 3)}
    sizes = {size + more for size in whole for more in (-1, 0, 1, 8)}
    sizes |= {rng.randrange(20_000) for _ in range(by_effort(100, 1000, 20_000))}
    for size in sorted(sizes):
        value, start = rng.getrandbits(32), rng.randrange(20_000 - size)
        piece = data[start : start + size]
        assert take(piece, value) == library.crc32c(piece, value), (start, size, value)


def test_zeros_count(take: Any) -> None:
    """What stands still in zeros is a checksum whose inverse is zero; no other may."""
    for size in (1, 8, 192, 1008, 4032, 5000):
        assert take(bytes(size)) == library.crc32c(bytes(size))
        assert take(bytes(size), 2**32 - 1) == library.crc32c(bytes(size), 2**32 - 1)


@examples(100)
@given(first=st.binary(max_size=5000), second=st.binary(max_size=500))
def test_a_checksum_goes_on_from_another(take: Any, first: bytes, second: bytes) -> None:
    assert take(second, take(first)) == take(first + second) == library.crc32c(first + second)


@examples(100)
@given(st.integers(0, 2**32 - 1))
def test_the_mask_is_that_of_the_disk(crc: int) -> None:
    assert import_module("lsm.kernels.native.crc32c").mask(crc) == checksum.mask(crc)


@pytest.mark.skipif(sys.platform == "win32", reason="its compiler is asked for tables alone")
def test_the_instructions_are_used_where_they_are() -> None:
    """Which way is taken shows in nothing but the time; it is asked of the same processor."""
    native = import_module("lsm.kernels.native.crc32c")
    assert native.has_instructions() == (library.hardware_based)
