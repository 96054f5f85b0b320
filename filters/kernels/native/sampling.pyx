"""Measure a filter's rate on the filter itself, as ``filters/sampling.py`` explains."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from filters import sampling
from filters.kernels.native.hashing cimport lsm_mixed64

cdef uint32_t MAX_SAMPLES = sampling.MAX_SAMPLES
cdef uint32_t ENOUGH_HITS = sampling.ENOUGH_HITS


cdef double hit_rate(const lsm_probing *probing, const void *filter) noexcept nogil:
    """The share of hashes that are answered "maybe": the same at each call, 0 if none."""
    cdef uint32_t hits = 0, index
    for index in range(MAX_SAMPLES):
        if probing.probe_digest(filter, sample_hash(index)):
            hits += 1
            if hits == ENOUGH_HITS:
                return hits / <double>(index + 1)
    return hits / <double>MAX_SAMPLES


cdef double wide_hit_rate(const lsm_probing *probing, const void *filter) noexcept nogil:
    """The same share of hashes of 128 bits."""
    cdef uint64_t words[2]
    cdef uint32_t hits = 0, index
    cdef uint8_t answer
    for index in range(MAX_SAMPLES):
        words[0] = lsm_mixed64(2 * <uint64_t>index + 1)
        words[1] = lsm_mixed64(2 * <uint64_t>index + 2)
        probing.test_many(filter, words, 1, 0, &answer)
        if answer:
            hits += 1
            if hits == ENOUGH_HITS:
                return hits / <double>(index + 1)
    return hits / <double>MAX_SAMPLES


cdef inline uint32_t sample_hash(uint32_t index) noexcept nogil:
    cdef uint32_t h = index + 1
    h = (h ^ h >> 16) * <uint32_t>0x85EB_CA6B
    h = (h ^ h >> 13) * <uint32_t>0xC2B2_AE35
    return h ^ h >> 16
