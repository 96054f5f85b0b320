"""A data block in memory, searched without decoding it; how is in ``block.h``."""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport UINT32_MAX, UINT64_MAX, int64_t
from libc.string cimport memcpy

from filters.kernels.native cimport simd
from filters.kernels.native.wide cimport lsm_store64
from lsm.kernels.native.version cimport rank_of, version_of

from lsm.errors import ADVICE, CorruptionError
from lsm.kernels.python.block import PIECE_BYTES, PIECE_KEY_BYTES

cdef enum:
    UNKNOWN = 0xFFFF_FFFF     # no index of an entry, nor a length of a key


@cython.final
@cython.no_gc
@cython.freelist(64)
cdef class Block:
    """One block of a table, its entries decoded when they are asked for.

    CorruptionError unless the entries follow one another to the end, each within the block, and the
    restarts lead to keys that stand there as a whole. Whether keys ascend is not asked.

    In a cache it is that of its ``number`` in the table to which ``owner`` refers, weakly.
    """

    def __cinit__(self, bytes data not None, wrap=None, str place not None="a block"):
        cdef uint32_t malformed = 0
        if wrap is not None:
            raise ValueError(
                f"{place}: compiled blocks order keys as bytes; wrapped ones take the readable kernel"
            )
        cdef int refusal = lsm_block_load(
            &self.c, <const uint8_t *>PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data), &malformed
        )
        if refusal:
            raise refused(self, refusal, malformed, place, PyBytes_GET_SIZE(data))
        self.charge = self.__sizeof__()

    def __dealloc__(self):
        lsm_block_free(&self.c)

    def __sizeof__(self):
        """The object, the bytes of the block, and what it looks entries up in."""
        return Block.__basicsize__ + lsm_block_bytes(&self.c)

    def evict(self):
        """Be found in the table no more; the next lookup reads it again."""
        table = None if self.owner is None else self.owner()
        if table is not None and table.cached(self.number) is self:
            table.place(self.number, None)

    def find(self, bytes key not None, rank):
        """The first entry from (key, rank) on, or None if the block has none."""
        cdef uint64_t version = UINT64_MAX
        cdef int same = 0
        cdef bint is_behind = not version_of(rank, &version)
        cdef uint32_t index = seek_behind(self, key) if is_behind else seek(self, key, version, &same)
        if index == self.c.count:
            return None
        return entry_at(self, index, key if same else None)

    def pieces(self):
        """All entries in order, in lists whose memory is bounded."""
        return pieces_between(self, 0, self.c.count, False)

    def pieces_backwards(self):
        """The same, the last list first."""
        return pieces_between(self, 0, self.c.count, True)

    def pieces_from(self, bytes key not None):
        """The entries of all user keys from this one on, in such lists."""
        cdef int same
        return pieces_between(self, seek(self, key, UINT64_MAX, &same), self.c.count, False)

    def pieces_through(self, bytes key not None):
        """The entries of all user keys up to this one, in such lists, the last one first."""
        return pieces_between(self, 0, seek_behind(self, key), True)


cdef object refused(Block block, int refusal, uint32_t malformed, str place, Py_ssize_t size):
    """The error that says why a block is none."""
    end = block.c.end
    if refusal == LSM_BLOCK_NO_MEMORY:
        return MemoryError(f"{place}: there is no memory to look its {size} bytes up in")
    if refusal == LSM_BLOCK_TOO_LARGE:
        what = f"it has {size} bytes, and offsets in a block reach {UINT32_MAX}"
    elif refusal == LSM_BLOCK_NO_ROOM:
        what = f"it has {size} bytes and no room for its {block.c.restarts} restarts"
    elif refusal == LSM_BLOCK_OUTSIDE:
        what = f"its restarts lie outside of its {end} bytes of entries"
    else:
        what = (
            f"its entry at byte {malformed} is malformed, its lengths do not fit the "
            f"{end} bytes of entries"
        )
    return CorruptionError(f"{place}: {what}; {ADVICE}")


cdef inline uint32_t seek(Block block, bytes key, uint64_t version, int *same) noexcept:
    """The index of the first entry from (key, version) on.

    All keys of a block are shorter than 4 GiB: of a longer one, more makes no difference.
    """
    cdef uint32_t length = <uint32_t>min(<uint64_t>PyBytes_GET_SIZE(key), UINT32_MAX)
    cdef const uint8_t *start = <const uint8_t *>PyBytes_AS_STRING(key)
    return lsm_block_seek(&block.c, start, length, version, simd.level(), same)


cdef uint32_t seek_behind(Block block, bytes key) except? UNKNOWN:
    """The index of the first entry behind all versions of a key, which is before the next key."""
    cdef int same
    cdef bytes next_key = key + b"\0"
    return seek(block, next_key, UINT64_MAX, &same)


