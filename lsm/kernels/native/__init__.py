"""The compiled kernel of the engine, for databases whose keys compare as bytes.

Nouns that have no compiled twin are the readable kernel's, which work with the compiled ones.
"""

from lsm.kernels.native.batch import Batch
from lsm.kernels.native.block import Block
from lsm.kernels.native.block_builder import BlockBuilder
from lsm.kernels.native.cache_item import CacheItem
from lsm.kernels.native.cursor import CLOSED, Cursor, Window
from lsm.kernels.native.filter_door import FilterDoor
from lsm.kernels.native.iterator import Iterator, Walker, Walkers
from lsm.kernels.native.keyspace import Keyspace
from lsm.kernels.native.log_end import LogEnd
from lsm.kernels.native.lookup import find
from lsm.kernels.native.memtable import Memtable
from lsm.kernels.native.merge import Source
from lsm.kernels.native.partitions import Partitions
from lsm.kernels.native.readable import Readable
from lsm.kernels.native.reader import Reader, bounds_of, cursor_over
from lsm.kernels.native.snappy import compress as snappy_compress
from lsm.kernels.native.snappy import decompress as snappy_decompress
from lsm.kernels.native.survivors import Survivors
from lsm.kernels.native.table import Table, TableFile
from lsm.kernels.native.table_body import TableBody
from lsm.kernels.native.table_keys import TableKeys
from lsm.kernels.native.tally import Tally
from lsm.kernels.native.view import View
from lsm.kernels.python.cursor import Edge

__all__ = [
    "CLOSED",
    "Batch",
    "Block",
    "BlockBuilder",
    "CacheItem",
    "Cursor",
    "Edge",
    "FilterDoor",
    "Iterator",
    "Keyspace",
    "LogEnd",
    "Memtable",
    "Partitions",
    "Readable",
    "Reader",
    "Source",
    "Survivors",
    "Table",
    "TableBody",
    "TableFile",
    "TableKeys",
    "Tally",
    "View",
    "Walker",
    "Walkers",
    "Window",
    "bounds_of",
    "cursor_over",
    "find",
    "snappy_compress",
    "snappy_decompress",
]
