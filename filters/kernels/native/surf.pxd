"""The SuRF filter, for other compiled modules."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from filters.kernels.native.base cimport Filter


cdef extern from "louds.h" nogil:
    ctypedef struct lsm_louds_rank:
        uint32_t children
        uint32_t firsts

    ctypedef struct lsm_louds:
        const uint8_t *has_child
        const uint8_t *firsts
        const uint8_t *ends
        const uint8_t *labels
        uint64_t nodes
        uint64_t edges
        lsm_louds_rank *ranks
        uint32_t *samples

    uint64_t lsm_louds_blocks(uint64_t edges)
    uint64_t lsm_louds_samples(uint64_t nodes)
    int lsm_louds_measure(lsm_louds *trie, uint64_t *place)
    uint64_t lsm_louds_ends(const lsm_louds *trie)


cdef extern from "surf.h" nogil:
    ctypedef struct lsm_key:
        const uint8_t *data
        size_t size

    ctypedef struct lsm_surf:
        lsm_louds trie
        const uint8_t *suffixes
        uint64_t num_keys
        uint64_t seed
        uint64_t salt
        uint32_t hash_bits
        uint32_t real_bits

    ctypedef struct lsm_surf_level:
        uint64_t edges
        uint64_t leaves
        uint64_t nodes

    int lsm_surf_has(const lsm_surf *filter, lsm_key key)
    int lsm_surf_has_between(const lsm_surf *filter, lsm_key first, const lsm_key *bound)
    size_t lsm_surf_compare(const lsm_key *keys, size_t count, size_t *shared)
    uint64_t lsm_surf_count(
        const lsm_key *keys, size_t count, const size_t *shared, lsm_surf_level *levels
    )
    void lsm_surf_fill(
        const lsm_surf *filter, const lsm_key *keys, size_t count, const size_t *shared,
        lsm_surf_level *levels, size_t depths,
    )


cdef class SurfFilter(Filter):
    cdef lsm_surf _filter
    cdef uint8_t *_support    # ranks, and behind them samples
    cdef object _geometry
    cdef bint _is_made

    cdef int lay_out(self, object geometry, uint64_t seed, uint64_t salt) except -1
    cdef int measure(self) except -1
