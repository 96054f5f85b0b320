"""Bytes as somebody hostile writes them: any geometry that can be claimed, and right checksums.

``Attack(rng).bytes_of(family)`` makes one input: out of nothing, of what our own builders wrote, or
of what once found something (``corpus/``); and mostly it is then damaged here and there, and the
checksum mended. All of it follows from the generator that it is given.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import attrs

from filters.families import FAMILIES
from filters.header import FAMILY_IDS
from tests.filters.test_damage import signed

CORPUS = Path(__file__).parent / "corpus"
CHECKSUM_BYTES = 8

# Where in a filter of our own a field begins, and how wide it is: those of the header, and what the
# families keep at the start of the payload.
FIELDS = [(at, 1) for at in (4, 5, 6, 7)] + [(at, 8) for at in (8, 16, 24, 32)]
FIELDS += [(at, width) for at in range(40, 84, 4) for width in (4, 8)]

# Where sizes, counts and words wrap, end or begin.
EDGES = [0, 1, 2, 3, 7, 8, 63, 64, 65, 255, 256, 512, 2**16 - 1, 2**16, 2**18, 2**20, 2**31 - 1]
EDGES += [2**31, 2**32 - 1, 2**32, 2**40, 2**40 + 1, 2**60, 2**60 + 1, 2**61, 2**63 - 1, 2**63]
EDGES += [2**64 - 8, 2**64 - 1]


@cache
def corpus(family: str) -> list[bytes]:
    """What is kept of a family: inputs that found something, and one of every kind there is."""
    lines = (CORPUS / f"{family}.hex").read_text().splitlines()
    return [bytes.fromhex(line) for line in lines if not line.startswith("#")]


@attrs.frozen
class Attack:
    """Whoever draws the bytes."""

    rng: random.Random

    def bytes_of(self, family: str) -> bytes:
        """The next input."""
        source = self.rng.random()
        if source < 0.7:
            data = WRITERS[family](self)
        elif source < 0.85:
            data = self.rng.choice(corpus(family))
        else:
            data = self.built(family)
        return self.damaged(family, data) if self.rng.random() < 0.6 else data

    def built(self, family: str) -> bytes:
        """What an honest builder writes of a few keys."""
        count = self.rng.choice((0, 1, 2, 30, 100))
        keys = [self.rng.randbytes(self.rng.randrange(12)) for _ in range(count)]
        cls: Any = FAMILIES[family].filter_class("python")
        secrets = {"seed": self.word(), "salt": self.word()} if family in FAMILY_IDS else {}
        data: bytes = cls.build(keys, **secrets).to_bytes()
        return data

    # ---- numbers and memory ----

    def word(self, bits: int = 64) -> int:
        """A number of so many bits: where something wraps or ends, or of any magnitude."""
        if self.rng.random() < 0.6:
            return self.rng.choice(EDGES) % 2**bits
        return self.rng.getrandbits(self.rng.randint(1, bits))

    def within(self, low: int, high: int) -> int:
        """A number that is allowed: the limits and their neighbours often, and many small ones."""
        choices = [low, min(high, low + 1), max(low, high - 1), high, self.rng.randint(low, high)]
        few = min(high, low + 20)
        return self.rng.choice([*choices, self.rng.randint(low, few), self.rng.randint(low, few)])

    def memory(self, size: int, used_bits: int = 0) -> bytes:
        """Zeros, ones, noise or next to nothing; no bit is set behind those in use."""
        style = self.rng.randrange(5)
        if style == 0:
            data = bytearray(size)
        elif style == 1:
            data = bytearray(b"\xff" * size)
        elif style == 2 and size:
            data = bytearray(size)
            data[self.rng.randrange(size)] = 1 << self.rng.randrange(8)
        else:
            data = bytearray(self.rng.randbytes(size))
        if used_bits % 8:
            data[-1] &= (1 << used_bits % 8) - 1
        return bytes(data)

    def framed(
        self, family: str, parameter: int, size: int, num_keys: int, payload: bytes
    ) -> bytes:
        """A filter of our own with these fields and flags that fit."""
        fixed = struct.pack(
            "<4s4B4Q",
            b"LSFB",
            FAMILY_IDS[family],
            1,
            int(num_keys == 0),
            parameter,
            num_keys,
            size,
            self.word(),
            self.word(),
        )
        return signed(fixed + payload)

    def some_keys(self) -> int:
        """A number of keys where any is allowed."""
        return self.within(0, 2**60)

    # ---- damage ----

    def damaged(self, family: str, data: bytes) -> bytes:
        """The input with one or a few changes, and with a checksum that fits if it has one."""
        ours = family in FAMILY_IDS
        body = bytearray(data[:-CHECKSUM_BYTES] if ours else data)
        for _ in range(self.rng.choice((1, 1, 1, 2, 4))):
            self.rng.choice(DAMAGES)(self, body)
        return signed(body) if ours else bytes(body)

    def field(self, body: bytearray) -> tuple[int, int]:
        """Where to change a number, and its width: fields, the last bytes of others, any place."""
        kind = self.rng.random()
        if kind < 0.6:
            at, width = self.rng.choice(FIELDS)
        elif kind < 0.8:
            at, width = len(body) - self.rng.randint(1, 8), self.rng.choice((1, 2, 4))
        else:
            at, width = self.rng.randrange(len(body) + 1), self.rng.choice((1, 2, 4, 8))
        return max(0, min(at, len(body) - width)), width

    def overwrite(self, body: bytearray) -> None:
        """A field gets another number."""
        at, width = self.field(body)
        body[at : at + width] = self.word(8 * width).to_bytes(width, "little")

    def nudge(self, body: bytearray) -> None:
        """A field gets a number close to its own."""
        at, width = self.field(body)
        near = int.from_bytes(body[at : at + width], "little") + self.rng.choice((-8, -1, 1, 8))
        body[at : at + width] = (near % 256**width).to_bytes(width, "little")

    def flip(self, body: bytearray) -> None:
        """One bit turns."""
        if body:
            body[self.rng.randrange(len(body))] ^= 1 << self.rng.randrange(8)

    def insert(self, body: bytearray) -> None:
        """Something comes in between, or behind."""
        at = self.rng.choice((len(body), self.rng.randrange(len(body) + 1)))
        body[at:at] = self.memory(self.rng.choice((1, 2, 4, 8, 16, 64)))

    def remove(self, body: bytearray) -> None:
        """Something is taken out."""
        at = self.rng.randrange(len(body) + 1)
        del body[at : at + self.rng.choice((1, 2, 4, 8, 16, 64))]

    def cut(self, body: bytearray) -> None:
        """The end is lost."""
        del body[self.rng.randrange(len(body) + 1) :]

    def repeat(self, body: bytearray) -> None:
        """A part is there twice."""
        start = self.rng.randrange(len(body) + 1)
        part = body[start : start + self.rng.choice((4, 8, 12, 16, 64))]
        body[start:start] = part


DAMAGES: list[Callable[[Attack, bytearray], None]] = [
    Attack.overwrite,
    Attack.overwrite,
    Attack.nudge,
    Attack.nudge,
    Attack.flip,
    Attack.insert,
    Attack.remove,
    Attack.cut,
    Attack.repeat,
]


# ---- geometry, a writer for each family ----


def classic(attack: Attack) -> bytes:
    bits = attack.within(64, 9000)
    payload = attack.memory(-(-bits // 8), used_bits=bits)
    return attack.framed("classic", attack.within(1, 64), bits, attack.some_keys(), payload)


def counting(attack: Attack) -> bytes:
    counters = attack.within(64, 5000)
    payload = attack.memory(-(-counters // 2), used_bits=4 * counters)
    return attack.framed("counting", attack.within(1, 64), counters, attack.some_keys(), payload)


def cuckoo(attack: Attack) -> bytes:
    buckets, bits = attack.within(1, 500), attack.within(6, 32)
    used = 4 * buckets * bits
    num_keys = attack.within(0, 4 * buckets)
    payload = attack.memory(-(-used // 8), used_bits=used)
    return attack.framed("cuckoo", bits, buckets, num_keys, payload)


def blocked(attack: Attack) -> bytes:
    lines = attack.within(1, 100)
    payload = attack.memory(64 * lines)
    return attack.framed("blocked", attack.within(1, 32), lines, attack.some_keys(), payload)


def scalable(attack: Attack) -> bytes:
    count = attack.rng.choice((1, 1, 2, 3, attack.within(1, 64)))
    rows, arrays = [], []
    for _ in range(count):
        size = attack.within(8, 300)
        rows.append(struct.pack("<QQ", 8 * size, attack.within(1, 64)))
        arrays.append(attack.memory(size))
    rate = attack.rng.choice((1e-9, 0.01, 0.5, 10 ** attack.rng.uniform(-9, -0.31)))
    tightening = attack.rng.choice((0.5, 0.85, 0.95, attack.rng.uniform(0.5, 0.95)))
    terms = struct.pack("<Qdd", attack.within(1, 2**40), rate, tightening)
    payload = b"".join([terms, *rows, *arrays])
    return attack.framed("scalable", attack.rng.choice((2, 4)), count, attack.some_keys(), payload)


def binary_fuse(attack: Attack) -> bytes:
    def row() -> tuple[bytes, int]:
        length = 1 << attack.rng.choice((2, 2, 3, 4, 6, 8))
        if attack.rng.random() < 0.005:
            length = 1 << 18
        segments = attack.rng.choice((1, 1, 2, attack.within(1, 20)))
        return struct.pack("<QLL", attack.word(), length, segments), (segments + 2) * length

    return peeled(attack, "binary-fuse", row)


def xor(attack: Attack) -> bytes:
    def row() -> tuple[bytes, int]:
        length = attack.rng.choice((1, 2, attack.within(1, 200)))
        return struct.pack("<QL", attack.word(), length), 3 * length

    return peeled(attack, "xor", row)


def peeled(attack: Attack, family: str, row: Callable[[], tuple[bytes, int]]) -> bytes:
    """Shards of which each has a row that tells its slots."""
    bits = attack.rng.choice((8, 16))
    rows, tables, slots = [], [], 0
    for _ in range(1 << attack.rng.choice((0, 0, 0, 1, 2, 3, 6))):
        told, count = row()
        slots += count
        rows.append(told)
        tables.append(attack.memory(count * bits // 8))
    payload = b"".join(rows + tables)
    return attack.framed(family, bits, len(rows), attack.within(0, slots), payload)


def bumped_ribbon(attack: Attack) -> bytes:
    layers = [attack.within(2, 60) for _ in range(attack.rng.choice((0, 1, 1, 2, 3, 8)))]
    blocks, codes = sum(layers), sum(each // 2 for each in layers)
    head = struct.pack(f"<{1 + len(layers)}L", len(layers), *layers)
    head += attack.memory(-(-codes // 4), used_bits=2 * codes)
    head += bytes(-len(head) % 8)
    columns = attack.within(1, 32)
    wide = attack.within(0, blocks - 1) if blocks and columns < 32 else 0
    words = blocks * columns + wide
    left_over = sorted({attack.word() for _ in range(attack.rng.choice((0, 0, 1, 2, 30)))})
    num_keys = attack.within(len(left_over), len(left_over) + 64 * blocks)
    payload = head + attack.memory(8 * words) + struct.pack(f"<{len(left_over)}Q", *left_over)
    return attack.framed("bumped-ribbon", columns, words, num_keys, payload)


def grafite(attack: Attack) -> bytes:
    """Buckets that hold as many codes as are claimed, in any order."""
    universe = attack.rng.choice((attack.within(1, 300), attack.within(1, 2**20), 2**63))
    low_bits = attack.within(max(0, universe.bit_length() - 10), 63)
    count = min(attack.rng.choice((0, 1, 2, attack.within(0, 200))), universe)
    buckets = (universe - 1 >> low_bits) + 1
    bits = [1] * count + [0] * (buckets - 1)
    attack.rng.shuffle(bits)
    high = sum(bit << index for index, bit in enumerate(bits))
    prefix = attack.memory(attack.rng.choice((0, 0, 0, 1, 2, 30)))
    head = struct.pack("<QLB", count, len(prefix), attack.within(0, 8)) + prefix
    low = attack.memory(-(-count * low_bits // 8), used_bits=count * low_bits)
    payload = head + low + high.to_bytes(-(-(count + buckets) // 8), "little")
    num_keys = attack.within(count, 2**60) if count else 0
    return attack.framed("grafite", low_bits, universe, num_keys, payload)


def leveldb(attack: Attack) -> bytes:
    size = attack.rng.choice((0, 1, 2, 8, attack.within(0, 2000)))
    return attack.memory(size) + bytes((attack.rng.choice((attack.within(0, 31), 255)),))


def rocksdb(attack: Attack) -> bytes:
    """A line filter of today or of before, a Ribbon filter, or any trailer."""
    writers = (fast_local, legacy, ribbon, ribbon, any_trailer)
    return attack.rng.choice(writers)(attack)


def fast_local(attack: Attack) -> bytes:
    return attack.memory(64 * attack.within(1, 40)) + bytes((255, 0, attack.within(1, 30), 0, 0))


def legacy(attack: Attack) -> bytes:
    lines, line_bytes = attack.within(1, 40), 1 << attack.within(0, 9)
    probes = attack.within(1, 127)
    return attack.memory(lines * line_bytes) + struct.pack("<BL", probes, lines)


def ribbon(attack: Attack) -> bytes:
    """As many columns as there can be, none at all, and one more in some of the blocks."""
    segments = attack.within(1, 300)
    near = segments // attack.rng.choice((1, 2, 7, 31, 32, 33))
    blocks = attack.rng.choice((attack.within(0, 40), near, near + 1, attack.within(0, 2**24 - 1)))
    trailer = bytes((254, attack.rng.randrange(256))) + blocks.to_bytes(3, "little")
    return attack.memory(16 * segments) + trailer


def any_trailer(attack: Attack) -> bytes:
    return attack.memory(attack.within(0, 130)) + attack.memory(5)


def cassandra(attack: Attack) -> bytes:
    words = attack.within(1, 200)
    return struct.pack(">ll", attack.within(1, 14), words) + attack.memory(8 * words)


WRITERS: dict[str, Callable[[Attack], bytes]] = {
    "classic": classic,
    "counting": counting,
    "cuckoo": cuckoo,
    "blocked": blocked,
    "leveldb": leveldb,
    "rocksdb": rocksdb,
    "binary-fuse": binary_fuse,
    "ribbon": rocksdb,
    "scalable": scalable,
    "xor": xor,
    "cassandra": cassandra,
    "bumped-ribbon": bumped_ribbon,
    "grafite": grafite,
}
