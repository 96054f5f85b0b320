"""The compiled kernel: what ``filters/kernels/python`` does, at the speed of the machine.

Module for module and name for name its twin, held to it bit for bit. What is here in C headers is
what Cython has no word for: products of 128 bits, vector instructions, hashing without Python.
"""

try:
    from filters.kernels.native.binary_fuse import BinaryFuseFilter
    from filters.kernels.native.blocked import BlockedBloomFilter
    from filters.kernels.native.bumped_ribbon import BumpedRibbonFilter
    from filters.kernels.native.cassandra import CassandraBloomFilter
    from filters.kernels.native.classic import ClassicBloomFilter
    from filters.kernels.native.counting import CountingBloomFilter
    from filters.kernels.native.cuckoo import CuckooFilter
    from filters.kernels.native.digests import Digests
    from filters.kernels.native.leveldb import LevelDBBloomFilter
    from filters.kernels.native.ribbon import RocksDBRibbonFilter
    from filters.kernels.native.rocksdb import RocksDBBloomFilter
    from filters.kernels.native.scalable import ScalableBloomFilter
    from filters.kernels.native.xor import XorFilter
except ModuleNotFoundError as error:
    try:
        # What setup.py leaves behind where it could not compile.
        from filters.kernels.native.why_not import WHY_NOT
    except ModuleNotFoundError:
        WHY_NOT = "it is not compiled here: pip install does that"
    raise ImportError(WHY_NOT) from error

__all__ = [
    "BinaryFuseFilter",
    "BlockedBloomFilter",
    "BumpedRibbonFilter",
    "CassandraBloomFilter",
    "ClassicBloomFilter",
    "CountingBloomFilter",
    "CuckooFilter",
    "Digests",
    "LevelDBBloomFilter",
    "RocksDBBloomFilter",
    "RocksDBRibbonFilter",
    "ScalableBloomFilter",
    "XorFilter",
]
