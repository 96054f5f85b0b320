"""Keys of which only numbers are kept, though what they share is known with the last of them."""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport uint8_t, uint64_t

from filters import hashing, key_numbers
from filters.columns import one_by_one
from filters.digest_kinds import KEY_NUMBERS, UNCOPIED, check_digests
from filters.hashing import key_bytes
from filters.kernels.native.digests cimport Digests
from filters.kernels.native.hashing cimport LSM_DIGEST_NONE

if MAX_WIDTH != key_numbers.MAX_WIDTH:
    raise ImportError("filters/key_numbers.py and its compiled kernel differ: compile it again")


cdef class KeyNumbers:
    """Eight bytes of each key, in the order they came, and the first key.

    ``digests()`` of a range filter makes one; ``build`` takes it in the place of keys, and
    ``count_missing`` tells how many of its keys a filter denies. Of a key it keeps what follows the
    prefix that all keys before and itself have; what was kept while that was longer is completed
    from the first key.
    """

    def __init__(self, *args, **kwargs):
        raise TypeError("numbers of keys come from a filter's class: GrafiteFilter.digests()")

    def __cinit__(self):
        self._kept = Digests.empty(LSM_DIGEST_NONE, 0)
        self._first = b""
        self._shared = []

    @staticmethod
    cdef KeyNumbers empty(uint64_t seed):
        """An empty collection for filters under this seed."""
        cdef KeyNumbers self = KeyNumbers.__new__(KeyNumbers)
        self._kept = Digests.empty(LSM_DIGEST_NONE, seed)
        return self

    @staticmethod
    cdef KeyNumbers of(object keys, object seed):
        """The numbers of these keys, or those given in their place."""
        cdef KeyNumbers self
        if type(keys) is KeyNumbers:
            check_digests(keys.kind, keys.digest_seed, KEY_NUMBERS, seed)
            return keys
        self = KeyNumbers.empty(hashing.checked64("seed", seed))
        self.add_many(keys)
        return self

    @property
    def kind(self):
        """What is kept of keys, as ``filters.digest_kinds`` names it."""
        return KEY_NUMBERS

    @property
    def digest_seed(self):
        """The secret seed of the filter that is built of these."""
        return self._kept.seed

    def add(self, key):
        """Add the number of a key."""
        self.take(key_bytes(key))

    def add_many(self, keys, *, nulls="error"):
        """Add the numbers of many keys; on an error those before it are in."""
        for key in one_by_one(keys, nulls):
            self.take(key_bytes(key))

    @cython.critical_section
    cdef int take(self, bytes key) except -1:
        cdef const uint8_t *data = <const uint8_t *>PyBytes_AS_STRING(key)
        cdef const uint8_t *first
        cdef Py_ssize_t size = PyBytes_GET_SIZE(key), shared = 0
        self._kept.reserve(1)
        if self._kept.count == 0:
            self._first, self._prefix, self._shared = key, size, [(0, size)]
        first = <const uint8_t *>PyBytes_AS_STRING(self._first)
        while shared < min(self._prefix, size) and data[shared] == first[shared]:
            shared += 1
        if shared < self._prefix:
            self._shared.append((self._kept.count, shared))
            self._prefix = shared
        self._kept.numbers[self._kept.count] = number_at(
            data, <size_t>size, <size_t>shared, MAX_WIDTH
        )
        self._kept.count += 1
        self._longest = max(self._longest, size)
        return 0

    def numbering(self):
        """What the keys have in common, and the fewest bytes that tell all that can be told."""
        return key_numbers.Numbering(
            self._first[:self._prefix], min(MAX_WIDTH, self._longest - self._prefix)
        )

    cdef Digests numbers(self):
        """A copy of the number of each key under that numbering."""
        cdef Digests found = self._kept.copied()
        cdef const uint8_t *first = <const uint8_t *>PyBytes_AS_STRING(self._first)
        cdef Py_ssize_t i, start, shared, between, stop = found.count
        cdef int spare = <int>(8 * (MAX_WIDTH - min(MAX_WIDTH, self._longest - self._prefix)))
        cdef uint64_t before, number
        for start, shared in reversed(self._shared):
            between = min(<Py_ssize_t>MAX_WIDTH, shared - self._prefix)
            before = number_at(
                first, <size_t>(self._prefix + between), <size_t>self._prefix, MAX_WIDTH
            )
            for i in range(start, stop):
                number = before
                if between < MAX_WIDTH:
                    number |= found.numbers[i] >> 8 * between
                found.numbers[i] = number >> spare if spare < 64 else 0
            stop = start
        return found

    def __reduce__(self):
        raise TypeError(UNCOPIED)

    def __len__(self):
        return self._kept.count

    def __repr__(self):
        return f"<KeyNumbers: {self._kept.count} keys>"
