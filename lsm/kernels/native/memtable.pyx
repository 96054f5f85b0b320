# cython: freethreading_compatible=False
"""Memtables: the entries that were written last, sorted in memory; what they are made of is in
``memtable.h``.

A thread has the GIL for as long as C changes anything. Python code can come between all the same,
wherever something is allocated that the garbage collector looks after, since that may run
finalizers: so nothing of the kind is allocated between looking at the C structure and changing it.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_Check, PyBytes_CheckExact, PyBytes_GET_SIZE
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.object cimport PyObject, PyTypeObject
from libc.stdint cimport UINT32_MAX, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from filters import hashing
from filters.kernels.native.wide cimport lsm_load32, lsm_load64

from lsm.kernels.native.operations cimport LSM_BATCH_HEADER, LSM_COUNT_AT
from lsm.kernels.native.version cimport rank_of, version_of

from lsm.kernels.python.batch import decode_batch


cdef enum:
    CHUNK = 128
    # Each run has at least twice as many nodes as the one behind it.
    MOST_RUNS = 64
    # What LevelDB's arena takes for an entry besides its key and value: version, lengths, skip list.
    ENTRY_BYTES = 32

cdef uint64_t MAX_SEQUENCE = (<uint64_t>1 << 56) - 1


cdef class Arena:
    def __dealloc__(self):
        lsm_arena_free(&self.c)


@cython.final
@cython.no_gc
cdef class Run:
    def __dealloc__(self):
        free(self.c.nodes)

    def __len__(self):
        return <Py_ssize_t>self.c.count


# What they refer to is there until they are deallocated: they need it then.
@cython.final
@cython.no_gc_clear
cdef class Prepared:
    def __dealloc__(self):
        if self.memtable is not None and self.measured.count and not self.is_added:
            lsm_memtable_withdraw(
                &self.memtable.c, &self.arena.c, self.first, self.measured.count,
                self.measured.size,
            )

    def __len__(self):
        return <Py_ssize_t>self.measured.count


@cython.no_gc_clear
cdef class Memtable:
    """Entries sorted by key, for any number of readers and one writer at a time.

    New entries are sorted when a reader needs the order, many at a time, and the runs that this
    makes are merged so that each is at least twice as long as the next. Until then, and whatever
    the order, the versions of a key are found by its hash.

    ``log`` is the one that has the same writes. ``size`` counts as LevelDB does, ``memory`` what
    is held; both are bounded by the ``capacity``.
    """

    def __cinit__(self, comparator, log=None, size_t capacity=<size_t>-1):
        if comparator.wrap is not None:
            raise ValueError(
                f"the order {comparator.name!r} is not that of bytes, and this memtable knows no "
                "other: take lsm.kernels.python.memtable.Memtable"
            )
        self.log = log
        self.capacity = capacity
        self.arena = Arena()
        self._runs = ()
        self.c.arena = &self.arena.c
        self.c.seed = hashing.random64()

    def __dealloc__(self):
        lsm_memtable_free(&self.c)

    @property
    def count(self):
        """How many entries there are."""
        return self.c.count

    @property
    def memory(self):
        """The bytes that are held for entries, for finding them, and for their order."""
        cdef Run run
        cdef size_t ordered = 0
        for run in self._runs:
            ordered += run.c.count
        return lsm_memtable_memory(&self.c) + ordered * sizeof(lsm_node *)

    def __bool__(self):
        return self.c.count != 0

    def apply(self, bytes record not None):
        """Add the operations of a batch that was read from a log; its first number, and how many.

        CorruptionError for what is no write batch.
        """
        cdef Prepared prepared = self.prepare(record)
        self.grow_by(&prepared.measured)
        self.add(prepared)
        return sequence_of(record), prepared.measured.count

    def prepare(self, bytes record not None):
        """The nodes of a write batch, to be added; CorruptionError for what is none."""
        cdef Prepared prepared = Prepared.__new__(Prepared)
        cdef const uint8_t *start = <const uint8_t *>PyBytes_AS_STRING(record)
        cdef const uint8_t *end = start + PyBytes_GET_SIZE(record)
        # From here on nothing is allocated that the collector looks after.
        if not is_batch(record, &prepared.measured):
            decode_batch(record)  # which says what is wrong
            raise AssertionError("a write batch is one to one kernel, and to the other it is none")
        prepared.arena = self.arena
        if prepared.measured.count:
            prepared.first = lsm_memtable_prepare(
                &self.c, start + LSM_BATCH_HEADER, end, sequence_of(record), &prepared.measured,
                &prepared.last,
            )
            if prepared.first == NULL:
                raise MemoryError(
                    f"there is no memory for {prepared.measured.count} more entries of a memtable"
                )
        prepared.memtable = self
        return prepared

    def steps(self, Prepared prepared not None):
        """The steps that add prepared entries; what is added already is not added again."""
        if prepared.memtable is not self:
            raise ValueError("these entries were prepared by another memtable, which can add them")
        return ((self.add, prepared),)

    def add(self, Prepared prepared not None):
        """Add entries that were prepared here, in one call that cannot fail."""
        if not prepared.is_added and prepared.memtable is self:
            prepared.is_added = True
            lsm_memtable_link(&self.c, prepared.first, prepared.measured.count)

    def has_room(self):
        """Whether it is not full, and its log takes more records."""
        return not self.is_full() and (self.log is None or not self.log.is_torn)

    @property
    def filled(self):
        """The share of what it may take that is taken; more than 1 when it is full."""
        cdef double size = <double>self.size
        cdef double held = <double>lsm_memtable_memory(&self.c) / LSM_MEMORY_SHARE
        return max(size, held) / <double>max(self.capacity, <size_t>1)

    cdef bint is_full(self) noexcept:
        return self.size > self.capacity or lsm_memtable_is_full(&self.c, self.capacity)

    def ends_with(self, Prepared prepared not None):
        """Whether these prepared entries are the ones that were added last."""
        return prepared.measured.count != 0 and prepared.last == self.c.last

    def grow(self, Prepared prepared not None):
        """Count prepared entries in the size."""
        self.grow_by(&prepared.measured)

    cdef void grow_by(self, const lsm_measure *measured) noexcept:
        self.size += measured.payload + ENTRY_BYTES * measured.count

    def find(self, key, read_rank):
        """The key's newest version that is visible at a read rank, tombstones included."""
        cdef lsm_found found
        cdef uint64_t version
        if not PyBytes_Check(key):
            raise TypeError(f"a memtable is asked for a key of bytes, not {type(key).__name__}")
        if not version_of(read_rank, &version) or PyBytes_GET_SIZE(key) > UINT32_MAX:
            return None
        if not lsm_memtable_find(
            &self.c, bytes_of(<PyObject *>key), <uint32_t>PyBytes_GET_SIZE(key), version, &found
        ):
            return None
        return (
            key if PyBytes_CheckExact(key) else bytes(key),
            rank_of(found.version),
            PyBytes_FromStringAndSize(<const char *>found.value, found.value_length),
        )

    def ascending(self, start):
        """Chunks of entries from a key on, or from the first one."""
        return new_walk(self, start, False)

    def descending(self, start):
        """Chunks of entries up to a key, or to the last one; the last chunk first."""
        return new_walk(self, start, True)

    def entries(self):
        """All entries, in the order of (key, rank)."""
        cdef Run run = self.whole()
        cdef size_t i
        return [entry_of(run.c.nodes[i]) for i in range(run.c.count)]

    def bounds(self):
        """The lowest and the highest key; there is one at least."""
        cdef Run run = self.sorted_apart()
        if run.c.count == 0:
            raise ValueError("a memtable without entries has no bounds")
        return key_of(run.c.nodes[0]), key_of(run.c.nodes[run.c.count - 1])

    cdef tuple runs(self):
        """All entries as sorted runs, the longest first."""
        self.order(False)
        return self._runs

    cdef Run whole(self):
        """All entries as one sorted run."""
        self.order(True)
        return self._runs[0] if self._runs else Run.__new__(Run)

    cdef Run sorted_apart(self):
        """The same, sorted without the GIL, of a memtable to which nothing is added any more.

        Readers find that run from then on, unless one of them has sorted meanwhile.
        """
        cdef tuple before
        cdef Run run, each
        cdef size_t added, at = 0
        cdef bint is_sorted
        run = Run.__new__(Run)
        before, added = self._runs, self.c.added_count
        if not added and len(before) <= 1:
            return before[0] if before else run
        run.arena = self.arena
        run.c.nodes = <lsm_node **>malloc(self.c.count * sizeof(lsm_node *))
        if run.c.nodes == NULL:
            raise MemoryError(f"there is no memory to sort {self.c.count} entries of a memtable")
        for each in before:
            memcpy(run.c.nodes + at, each.c.nodes, each.c.count * sizeof(lsm_node *))
            at += each.c.count
        lsm_memtable_copy_added(&self.c, run.c.nodes + at)
        run.c.count = at + added
        with nogil:
            is_sorted = lsm_run_sort(&run.c)
        if not is_sorted:
            raise MemoryError(f"there is no memory to sort {run.c.count} entries of a memtable")
        after = (run,)
        if self._runs is before and self.c.added_count == added:
            lsm_memtable_forget_added(&self.c)
            self._runs = after
        return run

    cdef int order(self, bint whole) except -1:
        """Bring the runs up to date; into one, if it is ``whole``."""
        cdef tuple before, after
        cdef Run run
        cdef size_t added, kept, total
        while self.c.added_count or (whole and len(self._runs) > 1):
            before, added = self._runs, self.c.added_count
            kept, total = len(before), added
            while kept and (whole or (<Run>before[kept - 1]).c.count / 2 < total):
                kept -= 1
                total += (<Run>before[kept]).c.count
            run = Run.__new__(Run)
            run.arena = self.arena
            after = (*before[:kept], run)
            if self._runs is before and self.c.added_count == added:  # no finalizer has come
                merge(self, before, kept, total, run)
                self._runs = after
        return 0


