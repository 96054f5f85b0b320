"""The prefixes of a table's keys, found without making objects of keys."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport free, realloc
from libc.string cimport memchr, memcmp, memcpy

from filters.key_prefixes import prefix_of
from filters.kernels.native.keys cimport KeySource, Packed, packed_key
from filters.packed_keys import PackedKeys


# What a prefix is, and the last one that was found.
cdef struct Rule:
    size_t length
    const uint8_t *until
    size_t until_size
    const uint8_t *last
    size_t last_size


# Prefixes one behind the other, and where each ends.
cdef struct Found:
    uint8_t *data
    size_t size
    size_t capacity
    int64_t *ends
    Py_ssize_t count
    Py_ssize_t most


cdef class PrefixScan:
    """Finds the prefixes of ascending keys, each once: equal ones come one after the other.

    A prefix has ``length`` bytes, or if that is 0 it ends with the first ``until``.
    """

    cdef size_t _length
    cdef bytes _until
    cdef bytes _last

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
        cdef Rule rule
        cdef Found found = Found(NULL, 0, 0, NULL, 0, 0)
        cdef Py_ssize_t seen
        rule.length = self._length
        rule.until = <const uint8_t *>PyBytes_AS_STRING(self._until)
        rule.until_size = <size_t>PyBytes_GET_SIZE(self._until)
        rule.last, rule.last_size = NULL, 0
        if self._last is not None:
            rule.last = <const uint8_t *>PyBytes_AS_STRING(self._last)
            rule.last_size = <size_t>PyBytes_GET_SIZE(self._last)
        try:
            with nogil:
                seen = scan(&source.packed, &rule, &found)
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


cdef Py_ssize_t scan(const Packed *keys, Rule *rule, Found *found) noexcept nogil:
    """How many keys came before bad offsets; all of them if there are none; -1 for no memory."""
    cdef const uint8_t *key
    cdef size_t size, prefix
    cdef Py_ssize_t i
    for i in range(keys.count):
        key = packed_key(keys, i, &size)
        if key == NULL:
            return i
        if rule.last != NULL and size >= rule.last_size:
            if memcmp(key, rule.last, rule.last_size) == 0:  # so it is this one's prefix, too
                continue
        prefix = prefix_size(rule, key, size)
        if prefix == 0:
            continue
        if append(found, key, prefix):
            return -1
        rule.last, rule.last_size = key, prefix
    return keys.count


cdef inline size_t prefix_size(const Rule *rule, const uint8_t *key, size_t size) noexcept nogil:
    """How long the prefix of a key is; 0 for one that has none."""
    cdef const uint8_t *at = key
    cdef const uint8_t *end
    if rule.length:
        return rule.length if size >= rule.length else 0
    if size < rule.until_size:
        return 0
    end = key + (size - rule.until_size + 1)
    while at < end:
        at = <const uint8_t *>memchr(at, rule.until[0], <size_t>(end - at))
        if at == NULL:
            return 0
        if memcmp(at, rule.until, rule.until_size) == 0:
            return <size_t>(at - key) + rule.until_size
        at += 1
    return 0


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
