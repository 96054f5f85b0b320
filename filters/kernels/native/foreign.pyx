"""What the filters of other engines share: bytes as those write them, unseeded hashes, a rate."""

from libc.stdint cimport uint64_t

from filters.kernels.native.base cimport DigestFilter
from filters.kernels.native.digests cimport Digests, kind_named
from filters.kernels.native.hashing cimport lsm_digest


cdef class ForeignFilter(DigestFilter):
    """A filter in the bytes of another engine, which say neither its family nor its keys.

    There is nothing secret in it: who chooses the keys can choose ones that pass.
    """

    @classmethod
    def digests(cls):
        """An empty collection of digests for ``build`` and ``count_missing``."""
        return Digests.empty(kind_named(cls._kind), 0)

    @property
    def num_keys(self):
        """How many keys ``build`` counted; None after ``from_bytes``."""
        return self._num_keys

    @property
    def expected_fpr(self):
        """The rate of this very filter; measured once (within 5 %) where its fill does not tell."""
        if self._measured_fpr is None:
            self._measured_fpr = self._measure_fpr()
        return self._measured_fpr

    cdef object filled(self, Digests hashes):
        """The finished filter of these keys, whose memory is laid out."""
        self._num_keys = hashes.count
        self.insert_all(hashes)
        self.verify(hashes)
        return self

    cdef int insert_all(self, Digests hashes) except -1:
        """Set the bits of every key."""
        raise NotImplementedError


cdef Digests distinct_neighbours(object keys, lsm_digest kind):
    """The digests of the keys, without those that equal the one before them."""
    cdef Digests hashes = Digests.of(keys, kind, None)
    with nogil:
        if hashes.words == 1:
            hashes.count = drop_repeats(hashes.numbers, hashes.count, 1)
        else:
            hashes.count = drop_repeats(hashes.numbers, hashes.count, 2)
    return hashes


cdef inline Py_ssize_t drop_repeats(
    uint64_t *numbers, Py_ssize_t count, Py_ssize_t words
) noexcept nogil:
    """Close the gaps that are left by what equals the one before it; how many remain."""
    cdef const uint64_t *each = numbers
    cdef uint64_t *last = numbers
    cdef Py_ssize_t i
    if count == 0:
        return 0
    for i in range(1, count):
        each += words
        if each[0] != last[0] or (words == 2 and each[1] != last[1]):
            last += words
            last[0] = each[0]
            if words == 2:
                last[1] = each[1]
    return (last - numbers) // words + 1
