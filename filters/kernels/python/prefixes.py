"""The prefixes of a table's keys, found in Python."""

from __future__ import annotations

from collections.abc import Sequence

from filters.key_prefixes import prefix_of


class PrefixScan:
    """Finds the prefixes of ascending keys, each once: equal ones come one after the other.

    A prefix has ``length`` bytes, or if that is 0 it ends with the first ``until``.
    """

    __slots__ = ("_last", "_length", "_until")

    def __init__(self, length: int, until: bytes):
        self._length = length
        self._until = until
        self._last: bytes | None = None

    def add_many(self, keys: Sequence[bytes]) -> Sequence[bytes]:
        """The prefixes of the next keys, but for one that the keys before them have, too."""
        last, found = self._last, []
        for key in keys:
            if last is not None and key.startswith(last):  # so it is this one's prefix, too
                continue
            prefix = prefix_of(key, self._length, self._until)
            if prefix is not None:
                found.append(prefix)
                last = prefix
        self._last = last
        return found
