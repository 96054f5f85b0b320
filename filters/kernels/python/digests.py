"""Keys of which only the digests are kept: 8 bytes each, however long they are."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Self

from filters.compat_hashing import leveldb_hash, rocksdb_hash, xxph3_64
from filters.digest_kinds import LEVELDB, ROCKSDB, XXH3, XXPH3, check_digests
from filters.hashing import MASK64, checked64, digest, key_bytes
from filters.packed_keys import one_by_one

if TYPE_CHECKING:
    from typing_extensions import Buffer

_UNSEEDED: dict[str, Callable[[bytes], int]] = {
    XXPH3: xxph3_64,
    LEVELDB: leveldb_hash,
    ROCKSDB: rocksdb_hash,
}


class Digests:
    """The digests of keys, in the order they came.

    A filter class's ``digests()`` makes one; ``build`` takes it in the place of keys, and
    ``count_missing`` tells how many of its keys a filter denies.
    """

    __slots__ = ("digest_seed", "kind", "numbers")

    def __init__(self, kind: str, seed: int):
        """For kernels; users call ``digests()`` of a filter class."""
        self.kind = kind
        self.digest_seed = seed
        self.numbers = array("Q")

    @classmethod
    def of(cls, keys: Iterable[Buffer] | Self, kind: str, seed: int | None) -> Self:
        """A collection of these keys' digests, or the one given in their place."""
        if isinstance(keys, cls):
            check_digests(keys.kind, keys.digest_seed, kind, seed)
            return keys
        self = cls(kind, checked64("seed", seed) if kind == XXH3 else 0)
        self.add_many(keys)  # type: ignore[arg-type]
        return self

    def add(self, key: Buffer) -> None:
        """Take a key."""
        if self.kind == XXH3:
            self.numbers.append(digest(key, self.digest_seed))
        else:
            self.numbers.append(_UNSEEDED[self.kind](key_bytes(key)))

    def add_many(self, keys: Iterable[Buffer]) -> None:
        """Take many keys."""
        for key in one_by_one(keys):
            self.add(key)

    def add_digest(self, digest: int) -> None:
        """Take a key by its digest."""
        if not 0 <= digest <= MASK64:
            raise OverflowError("a digest lies between 0 and 2**64 - 1")
        self.numbers.append(digest)

    def __len__(self) -> int:
        return len(self.numbers)

    def __repr__(self) -> str:
        return f"<Digests: {len(self)} keys, {self.kind}>"
