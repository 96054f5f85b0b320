"""A minimal reader of filter blocks, written from ``docs/block-format.md`` alone.

It shares no line with ``policies`` and imports nothing from it or from ``filters``: where the two
disagree, the page or the code is wrong. Payloads of our own families go to the reader that was
written from ``docs/family-formats.md``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from xxhash import xxh3_64_intdigest

from tests.filters import independent_cassandra, independent_reader
from tests.filters.independent_reader import RefusedError, UnknownVersionError, number

FIRST = "abcdefghijklmnopqrstuvwxyz0123456789"
FURTHER = FIRST + "._-"

OWN_FAMILY = {
    "binary-fuse": "binary-fuse",
    "blocked": "blocked",
    "bumped-ribbon": "bumped-ribbon",
    "classic": "classic",
    "counting": "classic",
    "cuckoo": "cuckoo",
    "grafite": "grafite",
    "surf": "surf",
    "xor": "xor",
}


class UnknownNameError(Exception):
    """The block is sound; its name is none that this reader knows."""


@dataclass(frozen=True)
class Field:
    """Where one field lies."""

    offset: int
    length: int
    name: str


@dataclass(frozen=True)
class Block:
    """The fields of a block that passed steps 1 to 9."""

    name: str
    params: dict[str, Any]
    num_keys: int
    payload: bytes
    fields: tuple[Field, ...]


def parse(data: bytes) -> Block:
    """Steps 1 to 9 of the order of validation."""
    if len(data) < 13:
        raise RefusedError("short")
    if data[:4] != b"LSMF":
        raise RefusedError("magic")
    end = len(data) - 8
    if xxh3_64_intdigest(data[:end]) != number(data, end, 8):
        raise RefusedError("checksum")
    if data[4] != 1:
        raise UnknownVersionError(data[4])
    fields = [Field(0, 4, "magic"), Field(4, 1, "version")]

    def next_field(name: str, length: int) -> bytes:
        start = fields[-1].offset + fields[-1].length
        if start + length > end:
            raise RefusedError(f"{name} ends behind the fields")
        fields.append(Field(start, length, name))
        return data[start : start + length]

    def next_number(name: str, width: int) -> int:
        return number(next_field(name, width), 0, width)

    flags = next_number("flags", 1)
    name = next_field("name", next_number("name length", 1))
    params = next_field("parameters", next_number("parameter length", 2))
    num_keys = next_number("num_keys", 8)
    payload = next_field("payload", next_number("payload length", 8))
    if fields[-1].offset + fields[-1].length != end:
        raise RefusedError("bytes behind the payload")
    fields.append(Field(end, 8, "checksum"))

    if flags != (1 if num_keys == 0 else 0):
        raise RefusedError("flags")
    letters = name.decode("latin-1")
    if not 1 <= len(letters) <= 64:
        raise RefusedError("name length")
    if letters[0] not in FIRST or any(letter not in FURTHER for letter in letters):
        raise RefusedError("name")
    if num_keys > 0 and not payload:
        raise RefusedError("keys without payload")
    return Block(letters, json_object(params), num_keys, payload, tuple(fields))


def json_object(text: bytes) -> dict[str, Any]:
    """Step 8."""

    def refuse(word: str) -> None:
        raise RefusedError(word)

    level, inside, before = 0, False, ""
    for letter in text.decode("latin-1"):
        if letter == '"' and not (inside and before == "\\"):
            inside = not inside
        elif not inside:
            level += (letter in "[{") - (letter in "]}")
        before = "" if before == "\\" else letter
        if level > 64:
            raise RefusedError("nesting")
    try:
        value = json.loads(text.decode("utf-8"), parse_constant=refuse)
        json.dumps(value, allow_nan=False, ensure_ascii=False).encode("utf-8")
    except ValueError as error:
        raise RefusedError("JSON") from error
    if type(value) is not dict:
        raise RefusedError("no object")
    return value


class Reader:
    """A block opened for questions; steps 10 to 12."""

    def __init__(self, data: bytes) -> None:
        self.block = block = parse(data)
        self.own: independent_reader.Reader | independent_cassandra.Reader | None = None
        if not block.payload or block.name in ("leveldb", "rocksdb", "ribbon", "none"):
            return
        if block.name == "cassandra":
            self.own = independent_cassandra.Reader(block.payload, "na")
            return
        if block.name not in OWN_FAMILY:
            raise UnknownNameError(block.name)
        own = independent_reader.read(block.payload)
        if own.frame.family != OWN_FAMILY[block.name]:
            raise RefusedError("family")
        self.own = own

    def answer(self, key: bytes, rocksdb_hash: int = 0) -> bool:
        """True is "maybe". RocksDB's hash of the key is for the caller to compute."""
        if not self.block.payload:
            return False
        if self.own:
            return self.own.answer(key)
        if self.block.name == "leveldb":
            return leveldb_answer(self.block.payload, key)
        if self.block.name in ("rocksdb", "ribbon"):
            return rocksdb_answer(self.block.payload, rocksdb_hash)
        return True


