"""Open tables: an index, the blocks of it that are cached, and a filter."""

import weakref

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.ref cimport Py_DECREF, Py_INCREF, PyObject
from libc.stdint cimport UINT64_MAX
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy

from filters.kernels.native cimport simd
from lsm.disk.footer import TRAILER_BYTES, Handle
from lsm.kernels.native.filter_door cimport BY_DIGEST, BY_PARTITION, FilterDoor
from lsm.kernels.native.sorted_keys cimport (
    lsm_sorted_keys_free, lsm_sorted_keys_reserve, lsm_sorted_keys_seal, lsm_sorted_keys_seek
)
from lsm.kernels.native.version cimport MOST_BYTES, rank_of, version_of
from lsm.kernels.python.table import pieces

cdef uint64_t NEWEST = <uint64_t>-1
cdef uint64_t TRAILER = TRAILER_BYTES

# An open table itself, its reader and its place in a cache.
cdef enum:
    OVERHEAD = 1200
    # What an index entry takes beside its key.
    INDEX_ENTRY = 2 * 8 + 8 + 4 + 8 + 2 * 8 + 8 + 96


cdef class TableFile:
    """A table's file; ``opened`` is its open table while that is in the table cache.

    ``missed`` counts the lookups that came by and whose key the table has not: its filter said no,
    or a block was read in vain. ``found`` counts those whose key it has, in whichever version.
    """

    def __init__(self, number, size):
        self.number = number
        self.size = size

    @property
    def opened(self):
        """The open table, if there is one."""
        return self.table

    @opened.setter
    def opened(self, table):
        self.close_door()
        self.table = table

    cdef void offer_door(self, Table table) noexcept:
        """Let lookups find the door of the filter in its place, if that is asked by digest.

        Or the place where those of its partitions are found.
        """
        cdef FilterDoor door = table.loaded
        if self.table is not table or door is None:
            return
        if door.manner == BY_PARTITION:
            self.door = door
            self.partitions = &door.parts.c
        elif door.manner == BY_DIGEST:
            self.filter = door.probe.self
            self.digest_seed = door.probe.digest_seed
            self.digest_kind = door.probe.digest_kind
            self.door = door
            self.probe_digest = door.probe.probe_digest

    cdef void close_door(self) noexcept:
        """Let lookups look for the filter themselves."""
        self.probe_digest = NULL
        self.partitions = NULL
        self.door = None

    def __repr__(self):
        return f"<table {self.number}: {self.size} bytes>"


