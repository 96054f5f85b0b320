"""Where things stand in a table: block handles, and the footer that has the first two."""

from __future__ import annotations

import attrs

from lsm.disk.coding import Fields, varint
from lsm.errors import CorruptionError

FOOTER_BYTES = 48
MAGIC = bytes.fromhex("57fb808b247547db")
TRAILER_BYTES = 5  # behind each block: its compression, and a masked CRC-32C of both


@attrs.frozen
class Handle:
    """Where a block begins, and how long it is without its trailer."""

    offset: int
    size: int

    def encode(self) -> bytes:
        """The handle as tables have it: offset and size as varint64."""
        return varint(self.offset) + varint(self.size)

    @classmethod
    def decode(cls, data: bytes, what: str) -> Handle:
        """The handle at the beginning of the bytes; more may follow."""
        return cls.take(Fields(data, what))

    @classmethod
    def take(cls, fields: Fields) -> Handle:
        """The handle that comes next."""
        return cls(fields.varint64("offset"), fields.varint64("size"))


@attrs.frozen
class Footer:
    """The last 48 bytes of a table."""

    metaindex: Handle
    index: Handle

    def encode(self) -> bytes:
        """Both handles, zeros, and LevelDB's magic number."""
        handles = self.metaindex.encode() + self.index.encode()
        return handles.ljust(FOOTER_BYTES - len(MAGIC), b"\0") + MAGIC

    @classmethod
    def decode(cls, data: bytes) -> Footer:
        """The footer in a table's last bytes."""
        if len(data) != FOOTER_BYTES:
            raise CorruptionError(
                f"a table ends in a footer of {FOOTER_BYTES} bytes, and this file has {len(data)}"
            )
        if not data.endswith(MAGIC):
            raise CorruptionError(
                f"not a LevelDB table: it ends in {data[-8:].hex()}, not in {MAGIC.hex()}"
            )
        fields = Fields(data[: -len(MAGIC)], "a table's footer")
        return cls(Handle.take(fields), Handle.take(fields))
