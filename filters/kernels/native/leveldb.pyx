"""LevelDB's Bloom filter, built and probed."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from filters import leveldb
from filters.columns import one_by_one
from filters.digest_kinds import LEVELDB
from filters.kernels.native.base cimport ask
from filters.kernels.native.digests cimport Digests
from filters.kernels.native.foreign cimport ForeignFilter
from filters.kernels.native.hashing cimport LSM_BLOOM_SEED, LSM_DIGEST_LEVELDB, lsm_leveldb_hash
from filters.kernels.native.payload cimport Payload, count_bits
from filters.kernels.native.probing cimport lsm_probing
from filters.kernels.native.sampling cimport hit_rate
from filters.kernels.native.wide cimport lsm_prefetch, lsm_reduce, lsm_rotate_left32


cdef enum:
    MOST_PROBES = 30          # more are another encoding, to which every key may be there
    AHEAD = 64                # keys whose bits are prefetched before the first is inserted

if MOST_PROBES != leveldb.MAX_PROBES:
    raise ImportError("filters/leveldb.py and its compiled kernel differ: compile it again")


cdef inline uint64_t place_of(const Array *array, uint32_t hashed) noexcept nogil:
    """hashed % size, by two products (Lemire, Kaser and Kurz, 2019)."""
    if array.size > 0xFFFFFFFFu:
        return hashed
    return lsm_reduce(array.reciprocal * hashed, array.size)


cdef inline int has(const Array *array, uint32_t hashed) noexcept nogil:
    cdef uint32_t step = lsm_rotate_left32(hashed, 15)
    cdef uint64_t place
    if not array.size:
        return 0
    if array.num_probes > MOST_PROBES:
        return 1
    for _ in range(array.num_probes):
        place = place_of(array, hashed)
        if not array.bits[place >> 3] >> (place & 7) & 1:
            return 0
        hashed += step
    return 1


cdef int probe(const void *self, const char *key, size_t length) noexcept nogil:
    return has(<const Array *>self, lsm_leveldb_hash(<const uint8_t *>key, length, LSM_BLOOM_SEED))


cdef int probe_digest(const void *self, uint64_t digest) noexcept nogil:
    return has(<const Array *>self, <uint32_t>digest)


cdef inline void prefetch(const Array *array, uint32_t hashed) noexcept nogil:
    cdef uint32_t step = lsm_rotate_left32(hashed, 15)
    if not array.size or array.num_probes > MOST_PROBES:
        return
    for _ in range(array.num_probes):
        lsm_prefetch(array.bits + (place_of(array, hashed) >> 3))
        hashed += step


cdef void test_many(
    const void *self, const uint64_t *hashes, size_t count, size_t ahead, uint8_t *answers
) noexcept nogil:
    cdef const Array *array = <const Array *>self
    cdef size_t i
    for i in range(max(count, ahead)):
        if i < ahead:
            prefetch(array, <uint32_t>hashes[count + i])
        if i < count:
            answers[i] = <uint8_t>has(array, <uint32_t>hashes[i])


cdef void insert(Array *array, uint32_t hashed) noexcept nogil:
    cdef uint32_t step = lsm_rotate_left32(hashed, 15)
    cdef uint64_t place
    for _ in range(array.num_probes):
        place = place_of(array, hashed)
        array.bits[place >> 3] |= <uint8_t>(1 << (place & 7))
        hashed += step


cdef lsm_probing PROBING = lsm_probing(probe, probe_digest, test_many, NULL)


cdef class LevelDBBloomFilter(ForeignFilter):
    """LevelDB's own Bloom filter, to the byte; sized by ``bits_per_key`` or ``fpr``.

    Bits per key are whole. Any bytes are a filter, as they are to LevelDB. There is nothing secret
    in it: who chooses the keys can choose ones that pass.
    """

    family = leveldb.FAMILY
    _kind = LEVELDB

    def might_contain(self, key):
        """False: the key was never added. True: it may have been."""
        return ask(self, key)

    @classmethod
    def build(cls, keys, *, bits_per_key=None, fpr=None, num_probes=None, nulls="error"):
        """A filter of exactly these keys, sized for how many were given; repeats count."""
        cdef LevelDBBloomFilter self = cls.__new__(cls)
        cdef Digests hashes
        sizing = leveldb.check(bits_per_key=bits_per_key, fpr=fpr, num_probes=num_probes)
        hashes = Digests.of(one_by_one(keys, nulls), LSM_DIGEST_LEVELDB, None)
        geometry = leveldb.plan(hashes.count, sizing, num_probes)
        self.payload = Payload.zeroed(leveldb.payload_bytes(geometry) + 1)
        self.payload.data[self.payload.size - 1] = <uint8_t>geometry.num_probes
        self.point(geometry)
        return self.filled(hashes)

    @classmethod
    def from_bytes(cls, buffer):
        """The filter in these bytes, whatever they are: a view, or a copy of a mutable buffer."""
        cdef LevelDBBloomFilter self = cls.__new__(cls)
        geometry, data = leveldb.decode(buffer)
        self.payload = Payload.view(data)
        self.point(geometry)
        return self

    def to_bytes(self):
        """The filter as LevelDB stores it."""
        return bytes(self.payload)

    @property
    def num_bits(self):
        """The length of the bit array."""
        return self._array.size

    @property
    def num_probes(self):
        """How many bits a key sets, as the last byte says; above 30 every key may be there."""
        return self._array.num_probes

    @property
    def fill(self):
        """The share of bits that are set."""
        if not self._array.size:
            return 0.0
        return count_bits(self.payload, self.payload.size - 1) / <double>self._array.size

    def _measure_fpr(self):
        if not self._array.size:
            return 0.0
        if not 1 <= self._array.num_probes <= MOST_PROBES:
            return 1.0
        fill = self.fill
        if fill == 0:
            return 0.0
        geometry = leveldb.Geometry(self._array.size, self._array.num_probes)
        return hit_rate(&PROBING, &self._array) or leveldb.floor_fpr(fill, geometry)

    cdef int point(self, object geometry) except -1:
        """Point the array at the payload, and answer through it."""
        cdef uint64_t size = geometry.bits
        self._array = Array(
            self.payload.data, size, <uint64_t>-1 // size + 1 if size else 0, geometry.num_probes
        )
        return self.opened(&self._array, &PROBING, LSM_DIGEST_LEVELDB, 0)

    cdef int insert_all(self, Digests hashes) except -1:
        cdef Py_ssize_t i
        with nogil:
            for i in range(hashes.count):
                if i + AHEAD < hashes.count:
                    prefetch(&self._array, <uint32_t>hashes.numbers[i + AHEAD])
                insert(&self._array, <uint32_t>hashes.numbers[i])
        return 0
