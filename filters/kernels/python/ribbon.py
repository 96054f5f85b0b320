"""RocksDB's Ribbon filter, built in Python; ``equations.py`` solves its equations."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Self

from filters import ribbon, rocksdb
from filters.columns import one_by_one
from filters.digest_kinds import XXPH3
from filters.kernels.python import equations
from filters.kernels.python.foreign import distinct_neighbours
from filters.kernels.python.rocksdb import bloom_bytes
from filters.kernels.python.rocksdb_filter import RocksDBFilter
from filters.sizing_parameters import SizingParameter

if TYPE_CHECKING:
    from filters.columns import Nulls
    from filters.hashing import Key
    from filters.kernels.python.digests import Digests


class RocksDBRibbonFilter(RocksDBFilter):
    """RocksDB's own Ribbon filter, to the byte; sized by ``bits_per_key`` or ``fpr``.

    ``bits_per_key`` are those of the Bloom filter whose rate is asked for; the filter takes about
    seven for ten. Of few keys RocksDB builds that very Bloom filter, where it is smaller.
    """

    __slots__ = ()
    family = ribbon.FAMILY

    @classmethod
    def build(
        cls,
        keys: Iterable[Key] | Digests,
        *,
        bits_per_key: float | None = None,
        fpr: float | None = None,
        optimize_filters_for_memory: bool = True,
        nulls: Nulls = "error",
    ) -> Self:
        """A filter of exactly these keys; one that equals the key before it is dropped.

        ``optimize_filters_for_memory`` is RocksDB's option of that name, and of consequence for
        the probes of a Bloom filter only.
        """
        sizing = ribbon.check(
            bits_per_key=bits_per_key,
            fpr=fpr,
            optimize_filters_for_memory=optimize_filters_for_memory,
        )
        hashes = distinct_neighbours(one_by_one(keys, nulls), XXPH3)
        data = _ribbon_bytes(hashes, sizing, optimize_filters_for_memory)
        if data is None:
            geometry = ribbon.bloom_plan(
                len(hashes), sizing, optimize_filters_for_memory=optimize_filters_for_memory
            )
            data = bloom_bytes(hashes, geometry)
        return cls._of(data, len(hashes))


def _ribbon_bytes(hashes: list[int], sizing: SizingParameter, adaptive: bool) -> bytes | None:
    """The Ribbon filter of these hashes; None where it is a Bloom filter that is to be built."""
    if not hashes:
        return None
    first = hashes[0]
    geometry = ribbon.plan(
        len(hashes), sizing, first_hash=first, optimize_filters_for_memory=adaptive
    )
    if isinstance(geometry, rocksdb.Geometry):
        return None
    for seed in ribbon.seeds(first):
        segments = equations.solution(hashes, geometry, seed)
        if segments is not None:
            return segments + ribbon.trailer(geometry, seed)
    return None
