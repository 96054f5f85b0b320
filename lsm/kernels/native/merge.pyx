"""What the sources of a cursor have, merged: memtables, tables of level 0, and sorted levels.

Opening a table and reading a block are calls of ``tables``, which may run any other code; so may
a garbage collection where an item is made. A merge belongs to one step at a time, which takes it
from its window, and holds what its streams stand on. One in which something was raised is dropped.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.exc cimport PyErr_CheckSignals
from cpython.ref cimport Py_INCREF, Py_XDECREF, PyObject
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from filters.kernels.native cimport simd
from lsm.kernels.native.block cimport Block, lsm_block_prefetch_struct, lsm_block_seek
from lsm.kernels.native.memtable cimport Memtable, Run, lsm_run_seek
from lsm.kernels.native.sorted_keys cimport lsm_sorted_keys_seek
from lsm.kernels.native.table cimport Table, TableFile
from lsm.kernels.native.version cimport MOST_BYTES, version_of
from lsm.kernels.native.view cimport Levels, View, lsm_level


cdef enum:
    # Of keys and values in a window that has an item: so many bytes at most, and one more item.
    WINDOW_BYTES = 1 << 16
    # Up to seven bytes more than those of a key are copied with it.
    SLACK = 8
    # After so many entries that are not given signals are looked for.
    PATIENCE = 1 << 13

cdef uint64_t NEWEST = <uint64_t>-1


cdef class Source:
    """What a cursor reads, a view at a read rank between bounds, and what it makes of entries.

    A bound is a key, and whether it is included; None is no bound. Items are pairs of key and
    value, or what is included of them; of each key the first bytes are cut.
    """

    def __cinit__(self):
        self.is_blind = True

    def __init__(
        self, View view not None, tables, read_rank, bint fill_cache=True, tuple low=None,
        tuple high=None, bint include_key=True, bint include_value=True, uint32_t cut=0,
        unwrap=None,
    ):
        cdef uint64_t version = 0
        cdef bint has_some = version_of(read_rank, &version)
        assert unwrap is None, "the compiled kernel compares bytes"
        begin(
            self, view, tables, version, fill_cache, low, high, include_key, include_value, cut
        )
        self.is_blind = not has_some

    cdef tuple ordered_runs(self):
        """The runs of all memtables: whatever is visible here was added before they were made."""
        cdef list runs
        if self.runs is None:
            runs = []
            for memtable in self.view.memtables:
                runs += (<Memtable>memtable).runs()
            self.runs = tuple(runs)
        return self.runs


cdef Source new_source(
    View view, tables, uint64_t version, bint fill_cache, tuple low, tuple high,
    bint include_key, bint include_value, uint32_t cut,
):
    """The same as Source(...) at a version, for those who are compiled."""
    cdef Source self = Source.__new__(Source)
    begin(self, view, tables, version, fill_cache, low, high, include_key, include_value, cut)
    return self


cdef int begin(
    Source self, View view, tables, uint64_t version, bint fill_cache, tuple low, tuple high,
    bint include_key, bint include_value, uint32_t cut,
) except -1:
    """Have a source read a view."""
    self.view = view
    self.tables = tables
    self.version = version
    self.fill_cache = fill_cache
    self.shape.include_key = include_key
    self.shape.include_value = include_value
    self.cut = cut
    self.has_keys = include_key and cut == 0
    if low is not None:
        self.low, self.low_included = low
        know(&self.low_key, self.low)
    if high is not None:
        self.high, self.high_included = high
        know(&self.high_key, self.high)
    self.is_blind = False
    return 0


cdef int know(lsm_known_key *known, bytes key) except -1:
    """Set a key that is compared with others."""
    if key is None:
        raise TypeError("the key of a bound is bytes, not None")
    if PyBytes_GET_SIZE(key) > MOST_BYTES:
        raise ValueError(
            f"a key of {PyBytes_GET_SIZE(key)} bytes to go to or to end at: keys of a database "
            f"have up to {MOST_BYTES}"
        )
    lsm_known_key_set(
        known, <const uint8_t *>PyBytes_AS_STRING(key), <uint32_t>PyBytes_GET_SIZE(key)
    )
    return 0


@cython.final
@cython.no_gc
@cython.freelist(8)
cdef class Merge:
    """The visible entries of a source from a place on, up or down, some at a time.

    ``is_over`` says that there are no more than those that were taken last.
    """

    def __cinit__(self):
        self.streams = self.few_streams
        self.order = self.few_order
        self.places = FEW_STREAMS
        self.buffer = self.few
        self.room = FEW_KEY_BYTES

    def __dealloc__(self):
        reset(self)
        free_streams(self)
        if self.buffer != self.few:
            free(self.buffer)

    cdef list take(self, Source source, Py_ssize_t most, list spare):
        """The next items, in ascending order, so many at most; in a list that nobody needs."""
        cdef list items = [] if spare is None else spare
        self.first = self.last = None
        self.count = 0
        if self.is_down:
            take_down(self, source, items, most)
        else:
            take_up(self, source, items, most)
        if self.count < len(items):
            del items[self.count:]
        if self.count:
            take_ends(self, source, items)
        return items


cdef int take_ends(Merge self, Source source, list items) except -1:
    """Note the keys at both ends of items that were taken, and have them ascend."""
    if source.has_keys:
        first, last = items[0], items[self.count - 1]
        if source.shape.include_value:
            first, last = (<tuple>first)[0], (<tuple>last)[0]
        self.first, self.last = first, last
    elif not self.is_over:
        self.last = decided_key(self)
    if self.is_down:
        self.first, self.last = self.last, self.first
        items.reverse()
    return 0


cdef inline bytes decided_key(Merge self):
    return PyBytes_FromStringAndSize(<const char *>self.decided.bytes, self.decided.length)


cdef void let_go(lsm_stream *stream) noexcept:
    """Let go of the table and the block that a stream stands on."""
    cdef PyObject *block = <PyObject *>stream.held_block
    cdef PyObject *table = <PyObject *>stream.held_table
    stream.held_block = stream.held_table = NULL
    Py_XDECREF(block)
    Py_XDECREF(table)


# ---- Beginning ----


cdef Merge merge_from(Source source, bytes key, bint is_included, bint is_down, Merge used):
    """A merge from a key on, or down from it; from the very beginning, or end, if it is None.

    It may be one that was ``used`` elsewhere and that nobody needs.
    """
    cdef Merge self = Merge.__new__(Merge) if used is None else used
    cdef Levels levels
    cdef lsm_known_key start
    cdef lsm_known_key *known = NULL
    if used is not None:
        reset(self)
    self.is_down = is_down
    if source.is_blind:
        return self
    if key is not None:
        if is_down and is_included:
            key = key + b"\0"  # all that comes before the next key there could be
        know(&start, key)
        known = &start
        if not is_down and not is_included:
            begin_behind(self, known)
    self.runs = source.ordered_runs()
    levels = source.view.levels
    reserve(self, <size_t>len(self.runs) + levels.newest + levels.level_count)
    add_runs(self, known)
    add_tables(self, source, known)
    if self.open > 1:
        lsm_merge_sort(self.order, self.open, is_down)
    return self


cdef void reset(Merge self) noexcept:
    """Forget all but the room for streams."""
    cdef uint32_t number
    for number in range(self.made):
        let_go(&self.streams[number])
        lsm_stream_free(&self.streams[number])
    self.made = self.open = 0
    self.is_over = self.has_decided = self.has_candidate = False


cdef int reserve(Merge self, size_t count) except -1:
    """Room for so many streams."""
    cdef lsm_stream *streams
    cdef lsm_stream **order
    if count <= self.places:
        return 0
    streams = <lsm_stream *>malloc(count * sizeof(lsm_stream))
    order = <lsm_stream **>malloc(count * sizeof(lsm_stream *))
    if streams == NULL or order == NULL:
        free(streams)
        free(order)
        raise MemoryError(f"there is no memory to merge {count} runs")
    free_streams(self)
    self.streams = streams
    self.order = order
    self.places = count
    return 0


cdef void free_streams(Merge self) noexcept:
    """Give the room for streams back, of which there are none."""
    if self.streams != self.few_streams:
        free(self.streams)
        free(self.order)


cdef inline lsm_stream *new_stream(Merge self) noexcept:
    cdef lsm_stream *stream = &self.streams[self.made]
    lsm_stream_init(stream, self.made)
    self.made += 1
    return stream


cdef inline void admit(Merge self, lsm_stream *stream) noexcept:
    """Take part with a stream that stands at an entry."""
    self.order[self.open] = stream
    self.open += 1


cdef int add_runs(Merge self, const lsm_known_key *start) except -1:
    """The runs of memtables that have entries from the start on."""
    cdef lsm_stream *stream
    cdef Run run
    cdef size_t place
    for each in self.runs:
        run = <Run>each
        place = run.c.count if self.is_down else 0
        if start != NULL:
            place = lsm_run_seek(&run.c, start.bytes, start.length, NEWEST)
        if self.is_down:
            if place == 0:
                continue
            place -= 1
        elif place == run.c.count:
            continue
        stream = new_stream(self)
        stream.nodes = run.c.nodes
        stream.count = run.c.count
        stream.place = place
        lsm_stream_stand_on_node(stream)
        admit(self, stream)
    return 0


cdef int add_tables(Merge self, Source source, const lsm_known_key *start) except -1:
    """The tables of level 0, and the other levels, that have entries from the start on.

    All of them have to find a block, and entries in it: the memory of one comes while others look.
    """
    cdef Levels levels = source.view.levels
    cdef uint32_t number, at, first, begin = self.made
    cdef lsm_level *level
    cdef lsm_stream *stream
    cdef bint is_here
    for number in range(levels.newest):
        if start == NULL or has_some(self, levels, number, start):
            add_range(self, source, start, number, number + 1, number)
    for number in range(levels.level_count):
        level = &levels.levels[number]
        first = level.first
        if self.is_down:
            at = first + level.highs.count
            if start != NULL:
                at = first + tables_below(levels, first, level.highs.count, start)
            if at > first:
                add_range(self, source, start, first, at, at - 1)
        else:
            at = first
            if start != NULL:
                at += lsm_sorted_keys_seek(
                    &level.highs, start.bytes, start.length, NEWEST, simd.level()
                )
            add_range(self, source, start, at, first + level.highs.count, at)
    if self.made - begin > 1:
        for number in range(begin, self.made):
            fetch(&self.streams[number])
    for number in range(begin, self.made):
        stream = &self.streams[number]
        if self.is_down:
            is_here = find_down(source, stream, stream.sought, start)
        else:
            is_here = find_up(source, stream, stream.sought, start)
        if is_here:
            lsm_stream_prefetch_from(stream.block, stream.index, self.is_down)
        else:
            let_go(stream)
    for number in range(begin, self.made):
        stream = &self.streams[number]
        if stream.held_block != NULL:
            stand(stream)
            admit(self, stream)
    return 0


cdef void fetch(lsm_stream *stream) noexcept:
    """Have the memory come that a search in the sought block begins with."""
    cdef Table table = <Table>stream.held_table
    if 0 <= stream.sought < table.index.count and table.slots[stream.sought] != NULL:
        lsm_stream_prefetch(&(<Block>table.slots[stream.sought]).c)


cdef uint32_t tables_below(
    Levels levels, uint32_t first, uint32_t count, const lsm_known_key *key
) noexcept:
    """How many tables of a level begin below a key."""
    cdef uint32_t low = first, high = first + count, middle
    cdef int order
    while low < high:
        middle = low + (high - low) // 2
        order = lsm_compare_keys(
            levels.lows[middle].key, levels.lows[middle].length, key.bytes, key.length
        )
        if order < 0:
            low = middle + 1
        else:
            high = middle
    return low - first


cdef int add_range(
    Merge self, Source source, const lsm_known_key *start, uint32_t first, uint32_t end,
    uint32_t at,
) except -1:
    """The tables between two numbers, as a stream that begins in one of them."""
    cdef Levels levels = source.view.levels
    cdef lsm_stream *stream
    cdef Table table
    if at >= end or (
        is_below(source, levels.highs[at].key, levels.highs[at].length) if self.is_down
        else is_above(source, levels.lows[at].key, levels.lows[at].length)
    ):
        return 0
    stream = new_stream(self)
    stream.first_table = first
    stream.end_table = end
    take_table(source, stream, at)
    stream.sought = block_for(stream, start)
    table = <Table>stream.held_table
    if 0 <= stream.sought < table.index.count and table.slots[stream.sought] != NULL:
        lsm_block_prefetch_struct(&(<Block>table.slots[stream.sought]).c)
    return 0


cdef bint has_some(
    Merge self, Levels levels, uint32_t at, const lsm_known_key *start
) noexcept:
    """Whether the bounds of a table leave room for entries from the start on."""
    if self.is_down:
        return lsm_compare_keys(
            levels.lows[at].key, levels.lows[at].length, start.bytes, start.length
        ) < 0
    return lsm_compare_keys(
        levels.highs[at].key, levels.highs[at].length, start.bytes, start.length
    ) >= 0


cdef inline bint is_above(Source source, const uint8_t *key, uint32_t length) noexcept:
    """Whether a key lies behind the upper bound."""
    cdef int order
    if source.high is None:
        return False
    order = lsm_compare_keys(key, length, source.high_key.bytes, source.high_key.length)
    return order > 0 or (order == 0 and not source.high_included)


cdef inline bint is_below(Source source, const uint8_t *key, uint32_t length) noexcept:
    """Whether a key lies before the lower bound."""
    cdef int order
    if source.low is None:
        return False
    order = lsm_compare_keys(key, length, source.low_key.bytes, source.low_key.length)
    return order < 0 or (order == 0 and not source.low_included)


# ---- Tables and blocks ----


cdef int64_t block_for(lsm_stream *stream, const lsm_known_key *start) noexcept:
    """The number of the block with the first entry from a key on; -1: the last there is."""
    cdef Table table = <Table>stream.held_table
    if start == NULL:
        return -1
    return lsm_sorted_keys_seek(&table.index, start.bytes, start.length, NEWEST, simd.level())


cdef int take_table(Source source, lsm_stream *stream, uint32_t at) except -1:
    """Have a stream hold the open table of this number."""
    cdef TableFile file = <TableFile>source.view.levels.files[at]
    cdef object found = file.table
    if found is None:
        found = source.tables.open(file)
    if type(found) is not Table:
        raise TypeError(f"a compiled cursor reads compiled tables, not {type(found)!r}")
    file.was_used = True
    let_go(stream)
    Py_INCREF(found)
    stream.held_table = <void *>found
    stream.table = at
    return 0


cdef int take_block(Source source, lsm_stream *stream, uint32_t number) except -1:
    """Have a stream hold the block of this number of its table."""
    cdef Table table = <Table>stream.held_table
    cdef Block block = table.cached_block(number)
    cdef PyObject *before
    if block is None:
        block = read_block(source, table, number)
    else:
        block.used = True
    before = <PyObject *>stream.held_block
    Py_INCREF(block)
    stream.held_block = <void *>block
    stream.block = &block.c
    stream.number = number
    Py_XDECREF(before)
    return 0


cdef Block read_block(Source source, Table table, uint32_t number):
    found = source.tables.block(table, number, source.fill_cache)
    if type(found) is not Block:
        raise TypeError(f"a compiled cursor reads compiled blocks, not {type(found)!r}")
    return <Block>found


cdef bint find_up(
    Source source, lsm_stream *stream, int64_t number, const lsm_known_key *start
) except -1:
    """Find the first entry from a block on, and from a key on; False if there is none."""
    cdef Levels levels = source.view.levels
    cdef Table table = <Table>stream.held_table
    cdef uint32_t at
    cdef int same
    if number < 0:
        number = 0
    while True:
        while number < table.index.count:
            if start == NULL and number > 0 and is_above(
                source, table.index.keys[number - 1], table.index.lengths[number - 1]
            ):
                return False
            take_block(source, stream, <uint32_t>number)
            at = 0
            if start == NULL:
                fetch_ahead(table, number + 1, number + 2, False)
            else:
                at = lsm_block_seek(
                    stream.block, start.bytes, start.length, NEWEST, simd.level(), &same
                )
            if at < stream.block.count:
                stream.index = at
                return True
            start = NULL
            number += 1
        if stream.table + 1 >= stream.end_table or is_above(
            source, levels.lows[stream.table + 1].key, levels.lows[stream.table + 1].length
        ):
            return False
        take_table(source, stream, stream.table + 1)
        table = <Table>stream.held_table
        number = 0
        start = NULL


cdef inline void fetch_ahead(Table table, int64_t next, int64_t behind, bint is_down) noexcept:
    """Have the memory come of the next block of a walk, and where that of the one behind is."""
    if 0 <= behind < table.index.count and table.slots[behind] != NULL:
        lsm_block_prefetch_struct(&(<Block>table.slots[behind]).c)
    if 0 <= next < table.index.count and table.slots[next] != NULL:
        lsm_stream_prefetch_entries(&(<Block>table.slots[next]).c, is_down)


cdef bint find_down(
    Source source, lsm_stream *stream, int64_t number, const lsm_known_key *start
) except -1:
    """Find the last entry down from a block, and before a key; False if there is none."""
    cdef Levels levels = source.view.levels
    cdef Table table = <Table>stream.held_table
    cdef uint32_t at
    cdef int same
    while True:
        if number < 0 or number >= table.index.count:
            number = <int64_t>table.index.count - 1
        while number >= 0:
            if start == NULL and is_below(
                source, table.index.keys[number], table.index.lengths[number]
            ):
                return False
            take_block(source, stream, <uint32_t>number)
            at = stream.block.count
            if start == NULL:
                fetch_ahead(table, number - 1, number - 2, True)
            else:
                at = lsm_block_seek(
                    stream.block, start.bytes, start.length, NEWEST, simd.level(), &same
                )
            if at > 0:
                stream.index = at - 1
                return True
            start = NULL
            number -= 1
        if stream.table == stream.first_table or is_below(
            source, levels.highs[stream.table - 1].key, levels.highs[stream.table - 1].length
        ):
            return False
        take_table(source, stream, stream.table - 1)
        table = <Table>stream.held_table
        start = NULL


cdef inline int stand(lsm_stream *stream) except -1:
    """Stand at the entry that was found."""
    if lsm_stream_stand(stream, stream.index) < 0:
        raise MemoryError("there is no memory for a key")
    return 0


# ---- Steps ----


cdef inline int step_up(Merge self, Source source) except -1:
    """Have the first stream step, and take its new place."""
    cdef lsm_stream *stream = self.order[0]
    cdef int here = lsm_stream_up(stream)
    if here != LSM_HERE and not leave(self, source, stream, here, True):
        return 0
    if self.open > 1:
        lsm_merge_settle(self.order, self.open, False)
    return 0


cdef inline int step_down(Merge self, Source source) except -1:
    """The same down."""
    cdef lsm_stream *stream = self.order[0]
    cdef int here = lsm_stream_down(stream)
    if here != LSM_HERE and not leave(self, source, stream, here, False):
        return 0
    if self.open > 1:
        lsm_merge_settle(self.order, self.open, True)
    return 0


cdef bint leave(Merge self, Source source, lsm_stream *stream, int here, bint is_up) except -1:
    """Go on behind the end of a block; False if that ends the stream, which is dropped."""
    cdef bint is_here = False
    if here == LSM_NO_MEMORY:
        raise MemoryError("there is no memory for a key")
    if stream.nodes == NULL:
        if is_up:
            is_here = find_up(source, stream, <int64_t>stream.number + 1, NULL)
        elif stream.number > 0:
            is_here = find_down(source, stream, <int64_t>stream.number - 1, NULL)
        else:
            is_here = find_in_table_below(source, stream)
    if is_here:
        stand(stream)
    else:
        lsm_merge_drop(self.order, self.open)
        self.open -= 1
        let_go(stream)
    return is_here


cdef bint find_in_table_below(Source source, lsm_stream *stream) except -1:
    """Find the last entry of the tables before the one that a stream has come through."""
    cdef Levels levels = source.view.levels
    cdef uint32_t at = stream.table
    if at == stream.first_table or is_below(
        source, levels.highs[at - 1].key, levels.highs[at - 1].length
    ):
        return False
    take_table(source, stream, at - 1)
    return find_down(source, stream, -1, NULL)


cdef inline int decide(Merge self, const lsm_stream *stream) except -1:
    """Remember a stream's key, of which no more is given."""
    if <size_t>stream.key_length + SLACK > self.room:
        grow(self, stream.key_length)
    lsm_copy_words(self.buffer, stream.key, stream.key_length)
    self.decided.bytes = self.buffer
    self.decided.length = stream.key_length
    self.decided.word = stream.word
    self.has_decided = True
    return 0