@cython.final
cdef class Table(CacheItem):
    """A table with its index, its cached blocks, and its filter once that was loaded.

    ``owner`` has it in its cache, and releases it there. Its cached blocks and its filter refer to
    it by the weak ``reference`` only, so that its file is closed as soon as it has left the cache
    and nobody reads it. One that nobody caches needs neither ``file`` nor ``owner``.
    """

    def __cinit__(self, reader, wrap=None, file=None, owner=None):
        assert wrap is None, "the compiled kernel compares bytes"
        self.reader = reader
        self.file = TableFile(0, len(reader.mapped.data)) if file is None else file
        self.owner = owner
        self.reference = weakref.ref(self)
        self._read_index(reader)

    cdef int _read_index(self, reader) except -1:
        """Copy the index out of the file."""
        cdef bytes contents = reader.index_block()
        cdef const uint8_t *data = <const uint8_t *>PyBytes_AS_STRING(contents)
        cdef const uint8_t *end
        cdef size_t count, key_bytes
        cdef lsm_index_entry entry = lsm_index_entry(NULL, 0, 0, 0, 0)
        if (
            not lsm_index_survey(data, PyBytes_GET_SIZE(contents), &count, &key_bytes)
            or count > <size_t>reader.most_blocks
        ):
            return self._take_index(list(reader.index_entries(contents)))
        self._reserve_index(count, key_bytes)
        end = lsm_index_end(data, PyBytes_GET_SIZE(contents))
        while data < end:
            data = lsm_index_next(data, end, &entry)
            self._add_to_index(
                entry.key, entry.key_length, entry.version, entry.offset, entry.size
            )
        lsm_sorted_keys_seal(&self.index)
        return 0

    cdef int _take_index(self, list entries) except -1:
        """Copy the index out of Python's objects."""
        cdef uint64_t version
        cdef size_t key_bytes = 0
        cdef bytes key
        for key, _, _ in entries:
            key_bytes += PyBytes_GET_SIZE(key)
        self._reserve_index(len(entries), key_bytes)
        for key, rank, handle in entries:
            version_of(rank, &version)
            self._add_to_index(
                <const uint8_t *>PyBytes_AS_STRING(key), <uint32_t>PyBytes_GET_SIZE(key), version,
                handle.offset, handle.size,
            )
        lsm_sorted_keys_seal(&self.index)
        return 0

    cdef int _reserve_index(self, size_t count, size_t key_bytes) except -1:
        """Room for so many entries, of which none is there yet."""
        if key_bytes > MOST_BYTES or lsm_sorted_keys_reserve(&self.index, count):
            raise MemoryError
        self.index.count = 0
        self._keys = <uint8_t *>malloc(key_bytes or 1)
        self._key_bytes = 0
        self.offsets = <uint64_t *>malloc(2 * 8 * (count or 1))
        self.slots = <PyObject **>calloc(count or 1, sizeof(PyObject *))
        self.views = <lsm_block *>malloc((count or 1) * sizeof(lsm_block))
        if not (self._keys and self.offsets and self.slots and self.views):
            raise MemoryError
        self._sizes = self.offsets + count
        self.charge = OVERHEAD + INDEX_ENTRY * count + key_bytes
        return 0

    cdef int _add_to_index(
        self, const uint8_t *key, uint32_t length, uint64_t version, uint64_t offset,
        uint64_t size,
    ) noexcept:
        """Add an entry where there is room."""
        cdef uint32_t at = self.index.count
        cdef uint8_t *place = self._keys + self._key_bytes
        memcpy(place, key, length)
        self._key_bytes += length
        self.index.keys[at] = place
        self.index.lengths[at] = length
        self.index.versions[at] = version
        self.offsets[at] = offset
        self._sizes[at] = size
        self.index.count = at + 1
        return 0

    def __dealloc__(self):
        cdef uint32_t number
        if self.slots != NULL:
            for number in range(self.index.count):
                if self.slots[number] != NULL:
                    Py_DECREF(<object>self.slots[number])
        free(self.slots)
        free(self.views)
        free(self.offsets)
        free(self._keys)
        lsm_sorted_keys_free(&self.index)

    @property
    def used(self):
        """Whether it was used since somebody has looked."""
        return self.file.was_used

    @used.setter
    def used(self, bint used):
        self.file.was_used = used

    @property
    def filter(self):
        """The table's filter; None until it was loaded."""
        return self.loaded

    @filter.setter
    def filter(self, loaded):
        self.file.close_door()
        self.loaded = loaded

    @property
    def handles(self):
        """Where the data blocks are, in order."""
        cdef uint32_t number
        return [
            Handle(self.offsets[number], self._sizes[number]) for number in range(self.index.count)
        ]

    @property
    def block_count(self):
        """How many data blocks there are."""
        return self.index.count

    def offset(self, uint32_t number):
        """Where in the file a data block begins."""
        if number >= self.index.count:
            raise IndexError(number)
        return self.offsets[number]

    def bounds(self):
        """Of each block a position, key and rank, that nothing in it is behind."""
        cdef uint32_t number
        return iter([
            (
                PyBytes_FromStringAndSize(
                    <const char *>self.index.keys[number], self.index.lengths[number]
                ),
                rank_of(self.index.versions[number]),
            )
            for number in range(self.index.count)
        ])

    def block_for(self, bytes key not None, rank):
        """The number of the block that has the first entry from (key, rank) on.

        As many as there are blocks, if none has one.
        """
        cdef uint64_t version
        if version_of(rank, &version):
            return self._seek(key, version)
        return self._seek(key + b"\0", NEWEST)

    cdef uint32_t _seek(self, bytes key, uint64_t version) except? 0:
        if PyBytes_GET_SIZE(key) > MOST_BYTES:
            raise MemoryError
        return lsm_sorted_keys_seek(
            &self.index, <const uint8_t *>PyBytes_AS_STRING(key), <uint32_t>PyBytes_GET_SIZE(key),
            version, simd.level(),
        )

    def offset_of(self, bytes key not None):
        """About where in the file the key is or would be."""
        cdef uint32_t number = self._seek(key, NEWEST), count = self.index.count
        if number < count:
            return self.offsets[number]
        return self.offsets[count - 1] + self._sizes[count - 1] if count else 0

    def data_end(self):
        """Where the data blocks end that lie one behind the other from the first byte on.

        None if they do not lie so, or if there are none.
        """
        cdef uint32_t number, count = self.index.count
        cdef uint64_t end = 0
        for number in range(count):
            if self.offsets[number] != end or self._sizes[number] > UINT64_MAX - TRAILER - end:
                return None
            end += self._sizes[number] + TRAILER
        return end or None

    def read(self, uint32_t number):
        """The data block of this number, read anew."""
        if number >= self.index.count:
            raise IndexError(number)
        handle = Handle(self.offsets[number], self._sizes[number])
        place = f"{self.reader.name}: the data block at byte {handle.offset}"
        return Block(self.reader.block(handle), None, place)

    cdef Block cached_block(self, uint32_t number):
        return None if self.slots[number] == NULL else <Block>self.slots[number]

    def cached(self, uint32_t number):
        """The data block of this number, if readers find it here."""
        if number >= self.index.count:
            raise IndexError(number)
        return self.cached_block(number)

    def place(self, uint32_t number, Block block):
        """Let readers find this block under this number, or none."""
        if number >= self.index.count:
            raise IndexError(number)
        cdef PyObject *before = self.slots[number]
        if block is not None:
            Py_INCREF(block)
            self.views[number] = block.c
        self.slots[number] = NULL if block is None else <PyObject *>block
        if before != NULL:
            Py_DECREF(<object>before)

    def emptied(self):
        """The blocks and the filter that readers have found here, and do not find any more."""
        cdef uint32_t number, count = self.index.count
        cdef list blocks = [None] * count
        cdef PyObject **empty = <PyObject **>calloc(count or 1, sizeof(PyObject *))
        cdef PyObject **slots = self.slots
        if empty == NULL:
            raise MemoryError
        # From here on nothing is allocated, so that nobody comes in between.
        self.slots = empty
        for number in range(count):
            if slots[number] != NULL:
                blocks[number] = <object>slots[number]
                Py_DECREF(<object>slots[number])
        free(slots)
        self.file.close_door()
        loaded, self.loaded = self.loaded, None
        return [block for block in blocks if block is not None], loaded

    def evict(self):
        """Leave the table cache, with all its blocks; the last reader's reference closes it."""
        self.owner.release(self)

    def pieces(self):
        """All entries in lists whose memory is bounded; CorruptionError where they do not ascend.

        For whoever writes them anew: what is out of order there would be so for good.
        """
        return pieces(self)
