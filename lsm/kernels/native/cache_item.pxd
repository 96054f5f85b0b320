"""What every item of a cache has: a reference bit, and where it stands with its cache."""


cdef class CacheItem:
    cdef public bint used
    cdef public object held
