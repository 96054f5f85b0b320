"""One key's newest version: memtables first, then each level's candidate table, newest first.

What is not in memory the walk asks of ``tables``, a table cache: it opens tables, loads filters and
reads blocks, has the tallies, and says how to go on without a filter that raised. Any of these may
run other lookups, and change what is cached: so of what it has seen before the walk keeps objects,
no pointers.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.ref cimport PyObject
from libc.stdint cimport uint8_t, uint32_t, uint64_t

from filters.kernels.native cimport simd
from lsm.kernels.native.block cimport (
    Block, lsm_block, lsm_block_entry, lsm_block_prefetch, lsm_block_seek, lsm_entry
)
from lsm.kernels.native.filter_door cimport (
    BY_PARTITION, BY_WINDOW, IN_PYTHON, SILENT, UNDECIDED, FilterDoor, denies, lsm_question,
    take_digest, window_denies
)
from lsm.kernels.native.key_words cimport lsm_compare_keys, lsm_word
from lsm.kernels.native.memtable cimport Memtable, lsm_found, lsm_memtable_find
from lsm.kernels.native.partitions cimport (
    Partitions, lsm_partition, lsm_partitions, lsm_partitions_find, lsm_partitions_seek
)
from lsm.kernels.native.sorted_keys cimport lsm_sorted_keys_seek
from lsm.kernels.native.table cimport Table, TableFile
from lsm.kernels.native.tally cimport Tally
from lsm.kernels.native.version cimport MOST_BYTES, rank_of, version_of
from lsm.kernels.native.view cimport Bound, Levels, View, lsm_level
from lsm.kernels.python.lookup import Walk


cdef extern from "simd.h" nogil:
    void lsm_prefetch(const void *memory)


cdef object NOWHERE = object()


def find(
    View view not None, tables, bytes user_key not None, key, read_rank, bint fill_cache,
    listener=None,
):
    """The value that the key has at this read rank; None if it has none."""
    cdef uint64_t version
    if not version_of(read_rank, &version):
        return None
    return lookup(view, tables, user_key, version, fill_cache, listener)


cdef object lookup(
    View view, object tables, bytes key, uint64_t version, bint fill_cache, object listener
):
    """The same; a listener or None."""
    cdef Search search
    if not begin(&search, tables, key, version, fill_cache, listener):
        return None
    value = find_in_memory(&search, view)
    if value is NOWHERE:
        value = find_in_levels(&search, view.levels)
    return None if value is NOWHERE else value


cdef bint holds(View view, object tables, bytes key, uint64_t version) except -1:
    """Whether the key has a value, of which nothing is copied."""
    cdef Search search
    if not begin(&search, tables, key, version, True, None):
        return False
    search.only_asks = True
    answer = find_in_memory(&search, view)
    if answer is NOWHERE:
        answer = find_in_levels(&search, view.levels)
    return answer is not NOWHERE and answer is not None


cdef bint begin(
    Search *search, object tables, bytes key, uint64_t version, bint fill_cache, object listener
) noexcept:
    """Begin the lookup of a key that stays; False if no database can have it, of its length."""
    search.question.key = <const uint8_t *>PyBytes_AS_STRING(key)
    search.question.length = <uint32_t>PyBytes_GET_SIZE(key)
    search.question.has_digest = False
    search.word = lsm_word(search.question.key, search.question.length)
    search.version = version
    search.key = <PyObject *>key
    search.tables = <PyObject *>tables
    search.listener = NULL if listener is None else <PyObject *>listener
    search.fill_cache = fill_cache
    search.only_asks = False
    search.simd = simd.level()
    return PyBytes_GET_SIZE(key) <= MOST_BYTES


cdef object find_in_memory(Search *search, View view):
    """What the first memtable that has the key has for it, or NOWHERE."""
    cdef lsm_found found
    cdef Memtable memtable
    cdef Py_ssize_t number = 0
    cdef bint is_found
    for each in view.memtables:
        memtable = <Memtable>each
        is_found = lsm_memtable_find(
            &memtable.c, search.question.key, search.question.length, search.version, &found
        )
        if search.listener != NULL:
            rank = rank_of(found.version) if is_found else None
            (<object>search.listener).memtable(number, rank)
            number += 1
        if is_found:
            return answer_of(search, found.version, found.value, found.value_length)
    return NOWHERE


cdef object find_in_levels(Search *search, Levels levels):
    """What the first table that has the key has for it, or NOWHERE.

    Filters are asked for some tables at once, before anybody knows what the first one has: what
    they read comes from memory at the same time then.
    """
    cdef Place place
    cdef Asked asked[AT_ONCE]
    cdef int count, number
    start(&place, levels)
    while True:
        count = 0
        while count < AT_ONCE and next_table(search, levels, &place):
            asked[count].at = place.at
            count += 1
        if count == 0:
            return NOWHERE
        for number in range(count):
            asked[number].block = fetch_block(search, <TableFile>levels.files[asked[number].at])
            asked[number].partition = partition_in(
                search, <TableFile>levels.files[asked[number].at]
            )
        for number in range(count):
            asked[number].outcome = ask(search, levels, asked[number].at, asked[number].partition)
        for number in range(count):
            if asked[number].outcome == DENIED:
                (<Tally>levels.tallies[asked[number].at]).skipped += 1
                (<TableFile>levels.files[asked[number].at]).missed += 1
                continue
            search.number = asked[number].block
            value = find_in_table(search, levels, asked[number].at, asked[number].outcome)
            if value is not NOWHERE:
                return value


cdef inline int order_of(Search *search, const Bound *bound) noexcept:
    """Whether the key comes before a bound, or behind it, as memcmp() tells it."""
    if search.word != bound.word:
        return -1 if search.word < bound.word else 1
    return lsm_compare_keys(
        search.question.key, search.question.length, bound.key, bound.length
    )


cdef bint next_table(Search *search, Levels levels, Place *place) noexcept:
    """Step to the next table that has the key between its bounds; False if there is none."""
    cdef const uint8_t *key = search.question.key
    cdef uint32_t length = search.question.length, at
    cdef lsm_level *level
    while True:
        while place.next < place.end:
            at = place.next
            place.next += 1
            if order_of(search, &levels.lows[at]) < 0:
                if at < levels.newest:
                    continue
                # All tables behind it begin later still. Mostly this is the first: the next ones
                # are for a key between whose versions LevelDB has cut a table.
                place.next = place.end
                break
            if at >= levels.newest or order_of(search, &levels.highs[at]) <= 0:
                place.at = at
                return True
        if place.level == levels.level_count:
            return False
        level = &levels.levels[place.level]
        place.level += 1
        place.end = level.first + level.highs.count
        place.next = level.first + lsm_sorted_keys_seek(
            &level.highs, key, length, NEWEST, search.simd
        )


cdef lsm_partition *fetch_partition(Search *search, const lsm_partitions *partitions) noexcept:
    """Find the partition that may have the key, if it is here with a door, and fetch its filter."""
    cdef lsm_partition *found = lsm_partitions_seek(
        partitions, search.question.key, search.question.length, search.simd
    )
    if found != NULL:
        lsm_prefetch(found.filter)
    return found


cdef int ask(Search *search, Levels levels, uint32_t at, lsm_partition *partition) noexcept:
    """What a table's filter says, if it has a door for digests that was found before.

    Of one in partitions that is the filter of this one, which was fetched.
    """
    cdef TableFile file = <TableFile>levels.files[at]
    cdef lsm_question *question = &search.question
    if levels.tallies[at] == NULL or search.listener != NULL:
        return UNASKED
    if file.probe_digest == NULL:
        return UNASKED if partition == NULL else ask_partition(search, file, partition)
    if (
        not question.has_digest
        or question.kind != file.digest_kind
        or question.seed != file.digest_seed
    ):
        take_digest(question, file.digest_kind, file.digest_seed)
    file.was_used = file.door.mark[0] = True
    file.had_the_last = file.probe_digest(file.filter, question.digest)
    return MAYBE if file.had_the_last else DENIED


cdef int ask_partition(Search *search, TableFile file, lsm_partition *partition) noexcept:
    """What the filter of a partition says."""
    cdef lsm_question *question = &search.question
    if (
        not question.has_digest
        or question.kind != partition.digest_kind
        or question.seed != partition.digest_seed
    ):
        take_digest(question, partition.digest_kind, partition.digest_seed)
    file.was_used = file.partitions.used = partition.used = True
    file.had_the_last = partition.probe_digest(partition.filter, question.digest)
    return MAYBE if file.had_the_last else DENIED


cdef object find_in_table(Search *search, Levels levels, uint32_t at, int outcome):
    """What the newest version in one table that is visible has, or NOWHERE."""
    cdef Table table = opened(search, <TableFile>levels.files[at])
    cdef FilterDoor whole = table.loaded, loaded
    cdef Tally tally
    if whole is None:
        whole = (<object>search.tables).filters.load(table)
    whole.mark[0] = True
    if whole.manner == UNDECIDED:
        decide(whole)
    table.file.offer_door(table)
    loaded = whole
    if whole.manner == BY_PARTITION and outcome == UNASKED and search.listener == NULL:
        loaded = partition_of(search, table, whole)
    if loaded.manner == IN_PYTHON or search.listener != NULL:
        return find_readably(search, <object>levels.placed[at], table, whole)
    if levels.tallies[at] == NULL:
        take_tally(search, levels, at, whole)
    tally = <Tally>levels.tallies[at]
    if loaded.manner == BY_WINDOW:
        search.number = block_for(search, table)
        if search.number == table.index.count:  # it ends in newer versions: no window was asked
            table.file.found += 1
            return NOWHERE
        if window_denies(loaded, table.offsets[search.number], &search.question):
            tally.skipped += 1
            table.file.missed += 1
            return NOWHERE
    elif outcome == UNASKED and loaded.manner != SILENT and denies(loaded, &search.question):
        tally.skipped += 1
        table.file.missed += 1
        return NOWHERE
    return find_in_block(search, table, loaded, tally)


cdef FilterDoor partition_of(Search *search, Table table, FilterDoor whole):
    """The filter of the partition that may have the key, loaded if need be."""
    cdef Partitions parts = whole.parts
    cdef FilterDoor loaded = None
    cdef uint32_t number = lsm_partitions_find(
        &parts.c, search.question.key, search.question.length, search.simd
    )
    if number < parts.c.lasts.count:
        loaded = parts.found(number)
    if loaded is None:
        loaded = (<object>search.tables).filters.find_partition(table, whole, <object>search.key)
    loaded.mark[0] = True
    if loaded.manner == UNDECIDED:
        decide(loaded)
    if number < parts.c.lasts.count:
        parts.offer_door(number, loaded)
    return loaded


cdef inline uint32_t fetch_block(Search *search, TableFile file) noexcept:
    """Fetch what the block is searched by, before the filter's answer, where that is likely a yes.

    Whoever asked for keys that are there is likely to go on with it. Returns the block's number, or
    UNKNOWN.
    """
    cdef Table table
    cdef uint32_t number
    if not file.had_the_last or file.door is None:
        return UNKNOWN
    table = <Table>file.table
    number = block_for(search, table)
    if number < table.index.count and table.slots[number] != NULL:
        lsm_block_prefetch(&table.views[number])
    return number


cdef int decide(FilterDoor loaded) except -1:
    """Find out how a filter is asked; one that raises then is asked in Python, which tells."""
    try:
        loaded.decide()
    except Exception:
        loaded.manner = IN_PYTHON
    return 0


cdef object find_readably(Search *search, placed, Table table, FilterDoor loaded):
    """The same for a listener, or where a filter is asked in Python, which is the larger part."""
    walk = Walk(
        <object>search.tables, <object>search.key, <object>search.key, rank_of(search.version),
        search.fill_cache, None if search.listener == NULL else <object>search.listener,
    )
    entry = walk.find_beneath(placed, table, loaded)
    if entry is None:
        return NOWHERE
    return entry[2] if entry[1] & 1 else None


cdef Table opened(Search *search, TableFile file):
    """The open table of a file."""
    cdef object found = file.table
    if found is None:
        found = (<object>search.tables).open(file)
    if type(found) is not Table:
        raise TypeError(f"a compiled lookup reads compiled tables, not {type(found)!r}")
    file.was_used = True
    return <Table>found


cdef int take_tally(Search *search, Levels levels, uint32_t at, loaded) except -1:
    placed = <object>levels.placed[at]
    tally = placed.tally
    levels.take_tally(at, (<object>search.tables).tally(placed, loaded) if tally is None else tally)
    return 0


cdef object find_in_block(Search *search, Table table, FilterDoor loaded, Tally tally):
    """The same from the index on, where the filter has not said no."""
    cdef uint32_t length = search.question.length, number = search.number, at
    cdef const uint8_t *key = search.question.key
    cdef Block block
    cdef const lsm_block *view
    cdef lsm_entry entry
    cdef int same = 0
    cdef object value = NOWHERE
    if number > table.index.count:  # unknown, or of this table as it was before it was opened anew
        number = block_for(search, table)
    if number == table.index.count:  # the table ends in newer versions of this very key
        tally.true_positives += loaded.manner != SILENT
        table.file.found += 1
        return NOWHERE
    if table.slots[number] != NULL:
        view = &table.views[number]
        (<Block>table.slots[number]).used = True
    else:
        tables = <object>search.tables
        tables.lookup_misses += 1
        block = tables.block(table, number, search.fill_cache)
        view = &block.c
    at = lsm_block_seek(view, key, length, search.version, search.simd, &same)
    if same:
        lsm_block_entry(view, at, &entry)
        value = answer_of(search, entry.version, entry.value, entry.value_length)
    if loaded.manner == SILENT:
        table.file.found += same
        table.file.missed += not same
        count_silence(loaded, tally)
    elif same or has_any(search, table):
        tally.true_positives += 1
        table.file.found += 1
    else:
        tally.false_positives += 1
        table.file.missed += 1
    return value


cdef int count_silence(FilterDoor loaded, Tally tally) except -1:
    """Count a block that was read without a filter's say."""
    if loaded.is_none:
        tally.none += 1
        return 0
    tally.count(loaded.state)
    if loaded.patience:
        loaded.went_without()
    return 0


cdef bint has_any(Search *search, Table table) except -1:
    """Whether the table has the key in a version that is too new for this lookup."""
    cdef uint32_t length = search.question.length, number
    cdef const uint8_t *key = search.question.key
    cdef Block block
    cdef int same = 0
    number = lsm_sorted_keys_seek(&table.index, key, length, NEWEST, search.simd)
    block = table.cached_block(number)
    if block is None:
        block = (<object>search.tables).block(table, number, False)
    lsm_block_seek(&block.c, key, length, NEWEST, search.simd, &same)
    return same
