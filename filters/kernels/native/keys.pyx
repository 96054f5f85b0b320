"""Keys in whatever form a caller has them, turned into digests, or into answers.

A list or tuple is walked by its pointers, and the next keys are fetched into the cache ahead of
their turn; packed keys and columns are read where they lie, without Python and its lock; any other
iterable becomes a list first. A column's chunks are pieces, and packed keys a single one.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_GET_SIZE
from cpython.long cimport PyLong_AsUnsignedLongLong, PyLong_CheckExact
from cpython.mem cimport PyMem_Calloc, PyMem_Free, PyMem_Malloc
from cpython.object cimport PyObject
from cpython.unicode cimport PyUnicode_CheckExact
from libc.stdint cimport (
    int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
)
from libc.string cimport memcpy, memset

from operator import index

from filters.columns import Column, PaddedKeys, TextKeys, ViewKeys, one_by_one
from filters.hashing import checked_digest, key_bytes
from filters.packed_keys import PackedKeys, bad_offsets
from filters.kernels.native.hashing cimport lsm_digest, lsm_digest_of, words_of
from filters.kernels.native.text cimport LSM_TEXT_ROOM, lsm_encode_texts, lsm_text_bytes
from filters.kernels.native.wide cimport lsm_load32, lsm_prefetch


cdef extern from *:
    """
    #if PY_VERSION_HEX >= 0x030D0000 && defined(Py_GIL_DISABLED)
    #define LSM_OTHERS_MAY_WRITE 1  /* without the GIL another thread may change the list */
    #else
    #define LSM_OTHERS_MAY_WRITE 0
    #endif
    """
    const bint LSM_OTHERS_MAY_WRITE
    PyObject **PySequence_Fast_ITEMS(object sequence)
    Py_ssize_t PySequence_Fast_GET_SIZE(object sequence)


cdef enum:
    # How many keys ahead an object is prefetched: a group, so that it arrives while the group before
    # it is probed.
    AHEAD = 128
    LINE_BYTES = 64

    # How far ahead in a buffer keys are prefetched. The processor does that by itself, but not while
    # it is busy with the random lines of a large filter, nor across pages: there this saves 1.5 ns a
    # key.
    BYTES_AHEAD = 4096


# Arrow's views are so long, and have so short values in themselves.
cdef enum:
    VIEW_BYTES = 16
    INLINE = 12


cdef bint is_bulk(object keys):
    """Whether keys can be digested in bulk; other iterables yield them one by one, and may raise."""
    return type(keys) is list or type(keys) is tuple or is_packed(keys)


cdef bint is_packed(object keys):
    """Whether keys lie in buffers."""
    return type(keys) is PackedKeys or type(keys) is Column


cdef uint64_t digest_number(object digest) except? 0:
    """A digest that a caller gives as an int."""
    if not PyLong_CheckExact(digest):
        digest = index(digest)
    try:
        return PyLong_AsUnsignedLongLong(digest)
    except OverflowError:
        raise OverflowError("a digest lies between 0 and 2**64 - 1") from None


cdef int digest_words(lsm_digest kind, object digest, uint64_t *words) except -1:
    """The words of a digest that a caller gives as an int, the upper one first."""
    if words_of(kind) == 1:
        words[0] = digest_number(digest)
        return 0
    number = checked_digest(digest, 2)
    words[0] = number >> 64
    words[1] = number & <uint64_t>-1
    return 0


cdef int digest_of_key(lsm_digest kind, uint64_t seed, object key, uint64_t *digest) except -1:
    """Write down the digest of one key: bytes, text, or a contiguous or strided buffer."""
    cdef uint8_t room[LSM_TEXT_ROOM]
    cdef const uint8_t *text
    cdef size_t size
    if PyUnicode_CheckExact(key):
        text = lsm_text_bytes(<PyObject *>key, room, &size)
        if text != NULL:
            lsm_digest_of(kind, seed, text, size, digest)
            return 0
    if not PyBytes_CheckExact(key):
        key = key_bytes(key)
    lsm_digest_of(
        kind, seed, <const uint8_t *>PyBytes_AS_STRING(key), <size_t>PyBytes_GET_SIZE(key), digest
    )
    return 0


cdef inline uint64_t offset_at(const Piece *piece, uint64_t row) noexcept nogil:
    """An offset; a negative one is huge. Read once, since the buffer may be changing."""
    if piece.wide:
        return <uint64_t>(<const int64_t *>piece.offsets)[row]
    if piece.unsigned:
        return (<const uint32_t *>piece.offsets)[row]
    return <uint64_t>(<const int32_t *>piece.offsets)[row]


cdef inline const uint8_t *viewed(const Piece *piece, uint64_t row, size_t *size) noexcept nogil:
    """Where the value of a view lies, and how long it is; NULL where it cannot lie there."""
    cdef const uint8_t *view = piece.data + row * VIEW_BYTES
    # Length, then either the value or its beginning, buffer and place. Each is read once, since the
    # buffer may be changing; together they would be written down first.
    cdef uint32_t length = lsm_load32(view), buffer, place
    cdef const Py_buffer *other
    size[0] = length
    if length <= INLINE:
        return view + 4
    buffer, place = lsm_load32(view + 8), lsm_load32(view + 12)
    # Arrow's numbers are signed: one with the top bit set is negative, and no place.
    if buffer >= <uint64_t>piece.num_others or (length | place) >> 31:
        return NULL
    other = piece.others + buffer
    if <uint64_t>place + length > <uint64_t>other.len:
        return NULL
    return <const uint8_t *>other.buf + place


cdef inline const uint8_t *key_in(const Piece *piece, Py_ssize_t index, size_t *size) noexcept nogil:
    """Where a key of a piece lies, and how long it is; NULL where it cannot be."""
    cdef uint64_t row = <uint64_t>index, start, stop
    cdef const uint8_t *key
    if piece.rows != NULL:
        row = <uint64_t>piece.rows[index]
        if row >= <uint64_t>piece.values:
            return NULL
    if piece.layout == BY_OFFSETS:
        start, stop = offset_at(piece, row), offset_at(piece, row + 1)
        if start > stop or stop > piece.size:
            return NULL
        size[0] = <size_t>(stop - start)
        return piece.data + start
    if piece.layout == BY_VIEWS:
        return viewed(piece, row, size)
    key = piece.data + row * piece.width
    size[0] = piece.width
    if piece.layout == PADDED:
        while size[0] and key[size[0] - 1] == 0:
            size[0] -= 1
    return key


cdef inline const Piece *piece_of(const Packed *keys, Py_ssize_t index) noexcept nogil:
    """The piece that a key is in."""
    cdef Py_ssize_t low = 0, high = keys.num_pieces - 1, middle
    while low < high:
        middle = (low + high + 1) // 2
        if keys.pieces[middle].first <= index:
            low = middle
        else:
            high = middle - 1
    return keys.pieces + low


cdef const uint8_t *packed_key(
    const Packed *keys, Py_ssize_t index, size_t *size
) noexcept nogil:
    """Where a packed key lies, and how long it is; NULL where it cannot be."""
    cdef const Piece *piece = piece_of(keys, index)
    return key_in(piece, index - piece.first, size)


cdef Py_ssize_t digest_packed(
    const Packed *keys, Py_ssize_t first, Py_ssize_t count, lsm_digest kind, uint64_t seed,
    uint64_t *digests,
) noexcept nogil:
    """Digests of ``count`` packed keys; how many there were before one that is wrong, if any."""
    cdef Py_ssize_t done = 0, some, good, words = words_of(kind)
    cdef const Piece *piece
    while done < count:
        piece = piece_of(keys, first + done)
        some = min(count - done, piece.first + piece.count - (first + done))
        good = digest_piece(
            piece, first + done - piece.first, some, kind, seed, digests + words * done
        )
        done += good
        if good < some:
            return done
    return done


cdef Py_ssize_t digest_piece(
    const Piece *whole, Py_ssize_t first, Py_ssize_t count, lsm_digest kind, uint64_t seed,
    uint64_t *digests,
) noexcept nogil:
    """Digests of keys in one piece; how many there were before one that is wrong."""
    # A copy, for the compiler cannot know that the digests do not overwrite the piece itself.
    cdef Piece copied = whole[0]
    cdef const Piece *piece = &copied
    cdef Py_ssize_t i, words = words_of(kind)
    cdef uint64_t start, stop
    cdef size_t size = 0
    cdef const uint8_t *key
    if piece.layout == EQUALLY_WIDE and piece.rows == NULL:
        key = piece.data + <size_t>first * piece.width
        for i in range(count):
            lsm_prefetch(key + BYTES_AHEAD)
            lsm_digest_of(kind, seed, key, piece.width, digests)
            key += piece.width
            digests += words
        return count
    if piece.layout == BY_OFFSETS and piece.rows == NULL:
        for i in range(first, first + count):
            start, stop = offset_at(piece, <uint64_t>i), offset_at(piece, <uint64_t>i + 1)
            if start > stop or stop > piece.size:
                return i - first
            lsm_prefetch(piece.data + start + BYTES_AHEAD)
            lsm_digest_of(kind, seed, piece.data + start, <size_t>(stop - start), digests)
            digests += words
        return count
    if piece.layout == BY_VIEWS and piece.rows == NULL:
        for i in range(count):
            key = viewed(piece, <uint64_t>(first + i), &size)
            if key == NULL:
                return i
            lsm_prefetch(key + BYTES_AHEAD)
            lsm_digest_of(kind, seed, key, size, digests)
            digests += words
        return count
    for i in range(count):
        key = key_in(piece, first + i, &size)
        if key == NULL:
            return i
        lsm_prefetch(key + BYTES_AHEAD)
        lsm_digest_of(kind, seed, key, size, digests)
        digests += words
    return count


cdef Py_ssize_t ask_packed(
    const Packed *keys, probe_type probe, const void *filter, uint8_t *answers
) noexcept nogil:
    """The answers for all packed keys; how many there were before one that is wrong, if any."""
    cdef const uint8_t *key
    cdef size_t size = 0
    cdef Py_ssize_t i
    for i in range(keys.count):
        key = packed_key(keys, i, &size)
        if key == NULL:
            return i
        answers[i] = <uint8_t>probe(filter, <const char *>key, size)
    return keys.count


cdef inline int64_t code_at(
    const void *codes, Py_ssize_t width, bint is_signed, Py_ssize_t index
) noexcept nogil:
    """The number of a value in a dictionary; one that is too large for any is negative."""
    if width == 1:
        return (<const int8_t *>codes)[index] if is_signed else (<const uint8_t *>codes)[index]
    if width == 2:
        return (<const int16_t *>codes)[index] if is_signed else (<const uint16_t *>codes)[index]
    if width == 4:
        return (<const int32_t *>codes)[index] if is_signed else (<const uint32_t *>codes)[index]
    return (<const int64_t *>codes)[index]


cdef void let_go(Piece *piece) noexcept:
    """Free what a piece has of its own."""
    PyMem_Free(piece.rows)
    PyMem_Free(piece.own)


cdef Py_ssize_t chosen(
    const Py_buffer *there, const Py_buffer *named, Py_ssize_t width, bint is_signed,
    Py_ssize_t count, int64_t *rows
) noexcept nogil:
    """Write down which value each row is that there is; how many there are."""
    cdef Py_ssize_t i, found = 0
    for i in range(count):
        rows[found] = i if named == NULL else code_at(named.buf, width, is_signed, i)
        found += there == NULL or (<const uint8_t *>there.buf)[i] != 0
    return found


cdef class KeySource:
    """Keys that can be digested from any index on; keeps the object alive that holds them."""

    @staticmethod
    cdef KeySource of(object keys):
        """The source for a list, a tuple, packed keys, or any iterable."""
        cdef KeySource self = KeySource.__new__(KeySource)
        if not is_bulk(keys):
            keys = one_by_one(keys)
        if is_packed(keys):
            self._keys = keys
            self.is_packed = True
            if type(keys) is Column:
                self._open_column(keys)
            else:
                self._open_packed(keys)
            self.count = self.packed.count
            return self
        if type(keys) is list:
            self._keys = tuple(keys) if LSM_OTHERS_MAY_WRITE else keys
        else:
            self._keys = keys if type(keys) is tuple else list(keys)
        self.count = PySequence_Fast_GET_SIZE(self._keys)
        return self

    cdef int _open_packed(self, object keys) except -1:
        self._reserve(1, 2)
        return self._append(keys, None, None)

    cdef int _open_column(self, object column) except -1:
        chunks = tuple(column.chunks)
        self._reserve(
            len(chunks),
            sum([4 + len(getattr(chunk.values, "buffers", ())) for chunk in chunks]),
        )
        for chunk in chunks:
            self._append(chunk.values, chunk.present, chunk.codes)
        return 0

    cdef int _reserve(self, Py_ssize_t pieces, Py_ssize_t buffers) except -1:
        """Room for what is appended and held, which then stays where it is."""
        self._most_held = buffers
        if pieces == 1 and buffers <= 2:
            self._pieces = &self._only_piece
            self._held = &self._first_held[0]
            self.packed.pieces = self._pieces
            return 0
        self._pieces = <Piece *>PyMem_Calloc(<size_t>pieces + 1, sizeof(Piece))
        self._held = <Py_buffer *>PyMem_Calloc(<size_t>buffers + 1, sizeof(Py_buffer))
        if self._pieces == NULL or self._held == NULL:
            raise MemoryError(f"there is no memory for {pieces} pieces of a column")
        self.packed.pieces = self._pieces
        return 0

    cdef const Py_buffer *_hold(self, object view) except NULL:
        """The memory of a view, which stays there as long as this does."""
        cdef Py_buffer *held = self._held + self._num_held
        if self._num_held >= self._most_held:
            raise RuntimeError("the column became another one while it was read")
        PyObject_GetBuffer(view, held, PyBUF_SIMPLE)
        self._num_held += 1
        return held

    cdef int _append(self, object values, object present, object codes) except -1:
        """Append a piece: all of these values, or those that are present and named."""
        cdef Piece *piece = self._pieces + self.packed.num_pieces
        memset(piece, 0, sizeof(Piece))
        self._describe(piece, values)
        piece.count, piece.first = piece.values, self.packed.count
        if present is not None or codes is not None:
            self._choose(piece, present, codes)
        if piece.count:
            self.packed.num_pieces += 1
            self.packed.count += piece.count
        else:
            let_go(piece)
        return 0

    cdef int _choose(self, Piece *piece, object present, object codes) except -1:
        """Write down which of a piece's values are keys."""
        cdef const Py_buffer *there = NULL
        cdef const Py_buffer *named = NULL
        cdef Py_ssize_t width = 0
        cdef bint is_signed = False
        if codes is not None:
            width, is_signed = codes.itemsize, codes.format.islower()
            named = self._hold(codes)
            piece.count = named.len // width
        if present is not None:
            there = self._hold(present)
            if there.len != piece.count:
                raise RuntimeError("the column became another one while it was read")
        piece.rows = <int64_t *>PyMem_Malloc(<size_t>(piece.count + 1) * sizeof(int64_t))
        if piece.rows == NULL:
            raise MemoryError(f"there is no memory for {piece.count} rows of a column")
        with nogil:
            piece.count = chosen(there, named, width, is_signed, piece.count, piece.rows)
        return 0

    cdef int _describe(self, Piece *piece, object values) except -1:
        """Where these values lie, and how many these buffers hold, whatever became of the object."""
        cdef const Py_buffer *held
        if type(values) is ViewKeys:
            held = self._hold(values.views)
            piece.layout, piece.data = BY_VIEWS, <const uint8_t *>held.buf
            piece.values = held.len // VIEW_BYTES
            piece.others = self._held + self._num_held
            for other in values.buffers:
                self._hold(other)
                piece.num_others += 1
            return 0
        if type(values) is TextKeys:
            return self._encode(piece, values)
        held = self._hold(values.data)
        piece.data, piece.size = <const uint8_t *>held.buf, <size_t>held.len
        piece.layout = PADDED if type(values) is PaddedKeys else EQUALLY_WIDE
        piece.width = values.width
        if piece.width:
            piece.values = <Py_ssize_t>(piece.size // piece.width)
            return 0
        offsets = values.offsets
        if offsets is None or not len(offsets):
            raise RuntimeError("the packed keys became others while they were read")
        held = self._hold(offsets)
        piece.layout, piece.offsets = BY_OFFSETS, held.buf
        piece.wide, piece.unsigned = offsets.itemsize == 8, offsets.format.isupper()
        piece.values = held.len // (8 if piece.wide else 4) - 1
        return 0

    cdef int _encode(self, Piece *piece, object texts) except -1:
        """Lay the UTF-8 of texts one behind the other."""
        cdef const Py_buffer *held = self._hold(texts.characters)
        cdef Py_ssize_t width = texts.width
        cdef int64_t *ends
        if width < 1:
            raise RuntimeError("the column became another one while it was read")
        piece.layout, piece.wide = BY_OFFSETS, True
        piece.values, piece.size = held.len // (4 * width), <size_t>held.len
        piece.own = PyMem_Malloc(<size_t>(piece.values + 1) * sizeof(int64_t) + piece.size)
        if piece.own == NULL:
            raise MemoryError(f"there is no memory for the UTF-8 of {piece.values} keys")
        ends = <int64_t *>piece.own
        piece.offsets, piece.data = ends, <const uint8_t *>(ends + piece.values + 1)
        with nogil:
            lsm_encode_texts(
                <const uint8_t *>held.buf, <size_t>piece.values, <size_t>width,
                <uint8_t *>piece.data, ends,
            )
        return 0

    cdef int digest(
        self, Py_ssize_t first, Py_ssize_t count, lsm_digest kind, uint64_t seed, uint64_t *digests
    ) except -1:
        """The digests of ``count`` keys from the first on; with the GIL, whatever the form."""
        self.digested = 0
        if self.is_packed:
            self.digested = digest_packed(&self.packed, first, count, kind, seed, digests)
            if self.digested < count:
                raise self.bad_offsets(first + self.digested)
            return 0
        return self._digest_items(first, count, kind, seed, digests)

    cdef int _digest_items(
        self, Py_ssize_t first, Py_ssize_t count, lsm_digest kind, uint64_t seed, uint64_t *digests
    ) except -1:
        cdef PyObject **items = PySequence_Fast_ITEMS(self._keys)
        cdef Py_ssize_t size = PySequence_Fast_GET_SIZE(self._keys)
        cdef Py_ssize_t i, words = words_of(kind)
        cdef PyObject *item
        cdef uint8_t room[LSM_TEXT_ROOM]
        cdef const uint8_t *text
        cdef size_t length
        if first + count > size:
            raise self._changed()
        for i in range(first, first + count):
            if i + AHEAD < size:
                # An object's type and a short key's last byte often lie in two cache lines.
                lsm_prefetch(items[i + AHEAD])
                lsm_prefetch(<const char *>items[i + AHEAD] + LINE_BYTES - 1)
            item = items[i]
            if PyBytes_CheckExact(<object>item):
                lsm_digest_of(
                    kind, seed, <const uint8_t *>PyBytes_AS_STRING(<object>item),
                    <size_t>PyBytes_GET_SIZE(<object>item), digests,
                )
                digests += words
                continue
            if PyUnicode_CheckExact(<object>item):
                text = lsm_text_bytes(item, room, &length)
                if text != NULL:
                    lsm_digest_of(kind, seed, text, length, digests)
                    digests += words
                    continue
            self.digested = i - first
            # A buffer of another type may run code of its own, which may change the list.
            digest_of_key(kind, seed, <object>item, digests)
            digests += words
            items = PySequence_Fast_ITEMS(self._keys)
            size = PySequence_Fast_GET_SIZE(self._keys)
            if first + count > size:
                raise self._changed()
        self.digested = count
        return 0

    cdef int ask(self, probe_type probe, const void *filter, uint8_t *answers) except -1:
        """The answers of a filter that takes keys themselves; 0 or 1 each."""
        cdef Py_ssize_t answered
        if not self.is_packed:
            return self._ask_items(probe, filter, answers)
        with nogil:
            answered = ask_packed(&self.packed, probe, filter, answers)
        if answered < self.count:
            raise self.bad_offsets(answered)
        return 0

    cdef int _ask_items(self, probe_type probe, const void *filter, uint8_t *answers) except -1:
        cdef Py_ssize_t i
        cdef object key
        cdef uint8_t room[LSM_TEXT_ROOM]
        cdef const uint8_t *text
        cdef size_t length
        for i in range(self.count):
            key = <object>PySequence_Fast_ITEMS(self._keys)[i]
            if PyUnicode_CheckExact(key):
                text = lsm_text_bytes(<PyObject *>key, room, &length)
                if text != NULL:
                    answers[i] = <uint8_t>probe(filter, <const char *>text, length)
                    continue
            if not PyBytes_CheckExact(key):
                # A buffer of another type may run code of its own, which may change the list.
                key = key_bytes(key)
                if PySequence_Fast_GET_SIZE(self._keys) < self.count:
                    raise self._changed()
            answers[i] = <uint8_t>probe(
                filter, PyBytes_AS_STRING(key), <size_t>PyBytes_GET_SIZE(key)
            )
        return 0

    cdef object _changed(self):
        return RuntimeError("the list of keys became shorter while it was read")

    cdef object bad_offsets(self, Py_ssize_t index):
        """The error for a key that claims to be where it cannot be."""
        if type(self._keys) is Column:
            return self._keys.fault(index)
        offsets = memoryview(self._held[1].obj)
        return bad_offsets(index, offsets[index], offsets[index + 1], self._pieces.size)

    def __dealloc__(self):
        cdef Py_ssize_t i
        for i in range(self._num_held):
            PyBuffer_Release(self._held + i)
        if self._pieces != NULL:
            for i in range(self.packed.num_pieces):
                let_go(self._pieces + i)
        if self._held != &self._first_held[0]:
            PyMem_Free(self._held)
        if self._pieces != &self._only_piece:
            PyMem_Free(self._pieces)
