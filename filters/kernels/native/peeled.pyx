"""What the filters share whose sets are peeled: everything but where a key's three slots are."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport uint8_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from filters import peeled
from filters.columns import one_by_one
from filters.hashing import checked64
from filters.kernels.native.base cimport SaltedFilter
from filters.kernels.native.digests cimport Digests
from filters.kernels.native.hashing cimport LSM_DIGEST_XXH3_64
from filters.kernels.native.payload cimport Payload
from filters.kernels.native.peeling cimport (
    BLOCKS, DUPLICATES, NO_MEMORY, PEELED, SEGMENTS, Layout, populate_shard
)
from filters.kernels.native.probing cimport lsm_probing


cdef int probe_segments(const void *self, const char *key, size_t length) noexcept nogil:
    return has_key(<const Peeled *>self, SEGMENTS, key, length)


cdef int probe_digest_in_segments(const void *self, uint64_t digest) noexcept nogil:
    return has_digest(<const Peeled *>self, SEGMENTS, digest)


cdef void test_many_in_segments(
    const void *self, const uint64_t *hashes, size_t count, size_t ahead, uint8_t *answers
) noexcept nogil:
    has_many(<const Peeled *>self, SEGMENTS, hashes, count, ahead, answers)


cdef int probe_blocks(const void *self, const char *key, size_t length) noexcept nogil:
    return has_key(<const Peeled *>self, BLOCKS, key, length)


cdef int probe_digest_in_blocks(const void *self, uint64_t digest) noexcept nogil:
    return has_digest(<const Peeled *>self, BLOCKS, digest)


cdef void test_many_in_blocks(
    const void *self, const uint64_t *hashes, size_t count, size_t ahead, uint8_t *answers
) noexcept nogil:
    has_many(<const Peeled *>self, BLOCKS, hashes, count, ahead, answers)


cdef lsm_probing IN_SEGMENTS = lsm_probing(
    probe_segments, probe_digest_in_segments, test_many_in_segments, NULL
)
cdef lsm_probing IN_BLOCKS = lsm_probing(
    probe_blocks, probe_digest_in_blocks, test_many_in_blocks, NULL
)


cdef class PeeledFilter(SaltedFilter):
    """A static filter; sized by ``fingerprint_bits`` (8 or 16), ``bits_per_key`` or ``fpr``."""

    @classmethod
    def build(
        cls, keys, *, fingerprint_bits=None, bits_per_key=None, fpr=None, seed=None, salt=None,
        nulls="error"
    ):
        """A filter of exactly these keys."""
        cdef PeeledFilter self = cls.__new__(cls)
        cdef Digests hashes
        sizing = self.layout.check(
            fingerprint_bits=fingerprint_bits, bits_per_key=bits_per_key, fpr=fpr
        )
        width = self.layout.fingerprint_bits_for(sizing)
        hashes = Digests.of(one_by_one(keys, nulls), LSM_DIGEST_XXH3_64, seed)
        self.salt, self.is_salted = checked64("salt", salt), True
        self.hashes_of(hashes.numbers, hashes.count)
        try:
            shards = build_shards(self, hashes, width)
        except (Repeats, peeled.CrowdedShardError):
            shards = None
        if shards is None:  # sized and cut anew, by what there is without the repeats
            hashes.sort_distinct()
            shards = build_shards(self, hashes, width)
        self._num_keys = hashes.count
        self.lay_out(shards, width, hashes.seed, self.layout.payload_of(shards))
        self.verify(hashes)
        return self

    @classmethod
    def from_bytes(cls, buffer):
        """The filter in these bytes: a view of an immutable buffer, a copy of a mutable one."""
        cdef PeeledFilter self = cls.__new__(cls)
        head, shards, payload = self.layout.decode(buffer)
        self._num_keys = head.num_keys
        self.salt, self.is_salted = head.salt, True
        self.lay_out(shards, head.parameter, head.seed, payload)
        return self

    def to_bytes(self):
        """The complete filter, as ``docs/family-formats.md`` lays it out."""
        return self.packed(self._peeled.fingerprint_bits, self._num_shards)

    @property
    def fingerprint_bits(self):
        """How many bits a fingerprint has: 8 or 16."""
        return self._peeled.fingerprint_bits

    @property
    def num_shards(self):
        """How many parts the set was cut into; few keys are not cut."""
        return self._num_shards

    @property
    def fill(self):
        """The share of slots in use, which is nearly the keys' share of the slots."""
        return self._num_keys / <double>self._slots

    @property
    def expected_fpr(self):
        """One in 2^fingerprint_bits, whatever the size; nothing in an empty set."""
        return 2.0**-self._peeled.fingerprint_bits if self._num_keys else 0.0

    cdef Layout layout_of(self, object geometry) except *:
        """The layout of a shard of this geometry; each family defines it."""
        raise NotImplementedError

    cdef int lay_out(self, list shards, int fingerprint_bits, uint64_t seed, object buffer) except -1:
        """View the payload of these shards, and probe them from now on."""
        cdef Py_ssize_t start, index = 0
        cdef const lsm_probing *placed
        self.payload = Payload.view(buffer)
        self._num_shards = len(shards)
        self._shards = <Shard *>calloc(<size_t>self._num_shards, sizeof(Shard))
        if self._shards == NULL:
            raise MemoryError(f"there is no memory for {self._num_shards} shards")
        start = self._num_shards * self.layout.SHARD_BYTES
        for shard in shards:
            self._shards[index] = Shard(
                shard.seed, self.layout_of(shard.geometry), self.payload.data + start
            )
            start += len(shard.fingerprints)
            self._slots += shard.geometry.slots
            index += 1
        self._peeled = Peeled(
            self._shards, self._num_shards.bit_length() - 1, fingerprint_bits, seed, self.salt
        )
        # An empty set has slots like any other, and they would pass one absent key in many.
        if not self._num_keys:
            return self.always(False, LSM_DIGEST_XXH3_64, seed)
        placed = &IN_SEGMENTS if self._shards[0].layout.placement == SEGMENTS else &IN_BLOCKS
        return self.opened(&self._peeled, placed, LSM_DIGEST_XXH3_64, seed)

    def __dealloc__(self):
        free(self._shards)


