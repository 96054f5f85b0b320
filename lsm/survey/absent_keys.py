"""Keys that are not in a table and look like those that are.

They have the lengths of a sample of its keys, and at each place one of the bytes that keys of that
length have there. Of keys that fill all that is possible so, such as numbers in sequence, hardly
any others are left; then one byte of a key becomes any other, or keys are longer.
"""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

SAMPLED_KEYS = 2048
LONGEST_SAMPLED = 1 << 14
"""Longer keys are left out of the sample, which stays in memory."""

_LETTERS_AT_ONCE = 1 << 20
_RANDOM_BYTES = 16


class Sample:
    """Keys drawn from a stream, each with the same chance: a reservoir, by skipping (Li, 1994)."""

    def __init__(self, rng: random.Random):
        self.keys: list[bytes] = []
        self._rng = rng
        self._weight = 1.0
        self._skip = 0

    def add(self, keys: Sequence[bytes]) -> None:
        """Let some of these keys take the places of others."""
        at = 0
        while len(self.keys) < SAMPLED_KEYS and at < len(keys):
            if len(keys[at]) <= LONGEST_SAMPLED:
                self.keys.append(keys[at])
                if len(self.keys) == SAMPLED_KEYS:
                    self._draw_skip()
            at += 1
        while at + self._skip < len(keys):
            at += self._skip
            if len(keys[at]) <= LONGEST_SAMPLED:
                self.keys[self._rng.randrange(SAMPLED_KEYS)] = keys[at]
            self._draw_skip()
            at += 1
        self._skip -= len(keys) - at

    def _draw_skip(self) -> None:
        self._weight *= math.exp(math.log(self._chance()) / SAMPLED_KEYS)
        self._skip = math.floor(math.log(self._chance()) / math.log1p(-self._weight))

    def _chance(self) -> float:
        return self._rng.random() or 0.5  # a logarithm is taken of it


def ways(
    sample: Sequence[bytes], rng: random.Random
) -> Iterator[tuple[str, Callable[[int], list[bytes]]]]:
    """The ways of making keys like these, the best one first: in words, and so many of them."""
    if not sample:
        yield f"any {_RANDOM_BYTES} bytes", lambda count: _random(count, rng)
        return
    yield "same lengths, same bytes at each place", lambda count: _like(sample, count, rng)
    yield (
        "one byte changed",
        lambda count: [_changed(rng.choice(sample), rng) for _ in range(count)],
    )
    yield (
        f"{_RANDOM_BYTES} bytes longer",
        lambda count: [rng.choice(sample) + tail for tail in _random(count, rng)],
    )


def _random(count: int, rng: random.Random) -> list[bytes]:
    return [rng.randbytes(_RANDOM_BYTES) for _ in range(count)]


def _changed(key: bytes, rng: random.Random) -> bytes:
    if not key:
        return key
    at = rng.randrange(len(key))
    return key[:at] + rng.randbytes(1) + key[at + 1 :]


def _like(sample: Sequence[bytes], count: int, rng: random.Random) -> list[bytes]:
    """So many keys, whose lengths are as frequent as in the sample."""
    by_length: dict[int, list[bytes]] = defaultdict(list)
    for key in sample:
        by_length[len(key)].append(key)
    made: list[bytes] = []
    for length, keys in sorted(by_length.items()):
        wanted = -(-count * len(keys) // len(sample))
        alphabets = [bytes(sorted(set(letters))) for letters in zip(*keys, strict=True)]
        step = max(1, _LETTERS_AT_ONCE // max(length, 1))
        for start in range(0, wanted, step):
            made += _spelled(alphabets, min(step, wanted - start), rng)
    rng.shuffle(made)
    return made[:count]


def _spelled(alphabets: Sequence[bytes], count: int, rng: random.Random) -> list[bytes]:
    """So many keys with a letter of each alphabet at its place."""
    if not alphabets:
        return [b""] * count
    columns = (rng.choices(alphabet, k=count) for alphabet in alphabets)
    return [bytes(key) for key in zip(*columns, strict=True)]
