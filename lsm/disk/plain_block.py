"""Blocks of plain keys: a table's index, metaindex and properties."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from struct import pack, unpack_from

from lsm.disk.coding import Fields, varint
from lsm.errors import CorruptionError

# LevelDB and this engine write each key of these blocks as a whole: all of them have fewer bytes
# than the block. RocksDB may be told to share prefixes here as well, and has this much room for it.
ROOM_FOR_KEYS = 1 << 26
# Far more than the filters and properties of a table, which is what is read by name.
MOST_NAMES = 1 << 14

_WORD = 4


def write_block(entries: Iterable[tuple[bytes, bytes]]) -> bytes:
    """The block of these entries, whose keys ascend, each a restart of its own."""
    data = bytearray()
    restarts: list[int] = []
    for key, value in entries:
        restarts.append(len(data))
        data += b"\0" + varint(len(key)) + varint(len(value)) + key + value
    restarts = restarts or [0]
    data += pack(f"<{len(restarts) + 1}I", *restarts, len(restarts))
    return bytes(data)


def read_entries(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The entries of a block in their order; CorruptionError for what is no block.

    All keys together have ROOM_FOR_KEYS bytes at most, or as many as the block.
    """
    count = unpack_from("<I", data, len(data) - _WORD)[0] if len(data) >= _WORD else 0
    end = len(data) - _WORD * (count + 1)
    if count == 0 or end < 0:
        raise CorruptionError(f"a block of {len(data)} bytes has no room for {count} restarts")
    fields = Fields(data[:end], "a block's entries")
    key, room = b"", max(ROOM_FOR_KEYS, len(data))
    while fields.remaining:
        start = fields.at
        shared = fields.varint32("shared length")
        unshared = fields.varint32("unshared length")
        length = fields.varint32("value length")
        if shared > len(key):
            raise CorruptionError(
                f"a block's entry shares {shared} bytes with a key that has {len(key)}"
            )
        key = key[:shared] + fields.take(unshared, "key")
        room -= len(key)
        if room < 0:
            raise CorruptionError(
                f"the keys of a block of {len(data)} bytes, up to that of its entry at byte "
                f"{start}, take more than the {max(ROOM_FOR_KEYS, len(data))} bytes allowed"
            )
        yield key, fields.take(length, "value")


def read_block(data: bytes) -> dict[bytes, bytes]:
    """The entries of a block by key, of which there are MOST_NAMES at most."""
    entries = list(islice(read_entries(data), MOST_NAMES + 1))
    if len(entries) > MOST_NAMES:
        raise CorruptionError(
            f"a block of {len(data)} bytes has more than the {MOST_NAMES} entries allowed"
        )
    return dict(entries)
