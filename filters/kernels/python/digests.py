"""Keys of which only the digests are kept, however long they are."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, MutableSequence
from typing import TYPE_CHECKING, NoReturn

from filters.columns import one_by_one
from filters.compat_hashing import cassandra_hash, leveldb_hash, rocksdb_hash, xxph3_64
from filters.digest_kinds import (
    CASSANDRA,
    LEVELDB,
    ROCKSDB,
    UNCOPIED,
    XXH3,
    XXPH3,
    check_digests,
    check_width,
    words_of,
)
from filters.hashing import checked64, checked_digest, digest, key_bytes

if TYPE_CHECKING:
    from filters.columns import Nulls
    from filters.hashing import Key

_UNSEEDED: dict[str, Callable[[bytes], int]] = {
    XXPH3: xxph3_64,
    LEVELDB: leveldb_hash,
    ROCKSDB: rocksdb_hash,
    CASSANDRA: cassandra_hash,
}


class Digests:
    """The digests of keys, in the order they came.

    A filter class's ``digests()`` makes one; ``build`` takes it in the place of keys, and
    ``count_missing`` tells how many of its keys a filter denies.
    """

    __slots__ = ("_numbers", "digest_seed", "kind")

    def __init__(self, kind: str, seed: int):
        """For kernels; users call ``digests()`` of a filter class."""
        self.kind = kind
        self.digest_seed = seed
        # An array has no numbers beyond 64 bits.
        self._numbers: MutableSequence[int] = array("Q") if words_of(kind) == 1 else []

    def add(self, key: Key) -> None:
        """Add the digest of a key."""
        if self.kind == XXH3:
            self._numbers.append(digest(key, self.digest_seed))
        else:
            self._numbers.append(_UNSEEDED[self.kind](key_bytes(key)))

    def add_many(self, keys: Iterable[Key], *, nulls: Nulls = "error") -> None:
        """Add the digests of many keys; on an error those before it are in."""
        for key in one_by_one(keys, nulls):
            self.add(key)

    def add_digest(self, digest: int) -> None:
        """Add a key's digest, computed elsewhere under the same seed."""
        number = checked_digest(digest, words_of(self.kind))
        check_width(self.kind, number)
        self._numbers.append(number)

    def __reduce__(self) -> NoReturn:
        raise TypeError(UNCOPIED)

    def __len__(self) -> int:
        return len(self._numbers)

    def __repr__(self) -> str:
        return f"<Digests: {len(self)} keys, {self.kind}>"


def digests_of(
    keys: Iterable[Key] | Digests, kind: str, seed: int | None
) -> tuple[MutableSequence[int], int]:
    """The digests of these keys, or those given in their place, and the seed they are under."""
    if isinstance(keys, Digests):
        check_digests(keys.kind, keys.digest_seed, kind, seed)
        return keys._numbers, keys.digest_seed
    digests = Digests(kind, checked64("seed", seed) if kind == XXH3 else 0)
    digests.add_many(keys)
    return digests._numbers, digests.digest_seed
