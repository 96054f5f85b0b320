"""Building a block: keys in order, each without what it shares with the one before.

An entry is varint32 shared, varint32 unshared, varint32 value length, the unshared rest of the key,
the value. Every so many entries one shares nothing, and its offset goes into the restart array
behind the entries: u32 offsets, then their u32 count.
"""

from __future__ import annotations

from struct import Struct, pack

from lsm.disk.coding import varint
from lsm.disk.keys import Entry, shared_prefix

_version = Struct("<Q").pack
_RESTART_BYTES = 4


class BlockBuilder:
    """Builds one block after the other."""

    __slots__ = ("_buffer", "_interval", "_last", "_restarts", "_since_restart")

    def __init__(self, restart_interval: int):
        self._interval = restart_interval
        self._start()

    def _start(self) -> None:
        self._buffer = bytearray()
        self._restarts = [0]
        self._since_restart = 0
        self._last = b""

    def __bool__(self) -> bool:
        return bool(self._buffer)

    @property
    def size(self) -> int:
        """The bytes of the block if it were finished now."""
        return len(self._buffer) + _RESTART_BYTES * (len(self._restarts) + 1)

    @property
    def last_key(self) -> bytes:
        """The key that was added last."""
        return self._last

    def fill(self, entries: list[Entry], at: int, target: int) -> int:
        """Add entries from an index on until the block has its target size.

        Returns the index of the first one that was not added. Keys are the user's, as bytes.
        """
        buffer, restarts, interval = self._buffer, self._restarts, self._interval
        since_restart, last = self._since_restart, self._last
        full_at = target - _RESTART_BYTES * (len(restarts) + 1)
        end = len(entries)
        while at < end:
            user_key, rank, value = entries[at]
            key = user_key + _version(-rank)
            shared = 0
            if since_restart < interval:
                shared = shared_prefix(last, key)
                since_restart += 1
            else:
                restarts.append(len(buffer))
                full_at -= _RESTART_BYTES
                since_restart = 1
            unshared, length = len(key) - shared, len(value)
            if shared | unshared | length < 128:
                buffer += bytes((shared, unshared, length))
            else:
                buffer += varint(shared) + varint(unshared) + varint(length)
            buffer += key[shared:]
            buffer += value
            last = key
            at += 1
            if len(buffer) >= full_at:
                break
        self._since_restart, self._last = since_restart, last
        return at

    def finish(self) -> bytes:
        """The block; the builder then starts the next one."""
        restarts = self._restarts
        self._buffer += pack(f"<{len(restarts) + 1}I", *restarts, len(restarts))
        block = bytes(self._buffer)
        self._start()
        return block
