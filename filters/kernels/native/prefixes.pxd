"""What a prefix of a key is, for other compiled modules; and finding those of many."""

from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memchr, memcmp

from filters.kernels.native.keys cimport KeySource


# So many bytes, or where that is 0 up to a delimiter, which is part of it.
ctypedef struct Rule:
    size_t length
    const uint8_t *until
    size_t until_size


# Prefixes one behind the other, and where each ends.
cdef struct Found:
    uint8_t *data
    size_t size
    size_t capacity
    int64_t *ends
    Py_ssize_t count
    Py_ssize_t most


cdef Rule rule_of(size_t length, bytes until)


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


cdef class PrefixScan:
    cdef size_t _length
    cdef bytes _until
    cdef bytes _last

    cdef object _of_packed(self, KeySource source)
    cdef object _as_keys(self, Found *found)