def leveldb_answer(payload: bytes, key: bytes) -> bool:
    """The section on ``leveldb``."""
    if len(payload) < 2:
        return False
    probes, bits = payload[-1], 8 * (len(payload) - 1)
    if probes > 30:
        return True
    h = leveldb_hash(key)
    step = h // 2**17 + h * 2**15 % 2**32
    for _ in range(probes):
        if not payload[h % bits // 8] >> h % bits % 8 & 1:
            return False
        h = (h + step) % 2**32
    return True


def leveldb_hash(key: bytes) -> int:
    """LevelDB's hash under the seed of its Bloom filters."""
    h = (0xBC9F1D34 ^ len(key) * 0xC6A4A793) % 2**32
    whole = len(key) - len(key) % 4
    for start in range(0, whole, 4):
        h = (h + number(key, start, 4)) * 0xC6A4A793 % 2**32
        h ^= h >> 16
    if len(key) % 4:
        h = (h + number(key[whole:], 0, len(key) % 4)) * 0xC6A4A793 % 2**32
        h ^= h >> 24
    return h


def rocksdb_answer(payload: bytes, hash64: int) -> bool:
    """The section on ``rocksdb``: the form that is written; legacy ones are "maybe" here."""
    size = len(payload) - 5
    if size < 1:
        return False
    if payload[size] == 0xFE:
        return ribbon_answer(payload, hash64)
    probes = payload[size + 2]
    regular = payload[size] == 0xFF and payload[size + 1] == 0 and payload[size + 3 :] == b"\0\0"
    if not regular or not 1 <= probes <= 30 or size % 64:
        return True
    line, h = hash64 % 2**32 * (size // 64) // 2**32, hash64 // 2**32
    for _ in range(probes):
        bit = h >> 23
        if not payload[64 * line + bit // 8] >> bit % 8 & 1:
            return False
        h = h * 0x9E3779B9 % 2**32
    return True


def ribbon_answer(payload: bytes, hash64: int) -> bool:
    """The section on ``ribbon``."""
    size = len(payload) - 5
    seed, blocks = payload[size + 1], number(payload[size + 2 :], 0, 3)
    if blocks < 2 or size % 16:
        return True
    columns = min(32, -(-(size // 16) // blocks))
    narrow = max(0, columns * blocks - size // 16)
    mask = seed * 0xC78219A23EEADD03 % 2**64
    mask = (mask ^ (mask & 0xF0F0F0F0F0F0F0F0) >> 4) % 2**32
    g = (hash64 ^ mask) * 0x6193D459236A3A0D % 2**64
    start = g * (128 * blocks - 127) // 2**64
    a = g * 0xC28F82822B650BED % 2**64
    row = a * 2**64 + (a ^ 0xC367844A6E52731D | 1) << start % 128
    result = number(a.to_bytes(8, "big"), 0, 8) % 2**32
    block = start // 128
    first = block * columns - min(block, narrow)
    here = columns - (1 if block < narrow else 0)
    for i in range(here):
        slots = number(payload, 16 * (first + i), 16)
        if start % 128:
            slots += number(payload, 16 * (first + here + i), 16) << 128
        if bin(slots & row).count("1") % 2 != result >> i & 1:
            return False
    return True