cdef int merge(Memtable self, tuple runs, size_t kept, size_t total, Run merged) except -1:
    """Make one run of what was added and of the runs that are not kept."""
    cdef const lsm_run *tail[MOST_RUNS]
    cdef size_t i, count = <size_t>len(runs) - kept
    for i in range(count):
        tail[i] = &(<Run>runs[kept + i]).c
    if not lsm_memtable_order(&self.c, tail, count, total, &merged.c):
        raise MemoryError(f"there is no memory to sort {total} entries of a memtable")
    return 0


# ---- Batches ----


cdef inline uint64_t sequence_of(bytes record) noexcept:
    return lsm_load64(<const uint8_t *>PyBytes_AS_STRING(record))


cdef bint is_batch(bytes record, lsm_measure *measured) noexcept:
    """Whether this is a write batch whose numbers there are, and what it comes to."""
    cdef const uint8_t *start = <const uint8_t *>PyBytes_AS_STRING(record)
    cdef uint32_t count
    if PyBytes_GET_SIZE(record) < <Py_ssize_t>LSM_BATCH_HEADER:
        return False
    count = lsm_load32(start + LSM_COUNT_AT)
    return sequence_of(record) <= MAX_SEQUENCE + 1 - max(count, 1) and lsm_batch_measure(
        start + LSM_BATCH_HEADER, start + PyBytes_GET_SIZE(record), count, measured
    )


