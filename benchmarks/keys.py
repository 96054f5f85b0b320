"""The keys that filters are built of and asked for, in the forms in which they can come."""

from __future__ import annotations

import random

from filters import PackedKeys

KEY_BYTES = 16
CHUNK = 1 << 24  # whole words of the generator, so that pieces are what the whole would be


class Keys:
    """Random keys, as many that will be built of and as many absent ones, in every form.

    The bytes objects are made one after the other, so in order they lie one behind the other in
    memory; shuffled, each is a cache miss of its own.
    """

    def __init__(self, count: int, seed: int):
        rng = random.Random(seed)
        self.data = {known: random_bytes(rng, KEY_BYTES * count) for known in (True, False)}
        self.in_order = {known: _cut(data) for known, data in self.data.items()}
        self.shuffled = {known: list(keys) for known, keys in self.in_order.items()}
        for keys in self.shuffled.values():
            rng.shuffle(keys)

    def packed(self, known: bool) -> PackedKeys:
        """The keys in one buffer."""
        return PackedKeys(self.data[known], width=KEY_BYTES)


def random_packed(count: int, seed: int) -> PackedKeys:
    """So many random keys in one buffer."""
    return PackedKeys(random_bytes(random.Random(seed), count * KEY_BYTES), width=KEY_BYTES)


def random_bytes(rng: random.Random, size: int) -> bytes:
    """What ``rng.randbytes`` gives, also for more than the 256 MiB that it can give at once."""
    ends = range(CHUNK, size + CHUNK, CHUNK)
    return b"".join(rng.randbytes(min(CHUNK, size - end + CHUNK)) for end in ends)


def _cut(data: bytes) -> list[bytes]:
    return [data[start : start + KEY_BYTES] for start in range(0, len(data), KEY_BYTES)]
