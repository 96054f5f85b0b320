"""The hashes that foreign filter formats demand and no library has.

LevelDB and RocksDB share one 32-bit hash but for the last one to three bytes of a key: LevelDB adds
them as unsigned numbers, RocksDB as signed ones. RocksDB's 64-bit hash is a preview of XXH3, frozen
before XXH3 was final; for no key does it equal the XXH3 of today. Cassandra hashes with
MurmurHash3, but for the last one to fifteen bytes of a key, which it takes as signed numbers.
"""

from __future__ import annotations

from struct import unpack_from

MASK32 = 0xFFFF_FFFF
MASK64 = 0xFFFF_FFFF_FFFF_FFFF

# The seed under which both engines hash keys for their Bloom filters.
BLOOM_SEED = 0xBC9F_1D34

_MULTIPLIER = 0xC6A4_A793


def leveldb_hash(data: bytes, seed: int = BLOOM_SEED) -> int:
    """LevelDB's 32-bit hash of a key, under the seed of its Bloom filters."""
    words = len(data) >> 2
    tail = int.from_bytes(data[4 * words :], "little")
    return _hash32(data, words, tail, seed)


def rocksdb_hash(data: bytes, seed: int = BLOOM_SEED) -> int:
    """RocksDB's 32-bit hash, the one of its legacy filters."""
    words = len(data) >> 2
    tail = 0
    for place, byte in enumerate(data[4 * words :]):
        tail += (byte - 256 if byte > 127 else byte) << 8 * place
    return _hash32(data, words, tail, seed)


def _hash32(data: bytes, words: int, tail: int, seed: int) -> int:
    h = (seed ^ len(data) * _MULTIPLIER) & MASK32
    for word in unpack_from(f"<{words}I", data):
        h = (h + word) * _MULTIPLIER & MASK32
        h ^= h >> 16
    if len(data) & 3:
        h = (h + tail) * _MULTIPLIER & MASK32
        h ^= h >> 24
    return h


_P32_1, _P32_2, _P32_3 = 0x9E37_79B1, 0x85EB_CA77, 0xC2B2_AE3D
_P64_1, _P64_2, _P64_3 = 0x9E37_79B1_85EB_CA87, 0xC2B2_AE3D_27D4_EB4F, 0x1656_67B1_9E37_79F9
_P64_4, _P64_5 = 0x85EB_CA77_C2B2_AE63, 0x27D4_EB2F_1656_67C5

# The default secret, the same 192 bytes as in the final XXH3.
_SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671f"
    "cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c"
    "3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364"
    "eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e"
    "2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)

_STRIPE = 64
_BLOCK = 1024
_LANES = (_P32_3, _P64_1, _P64_2, _P64_3, _P64_4, _P32_2, _P64_5, _P32_1)


def _secret_words(start: int, count: int) -> tuple[int, ...]:
    words: tuple[int, ...] = unpack_from(f"<{count}Q", _SECRET, start)
    return words


_S0, _S8 = _secret_words(0, 2)
_S0_LOW = _S0 & MASK32
_HASH_OF_NOTHING = (_S0 * _P64_2 & MASK64) ^ (_S0 * _P64_2 >> 64)

# The secret as the pairs of words that 16-byte chunks are mixed with.
_PAIRS = tuple(_secret_words(start, 2) for start in range(0, 128, 16))
# From the ninth chunk on (keys of 129 to 240 bytes) the secret is read three bytes off.
_LATE_PAIRS = tuple(_secret_words(start + 3, 2) for start in range(0, 112, 16))
_LAST_PAIR = _secret_words(119, 2)

