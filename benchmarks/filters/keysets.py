"""Keys of several kinds, and absent keys of the same kind: disjoint, and the same for every run.

``random``: 16 random bytes. ``composite``: tenant, user and time, as an application joins them,
sorted. ``urls``: of 30 to 80 bytes, many of which begin alike. ``integers``: 8 bytes,
little-endian; every second number is a key, and absent ones lie between them and behind. ``file``:
the distinct lines of a file, of which the seed chooses a half.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import accumulate, count, pairwise
from pathlib import Path

import attrs
from xxhash import xxh3_128_hexdigest

from benchmarks.subjects import packed
from filters import PackedKeys

RANDOM = "random"
KINDS = (RANDOM, "composite", "urls", "integers")
FILE = "file"
LEAST_LINES = 2000

CHUNK = 1 << 16
KEY_BYTES = 16
TENANTS = 200
USERS = 100_000
# 2023-11-14, in milliseconds, and a month of them.
START, MONTH = 1_700_000_000_000, 30 * 24 * 3600 * 1000
SYLLABLES = [first + second for first in "bklmnrst" for second in "aeio"]
WORDS, HOSTS = 400, 200


@attrs.frozen
class Asked:
    """A random choice of keys that are asked while the clock runs, in every form.

    In order they lie one behind the other in memory; shuffled, each is a cache miss of its own.
    They are copies of the keys, as the keys of a lookup are: a set does not know them by their
    address.
    """

    in_order: list[bytes]
    shuffled: list[bytes]

    @classmethod
    def of(cls, keys: Sequence[bytes], most: int, rng: random.Random) -> Asked:
        """So many of the keys at most, from everywhere among them."""
        chosen = sorted(rng.sample(range(len(keys)), min(most, len(keys))))
        in_order = laid_out([keys[index] for index in chosen])
        return cls(in_order, rng.sample(in_order, len(in_order)))

    def thinned(self, most: int) -> Asked:
        """So many of them at most, still from everywhere."""
        step = -(-len(self.in_order) // most)
        return self if step <= 1 else Asked(self.in_order[::step], self.shuffled[::step])


@attrs.frozen
class KeySet:
    """Keys to build of, absent ones to ask for, these in a buffer too, and more of them in one."""

    keys: list[bytes]
    absent: list[bytes]
    packed_absent: PackedKeys
    many_absent: PackedKeys
    asked: dict[bool, Asked]


@attrs.frozen
class Wanted:
    """Which keys: so many of a kind, by this seed; or the lines of a file."""

    kind: str
    count: int
    seed: int
    path: Path | None = None

    def rng(self, purpose: str) -> random.Random:
        """A generator of its own for each purpose, so that none depends on another."""
        return random.Random(f"{self.seed} {self.kind} {purpose}")

    def keys(self) -> list[bytes]:
        """The keys to build of."""
        if self.path is not None:
            return self._halves()[0]
        return self._drawn(known=True, number=self.count, without=())

    def absent(self, keys: Collection[bytes], number: int) -> list[bytes]:
        """So many absent keys; of a file, its other half."""
        if self.path is not None:
            return self._halves()[1]
        return self._drawn(known=False, number=number, without=keys)

    def _drawn(self, *, known: bool, number: int, without: Collection[bytes]) -> list[bytes]:
        chunks = CHUNKS[self.kind](self.rng(f"keys {known}"), self.rng("words"), known)
        drawn = distinct(chunks, number, without)
        return laid_out(sorted(drawn) if self.kind == "composite" else drawn)

    def _halves(self) -> tuple[list[bytes], list[bytes]]:
        assert self.path is not None
        lines, _ = lines_of(self.path)
        rng = self.rng("halves")
        chosen = set(rng.sample(range(len(lines)), self.count))
        halves: tuple[list[bytes], list[bytes]] = ([], [])
        for index, line in enumerate(lines):
            halves[index not in chosen].append(line)
        return laid_out(halves[0]), laid_out(halves[1])


def made(wanted: Wanted, absent: int, many: int, timed: int) -> KeySet:
    """The keys that are wanted and their absent ones, checked to be disjoint."""
    keys = wanted.keys()
    drawn = wanted.absent(keys, max(absent, many))
    if not set(keys).isdisjoint(drawn):
        raise AssertionError(f"a key of {wanted} is among its absent keys")
    few = laid_out(drawn[:: max(1, len(drawn) // absent)][:absent])
    asked = {
        known: Asked.of(some, timed, wanted.rng(f"asked {known}"))
        for known, some in ((True, keys), (False, few))
    }
    few_packed = packed(few)
    many_packed = packed(drawn) if len(drawn) > len(few) else few_packed
    return KeySet(keys, few, few_packed, many_packed, asked)


def lines_of(path: Path) -> tuple[list[bytes], str]:
    """The distinct lines of a file and a digest of it; ValueError says what is wrong with it.

    A line ends with a line feed, with or without a carriage return before; empty ones are no keys.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ValueError(f"--keys-file: {path} cannot be read ({error.strerror})") from error
    lines = dict.fromkeys(line.removesuffix(b"\r") for line in data.split(b"\n"))
    lines.pop(b"", None)
    if len(lines) < LEAST_LINES:
        raise ValueError(
            f"--keys-file: {path} has {len(lines)} distinct lines, and it takes {LEAST_LINES}: one "
            "half becomes keys and the other half absent ones, and of few no rate can be told"
        )
    return list(lines), xxh3_128_hexdigest(data)


