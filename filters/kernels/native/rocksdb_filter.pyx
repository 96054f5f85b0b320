"""What RocksDB's filters share: any bytes are one, and are asked as their form demands."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from filters import occupancy, ribbon, rocksdb, rocksdb_forms
from filters.kernels.native cimport simd
from filters.kernels.native.equations cimport lsm_ribbon, lsm_ribbon_probing
from filters.digest_kinds import XXPH3
from filters.kernels.native.base cimport GROUP, Filter
from filters.kernels.native.digests cimport Digests
from filters.kernels.native.foreign cimport ForeignFilter
from filters.kernels.native.hashing cimport (
    LSM_BLOOM_SEED, LSM_DIGEST_ROCKSDB, LSM_DIGEST_XXPH3_64, lsm_rocksdb_hash
)
from filters.kernels.native.line cimport count_lines, lsm_fast_local_probing, lsm_lines
from filters.kernels.native.payload cimport Payload, count_bits
from filters.kernels.native.probing cimport lsm_probing
from filters.kernels.native.sampling cimport hit_rate
from filters.kernels.native.wide cimport lsm_prefetch, lsm_rotate_left32


cdef inline const uint8_t *line_of(const Legacy *legacy, uint32_t hashed) noexcept nogil:
    return legacy.data + hashed % legacy.lines * (legacy.line_bits >> 3)


cdef inline int has(const Legacy *legacy, uint32_t hashed) noexcept nogil:
    cdef const uint8_t *line = line_of(legacy, hashed)
    cdef uint32_t step = lsm_rotate_left32(hashed, 15)
    cdef uint64_t bit
    for _ in range(legacy.num_probes):
        bit = hashed & (legacy.line_bits - 1)
        if not line[bit >> 3] >> (bit & 7) & 1:
            return 0
        hashed += step
    return 1


cdef int probe(const void *self, const char *key, size_t length) noexcept nogil:
    return has(
        <const Legacy *>self, lsm_rocksdb_hash(<const uint8_t *>key, length, LSM_BLOOM_SEED)
    )


cdef int probe_digest(const void *self, uint64_t digest) noexcept nogil:
    return has(<const Legacy *>self, <uint32_t>digest)


cdef void test_many(
    const void *self, const uint64_t *hashes, size_t count, size_t ahead, uint8_t *answers
) noexcept nogil:
    cdef const Legacy *legacy = <const Legacy *>self
    cdef size_t i
    for i in range(max(count, ahead)):
        if i < ahead:
            lsm_prefetch(line_of(legacy, <uint32_t>hashes[count + i]))
        if i < count:
            answers[i] = <uint8_t>has(legacy, <uint32_t>hashes[i])


cdef lsm_probing LEGACY = lsm_probing(probe, probe_digest, test_many, NULL)


cdef class RocksDBFilter(ForeignFilter):
    """A filter of RocksDB's own bytes, Bloom or Ribbon; :attr:`form` says what they are.

    There is nothing secret in it: who chooses the keys can choose ones that pass.
    """

    _kind = XXPH3

    @classmethod
    def from_bytes(cls, buffer):
        """The filter in these bytes, whatever they are: a view, or a copy of a mutable buffer."""
        cdef RocksDBFilter self = cls.__new__(cls)
        self._form, data = rocksdb_forms.decode(buffer)
        self.payload = Payload.view(data)
        self.point()
        return self

    def to_bytes(self):
        """The filter as RocksDB stores it; no bytes at all where there are no keys."""
        return bytes(self.payload)

    @property
    def form(self):
        """The kind of filter: empty, fast-local, legacy, ribbon, or always-maybe and why."""
        return str(self._form)

    @property
    def num_bits(self):
        """The bits of all lines or segments; 0 for what has neither."""
        return self._form.num_bits

    @property
    def num_slots(self):
        """The slots of a Ribbon filter; 0 for another form."""
        return self._form.num_slots

    @property
    def num_probes(self):
        """How many bits a key sets; 0 for what is no filter of lines."""
        return self._form.num_probes

    @property
    def fill(self):
        """The share of bits that are set; an always-maybe one counts as full."""
        if not self.num_bits:
            return float(self._form.kind == rocksdb_forms.ALWAYS_MAYBE)
        return count_bits(self.payload, self.payload.size - rocksdb_forms.TRAILER_BYTES) / self.num_bits

    def __repr__(self):
        return f"{Filter.__repr__(self).removesuffix('>')}, {self.form}>"

    def _measure_fpr(self):
        """The mean of (fill of a line)^num_probes, for a Ribbon filter of one in 2^columns.

        Of a legacy filter it is measured.
        """
        form = self._form
        if not self.num_bits:
            return float(form.kind == rocksdb_forms.ALWAYS_MAYBE)
        if form.kind == rocksdb_forms.RIBBON:
            return ribbon.fpr(form.blocks)
        rate = hit_rate(&LEGACY, &self._legacy) if form.kind == rocksdb_forms.LEGACY else 0.0
        if rate:
            return rate
        counts = count_lines(self.payload.data, form.lines, form.line_bits // 8)
        return occupancy.mean_line_fpr(counts, form.line_bits, form.num_probes)

    cdef int lay_out(self, Py_ssize_t size, bytes trailer) except -1:
        """Zeroed bytes with a trailer behind; no bytes at all where there is nothing before it."""
        if size == 0:
            trailer = b""
        self.payload = Payload.zeroed(size + len(trailer))
        memcpy(self.payload.data + size, <const char *>trailer, <size_t>len(trailer))
        self._form, _ = rocksdb_forms.decode(self.payload)
        return self.point()

    cdef int lay_out_lines(self, object geometry) except -1:
        """Zeroed lines of a Bloom filter."""
        return self.lay_out(rocksdb.payload_bytes(geometry), rocksdb.trailer(geometry))

    cdef int point(self) except -1:
        """Point the lines at the payload, and answer as its form demands."""
        form = self._form
        if form.kind == rocksdb_forms.FAST_LOCAL:
            self._lines = lsm_lines(self.payload.data, form.lines, 0, 0, form.num_probes)
            return self.opened(
                &self._lines, &lsm_fast_local_probing[simd.level()], LSM_DIGEST_XXPH3_64, 0
            )
        if form.kind == rocksdb_forms.LEGACY:
            self._legacy = Legacy(
                self.payload.data, form.lines, form.line_bits, form.num_probes
            )
            return self.opened(&self._legacy, &LEGACY, LSM_DIGEST_ROCKSDB, 0)
        if form.kind == rocksdb_forms.RIBBON:
            blocks = form.blocks
            self._ribbon = lsm_ribbon(
                self.payload.data, blocks.starts, ribbon.seed_mask(form.seed), blocks.columns,
                blocks.narrow_blocks,
            )
            return self.opened(
                &self._ribbon, &lsm_ribbon_probing[simd.level()], LSM_DIGEST_XXPH3_64, 0
            )
        # Of the two kinds that are left, one has too few bytes for any key.
        return self.always(form.kind == rocksdb_forms.ALWAYS_MAYBE, LSM_DIGEST_XXPH3_64, 0)

    cdef int insert_all(self, Digests hashes) except -1:
        """Set every hash's bits in the lines."""
        cdef uint64_t unchanged[GROUP]
        cdef Py_ssize_t done = 0, some
        with nogil:
            while done < hashes.count:
                some = min(GROUP, hashes.count - done)
                self.probing.add_many(
                    &self._lines, hashes.numbers + done, <size_t>some,
                    <size_t>min(GROUP, hashes.count - done - some), unchanged,
                )
                done += some
        return 0
