"""The blocked Bloom filter, built and probed in Python."""

from __future__ import annotations

from typing import ClassVar

from filters import blocked
from filters.blocked import LINE_BITS, LINE_BYTES, PROBE_MULTIPLIER
from filters.kernels.python.bloom import BitFilter, Layout
from filters.occupancy import count_lines, mean_line_fpr

_MASK32 = 0xFFFF_FFFF


class BlockedBloomFilter(BitFilter):
    """A Bloom filter with one cache line per key; sized by ``bits_per_key`` or ``fpr``."""

    __slots__ = ()
    family = blocked.FAMILY
    layout: ClassVar[Layout] = blocked

    @property
    def num_bits(self) -> int:
        """The bits of all lines."""
        return 8 * len(self._payload)

    @property
    def num_lines(self) -> int:
        """How many 512-bit lines there are."""
        return self._geometry.size

    @property
    def expected_fpr(self) -> float:
        """The mean over all lines of fill^num_probes."""
        counts = count_lines(self._payload, LINE_BYTES)
        return mean_line_fpr(counts, LINE_BITS, self._geometry.num_probes)

    def _line(self, mixed: int) -> int:
        """Where the key's line starts in the payload."""
        return (mixed * self._geometry.size >> 64) * LINE_BYTES

    def _probe(self, mixed: int) -> bool:
        payload, line, probe = self._payload, self._line(mixed), mixed & _MASK32
        for _ in range(self._geometry.num_probes):
            bit = probe >> 23
            if not payload[line + (bit >> 3)] >> (bit & 7) & 1:
                return False
            probe = probe * PROBE_MULTIPLIER & _MASK32
        return True

    def _insert(self, mixed: int) -> bool:
        line, probe, wanted = self._line(mixed), mixed & _MASK32, 0
        for _ in range(self._geometry.num_probes):
            wanted |= 1 << (probe >> 23)
            probe = probe * PROBE_MULTIPLIER & _MASK32
        payload = self._own()
        old = int.from_bytes(payload[line : line + LINE_BYTES], "little")
        payload[line : line + LINE_BYTES] = (old | wanted).to_bytes(LINE_BYTES, "little")
        return old | wanted != old
