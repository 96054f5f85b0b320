"""What a placement has to know of a table: how many keys it has, and what its filter takes."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import attrs

from lsm.disk.partitioned_filters import PARTITIONED_PREFIX, PartitionIndex
from lsm.disk.table import TableReader
from lsm.errors import CorruptionError, IOError
from lsm.kernels import of
from lsm.tables import path_of

if TYPE_CHECKING:
    from lsm.comparator import Comparator
    from lsm.kernels import TableFile
    from lsm.storage import Storage
    from lsm.table_factory import Output

# No file tells of more keys: of entries whose keys repeat one another, which compress best.
_MOST_KEYS_PER_BYTE = 64
# What an entry takes where nothing at all can be read, and only a guess is left.
_USUAL_ENTRY = 100


@attrs.frozen
class TableFacts:
    """How many keys a table has, as far as it tells, and the bytes of its filter as stored."""

    keys: int
    filter_bytes: int

    @classmethod
    def of_output(cls, output: Output) -> TableFacts:
        """The facts of a table that was written just now."""
        return cls(output.table.num_entries, output.table.filter_bytes)


def read(storage: Storage, directory: str, file: TableFile, comparator: Comparator) -> TableFacts:
    """The facts of a table, by its properties; by a look at its first block where it has none.

    What cannot be read is guessed by the file's size: nobody's answer depends on it.
    """
    guess = TableFacts(max(1, file.size // _USUAL_ENTRY), 0)
    kernel = of(comparator)
    try:
        path = path_of(storage, directory, file)
        mapped = storage.map(path)
    except (IOError, ValueError):
        return guess
    try:
        reader = TableReader(path, mapped, kernel.snappy_decompress)
        taken = filter_bytes(reader)
        properties = reader.properties()
        if properties is None:
            keys = _keys_by_a_look(kernel.Table(reader, comparator.wrap, file, None))
        else:
            keys = properties.num_entries
    except CorruptionError:
        return guess
    finally:
        mapped.close()
    return TableFacts(min(keys, _MOST_KEYS_PER_BYTE * file.size), min(taken, file.size))


def filter_bytes(reader: TableReader) -> int:
    """The bytes of a table's filters as stored, with those of partitions as far as it tells."""
    taken = 0
    for key, handle in reader.filter_entries().items():
        taken += handle.size
        if key.startswith(PARTITIONED_PREFIX):
            with contextlib.suppress(CorruptionError):
                index, _ = reader.read_filter(handle)
                taken += PartitionIndex.decode(index, len(reader.mapped.data)).size - handle.size
    return taken


def _keys_by_a_look(table: Any) -> int:
    """As many as would be there if every block had as many as the first."""
    if not table.block_count:
        return 0
    count: int = table.block_count * sum(map(len, table.read(0).pieces()))
    return count
