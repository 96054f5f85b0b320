"""Cassandra's Bloom filter, built and probed."""

from functools import partial

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from filters import cassandra, files
from filters.columns import one_by_one
from filters.digest_kinds import CASSANDRA
from filters.kernels.native.base cimport ask
from filters.kernels.native.digests cimport Digests
from filters.kernels.native.foreign cimport ForeignFilter, distinct_neighbours
from filters.kernels.native.hashing cimport LSM_DIGEST_CASSANDRA, lsm_cassandra_hash
from filters.kernels.native.payload cimport Payload
from filters.kernels.native.probing cimport lsm_probing
from filters.kernels.native.sampling cimport wide_hit_rate
from filters.kernels.native.wide cimport lsm_load64, lsm_popcount, lsm_prefetch, lsm_reduce


cdef enum:
    HEADER_BYTES = 8
    AHEAD = 64                # keys whose bits are prefetched before the first is inserted

if HEADER_BYTES != cassandra.HEADER_BYTES:
    raise ImportError("filters/cassandra.py and its compiled kernel differ: compile it again")


cdef inline uint64_t place_of(const Array *array, uint64_t number) noexcept nogil:
    """The distance of a signed number from 0, modulo the size.

    The product falls short of the quotient by one at most, since no distance exceeds 2^63.
    """
    cdef uint64_t distance = 0 - number if number >> 63 else number
    cdef uint64_t rest = distance - lsm_reduce(distance, array.reciprocal) * array.size
    return rest - array.size if rest >= array.size else rest


cdef inline int has(const Array *array, const uint64_t *words) noexcept nogil:
    cdef uint64_t number = words[array.first], step = words[1 - array.first], place
    for _ in range(array.num_probes):
        place = place_of(array, number)
        if not array.bits[place >> 3 ^ array.flip] >> (place & 7) & 1:
            return 0
        number += step
    return 1


cdef int probe(const void *self, const char *key, size_t length) noexcept nogil:
    cdef uint64_t words[2]
    lsm_cassandra_hash(<const uint8_t *>key, length, words)
    return has(<const Array *>self, words)


cdef int probe_digest(const void *self, uint64_t digest) noexcept nogil:
    """Answer "maybe": a digest has two words, and the first alone tells nothing."""
    return 1


cdef inline void prefetch(const Array *array, const uint64_t *words) noexcept nogil:
    cdef uint64_t number = words[array.first], step = words[1 - array.first]
    for _ in range(array.num_probes):
        lsm_prefetch(array.bits + (place_of(array, number) >> 3))
        number += step


cdef void test_many(
    const void *self, const uint64_t *hashes, size_t count, size_t ahead, uint8_t *answers
) noexcept nogil:
    cdef const Array *array = <const Array *>self
    cdef size_t i
    for i in range(max(count, ahead)):
        if i < ahead:
            prefetch(array, hashes + 2 * (count + i))
        if i < count:
            answers[i] = <uint8_t>has(array, hashes + 2 * i)


cdef inline void insert(Array *array, const uint64_t *words) noexcept nogil:
    cdef uint64_t number = words[array.first], step = words[1 - array.first], place
    for _ in range(array.num_probes):
        place = place_of(array, number)
        array.bits[place >> 3 ^ array.flip] |= <uint8_t>(1 << (place & 7))
        number += step


cdef lsm_probing PROBING = lsm_probing(probe, probe_digest, test_many, NULL)


