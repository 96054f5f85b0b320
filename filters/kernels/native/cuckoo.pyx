"""The cuckoo filter, built and probed."""

cimport cython
from libc.stdint cimport uint8_t, uint32_t, uint64_t

from filters import cuckoo
from filters.columns import one_by_one
from filters.errors import CapacityError
from filters.hashing import checked64, next_salt
from filters.kernels.native.base cimport ask, unmade
from filters.kernels.native.digests cimport Digests
from filters.kernels.native.growing cimport GrowingFilter
from filters.kernels.native.hashing cimport LSM_DIGEST_XXH3_64, lsm_mix, lsm_xxh3_64
from filters.kernels.native.probing cimport lsm_probing
from filters.kernels.native.wide cimport lsm_load64, lsm_prefetch, lsm_reduce, lsm_store64


cdef enum:
    SLOTS = 4
    LANES_IN_A_WORD = 16      # up to so many bits, a bucket's four lanes fit one word of 64
    MOST_KICKS = 500          # MAX_KICKS of filters/cuckoo.py: what an undo log has room for
    AHEAD = 64                # keys whose buckets are prefetched before the first is inserted

if MOST_KICKS != cuckoo.MAX_KICKS or SLOTS != cuckoo.SLOTS:
    raise ImportError("filters/cuckoo.py and its compiled kernel differ: compile it again")

cdef size_t KICKS_IN_BUILD = cuckoo.MAX_KICKS_IN_BUILD


cdef struct Spot:
    uint64_t fingerprint
    uint64_t first
    uint64_t second


cdef struct Move:
    uint64_t slot
    uint64_t victim


cdef inline uint64_t other_bucket(
    const Table *table, uint64_t bucket, uint64_t fingerprint
) noexcept nogil:
    """The other bucket of a fingerprint: a reflection, so that applied twice it leads back."""
    cdef uint64_t mirror = lsm_reduce(lsm_mix(fingerprint, table.salt), table.buckets)
    return mirror - bucket + (table.buckets if mirror < bucket else 0)


cdef inline Spot locate(const Table *table, uint64_t mixed) noexcept nogil:
    """Fingerprint (from the low 32 bits, never 0) and buckets (the first from the high ones)."""
    cdef Spot spot
    spot.fingerprint = 1 + (<uint64_t><uint32_t>mixed * table.mask >> 32)
    spot.first = lsm_reduce(mixed, table.buckets)
    spot.second = other_bucket(table, spot.first, spot.fingerprint)
    return spot


cdef inline uint64_t slot_at(const Table *table, uint64_t slot) noexcept nogil:
    cdef uint64_t bit = slot * table.bits
    return lsm_load64(table.slots + (bit >> 3)) >> (bit & 7) & table.mask


cdef inline void store(Table *table, uint64_t slot, uint64_t fingerprint) noexcept nogil:
    cdef uint64_t bit = slot * table.bits
    cdef uint8_t *word = table.slots + (bit >> 3)
    cdef uint64_t others = lsm_load64(word) & ~(table.mask << (bit & 7))
    lsm_store64(word, others | fingerprint << (bit & 7))


cdef inline uint64_t lanes_that_hold(
    const Table *table, uint64_t bucket, uint64_t fingerprint
) noexcept nogil:
    """The top bits of lanes with this fingerprint; only the lowest of these bits can be relied on.

    A lane is zero where subtracting one borrows into its top bit; the borrow may go on into lanes
    above it, which does not matter to whether there is one and which is the first.
    """
    cdef uint64_t bit = bucket * SLOTS * table.bits
    cdef uint64_t lanes = lsm_load64(table.slots + (bit >> 3)) >> (bit & 7)
    cdef uint64_t differing = lanes ^ fingerprint * table.ones
    return (differing - table.ones) & ~differing & table.tops


cdef inline int lane_of(const Table *table, uint64_t bucket, uint64_t fingerprint) noexcept nogil:
    """The first of the bucket's lanes with this fingerprint (0: an empty one), or SLOTS."""
    cdef uint64_t found
    cdef int lane
    if table.bits <= LANES_IN_A_WORD:
        found = lanes_that_hold(table, bucket, fingerprint)
        if not found:
            return SLOTS
        found &= ~found + 1
        return (
            (found >> table.bits != 0) + (found >> 2 * table.bits != 0)
            + (found >> 3 * table.bits != 0)
        )
    for lane in range(SLOTS):
        if slot_at(table, bucket * SLOTS + lane) == fingerprint:
            return lane
    return SLOTS


cdef inline int has(const Table *table, uint64_t mixed) noexcept nogil:
    cdef Spot spot = locate(table, mixed)
    if table.bits <= LANES_IN_A_WORD:
        # Both at once: which of the buckets it is, nobody could foretell.
        return (
            lanes_that_hold(table, spot.first, spot.fingerprint)
            | lanes_that_hold(table, spot.second, spot.fingerprint)
        ) != 0
    return (
        lane_of(table, spot.first, spot.fingerprint) < SLOTS
        or lane_of(table, spot.second, spot.fingerprint) < SLOTS
    )


