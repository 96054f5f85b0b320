"""The SuRF filter, built and asked."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_GET_SIZE
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from filters import header, surf
from filters.columns import one_by_one
from filters.hashing import checked64
from filters.kernels.native.base cimport Filter, ask
from filters.kernels.native.payload cimport Payload


cdef extern from "allocation.h" nogil:
    uint8_t *lsm_reserve(size_t size)
    uint8_t *lsm_allocate(size_t size)
    void lsm_release(uint8_t *memory)


cdef inline lsm_key key_of(bytes key) noexcept:
    """The bytes of a key, which live as long as it."""
    return lsm_key(<const uint8_t *>PyBytes_AS_STRING(key), <size_t>PyBytes_GET_SIZE(key))


cdef int probe(const void *self, const char *key, size_t length) noexcept nogil:
    return lsm_surf_has(<const lsm_surf *>self, lsm_key(<const uint8_t *>key, length))


cdef class SortedKeys:
    """Ascending keys, each once, and how many bytes each shares with the one before."""

    cdef list _keys           # which owns the bytes
    cdef lsm_key *keys
    cdef size_t *shared
    cdef size_t count
    cdef lsm_surf_level *levels
    cdef size_t depths        # how many levels there are, with one that only nodes may be on
    cdef uint64_t edges
    cdef uint64_t nodes

    @staticmethod
    cdef SortedKeys of(list keys):
        """The keys compared, and the levels of their trie counted."""
        cdef SortedKeys self = SortedKeys.__new__(SortedKeys)
        cdef size_t index
        self._keys = keys
        self.count = <size_t>len(keys)
        self.keys = <lsm_key *>reserved(self.count * sizeof(lsm_key))
        self.shared = <size_t *>reserved((self.count + 1) * sizeof(size_t))
        for index in range(self.count):
            self.keys[index] = key_of(keys[index])
        with nogil:
            self.depths = lsm_surf_compare(self.keys, self.count, self.shared) + 2
        self.levels = <lsm_surf_level *>reserved(self.depths * sizeof(lsm_surf_level))
        memset(self.levels, 0, self.depths * sizeof(lsm_surf_level))
        with nogil:
            self.edges = lsm_surf_count(self.keys, self.count, self.shared, self.levels)
        for index in range(self.depths):
            self.nodes += self.levels[index].nodes
        return self

    def __dealloc__(self):
        lsm_release(<uint8_t *>self.keys)
        lsm_release(<uint8_t *>self.shared)
        lsm_release(<uint8_t *>self.levels)


cdef uint8_t *reserved(size_t size) except NULL:
    cdef uint8_t *memory = lsm_reserve(size)
    if memory == NULL:
        raise MemoryError(f"there is no memory for {size} bytes of keys and levels")
    return memory


cdef class SurfFilter:
    """A trie of the keys' beginnings, which answers for ranges of keys as well.

    Sized by ``suffix_bits``, ``bits_per_key`` or ``fpr``; ``suffix`` says what is kept of a key
    behind its beginning: ``hash``, ``real`` bits of its own, or ``mixed``.
    """

    family = surf.FAMILY

    def __cinit__(self):
        self._geometry = surf.Geometry(0, 0, surf.Suffix(0, 0))

    def __dealloc__(self):
        lsm_release(self._support)

    @classmethod
    def build(
        cls, keys, *, suffix_bits=None, bits_per_key=None, fpr=None, suffix=None, seed=None,
        salt=None, nulls="error"
    ):
        """A filter of exactly these keys, in any order; least work where they are in theirs."""
        cdef SurfFilter self = cls.__new__(cls)
        cdef SortedKeys sorted_keys
        cdef bytes head
        cdef Py_ssize_t missed = 0
        sizing = surf.check(
            suffix_bits=suffix_bits, bits_per_key=bits_per_key, fpr=fpr, suffix=suffix
        )
        seed, salt = checked64("seed", seed), checked64("salt", salt)
        distinct = surf.ordered(one_by_one(keys, nulls))
        sorted_keys = SortedKeys.of(distinct)
        surf.check_edges(sorted_keys.edges)
        nodes, edges = sorted_keys.nodes, sorted_keys.edges
        kept = surf.suffix_for(sizing, len(distinct), nodes, edges)
        geometry = surf.Geometry(nodes, edges, kept)
        self.payload = Payload.zeroed(surf.payload_bytes(geometry))
        head = geometry.head
        memcpy(self.payload.data, PyBytes_AS_STRING(head), <size_t>len(head))
        self.lay_out(geometry, seed, salt)
        with nogil:
            lsm_surf_fill(
                &self._filter, sorted_keys.keys, sorted_keys.count, sorted_keys.shared,
                sorted_keys.levels, sorted_keys.depths,
            )
        self.measure()
        for key in distinct:
            missed += not lsm_surf_has(&self._filter, key_of(key))
        self.check_missed(
            len(distinct), missed or <Py_ssize_t>(self._filter.num_keys != sorted_keys.count)
        )
        return self

    @classmethod
    def from_bytes(cls, buffer):
        """The filter in these bytes: a view of an immutable buffer, a copy of a mutable one."""
        cdef SurfFilter self = cls.__new__(cls)
        head, geometry, payload = surf.decode(buffer)
        self.payload = Payload.view(payload)
        self.lay_out(geometry, head.seed, head.salt)
        self.measure()
        if self._filter.num_keys != head.num_keys:
            raise surf.fault(surf.COUNT, self._filter.num_keys)
        return self

    def to_bytes(self):
        """The complete filter, as ``docs/family-formats.md`` lays it out."""
        head = header.Header(
            self.family, self._filter.hash_bits, self._geometry.edges, self._filter.num_keys,
            seed=self._filter.seed, salt=self._filter.salt,
        )
        return header.pack(head, self.payload if self._is_made else self._geometry.head)

    def might_contain(self, key):
        """False: the key was never added. True: it may have been."""
        return ask(self, key)

    def may_contain_range(self, low, high):
        """False: no key was added from ``low`` on and below ``high``. True: one may have been.

        None is no bound.
        """
        cdef bytes first = surf.bound(low) or b""
        cdef bytes behind = surf.bound(high)
        cdef lsm_key end
        if not self._is_made:
            return True
        if behind is None:
            return <bint>lsm_surf_has_between(&self._filter, key_of(first), NULL)
        end = key_of(behind)
        return <bint>lsm_surf_has_between(&self._filter, key_of(first), &end)

    @property
    def num_keys(self):
        """How many keys are in."""
        return self._filter.num_keys

    @property
    def hash_bits(self):
        """How many bits of its hash are kept of a key."""
        return self._filter.hash_bits

    @property
    def real_bits(self):
        """How many bits of its own are kept of a key, behind those that the trie has."""
        return self._filter.real_bits

    @property
    def num_nodes(self):
        """How many nodes the trie has."""
        return self._geometry.nodes

    @property
    def size_in_bytes(self):
        """The length of ``to_bytes()``."""
        return header.OVERHEAD + surf.payload_bytes(self._geometry)

    @property
    def fill(self):
        """The share of bits in use: all of them, where there is a key."""
        return float(self._filter.num_keys > 0)

    @property
    def expected_fpr(self):
        """The most that can pass of absent keys, one in 2^hash_bits; of random ones less do."""
        return surf.expected_fpr(self._filter.num_keys, self._geometry.suffix)

    cdef int lay_out(self, object geometry, uint64_t seed, uint64_t salt) except -1:
        """Point the struct at the rows of the payload."""
        cdef lsm_louds *trie = &self._filter.trie
        cdef uint8_t *data = self.payload.data
        self._geometry = geometry
        trie.nodes, trie.edges = geometry.nodes, geometry.edges
        trie.has_child = data + <Py_ssize_t>geometry.has_child
        trie.firsts = data + <Py_ssize_t>geometry.louds
        trie.ends = data + <Py_ssize_t>geometry.ends
        trie.labels = data + <Py_ssize_t>geometry.labels
        self._filter.suffixes = data + <Py_ssize_t>geometry.suffixes
        self._filter.hash_bits = geometry.suffix.hash_bits
        self._filter.real_bits = geometry.suffix.real_bits
        self._filter.seed, self._filter.salt = seed, salt
        return 0

    cdef int measure(self) except -1:
        """Check the trie, count its keys, and make what finds edges and nodes in it."""
        cdef lsm_louds *trie = &self._filter.trie
        cdef uint64_t blocks = lsm_louds_blocks(trie.edges), place = 0
        cdef size_t ranks = <size_t>blocks * sizeof(lsm_louds_rank)
        cdef int fault
        # No more than an eighth of what the labels take, which are there.
        self._support = lsm_allocate(
            ranks + <size_t>lsm_louds_samples(trie.nodes) * sizeof(uint32_t)
        )
        if self._support == NULL:
            raise MemoryError(f"there is no memory to find {trie.edges} edges in")
        trie.ranks = <lsm_louds_rank *>self._support
        trie.samples = <uint32_t *>(self._support + ranks)
        with nogil:
            fault = lsm_louds_measure(trie, &place)
        if fault:
            raise surf.fault(fault, place)
        self._filter.num_keys = <uint64_t>self._geometry.leaves + lsm_louds_ends(trie)
        self.door.self = &self._filter
        self.door.probe = probe
        self._is_made = True
        return 0
