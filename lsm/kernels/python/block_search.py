"""Finding entries in a block of internal keys, and decoding them.

An entry's three lengths are read as single bytes where all are below 128. That may reach into the
restart array, which follows in any block, and what it finds there is refused.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from struct import Struct
from typing import TYPE_CHECKING

from lsm.disk.keys import VERSION_BYTES, Entry
from lsm.errors import CorruptionError

if TYPE_CHECKING:
    from lsm.comparator import OrderedKey
    from lsm.disk.block import Block

_SHIFTS = (7, 14, 21, 28)  # of the bytes of a varint32 after its first
_version_at = Struct("<Q").unpack_from


def find(block: Block, key: OrderedKey, rank: int) -> Entry | None:
    """The first entry from (key, rank) on, or None if the block has none."""
    keys = block.restart_keys or restart_keys(block)
    run = bisect_left(keys, key)
    at = block.restarts[run - 1] if run else 0
    data, end, wrap = block.data, block.entries_end, block.wrap
    full = b""
    while at < end:
        shared, unshared, length = data[at], data[at + 1], data[at + 2]
        if shared | unshared | length < 128:
            at += 3
        elif shared | unshared < 128 and data[at + 3] < 128:  # a value of some hundred bytes
            length = length & 127 | data[at + 3] << 7
            at += 4
        else:
            shared, unshared, length, at = _long_lengths(block, at)
        value_at = at + unshared
        if shared > len(full) or shared + unshared < VERSION_BYTES or value_at + length > end:
            raise _malformed(block, at)
        full = full[:shared] + data[at:value_at]
        at = value_at + length
        user_key = full[:-VERSION_BYTES] if wrap is None else wrap(full[:-VERSION_BYTES])
        if user_key < key:
            continue
        found = -_version_at(full, len(full) - VERSION_BYTES)[0]
        if found >= rank or key < user_key:
            return user_key, found, data[value_at:at]
    return None


def decode(block: Block, start: int, end: int) -> list[Entry]:
    """All entries between two offsets, of which the first is a restart."""
    data, wrap = block.data, block.wrap
    entries: list[Entry] = []
    append = entries.append
    full, at = b"", start
    while at < end:
        shared, unshared, length = data[at], data[at + 1], data[at + 2]
        if shared | unshared | length < 128:
            at += 3
        elif shared | unshared < 128 and data[at + 3] < 128:  # a value of some hundred bytes
            length = length & 127 | data[at + 3] << 7
            at += 4
        else:
            shared, unshared, length, at = _long_lengths(block, at)
        value_at = at + unshared
        if shared > len(full) or shared + unshared < VERSION_BYTES or value_at + length > end:
            raise _malformed(block, at)
        full = full[:shared] + data[at:value_at]
        at = value_at + length
        version = _version_at(full, len(full) - VERSION_BYTES)[0]
        append((full[:-VERSION_BYTES], -version, data[value_at:at]))
    if wrap is not None:
        return [(wrap(key), rank, value) for key, rank, value in entries]
    return entries


def entries_from(block: Block, key: OrderedKey) -> list[Entry]:
    """The entries of all user keys from this one on."""
    run = bisect_left(block.restart_keys or restart_keys(block), key)
    start = block.restarts[run - 1] if run else 0
    entries = decode(block, start, block.entries_end)
    return entries[bisect_left(entries, key, key=_user_key) :]


def entries_through(block: Block, key: OrderedKey) -> list[Entry]:
    """The entries of all user keys up to this one."""
    restarts = block.restarts
    run = bisect_right(block.restart_keys or restart_keys(block), key)
    end = restarts[run] if run < len(restarts) else block.entries_end
    entries = decode(block, 0, end)
    return entries[: bisect_right(entries, key, key=_user_key)]


def restart_keys(block: Block) -> list[OrderedKey]:
    """The user keys at the restarts, decoded once for a block."""
    data, end, wrap = block.data, block.entries_end, block.wrap
    keys = []
    for restart in block.restarts if end else ():
        shared, unshared, _, at = _long_lengths(block, restart)
        if shared or unshared < VERSION_BYTES or at + unshared > end:
            raise _malformed(block, restart)
        key = data[at : at + unshared - VERSION_BYTES]
        keys.append(key if wrap is None else wrap(key))
    block.restart_keys = keys
    return keys


def _user_key(entry: Entry) -> OrderedKey:
    return entry[0]


def _long_lengths(block: Block, at: int) -> tuple[int, int, int, int]:
    """An entry's shared, unshared and value length, and where its key begins."""
    data, start = block.data, at
    lengths = []
    for _ in range(3):
        length = data[at]
        at += 1
        if length >= 128:
            length &= 127
            for shift in _SHIFTS:
                byte = data[at]
                at += 1
                length |= (byte & 127) << shift
                if byte < 128:
                    break
            else:
                raise _malformed(block, start)
            if at > block.entries_end:  # what follows the last entry is no number of one
                raise _malformed(block, start)
        lengths.append(length)
    shared, unshared, length = lengths
    return shared, unshared, length, at


def _malformed(block: Block, at: int) -> CorruptionError:
    from lsm.disk.block import ADVICE

    return CorruptionError(
        f"{block.place}: its entry at byte {at} is malformed, its lengths do not fit the "
        f"{block.entries_end} bytes of entries; {ADVICE}"
    )
