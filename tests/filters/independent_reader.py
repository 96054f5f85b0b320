"""A minimal reader of the families of our own, written from ``docs/family-formats.md`` alone.

It shares no line with ``filters`` and imports nothing from it: where the two disagree, the page or
the code is wrong. It is plain on purpose and slow.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from xxhash import xxh3_64_intdigest

FAMILIES = {
    1: "classic",
    2: "counting",
    3: "cuckoo",
    4: "blocked",
    5: "binary-fuse",
    6: "bumped-ribbon",
    7: "xor",
    8: "scalable",
    9: "grafite",
    10: "surf",
}


class RefusedError(Exception):
    """These bytes are no filter that this reader may answer from."""


class UnknownVersionError(RefusedError):
    """The bytes are intact; their version is not 1."""


def number(data: bytes, offset: int, width: int) -> int:
    """The little-endian integer of ``width`` bytes at ``offset``."""
    return sum(data[offset + index] << 8 * index for index in range(width))


def lo64(value: int) -> int:
    """The low 64 bits of a 128-bit number."""
    return value % 2**64


def hi64(value: int) -> int:
    """The high 64 bits of a 128-bit number."""
    return value // 2**64


def fold(value: int, multiplier: int) -> int:
    """Both halves of a product, xored."""
    return lo64(value * multiplier) ^ hi64(value * multiplier)


def key_digest(key: bytes, seed: int) -> int:
    """XXH3-64 under a seed."""
    return int(xxh3_64_intdigest(key, seed))


def mix(digest: int, salt: int) -> int:
    """The salted digest."""
    return fold(digest ^ salt, 0x9E3779B97F4A7C15)


def bits_at(payload: bytes, start: int, count: int) -> int:
    """``count`` bits from bit ``start`` on, read one by one."""
    return sum(
        (payload[bit // 8] >> bit % 8 & 1) << index
        for index, bit in enumerate(range(start, start + count))
    )


@dataclass(frozen=True)
class Frame:
    """The fixed fields and the payload, validated as far as all families agree."""

    family: str
    parameter: int
    num_keys: int
    size: int
    seed: int
    salt: int
    payload: bytes


def open_frame(data: bytes) -> Frame:
    """Steps 1 to 6 of the order of validation."""
    if len(data) < 48:
        raise RefusedError("short")
    if data[:4] != b"LSFB":
        raise RefusedError("magic")
    if xxh3_64_intdigest(data[:-8], 0) != number(data, len(data) - 8, 8):
        raise RefusedError("checksum")
    if data[5] != 1:
        raise UnknownVersionError(data[5])
    if data[4] not in FAMILIES:
        raise RefusedError("family")
    num_keys = number(data, 8, 8)
    if data[6] != (1 if num_keys == 0 else 0):
        raise RefusedError("flags")
    if num_keys > 2**60:
        raise RefusedError("num_keys")
    return Frame(
        family=FAMILIES[data[4]],
        parameter=data[7],
        num_keys=num_keys,
        size=number(data, 16, 8),
        seed=number(data, 24, 8),
        salt=number(data, 32, 8),
        payload=data[40:-8],
    )


class Reader:
    """A filter that was accepted."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self.validate()

    def salted(self, key: bytes) -> int:
        """The salted digest of a key."""
        return mix(key_digest(key, self.frame.seed), self.frame.salt)

    def answer(self, key: bytes) -> bool:
        """True is "maybe", False is "no"."""
        return self.answer_salted(self.salted(key))

    def require_limits(self, sizes: tuple[int, int], parameters: tuple[int, int]) -> None:
        """Step 7."""
        if not sizes[0] <= self.frame.size <= sizes[1]:
            raise RefusedError("size")
        if not parameters[0] <= self.frame.parameter <= parameters[1]:
            raise RefusedError("parameter")

    def require_payload(self, bits: int) -> None:
        """Step 8."""
        if len(self.frame.payload) != (bits + 7) // 8:
            raise RefusedError("payload length")
        if bits_at(self.frame.payload, bits, -bits % 8):
            raise RefusedError("unused bits")

    def validate(self) -> None:
        """Steps 7 to 9, which the families differ in."""
        raise NotImplementedError

    def answer_salted(self, salted: int) -> bool:
        """The answer for a salted digest."""
        raise NotImplementedError


