"""How user keys are ordered: by their bytes, or by a function of the caller's.

Everywhere in the engine a key is held in the form that Python orders by itself: ``bytes`` for the
bytewise comparator, an object around them for any other. So sorting, bisecting and comparing are
written once, and cost nothing where bytes order themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from lsm.disk.keys import shared_prefix

if TYPE_CHECKING:
    from lsm.comparators import ForeignOrder

# A user key in the form that orders itself.
OrderedKey = Any


class Comparator(Protocol):
    """An order of user keys, under a name that the manifest records."""

    name: str
    wrap: Callable[[bytes], OrderedKey] | None
    """Makes a key order itself; None where bytes already do."""

    def unwrap(self, key: OrderedKey) -> bytes:
        """The bytes of an ordered key."""

    def separator(self, low: bytes, high: bytes) -> bytes:
        """A short key from ``low`` on and below ``high``."""

    def successor(self, key: bytes) -> bytes:
        """A short key from this one on."""


class BytewiseComparator:
    """LevelDB's default: keys compare as unsigned bytes."""

    name = "leveldb.BytewiseComparator"
    wrap: Callable[[bytes], OrderedKey] | None = None

    def unwrap(self, key: OrderedKey) -> bytes:
        """The key, which is bytes already."""
        unwrapped: bytes = key
        return unwrapped

    def separator(self, low: bytes, high: bytes) -> bytes:
        """``low`` up to its first differing byte, that one raised; ``low`` if that is no separator.

        LevelDB finds the same one.
        """
        shared = shared_prefix(low, high)
        if shared >= min(len(low), len(high)) or low[shared] + 1 >= high[shared]:
            return low
        return low[:shared] + bytes((low[shared] + 1,))

    def successor(self, key: bytes) -> bytes:
        """The key up to its first byte below 255, that one raised; the key if it has none."""
        at = len(key) - len(key.lstrip(b"\xff"))
        return key[:at] + bytes((key[at] + 1,)) if at < len(key) else key


class CustomComparator:
    """A comparator that calls a function, which says -1, 0 or 1 of two keys as plyvel has it."""

    def __init__(self, name: str, compare: Callable[[bytes, bytes], int]):
        self.name = name
        self.wrap: Callable[[bytes], OrderedKey] | None = _ordered_by(compare)

    def unwrap(self, key: OrderedKey) -> bytes:
        """The bytes that the ordered key was made of."""
        unwrapped: bytes = key.key
        return unwrapped

    def separator(self, low: bytes, high: bytes) -> bytes:
        """``low``: only the function knows where a shorter key would be in the order."""
        return low

    def successor(self, key: bytes) -> bytes:
        """The key: only the function knows where a shorter one would be in the order."""
        return key


class ForeignComparator(CustomComparator):
    """Another program's order, which gives each key a rank: the bytes that order as the keys do.

    A key is ranked once, however often it is compared. No table is written in such an order.
    """

    def __init__(self, name: str, order: ForeignOrder):
        super().__init__(name, order)
        self.order = order
        self.wrap = _ordered_by_rank(order.rank)


BYTEWISE = BytewiseComparator()


def _ordered_by(compare: Callable[[bytes, bytes], int]) -> type:
    """A class of keys that order themselves by a function."""

    class Ordered:
        __slots__ = ("key",)

        def __init__(self, key: bytes):
            self.key = key

        def __lt__(self, other: Ordered) -> bool:
            return compare(self.key, other.key) < 0

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Ordered) and compare(self.key, other.key) == 0

        def __repr__(self) -> str:
            return f"<{self.key!r} in an order of its own>"

    return Ordered


def _ordered_by_rank(rank: Callable[[bytes], bytes]) -> type:
    """A class of keys that order themselves by their ranks."""

    class Ranked:
        __slots__ = ("key", "rank")

        def __init__(self, key: bytes):
            self.key = key
            self.rank = rank(key)

        def __lt__(self, other: Ranked) -> bool:
            return self.rank < other.rank

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Ranked) and self.rank == other.rank

        def __repr__(self) -> str:
            return f"<{self.key!r} in an order of its own>"

    return Ranked
