"""Building a block, of entries that Python has; how is in ``block_builder.h``."""

cimport cython
from cpython.bytes cimport (
    PyBytes_AS_STRING, PyBytes_Check, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
)
from libc.stdint cimport UINT32_MAX, uint8_t, uint32_t, uint64_t

from lsm.kernels.native.version cimport version_of


@cython.final
@cython.no_gc
cdef class BlockBuilder:
    """Builds one block after the other."""

    def __cinit__(self, uint32_t restart_interval):
        self.c.interval = restart_interval

    def __dealloc__(self):
        lsm_block_builder_free(&self.c)

    def __bool__(self):
        return self.c.entries.size != 0

    @property
    def size(self):
        """The bytes of the block if it were finished now."""
        return lsm_block_builder_size(&self.c)

    @property
    def last_key(self):
        """The key that was added last."""
        return PyBytes_FromStringAndSize(<const char *>self.c.last.bytes, self.c.last.size)

    def fill(self, list entries not None, Py_ssize_t at, size_t target):
        """Add entries from an index on until the block has its target size.

        Returns the index of the first one that was not added. Keys are the user's, as bytes.
        """
        cdef Given given
        while at < len(entries):
            take_entry(entries[at], &given)
            refuse(lsm_block_builder_add(
                &self.c, given.key, given.key_length, given.version, given.value,
                given.value_length,
            ))
            at += 1
            if lsm_block_builder_size(&self.c) >= target:
                break
        return at

    def finish(self):
        """The block; the builder then starts the next one."""
        refuse(lsm_block_builder_finish(&self.c))
        block = PyBytes_FromStringAndSize(<const char *>self.c.entries.bytes, self.c.entries.size)
        lsm_block_builder_start(&self.c)
        return block


cdef int take_entry(object entry, Given *given) except -1:
    """Where an entry's bytes are, which it keeps."""
    key, rank, value = entry
    if not PyBytes_Check(key) or not PyBytes_Check(value):
        raise TypeError(
            "the key and the value of an entry are bytes, not "
            f"{type(key).__name__} and {type(value).__name__}"
        )
    if PyBytes_GET_SIZE(key) > UINT32_MAX or PyBytes_GET_SIZE(value) > UINT32_MAX:
        refuse(LSM_ADD_TOO_LARGE)
    if not version_of(rank, &given.version):
        raise ValueError(f"a rank is minus a version, and {rank} is none")
    given.key = <const uint8_t *>PyBytes_AS_STRING(key)
    given.key_length = <uint32_t>PyBytes_GET_SIZE(key)
    given.value = <const uint8_t *>PyBytes_AS_STRING(value)
    given.value_length = <uint32_t>PyBytes_GET_SIZE(value)
    return 0


cdef int refuse(int refused) except -1:
    """Raise what an entry was refused for, if it was."""
    if refused == LSM_ADD_NO_MEMORY:
        raise MemoryError("there is no memory for another entry of a table")
    if refused == LSM_ADD_TOO_LARGE:
        raise ValueError(f"an entry, or a block of a table, has more than {UINT32_MAX} bytes")
    return 0
