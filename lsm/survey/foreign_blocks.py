"""RocksDB's and Pebble's blocks in the form that LevelDB's are in, and the entries of indexes."""

from __future__ import annotations

from collections.abc import Iterator
from struct import pack, unpack_from

from lsm.disk.coding import Fields
from lsm.disk.footer import TRAILER_BYTES, Handle
from lsm.disk.plain_block import ROOM_FOR_KEYS, read_entries
from lsm.errors import CorruptionError

_WORD = 4
_COUNT_BITS = 28
_OFFSET_MASK = (1 << 31) - 1
_HASHED = 1 << 31 >> _COUNT_BITS
_EVENLY_SPREAD = 1 << 30 >> _COUNT_BITS
_VALUES_APART = 1 << 28 >> _COUNT_BITS


def plain_form(contents: bytes) -> bytes:
    """A block without what RocksDB has put behind its restarts, or said of it beside their number.

    The four highest bits of that number are flags. One of them says that a hash index of the keys
    follows the restarts: a byte for each bucket, and how many there are as a u16.
    """
    if len(contents) < _WORD:
        return contents  # too short for any block, as who reads it will find
    end = len(contents) - _WORD
    count = int.from_bytes(contents[end:], "little")
    flags, count = count >> _COUNT_BITS, count & (1 << _COUNT_BITS) - 1
    if not flags:
        return contents
    if flags & ~(_HASHED | _EVENLY_SPREAD):
        apart = ": its values stand apart" if flags & _VALUES_APART else ""
        raise CorruptionError(f"a block has the flags {flags:#x}, which are not read here{apart}")
    if flags & _HASHED:
        buckets = int.from_bytes(contents[max(0, end - 2) : end], "little")
        end -= 2 + buckets
        if end < 0:
            raise CorruptionError(
                f"a block of {len(contents)} bytes has no room for an index of {buckets} buckets"
            )
    return contents[:end] + pack("<I", count)


def plain_restarts(contents: bytes) -> bytes:
    """A block without what Pebble says in the highest bits of its restarts: of prefixes of keys."""
    end = len(contents) - _WORD
    count = int.from_bytes(contents[max(0, end) :], "little")
    start = end - _WORD * count
    if start < 0:
        return contents  # no block, as who reads it will find
    restarts = unpack_from(f"<{count}I", contents, start)
    return (
        contents[:start]
        + pack(f"<{count}I", *(each & _OFFSET_MASK for each in restarts))
        + (contents[end:])
    )


def read_index(
    contents: bytes, *, has_delta_handles: bool, has_first_keys: bool = False
) -> Iterator[tuple[bytes, Handle]]:
    """The keys and handles of an index; CorruptionError for what is none.

    With delta handles, entries do not say how long their values are. One that shares bytes of its
    key with the one before then has the difference of their sizes for a handle, its lowest bit the
    sign, and begins where that one ends. With first keys, the first key of the block follows.
    """
    contents = plain_form(contents)
    if not has_delta_handles:
        for key, value in read_entries(contents):
            yield key, Handle.decode(value, "an index entry")
        return
    count = int.from_bytes(contents[-_WORD:], "little")
    end = len(contents) - _WORD * (count + 1)
    if count == 0 or end < 0:
        raise CorruptionError(f"an index of {len(contents)} bytes has no room for {count} restarts")
    fields = Fields(contents[:end], "an index's entries")
    key, handle, room = b"", Handle(0, 0), max(ROOM_FOR_KEYS, len(contents))
    while fields.remaining:
        shared = fields.varint32("shared length")
        unshared = fields.varint32("unshared length")
        if shared > len(key):
            raise CorruptionError(
                f"an index's entry shares {shared} bytes with a key that has {len(key)}"
            )
        key = key[:shared] + fields.take(unshared, "key")
        room -= len(key)
        if room < 0:
            raise CorruptionError(f"the keys of an index of {len(contents)} bytes take too many")
        handle = _next_handle(fields, handle) if shared else Handle.take(fields)
        if has_first_keys:
            fields.slice("first key")
        yield key, handle


def _next_handle(fields: Fields, before: Handle) -> Handle:
    """The handle of the block behind another one."""
    number = fields.varint64("difference of sizes")
    size = before.size + (number >> 1 ^ -(number & 1))
    if size < 0:
        raise CorruptionError(f"a block after one of {before.size} bytes would have {size}")
    return Handle(before.offset + before.size + TRAILER_BYTES, size)
