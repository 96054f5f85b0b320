"""The bumped ribbon filter, built and probed.

The hashes that a probe starts from are those of the first layer, one step behind salted digests.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from filters import bumped_ribbon
from filters.columns import one_by_one
from filters.hashing import checked64
from filters.kernels.native cimport simd
from filters.kernels.native.banding cimport (
    BLOCK_SLOTS, BUCKET_STARTS, CODES_PER_BYTE, Band, coefficients_of, result_of, stepped,
    threshold_of
)
from filters.kernels.native.base cimport SaltedFilter, ask
from filters.kernels.native.columns cimport lsm_agree, lsm_slots
from filters.kernels.native.digests cimport Digests
from filters.kernels.native.hashing cimport LSM_DIGEST_XXH3_64, lsm_mix, lsm_xxh3_64
from filters.kernels.native.payload cimport Payload
from filters.kernels.native.probing cimport lsm_probing
from filters.kernels.native.wide cimport (
    lsm_load64, lsm_prefetch, lsm_reduce, lsm_store64
)


cdef enum:
    WORD_BYTES = 8
    LINE_BYTES = 64


cdef inline bint is_bumped(const Ribbon *ribbon, const Layer *layer, uint64_t start) noexcept nogil:
    """Whether keys that start here are in a later layer."""
    cdef uint64_t bucket = layer.first_bucket + start // BUCKET_STARTS
    cdef int code = ribbon.codes[bucket // CODES_PER_BYTE] >> 2 * (bucket % CODES_PER_BYTE) & 3
    return start % BUCKET_STARTS < threshold_of(code)


cdef inline const uint8_t *words_of(const Ribbon *ribbon, uint64_t block) noexcept nogil:
    """The columns of a block; those of the next one follow."""
    cdef uint64_t before = block * ribbon.columns
    before += max(block, ribbon.narrow_blocks) - ribbon.narrow_blocks
    return ribbon.words + WORD_BYTES * before


cdef inline int agrees(
    const Ribbon *ribbon, const Layer *layer, uint64_t start, uint64_t value
) noexcept nogil:
    """Whether in each column the slots that the hash asks for xor to what it expects."""
    cdef uint64_t block = layer.first_block + start // BLOCK_SLOTS
    cdef uint64_t columns = ribbon.columns + (block >= ribbon.narrow_blocks)
    cdef uint64_t asked = coefficients_of(value)
    cdef int offset = <int>(start % BLOCK_SLOTS)
    cdef lsm_slots slots
    slots.here = words_of(ribbon, block)
    slots.behind = slots.here + WORD_BYTES * columns
    slots.low = asked << offset
    slots.high = asked >> 1 >> (BLOCK_SLOTS - 1 - offset)  # in two shifts, since one may be by 64
    return ribbon.agree(&slots, <uint32_t>columns, result_of(value))


cdef int is_left_over(const Ribbon *ribbon, uint64_t value) noexcept nogil:
    """Whether a hash is in the list."""
    cdef uint64_t low = 0, high = ribbon.num_left_over, middle
    while low < high:
        middle = (low + high) // 2
        if lsm_load64(ribbon.left_over + WORD_BYTES * middle) < value:
            low = middle + 1
        else:
            high = middle
    return (
        low < ribbon.num_left_over
        and lsm_load64(ribbon.left_over + WORD_BYTES * low) == value
    )


cdef inline int has(const Ribbon *ribbon, uint64_t value) noexcept nogil:
    cdef const Layer *layer = ribbon.layers
    cdef const Layer *end = layer + ribbon.num_layers
    cdef uint64_t start
    while layer < end:
        start = lsm_reduce(value, layer.starts)
        if not is_bumped(ribbon, layer, start):
            return agrees(ribbon, layer, start, value)
        value = stepped(value)
        layer += 1
    return is_left_over(ribbon, value)


cdef int probe(const void *self, const char *key, size_t length) noexcept nogil:
    cdef const Ribbon *ribbon = <const Ribbon *>self
    cdef uint64_t digest = lsm_xxh3_64(<const uint8_t *>key, length, ribbon.seed)
    return has(ribbon, stepped(lsm_mix(digest, ribbon.salt)))


cdef int probe_digest(const void *self, uint64_t digest) noexcept nogil:
    cdef const Ribbon *ribbon = <const Ribbon *>self
    return has(ribbon, stepped(lsm_mix(digest, ribbon.salt)))


cdef inline void prefetch(const Ribbon *ribbon, uint64_t value) noexcept nogil:
    """Prefetch the first columns of both blocks in the first layer, which nearly all keys are in.

    An absent key hardly ever reads more than eight columns; a present one reads on from there.
    """
    cdef uint64_t block = lsm_reduce(value, ribbon.layers[0].starts) // BLOCK_SLOTS
    cdef const uint8_t *here = words_of(ribbon, block)
    cdef const uint8_t *behind = here + WORD_BYTES * ribbon.columns
    lsm_prefetch(here)
    lsm_prefetch(here + LINE_BYTES - 1)
    lsm_prefetch(behind)
    lsm_prefetch(behind + LINE_BYTES - 1)


cdef void test_many(
    const void *self, const uint64_t *hashes, size_t count, size_t ahead, uint8_t *answers
) noexcept nogil:
    cdef const Ribbon *ribbon = <const Ribbon *>self
    cdef size_t i
    for i in range(max(count, ahead)):
        if i < ahead:
            prefetch(ribbon, hashes[count + i])
        if i < count:
            answers[i] = <uint8_t>has(ribbon, hashes[i])


cdef lsm_probing PROBING = lsm_probing(probe, probe_digest, test_many, NULL)


cdef class BumpedRibbonFilter(SaltedFilter):
    """A static filter of nearly the fewest bits; sized by ``fpr`` or ``bits_per_key``."""

    family = bumped_ribbon.FAMILY

    def might_contain(self, key):
        """False: the key was never added. True: it may have been."""
        return ask(self, key)

    @classmethod
    def build(cls, keys, *, bits_per_key=None, fpr=None, seed=None, salt=None, nulls="error"):
        """A filter of exactly these keys."""
        cdef BumpedRibbonFilter self = cls.__new__(cls)
        cdef Digests hashes, left_over
        cdef list bands = []
        sizing = bumped_ribbon.check(bits_per_key=bits_per_key, fpr=fpr)
        hashes = Digests.of(one_by_one(keys, nulls), LSM_DIGEST_XXH3_64, seed)
        self.salt, self.is_salted = checked64("salt", salt), True
        self.hashes_of(hashes.numbers, hashes.count)
        self._num_keys = hashes.sort_distinct()
        left_over = band_all(hashes, sizing, bands)
        layers = [band.layer for band in bands]
        columns = bumped_ribbon.columns_for(sizing, self._num_keys, layers, left_over.count)
        self.payload = payload_of(bands, columns, left_over)
        self.lay_out(layers, columns, hashes.seed)
        self.verify(hashes)
        return self

    @classmethod
    def from_bytes(cls, buffer):
        """The filter in these bytes: a view of an immutable buffer, a copy of a mutable one."""
        cdef BumpedRibbonFilter self = cls.__new__(cls)
        head, layers, columns, payload = bumped_ribbon.decode(buffer)
        self._num_keys = head.num_keys
        self.salt, self.is_salted = head.salt, True
        self.payload = Payload.view(payload)
        self.lay_out(layers, columns, head.seed)
        return self

    def to_bytes(self):
        """The complete filter, as ``docs/family-formats.md`` lays it out."""
        blocks = sum(layer.blocks for layer in self._layers)
        return self.packed(self._columns.narrow, self._columns.words(blocks))

    @property
    def num_columns(self):
        """The mean number of columns of all blocks, which need not be whole."""
        blocks = sum(layer.blocks for layer in self._layers)
        return self._columns.narrow + self._columns.wide_blocks / max(1, blocks)

    @property
    def num_layers(self):
        """How many layers there are: each takes what the one before bumped."""
        return len(self._layers)

    @property
    def num_left_over(self):
        """How many keys are in no layer, so that their hashes are kept."""
        return self._ribbon.num_left_over

    @property
    def fill(self):
        """The share of slots in use; 0 where there are none."""
        slots = BLOCK_SLOTS * sum(layer.blocks for layer in self._layers)
        return (self._num_keys - self._ribbon.num_left_over) / slots if slots else 0.0

    @property
    def expected_fpr(self):
        """The rate that columns and thresholds lead to, whatever the keys are."""
        return bumped_ribbon.expected_fpr(self._layers, self._columns)

    cdef void hashes_of(self, uint64_t *digests, Py_ssize_t count) noexcept nogil:
        """Turn digests into the first layer's hashes, in place."""
        cdef Py_ssize_t i
        for i in range(count):
            digests[i] = stepped(lsm_mix(digests[i], self.salt))

    cdef int lay_out(self, list layers, object columns, uint64_t seed) except -1:
        """Point the struct at the payload's layers, columns and hashes, and probe it from now on."""
        cdef Py_ssize_t codes, fixed, words
        cdef uint64_t blocks = 0, buckets = 0
        cdef int index
        self._layers, self._columns = layers, columns
        for index in range(len(layers)):
            self._ribbon.layers[index] = Layer(layers[index].starts, blocks, buckets)
            blocks += layers[index].blocks
            buckets += len(layers[index].codes)
        fixed = bumped_ribbon.fixed_bytes([layer.blocks for layer in layers])
        words = columns.words(blocks)
        codes = bumped_ribbon.codes_start(len(layers))
        self._ribbon.num_layers = len(layers)
        self._ribbon.codes = self.payload.data + codes
        self._ribbon.words = self.payload.data + fixed
        self._ribbon.left_over = self._ribbon.words + WORD_BYTES * words
        self._ribbon.num_left_over = (self.payload.size - fixed) // WORD_BYTES - words
        self._ribbon.columns = columns.narrow
        self._ribbon.narrow_blocks = blocks - columns.wide_blocks
        self._ribbon.seed, self._ribbon.salt = seed, self.salt
        self._ribbon.agree = lsm_agree[simd.level()]
        return self.opened(&self._ribbon, &PROBING, LSM_DIGEST_XXH3_64, seed)


