"""A data block in memory: entries of internal keys, and restarts to begin reading at.

An entry's three lengths are read as single bytes where all are below 128. What that finds in the
restart array, which follows in any block, is refused when the block enters memory.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from struct import Struct, unpack_from
from typing import TYPE_CHECKING

from lsm.disk.keys import VERSION_BYTES, Entry, shared_prefix
from lsm.errors import ADVICE, CorruptionError
from lsm.kernels.python.cache_item import CacheItem

if TYPE_CHECKING:
    from lsm.comparator import OrderedKey
    from lsm.kernels.python.table import Table

_WORD = 4
_LEAST_ENTRY = 3 + VERSION_BYTES  # at a restart: three lengths, and at least a version for a key
# What a block costs besides its bytes: the object, its lists, a key object per restart.
_OVERHEAD = 320
_RESTART_OVERHEAD = 100

# A block of S bytes can stand for keys of S * S / 20 bytes, if each shares nearly all of the one
# before, and nothing is wrong with that. So entries are decoded a piece at a time: from so many
# bytes of the block, and of keys that share so many bytes. Ordinary blocks are one piece.
PIECE_BYTES = 1 << 18
PIECE_KEY_BYTES = 1 << 20

_SHIFTS = (7, 14, 21, 28)  # of the bytes of a varint32 after its first
_version_at = Struct("<Q").unpack_from


class Block(CacheItem):
    """One block of a table, its entries decoded when they are asked for.

    CorruptionError unless the entries follow one another to the end, each within the block, and the
    restarts lead to keys that stand there as a whole. Whether keys ascend is not asked.

    In a cache it is that of its ``number`` in the table to which ``owner`` refers.
    """

    __slots__ = (
        "charge",
        "data",
        "entries_end",
        "number",
        "owner",
        "place",
        "restart_keys",
        "restarts",
        "wrap",
    )

    def __init__(
        self,
        data: bytes,
        wrap: Callable[[bytes], OrderedKey] | None = None,
        place: str = "a block",
    ):
        count = unpack_from("<I", data, len(data) - _WORD)[0] if len(data) >= _WORD else 0
        end = len(data) - _WORD * (count + 1)
        if count == 0 or end < 0 or count > end // _LEAST_ENTRY + 2:
            raise CorruptionError(
                f"{place}: it has {len(data)} bytes and no room for its {count} restarts; {ADVICE}"
            )
        super().__init__()
        self.data = data
        self.owner: Callable[[], Table | None] | None = None
        self.number = 0
        self.place = place
        self.entries_end = end
        self.wrap = wrap
        self.restarts: tuple[int, ...] = unpack_from(f"<{count}I", data, end)
        if self.restarts[0] != 0 or max(self.restarts) > end:
            raise CorruptionError(
                f"{place}: its restarts lie outside of its {end} bytes of entries; {ADVICE}"
            )
        self.restart_keys: list[OrderedKey] | None = None
        self.charge = len(data) + _OVERHEAD + count * _RESTART_OVERHEAD
        _check_entries(self)

    def evict(self) -> None:
        """Be found in the table no more; the next lookup reads it again."""
        table = None if self.owner is None else self.owner()
        if table is not None and table.cached(self.number) is self:
            table.place(self.number, None)

    def find(self, key: OrderedKey, rank: int) -> Entry | None:
        """The first entry from (key, rank) on, or None if the block has none."""
        return _find(self, key, rank)

    def pieces(self) -> Iterator[list[Entry]]:
        """All entries in order, in lists whose memory is bounded."""
        return _pieces(self, 0, self.entries_end)

    def pieces_backwards(self) -> Iterator[list[Entry]]:
        """The same lists, the last one first."""
        return _pieces_backwards(self, self.entries_end)

    def pieces_from(self, key: OrderedKey) -> Iterator[list[Entry]]:
        """The entries of all user keys from this one on, in such lists."""
        return _pieces_from(self, key)

    def pieces_through(self, key: OrderedKey) -> Iterator[list[Entry]]:
        """The entries of all user keys up to this one, in such lists, the last one first."""
        return _pieces_through(self, key)


def _find(block: Block, key: OrderedKey, rank: int) -> Entry | None:
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
        full = full[:shared] + data[at:value_at]
        at = value_at + length
        user_key = full[:-VERSION_BYTES] if wrap is None else wrap(full[:-VERSION_BYTES])
        if user_key < key:
            continue
        found = -_version_at(full, len(full) - VERSION_BYTES)[0]
        if found >= rank or key < user_key:
            return user_key, found, data[value_at:at]
    return None


def _pieces_from(block: Block, key: OrderedKey) -> Iterator[list[Entry]]:
    """The entries of all user keys from this one on, in such lists."""
    run = bisect_left(block.restart_keys or restart_keys(block), key)
    start = block.restarts[run - 1] if run else 0
    for piece in _pieces(block, start, block.entries_end):
        if piece[-1][0] < key:
            continue
        yield piece if key < piece[0][0] else piece[bisect_left(piece, key, key=_user_key) :]


def _pieces_through(block: Block, key: OrderedKey) -> Iterator[list[Entry]]:
    """The entries of all user keys up to this one, in such lists, the last list first."""
    restarts = block.restarts
    run = bisect_right(block.restart_keys or restart_keys(block), key)
    end = restarts[run] if run < len(restarts) else block.entries_end
    for piece in _pieces_backwards(block, end):
        if key < piece[0][0]:
            continue
        yield piece if piece[-1][0] < key else piece[: bisect_right(piece, key, key=_user_key)]


def _pieces(block: Block, at: int, end: int) -> Iterator[list[Entry]]:
    """The entries between two offsets, of which the first is a restart."""
    full = b""
    while at < end:
        entries, at, full = _decode(block, at, end, full)
        yield _ordered(block, entries)


def _pieces_backwards(block: Block, end: int) -> Iterator[list[Entry]]:
    """The entries up to an offset, the last piece first."""
    at, full = 0, b""
    # Where each piece begins, and the key before it: how many bytes that shares with the key before
    # the piece before, and the rest. All the rests together are no longer than the block.
    marks = [(0, 0, b"")]
    entries: list[Entry] = []
    while at < end:
        entries, at, last = _decode(block, at, end, full)
        if at < end:
            shared = shared_prefix(full, last)
            marks.append((at, shared, last[shared:]))
            full = last
    if entries:
        yield _ordered(block, entries)
    while len(marks) > 1:
        end, _, _ = marks.pop()
        before = bytearray()
        for _, shared, rest in marks:
            before[shared:] = rest
        entries, _, _ = _decode(block, marks[-1][0], end, bytes(before))
        yield _ordered(block, entries)


def _decode(block: Block, at: int, end: int, full: bytes) -> tuple[list[Entry], int, bytes]:
    """A piece of the entries from an offset on: they, the offset behind them, and the last key.

    ``full`` is the key of the entry before. Keys are bytes.
    """
    data = block.data
    entries: list[Entry] = []
    append = entries.append
    stop, room = min(end, at + PIECE_BYTES), PIECE_KEY_BYTES
    while at < stop:
        shared, unshared, length = data[at], data[at + 1], data[at + 2]
        if shared | unshared | length < 128:
            at += 3
        elif shared | unshared < 128 and data[at + 3] < 128:  # a value of some hundred bytes
            length = length & 127 | data[at + 3] << 7
            at += 4
        else:
            start = at
            shared, unshared, length, at = _long_lengths(block, at)
            if shared + unshared == len(full) and unshared <= VERSION_BYTES and entries:
                # Another version of the key before, which all of them have in common.
                value_at = at + unshared
                full = full[:shared] + data[at:value_at]
                at = value_at + length
                version = _version_at(full, len(full) - VERSION_BYTES)[0]
                append((entries[-1][0], -version, data[value_at:at]))
                continue
            room -= shared
            if room < 0 and entries:
                return entries, start, full
        value_at = at + unshared
        full = full[:shared] + data[at:value_at]
        at = value_at + length
        version = _version_at(full, len(full) - VERSION_BYTES)[0]
        append((full[:-VERSION_BYTES], -version, data[value_at:at]))
    return entries, at, full


def _ordered(block: Block, entries: list[Entry]) -> list[Entry]:
    """The entries with keys in the form that orders itself."""
    wrap = block.wrap
    if wrap is None:
        return entries
    return [(wrap(key), rank, value) for key, rank, value in entries]


def restart_keys(block: Block) -> list[OrderedKey]:
    """The user keys at the restarts, decoded once for a block."""
    data, wrap = block.data, block.wrap
    keys = []
    for restart in block.restarts if block.entries_end else ():
        _, unshared, _, at = _long_lengths(block, restart)
        key = data[at : at + unshared - VERSION_BYTES]
        keys.append(key if wrap is None else wrap(key))
    block.restart_keys = keys
    return keys


def _check_entries(block: Block) -> None:
    """CorruptionError unless all lengths fit the block, and each restart is an entry's."""
    data, end = block.data, block.entries_end
    restarts, none_left = iter(block.restarts), len(data)
    restart = next(restarts)
    at = key_length = 0
    while at < end:
        start = at
        shared, unshared, length = data[at], data[at + 1], data[at + 2]
        if shared | unshared | length < 128:
            at += 3
        else:
            shared, unshared, length, at = _long_lengths(block, at)
        at += unshared + length
        if start >= restart:
            if shared or start > restart:
                raise _malformed(block, start)
            restart = next(restarts, none_left)
        if shared > key_length or shared + unshared < VERSION_BYTES or at > end:
            raise _malformed(block, start)
        key_length = shared + unshared
    if end and restart != none_left:
        raise _malformed(block, restart)


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
    return CorruptionError(
        f"{block.place}: its entry at byte {at} is malformed, its lengths do not fit the "
        f"{block.entries_end} bytes of entries; {ADVICE}"
    )