cdef int probe(const void *self, const char *key, size_t length) noexcept nogil:
    cdef const Table *table = <const Table *>self
    return has(table, lsm_mix(lsm_xxh3_64(<const uint8_t *>key, length, table.seed), table.salt))


cdef int probe_digest(const void *self, uint64_t digest) noexcept nogil:
    cdef const Table *table = <const Table *>self
    return has(table, lsm_mix(digest, table.salt))


cdef inline void prefetch_bucket(const Table *table, uint64_t bucket) noexcept nogil:
    lsm_prefetch(table.slots + (bucket * SLOTS * table.bits >> 3))


cdef inline void prefetch(const Table *table, uint64_t mixed) noexcept nogil:
    cdef Spot spot = locate(table, mixed)
    prefetch_bucket(table, spot.first)
    prefetch_bucket(table, spot.second)


cdef void test_many(
    const void *self, const uint64_t *hashes, size_t count, size_t ahead, uint8_t *answers
) noexcept nogil:
    cdef const Table *table = <const Table *>self
    cdef size_t i
    for i in range(max(count, ahead)):
        if i < ahead:
            prefetch(table, hashes[count + i])
        if i < count:
            answers[i] = <uint8_t>has(table, hashes[i])


cdef inline bint place(Table *table, uint64_t bucket, uint64_t fingerprint) noexcept nogil:
    """Store in the bucket's first empty slot; False where it has none."""
    cdef int lane = lane_of(table, bucket, 0)
    if lane == SLOTS:
        return False
    store(table, bucket * SLOTS + lane, fingerprint)
    return True


cdef inline bint insert(Table *table, uint64_t mixed, size_t kicks, Move *log) noexcept nogil:
    """Store a copy; False where so many evictions free no slot for it, and no change with a log."""
    cdef Spot spot = locate(table, mixed)
    if place(table, spot.first, spot.fingerprint) or place(table, spot.second, spot.fingerprint):
        return True
    return evict(table, mixed, spot, kicks, log)


cdef bint evict(
    Table *table, uint64_t state, Spot spot, size_t kicks, Move *log
) noexcept nogil:
    """Walk at random: take a slot, move its fingerprint to its other bucket, and so on."""
    cdef uint64_t bucket = spot.second if state & 1 else spot.first
    cdef uint64_t fingerprint = spot.fingerprint, slot, victim
    cdef size_t kick
    if is_full_of(table, spot.first, fingerprint) and is_full_of(table, spot.second, fingerprint):
        return False
    for kick in range(kicks):
        # Knuth's generator (MMIX), as in the Python kernel.
        state = state * <uint64_t>6364136223846793005 + <uint64_t>1442695040888963407
        slot = bucket * SLOTS + (state >> 62)
        victim = slot_at(table, slot)
        if log != NULL:
            log[kick] = Move(slot, victim)
        store(table, slot, fingerprint)
        fingerprint = victim
        bucket = other_bucket(table, bucket, fingerprint)
        if place(table, bucket, fingerprint):
            return True
    if log != NULL:
        for kick in range(kicks):
            store(table, log[kicks - 1 - kick].slot, log[kicks - 1 - kick].victim)
    return False


cdef bint is_full_of(const Table *table, uint64_t bucket, uint64_t fingerprint) noexcept nogil:
    cdef int lane
    for lane in range(SLOTS):
        if slot_at(table, bucket * SLOTS + lane) != fingerprint:
            return False
    return True


cdef lsm_probing PROBING = lsm_probing(probe, probe_digest, test_many, NULL)


