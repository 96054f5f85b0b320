"""One key's newest version, as the compiled kernel finds it."""

from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.ref cimport PyObject
from libc.stdint cimport uint8_t, uint32_t, uint64_t

from lsm.kernels.native.filter_door cimport lsm_question
from lsm.kernels.native.partitions cimport lsm_partition, lsm_partitions
from lsm.kernels.native.sorted_keys cimport lsm_sorted_keys_seek
from lsm.kernels.native.table cimport Table, TableFile
from lsm.kernels.native.view cimport Levels, View


cdef extern from *:
    """
    #define LSM_NEWEST UINT64_MAX   /* the version before all others */
    #define LSM_UNKNOWN UINT32_MAX  /* no block's number: of these there are fewer */
    """
    const uint64_t NEWEST "LSM_NEWEST"
    const uint32_t UNKNOWN "LSM_UNKNOWN"

# Stands for a version that was not found; None is a version without a value.
cdef object NOWHERE


# Filters that are asked before any answer is looked at: more than a database has levels.
cdef enum:
    AT_ONCE = 8


# What comes of asking a filter.
cdef enum:
    UNASKED
    DENIED
    MAYBE


# A lookup on its way: what is sought, of whom to ask what is not in memory, and how.
ctypedef struct Search:
    lsm_question question
    uint64_t word             # the key's first bytes as a number
    uint64_t version
    PyObject *key
    PyObject *tables
    PyObject *listener        # NULL if nobody listens
    uint32_t number           # of the block in the table it has come to, once that is known
    bint fill_cache
    bint only_asks            # whether the key has a value, and not which
    int simd


# A table whose filter was asked, what came of it, and the number of the block if it is known.
ctypedef struct Asked:
    uint32_t at
    uint32_t block
    lsm_partition *partition  # that is to be asked, where it is known
    int outcome


# Where a lookup is among the tables of its levels.
ctypedef struct Place:
    uint32_t at               # the table it has come to
    uint32_t next             # the one to look at after that, before the end of its level
    uint32_t end
    uint32_t level            # the number of the level behind this one


cdef inline void start(Place *place, Levels levels) noexcept:
    """Stand before the first table, the newest of level 0."""
    place.next = place.level = 0
    place.end = levels.newest


cdef inline uint32_t block_for(Search *search, Table table) noexcept:
    """The number of the block that the first visible version is in, if there is one."""
    return lsm_sorted_keys_seek(
        &table.index, search.question.key, search.question.length, search.version, search.simd
    )


cdef inline object value_of(uint64_t version, const uint8_t *value, uint32_t length):
    """What a version has for a value: None if it is a tombstone."""
    if not version & 1:
        return None
    return PyBytes_FromStringAndSize(<const char *>value, length)


cdef inline object answer_of(
    Search *search, uint64_t version, const uint8_t *value, uint32_t length
):
    """The same, but True for a value that is only asked whether it is there."""
    if search.only_asks and version & 1:
        return True
    return value_of(version, value, length)


cdef object lookup(
    View view, object tables, bytes key, uint64_t version, bint fill_cache, object listener
)
cdef bint holds(View view, object tables, bytes key, uint64_t version) except -1
cdef bint begin(
    Search *search, object tables, bytes key, uint64_t version, bint fill_cache, object listener
) noexcept
cdef object find_in_memory(Search *search, View view)
cdef bint next_table(Search *search, Levels levels, Place *place) noexcept
cdef lsm_partition *fetch_partition(Search *search, const lsm_partitions *partitions) noexcept


cdef inline lsm_partition *partition_in(Search *search, TableFile file) noexcept:
    """The partition of a table's filter that may have the key, fetched; NULL if there is none."""
    return NULL if file.partitions == NULL else fetch_partition(search, file.partitions)


cdef int ask(Search *search, Levels levels, uint32_t at, lsm_partition *partition) noexcept
cdef object find_in_table(Search *search, Levels levels, uint32_t at, int outcome)
