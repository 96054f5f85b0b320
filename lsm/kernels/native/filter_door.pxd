"""A loaded filter as a lookup asks it: through its C door, or in Python."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from filters.kernels.native.base cimport lsm_probe_v1
from filters.kernels.native.hashing cimport LSM_DIGEST_LEVELDB
from filters.kernels.native.prefixes cimport Rule, prefix_size
from lsm.kernels.native.cache_item cimport CacheItem
from lsm.kernels.native.partitions cimport Partitions


cdef enum:
    UNDECIDED                 # nobody has asked it yet
    SILENT                    # it has no say
    BY_DIGEST                 # in C, with a digest that other filters can share
    BY_KEY                    # in C, with the key
    BY_PREFIX                 # in C, with the prefix of the key
    BY_WINDOW                 # in C, with LevelDB's hash and where the block begins
    BY_PARTITION              # as the filter of the partition that may have the key
    IN_PYTHON


cdef extern from "windows.h" nogil:
    ctypedef struct lsm_windows:
        const uint8_t *contents
        uint64_t offsets_at
        uint32_t count
        uint32_t base_lg

    bint lsm_windows_deny(const lsm_windows *self, uint64_t block_offset, uint32_t hash)


# A key on its way through filters, with the digest that was taken of it last.
ctypedef struct lsm_question:
    const uint8_t *key
    uint32_t length
    uint32_t kind
    bint has_digest
    uint64_t seed
    uint64_t digest


cdef class FilterDoor(CacheItem):
    cdef bint *mark           # that it was used since somebody has looked, where lookups set it
    cdef bint _own_mark
    cdef int manner
    cdef bint is_none         # there is none, and that will not change
    cdef const lsm_probe_v1 *probe
    cdef lsm_windows windows_c  # under BY_WINDOW
    cdef Rule rule            # under BY_PREFIX
    cdef Partitions parts     # under BY_PARTITION
    cdef object _kept         # what `probe`, `windows_c` or `rule` points to

    cdef int decide(self) except -1
    cdef void mark_at(self, bint *place) noexcept


cdef inline bint denies(FilterDoor door, lsm_question *question) noexcept:
    """Whether a filter with a door in C says no."""
    cdef const lsm_probe_v1 *probe = door.probe
    cdef size_t length
    if door.manner == BY_PREFIX:
        length = prefix_size(&door.rule, question.key, question.length)
        return length and not probe.probe(probe.self, <const char *>question.key, length)
    if door.manner == BY_KEY:
        return not probe.probe(probe.self, <const char *>question.key, question.length)
    if (
        not question.has_digest
        or question.kind != probe.digest_kind
        or question.seed != probe.digest_seed
    ):
        take_digest(question, probe.digest_kind, probe.digest_seed)
    return not probe.probe_digest(probe.self, question.digest)


cdef inline bint window_denies(
    FilterDoor door, uint64_t block_offset, lsm_question *question
) noexcept:
    """The same of LevelDB's filters, of which each is for some blocks."""
    if not question.has_digest or question.kind != LSM_DIGEST_LEVELDB:
        take_digest(question, LSM_DIGEST_LEVELDB, 0)
    return lsm_windows_deny(&door.windows_c, block_offset, <uint32_t>question.digest)


cdef void take_digest(lsm_question *question, uint32_t kind, uint64_t seed) noexcept
