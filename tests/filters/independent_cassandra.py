"""A minimal reader of Cassandra's filters, written from ``docs/cassandra-format.md`` alone.

It shares no line with ``filters`` and imports nothing from it: where the two disagree, the page or
the code is wrong. It is plain on purpose and slow.
"""

from __future__ import annotations

from tests.filters.independent_reader import RefusedError

ALL = 2**64


def rotl(value: int, by: int) -> int:
    """A word of 64 bits, rotated left."""
    return value * 2**by % ALL + value // 2 ** (64 - by)


def murmur(key: bytes) -> tuple[int, int]:
    """The section "From key to bits"."""
    c1, c2, h1, h2 = 0x87C37B91114253D5, 0x4CF5AD432745937F, 0, 0
    blocks = len(key) // 16
    for block in range(blocks):
        k1 = int.from_bytes(key[16 * block : 16 * block + 8], "little")
        k2 = int.from_bytes(key[16 * block + 8 : 16 * block + 16], "little")
        h1 = ((rotl(h1 ^ rotl(k1 * c1 % ALL, 31) * c2 % ALL, 27) + h2) * 5 + 0x52DCE729) % ALL
        h2 = ((rotl(h2 ^ rotl(k2 * c2 % ALL, 33) * c1 % ALL, 31) + h1) * 5 + 0x38495AB5) % ALL
    k1 = k2 = 0
    for i, byte in enumerate(key[16 * blocks :]):
        signed = (byte if byte < 128 else byte - 256) * 2 ** (8 * (i % 8)) % ALL
        if i < 8:
            k1 ^= signed
        else:
            k2 ^= signed
    h1 ^= rotl(k1 * c1 % ALL, 31) * c2 % ALL ^ len(key)
    h2 ^= rotl(k2 * c2 % ALL, 33) * c1 % ALL ^ len(key)
    h1 = (h1 + h2) % ALL
    h2 = (h2 + h1) % ALL
    h1, h2 = final(h1), final(h2)
    h1 = (h1 + h2) % ALL
    return h1, (h2 + h1) % ALL


def final(h: int) -> int:
    """The end of it."""
    h = (h ^ h // 2**33) * 0xFF51AFD7ED558CCD % ALL
    h = (h ^ h // 2**33) * 0xC4CEB9FE1A85EC53 % ALL
    return h ^ h // 2**33


class Reader:
    """A ``Filter.db`` opened for questions."""

    def __init__(self, data: bytes, version: str) -> None:
        self.old_order = version[0] in "jkl"
        self.old_layout = version[0] in "jklm"
        self.data = data
        if not data:
            return
        if len(data) < 8:
            raise RefusedError("short")
        self.probes = int.from_bytes(data[:4], "big", signed=True)
        self.words = int.from_bytes(data[4:8], "big", signed=True)
        if not 1 <= self.probes <= 14:
            raise RefusedError("K")
        if self.words < 1:
            raise RefusedError("w")
        if len(data) != 8 + 8 * self.words:
            raise RefusedError("length")

    def bit(self, number: int) -> int:
        """One bit of the array."""
        byte = number // 8 ^ 7 if self.old_layout else number // 8
        return self.data[8 + byte] >> number % 8 & 1

    def answer(self, key: bytes) -> bool:
        """True is "maybe"."""
        if not self.data:
            return True
        h1, h2 = murmur(key)
        base, step = (h1, h2) if self.old_order else (h2, h1)
        for _ in range(self.probes):
            distance = base if base < 2**63 else ALL - base
            if not self.bit(distance % (64 * self.words)):
                return False
            base = (base + step) % ALL
        return True
