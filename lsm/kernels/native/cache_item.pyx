"""What every item of a cache has: a reference bit, and where it stands with its cache."""


cdef class CacheItem:
    """A base for items of a ClockCache, which says what ``held`` means."""
