"""The readable kernel: what every family does, in plain Python.

It is the reference that the compiled twin is held to, bit for bit, and what runs where nothing is
compiled. Each module has its twin of the same name in ``filters/kernels/native``.
"""

from filters.kernels.python.binary_fuse import BinaryFuseFilter
from filters.kernels.python.blocked import BlockedBloomFilter
from filters.kernels.python.bumped_ribbon import BumpedRibbonFilter
from filters.kernels.python.cassandra import CassandraBloomFilter
from filters.kernels.python.classic import ClassicBloomFilter
from filters.kernels.python.counting import CountingBloomFilter
from filters.kernels.python.cuckoo import CuckooFilter
from filters.kernels.python.digests import Digests
from filters.kernels.python.grafite import GrafiteFilter
from filters.kernels.python.leveldb import LevelDBBloomFilter
from filters.kernels.python.ribbon import RocksDBRibbonFilter
from filters.kernels.python.rocksdb import RocksDBBloomFilter
from filters.kernels.python.scalable import ScalableBloomFilter
from filters.kernels.python.surf import SurfFilter
from filters.kernels.python.xor import XorFilter

__all__: list[str] = [
    "BinaryFuseFilter",
    "BlockedBloomFilter",
    "BumpedRibbonFilter",
    "CassandraBloomFilter",
    "ClassicBloomFilter",
    "CountingBloomFilter",
    "CuckooFilter",
    "Digests",
    "GrafiteFilter",
    "LevelDBBloomFilter",
    "RocksDBBloomFilter",
    "RocksDBRibbonFilter",
    "ScalableBloomFilter",
    "SurfFilter",
    "XorFilter",
]