cdef bytes key_at(Block block, uint32_t index, uint32_t length):
    cdef bytes key = PyBytes_FromStringAndSize(NULL, length)
    lsm_block_key(&block.c, index, <uint8_t *>PyBytes_AS_STRING(key))
    return key


cdef tuple entry_at(Block block, uint32_t index, bytes key):
    """An entry whose key is at hand, or None."""
    cdef lsm_entry entry
    lsm_block_entry(&block.c, index, &entry)
    if key is None:
        key = key_at(block, index, entry.key_length)
    value = PyBytes_FromStringAndSize(<const char *>entry.value, entry.value_length)
    return key, rank_of(entry.version), value


cdef Pieces pieces_between(Block block, uint32_t begin, uint32_t end, bint backwards):
    cdef Pieces pieces = Pieces.__new__(Pieces)
    pieces.block = block
    pieces.begin = begin
    pieces.end = end
    pieces.backwards = backwards
    pieces.piece_bytes = PIECE_BYTES
    pieces.piece_key_bytes = PIECE_KEY_BYTES
    return pieces


@cython.final
@cython.internal
@cython.no_gc
cdef class Pieces:
    """The entries between two indexes, in lists whose memory is bounded, from either end."""

    cdef Block block
    cdef uint32_t begin, end
    cdef bint backwards
    cdef int64_t piece_bytes, piece_key_bytes

    def __iter__(self):
        return self

    def __next__(self):
        cdef uint32_t begin = self.begin, end = self.end
        if begin >= end:
            raise StopIteration
        if self.backwards:
            begin = self.end = piece_before(self)
        else:
            end = self.begin = piece_behind(self)
        return entries_between(self.block, begin, end)


cdef uint32_t piece_behind(Pieces self) noexcept:
    """Where the piece ends that begins the rest."""
    cdef int64_t room = self.piece_bytes, key_room = self.piece_key_bytes
    cdef uint32_t index = self.begin, before = UNKNOWN
    while index < self.end and (room > 0 and key_room > 0 or index == self.begin):
        before = take(self.block, index, before, &room, &key_room)
        index += 1
    return index


cdef uint32_t piece_before(Pieces self) noexcept:
    """Where the piece begins that ends the rest."""
    cdef int64_t room = self.piece_bytes, key_room = self.piece_key_bytes
    cdef uint32_t index = self.end
    while index > self.begin and (room > 0 and key_room > 0 or index == self.end):
        index -= 1
        take(self.block, index, length_before(self.block, index), &room, &key_room)
    return index


cdef uint32_t length_before(Block block, uint32_t index) noexcept:
    """The length of the user key before an entry's."""
    cdef lsm_lengths lengths
    if index == 0:
        return UNKNOWN
    lengths = lsm_block_lengths(&block.c, index - 1)
    return lsm_user_length(&lengths)


cdef uint32_t take(
    Block block, uint32_t index, uint32_t before, int64_t *room, int64_t *key_room
) noexcept:
    """Take an entry's bytes off the room of a piece; the length of its user key.

    The key before has so many bytes; another version of that key has it in common.
    """
    cdef lsm_lengths lengths = lsm_block_lengths(&block.c, index)
    cdef uint32_t length = lsm_user_length(&lengths)
    room[0] -= 3 + <int64_t>lengths.unshared + lengths.value_length
    if lengths.shared < length or length != before:
        key_room[0] -= length
    return length


cdef list entries_between(Block block, uint32_t begin, uint32_t end):
    """These entries, of which there is one at least."""
    cdef lsm_lengths lengths
    cdef uint64_t version = 0
    cdef bytes key = None
    cdef list entries = []
    cdef uint32_t index
    for index in range(begin, end):
        lengths = lsm_block_lengths(&block.c, index)
        if key is None:
            key = key_at(block, index, lsm_user_length(&lengths))
        else:
            key = key_behind(key, version, &lengths)
        version = lsm_version_of(&block.c, index, &lengths)
        value = PyBytes_FromStringAndSize(
            <const char *>lengths.key + lengths.unshared, lengths.value_length
        )
        entries.append((key, rank_of(version), value))
    return entries


cdef bytes key_behind(bytes before, uint64_t version, const lsm_lengths *lengths):
    """The user key of an entry, from the key and the version of the entry before."""
    cdef uint8_t version_bytes[8]
    cdef uint32_t had = <uint32_t>PyBytes_GET_SIZE(before)
    cdef uint32_t length = lsm_user_length(lengths), shared = min(lengths.shared, length)
    if shared == length == had:
        return before
    cdef bytes key = PyBytes_FromStringAndSize(NULL, length)
    cdef char *out = PyBytes_AS_STRING(key)
    memcpy(out, PyBytes_AS_STRING(before), min(shared, had))
    if shared > had:  # it begins with the key before and bytes of its version
        lsm_store64(version_bytes, version)
        memcpy(out + had, version_bytes, shared - had)
    memcpy(out + shared, lengths.key, length - shared)
    return key
