"""Keys as numbers that keep their order, for filters of ranges.

What all keys of a filter begin with says nothing, and is left out. A key's number is made of the
next bytes, at most eight, the first the most significant one; a key that ends before is filled up
with zeros. So of two keys the greater one never has the smaller number, and keys that differ only
behind these bytes have the same.
"""

from __future__ import annotations

import attrs

MAX_WIDTH = 8


@attrs.frozen
class Numbering:
    """What the keys begin with, and how many of the bytes behind that make a number."""

    prefix: bytes
    width: int

    @property
    def last(self) -> int:
        """The greatest number of a key."""
        return (1 << 8 * self.width) - 1

    def number(self, key: bytes) -> int | None:
        """A key's number; None where it does not begin with the prefix."""
        return self._number_behind(key) if key.startswith(self.prefix) else None

    def key(self, number: int) -> bytes:
        """The longest of the keys that end with their number."""
        return self.prefix + number.to_bytes(self.width, "big")

    def bounds(self, low: bytes | None, high: bytes | None) -> tuple[int, int] | None:
        """The least and the greatest number of what lies in a range; None where none of ours can.

        ``low`` belongs to the range, ``high`` does not; None is no bound on that side.
        """
        if low is not None and high is not None and low >= high:
            return None
        first, last = self._first(low), self._last(high)
        return None if first is None or last is None or first > last else (first, last)

    def _first(self, low: bytes | None) -> int | None:
        """The least number of a key that is not below this one; None where all are."""
        if low is None or low <= self.prefix:
            return 0
        return self.number(low)

    def _last(self, high: bytes | None) -> int | None:
        """The greatest number of a key that is below this one; None where none is."""
        if high is None:
            return self.last
        if high <= self.prefix:
            return None
        if not high.startswith(self.prefix):
            return self.last
        number = self._number_behind(high)
        # One that ends in a zero is the number of shorter keys, too, and one that goes on behind
        # the number's bytes that of its own first bytes. All others have theirs for themselves.
        shares = len(high) > len(self.prefix) + self.width or high.endswith(b"\x00")
        return number if shares else number - 1

    def _number_behind(self, key: bytes) -> int:
        start = len(self.prefix)
        known = key[start : start + self.width]
        return int.from_bytes(known, "big") << 8 * (self.width - len(known))


def shared_length(one: bytes, other: bytes) -> int:
    """How many bytes two keys begin with alike."""
    alike = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        alike += 1
    return alike
