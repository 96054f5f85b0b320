"""A policy as a plug-in has it: a Bloom filter in Python, which no compiled code knows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from typing import ClassVar

import attrs

from benchmarks.engine.engine import BITS_PER_KEY
from policies import FilterPolicy, register
from policies.registry import _REGISTRY

# The best number for ten bits a key is 10 ln 2.
_PROBES = 7


@attrs.frozen
class PythonBloom(FilterPolicy):
    """Ten bits a key, of which seven are set, at places from two halves of one hash."""

    name: ClassVar[str] = "benchmark.python-bloom"

    def create_filter(self, keys: Sequence[bytes]) -> bytes:
        """Bits in whole bytes, at least one."""
        filter = bytearray(max(1, BITS_PER_KEY * len(keys) // 8))
        for key in keys:
            for place in _places(key, 8 * len(filter)):
                filter[place >> 3] |= 1 << (place & 7)
        return bytes(filter)

    def key_may_match(self, key: bytes, filter: bytes) -> bool:
        """Whether all of the key's bits are set; a foreign filter may have none."""
        return not filter or all(
            filter[place >> 3] >> (place & 7) & 1 for place in _places(key, 8 * len(filter))
        )


@contextmanager
def registered() -> Iterator[None]:
    """Its name leads to it meanwhile, and not afterwards: other parts measure what has a name."""
    register(PythonBloom)
    try:
        yield
    finally:
        _REGISTRY._registered.pop(PythonBloom.name)


def _places(key: bytes, bits: int) -> Iterator[int]:
    digest = int.from_bytes(blake2b(key, digest_size=8).digest(), "little")
    place, step = digest >> 32, digest & 0xFFFFFFFF | 1
    for _ in range(_PROBES):
        yield place % bits
        place += step