cdef int begin_behind(Merge self, const lsm_known_key *key) except -1:
    """The same of a key that is not a stream's, behind which no bytes may be read."""
    if <size_t>key.length + SLACK > self.room:
        grow(self, key.length)
    memcpy(self.buffer, key.bytes, key.length)
    lsm_known_key_set(&self.decided, self.buffer, key.length)
    self.has_decided = True
    return 0


cdef int grow(Merge self, uint32_t length) except -1:
    """Room for a key, and for the bytes behind it that are copied with it."""
    cdef size_t size = 2 * (<size_t>length + SLACK)
    cdef uint8_t *buffer = <uint8_t *>malloc(size)
    if buffer == NULL:
        raise MemoryError("there is no memory for a key")
    if self.buffer != self.few:
        free(self.buffer)
    self.buffer = buffer
    self.room = size
    return 0


cdef int take_up(Merge self, Source source, list items, Py_ssize_t most) except -1:
    """Append the next items, and stay at the last of them."""
    cdef lsm_stream *top
    cdef int64_t room = WINDOW_BYTES
    cdef uint32_t hidden = 0
    cdef int order
    while self.open:
        top = self.order[0]
        if source.high is not None:
            order = lsm_stream_compare(top, &source.high_key)
            if order > 0 or (order == 0 and not source.high_included):
                break
        if top.version <= source.version and not (
            self.has_decided and lsm_stream_is_at(top, &self.decided)
        ):
            decide(self, top)
            if top.version & 1:
                give(self, source, items, top.value, top.value_length)
                most -= 1
                room -= <int64_t>top.key_length + top.value_length
                if most <= 0 or room <= 0:
                    self.is_light = room > 0
                    return 0
        else:
            hidden += 1
            if hidden % PATIENCE == 0:
                PyErr_CheckSignals()
        step_up(self, source)
    self.is_light = room > 0
    self.is_over = True
    return 0