cdef class CuckooFilter(GrowingFilter):
    """Fingerprints in a cuckoo table; sized by ``fingerprint_bits``, ``bits_per_key`` or ``fpr``.

    Every ``add`` keeps a copy of its own, of one key too, and each is to be removed again; one
    key's two buckets hold at most 8. Remove only what was added: removing a false positive takes
    away the fingerprint of another key, which then may be denied.
    """

    family = cuckoo.FAMILY
    layout = cuckoo

    def might_contain(self, key):
        """False: the key was never added. True: it may have been."""
        return ask(self, key)

    @classmethod
    def build(
        cls, keys, *, fingerprint_bits=None, bits_per_key=None, fpr=None, seed=None, salt=None,
        nulls="error"
    ):
        """A filter of exactly these keys, one copy of each.

        Where the keys do not fit under a salt, which is rare, the table grows by a percent and is
        filled anew under another one.
        """
        cdef CuckooFilter self = cls.__new__(cls)
        cdef Digests digests, hashes
        plan = cls._planner(fingerprint_bits=fingerprint_bits, bits_per_key=bits_per_key, fpr=fpr)
        digests = Digests.of(one_by_one(keys, nulls), LSM_DIGEST_XXH3_64, seed)
        salt = checked64("salt", salt)
        geometry = None
        while True:
            self.salt, self.is_salted = salt, True
            hashes = digests.copied()
            self.hashes_of(hashes.numbers, hashes.count)
            hashes.sort_distinct()
            if geometry is None:
                geometry = plan(hashes.count)
            self.lay_out(geometry, digests.seed, salt, None)
            if self._fill(hashes):
                break
            geometry, salt = geometry.grown(), next_salt(salt)
        self._num_keys = hashes.count
        self.verify(hashes)
        return self

    @classmethod
    def with_capacity(
        cls, num_keys=None, *, like=None, fingerprint_bits=None, bits_per_key=None, fpr=None,
        seed=None, salt=None,
    ):
        """An empty filter sized for so many keys, or with another one's geometry, seed and salt."""
        return cls._with_capacity(
            num_keys, like, seed, salt, fingerprint_bits=fingerprint_bits,
            bits_per_key=bits_per_key, fpr=fpr,
        )

    @classmethod
    def _planner(cls, **given):
        sizing = cuckoo.check(**given)
        return lambda num_keys: cuckoo.plan(num_keys, sizing)

    def to_bytes(self):
        """The complete filter, as ``docs/family-formats.md`` lays it out."""
        return self.packed(self._table.bits, self._table.buckets)

    @cython.critical_section
    def add(self, key):
        """Add one copy of a key; CapacityError, and no change, where it finds no slot."""
        cdef uint64_t mixed = self.hash_of(key)
        self.own()
        self._add_hash(mixed)

    @cython.critical_section
    def remove(self, key):
        """Remove one copy; False, and no change, for a key that is surely not in."""
        if self._geometry is None:
            raise unmade(self)
        cdef Spot spot = locate(&self._table, self.hash_of(key))
        cdef uint64_t bucket = spot.first
        cdef int lane = lane_of(&self._table, bucket, spot.fingerprint)
        if lane == SLOTS:
            bucket = spot.second
            lane = lane_of(&self._table, bucket, spot.fingerprint)
        if lane == SLOTS:
            return False
        self.own()
        store(&self._table, bucket * SLOTS + lane, 0)
        self._num_keys -= self._num_keys > 0
        return True

    @property
    def num_buckets(self):
        """How many buckets of four slots there are."""
        return self._table.buckets

    @property
    def fingerprint_bits(self):
        """How many bits a slot has."""
        return self._table.bits

    @property
    def fill(self):
        """The share of slots in use."""
        return self._num_keys / self._geometry.slots

    @property
    def expected_fpr(self):
        """The chance that an absent key's fingerprint is among those in its two buckets."""
        return cuckoo.predicted_fpr(self._num_keys, self._geometry)

    cdef int point(self) except -1:
        """Point the table at the payload of now, and answer through it."""
        cdef uint32_t bits = self._geometry.fingerprint_bits
        cdef uint64_t ones = 0
        if bits <= LANES_IN_A_WORD:
            ones = 1 | <uint64_t>1 << bits | <uint64_t>1 << 2 * bits | <uint64_t>1 << 3 * bits
        self._table = Table(
            self.payload.data, self._geometry.buckets, self.door.digest_seed, self.salt, bits,
            (<uint64_t>1 << bits) - 1, ones, ones << (bits - 1),
        )
        return self.opened(&self._table, &PROBING, LSM_DIGEST_XXH3_64, self.door.digest_seed)

    cdef int add_digests(self, uint64_t *digests, Py_ssize_t count) except -1:
        cdef Py_ssize_t i
        self.hashes_of(digests, count)
        for i in range(count):
            self._add_hash(digests[i])
        return 0

    cdef bint _fill(self, Digests hashes) noexcept nogil:
        """Insert all; False where one of them finds no slot."""
        cdef Py_ssize_t i
        for i in range(hashes.count):
            if i + AHEAD < hashes.count:
                prefetch(&self._table, hashes.numbers[i + AHEAD])
            if not insert(&self._table, hashes.numbers[i], KICKS_IN_BUILD, NULL):
                return False
        return True

    cdef int _add_hash(self, uint64_t mixed) except -1:
        """Add a copy to a payload that is this filter's own."""
        cdef Move log[MOST_KICKS]
        cdef bint is_full
        # Bytes may claim more keys than their slots hold, and nobody could read what had grown on.
        is_full = self._num_keys >= SLOTS * self._table.buckets
        if is_full or not insert(&self._table, mixed, MOST_KICKS, log):
            raise CapacityError(
                f"cuckoo filter with {self._num_keys} of {self._geometry.slots} slots in use finds "
                f"no slot for this key within {MOST_KICKS} evictions, or holds it 8 times: build a "
                "larger one, and add a key once"
            )
        self._num_keys += 1
        return 0


def alternate(bucket, fingerprint, buckets, salt):
    """The other bucket of a fingerprint: a reflection, so that applied twice it leads back."""
    cdef Table table
    table.buckets = buckets
    table.salt = salt
    return other_bucket(&table, bucket, fingerprint)
