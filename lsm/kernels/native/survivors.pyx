# cython: freethreading_compatible=False
"""What survives a compaction, on its way into tables; how is in ``survivors.h``.

Between two calls of C the GIL is held for what C cannot do: opening the next table, reading a block
that is damaged or that a library decompresses, compressing with a library, and the caller's pause.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stddef cimport size_t
from libc.stdint cimport UINT64_MAX, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc

from lsm.kernels.native.block_builder cimport refuse
from lsm.kernels.native.memtable cimport Memtable
from lsm.kernels.native.source cimport (
    LSM_STEP_BLOCK, LSM_STEP_COMPRESS, LSM_STEP_CUT, LSM_STEP_END, LSM_STEP_HERE, LSM_STEP_MOST,
    LSM_STEP_ORDER, LSM_STEP_PAUSE, LSM_STEP_REFUSED, LSM_STEP_TABLE, Source, lsm_source,
    lsm_source_next,
)
from lsm.kernels.native.table_body cimport TableBody, lsm_body_compresses, lsm_table_body
from lsm.kernels.native.version cimport MOST_BYTES, version_of


cdef extern from "survivors.h" nogil:
    ctypedef struct lsm_ranges:
        const uint8_t **lows
        const uint8_t **highs
        uint32_t *low_lengths
        uint32_t *high_lengths
        size_t count

    ctypedef struct lsm_survivors:
        lsm_source **order
        lsm_source *moving
        bint is_here
        bint has_horizon
        uint64_t horizon
        bint knows_deeper
        lsm_ranges *deeper
        size_t deeper_count
        uint64_t max_file_size
        lsm_ranges grandparents
        uint64_t *grandparent_sizes
        uint64_t overlap_limit

    bint lsm_ranges_reserve(lsm_ranges *self, size_t count)
    void lsm_ranges_free(lsm_ranges *self)
    void lsm_survivors_place(lsm_survivors *self, lsm_source *moved)
    void lsm_survivors_drop(lsm_survivors *self)
    int lsm_survivors_find(lsm_survivors *self)
    int lsm_survivors_write(
        lsm_survivors *self, lsm_table_body *body, uint64_t until, int *refused
    )
    void lsm_survivors_free(lsm_survivors *self)


cdef enum:
    # So many bytes are finished at once where the GIL is kept.
    KEPT_BYTES = 1 << 17


@cython.final
cdef class Survivors:
    """The entries of some runs that survive, on their way into tables.

    What every snapshot sees is of the version ``horizon``, a rank, or newer; None drops nothing.
    ``deeper`` are the levels where tombstones may have something to hide, None levels that are not
    known. Tables end at ``max_file_size``, if there is one, and where the sizes of the
    ``grandparents``, which come with their highest keys, exceed ``overlap_limit``. ``pause`` is
    called now and then, and may raise.
    """

    cdef lsm_survivors c
    cdef list sources
    cdef bint has_begun
    cdef object pause
    cdef object keys_held     # those that C compares with
    # A library is asked at every block, and the GIL is kept in between: whoever wants it has it for
    # milliseconds, each time that it is released for some microseconds.
    cdef bint keeps_gil

    def __init__(
        self, runs, comparator, *, horizon=None, deeper=None, max_file_size=None, grandparents=(),
        overlap_limit=0, pause=bool,
    ):
        assert comparator.wrap is None, "the compiled kernel compares bytes"
        assert self.sources is None, "survivors are made once"
        self.pause = pause
        self.keys_held = []
        self.c.has_horizon = horizon is not None and version_of(horizon, &self.c.horizon)
        self.c.max_file_size = UINT64_MAX if max_file_size is None else max_file_size
        self.c.overlap_limit = min(overlap_limit, UINT64_MAX - 1)
        self.take_deeper(deeper)
        self.take_grandparents(list(grandparents))
        self.take_runs(list(runs))

    def __dealloc__(self):
        lsm_survivors_free(&self.c)

    cdef int take_runs(self, list runs) except -1:
        cdef Source source
        self.c.order = <lsm_source **>calloc(len(runs) or 1, sizeof(lsm_source *))
        if self.c.order == NULL:
            raise MemoryError(f"there is no memory to merge {len(runs)} runs")
        self.sources = []
        for rank, run in enumerate(runs):
            source = Source.__new__(Source)
            source.c.rank = rank
            if isinstance(run, Memtable):
                source.run = (<Memtable>run).sorted_apart()
                source.c.nodes = source.run.c.nodes
                source.c.node_count = source.run.c.count
                source.tables = iter(())
            else:
                source.tables = iter(run)
            self.sources.append(source)
        return 0

    cdef int take_deeper(self, levels) except -1:
        cdef size_t level
        if levels is None:
            return 0
        self.c.knows_deeper = True
        self.c.deeper = <lsm_ranges *>calloc(len(levels) or 1, sizeof(lsm_ranges))
        if self.c.deeper == NULL:
            raise MemoryError(f"there is no memory for {len(levels)} levels")
        self.c.deeper_count = len(levels)
        for level, (lows, highs) in enumerate(levels):
            self.take_keys(&self.c.deeper[level], list(lows), list(highs))
        return 0

    cdef int take_grandparents(self, list grandparents) except -1:
        cdef size_t place
        highs = [high for high, _ in grandparents]
        self.take_keys(&self.c.grandparents, highs, highs)
        self.c.grandparent_sizes = <uint64_t *>calloc(len(highs) or 1, sizeof(uint64_t))
        if self.c.grandparent_sizes == NULL:
            raise MemoryError(f"there is no memory for {len(highs)} tables of a level")
        for place, (_, size) in enumerate(grandparents):
            self.c.grandparent_sizes[place] = min(size, UINT64_MAX)
        return 0

    cdef int take_keys(self, lsm_ranges *ranges, list lows, list highs) except -1:
        """Point to the bounds of a level's tables, which are kept."""
        cdef Py_ssize_t place
        cdef bytes low, high
        if not lsm_ranges_reserve(ranges, len(lows)):
            raise MemoryError(f"there is no memory for the bounds of {len(lows)} tables")
        self.keys_held.append((lows, highs))
        for place in range(len(lows)):
            low, high = lows[place], highs[place]
            if PyBytes_GET_SIZE(low) > MOST_BYTES or PyBytes_GET_SIZE(high) > MOST_BYTES:
                raise ValueError(f"a key of a table has more than {MOST_BYTES} bytes")
            ranges.lows[place] = <const uint8_t *>PyBytes_AS_STRING(low)
            ranges.low_lengths[place] = <uint32_t>PyBytes_GET_SIZE(low)
            ranges.highs[place] = <const uint8_t *>PyBytes_AS_STRING(high)
            ranges.high_lengths[place] = <uint32_t>PyBytes_GET_SIZE(high)
        return 0

    def has_more(self):
        """Whether there are more, which may take looking at many that do not survive."""
        cdef int step
        self.begin()
        while True:
            if self.keeps_gil or self.c.is_here:
                step = lsm_survivors_find(&self.c)
            else:
                with nogil:
                    step = lsm_survivors_find(&self.c)
            if step == LSM_STEP_HERE:
                return True
            if step == LSM_STEP_END:
                return False
            self.supply(step, 0, None)

    def write(self, TableBody body not None, uint64_t most):
        """Write the next ones into a table, until about so many bytes of it are finished.

        Returns whether it is complete: the next one begins another table, or there is none.
        """
        cdef uint64_t until
        cdef int step, refused = 0
        self.begin()
        self.pause()
        if not lsm_body_compresses(&body.c):
            self.keeps_gil = True
        until = body.c.offset + (min(most, <uint64_t>KEPT_BYTES) if self.keeps_gil else most)
        while True:
            if self.keeps_gil:
                step = lsm_survivors_write(&self.c, &body.c, until, &refused)
            else:
                with nogil:
                    step = lsm_survivors_write(&self.c, &body.c, until, &refused)
            if step == LSM_STEP_MOST:
                return False
            if step == LSM_STEP_CUT or step == LSM_STEP_END:
                return True
            self.supply(step, refused, body)

    cdef int begin(self) except -1:
        """Have all runs stand at their first entries."""
        cdef Source source
        cdef int step
        if self.has_begun:
            return 0
        for source in self.sources:
            while True:
                with nogil:
                    step = lsm_source_next(&source.c)
                if step == LSM_STEP_HERE:
                    lsm_survivors_place(&self.c, &source.c)
                    break
                if step == LSM_STEP_END or not self.go_on(source, step):
                    break
        self.has_begun = True
        return 0

    cdef int supply(self, int step, int refused, TableBody body) except -1:
        """Do what C has asked for."""
        cdef Source source
        if step == LSM_STEP_COMPRESS:
            return body.compress()
        if step == LSM_STEP_PAUSE:
            self.pause()
        elif self.c.moving == NULL or step == LSM_STEP_REFUSED:
            refuse(refused)
            raise MemoryError("there is no memory for the key of an entry")
        else:
            source = self.sources[self.c.moving.rank]
            if not self.go_on(source, step):
                lsm_survivors_drop(&self.c)
        return 0

    cdef bint go_on(self, Source source, int step) except -1:
        """Supply what a run needs for its next entry; False: it has none."""
        if step == LSM_STEP_TABLE:
            self.pause()
            return source.open_next()
        if step == LSM_STEP_BLOCK:
            source.read_block()
            self.keeps_gil = True
        elif step == LSM_STEP_ORDER:
            raise source.disorder()
        else:
            raise MemoryError("there is no memory for the key of an entry")
        return True
