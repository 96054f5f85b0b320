"""The integers and strings that all of LevelDB's formats are made of.

All integers are little-endian. A varint has seven bits to a byte, the lowest first, and the top bit
of each byte says that another one follows.
"""

from __future__ import annotations

from filters import fields
from lsm.errors import CorruptionError

MAX_VARINT32 = (1 << 32) - 1
MAX_VARINT64 = (1 << 64) - 1

SHORT_VARINTS = [bytes((value,)) for value in range(128)]
"""The varint of each number that takes one byte, for loops that cannot afford a call."""


def varint(value: int) -> bytes:
    """The number as a varint; ValueError for what 64 bits do not hold."""
    if 0 <= value < 128:
        return SHORT_VARINTS[value]
    if not 0 <= value <= MAX_VARINT64:
        raise ValueError(f"a varint is out of range: {value}, allowed are 0 to {MAX_VARINT64}")
    encoded = bytearray()
    while value >= 128:
        encoded.append(value & 127 | 128)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def length_prefixed(data: bytes) -> bytes:
    """The bytes behind their length as a varint."""
    return varint(len(data)) + data


class Fields(fields.Fields):
    """A cursor over the untrusted bytes of a file, with LevelDB's varints."""

    __slots__ = ()
    error = CorruptionError

    def byte(self, what: str) -> int:
        """The value of the next byte."""
        return self.take(1, what)[0]

    def varint32(self, what: str) -> int:
        """The next varint, of at most five bytes and below 2**32."""
        at = self.at
        if at < len(self._data) and (value := self._data[at]) < 128:
            self.at = at + 1
            return value
        return self._varint(what, 5, MAX_VARINT32)

    def varint64(self, what: str) -> int:
        """The next varint, of at most ten bytes and below 2**64."""
        at = self.at
        if at < len(self._data) and (value := self._data[at]) < 128:
            self.at = at + 1
            return value
        return self._varint(what, 10, MAX_VARINT64)

    def take(self, length: int, what: str) -> bytes:
        """The next ``length`` bytes, copied."""
        return bytes(self.view(length, what))

    def slice(self, what: str) -> bytes:
        """The next varint32, and as many bytes behind it as that says."""
        start, data = self.at, self._data
        if start < len(data) and (length := data[start]) < 128:
            end = start + 1 + length
            if end <= len(data):
                self.at = end
                return bytes(data[start + 1 : end])
        length = self.varint32(f"length of the {what}")
        try:
            return self.take(length, what)
        except CorruptionError:
            self.at = start
            raise

    def _varint(self, what: str, longest: int, largest: int) -> int:
        value = shift = 0
        for byte in self._data[self.at : self.at + longest]:
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                if value > largest:
                    raise CorruptionError(
                        f"{self._what}: the {what} at byte {self.at} is {value}, "
                        f"allowed are 0 to {largest}"
                    )
                self.at += shift // 7
                return value
        if self.remaining >= longest:
            raise CorruptionError(
                f"{self._what}: the {what} at byte {self.at} is a varint of more than "
                f"{longest} bytes"
            )
        raise CorruptionError(
            f"{self._what}: the {what} would take bytes {self.at} to more than "
            f"{len(self._data)}, and there are {len(self._data)}"
        )
