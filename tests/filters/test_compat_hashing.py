"""The foreign hashes, against published values, against each other and against today's XXH3."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xxhash import xxh3_64_intdigest

from filters.compat_hashing import MASK64, cassandra_hash, leveldb_hash, rocksdb_hash, xxph3_64

ISCSI_READ = bytes.fromhex(
    "01c00000000000000000000000000000140000000000040000000014000000182800000000000000"
    "0200000000000000"
)

LEVELDB = [
    (b"", 0xBC9F1D34, 0xBC9F1D34),
    (bytes.fromhex("62"), 0xBC9F1D34, 0xEF1345C4),
    (bytes.fromhex("c397"), 0xBC9F1D34, 0x5B663814),
    (bytes.fromhex("e299a5"), 0xBC9F1D34, 0x323C078F),
    (bytes.fromhex("e180b932"), 0xBC9F1D34, 0xED21633A),
    (ISCSI_READ, 0x12345678, 0xF333DABB),
]

# key, RocksDB's 32-bit hash, RocksDB's 64-bit hash
ROCKSDB = re.findall(
    r"(\S+) (\S{8}) (\S{16})",
    """
    - bc9f1d34 5342c3010fe1dd04       08 19305b64 08183d89d2d31fb8
    17 bcd62da6 e07b19004559c97f      9a be705aed e286ea6763a18b7f
    1c 9e0d7267 b825f8d8ee030227      4d76 91e7071c 5f31fddd12c1abc3
    52d5 e5bada89 4445f89fa698859f    91f7 01da0a98 c50e800cc9d2570f
    d627 6ba6c553 aa9867c5e87d9a53    30460b e2fcda65 9e45a19348d7e099
    56dcd6 809bdcd9 ac2517ff43ebc80d  d45233 66a385d5 dc0407ec02329452
    6ab5f4 932b8e46 ea0725adde303756  6753811c 070cdc01 7d0c4d555f46ec92
    69b8c088 cba0e293 5bc1c421db31dba7    1e84af2d c596f0b4 d4346f64595cd985
    46dc54be 1aa9f6b3 62077f5fde2228d7    d07a6eea56 fda4f17a 58991eb726e6628b
    8683d5a4d8 8e7db68a ea2deffe4061fa3b  b746bb77ce 7a1fd9df e948b15edcc23b66
    6ca8bce599 81d15084 11557a3378c2e99c
    """,
)

XXPH3 = [
    (b"a", 0x88D868BF607681C7),
    (b"abc", 0xD39EEB71BB5342E8),
    (b"abcd", 0x97A5BA1D02E8378C),
    (b"hello", 0xA0BBC238C97657B5),
    (b"world", 0x53DDD4026A11BD6C),
    (b"abcdefgh", 0x591716E1EA463467),
    (b"123456789", 0xAC4F8BA14FB14987),
    (b"abcdefghijklmnop", 0x01BEAA84A43D9C4F),
    (b"x" * 17, 0x61C637AB957E33D1),
    (b"x" * 128, 0x8DA4250337CA8697),
    (b"x" * 129, 0x47A889634586EA83),
    (b"x" * 240, 0x4796D5F2E54C1B92),
    (b"x" * 241, 0x9F0E6F7CBBCE9B3D),
    (b"x" * 1024, 0x5696C5FE02CD179A),
    (b"x" * 1025, 0x0AA1DABAF7CB9D81),
    (b"x" * 2048, 0x572237839BA581A1),
]


# key, h1, h2
CASSANDRA = re.findall(
    r"(\S+) (\S{16}) (\S{16})",
    """
    - 0000000000000000 0000000000000000
    61 85555565f6597889 e6b53a48510e895a
    68656c6c6f cbd8a7b341bd9b02 5b1e906a48ae1d19
    ff c25a08894c506b7f ac0bbee7ce7542c7
    ff80 7bb9bbe5dad655c0 b37e421763faa4aa
    808182838485868788 6bd59d24cd76dd53 c682c84323bbcfa2
    """,
)


@pytest.mark.parametrize(("data", "seed", "expected"), LEVELDB)
def test_leveldb_hash(data: bytes, seed: int, expected: int) -> None:
    assert leveldb_hash(data, seed) == expected


@pytest.mark.parametrize(
    ("key", "expected32", "expected64"),
    ROCKSDB,
)
def test_rocksdb_hashes(key: str, expected32: str, expected64: str) -> None:
    data = bytes.fromhex(key.removeprefix("-"))
    assert rocksdb_hash(data) == int(expected32, 16)
    assert xxph3_64(data) == int(expected64, 16)


@pytest.mark.parametrize(("data", "expected"), XXPH3)
def test_xxph3(data: bytes, expected: int) -> None:
    assert xxph3_64(data) == expected


@pytest.mark.parametrize(("key", "h1", "h2"), CASSANDRA)
def test_cassandra_hash(key: str, h1: str, h2: str) -> None:
    assert f"{cassandra_hash(bytes.fromhex(key.removeprefix('-'))):032x}" == h1 + h2


def standard_murmur(data: bytes) -> int:
    """MurmurHash3 x64 128 with seed 0, written once more: as its authors have it, unsigned."""

    def turned(x: int, by: int) -> int:
        return (x << by | x >> 64 - by) & MASK64

    def final(k: int) -> int:
        for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
            k = (k ^ k >> 33) * factor & MASK64
        return k ^ k >> 33

    c1, c2, h1, h2 = 0x87C37B91114253D5, 0x4CF5AD432745937F, 0, 0
    padded = data + bytes(-len(data) % 16)
    for at in range(0, len(padded), 16):
        k1 = int.from_bytes(padded[at : at + 8], "little")
        k2 = int.from_bytes(padded[at + 8 : at + 16], "little")
        h1 ^= turned(k1 * c1 & MASK64, 31) * c2 & MASK64
        if at + 16 <= len(data):
            h1 = (turned(h1, 27) + h2) * 5 + 0x52DCE729 & MASK64
        h2 ^= turned(k2 * c2 & MASK64, 33) * c1 & MASK64
        if at + 16 <= len(data):
            h2 = (turned(h2, 31) + h1) * 5 + 0x38495AB5 & MASK64
    h1, h2 = h1 ^ len(data), h2 ^ len(data)
    h1 = h1 + h2 & MASK64
    h2 = h2 + h1 & MASK64
    h1, h2 = final(h1), final(h2)
    h1 = h1 + h2 & MASK64
    return h1 << 64 | (h2 + h1 & MASK64)


def test_the_hash_that_cassandras_is_taken_for() -> None:
    assert standard_murmur(b"\xff") == 0x47DA3778_A4E290EC_FA2F1714_3880CE2E


@given(st.binary(max_size=70))
def test_cassandras_hash_is_murmurs_own_where_no_last_byte_has_a_sign(data: bytes) -> None:
    tail = data[len(data) // 16 * 16 :]
    ascii_tail = data[: len(data) - len(tail)] + bytes(byte & 0x7F for byte in tail)
    assert cassandra_hash(ascii_tail) == standard_murmur(ascii_tail)
    # The sign of the very last byte of a word is lost above it.
    signed = [byte > 127 for byte in tail]
    differs = any(signed[:7]) or any(signed[8:])
    assert (cassandra_hash(data) != standard_murmur(data)) == differs


@given(st.binary(max_size=70), st.integers(0, 2**32 - 1))
def test_the_32_bit_hashes_differ_only_by_tail_bytes_from_128_on(data: bytes, seed: int) -> None:
    tail = data[len(data) // 4 * 4 :]
    ascii_tail = data[: len(data) - len(tail)] + bytes(byte & 0x7F for byte in tail)
    assert leveldb_hash(ascii_tail, seed) == rocksdb_hash(ascii_tail, seed)
    assert 0 <= leveldb_hash(data, seed) < 2**32
    assert 0 <= rocksdb_hash(data, seed) < 2**32
    if len(tail) == 1 and tail != ascii_tail[-1:]:
        assert leveldb_hash(data, seed) != rocksdb_hash(data, seed)


def test_xxph3_is_todays_xxh3_but_for_the_last_multiplier(rng: random.Random) -> None:
    """So it is for 17 to 128 bytes: undone, the last step leaves the same number in both."""
    for length in range(17, 129):
        data = rng.randbytes(length)
        preview = _before_avalanche(xxph3_64(data), 0x1656_67B1_9E37_79F9)
        final = _before_avalanche(xxh3_64_intdigest(data), 0x1656_6791_9E37_79F9)
        assert preview == final, length


def _before_avalanche(h: int, multiplier: int) -> int:
    h ^= h >> 32
    h = h * pow(multiplier, -1, 1 << 64) & MASK64
    return h ^ h >> 37


def test_every_byte_counts_at_every_length(rng: random.Random) -> None:
    for length in (1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 33, 65, 97, 128, 129, 240, 241, 1023, 1100):
        data = bytearray(rng.randbytes(length))
        hashes = (leveldb_hash, rocksdb_hash, xxph3_64, cassandra_hash)
        before = [f(bytes(data)) for f in hashes]
        for place in {0, length // 3, length // 2, length - 1}:
            data[place] ^= 1
            after = [f(bytes(data)) for f in hashes]
            assert all(a != b for a, b in zip(after, before, strict=True)), (length, place)
            data[place] ^= 1