cdef Digests band_all(Digests hashes, object sizing, list bands):
    """Layer after layer of ascending, distinct hashes; the hashes of those left over."""
    cdef Band band, best
    while tries := bumped_ribbon.blocks_for(hashes.count, len(bands), sizing):
        best = None
        for blocks in tries:
            band = Band.of(hashes, blocks)
            if best is None or words_taken(band, sizing) < words_taken(best, sizing):
                best = band
        bands.append(best)
        hashes = best.bumped
    return hashes


cdef object words_taken(Band band, object sizing):
    return bumped_ribbon.words_taken(band.blocks, band.bumped.count, sizing)


cdef Payload payload_of(list bands, object columns, Digests left_over):
    """What comes before the columns, the columns of all layers, the hashes left over."""
    cdef Py_ssize_t i
    cdef bytes head = bumped_ribbon.head_of([band.layer for band in bands])
    cdef int64_t narrow, blocks = sum(band.layer.blocks for band in bands)
    cdef Py_ssize_t words = columns.words(blocks)
    cdef Payload payload = Payload.zeroed(len(head) + WORD_BYTES * (words + left_over.count))
    cdef uint8_t *end = payload.data + len(head)
    cdef int count = columns.narrow
    cdef Band band
    memcpy(payload.data, <const char *>head, <size_t>len(head))
    narrow = blocks - <int64_t>columns.wide_blocks
    for band in bands:
        end += WORD_BYTES * words_in(band.blocks, narrow, count)
        with nogil:
            band.solve(narrow, count, end)
        narrow -= band.blocks
    for i in range(left_over.count):
        lsm_store64(end + WORD_BYTES * i, left_over.numbers[i])
    return payload


cdef int64_t words_in(int64_t blocks, int64_t narrow, int columns) noexcept:
    """The words of a layer whose first blocks, so many, are narrow."""
    return blocks * columns + blocks - min(blocks, max(<int64_t>0, narrow))
