"""Lookups of many keys at a time: what one waits for is fetched while others are looked at.

All keys of a group go from table to table in step. A round has a pass for each thing in memory that
the next one starts from: filters, then blocks, their words, and entries. In these passes no Python
code runs, so that pointers hold; a key that needs any takes that table by itself, at the end of its
round.
"""

from cpython.ref cimport PyObject
from libc.stdint cimport uint32_t, uint64_t

from lsm.kernels.native.block cimport (
    Block, lsm_block, lsm_block_entry, lsm_block_guess, lsm_block_prefetch,
    lsm_block_prefetch_entry, lsm_block_prefetch_struct, lsm_block_seek, lsm_entry
)
from lsm.kernels.native.lookup cimport (
    DENIED, MAYBE, NOWHERE, UNASKED, UNKNOWN, Place, Search, ask, begin, block_for,
    find_in_memory, find_in_table, next_table, partition_in, start, value_of
)
from lsm.kernels.native.partitions cimport lsm_partition
from lsm.kernels.native.table cimport Table, TableFile
from lsm.kernels.native.tally cimport Tally
from lsm.kernels.native.view cimport Levels, View


cdef extern from "simd.h" nogil:
    void lsm_prefetch(const void *memory)


# What comes of a key in a round, beside DENIED.
cdef enum:
    READY = 8                 # its block is there to be searched
    ALONE                     # it takes this table by itself
    DONE                      # it was found


ctypedef struct Job:
    Search search
    Place place
    int outcome
    Py_ssize_t index          # of its value
    lsm_partition *partition
    const lsm_block *block
    uint64_t *counter         # of what it is if the block has the key
    uint64_t *found           # by the table


cdef int lookup_group(
    View view, object tables, list keys, uint64_t version, list values, Py_ssize_t first
) except -1:
    """Look up some keys, GROUP at most, and put their values among the others from ``first`` on."""
    cdef Job jobs[GROUP]
    cdef Py_ssize_t count = 0, number
    cdef Job *job
    for number in range(len(keys)):
        job = &jobs[count]
        if not begin(&job.search, tables, <bytes>keys[number], version, True, None):
            continue
        job.index = first + number
        value = find_in_memory(&job.search, view)
        if value is NOWHERE:
            start(&job.place, view.levels)
            count += 1
        elif value is not None:
            values[job.index] = value
    while count:
        count = come_to_tables(jobs, count, view.levels)
        ask_filters(jobs, count, view.levels)
        find_blocks(jobs, count, view.levels)
        guess_entries(jobs, count)
        count = read_entries(jobs, count, view.levels, values)
    return 0


cdef Py_ssize_t come_to_tables(Job *jobs, Py_ssize_t count, Levels levels) noexcept:
    """Step each key to its next table; how many there are, without those that have come to none."""
    cdef Py_ssize_t number, left = 0
    for number in range(count):
        if next_table(&jobs[number].search, levels, &jobs[number].place):
            if left < number:
                jobs[left] = jobs[number]
            left += 1
    return left


cdef void ask_filters(Job *jobs, Py_ssize_t count, Levels levels) noexcept:
    cdef Py_ssize_t number
    for number in range(count):
        jobs[number].partition = partition_in(
            &jobs[number].search, <TableFile>levels.files[jobs[number].place.at]
        )
    for number in range(count):
        jobs[number].outcome = ask_filter(&jobs[number], levels)


cdef int ask_filter(Job *job, Levels levels) noexcept:
    """What a table's filter and its index say, if they are in memory; the block's place is fetched."""
    cdef TableFile file = <TableFile>levels.files[job.place.at]
    cdef Table table
    cdef Tally tally
    cdef int outcome = ask(&job.search, levels, job.place.at, job.partition)
    if outcome == DENIED:
        (<Tally>levels.tallies[job.place.at]).skipped += 1
        file.missed += 1
        return DENIED
    if type(file.table) is not Table or levels.tallies[job.place.at] == NULL:
        return ALONE
    table = <Table>file.table
    tally = <Tally>levels.tallies[job.place.at]
    if outcome == MAYBE:
        job.counter = &tally.true_positives
    elif table.loaded is not None and table.loaded.is_none:
        job.counter = &tally.none
        file.was_used = table.loaded.mark[0] = True
    else:
        return ALONE
    job.found = &file.found
    job.search.number = block_for(&job.search, table)
    if job.search.number == table.index.count:
        return ALONE
    job.block = &table.views[job.search.number]
    lsm_block_prefetch_struct(job.block)
    lsm_prefetch(&table.slots[job.search.number])
    return READY


cdef void find_blocks(Job *jobs, Py_ssize_t count, Levels levels) noexcept:
    """See which blocks are there, and fetch what they are searched by."""
    cdef Py_ssize_t number
    cdef Job *job
    cdef PyObject *block
    for number in range(count):
        job = &jobs[number]
        if job.outcome != READY:
            continue
        block = (<Table>(<TableFile>levels.files[job.place.at]).table).slots[job.search.number]
        if block == NULL:
            job.outcome = ALONE
            continue
        (<Block>block).used = True
        lsm_block_prefetch(job.block)


cdef void guess_entries(Job *jobs, Py_ssize_t count) noexcept:
    """Fetch the entries that the blocks' words lead to."""
    cdef Py_ssize_t number
    cdef uint32_t guess
    cdef Job *job
    for number in range(count):
        job = &jobs[number]
        if job.outcome == READY:
            guess = lsm_block_guess(
                job.block, job.search.question.key, job.search.question.length, job.search.simd
            )
            if guess < job.block.count:
                lsm_block_prefetch_entry(job.block, guess)


cdef Py_ssize_t read_entries(
    Job *jobs, Py_ssize_t count, Levels levels, list values
) except -1:
    """Take the values of those keys that are found; how many are left."""
    cdef Py_ssize_t number, left = 0
    cdef Job *job
    for number in range(count):
        if jobs[number].outcome == READY:
            read_entry(&jobs[number], values)
    for number in range(count):
        job = &jobs[number]
        if job.outcome == ALONE:
            job.search.number = UNKNOWN
            value = find_in_table(&job.search, levels, job.place.at, UNASKED)
            if value is not NOWHERE:
                job.outcome = DONE
                if value is not None:
                    values[job.index] = value
        if job.outcome != DONE:
            if left < number:
                jobs[left] = job[0]
            left += 1
    return left


cdef int read_entry(Job *job, list values) except -1:
    """Take a value from a block, or leave it to a lookup alone to say why there is none."""
    cdef lsm_entry entry
    cdef int same = 0
    cdef uint32_t at = lsm_block_seek(
        job.block, job.search.question.key, job.search.question.length, job.search.version,
        job.search.simd, &same,
    )
    if not same:
        job.outcome = ALONE
        return 0
    lsm_block_entry(job.block, at, &entry)
    value = value_of(entry.version, entry.value, entry.value_length)
    if value is not None:
        values[job.index] = value
    job.counter[0] += 1
    job.found[0] += 1
    job.outcome = DONE
    return 0