cdef int take_down(Merge self, Source source, list items, Py_ssize_t most) except -1:
    """Append the next items down; only the entry behind a key's versions ends them."""
    cdef lsm_stream *top
    cdef int64_t room = WINDOW_BYTES
    cdef uint32_t hidden = 0
    cdef int order
    while self.open:
        top = self.order[0]
        if not (self.has_decided and lsm_stream_is_at(top, &self.decided)):
            if self.has_candidate:
                room -= <int64_t>self.decided.length + self.value_length
                if give_candidate(self, source, items):
                    most -= 1
                    if most <= 0 or room <= 0:
                        self.is_light = room > 0
                        return 0
            if source.low is not None:
                order = lsm_stream_compare(top, &source.low_key)
                if order < 0 or (order == 0 and not source.low_included):
                    break
            decide(self, top)
        else:
            hidden += 1
            if hidden % PATIENCE == 0:
                PyErr_CheckSignals()
        if top.version <= source.version:
            self.has_candidate = True
            self.version = top.version
            self.value = top.value
            self.value_length = top.value_length
            self.holder = None if top.held_block == NULL else <object>top.held_block
        step_down(self, source)
    if self.has_candidate:
        room -= <int64_t>self.decided.length + self.value_length
        give_candidate(self, source, items)
    self.is_light = room > 0
    self.is_over = True
    return 0


cdef bint give_candidate(Merge self, Source source, list items) except -1:
    """Append the item of the version that stands for its key, unless it is a tombstone."""
    self.has_candidate = False
    if not self.version & 1:
        return False
    give(self, source, items, self.value, self.value_length)
    return True


cdef inline int give(
    Merge self, Source source, list items, const uint8_t *value, uint32_t value_length
) except -1:
    """Put the item of the key that was decided, with this value, behind those that were taken."""
    cdef uint32_t length = self.decided.length
    cdef uint32_t cut = source.cut if source.cut < length else length
    if not source.has_keys and self.first is None:
        self.first = decided_key(self)
    lsm_put_item(
        items, self.count, &source.shape, self.decided.bytes + cut, length - cut, value,
        value_length,
    )
    self.count += 1
    return 0