cdef inline const uint8_t *bytes_of(PyObject *field) noexcept:
    return <const uint8_t *>PyBytes_AS_STRING(<object>field)


cdef inline uint32_t size_of(PyObject *field) noexcept:
    return <uint32_t>PyBytes_GET_SIZE(<object>field)


# ---- Entries ----


cdef inline bytes key_of(const lsm_node *node):
    return PyBytes_FromStringAndSize(<const char *>lsm_node_key(node), node.key_length)


cdef inline tuple entry_of(const lsm_node *node):
    return (
        PyBytes_FromStringAndSize(<const char *>lsm_node_key(node), node.key_length),
        rank_of(node.version),
        PyBytes_FromStringAndSize(<const char *>lsm_node_value(node), node.value_length),
    )


# ---- Walks ----


@cython.final
cdef class Walk:
    """Chunks of entries one way; what was added since the last chunk may be among them."""

    cdef Memtable memtable
    cdef bytes start
    cdef bint is_descending
    cdef bint is_over
    # The node that the last chunk went up to, or down to.
    cdef const lsm_node *last

    def __init__(self):
        raise TypeError("a walk through a memtable comes from its ascending() or descending()")

    def __iter__(self):
        return self

    def __next__(self):
        cdef const lsm_node *nodes[CHUNK]
        cdef tuple runs
        cdef size_t i, count = 0
        if not self.is_over:
            runs = self.memtable.runs()
            if self.is_descending:
                count = self.collect_down(runs, nodes)
            else:
                count = self.collect_up(runs, nodes)
        if count == 0:
            self.is_over = True
            raise StopIteration
        if self.is_descending:
            chunk = [entry_of(nodes[CHUNK - count + i]) for i in range(count)]
            self.last = nodes[CHUNK - count]
        else:
            chunk = [entry_of(nodes[i]) for i in range(count)]
            self.last = nodes[count - 1]
        return chunk

    cdef size_t collect_up(self, tuple runs, const lsm_node **nodes) noexcept:
        """Fill a chunk with the nodes that come next; how many there are."""
        cdef size_t at[MOST_RUNS]
        cdef size_t i, count, best, run_count = <size_t>len(runs)
        cdef const lsm_node *node
        cdef lsm_run *run
        for i in range(run_count):
            at[i] = self.place_up(&(<Run>runs[i]).c)
        for count in range(CHUNK):
            node = NULL
            for i in range(run_count):
                run = &(<Run>runs[i]).c
                if at[i] < run.count and (
                    node == NULL or lsm_node_precedes(run.nodes[at[i]], node)
                ):
                    node, best = run.nodes[at[i]], i
            if node == NULL:
                return count
            nodes[count] = node
            at[best] += 1
        return CHUNK

    cdef size_t collect_down(self, tuple runs, const lsm_node **nodes) noexcept:
        """Fill a chunk from its end with the nodes that come next; how many there are."""
        cdef size_t at[MOST_RUNS]
        cdef size_t i, count, best, run_count = <size_t>len(runs)
        cdef const lsm_node *node
        cdef lsm_run *run
        for i in range(run_count):
            at[i] = self.place_down(&(<Run>runs[i]).c)
        for count in range(CHUNK):
            node = NULL
            for i in range(run_count):
                run = &(<Run>runs[i]).c
                if at[i] > 0 and (
                    node == NULL or lsm_node_precedes(node, run.nodes[at[i] - 1])
                ):
                    node, best = run.nodes[at[i] - 1], i
            if node == NULL:
                return count
            nodes[CHUNK - 1 - count] = node
            at[best] -= 1
        return CHUNK

    cdef size_t place_up(self, const lsm_run *run) noexcept:
        """The index of the first node of a run that comes next."""
        cdef const lsm_node *last = self.last
        if last != NULL:
            return lsm_run_seek_behind(run, lsm_node_key(last), last.key_length, last.version)
        if self.start is None:
            return 0
        return lsm_run_seek(
            run, bytes_of(<PyObject *>self.start), size_of(<PyObject *>self.start), <uint64_t>-1
        )

    cdef size_t place_down(self, const lsm_run *run) noexcept:
        """The index behind the last node of a run that comes next."""
        cdef const lsm_node *last = self.last
        if last != NULL:
            return lsm_run_seek(run, lsm_node_key(last), last.key_length, last.version)
        if self.start is None:
            return run.count
        return lsm_run_seek_behind(
            run, bytes_of(<PyObject *>self.start), size_of(<PyObject *>self.start), 0
        )


cdef Walk new_walk(Memtable memtable, bytes start, bint is_descending):
    """A walk from a key on or up to one; through all, if it is None."""
    if start is not None and PyBytes_GET_SIZE(start) > UINT32_MAX:
        raise ValueError(
            f"a key of {PyBytes_GET_SIZE(start)} bytes to start from: a memtable has keys of up to "
            f"{UINT32_MAX}"
        )
    cdef Walk walk = Walk.__new__(Walk)
    walk.memtable = memtable
    walk.start = start
    walk.is_descending = is_descending
    return walk
