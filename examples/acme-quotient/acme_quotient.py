"""A quotient filter (Bender et al., 2012) as a plug-in for lsm-filters.

Every key has a fingerprint of quotient and remainder. The quotient names a slot, and the remainder
goes there or, where that is taken, into the next free slot to the right; three bits per slot are
enough to tell afterwards which remainder belongs to which quotient.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from hashlib import blake2b
from typing import ClassVar

import attrs

from filters import CorruptFilterError
from policies import FilterPolicy

OCCUPIED = 0b001  # some remainder belongs to this slot's quotient
CONTINUATION = 0b010  # this remainder has the same quotient as the one to the left
SHIFTED = 0b100  # this remainder is not in its quotient's own slot
FLAG_BITS = 3
FULLEST = 0.75


@attrs.frozen(kw_only=True)
class QuotientPolicy(FilterPolicy):
    """Slots of 8 bits (about 2 % false positives) or of 16 bits (about 0.01 %)."""

    name: ClassVar[str] = "acme.quotient"
    slot_bits: int = attrs.field(default=8, validator=attrs.validators.in_((8, 16)))

    def create_filter(self, keys: Sequence[bytes]) -> bytes:
        """Two bytes, slot bits and quotient bits, and then the slots."""
        quotient_bits = 1
        while len(keys) > FULLEST * (1 << quotient_bits):
            quotient_bits += 1
        remainder_bits = self.slot_bits - FLAG_BITS
        slots = [0] * (1 << quotient_bits)
        free, last_quotient = 0, -1
        for fingerprint in sorted({_hash(key, quotient_bits + remainder_bits) for key in keys}):
            quotient, remainder = divmod(fingerprint, 1 << remainder_bits)
            slot = max(quotient, free)
            slots.extend([0] * (slot + 1 - len(slots)))
            slots[slot] |= remainder << FLAG_BITS
            slots[slot] |= CONTINUATION if quotient == last_quotient else 0
            slots[slot] |= SHIFTED if quotient != slot else 0
            slots[quotient] |= OCCUPIED
            free, last_quotient = slot + 1, quotient
        slots.append(0)  # where every search to the right ends
        header = bytes((self.slot_bits, quotient_bits))
        return header + struct.pack(_slots_format(self.slot_bits, len(slots)), *slots)

    def open(self, filter: bytes) -> QuotientReader:
        """The filter in these bytes, which say themselves how wide their slots are."""
        if len(filter) < 2 or filter[0] not in (8, 16) or filter[1] > 48:
            raise CorruptFilterError(f"no quotient filter begins with {filter[:2]!r}")
        slot_bits, quotient_bits, slots = filter[0], filter[1], filter[2:]
        count, rest = divmod(len(slots), slot_bits // 8)
        if rest or count <= 1 << quotient_bits:
            raise CorruptFilterError(f"a quotient filter is cut short: {len(filter)} bytes")
        words = struct.unpack(_slots_format(slot_bits, count), slots)
        return QuotientReader(words, quotient_bits, slot_bits - FLAG_BITS)


@attrs.frozen
class QuotientReader:
    """An opened quotient filter."""

    slots: tuple[int, ...] = attrs.field(repr=False)
    quotient_bits: int
    remainder_bits: int

    def might_contain(self, key: bytes) -> bool:
        """False: the key was not among those the filter was created of."""
        slots = self.slots
        fingerprint = _hash(key, self.quotient_bits + self.remainder_bits)
        quotient, remainder = divmod(fingerprint, 1 << self.remainder_bits)
        if not slots[quotient] & OCCUPIED:
            return False
        run_of = slot = self._cluster_start(quotient)
        while run_of != quotient:  # step over one run per occupied quotient
            slot = self._next_run(slot)
            run_of += 1
            while not slots[run_of] & OCCUPIED:
                run_of += 1
        run = range(slot, self._next_run(slot))
        return any(slots[each] >> FLAG_BITS == remainder for each in run)

    def might_contain_many(self, keys: Sequence[bytes]) -> list[bool]:
        """The answers for many keys, in order."""
        return [self.might_contain(key) for key in keys]

    def _cluster_start(self, slot: int) -> int:
        while self.slots[slot] & SHIFTED:
            slot -= 1
        return slot

    def _next_run(self, slot: int) -> int:
        slot += 1
        while self.slots[slot] & CONTINUATION:
            slot += 1
        return slot


def _hash(key: bytes, bits: int) -> int:
    """The first bits of a hash that is the same in every process, unlike ``hash()``."""
    return int.from_bytes(blake2b(key, digest_size=8).digest(), "big") >> (64 - bits)


def _slots_format(slot_bits: int, count: int) -> str:
    return f"<{count}{'B' if slot_bits == 8 else 'H'}"