cdef class CassandraBloomFilter(ForeignFilter):
    """Cassandra's own Bloom filter, to the byte of a ``Filter.db``; sized by ``fp_chance``.

    At an ``fp_chance`` of 1 every key is present, and there are no bytes. There is nothing secret
    in it: who chooses the keys can choose ones that pass.
    """

    family = cassandra.FAMILY
    _kind = CASSANDRA

    def might_contain(self, key):
        """False: the key was never added. True: it may have been."""
        return ask(self, key)

    def save(self, path, *, sstable_version="na"):
        """Write a ``Filter.db`` of this version, which readers see as it was or as it is then.

        It is on the disk when this returns. On an error the file is as it was.
        """
        files.write(path, self.to_bytes(sstable_version=sstable_version))

    @classmethod
    def load(cls, path, *, mmap=True, sstable_version="na"):
        """The filter in a ``Filter.db``: a view of its pages in memory, which processes share.

        ``mmap=False`` is for a file that somebody may cut short or write over while the filter is
        in use, which would end the process: it is read. :meth:`save` does neither.
        """
        opener = partial(cls.from_bytes, sstable_version=sstable_version)
        return files.opened(path, opener, mapped=mmap)

    @classmethod
    def build(cls, keys, *, fp_chance=None, expected_keys=None, nulls="error"):
        """A filter of exactly these keys; one that equals the key before it is not counted again.

        It is sized for their number, or for ``expected_keys`` in its place: the estimate that
        Cassandra sized a filter for whose bytes are wanted.
        """
        cdef CassandraBloomFilter self = cls.__new__(cls)
        cdef Digests hashes
        cdef bytes header
        sizing = cassandra.check(fp_chance=fp_chance, expected_keys=expected_keys)
        hashes = distinct_neighbours(one_by_one(keys, nulls), LSM_DIGEST_CASSANDRA)
        geometry = cassandra.plan(
            hashes.count if expected_keys is None else expected_keys, sizing
        )
        header = cassandra.header(geometry)
        self.payload = Payload.zeroed(len(header) + cassandra.payload_bytes(geometry))
        memcpy(self.payload.data, <const char *>header, <size_t>len(header))
        self.point(geometry, cassandra.NEWEST)
        return self.filled(hashes)

    @classmethod
    def from_bytes(cls, buffer, *, sstable_version="na"):
        """The filter in a ``Filter.db``: a view of an immutable buffer, a copy of a mutable one.

        The version is that of the SSTable, the two letters in its files' names. It is nowhere in
        the bytes: under a wrong one a filter answers wrongly.
        """
        cdef CassandraBloomFilter self = cls.__new__(cls)
        geometry, layout, data = cassandra.decode(buffer, sstable_version)
        self.payload = Payload.view(data)
        self.point(geometry, layout)
        return self

    def to_bytes(self, *, sstable_version="na"):
        """The filter as an SSTable of this version stores it.

        ValueError where such a one has the other hash order, which none of ours and all filters
        of versions before ``ma`` have: see :attr:`has_old_hash_order`.
        """
        return cassandra.encode(self.payload, self._layout, sstable_version)

    @property
    def has_old_hash_order(self):
        """Whether a key's probes begin at h1, as in SSTables of versions before ``ma``."""
        return self._layout.old_order

    @property
    def num_bits(self):
        """The length of the bit array; 0 where every key is present."""
        return self._array.size

    @property
    def num_probes(self):
        """How many bits a key sets; 0 where every key is present."""
        return self._array.num_probes

    @property
    def fill(self):
        """The share of bits that are set; without any bits it counts as full."""
        cdef Py_ssize_t i, bits = 0
        if not self._array.size:
            return 1.0
        with nogil:
            for i in range(<Py_ssize_t>(self._array.size >> 6)):
                bits += lsm_popcount(lsm_load64(self._array.bits + 8 * i))
        return bits / <double>self._array.size

    def _measure_fpr(self):
        fill = self.fill
        if not self._array.size or fill == 0:
            return fill
        geometry = cassandra.Geometry(self._array.size, self._array.num_probes)
        modelled = cassandra.modelled_fpr(fill, geometry)
        if not cassandra.should_be_sampled(fill, geometry):
            return modelled
        return wide_hit_rate(&PROBING, &self._array) or modelled

    def __eq__(self, other):
        if not hasattr(other, "family") or not hasattr(other, "to_bytes"):
            return NotImplemented
        return cassandra.equal(self, other)

    def __reduce__(self):
        from filters.kernels import restore

        version = cassandra.latest_version(self)
        data = self.to_bytes(sstable_version=version)
        return partial(restore, sstable_version=version), (self.family, data)

    cdef int point(self, object geometry, object layout) except -1:
        """Point the array at the payload behind its header, and answer through it."""
        cdef uint64_t size = geometry.bits
        self._layout = layout
        if not size:
            return self.always(True, LSM_DIGEST_CASSANDRA, 0)
        self._array = Array(
            self.payload.data + HEADER_BYTES,
            size,
            <uint64_t>-1 // size,
            7 if layout.reversed_words else 0,
            geometry.num_probes,
            0 if layout.old_order else 1,
        )
        return self.opened(&self._array, &PROBING, LSM_DIGEST_CASSANDRA, 0)

    cdef int insert_all(self, Digests hashes) except -1:
        cdef Py_ssize_t i
        with nogil:
            for i in range(hashes.count if self._array.size else 0):
                if i + AHEAD < hashes.count:
                    prefetch(&self._array, hashes.numbers + 2 * (i + AHEAD))
                insert(&self._array, hashes.numbers + 2 * i)
        return 0
