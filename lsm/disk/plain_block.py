"""Blocks of plain keys: a table's index, metaindex and properties."""

from __future__ import annotations

from struct import unpack_from

from lsm.disk.coding import Fields
from lsm.errors import CorruptionError
from lsm.kernels.python.block_build import BlockBuilder

_WORD = 4


def write_block(entries: dict[bytes, bytes]) -> bytes:
    """The block of these entries, in order of their keys, each a restart of its own."""
    builder = BlockBuilder(restart_interval=1)
    for key in sorted(entries):
        builder.add(key, entries[key])
    return builder.finish()


def read_entries(data: bytes) -> list[tuple[bytes, bytes]]:
    """The entries of a block in their order; CorruptionError for what is no block."""
    count = unpack_from("<I", data, len(data) - _WORD)[0] if len(data) >= _WORD else 0
    end = len(data) - _WORD * (count + 1)
    if count == 0 or end < 0:
        raise CorruptionError(f"a block of {len(data)} bytes has no room for {count} restarts")
    fields = Fields(data[:end], "a block's entries")
    entries, key = [], b""
    while fields.remaining:
        shared = fields.varint32("shared length")
        unshared = fields.varint32("unshared length")
        length = fields.varint32("value length")
        if shared > len(key):
            raise CorruptionError(
                f"a block's entry shares {shared} bytes with a key that has {len(key)}"
            )
        key = key[:shared] + fields.take(unshared, "key")
        entries.append((key, fields.take(length, "value")))
    return entries


def read_block(data: bytes) -> dict[bytes, bytes]:
    """The entries of a block by key."""
    return dict(read_entries(data))
