"""SipHash-2-4 (Aumasson, Bernstein, 2012): 64 bits that nobody predicts who lacks the key."""

from __future__ import annotations

import secrets
import struct
from collections.abc import Sequence
from hashlib import blake2b

import attrs

try:
    from golomb_coded_set import lanes
except ImportError:  # without NumPy keys are hashed one by one
    LANES = None
else:
    LANES = lanes.siphash_lanes

MASK = 2**64 - 1
START = (0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573)
"""«somepseudorandomlygeneratedbytes»."""

# With fewer keys of one length than these, calling NumPy takes longer than hashing them.
FEWEST_LANES = 24


@attrs.frozen
class SipKey:
    """The 16 bytes that hashes are made under; whoever knows them can make keys that collide."""

    data: bytes = attrs.field(repr=False)

    def __attrs_post_init__(self) -> None:
        """Refuse what has another length."""
        if not isinstance(self.data, bytes) or len(self.data) != 16:
            raise ValueError(
                "SipHash's key is bytes, 16 of them; BIP 158 takes a block hash's first"
            )

    @classmethod
    def random(cls) -> SipKey:
        """A key that nobody has."""
        return cls(secrets.token_bytes(16))

    @classmethod
    def of_seed(cls, seed: int) -> SipKey:
        """The key that belongs to a secret 64-bit seed, which it does not tell."""
        material = seed.to_bytes(8, "little")
        return cls(blake2b(material, digest_size=16, person=b"bip158.golomb").digest())

    def state(self) -> tuple[int, int, int, int]:
        """The four words that hashing begins with."""
        low, high = struct.unpack("<QQ", self.data)
        first, second, third, fourth = START
        return low ^ first, high ^ second, low ^ third, high ^ fourth


def padded(data: bytes) -> bytes:
    """Whole words of eight bytes, the last of which ends with the length's low byte."""
    return data + bytes(7 - len(data) % 8) + bytes((len(data) & 255,))


def siphash(key: SipKey, data: bytes) -> int:
    """The hash of one key."""
    words = struct.unpack(f"<{len(data) // 8 + 1}Q", padded(data))
    a, b, c, d = key.state()
    for word in words:
        a, b, c, d = _rounds(2, a, b, c, d ^ word)
        a ^= word
    a, b, c, d = _rounds(4, a, b, c ^ 255, d)
    return a ^ b ^ c ^ d


def siphash_all(key: SipKey, keys: Sequence[bytes]) -> list[int]:
    """The hashes of many keys, in order; those of like length side by side where NumPy is there."""
    if LANES is None or len(keys) < FEWEST_LANES:
        return [siphash(key, each) for each in keys]
    hashes = [0] * len(keys)
    by_words: dict[int, list[int]] = {}
    for index, each in enumerate(keys):
        by_words.setdefault(len(each) // 8, []).append(index)
    for indexes in by_words.values():
        group = [keys[index] for index in indexes]
        if len(group) < FEWEST_LANES:
            found = [siphash(key, each) for each in group]
        else:
            found = LANES(key.state(), b"".join(map(padded, group)), len(group))
        for index, hash in zip(indexes, found, strict=True):
            hashes[index] = hash
    return hashes


def _rounds(count: int, a: int, b: int, c: int, d: int) -> tuple[int, int, int, int]:
    for _ in range(count):
        a = (a + b) & MASK
        c = (c + d) & MASK
        b = (b << 13 & MASK | b >> 51) ^ a
        d = (d << 16 & MASK | d >> 48) ^ c
        a = (a << 32 & MASK) | a >> 32
        c = (c + b) & MASK
        a = (a + d) & MASK
        b = (b << 17 & MASK | b >> 47) ^ c
        d = (d << 21 & MASK | d >> 43) ^ a
        c = (c << 32 & MASK) | c >> 32
    return a, b, c, d
