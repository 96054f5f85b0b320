"""SipHash-2-4 of many keys at once: a lane of NumPy's arrays for each."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Lanes = NDArray[np.uint64]


def siphash_lanes(state: tuple[int, int, int, int], data: bytes, count: int) -> list[int]:
    """The hashes of so many keys, which are padded, as many words each, one behind the other."""
    words = np.frombuffer(data, dtype="<u8").reshape(count, -1).T.astype(np.uint64)
    a, b, c, d = (np.full(count, each, dtype=np.uint64) for each in state)
    for word in words:
        d ^= word
        b, d = _rounds(2, a, b, c, d)
        a ^= word
    c ^= np.uint64(255)
    b, d = _rounds(4, a, b, c, d)
    hashes: list[int] = (a ^ b ^ c ^ d).tolist()
    return hashes


def _rounds(count: int, a: Lanes, b: Lanes, c: Lanes, d: Lanes) -> tuple[Lanes, Lanes]:
    """Change ``a`` and ``c`` in place; the new ``b`` and ``d``."""
    for _ in range(count):
        a += b
        c += d
        b = _turned(b, 13) ^ a
        d = _turned(d, 16) ^ c
        a[:] = _turned(a, 32)
        c += b
        a += d
        b = _turned(b, 17) ^ c
        d = _turned(d, 21) ^ a
        c[:] = _turned(c, 32)
    return b, d


def _turned(lanes: Lanes, bits: int) -> Lanes:
    return lanes << np.uint64(bits) | lanes >> np.uint64(64 - bits)
