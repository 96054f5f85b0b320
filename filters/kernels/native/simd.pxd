"""Which vector instructions are in use."""

cdef int level() noexcept nogil