_STRIPE_SECRETS = tuple(_secret_words(8 * stripe, 8) for stripe in range(_BLOCK // _STRIPE))
_SCRAMBLE_SECRET = _secret_words(128, 8)
_LAST_STRIPE_SECRET = _secret_words(121, 8)
_MERGE_SECRET = _secret_words(11, 8)


def xxph3_64(data: bytes) -> int:
    """RocksDB's 64-bit hash of a key: XXH3 as of xxHash 0.7.2, unseeded."""
    size = len(data)
    if size <= 16:
        return _upto16(data, size)
    if size <= 128:
        return _upto128(data, size)
    if size <= 240:
        return _upto240(data, size)
    return _long(data, size)


def _upto16(data: bytes, size: int) -> int:
    if size > 8:
        low = int.from_bytes(data[:8], "little") ^ _S0
        high = int.from_bytes(data[-8:], "little") ^ _S8
        product = low * high
        return _avalanche(size + low + high + ((product & MASK64) ^ (product >> 64)))
    if size > 3:
        word = int.from_bytes(data[:4] + data[-4:], "little") ^ _S0
        mixed = size + (word ^ word >> 51) * _P32_1 & MASK64
        return _avalanche((mixed ^ mixed >> 47) * _P64_2)
    if size:
        word = data[0] | data[size >> 1] << 8 | data[-1] << 16 | size << 24
        return _avalanche((word ^ _S0_LOW) * _P64_1)
    return _HASH_OF_NOTHING


def _upto128(data: bytes, size: int) -> int:
    total = size * _P64_1
    # Chunks pair up from both ends towards the middle, where they may overlap.
    for pair in range((size + 31) // 32):
        front, back = 16 * pair, size - 16 * (pair + 1)
        total += _mix16(data, front, _PAIRS[2 * pair]) + _mix16(data, back, _PAIRS[2 * pair + 1])
    return _avalanche(total)


def _upto240(data: bytes, size: int) -> int:
    total = size * _P64_1
    for chunk in range(8):
        total += _mix16(data, 16 * chunk, _PAIRS[chunk])
    total = _avalanche(total)
    for chunk in range(8, size // 16):
        total += _mix16(data, 16 * chunk, _LATE_PAIRS[chunk - 8])
    return _avalanche(total + _mix16(data, size - 16, _LAST_PAIR))


def _long(data: bytes, size: int) -> int:
    lanes = list(_LANES)
    for block in range(0, size - size % _BLOCK, _BLOCK):
        for stripe, secret in enumerate(_STRIPE_SECRETS):
            _accumulate(lanes, data, block + _STRIPE * stripe, secret)
        for i, word in enumerate(_SCRAMBLE_SECRET):
            lanes[i] = (lanes[i] ^ lanes[i] >> 47 ^ word) * _P32_1 & MASK64
    rest = size - size % _BLOCK
    for stripe in range((size - rest) // _STRIPE):
        _accumulate(lanes, data, rest + _STRIPE * stripe, _STRIPE_SECRETS[stripe])
    if size % _STRIPE:
        _accumulate(lanes, data, size - _STRIPE, _LAST_STRIPE_SECRET)
    total = size * _P64_1
    for i in range(0, 8, 2):
        total += _fold(lanes[i] ^ _MERGE_SECRET[i], lanes[i + 1] ^ _MERGE_SECRET[i + 1])
    return _avalanche(total)


def _accumulate(lanes: list[int], data: bytes, start: int, secret: tuple[int, ...]) -> None:
    for i, value in enumerate(unpack_from("<8Q", data, start)):
        key = value ^ secret[i]
        lanes[i] = lanes[i] + value + (key & MASK32) * (key >> 32) & MASK64


def _mix16(data: bytes, start: int, secret: tuple[int, ...]) -> int:
    low, high = unpack_from("<2Q", data, start)
    return _fold(low ^ secret[0], high ^ secret[1])


def _fold(a: int, b: int) -> int:
    product = a * b
    return (product & MASK64) ^ (product >> 64)


def _avalanche(h: int) -> int:
    h &= MASK64
    h = (h ^ h >> 37) * _P64_3 & MASK64
    return h ^ h >> 32


_C1, _C2 = 0x87C3_7B91_1142_53D5, 0x4CF5_AD43_2745_937F


def cassandra_hash(data: bytes) -> int:
    """Cassandra's 128-bit hash of a key: MurmurHash3's ``h1`` above its ``h2``, 64 bits each.

    Java's bytes have a sign. A last byte above 127 also turns over every bit above its own, so that
    only keys whose last bytes are below 128, or whose size is a multiple of 16, have
    MurmurHash3's own hash.
    """
    blocks = len(data) >> 4
    h1 = h2 = 0
    words = unpack_from(f"<{2 * blocks}Q", data)
    for k1, k2 in zip(words[::2], words[1::2], strict=True):
        h1 = (_rotated(h1 ^ _scrambled1(k1), 27) + h2) * 5 + 0x52DC_E729 & MASK64
        h2 = (_rotated(h2 ^ _scrambled2(k2), 31) + h1) * 5 + 0x3849_5AB5 & MASK64
    tail = data[16 * blocks :]
    h1 ^= _scrambled1(_signed_word(tail[:8])) ^ len(data)
    h2 ^= _scrambled2(_signed_word(tail[8:])) ^ len(data)
    h1 = h1 + h2 & MASK64
    h2 = h2 + h1 & MASK64
    h1, h2 = mixed64(h1), mixed64(h2)
    h1 = h1 + h2 & MASK64
    return h1 << 64 | (h2 + h1 & MASK64)


def mixed64(h: int) -> int:
    """The finalizer of MurmurHash3's 64-bit words: a bijection in which every bit matters."""
    h = (h ^ h >> 33) * 0xFF51_AFD7_ED55_8CCD & MASK64
    h = (h ^ h >> 33) * 0xC4CE_B9FE_1A85_EC53 & MASK64
    return h ^ h >> 33


def _scrambled1(k: int) -> int:
    return _rotated(k * _C1 & MASK64, 31) * _C2 & MASK64


def _scrambled2(k: int) -> int:
    return _rotated(k * _C2 & MASK64, 33) * _C1 & MASK64


def _signed_word(tail: bytes) -> int:
    word = 0
    for place, byte in enumerate(tail):
        word ^= (byte - 256 if byte > 127 else byte) << 8 * place
    return word & MASK64


def _rotated(x: int, by: int) -> int:
    return (x << by | x >> 64 - by) & MASK64
