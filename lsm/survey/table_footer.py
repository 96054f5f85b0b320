"""The footers of block-based tables: where their metaindex is, and how their blocks are guarded.

All end in eight bytes that say whose they are:

- LevelDB's: 48 bytes, two handles and zeros before those. RocksDB wrote it in its first years.
- RocksDB's, 53 bytes: the kind of checksums, 40 bytes for two handles, a u32 format version. From
  version 6 on the 40 bytes are ``3e 00 7a 00``, a u32 checksum of the footer itself, a u32 that
  the checksums of blocks are mixed with, the u32 size of the metaindex right before, and zeros.
- Pebble's: as RocksDB's. From its version 6 on a u32 checksum of all other bytes stands before the
  version, and from 7 on u32 attributes before that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from lsm.disk.coding import Fields
from lsm.disk.footer import FOOTER_BYTES, MAGIC, TRAILER_BYTES, Footer, Handle
from lsm.errors import CorruptionError
from lsm.survey import block_checksums
from lsm.survey.block_checksums import CRC32C

if TYPE_CHECKING:
    from lsm.survey.source import Source

LEVELDB_MAGIC = MAGIC
MAGIC_BYTES = len(MAGIC)
ROCKSDB_MAGIC = bytes.fromhex("f7cff485b741e288")
PEBBLE_MAGIC = bytes.fromhex("f09faab3f09faab3")
MAGICS = (LEVELDB_MAGIC, ROCKSDB_MAGIC, PEBBLE_MAGIC)

_HANDLES_BYTES = 40
_VERSION_BYTES = 4
_WORD = 4
_ROCKSDB_BYTES = 1 + _HANDLES_BYTES + _VERSION_BYTES + MAGIC_BYTES
_LAST_ROCKSDB_VERSION = 7
_FIRST_ROCKSDB_PLACED = 6
_PLACED_MAGIC = bytes.fromhex("3e007a00")
_LAST_PEBBLE_VERSION = 8
_FIRST_PEBBLE_CHECKED = 6
_FIRST_PEBBLE_ATTRIBUTES = 7


@attrs.frozen(kw_only=True)
class TableFooter:
    """What a table's last bytes say.

    ``index`` is None where the metaindex leads to it. ``base`` is what the checksums of blocks are
    mixed with, 0 for nothing.
    """

    magic: bytes
    version: int
    """The format version, which RocksDB and Pebble count each for itself; 0 in LevelDB's form."""
    checksum: int
    metaindex: Handle
    index: Handle | None
    base: int = 0

    @property
    def is_of_pebble(self) -> bool:
        """Whether the versions are Pebble's."""
        return self.magic == PEBBLE_MAGIC


def read_footer(source: Source) -> TableFooter:
    """The footer of a table; CorruptionError, with file and place, for what has none."""
    magic = source.end(MAGIC_BYTES)
    if magic not in MAGICS:
        raise source.damaged(
            max(0, source.size - MAGIC_BYTES),
            f"not a block-based table: the file ends in {magic.hex() or 'nothing'}, those end in "
            f"one of {', '.join(known.hex() for known in MAGICS)}",
        )
    version = 0
    if magic != LEVELDB_MAGIC:
        end = source.end(MAGIC_BYTES + _VERSION_BYTES)
        version = int.from_bytes(end[:_VERSION_BYTES], "little")
    size = _size(magic, version)
    start = source.size - size
    if start < 0:
        raise source.damaged(
            0, f"its footer of {size} bytes is cut short: the file has {source.size}"
        )
    data = source.end(size)
    try:
        return _decoded(magic, version, data, start)
    except CorruptionError as error:
        raise source.damaged(start, error) from error


def _size(magic: bytes, version: int) -> int:
    if magic == LEVELDB_MAGIC:
        return FOOTER_BYTES
    if magic == PEBBLE_MAGIC:
        checked, told = version >= _FIRST_PEBBLE_CHECKED, version >= _FIRST_PEBBLE_ATTRIBUTES
        return _ROCKSDB_BYTES + _WORD * (checked + told)
    return _ROCKSDB_BYTES


def _decoded(magic: bytes, version: int, data: bytes, start: int) -> TableFooter:
    if magic == LEVELDB_MAGIC:
        both = Footer.decode(data)
        return TableFooter(
            magic=magic, version=0, checksum=CRC32C, metaindex=both.metaindex, index=both.index
        )
    last = _LAST_PEBBLE_VERSION if magic == PEBBLE_MAGIC else _LAST_ROCKSDB_VERSION
    if version > last:
        raise CorruptionError(
            f"a table of format version {version}, this release reads those up to {last}"
        )
    if magic == PEBBLE_MAGIC and version >= _FIRST_PEBBLE_CHECKED:
        _check_pebbles(data)
    if magic == ROCKSDB_MAGIC and version >= _FIRST_ROCKSDB_PLACED:
        return _placed(version, data, start)
    fields = Fields(data[1 : 1 + _HANDLES_BYTES], "a table's footer")
    return TableFooter(
        magic=magic,
        version=version,
        checksum=data[0],
        metaindex=Handle.take(fields),
        index=Handle.take(fields),
    )


def _check_pebbles(data: bytes) -> None:
    at = len(data) - MAGIC_BYTES - _VERSION_BYTES - _WORD
    stored = int.from_bytes(data[at : at + _WORD], "little")
    others = data[:at] + data[at + _WORD :]
    if block_checksums.computed(CRC32C, others[:-1], others[-1]) != stored:
        raise CorruptionError("the footer does not match its checksum")


def _placed(version: int, data: bytes, start: int) -> TableFooter:
    """RocksDB's footer of version 6 and later, which tells the metaindex by its size alone."""
    fields = Fields(data, "a table's footer")
    kind = fields.byte("kind of checksums")
    if (magic := fields.take(len(_PLACED_MAGIC), "magic")) != _PLACED_MAGIC:
        raise CorruptionError(
            f"a footer of format version {version} has {magic.hex()} where it should have "
            f"{_PLACED_MAGIC.hex()}"
        )
    at = fields.at
    stored, base, size = (
        fields.number(_WORD, what) for what in ("checksum", "base of checksums", "metaindex's size")
    )
    unsigned = data[:at] + bytes(_WORD) + data[at + _WORD :]
    expected = block_checksums.computed(kind, unsigned[:-1], unsigned[-1])
    added = block_checksums.of_place(base, start)
    # Without checksums of blocks there is none of the footer, but for what its place adds.
    if expected is not None and (expected + added) & 0xFFFF_FFFF != stored:
        raise CorruptionError("the footer does not match its checksum")
    if size + TRAILER_BYTES > start:
        raise CorruptionError(
            f"the metaindex would take {size} bytes before the footer, which begins at byte {start}"
        )
    return TableFooter(
        magic=data[-MAGIC_BYTES:],
        version=version,
        checksum=kind,
        metaindex=Handle(start - TRAILER_BYTES - size, size),
        index=None,
        base=base,
    )
