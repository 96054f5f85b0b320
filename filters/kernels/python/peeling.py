"""Construction by peeling: the textbook page.

Every key takes three slots. A slot that only one key takes decides that key: it can be filled last,
whatever the other two hold. Taking the key out may leave other slots with a single key, and so on;
if all keys can be peeled away like this, filling the slots in reverse order satisfies every one.
Which three slots they are is a family's own affair, and comes in as ``slots_of``.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence

from filters.hashing import MASK64
from filters.peeled import G, Shard, empty_table, seeds, table_bytes

SlotsOf = Callable[[int, G], tuple[int, int, int]]

# More keys than this in one slot count as a failure: the compiled builders count in six bits.
_MAX_KEYS_PER_SLOT = 63


def rehash(mixed: int, seed: int) -> int:
    """The finalizer of MurmurHash3 over salted digest plus seed: the hash that one attempt uses."""
    value = (mixed + seed) & MASK64
    value = ((value ^ (value >> 33)) * 0xFF51_AFD7_ED55_8CCD) & MASK64
    value = ((value ^ (value >> 33)) * 0xC4CE_B9FE_1A85_EC53) & MASK64
    return value ^ (value >> 33)


def fingerprint_of(value: int, fingerprint_bits: int) -> int:
    """The low bits of both halves of the hash."""
    return (value ^ value >> 32) & (1 << fingerprint_bits) - 1


def populate(
    mixed: Sequence[int], geometry: G, fingerprint_bits: int, slots_of: SlotsOf[G]
) -> Shard[G] | None:
    """The shard of these distinct salted digests; None where no seed peels them."""
    for seed in seeds():
        hashes = [rehash(each, seed) for each in mixed]
        order = peel(hashes, geometry, slots_of)
        if order is not None:
            table = assign(order, geometry, fingerprint_bits, slots_of)
            return Shard(seed, geometry, table_bytes(table))
    return None


def peel(hashes: list[int], geometry: G, slots_of: SlotsOf[G]) -> list[tuple[int, int]] | None:
    """(hash, which of its slots is its own) in the order of peeling; None where a core remains."""
    counts = [0] * geometry.slots
    xors = [0] * geometry.slots  # of the hashes in a slot: with one left, that hash itself
    which = [0] * geometry.slots  # of 0, 1 and 2, likewise
    for value in hashes:
        for index, slot in enumerate(slots_of(value, geometry)):
            counts[slot] += 1
            xors[slot] ^= value
            which[slot] ^= index
    if max(counts) > _MAX_KEYS_PER_SLOT:
        return None
    alone = [slot for slot, count in enumerate(counts) if count == 1]
    order: list[tuple[int, int]] = []
    while alone:
        slot = alone.pop()
        if counts[slot] != 1:
            continue
        value, own = xors[slot], which[slot]
        order.append((value, own))
        slots = slots_of(value, geometry)
        for index in ((own + 1) % 3, (own + 2) % 3):
            other = slots[index]
            counts[other] -= 1
            xors[other] ^= value
            which[other] ^= index
            if counts[other] == 1:
                alone.append(other)
    return order if len(order) == len(hashes) else None


def assign(
    order: list[tuple[int, int]], geometry: G, fingerprint_bits: int, slots_of: SlotsOf[G]
) -> array[int]:
    """Fill the slots in reverse: each key's own slot makes its three xor to its fingerprint."""
    table = empty_table(geometry, fingerprint_bits)
    for value, own in reversed(order):
        slots = slots_of(value, geometry)
        others = table[slots[(own + 1) % 3]] ^ table[slots[(own + 2) % 3]]
        table[slots[own]] = fingerprint_of(value, fingerprint_bits) ^ others
    return table
