"""Keys of which only numbers are kept, though what they share is known with the last of them."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from itertools import pairwise
from typing import TYPE_CHECKING, NoReturn

from filters.columns import one_by_one
from filters.digest_kinds import KEY_NUMBERS, UNCOPIED, check_digests
from filters.hashing import checked64, key_bytes
from filters.key_numbers import MAX_WIDTH, Numbering, shared_length

if TYPE_CHECKING:
    from filters.columns import Nulls
    from filters.hashing import Key


class KeyNumbers:
    """Eight bytes of each key, in the order they came, and the first key.

    ``digests()`` of a range filter makes one; ``build`` takes it in the place of keys, and
    ``count_missing`` tells how many of its keys a filter denies. Of a key it keeps what follows the
    prefix that all keys before and itself have; what was kept while that was longer is completed
    from the first key.
    """

    __slots__ = ("_first", "_longest", "_numbers", "_shared", "digest_seed")
    kind = KEY_NUMBERS

    def __init__(self, seed: int):
        """For kernels; users call ``digests()`` of a filter class."""
        self.digest_seed = seed
        self._numbers = array("Q")
        self._first = b""
        self._longest = 0
        # From which key on how many bytes are shared.
        self._shared: list[tuple[int, int]] = []

    def add(self, key: Key) -> None:
        """Add the number of a key."""
        key = key_bytes(key)
        if not self._numbers:
            self._first, self._shared = key, [(0, len(key))]
        shared = shared_length(self._first[: self._shared[-1][1]], key)
        if shared < self._shared[-1][1]:
            self._shared.append((len(self._numbers), shared))
        self._numbers.append(_padded(key[shared : shared + MAX_WIDTH]))
        self._longest = max(self._longest, len(key))

    def add_many(self, keys: Iterable[Key], *, nulls: Nulls = "error") -> None:
        """Add the numbers of many keys; on an error those before it are in."""
        for key in one_by_one(keys, nulls):
            self.add(key)

    def numbering(self) -> Numbering:
        """What the keys have in common, and the fewest bytes that tell all that can be told."""
        shared = self._shared[-1][1] if self._shared else 0
        return Numbering(self._first[:shared], min(MAX_WIDTH, self._longest - shared))

    def numbers(self) -> list[int]:
        """The number of each key under that numbering."""
        numbering = self.numbering()
        spare = 8 * (MAX_WIDTH - numbering.width)
        found: list[int] = []
        for (start, shared), (stop, _) in pairwise([*self._shared, (len(self._numbers), 0)]):
            between = self._first[len(numbering.prefix) : shared][:MAX_WIDTH]
            before = _padded(between)
            found += (
                (before | kept >> 8 * len(between)) >> spare for kept in self._numbers[start:stop]
            )
        return found

    def __reduce__(self) -> NoReturn:
        raise TypeError(UNCOPIED)

    def __len__(self) -> int:
        return len(self._numbers)

    def __repr__(self) -> str:
        return f"<KeyNumbers: {len(self)} keys>"


def _padded(few: bytes) -> int:
    """At most eight bytes as a number, with zeros behind them."""
    return int.from_bytes(few.ljust(MAX_WIDTH, b"\x00"), "big")


def key_numbers_of(keys: Iterable[Key] | KeyNumbers, seed: int | None) -> KeyNumbers:
    """The numbers of these keys, or those given in their place."""
    if isinstance(keys, KeyNumbers):
        check_digests(keys.kind, keys.digest_seed, KEY_NUMBERS, seed)
        return keys
    collected = KeyNumbers(checked64("seed", seed))
    collected.add_many(keys)
    return collected
