"""What RocksDB's filters share: any bytes are one, and are asked as their form demands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from filters import occupancy, ribbon, rocksdb, rocksdb_forms
from filters.compat_hashing import MASK32, rocksdb_hash, xxph3_64
from filters.digest_kinds import ROCKSDB, XXPH3
from filters.hashing import key_bytes
from filters.kernels.python.equations import equation
from filters.kernels.python.foreign import ForeignFilter
from filters.sampling import hit_rate

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from filters.hashing import Key


class RocksDBFilter(ForeignFilter):
    """A filter of RocksDB's own bytes, Bloom or Ribbon; :attr:`form` says what they are.

    There is nothing secret in it: who chooses the keys can choose ones that pass.
    """

    __slots__ = ("_form",)
    _kind = XXPH3
    _data: memoryview

    def __init__(self, form: rocksdb_forms.Form, data: memoryview, num_keys: int | None):
        """For kernels; users call ``build`` or ``from_bytes``."""
        super().__init__(data, num_keys)
        self._form = form

    @classmethod
    def _of(cls, data: bytes, num_keys: int) -> Self:
        return cls(*rocksdb_forms.decode(data), num_keys)

    @classmethod
    def from_bytes(cls, buffer: Buffer) -> Self:
        """The filter in these bytes, whatever they are: a view, or a copy of a mutable buffer."""
        return cls(*rocksdb_forms.decode(buffer), None)

    def to_bytes(self) -> bytes:
        """The filter as RocksDB stores it; no bytes at all where there are no keys."""
        return bytes(self._data)

    def might_contain(self, key: Key) -> bool:
        """False: the key was never added. True: it may have been."""
        data = key if type(key) is bytes else key_bytes(key)
        hashed = rocksdb_hash if self._form.kind == rocksdb_forms.LEGACY else xxph3_64
        return self._might_contain_digest(hashed(data))

    @property
    def form(self) -> str:
        """The kind of filter: empty, fast-local, legacy, ribbon, or always-maybe and why."""
        return str(self._form)

    @property
    def num_bits(self) -> int:
        """The bits of all lines or segments; 0 for what has neither."""
        return self._form.num_bits

    @property
    def num_slots(self) -> int:
        """The slots of a Ribbon filter; 0 for another form."""
        return self._form.num_slots

    @property
    def num_probes(self) -> int:
        """How many bits a key sets; 0 for what is no filter of lines."""
        return self._form.num_probes

    @property
    def fill(self) -> float:
        """The share of bits that are set; an always-maybe one counts as full."""
        if not self.num_bits:
            return float(self._form.kind == rocksdb_forms.ALWAYS_MAYBE)
        return int.from_bytes(self._payload, "little").bit_count() / self.num_bits

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, {self.form}>"

    @property
    def _payload(self) -> memoryview:
        return self._data[: -rocksdb_forms.TRAILER_BYTES]

    def _measure_fpr(self) -> float:
        """The mean of (fill of a line)^num_probes, for a Ribbon filter of one in 2^columns.

        Of a legacy filter it is measured.
        """
        form = self._form
        if not self.num_bits:
            return float(form.kind == rocksdb_forms.ALWAYS_MAYBE)
        if form.blocks is not None:
            return ribbon.fpr(form.blocks)
        rate = hit_rate(self._probe_legacy) if form.kind == rocksdb_forms.LEGACY else 0.0
        if rate:
            return rate
        counts = occupancy.count_lines(self._payload, form.line_bits // 8)
        return occupancy.mean_line_fpr(counts, form.line_bits, form.num_probes)

    @property
    def _digest_kind(self) -> tuple[str, int]:
        return (ROCKSDB if self._form.kind == rocksdb_forms.LEGACY else XXPH3), 0

    def _might_contain_digest(self, digest: int) -> bool:
        kind = self._form.kind
        if kind == rocksdb_forms.FAST_LOCAL:
            return self._probe(digest)
        if kind == rocksdb_forms.LEGACY:
            return self._probe_legacy(digest)
        if self._form.blocks is not None:
            return self._probe_ribbon(digest, self._form.blocks)
        return kind == rocksdb_forms.ALWAYS_MAYBE

    def _probe(self, hashed: int) -> bool:
        data = self._data
        line = (hashed & MASK32) * self._form.lines >> 32 << 6
        h = hashed >> 32
        for _ in range(self._form.num_probes):
            if not data[line + (h >> 26)] >> (h >> 23 & 7) & 1:
                return False
            h = h * rocksdb.PROBE_MULTIPLIER & MASK32
        return True

    def _probe_legacy(self, hashed: int) -> bool:
        data, form = self._data, self._form
        line_bits = form.line_bits
        line = hashed % form.lines * (line_bits >> 3)
        step = hashed >> 17 | hashed << 15 & MASK32
        for _ in range(form.num_probes):
            bit = hashed & (line_bits - 1)
            if not data[line + (bit >> 3)] >> (bit & 7) & 1:
                return False
            hashed = hashed + step & MASK32
        return True

    def _probe_ribbon(self, hashed: int, geometry: ribbon.Geometry) -> bool:
        start, row, result = equation(hashed, geometry.starts, ribbon.seed_mask(self._form.seed))
        block, offset = divmod(start, ribbon.BLOCK_SLOTS)
        columns = geometry.columns - (block < geometry.narrow_blocks)
        first = block * geometry.columns - min(block, geometry.narrow_blocks)
        row <<= offset
        for column in range(columns):
            here = self._segment(first + column)
            there = self._segment(first + columns + column)
            slots = here | there << ribbon.BLOCK_SLOTS
            if ((slots & row).bit_count() ^ result >> column) & 1:
                return False
        return True

    def _segment(self, index: int) -> int:
        """One column of a block; of the block behind the last one only what no row reaches."""
        start = index * ribbon.SEGMENT_BYTES
        return int.from_bytes(self._data[start : start + ribbon.SEGMENT_BYTES], "little")
