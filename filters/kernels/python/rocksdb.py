"""RocksDB's Bloom filter, built in Python; ``rocksdb_filter.py`` reads it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Self

from filters import rocksdb
from filters.columns import one_by_one
from filters.compat_hashing import MASK32
from filters.digest_kinds import XXPH3
from filters.kernels.python.foreign import distinct_neighbours
from filters.kernels.python.rocksdb_filter import RocksDBFilter

if TYPE_CHECKING:
    from filters.columns import Nulls
    from filters.hashing import Key
    from filters.kernels.python.digests import Digests


class RocksDBBloomFilter(RocksDBFilter):
    """RocksDB's own Bloom filter, to the byte; sized by ``bits_per_key`` or ``fpr``.

    Any bytes are a filter, as they are to RocksDB; :attr:`form` says what they were taken for.
    There is nothing secret in it: who chooses the keys can choose ones that pass.
    """

    __slots__ = ()
    family = rocksdb.FAMILY

    @classmethod
    def build(
        cls,
        keys: Iterable[Key] | Digests,
        *,
        bits_per_key: float | None = None,
        fpr: float | None = None,
        num_probes: int | None = None,
        optimize_filters_for_memory: bool = True,
        nulls: Nulls = "error",
    ) -> Self:
        """A cache-local filter of exactly these keys; one that equals the key before it is dropped.

        ``optimize_filters_for_memory`` is RocksDB's option of that name: the probes are chosen for
        the size after rounding to whole lines, not for the bits per key that were asked for.
        """
        sizing = rocksdb.check(
            bits_per_key=bits_per_key,
            fpr=fpr,
            num_probes=num_probes,
            optimize_filters_for_memory=optimize_filters_for_memory,
        )
        hashes = distinct_neighbours(one_by_one(keys, nulls), XXPH3)
        geometry = rocksdb.plan(
            len(hashes), sizing, num_probes, optimize_filters_for_memory=optimize_filters_for_memory
        )
        return cls._of(bloom_bytes(hashes, geometry), len(hashes))


def bloom_bytes(hashes: list[int], geometry: rocksdb.Geometry) -> bytes:
    """The cache-local filter of these hashes; no bytes at all where there are none."""
    payload = bytearray(rocksdb.payload_bytes(geometry))
    for each in hashes:
        _insert(payload, geometry, each)
    return bytes(payload) + rocksdb.trailer(geometry) if payload else b""


def _insert(payload: bytearray, geometry: rocksdb.Geometry, hashed: int) -> None:
    line = (hashed & MASK32) * geometry.lines >> 32 << 6
    h = hashed >> 32
    for _ in range(geometry.num_probes):
        payload[line + (h >> 26)] |= 1 << (h >> 23 & 7)
        h = h * rocksdb.PROBE_MULTIPLIER & MASK32
