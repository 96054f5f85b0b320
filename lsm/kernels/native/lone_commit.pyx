# cython: freethreading_compatible=False
"""A commit that nobody is in the way of, in one go.

It holds the GIL from its first look at the database to its visibility, and calls nothing of
Python's: so nobody comes in between, no thread, no signal handler, no finalizer, and nothing has to
be registered that somebody else could carry out. Whatever is not as it has to be, as a full disk,
is left to the writer, who does all from the beginning, and tells what is wrong.
"""

from cpython.tuple cimport PyTuple_GET_ITEM
from libc.stdint cimport UINT32_MAX, uint32_t
from libc.stdlib cimport free, malloc

from lsm.kernels.native.log_end cimport LogEnd
from lsm.kernels.native.memtable cimport (
    Memtable, lsm_batch_measure, lsm_measure, lsm_memtable_link, lsm_memtable_prepare,
    lsm_memtable_withdraw, lsm_node
)
from lsm.kernels.native.operations cimport LSM_BATCH_HEADER, lsm_batch_stamp
from lsm.kernels.native.view cimport View


cdef extern from "fragments.h" nogil:
    size_t lsm_framed_bound(size_t size)
    size_t lsm_frame(uint8_t *out, const uint8_t *record, size_t size, uint64_t log_size)


cdef extern from "write_at.h" nogil:
    size_t lsm_write_at(int descriptor, const uint8_t *bytes, size_t size, uint64_t place)


cdef enum:
    # The system takes so many bytes in a fraction of a millisecond: for more, other threads need
    # not wait.
    MOST_BYTES = 1 << 20
    # What most records take is written from here, and nothing is allocated.
    FEW_BYTES = 4096

cdef uint64_t MAX_SEQUENCE = (<uint64_t>1 << 56) - 1


cdef bint commit_alone(
    Readable store, uint8_t *record, size_t size, uint64_t count, uint64_t payload
) noexcept:
    """Write a record, whose header is to be stamped, and make it visible; False: ask the writer."""
    cdef uint64_t last = (store.version >> 8) + count
    cdef View view
    cdef Memtable memtable
    cdef LogEnd log
    cdef lsm_measure measured
    cdef lsm_node *first
    cdef lsm_node *end
    cdef size_t written
    if not store.is_unhindered or store.pending is not None or store.closed_by is not None:
        return False
    if type(store.view) is not View or not 0 < count <= UINT32_MAX or size > MOST_BYTES:
        return False
    view = store.view
    memtable = <Memtable>PyTuple_GET_ITEM(view.memtables, 0)
    if not isinstance(memtable.log, LogEnd) or memtable.is_full() or last > MAX_SEQUENCE:
        return False
    if <uint64_t>memtable.size >= store.unhindered_size:
        return False
    log = memtable.log
    if log.descriptor < 0 or log.is_torn:
        return False
    lsm_batch_stamp(record, last - count + 1, <uint32_t>count)
    if not lsm_batch_measure(record + LSM_BATCH_HEADER, record + size, count, &measured):
        return False
    first = lsm_memtable_prepare(
        &memtable.c, record + LSM_BATCH_HEADER, record + size, last - count + 1, &measured, &end
    )
    if first == NULL:
        return False
    written = log_record(log, record, size)
    if written == 0:
        lsm_memtable_withdraw(&memtable.c, memtable.c.arena, first, measured.count, measured.size)
        return False
    lsm_memtable_link(&memtable.c, first, measured.count)
    memtable.grow_by(&measured)
    log.end += written
    store.version = last << 8 | 0xFF
    store.user_bytes += payload
    store.log_bytes += written
    return True


cdef size_t log_record(LogEnd log, const uint8_t *record, size_t size) noexcept:
    """Write a record at the end of a log; how many bytes that are, or 0 if it did not succeed.

    Where the system has taken a part of it the log is torn: whoever writes it again may be kept
    from it, and something shorter would leave the rest behind itself.
    """
    cdef uint8_t few[FEW_BYTES]
    cdef uint8_t *framed = few
    cdef size_t bound = lsm_framed_bound(size)
    if bound > FEW_BYTES:
        framed = <uint8_t *>malloc(bound)
        if framed == NULL:
            return 0
    cdef size_t length = lsm_frame(framed, record, size, log.end)
    cdef size_t taken = lsm_write_at(log.descriptor, framed, length, log.end)
    if taken < length:
        log.is_torn = taken > 0
        length = 0
    if framed != few:
        free(framed)
    return length