def distinct(
    chunks: Iterator[Sequence[bytes]], number: int, without: Collection[bytes]
) -> list[bytes]:
    """The first so many keys that differ from each other and from those there are."""
    found: dict[bytes, None] = {}
    taken = set(without)
    while len(found) < number:
        chunk = next(chunks)
        new = [key for key in chunk if key not in taken] if taken else chunk
        found.update(dict.fromkeys(new))
    keys = list(found)
    del keys[number:]
    return keys


def laid_out(keys: Sequence[bytes]) -> list[bytes]:
    """Copies of the keys that were made one after the other, and lie in memory like that."""
    data = b"".join(keys)
    return [data[start:end] for start, end in pairwise(accumulate(map(len, keys), initial=0))]


Chunks = Callable[[random.Random, random.Random, bool], Iterator[Sequence[bytes]]]


def _random(rng: random.Random, _words: random.Random, _known: bool) -> Iterator[Sequence[bytes]]:
    while True:
        data = rng.randbytes(KEY_BYTES * CHUNK)
        yield [data[start : start + KEY_BYTES] for start in range(0, len(data), KEY_BYTES)]


def _composite(
    rng: random.Random, _words: random.Random, _known: bool
) -> Iterator[Sequence[bytes]]:
    below = rng.random
    while True:
        yield [
            # A product of two shares: some tenants have many users.
            b"tenant%03d/user%06d/%013d"
            % (
                int(below() * below() * TENANTS),
                int(below() * USERS),
                START + int(below() * MONTH),
            )
            for _ in range(CHUNK)
        ]


def _urls(rng: random.Random, words: random.Random, _known: bool) -> Iterator[Sequence[bytes]]:
    vocabulary = ["".join(words.choices(SYLLABLES, k=words.randint(2, 5))) for _ in range(WORDS)]
    hosts = [f"https://www.{words.choice(vocabulary)}{host}.example" for host in range(HOSTS)]
    below = rng.random
    while True:
        yield [
            (
                f"{hosts[int(below() * below() * HOSTS)]}/{vocabulary[int(below() * WORDS)]}/"
                f"{vocabulary[int(below() * WORDS)]}-{vocabulary[int(below() * WORDS)]}"
                f"?id={int(below() * 1_000_000)}"
            ).encode()
            for _ in range(CHUNK)
        ]


def _integers(_rng: random.Random, _words: random.Random, known: bool) -> Iterator[Sequence[bytes]]:
    for first in count(0 if known else 1, 2 * CHUNK):
        yield [number.to_bytes(8, "little") for number in range(first, first + 2 * CHUNK, 2)]


CHUNKS: dict[str, Chunks] = {
    RANDOM: _random,
    "composite": _composite,
    "urls": _urls,
    "integers": _integers,
}
