"""The readable kernel of the engine: what readers spend their time in, in plain Python.

It is the reference that the compiled twin is held to, what runs where nothing is compiled, and what
databases with a comparator of their own run on. Each module that has a twin has it under the same
name in ``lsm/kernels/native``.
"""

from lsm.kernels.python.batch import Batch
from lsm.kernels.python.block import Block
from lsm.kernels.python.block_builder import BlockBuilder
from lsm.kernels.python.cache_item import CacheItem
from lsm.kernels.python.cursor import CLOSED, Cursor, Edge, Source, Window
from lsm.kernels.python.filter_door import FilterDoor
from lsm.kernels.python.iterator import Iterator, Walker, Walkers
from lsm.kernels.python.keyspace import Keyspace
from lsm.kernels.python.log_end import LogEnd
from lsm.kernels.python.lookup import find
from lsm.kernels.python.memtable import Memtable
from lsm.kernels.python.partitions import Partitions
from lsm.kernels.python.readable import Readable
from lsm.kernels.python.reader import Reader, bounds_of, cursor_over
from lsm.kernels.python.snappy import compress as snappy_compress
from lsm.kernels.python.snappy import decompress as snappy_decompress
from lsm.kernels.python.survivors import Survivors
from lsm.kernels.python.table import Table, TableFile
from lsm.kernels.python.table_body import TableBody
from lsm.kernels.python.table_keys import TableKeys
from lsm.kernels.python.tally import Tally
from lsm.kernels.python.view import View

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
