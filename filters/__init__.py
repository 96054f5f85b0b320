"""Filter families for LSM stores: bytes in, bytes out.

Every family is one class with one shape::

    f = BlockedBloomFilter.build(keys, bits_per_key=10)    # or fpr=0.01
    f.might_contain(key)                                   # False is certain, True means "maybe"
    BlockedBloomFilter.from_bytes(f.to_bytes()) == f

The classes are those of the kernel that runs here; ``filters.KERNEL`` names it and
``filters.KERNEL_REASON`` says why it was chosen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from filters import kernels
from filters.errors import (
    CapacityError,
    CorruptFilterError,
    FilterError,
    GeometryMismatchError,
    KernelUnavailableError,
    UnsupportedVersionError,
)
from filters.hashing import digest
from filters.packed_keys import PackedKeys

KERNEL, KERNEL_REASON = kernels.choose()

if TYPE_CHECKING:
    from filters.kernels.python import (
        BinaryFuseFilter,
        BlockedBloomFilter,
        BumpedRibbonFilter,
        CassandraBloomFilter,
        ClassicBloomFilter,
        CountingBloomFilter,
        CuckooFilter,
        Digests,
        LevelDBBloomFilter,
        RocksDBBloomFilter,
        RocksDBRibbonFilter,
        ScalableBloomFilter,
        XorFilter,
    )
else:
    _chosen = kernels.load(KERNEL)
    BinaryFuseFilter = _chosen.BinaryFuseFilter
    BlockedBloomFilter = _chosen.BlockedBloomFilter
    CassandraBloomFilter = _chosen.CassandraBloomFilter
    BumpedRibbonFilter = _chosen.BumpedRibbonFilter
    ClassicBloomFilter = _chosen.ClassicBloomFilter
    CountingBloomFilter = _chosen.CountingBloomFilter
    CuckooFilter = _chosen.CuckooFilter
    Digests = _chosen.Digests
    LevelDBBloomFilter = _chosen.LevelDBBloomFilter
    RocksDBBloomFilter = _chosen.RocksDBBloomFilter
    RocksDBRibbonFilter = _chosen.RocksDBRibbonFilter
    ScalableBloomFilter = _chosen.ScalableBloomFilter
    XorFilter = _chosen.XorFilter

__all__ = [
    "KERNEL",
    "KERNEL_REASON",
    "BinaryFuseFilter",
    "BlockedBloomFilter",
    "BumpedRibbonFilter",
    "CapacityError",
    "CassandraBloomFilter",
    "ClassicBloomFilter",
    "CorruptFilterError",
    "CountingBloomFilter",
    "CuckooFilter",
    "Digests",
    "FilterError",
    "GeometryMismatchError",
    "KernelUnavailableError",
    "LevelDBBloomFilter",
    "PackedKeys",
    "RocksDBBloomFilter",
    "RocksDBRibbonFilter",
    "ScalableBloomFilter",
    "UnsupportedVersionError",
    "XorFilter",
    "digest",
]
