"""What the filters share that keys are added to, and that never change their size."""

cimport cython
from libc.stdint cimport UINT64_MAX, uint64_t
from libc.string cimport memcpy, memset

from filters import over_filling
from filters.hashing import checked64
from filters.kernels.native.base cimport SaltedFilter, add_all, unmade
from filters.kernels.native.payload cimport Payload
from filters.sizing_parameters import check_like, checked_capacity


if UINT64_MAX != over_filling.UNLIMITED:
    raise ImportError("filters/over_filling.py and its compiled kernel differ: compile it again")


cdef class GrowingFilter(SaltedFilter):
    """A filter of fixed geometry, planned for a number of keys; these may be added later."""

    def __cinit__(self):
        self._capacity = self._most_keys = UINT64_MAX

    @classmethod
    def _planner(cls, **given):
        """A function from a number of keys to the geometry that the sizing parameters give."""
        raise NotImplementedError

    @classmethod
    def _with_capacity(cls, num_keys, like, seed, salt, **given):
        cdef GrowingFilter self = cls.__new__(cls), other
        if like is not None:
            check_like(cls, like, num_keys=num_keys, seed=seed, salt=salt, **given)
            other = like
            self.lay_out(other._geometry, other.door.digest_seed, other.salt, None)
            self._capacity = other._capacity
        else:
            plan = cls._planner(**given)
            capacity = checked_capacity(num_keys)
            geometry = plan(capacity)
            self.lay_out(geometry, checked64("seed", seed), checked64("salt", salt), None)
            self._capacity = capacity
        self._most_keys = over_filling.limit(self.family, self._capacity)
        return self

    @classmethod
    def from_bytes(cls, buffer):
        """The filter in these bytes: a view of an immutable buffer, a copy of a mutable one."""
        cdef GrowingFilter self = cls.__new__(cls)
        head, geometry, payload = self.layout.decode(buffer)
        self._num_keys = head.num_keys
        self.lay_out(geometry, head.seed, head.salt, payload)
        return self

    def add_many(self, keys, *, nulls="error"):
        """Add many keys; on an error those before it are in."""
        add_all(self, keys, nulls)
        if self._num_keys > self._most_keys:
            self.over_filled()

    def update(self, *iterables, nulls="error"):
        """Add the keys of each, as ``add_many`` does; on an error those before it are in."""
        for each in iterables:
            self.add_many(each, nulls=nulls)

    @cython.critical_section
    def clear(self):
        """Take out all keys; the size, the seed and the salt stay."""
        if self._geometry is None:
            raise unmade(self)
        if self.payload.writable:
            memset(self.payload.data, 0, <size_t>self.payload.size)
        else:
            self.payload = Payload.zeroed(self.payload.size)
            self.point()
        self._num_keys = 0

    def copy(self):
        """A filter of the same keys, size, seed and salt, which goes its own way."""
        return self.copied()

    cdef GrowingFilter copied(self):
        """A filter of the same class with a payload of its own."""
        cdef GrowingFilter copied = type(self).__new__(type(self))
        if self._geometry is None:
            raise unmade(self)
        copied.lay_out(self._geometry, self.door.digest_seed, self.salt, None)
        self._copy_to(copied)
        return copied

    @cython.critical_section
    cdef int _copy_to(self, GrowingFilter copied) except -1:
        memcpy(copied.payload.data, self.payload.data, <size_t>self.payload.size)
        copied._num_keys = self._num_keys
        copied._capacity, copied._most_keys = self._capacity, self._most_keys
        return 0

    cdef int over_filled(self) except -1:
        """Tell whoever has just added keys that there are more than this filter was made for."""
        self._most_keys = UINT64_MAX
        over_filling.warn(self.family, self._capacity, self._num_keys)
        return 0

    cdef int lay_out(self, object geometry, uint64_t seed, uint64_t salt, object buffer) except -1:
        """Use a geometry over a view of this buffer, or over zeros where there is none."""
        self._geometry = geometry
        self.salt, self.is_salted = salt, True
        self.door.digest_seed = seed
        if buffer is None:
            self.payload = Payload.zeroed(self.layout.payload_bytes(geometry))
        else:
            self.payload = Payload.view(buffer)
        return self.point()

    cdef int point(self) except -1:
        """Point the family's struct at the payload of now, and answer through it."""
        raise NotImplementedError

    cdef int own(self) except -1:
        if self._geometry is None:
            raise unmade(self)
        if not self.payload.writable:
            self.payload = self.payload.copy()
            self.point()
        return 0