class Classic(Reader):
    """Family 1."""

    def validate(self) -> None:
        self.require_limits((64, 2**40), (1, 64))
        self.require_payload(self.frame.size)

    def positions(self, salted: int) -> list[int]:
        """Where the probes fall."""
        found = []
        for _ in range(self.frame.parameter):
            found.append(hi64(salted * self.frame.size))
            salted = fold(salted, 0xC13FA9A902A6328F)
        return found

    def answer_salted(self, salted: int) -> bool:
        return all(bits_at(self.frame.payload, each, 1) for each in self.positions(salted))


class Counting(Classic):
    """Family 2."""

    def validate(self) -> None:
        self.require_limits((64, 2**40), (1, 64))
        self.require_payload(4 * self.frame.size)

    def counter(self, position: int) -> int:
        """The count at a position."""
        byte = self.frame.payload[position // 2]
        return byte // 16 if position % 2 else byte % 16

    def answer_salted(self, salted: int) -> bool:
        return all(self.counter(each) for each in self.positions(salted))


class Cuckoo(Reader):
    """Family 3."""

    def validate(self) -> None:
        self.require_limits((1, 2**36), (6, 32))
        self.require_payload(4 * self.frame.size * self.frame.parameter)
        if self.frame.num_keys > 4 * self.frame.size:
            raise RefusedError("more keys than slots")

    def candidates(self, salted: int) -> tuple[int, int, int]:
        """The fingerprint and its two buckets."""
        buckets = self.frame.size
        fingerprint = 1 + (salted % 2**32 * (2**self.frame.parameter - 1) >> 32)
        one = hi64(salted * buckets)
        reflection = hi64(mix(fingerprint, self.frame.salt) * buckets)
        other = reflection - one if reflection >= one else reflection + buckets - one
        return fingerprint, one, other

    def slots(self, bucket: int) -> list[int]:
        """The four slots of a bucket."""
        width = self.frame.parameter
        first = 4 * bucket * width
        return [bits_at(self.frame.payload, first + slot * width, width) for slot in range(4)]

    def answer_salted(self, salted: int) -> bool:
        fingerprint, one, other = self.candidates(salted)
        return fingerprint in self.slots(one) or fingerprint in self.slots(other)


class Blocked(Reader):
    """Family 4."""

    def validate(self) -> None:
        self.require_limits((1, 2**31), (1, 32))
        self.require_payload(512 * self.frame.size)

    def line_and_bits(self, salted: int) -> tuple[int, list[int]]:
        """The key's line, and its bits in there."""
        probe, bits = salted % 2**32, []
        for _ in range(self.frame.parameter):
            bits.append(probe >> 23)
            probe = probe * 0x9E3779B9 % 2**32
        return hi64(salted * self.frame.size), bits

    def answer_salted(self, salted: int) -> bool:
        line, bits = self.line_and_bits(salted)
        return all(bits_at(self.frame.payload, 512 * line + bit, 1) for bit in bits)


@dataclass(frozen=True)
class Shard:
    """One row of the directory, and where its slots start in the payload."""

    seed: int
    length: int
    count: int
    slots: int
    start: int


class Sharded(Reader):
    """What families 5 and 7 have in common."""

    ROW: int

    def row(self, offset: int) -> tuple[int, int, int]:
        """Length, count and number of slots, from the row at an offset."""
        raise NotImplementedError

    def slots(self, shard: Shard, value: int) -> list[int]:
        """The three slots of a hash."""
        raise NotImplementedError

    def validate(self) -> None:
        self.require_limits((1, 2**20), (8, 16))
        shards, payload = self.frame.size, self.frame.payload
        if self.frame.parameter not in (8, 16):
            raise RefusedError("parameter")
        if shards & (shards - 1):
            raise RefusedError("size")
        if len(payload) < self.ROW * shards:
            raise RefusedError("directory")
        self.shards = []
        start = self.ROW * shards
        for row in range(0, self.ROW * shards, self.ROW):
            self.shards.append(Shard(number(payload, row, 8), *self.row(row), start))
            start += self.shards[-1].slots * self.frame.parameter // 8
            if start > len(payload):
                raise RefusedError("shard beyond the payload")
        if start != len(payload):
            raise RefusedError("bytes behind the last shard")
        if self.frame.num_keys > sum(each.slots for each in self.shards):
            raise RefusedError("more keys than slots")

    def places(self, salted: int) -> tuple[int, int, list[int], int]:
        """Shard, hash, the three slots and the fingerprint."""
        bits = self.frame.size.bit_length() - 1
        index = salted >> (64 - bits) if bits else 0
        shard = self.shards[index]
        value = lo64(salted + shard.seed)
        value = lo64((value ^ value >> 33) * 0xFF51AFD7ED558CCD)
        value = lo64((value ^ value >> 33) * 0xC4CEB9FE1A85EC53)
        value ^= value >> 33
        fingerprint = (value ^ value >> 32) % 2**self.frame.parameter
        return index, value, self.slots(shard, value), fingerprint

    def slot(self, shard: int, slot: int) -> int:
        """The value in a slot."""
        width = self.frame.parameter // 8
        return number(self.frame.payload, self.shards[shard].start + slot * width, width)

    def answer_salted(self, salted: int) -> bool:
        if self.frame.num_keys == 0:
            return False
        shard, _, slots, fingerprint = self.places(salted)
        found = 0
        for slot in slots:
            found ^= self.slot(shard, slot)
        return found == fingerprint


@dataclass(frozen=True)
class Slice:
    """One row of the directory, and where its bits start in the payload."""

    bits: int
    probes: int
    start: int


class Scalable(Reader):
    """Family 8."""

    def validate(self) -> None:
        self.require_limits((1, 64), (2, 4))
        payload = self.frame.payload
        if self.frame.parameter == 3:
            raise RefusedError("parameter")
        start = 24 + 16 * self.frame.size
        if len(payload) < start:
            raise RefusedError("directory")
        fpr, tightening = struct.unpack("<dd", payload[8:24])
        if not 1 <= number(payload, 0, 8) <= 2**40:
            raise RefusedError("capacity")
        if not 1e-9 <= fpr <= 0.5:
            raise RefusedError("fpr")
        if not 0.5 <= tightening <= 0.95:
            raise RefusedError("tightening")
        self.slices = []
        for row in range(24, start, 16):
            bits, probes = number(payload, row, 8), number(payload, row + 8, 8)
            if not 64 <= bits <= 2**40 or bits % 8:
                raise RefusedError("bits of a slice")
            if not 1 <= probes <= 64:
                raise RefusedError("probes of a slice")
            self.slices.append(Slice(bits, probes, start))
            start += bits // 8
            if start > len(payload):
                raise RefusedError("slice beyond the payload")
        if start != len(payload):
            raise RefusedError("bytes behind the last slice")

    def positions(self, digest: int) -> list[list[int]]:
        """Where the probes fall in each slice."""
        found = []
        salt = self.frame.salt
        for each in self.slices:
            salted = mix(digest, salt)
            places = []
            for _ in range(each.probes):
                places.append(hi64(salted * each.bits))
                salted = fold(salted, 0xC13FA9A902A6328F)
            found.append(places)
            salt = mix(lo64(salt + 1), 0)
        return found

    def answer(self, key: bytes) -> bool:
        in_slices = self.positions(key_digest(key, self.frame.seed))
        return any(
            all(bits_at(self.frame.payload, 8 * each.start + place, 1) for place in places)
            for each, places in zip(self.slices, in_slices, strict=True)
        )


class BinaryFuse(Sharded):
    """Family 5."""

    ROW = 16

    def row(self, offset: int) -> tuple[int, int, int]:
        length = number(self.frame.payload, offset + 8, 4)
        count = number(self.frame.payload, offset + 12, 4)
        if not 4 <= length <= 2**18 or length & (length - 1):
            raise RefusedError("segment length")
        if count < 1:
            raise RefusedError("segment count")
        return length, count, (count + 2) * length

    def slots(self, shard: Shard, value: int) -> list[int]:
        first = hi64(value * (shard.count * shard.length))
        return [
            first,
            (first + shard.length) ^ ((value >> 18) % shard.length),
            (first + 2 * shard.length) ^ (value % shard.length),
        ]


class Xor(Sharded):
    """Family 7."""

    ROW = 12

    def row(self, offset: int) -> tuple[int, int, int]:
        length = number(self.frame.payload, offset + 8, 4)
        if length < 1:
            raise RefusedError("block length")
        return length, 3, 3 * length

    def slots(self, shard: Shard, value: int) -> list[int]:
        turned = [value, lo64(value * 2**21) + value // 2**43, lo64(value * 2**42) + value // 2**22]
        return [block * shard.length + hi64(turned[block] * shard.length) for block in range(3)]


@dataclass(frozen=True)
class Layer:
    """One layer: its blocks, and how many blocks and buckets come before it."""

    blocks: int
    first_block: int
    first_bucket: int


class BumpedRibbon(Reader):
    """Family 6."""

    def validate(self) -> None:
        self.require_limits((0, 2**64), (1, 32))
        payload = self.frame.payload
        count = number(payload, 0, 4) if len(payload) >= 8 else 9
        if count > 8 or len(payload) < 4 + 4 * count:
            raise RefusedError("layers")
        self.layers = []
        blocks = buckets = 0
        for index in range(count):
            each = number(payload, 4 + 4 * index, 4)
            if each < 2:
                raise RefusedError("blocks")
            self.layers.append(Layer(each, blocks, buckets))
            blocks, buckets = blocks + each, buckets + each // 2
        self.codes_start = 4 + 4 * count
        self.words_start = -(-(self.codes_start + -(-buckets // 4)) // 8) * 8
        if self.words_start > len(payload):
            raise RefusedError("codes")
        codes_end = 8 * self.codes_start + 2 * buckets
        if bits_at(payload, codes_end, 8 * self.words_start - codes_end):
            raise RefusedError("unused bits")
        self.require_columns(blocks)
        self.require_hashes(blocks)

    def require_columns(self, blocks: int) -> None:
        """As many words as blocks of one or two widths have."""
        narrow = self.frame.parameter
        wide = self.frame.size - blocks * narrow
        if wide < 0 or (wide and (wide >= blocks or narrow == 32)):
            raise RefusedError("size")
        self.narrow_blocks = blocks - wide

    def require_hashes(self, blocks: int) -> None:
        """The rest of the payload, ascending, and as many keys as can be in."""
        payload, start = self.frame.payload, self.words_start + 8 * self.frame.size
        if start > len(payload) or (len(payload) - start) % 8:
            raise RefusedError("payload length")
        self.hashes = [number(payload, at, 8) for at in range(start, len(payload), 8)]
        if self.hashes != sorted(set(self.hashes)):
            raise RefusedError("hashes")
        if not 0 <= self.frame.num_keys - len(self.hashes) <= 64 * blocks:
            raise RefusedError("keys")

    def step(self, value: int) -> int:
        """The next hash."""
        value = lo64(value + 0x9E3779B97F4A7C15)
        value = lo64((value ^ value >> 33) * 0xFF51AFD7ED558CCD)
        value = lo64((value ^ value >> 33) * 0xC4CEB9FE1A85EC53)
        return value ^ value >> 33

    def place(self, salted: int) -> tuple[int, int, int]:
        """The hash that counts, its layer and its start there; behind the last layer, -1."""
        value = self.step(salted)
        for index, layer in enumerate(self.layers):
            start = hi64(value * 64 * (layer.blocks - 1))
            bucket = layer.first_bucket + start // 128
            code = bits_at(self.frame.payload, 8 * self.codes_start + 2 * bucket, 2)
            if start % 128 >= (0, 14, 32, 128)[code]:
                return value, index, start
            value = self.step(value)
        return value, len(self.layers), -1

    def column(self, value: int, index: int, start: int) -> tuple[list[int], list[int]]:
        """In each column, what the slots xor to and what the hash expects."""
        block = self.layers[index].first_block + start // 64
        count = self.frame.parameter + (1 if block >= self.narrow_blocks else 0)
        first = block * self.frame.parameter + max(0, block - self.narrow_blocks)
        asked = fold(value, 0xC13FA9A902A6328F) | 1
        expected = lo64(value * 0xD6E8FEB86659FD93) >> 32
        found = []
        for column in range(count):
            one, two = (
                number(self.frame.payload, self.words_start + 8 * word, 8)
                for word in (first + column, first + count + column)
            )
            slots = (one + two * 2**64) >> start % 64
            found.append(bin(slots % 2**64 & asked).count("1") % 2)
        return found, [expected >> column & 1 for column in range(count)]

    def answer_salted(self, salted: int) -> bool:
        value, index, start = self.place(salted)
        if start < 0:
            return value in self.hashes
        found, expected = self.column(value, index, start)
        return found == expected


class Grafite(Reader):
    """Family 9."""

    def validate(self) -> None:
        self.require_limits((1, 2**63), (0, 63))
        payload, universe, self.low_bits = self.frame.payload, self.frame.size, self.frame.parameter
        if len(payload) < 13:
            raise RefusedError("fixed fields")
        self.count, self.width = number(payload, 0, 8), payload[12]
        if self.width > 8:
            raise RefusedError("width")
        if self.count > self.frame.num_keys or self.count > universe:
            raise RefusedError("more codes than there can be")
        if (self.count == 0) != (self.frame.num_keys == 0):
            raise RefusedError("keys without codes")
        buckets = (universe - 1) // 2**self.low_bits + 1
        prefix_end = 13 + number(payload, 8, 4)
        high_start = prefix_end + (self.count * self.low_bits + 7) // 8
        if len(payload) != high_start + (self.count + buckets + 7) // 8:
            raise RefusedError("payload length")
        self.prefix = payload[13:prefix_end]
        self.low_start, low_end = 8 * prefix_end, 8 * prefix_end + self.count * self.low_bits
        if bits_at(payload, low_end, 8 * high_start - low_end):
            raise RefusedError("unused bits")
        high_end = 8 * high_start + self.count + buckets
        if bits_at(payload, high_end - 1, 8 * len(payload) - high_end + 1):
            raise RefusedError("unused bits")
        self.ends, ones = [], 0
        for bit in range(8 * high_start, high_end):
            if bits_at(payload, bit, 1):
                ones += 1
            else:
                self.ends.append(ones)
        if ones != self.count:
            raise RefusedError("codes of all buckets")

    def number_of(self, key: bytes) -> int:
        """The number of a key that begins with the prefix."""
        behind = key[len(self.prefix) :][: self.width]
        return int.from_bytes(behind + bytes(self.width - len(behind)), "big")

    def code(self, x: int) -> int:
        """The code of a number."""
        salt = self.frame.salt.to_bytes(8, "little")
        m = [key_digest(salt + bytes([index]), self.frame.seed) for index in range(4)]
        block, place = divmod(x, self.frame.size)
        shift = ((m[0] * 2**64 + m[1]) * block + m[2] * 2**64 + m[3]) % 2**128 // 2**64
        return (hi64(shift * self.frame.size) + place) % self.frame.size

    def low(self, index: int) -> int:
        """The lowest bits of a code."""
        return bits_at(self.frame.payload, self.low_start + index * self.low_bits, self.low_bits)

    def bucket(self, index: int) -> tuple[int, int]:
        """The first code of a bucket, and the first behind it."""
        return self.ends[index - 1] if index else 0, self.ends[index]

    def has_code(self, first: int, last: int) -> bool:
        """Whether a code lies between the two."""
        (one, first_low), (other, last_low) = (
            divmod(each, 2**self.low_bits) for each in (first, last)
        )
        start, end = self.bucket(one)
        if one == other:
            while start < end:
                middle = (start + end) // 2
                if self.low(middle) < first_low:
                    start = middle + 1
                else:
                    end = middle
            return start < self.bucket(one)[1] and self.low(start) <= last_low
        if start < end and self.low(end - 1) >= first_low:
            return True
        if self.bucket(other)[0] > end:
            return True
        start, end = self.bucket(other)
        return start < end and self.low(start) <= last_low

    def answer(self, key: bytes) -> bool:
        if key[: len(self.prefix)] != self.prefix:
            return False
        code = self.code(self.number_of(key))
        return self.has_code(code, code)

    def answer_range(self, low: bytes, high: bytes) -> bool:
        """The answer for the keys from ``low`` up to, but without, ``high``."""
        if low >= high or high <= self.prefix:
            return False
        first, last = 0, 256**self.width - 1
        if low > self.prefix:
            if low[: len(self.prefix)] != self.prefix:
                return False
            first = self.number_of(low)
        if high[: len(self.prefix)] == self.prefix:
            last = self.number_of(high)
            if len(high) <= len(self.prefix) + self.width and high[-1]:
                last -= 1
        if first > last:
            return False
        size = self.frame.size
        if last - first >= size:
            return self.count > 0
        pieces = [(first, last)]
        if first // size < last // size:
            pieces = [(first, last - last % size - 1), (last - last % size, last)]
        for begin, end in pieces:
            one, other = self.code(begin), self.code(end)
            if one <= other:
                if self.has_code(one, other):
                    return True
            elif self.has_code(one, size - 1) or self.has_code(0, other):
                return True
        return False


class Surf(Reader):
    """Family 10."""

    def validate(self) -> None:
        self.require_limits((0, 2**32 - 2), (0, 32))
        payload, edges = self.frame.payload, self.frame.size
        if len(payload) < 8:
            raise RefusedError("payload length")
        nodes, self.real_bits = number(payload, 0, 4), number(payload, 4, 4)
        self.width = self.frame.parameter + self.real_bits
        if self.width > 32:
            raise RefusedError("suffix")
        if not (1 <= nodes <= edges if edges else nodes == min(1, self.frame.num_keys)):
            raise RefusedError("nodes")
        rows, starts = [edges, edges, nodes], [8]
        for bits in rows:
            starts.append(starts[-1] + (bits + 63) // 64 * 8)
        self.labels_start = starts[3]
        self.suffixes_start = self.labels_start + edges
        self.require_payload(8 * self.suffixes_start + (edges - max(0, nodes - 1)) * self.width)
        for bits, start, stop in zip(rows, starts, starts[1:], strict=False):
            if bits_at(payload, 8 * start + bits, 8 * (stop - start) - bits):
                raise RefusedError("unused bits")
        self.read_trie(nodes, edges, starts)

    def read_trie(self, nodes: int, edges: int, starts: list[int]) -> None:
        """What each node stands for, whether a key ends there, and what its edges lead to."""
        self.strings = [b""] * min(1, nodes)
        self.edges: list[dict[int, tuple[bool, int]]] = []
        self.leaves: list[tuple[bytes, int]] = []
        for edge in range(edges):
            label = self.frame.payload[self.labels_start + edge]
            if bits_at(self.frame.payload, 8 * starts[1] + edge, 1):
                self.edges.append({})
                if len(self.edges) > len(self.strings):
                    raise RefusedError("a node before the edge that leads to it")
            elif not self.edges:
                raise RefusedError("no first edge")
            elif label <= max(self.edges[-1]):
                raise RefusedError("labels")
            string = self.strings[len(self.edges) - 1] + bytes([label])
            leads_on = bool(bits_at(self.frame.payload, 8 * starts[0] + edge, 1))
            known = self.strings if leads_on else self.leaves
            self.edges[-1][label] = leads_on, len(known)
            if leads_on:
                self.strings.append(string)
            else:
                self.leaves.append((string, self.suffix(len(self.leaves))))
        if len(self.strings) != nodes or (edges and len(self.edges) != nodes):
            raise RefusedError("number of nodes")
        self.ends = [bits_at(self.frame.payload, 8 * starts[2] + node, 1) for node in range(nodes)]
        if sum(self.ends) + len(self.leaves) != self.frame.num_keys:
            raise RefusedError("number of keys")

    def suffix(self, leaf: int) -> int:
        """What is kept of a key."""
        start = 8 * self.suffixes_start + leaf * self.width
        if start + self.width > 8 * len(self.frame.payload):
            raise RefusedError("more leaves than suffixes")
        return bits_at(self.frame.payload, start, self.width)

    def real(self, key: bytes, depth: int) -> int:
        """The bits of a key behind so many bytes."""
        bits = "".join(f"{byte:08b}" for byte in key[depth : depth + 4])
        return int("0" + bits.ljust(32, "0")[: self.real_bits], 2)

    def suffix_of(self, key: bytes, depth: int) -> int:
        """What is kept of a key, or would be."""
        hashed = self.salted(key) >> 64 - self.frame.parameter
        return hashed + self.real(key, depth) * 2**self.frame.parameter

    def answer(self, key: bytes) -> bool:
        if self.frame.num_keys == 0:
            return False
        node = 0
        for depth, label in enumerate(key):
            edges = self.edges[node] if self.edges else {}
            if label not in edges:
                return False
            leads_on, place = edges[label]
            if not leads_on:
                return self.leaves[place][1] == self.suffix_of(key, depth + 1)
            node = place
        return bool(self.ends[node])

    def answer_range(self, low: bytes | None, high: bytes | None) -> bool:
        """True is "maybe", False is "no"."""
        if low is not None and high is not None and low >= high:
            return False
        for string, ends in zip(self.strings, self.ends, strict=True):
            if ends and (low or b"") <= string and (high is None or string < high):
                return True
        return any(self.is_open(*leaf, low, high) for leaf in self.leaves)

    def is_open(self, string: bytes, suffix: int, low: bytes | None, high: bytes | None) -> bool:
        """Whether the key of a leaf may be in a range."""
        value, size = suffix >> self.frame.parameter, len(string)
        if low is not None and (
            string < low[:size] or (string == low[:size] and value < self.real(low, size))
        ):
            return False
        if high is None or string < high[:size]:
            return True
        return string == high[:size] and string != high and value <= self.real(high, size)


READERS: dict[str, type[Reader]] = {
    "classic": Classic,
    "counting": Counting,
    "cuckoo": Cuckoo,
    "blocked": Blocked,
    "binary-fuse": BinaryFuse,
    "scalable": Scalable,
    "xor": Xor,
    "bumped-ribbon": BumpedRibbon,
    "grafite": Grafite,
    "surf": Surf,
}


def read(data: bytes) -> Reader:
    """The reader for a filter of any of these families; RefusedError where there is none."""
    frame = open_frame(data)
    return READERS[frame.family](frame)
