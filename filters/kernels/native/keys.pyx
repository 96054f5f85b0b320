"""Keys in whatever form a caller has them, turned into digests, or into answers.

A list or tuple is walked by its pointers, and the next keys are fetched into the cache ahead of
their turn; packed keys are read where they lie, without Python and its lock; any other iterable
becomes a list first.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_GET_SIZE
from cpython.long cimport PyLong_AsUnsignedLongLong, PyLong_CheckExact
from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from operator import index

from filters.hashing import checked_digest, key_bytes
from filters.packed_keys import PackedKeys, bad_offsets, one_by_one
from filters.kernels.native.hashing cimport lsm_digest, lsm_digest_of, words_of
from filters.kernels.native.wide cimport lsm_prefetch


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


# How many keys ahead an object is prefetched: a group, so that it arrives while the group before it
# is probed.
cdef Py_ssize_t AHEAD = 128
cdef Py_ssize_t LINE_BYTES = 64

# How far ahead in a buffer keys are prefetched. The processor does that by itself, but not while it is
# busy with the random lines of a large filter, nor across pages: there this saves 1.5 ns a key.
cdef Py_ssize_t BYTES_AHEAD = 4096


cdef bint is_bulk(object keys):
    """Whether keys can be digested in bulk; other iterables yield them one by one, and may raise."""
    return type(keys) is list or type(keys) is tuple or type(keys) is PackedKeys


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
    """Write down the digest of one key, bytes or any other contiguous or strided buffer."""
    if not PyBytes_CheckExact(key):
        key = key_bytes(key)
    lsm_digest_of(
        kind, seed, <const uint8_t *>PyBytes_AS_STRING(key), <size_t>PyBytes_GET_SIZE(key), digest
    )
    return 0


cdef inline uint64_t offset_at(const Packed *keys, Py_ssize_t index) noexcept nogil:
    """An offset; a negative one is huge. Read once, since the buffer may be changing."""
    if keys.wide:
        return <uint64_t>(<const int64_t *>keys.offsets)[index]
    if keys.unsigned:
        return (<const uint32_t *>keys.offsets)[index]
    return <uint64_t>(<const int32_t *>keys.offsets)[index]


cdef Py_ssize_t digest_packed(
    const Packed *keys, Py_ssize_t first, Py_ssize_t count, lsm_digest kind, uint64_t seed,
    uint64_t *digests,
) noexcept nogil:
    """Digests of ``count`` packed keys; how many there were before bad offsets, if any."""
    cdef Py_ssize_t i, words = words_of(kind)
    cdef uint64_t start, stop
    cdef const uint8_t *key
    if keys.width:
        key = keys.data + <size_t>first * keys.width
        for i in range(count):
            lsm_prefetch(key + BYTES_AHEAD)
            lsm_digest_of(kind, seed, key, keys.width, digests)
            key += keys.width
            digests += words
        return count
    for i in range(count):
        start, stop = offset_at(keys, first + i), offset_at(keys, first + i + 1)
        if start > stop or stop > keys.size:
            return i
        lsm_prefetch(keys.data + start + BYTES_AHEAD)
        lsm_digest_of(kind, seed, keys.data + start, <size_t>(stop - start), digests)
        digests += words
    return count


cdef const uint8_t *packed_key(
    const Packed *keys, Py_ssize_t index, size_t *size
) noexcept nogil:
    """Where a packed key lies, and how long it is; NULL for bad offsets."""
    cdef uint64_t start, stop
    if keys.width:
        size[0] = keys.width
        return keys.data + <size_t>index * keys.width
    start, stop = offset_at(keys, index), offset_at(keys, index + 1)
    if start > stop or stop > keys.size:
        return NULL
    size[0] = <size_t>(stop - start)
    return keys.data + start


cdef Py_ssize_t ask_packed(
    const Packed *keys, probe_type probe, const void *filter, uint8_t *answers
) noexcept nogil:
    """The answers for all packed keys; how many there were before bad offsets, if any."""
    cdef const uint8_t *key
    cdef size_t size
    cdef Py_ssize_t i
    for i in range(keys.count):
        key = packed_key(keys, i, &size)
        if key == NULL:
            return i
        answers[i] = <uint8_t>probe(filter, <const char *>key, size)
    return keys.count


cdef class KeySource:
    """Keys that can be digested from any index on; keeps the object alive that holds them."""

    @staticmethod
    cdef KeySource of(object keys):
        """The source for a list, a tuple, packed keys, or any iterable."""
        cdef KeySource self = KeySource.__new__(KeySource)
        if type(keys) is PackedKeys:
            self._open_packed(keys)
            return self
        if type(keys) is list:
            self._keys = tuple(keys) if LSM_OTHERS_MAY_WRITE else keys
        else:
            self._keys = keys if type(keys) is tuple else list(one_by_one(keys))
        self.count = PySequence_Fast_GET_SIZE(self._keys)
        return self

    cdef int _open_packed(self, object keys) except -1:
        PyObject_GetBuffer(keys.data, &self._data, PyBUF_SIMPLE)
        self._viewing = True
        self.is_packed = True
        self.packed.data = <const uint8_t *>self._data.buf
        self.packed.size = <size_t>self._data.len
        self.packed.width = keys.width
        offsets = keys.offsets
        if offsets is not None:
            self.packed.width = 0
            PyObject_GetBuffer(offsets, &self._offsets, PyBUF_SIMPLE)
            self.packed.offsets = self._offsets.buf
            self.packed.wide = offsets.itemsize == 8
            self.packed.unsigned = offsets.format.isupper()
        self.count = self.packed.count = self._keys_there_are()
        return 0

    cdef Py_ssize_t _keys_there_are(self) except -1:
        """How many keys these buffers hold, whatever the object has become meanwhile."""
        if self.packed.width:
            return <Py_ssize_t>(self.packed.size // self.packed.width)
        if self.packed.offsets == NULL or self._offsets.len < (8 if self.packed.wide else 4):
            raise RuntimeError("the packed keys became others while they were read")
        return self._offsets.len // (8 if self.packed.wide else 4) - 1

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
        for i in range(self.count):
            key = <object>PySequence_Fast_ITEMS(self._keys)[i]
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
        """The error for the packed key whose offsets are wrong."""
        offsets = memoryview(self._offsets.obj)
        return bad_offsets(index, offsets[index], offsets[index + 1], self.packed.size)

    def __dealloc__(self):
        if self._viewing:
            PyBuffer_Release(&self._data)
            if self.packed.offsets != NULL:
                PyBuffer_Release(&self._offsets)
