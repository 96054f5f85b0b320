"""Untrusted bytes, read field by field, every length checked before it is trusted."""

from __future__ import annotations

from typing import ClassVar


class Fields:
    """A cursor over untrusted bytes.

    ``what`` names the whole for errors. Whatever the bytes cannot hold is an :attr:`error` that
    says which field, from which byte on; the cursor then stays where it was.
    """

    __slots__ = ("_data", "_what", "at")
    error: ClassVar[type[Exception]]

    def __init__(self, data: bytes | memoryview, what: str, at: int = 0):
        self._data = memoryview(data)
        self._what = what
        self.at = at

    @property
    def remaining(self) -> int:
        """How many bytes follow the cursor."""
        return len(self._data) - self.at

    def view(self, length: int, what: str) -> memoryview:
        """The next ``length`` bytes, as they lie there."""
        end = self.at + length
        if not self.at <= end <= len(self._data):
            raise self.error(
                f"{self._what}: the {what} would take bytes {self.at} to {end}, "
                f"and there are {len(self._data)}"
            )
        taken = self._data[self.at : end]
        self.at = end
        return taken

    def number(self, width: int, what: str) -> int:
        """The next little-endian number of so many bytes."""
        return int.from_bytes(self.view(width, what), "little")

    def end(self) -> None:
        """Refuse bytes that follow the last field."""
        if self.remaining:
            raise self.error(
                f"{self._what}: {self.remaining} bytes follow its last field, from byte {self.at}"
            )
