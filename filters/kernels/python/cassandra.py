"""Cassandra's Bloom filter, built and probed in Python."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from filters import cassandra, files
from filters.columns import one_by_one
from filters.compat_hashing import MASK64, cassandra_hash
from filters.digest_kinds import CASSANDRA
from filters.hashing import key_bytes
from filters.kernels.python.foreign import ForeignFilter, distinct_neighbours
from filters.sampling import hit_rate, wide_sample_hash

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from filters.columns import Nulls
    from filters.files import Path
    from filters.hashing import Key
    from filters.kernels.python.digests import Digests


class CassandraBloomFilter(ForeignFilter):
    """Cassandra's own Bloom filter, to the byte of a ``Filter.db``; sized by ``fp_chance``.

    At an ``fp_chance`` of 1 every key is present, and there are no bytes. There is nothing secret
    in it: who chooses the keys can choose ones that pass.
    """

    __slots__ = ("_geometry", "_layout")
    family = cassandra.FAMILY
    _kind = CASSANDRA

    def __init__(
        self,
        geometry: cassandra.Geometry,
        layout: cassandra.Layout,
        data: memoryview | bytearray,
        num_keys: int | None,
    ):
        """For kernels; users call ``build`` or ``from_bytes``."""
        super().__init__(data, num_keys)
        self._geometry = geometry
        self._layout = layout

    @classmethod
    def build(
        cls,
        keys: Iterable[Key] | Digests,
        *,
        fp_chance: float | None = None,
        expected_keys: int | None = None,
        nulls: Nulls = "error",
    ) -> Self:
        """A filter of exactly these keys; one that equals the key before it is not counted again.

        It is sized for their number, or for ``expected_keys`` in its place: the estimate that
        Cassandra sized a filter for whose bytes are wanted.
        """
        sizing = cassandra.check(fp_chance=fp_chance, expected_keys=expected_keys)
        hashes = distinct_neighbours(one_by_one(keys, nulls), CASSANDRA)
        count = len(hashes) if expected_keys is None else expected_keys
        geometry = cassandra.plan(count, sizing)
        data = bytearray(cassandra.header(geometry)) + bytes(cassandra.payload_bytes(geometry))
        self = cls(geometry, cassandra.NEWEST, data, len(hashes))
        for each in hashes:
            self._insert(each)
        return self

    @classmethod
    def from_bytes(cls, buffer: Buffer, *, sstable_version: str = "na") -> Self:
        """The filter in a ``Filter.db``: a view of an immutable buffer, a copy of a mutable one.

        The version is that of the SSTable, the two letters in its files' names. It is nowhere in
        the bytes: under a wrong one a filter answers wrongly.
        """
        return cls(*cassandra.decode(buffer, sstable_version), None)

    def to_bytes(self, *, sstable_version: str = "na") -> bytes:
        """The filter as an SSTable of this version stores it.

        ValueError where such a one has the other hash order, which none of ours and all filters
        of versions before ``ma`` have: see :attr:`has_old_hash_order`.
        """
        return cassandra.encode(self._data, self._layout, sstable_version)

    def save(self, path: Path, *, sstable_version: str = "na") -> None:
        """Write a ``Filter.db`` of this version, which readers see as it was or as it is then.

        It is on the disk when this returns. On an error the file is as it was.
        """
        files.write(path, self.to_bytes(sstable_version=sstable_version))

    @classmethod
    def load(cls, path: Path, *, mmap: bool = True, sstable_version: str = "na") -> Self:
        """The filter in a ``Filter.db``: a view of its pages in memory, which processes share.

        ``mmap=False`` is for a file that somebody may cut short or write over while the filter is
        in use, which would end the process: it is read. :meth:`save` does neither.
        """
        opener = partial(cls.from_bytes, sstable_version=sstable_version)
        return files.opened(path, opener, mapped=mmap)

    def might_contain(self, key: Key) -> bool:
        """False: the key was never added. True: it may have been."""
        return self._might_contain_digest(cassandra_hash(key_bytes(key)))

    @property
    def has_old_hash_order(self) -> bool:
        """Whether a key's probes begin at h1, as in SSTables of versions before ``ma``."""
        return self._layout.old_order

    @property
    def num_bits(self) -> int:
        """The length of the bit array; 0 where every key is present."""
        return self._geometry.bits

    @property
    def num_probes(self) -> int:
        """How many bits a key sets; 0 where every key is present."""
        return self._geometry.num_probes

    @property
    def fill(self) -> float:
        """The share of bits that are set; without any bits it counts as full."""
        if not self._geometry.bits:
            return 1.0
        words = self._data[cassandra.HEADER_BYTES :]
        return int.from_bytes(words, "little").bit_count() / self._geometry.bits

    def _measure_fpr(self) -> float:
        fill, geometry = self.fill, self._geometry
        if not geometry.bits or fill == 0:
            return fill
        modelled = cassandra.modelled_fpr(fill, geometry)
        if not cassandra.should_be_sampled(fill, geometry):
            return modelled
        return hit_rate(self._might_contain_digest, wide_sample_hash) or modelled

    def __eq__(self, other: object) -> bool:
        if not hasattr(other, "family") or not hasattr(other, "to_bytes"):
            return NotImplemented
        return cassandra.equal(self, other)

    def __reduce__(self) -> tuple[Any, ...]:
        from filters.kernels import restore

        version = cassandra.latest_version(self)
        data = self.to_bytes(sstable_version=version)
        return partial(restore, sstable_version=version), (self.family, data)

    def _might_contain_digest(self, digest: int) -> bool:
        data = self._data
        for byte, bit in self._places(digest):  # noqa: SIM110 - half as slow as all()
            if not data[byte] & bit:
                return False
        return True

    def _insert(self, digest: int) -> None:
        data = self._data
        for byte, bit in self._places(digest):
            data[byte] |= bit

    def _places(self, digest: int) -> Iterator[tuple[int, int]]:
        """Each probe's byte in the file, and its bit there."""
        bits = self._geometry.bits
        flip = 7 if self._layout.reversed_words else 0
        number, step = digest & MASK64, digest >> 64
        if self._layout.old_order:
            number, step = step, number
        for _ in range(self._geometry.num_probes):
            distance = -number & MASK64 if number >> 63 else number
            place = distance % bits
            yield cassandra.HEADER_BYTES + (place >> 3 ^ flip), 1 << (place & 7)
            number = number + step & MASK64
