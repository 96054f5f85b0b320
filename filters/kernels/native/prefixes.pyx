"""The prefixes of a table's keys, found without making objects of keys."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcmp, memcpy

from filters.key_prefixes import prefix_of
from filters.kernels.native.keys cimport KeySource, Packed, packed_key
from filters.packed_keys import PackedKeys


cdef Rule rule_of(size_t length, bytes until):
    """The rule that a length is, or a delimiter, valid as long as that."""
    return Rule(
        length, <const uint8_t *>PyBytes_AS_STRING(until), <size_t>PyBytes_GET_SIZE(until)
    )


cdef class PrefixScan:
    """Finds the prefixes of ascending keys, each once: equal ones come one after the other.

    A prefix has ``length`` bytes, or if that is 0 it ends with the first ``until``.
    """

    def __init__(self, size_t length, bytes until not None):
        self._length = length
        self._until = until

    def add_many(self, keys):
        """The prefixes of the next keys, but for one that the keys before them have, too."""
        if type(keys) is PackedKeys:
            return self._of_packed(KeySource.of(keys))
        last, found = self._last, []
        for key in keys:
            if last is not None and key.startswith(last):  # so it is this one's prefix, too
                continue
            prefix = prefix_of(key, self._length, self._until)
            if prefix is not None:
                found.append(prefix)
                last = prefix
        self._last = last
        return found

    cdef object _of_packed(self, KeySource source):
        cdef Rule rule = rule_of(self._length, self._until)
        cdef Found found = Found(NULL, 0, 0, NULL, 0, 0)
        cdef const uint8_t *last = NULL
        cdef size_t last_size = 0
        cdef Py_ssize_t seen
        if self._last is not None:
            last = <const uint8_t *>PyBytes_AS_STRING(self._last)
            last_size = <size_t>PyBytes_GET_SIZE(self._last)
        try:
            with nogil:
                seen = scan(&source.packed, &rule, last, last_size, &found)
            if seen < 0:
                raise MemoryError("there is no memory for the prefixes of keys")
            if seen < source.count:
                raise source.bad_offsets(seen)
            return self._as_keys(&found)
        finally:
            free(found.data)
            free(found.ends)

    cdef object _as_keys(self, Found *found):
        cdef bytes data, ends
        cdef int64_t *into
        data = PyBytes_FromStringAndSize(<const char *>found.data, <Py_ssize_t>found.size)
        ends = PyBytes_FromStringAndSize(
            NULL, (found.count + 1) * <Py_ssize_t>sizeof(int64_t)
        )
        into = <int64_t *>PyBytes_AS_STRING(ends)
        into[0] = 0
        if found.count:
            memcpy(into + 1, found.ends, <size_t>found.count * sizeof(int64_t))
            start = 0 if found.count == 1 else found.ends[found.count - 2]
            self._last = data[start:]
        return PackedKeys(data, offsets=memoryview(ends).cast("q"))


cdef Py_ssize_t scan(
    const Packed *keys, const Rule *rule, const uint8_t *last, size_t last_size, Found *found
) noexcept nogil:
    """How many keys came before bad offsets; all of them if there are none; -1 for no memory."""
    cdef const uint8_t *key
    cdef size_t size, prefix
    cdef Py_ssize_t i
    for i in range(keys.count):
        key = packed_key(keys, i, &size)
        if key == NULL:
            return i
        if last != NULL and size >= last_size:
            if memcmp(key, last, last_size) == 0:  # so it is this one's prefix, too
                continue
        prefix = prefix_size(rule, key, size)
        if prefix == 0:
            continue
        if append(found, key, prefix):
            return -1
        last, last_size = key, prefix
    return keys.count


cdef int append(Found *found, const uint8_t *prefix, size_t size) noexcept nogil:
    """Add a prefix; -1 where there is no memory for it."""
    cdef void *larger
    cdef size_t capacity
    cdef Py_ssize_t most
    if found.capacity - found.size < size:
        capacity = 2 * found.capacity + size + 1024
        larger = realloc(found.data, capacity)
        if larger == NULL:
            return -1
        found.data, found.capacity = <uint8_t *>larger, capacity
    if found.count == found.most:
        most = 2 * found.most + 64
        larger = realloc(found.ends, <size_t>most * sizeof(int64_t))
        if larger == NULL:
            return -1
        found.ends, found.most = <int64_t *>larger, most
    memcpy(found.data + found.size, prefix, size)
    found.size += size
    found.ends[found.count] = <int64_t>found.size
    found.count += 1
    return 0