class Repeats(Exception):
    """Some hashes come twice, so that no seed peels them."""


cdef class Part:
    """The hashes of one shard: a part of the whole set's, which has to stay alive."""

    cdef PeeledFilter family
    cdef const uint64_t *hashes
    cdef size_t count
    cdef int fingerprint_bits

    def populate(self, geometry):
        """The shard in this geometry, None where no seed peels it."""
        cdef bytes table = PyBytes_FromStringAndSize(
            NULL, geometry.slots * self.fingerprint_bits // 8
        )
        cdef uint8_t *fingerprints = <uint8_t *>PyBytes_AS_STRING(table)
        cdef Layout layout = self.family.layout_of(geometry)
        cdef uint64_t seed
        cdef int outcome
        with nogil:
            outcome = populate_shard(
                self.hashes, self.count, layout, self.fingerprint_bits, fingerprints, &seed
            )
        if outcome == DUPLICATES:
            raise Repeats
        if outcome == NO_MEMORY:
            raise MemoryError(f"there is no memory to build a shard of {self.count} keys")
        return peeled.Shard(seed, geometry, table) if outcome == PEELED else None


cdef list build_shards(PeeledFilter family, Digests hashes, int fingerprint_bits):
    """The shards of these hashes, which are brought into the shards' order."""
    cdef Py_ssize_t count = family.layout.shard_count(hashes.count), index
    cdef Py_ssize_t *ends = <Py_ssize_t *>calloc(<size_t>count + 1, sizeof(Py_ssize_t))
    cdef Part part
    shards = []
    if ends == NULL:
        raise MemoryError(f"there is no memory for {count} shards")
    try:
        cut(hashes, count.bit_length() - 1, ends)
        for index in range(count):
            part = Part.__new__(Part)
            part.family = family
            part.hashes = hashes.numbers + ends[index]
            part.count = <size_t>(ends[index + 1] - ends[index])
            part.fingerprint_bits = fingerprint_bits
            shards.append(family.layout.build_shard(part.count, part.populate))
    finally:
        free(ends)
    return shards


cdef int cut(Digests hashes, int shard_bits, Py_ssize_t *ends) except -1:
    """Group hashes by their top bits; group i ends where ``ends[i + 1]`` says."""
    cdef Py_ssize_t shards = <Py_ssize_t>1 << shard_bits, i
    cdef Digests grouped
    cdef uint64_t hashed
    cdef Py_ssize_t *starts
    ends[shards] = hashes.count
    if shard_bits == 0:
        return 0
    grouped = Digests.empty(LSM_DIGEST_XXH3_64, 0)
    grouped.reserve(hashes.count)
    with nogil:
        # Counts first, two places on; then the place before each group's is where its next one goes.
        memset(ends, 0, <size_t>(shards + 1) * sizeof(Py_ssize_t))
        starts = ends + 1
        for i in range(hashes.count):
            hashed = hashes.numbers[i] >> (64 - shard_bits)
            if hashed + 1 < <uint64_t>shards:
                starts[hashed + 1] += 1
        for i in range(1, shards):
            starts[i] += starts[i - 1]
        for i in range(hashes.count):
            hashed = hashes.numbers[i] >> (64 - shard_bits)
            grouped.numbers[starts[hashed]] = hashes.numbers[i]
            starts[hashed] += 1
    grouped.count = hashes.count
    hashes.swap(grouped)
    return 0
