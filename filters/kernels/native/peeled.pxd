"""What the filters share whose sets are peeled: everything but where a key's three slots are.

The probes take the placement as a constant, so that each family's are compiled for its own.
"""

from libc.stdint cimport uint8_t, uint64_t

from filters.kernels.native.base cimport SaltedFilter
from filters.kernels.native.hashing cimport lsm_mix, lsm_xxh3_64
from filters.kernels.native.peeling cimport (
    Layout, Placement, Slots, fingerprint_in, hash_under, locate
)
from filters.kernels.native.wide cimport lsm_load16, lsm_prefetch


cdef struct Shard:
    uint64_t seed
    Layout layout
    const uint8_t *table


cdef struct Peeled:
    const Shard *shards
    int shard_bits
    int fingerprint_bits
    uint64_t seed
    uint64_t salt


cdef class PeeledFilter(SaltedFilter):
    cdef Peeled _peeled
    cdef Shard *_shards
    cdef Py_ssize_t _num_shards
    cdef Py_ssize_t _slots

    cdef Layout layout_of(self, object geometry) except *
    cdef int lay_out(self, list shards, int fingerprint_bits, uint64_t seed, object buffer) except -1


cdef inline const Shard *shard_of(const Peeled *self, uint64_t mixed) noexcept nogil:
    """By the top bits; in two shifts, since there may be none of them."""
    return &self.shards[mixed >> 1 >> (63 - self.shard_bits)]


cdef inline int has(const Peeled *self, Placement placement, uint64_t mixed) noexcept nogil:
    cdef const Shard *shard = shard_of(self, mixed)
    cdef uint64_t value = hash_under(mixed, shard.seed)
    cdef Slots slots = locate(value, shard.layout, placement)
    cdef uint64_t sum
    if self.fingerprint_bits == 8:
        sum = shard.table[slots.first] ^ shard.table[slots.second] ^ shard.table[slots.third]
    else:
        sum = (
            lsm_load16(shard.table + 2 * slots.first) ^ lsm_load16(shard.table + 2 * slots.second)
            ^ lsm_load16(shard.table + 2 * slots.third)
        )
    return sum == fingerprint_in(value, self.fingerprint_bits)


cdef inline int has_key(
    const Peeled *self, Placement placement, const char *key, size_t length
) noexcept nogil:
    cdef uint64_t digest = lsm_xxh3_64(<const uint8_t *>key, length, self.seed)
    return has(self, placement, lsm_mix(digest, self.salt))


cdef inline int has_digest(const Peeled *self, Placement placement, uint64_t digest) noexcept nogil:
    return has(self, placement, lsm_mix(digest, self.salt))


cdef inline void prefetch(const Peeled *self, Placement placement, uint64_t mixed) noexcept nogil:
    cdef const Shard *shard = shard_of(self, mixed)
    cdef Slots slots = locate(hash_under(mixed, shard.seed), shard.layout, placement)
    cdef int width = self.fingerprint_bits >> 3
    lsm_prefetch(shard.table + width * slots.first)
    lsm_prefetch(shard.table + width * slots.second)
    lsm_prefetch(shard.table + width * slots.third)


cdef inline void has_many(
    const Peeled *self, Placement placement, const uint64_t *hashes, size_t count, size_t ahead,
    uint8_t *answers,
) noexcept nogil:
    cdef size_t i
    for i in range(max(count, ahead)):
        if i < ahead:
            prefetch(self, placement, hashes[count + i])
        if i < count:
            answers[i] = <uint8_t>has(self, placement, hashes[i])
