"""The classic Bloom filter, built and probed in Python."""

from __future__ import annotations

from typing import ClassVar

from filters import classic
from filters.kernels.python.bloom import BitFilter, Layout
from filters.kernels.python.chain import positions


class ClassicBloomFilter(BitFilter):
    """A Bloom filter of any size up to 2^40 bits; sized by ``bits_per_key`` or ``fpr``."""

    __slots__ = ()
    family = classic.FAMILY
    layout: ClassVar[Layout] = classic

    @property
    def num_bits(self) -> int:
        """The length of the bit array."""
        return self._geometry.size

    @property
    def expected_fpr(self) -> float:
        """The rate of independent probes: fill^num_probes."""
        return float(self.fill**self.num_probes)

    def _probe(self, mixed: int) -> bool:
        payload = self._payload
        for position in positions(mixed, self._geometry.size, self._geometry.num_probes):
            if not payload[position >> 3] >> (position & 7) & 1:
                return False
        return True

    def _insert(self, mixed: int) -> bool:
        payload = self._own()
        new = False
        for position in positions(mixed, self._geometry.size, self._geometry.num_probes):
            bit = 1 << (position & 7)
            if not payload[position >> 3] & bit:
                payload[position >> 3] |= bit
                new = True
        return new
