"""RocksDB's windows of before 7.0 and Pebble's binary fuse filters, asked, and never believed."""

from __future__ import annotations

import contextlib
import random

import pytest

from filters import LevelDBBloomFilter
from lsm.errors import CorruptionError
from lsm.survey.pebble_fuse import PebbleFuseFilter
from lsm.survey.signed_windows import SignedWindow
from tests.effort import spread
from tests.lsm.survey.foreign_tables import keys_of, pebble_fuse_of, signed_window_of

KEYS = keys_of(300)
PLAIN = [key for key in KEYS if key[-1] < 128]
ABSENT = [b"absent%06d" % number for number in range(20_000)]
WIDTHS = [4, 8, 10, 12, 16]


@pytest.mark.parametrize("bits", WIDTHS)
def test_a_fuse_filter_denies_none_of_its_keys_and_most_others(bits: int) -> None:
    filter = PebbleFuseFilter(pebble_fuse_of(KEYS, bits))
    assert all(filter.might_contain_many(KEYS))
    rate = sum(filter.might_contain_many(ABSENT)) / len(ABSENT)
    assert rate == pytest.approx(filter.expected_fpr, rel=0.2, abs=0.001)
    assert filter.bits == bits


@pytest.mark.parametrize("bits", WIDTHS)
def test_other_bytes_are_a_fuse_filter_or_an_error_of_ours(bits: int, rng: random.Random) -> None:
    data = pebble_fuse_of(KEYS[:40], bits)
    others = [data[:size] for size in range(len(data))]
    for bit in spread(range(8 * (len(data) - 14), 8 * len(data)), quick=60):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        others.append(bytes(flipped))
    for other in [*others, *(rng.randbytes(rng.randrange(60)) for _ in range(200))]:
        with contextlib.suppress(CorruptionError):
            PebbleFuseFilter(other).might_contain_many(KEYS)
    for size in range(len(data)):
        with pytest.raises(CorruptionError, match="a binary fuse filter "):
            PebbleFuseFilter(data[:size])


def test_a_window_answers_as_leveldb_does_where_keys_end_in_ascii() -> None:
    """The one difference is how the last bytes of a key are hashed, if they are above 127."""
    for data in (signed_window_of(KEYS), signed_window_of([]), b"", b"\6", b"\xff" * 8 + b"\x1f"):
        window, leveldbs = SignedWindow(data), LevelDBBloomFilter.from_bytes(data)
        assert window.might_contain_many(ABSENT) == leveldbs.might_contain_many(ABSENT)
        assert window.might_contain_many(PLAIN) == leveldbs.might_contain_many(PLAIN)
        assert (window.fill, window.expected_fpr) == (leveldbs.fill, leveldbs.expected_fpr)
    window = SignedWindow(signed_window_of(KEYS))
    assert all(window.might_contain_many(KEYS))
    assert not all(LevelDBBloomFilter.from_bytes(signed_window_of(KEYS)).might_contain_many(KEYS))
