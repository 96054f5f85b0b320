"""The least that makes a working policy: LevelDB's three members, and nothing of this package's."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import ClassVar

from policies import FilterPolicy


class BitmapPolicy(FilterPolicy):
    """One bit per key among 65,536."""

    name: ClassVar[str] = "test.bitmap"

    def create_filter(self, keys: Sequence[bytes]) -> bytes:
        """8 KiB in which the keys' bits are set."""
        bitmap = bytearray(8192)
        for key in keys:
            byte, bit = divmod(zlib.crc32(key) & 0xFFFF, 8)
            bitmap[byte] |= 1 << bit
        return bytes(bitmap)

    def key_may_match(self, key: bytes, filter: bytes) -> bool:
        """Whether the key's bit is set."""
        byte, bit = divmod(zlib.crc32(key) & 0xFFFF, 8)
        return bool(filter[byte] >> bit & 1)
