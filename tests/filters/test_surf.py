"""The SuRF filter: against a model of what it keeps of keys, and against what forgers write."""

from __future__ import annotations

import bisect
import inspect
import itertools
import math
import pickle
import random
import struct
from array import array
from types import ModuleType
from typing import Any

import pytest

from filters import CorruptFilterError, FilterError, PackedKeys, sizing, surf
from filters.families import KEY_FAMILIES
from filters.hashing import digest, mix
from tests.effort import by_effort, once, volume
from tests.filters import independent_reader
from tests.filters.cases import needs_native, outcome, random_keys, twins
from tests.filters.test_damage import forged, signed

SEED, SALT = 0x0123_4567_89AB_CDEF, 0xFEDC_BA98_7654_3210
SECRETS = {"seed": SEED, "salt": SALT}
KEYS = [b"key%d" % number for number in range(40)]

LETTERS = (b"\0", b"a", b"\xff")
POOL = [b"".join(word) for size in range(5) for word in itertools.product(LETTERS, repeat=size)]

SIZES: list[dict[str, Any]] = [
    {},
    {"suffix_bits": 0},
    {"suffix_bits": 7, "suffix": "real"},
    {"suffix_bits": 32, "suffix": "real"},
    {"suffix_bits": 5, "suffix": "hash"},
    {"suffix_bits": 32},
    {"bits_per_key": 24},
    {"fpr": 0.1},
]
every_size = pytest.mark.parametrize("size", SIZES, ids=str)


def cls_of(kernel: ModuleType) -> Any:
    return KEY_FAMILIES["surf"].filter_class(kernel.__name__.rpartition(".")[2])


def build(kernel: ModuleType, keys: Any, **size: Any) -> Any:
    return cls_of(kernel).build(keys, **{**SECRETS, **size})


# ---- a model: what is kept of each key, and which keys that leaves open ----


class Model:
    """The beginnings of keys and their suffixes, in a list that is looked through."""

    def __init__(self, keys: list[bytes], hash_bits: int, real_bits: int):
        self.keys = sorted(set(keys))
        self.hash_bits, self.real_bits = hash_bits, real_bits
        self.whole: set[bytes] = set()
        self.begun: dict[bytes, tuple[int, int]] = {}
        for key in self.keys:
            others = [other for other in self.keys if other != key]
            if any(other.startswith(key) for other in others):
                self.whole.add(key)
                continue
            taken = next(
                size
                for size in range(len(key) + 1)
                if (size or not key) and not any(other[:size] == key[:size] for other in others)
            )
            if not key:
                self.whole.add(key)
            else:
                taken = max(1, taken)
                self.begun[key[:taken]] = (self.hash_of(key), self.real_of(key, taken))

    def hash_of(self, key: bytes) -> int:
        return mix(digest(key, SEED), SALT) >> 64 - self.hash_bits if self.hash_bits else 0

    def real_of(self, key: bytes, taken: int) -> int:
        bits = "".join(f"{byte:08b}" for byte in key[taken:])[: self.real_bits]
        return int(bits.ljust(self.real_bits, "0") or "0", 2)

    def might_contain(self, key: bytes) -> bool:
        return key in self.whole or any(
            kept == (self.hash_of(key), self.real_of(key, len(begin)))
            for begin, kept in self.begun.items()
            if key.startswith(begin)
        )

    def may_contain_range(self, low: bytes | None, high: bytes | None) -> bool:
        low = low or b""
        if high is not None and low >= high:
            return False
        return any(low <= key and (high is None or key < high) for key in self.whole) or any(
            self.is_open(begin, real, low, high) for begin, (_, real) in self.begun.items()
        )

    def is_open(self, begin: bytes, real: int, low: bytes, high: bytes | None) -> bool:
        size = len(begin)
        if (begin, real) < (low[:size], self.real_of(low, size)):
            return False
        if high is None:
            return True
        return begin != high and (begin, real) <= (high[:size], self.real_of(high, size))


@every_size
def test_it_answers_what_it_keeps_and_no_key_or_range_of_one_is_denied(
    kernel: ModuleType, size: dict[str, Any], rng: random.Random
) -> None:
    ends: list[bytes | None] = [None, *POOL]
    for round_ in range(volume(kernel, 12, 60, 400)):
        keys = rng.sample(POOL, rng.randrange(min(len(POOL), 2 + 2 * round_)))
        built = build(kernel, keys + keys[:3], **size)
        model = Model(keys, built.hash_bits, built.real_bits)
        assert built.num_keys == len(keys)
        assert all(built.might_contain(key) for key in keys)
        assert built.might_contain_many(POOL) == [model.might_contain(key) for key in POOL]
        for _ in range(200):
            low, high = rng.choice(ends), rng.choice(ends)
            answer = built.may_contain_range(low, high)
            assert answer is model.may_contain_range(low, high), (keys, low, high)
            within = any((low or b"") <= key and (high is None or key < high) for key in keys)
            assert answer or not within


@every_size
def test_longer_keys_and_ranges_around_them(
    kernel: ModuleType, size: dict[str, Any], rng: random.Random
) -> None:
    for _ in range(volume(kernel, 3, 10, 100)):
        keys = [rng.choice(POOL) * rng.randrange(4) + rng.choice(POOL) for _ in range(60)]
        built = build(kernel, keys, **size)
        model = Model(keys, built.hash_bits, built.real_bits)
        near = [key + rng.choice(POOL) for key in keys] + [key[:-1] for key in keys] + keys
        for key in near:
            assert built.might_contain(key) is model.might_contain(key)
            for low, high in ((key, key + b"\0"), (key + b"\0", key + b"\xff"), (key, None)):
                assert built.may_contain_range(low, high) is model.may_contain_range(low, high)
            assert built.may_contain_range(None, key) is model.may_contain_range(None, key)


@pytest.mark.parametrize(
    "keys",
    [
        [],
        [b""],
        [b"", b"\0"],
        [b"\0" * length for length in range(71)],
        [b"\xff" * length for length in range(1, 71)],
        [b"a"],
        [b"\xff" * 9, b"\xff" * 9 + b"\0"],
        [bytes([byte]) for byte in range(256)],
        [bytes([byte, byte]) for byte in range(256)] + [bytes([byte]) for byte in range(256)],
    ],
    ids=lambda keys: f"{len(keys)} keys",
)
def test_sets_at_the_edge(kernel: ModuleType, keys: list[bytes]) -> None:
    for size in SIZES:
        built = build(kernel, keys, **size)
        again = cls_of(kernel).from_bytes(built.to_bytes())
        model = Model(keys, built.hash_bits, built.real_bits)
        asked = [*keys, b"", b"\0", b"\xff" * 100, b"a\0"]
        assert again.might_contain_many(asked) == [model.might_contain(key) for key in asked]
        for low, high in itertools.product([None, *asked[-30:]], repeat=2):
            assert again.may_contain_range(low, high) is model.may_contain_range(low, high)


def test_a_beginning_of_64_kilobytes_is_walked_and_not_recursed(kernel: ModuleType) -> None:
    common = b"\xff" * 65_535
    built = build(kernel, [common + b"a", common + b"b", common])
    assert built.num_nodes == 65_536
    assert built.might_contain_many([common, common + b"a", common + b"c"]) == [True, True, False]
    assert not built.may_contain_range(common + b"c", None)
    assert not built.may_contain_range(None, common)
    assert built.may_contain_range(common, common + b"\0")


# ---- the shape that all families have ----


def test_keys_come_in_any_order_and_form_and_as_often_as_they_like(
    kernel: ModuleType, rng: random.Random
) -> None:
    keys = random_keys(rng, 300, length=5)
    expected = build(kernel, keys)
    for given in (keys[::-1], keys * 2, iter(rng.sample(keys, 300)), tuple(keys)):
        assert build(kernel, given) == expected
    assert build(kernel, PackedKeys(b"".join(keys), width=5)) == expected
    assert build(kernel, [bytearray(key) for key in keys]) == expected
    numbers = array("Q", [1, 2])
    built = build(kernel, [memoryview(b"a.b.")[::2], numbers])
    assert built.might_contain_many([b"ab", numbers, bytearray(b"ab")]) == [True, True, True]
    assert built.may_contain_range(memoryview(b"ab"), bytearray(b"ac"))
    with pytest.raises(TypeError, match="a single key in a list"):
        build(kernel, b"key")


@pytest.mark.parametrize("wrong", [1.5, 7, ["list"]])
def test_other_keys_are_type_errors_that_help(kernel: ModuleType, wrong: Any) -> None:
    advice = "a key is bytes-like or str, not"
    built = build(kernel, KEYS)
    for ask in (
        lambda: build(kernel, [b"fine", wrong]),
        lambda: built.might_contain(wrong),
        lambda: built.might_contain_many([b"fine", wrong]),
        lambda: built.may_contain_range(wrong, None),
        lambda: built.may_contain_range(b"fine", wrong),
    ):
        with pytest.raises(TypeError, match=advice):
            ask()
    with pytest.raises(TypeError):
        built.might_contain(None)


@every_size
def test_bytes_round_trip(kernel: ModuleType, size: dict[str, Any]) -> None:
    built = build(kernel, KEYS, **size)
    data = built.to_bytes()
    assert len(data) == built.size_in_bytes
    assert built.bits_per_key == pytest.approx(8 * len(data) / 40)
    copied = bytearray(data)
    again = cls_of(kernel).from_bytes(copied)
    copied[:] = bytes(len(copied))
    for other in (again, pickle.loads(pickle.dumps(built)), cls_of(kernel).from_bytes(data)):
        assert other == built
        assert other.to_bytes() == data
        assert (other.num_keys, other.hash_bits, other.real_bits, other.num_nodes) == (
            built.num_keys,
            built.hash_bits,
            built.real_bits,
            built.num_nodes,
        )
    assert built != build(kernel, KEYS[1:], **size)
    assert built != data
    assert "40 keys" in repr(built)
    assert str(SALT) not in repr(built)
    assert (built.fill, build(kernel, []).fill) == (1, 0)
    answers = bytearray(2)
    assert built.might_contain_many([b"key1", b"x"], answers) is answers
    assert answers == b"\1\0"


def test_seed_and_salt_are_random_unless_given_and_checked(kernel: ModuleType) -> None:
    cls = cls_of(kernel)
    assert cls.build(KEYS) != cls.build(KEYS)
    for name in ("seed", "salt"):
        assert cls.build(KEYS, **{**SECRETS, name: 1}) != cls.build(KEYS, **SECRETS)
        with pytest.raises(ValueError, match=f"{name} is out of range"):
            cls.build(KEYS, **{name: -1})
        with pytest.raises(TypeError, match=f"{name} is an int"):
            cls.build(KEYS, **{name: "1"})


@pytest.mark.parametrize(
    ("size", "says"),
    [
        ({"suffix_bits": 33}, "suffix_bits of a surf filter is out of range: 33, allowed are 0"),
        ({"suffix_bits": 1.5}, "suffix_bits of a surf filter is an int"),
        ({"bits_per_key": 0}, "bits_per_key of a surf filter is out of range"),
        ({"fpr": 1}, "fpr of a surf filter is out of range"),
        ({"fpr": 0.1, "suffix_bits": 3}, "one sizing parameter, not 2"),
        ({"suffix": "both"}, "'both', allowed are mixed, hash, real"),
        ({"suffix": 3}, "suffix of a surf filter is a str, not int"),
        ({"suffix": "real", "fpr": 0.1}, "suffix='real' it promises none"),
    ],
    ids=str,
)
def test_sizes_that_are_refused_before_any_key_is_read(
    kernel: ModuleType, size: dict[str, Any], says: str
) -> None:
    def keys() -> Any:
        pytest.fail("a key was read")
        yield b""

    with pytest.raises((ValueError, TypeError), match=says):
        build(kernel, keys(), **size)


# ---- sizes and rates ----


@pytest.mark.parametrize(
    ("size", "hash_bits", "real_bits"),
    [
        ({}, 4, 8),
        ({"suffix_bits": 5}, 0, 5),
        ({"suffix_bits": 32}, 16, 16),
        ({"suffix_bits": 9, "suffix": "hash"}, 9, 0),
        ({"fpr": 0.01}, 7, 8),
        ({"fpr": 2**-12}, 12, 12),
        ({"fpr": 2**-30}, 30, 2),
        ({"fpr": 0.01, "suffix": "hash"}, 7, 0),
    ],
    ids=str,
)
def test_what_a_suffix_is_of(
    kernel: ModuleType, size: dict[str, Any], hash_bits: int, real_bits: int
) -> None:
    built = build(kernel, KEYS, **size)
    assert (built.hash_bits, built.real_bits) == (hash_bits, real_bits)
    assert built.expected_fpr == 2.0**-hash_bits
    assert build(kernel, [], **size).expected_fpr == 0


@pytest.mark.parametrize("bits", [1, 12, 16, 20.5, 33, 300])
@pytest.mark.parametrize("count", [1, 2, 50, 3000])
def test_a_size_is_met_unless_the_trie_alone_takes_more(
    kernel: ModuleType, bits: float, count: int, rng: random.Random
) -> None:
    keys = random_keys(rng, count)
    bare = build(kernel, keys, suffix_bits=0).size_in_bytes - 48
    built = build(kernel, keys, bits_per_key=bits)
    payload = built.size_in_bytes - 48
    assert payload <= max(bits * count / 8, bare)
    kept = built.hash_bits + built.real_bits
    if kept < 32:
        more = build(kernel, keys, suffix_bits=kept + 1).size_in_bytes - 48
        assert more > bits * count / 8


@pytest.mark.parametrize("count", [0, 1, 2, 100, 5000, 20_000])
def test_sizes_of_random_keys_are_predicted(
    kernel: ModuleType, count: int, rng: random.Random
) -> None:
    for size in ({}, {"suffix_bits": 0}, {"bits_per_key": 22}):
        built = build(kernel, random_keys(rng, count), **size)
        predicted = sizing.stored_bits_per_key("surf", n=count, **size) * max(1, count) / 8
        assert built.size_in_bytes == pytest.approx(predicted, rel=0.03, abs=20)


@once
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_absent_keys_of_random_bytes_pass_as_often_as_predicted(
    kernel: ModuleType, size: dict[str, Any], rng: random.Random
) -> None:
    keys = random_keys(rng, 10_000)
    built = build(kernel, keys, **size)
    trials = volume(kernel, 20_000, 100_000, 500_000)
    asked = [rng.randbytes(17) for _ in range(trials)]
    measured = sum(built.might_contain_many(asked)) / trials
    geometry = surf.plan(10_000, surf.check(**size))
    predicted = surf.predicted_fpr(10_000, geometry)
    spread = 4 * math.sqrt(predicted / trials)
    assert measured == pytest.approx(predicted, abs=0.03 * predicted + spread)
    assert measured <= built.expected_fpr + spread


def urls(rng: random.Random, count: int) -> list[bytes]:
    """Addresses of a few sites."""
    hosts, kinds = ("www.example.com", "en.example.org", "shop.example.net"), ("item", "user")
    return [
        f"https://{rng.choice(hosts)}/{rng.choice(kinds)}/{rng.randrange(10**9)}?page=1".encode()
        for _ in range(count)
    ]


@once
def test_a_rate_that_is_asked_for_holds_for_keys_that_resemble_each_other(
    kernel: ModuleType, rng: random.Random
) -> None:
    keys = urls(rng, 4000)
    absent = sorted(set(urls(rng, volume(kernel, 8000, 40_000, 400_000))) - set(keys))
    bare = sum(build(kernel, keys, suffix_bits=0).might_contain_many(absent)) / len(absent)
    assert bare > 0.2
    for suffix in ("mixed", "hash"):
        built = build(kernel, keys, fpr=0.05, suffix=suffix)
        measured = sum(built.might_contain_many(absent)) / len(absent)
        assert measured <= 0.05 + 4 * math.sqrt(0.05 / len(absent))


@once
@pytest.mark.parametrize("width", [1, 1000, 2**30])
def test_short_ranges_pass_as_keys_do_where_real_bits_tell(
    kernel: ModuleType, width: int, rng: random.Random
) -> None:
    keys = sorted(rng.getrandbits(64) for _ in range(5000))
    built = build(kernel, [key.to_bytes(8, "big") for key in keys], suffix_bits=8, suffix="real")
    asked = passed = 0
    for _ in range(volume(kernel, 4000, 20_000, 200_000)):
        low = rng.randrange(2**64 - width)
        if bisect.bisect_left(keys, low) != bisect.bisect_left(keys, low + width):
            continue
        asked += 1
        passed += built.may_contain_range(low.to_bytes(8, "big"), (low + width).to_bytes(8, "big"))
    bare = surf.predicted_fpr(5000, surf.plan(5000, surf.check(suffix_bits=0)))
    assert passed / asked <= bare * 2**-8 + 4 * math.sqrt(bare * 2**-8 / asked)


def test_what_passes_under_one_salt_does_not_under_another(
    kernel: ModuleType, rng: random.Random
) -> None:
    keys = random_keys(rng, 2000)
    one, two = (build(kernel, keys, suffix_bits=2, suffix="hash", salt=salt) for salt in (1, 2))
    asked = random_keys(rng, 40_000, length=17)
    passed = [key for key, yes in zip(asked, one.might_contain_many(asked), strict=True) if yes]
    assert len(passed) > 100
    assert sum(two.might_contain_many(passed)) < len(passed) * 0.4


# ---- what others write ----


def test_every_flipped_bit_and_every_truncation_is_noticed(kernel: ModuleType) -> None:
    data = build(kernel, KEYS[:12]).to_bytes()
    for bit in range(8 * len(data)):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        with pytest.raises(CorruptFilterError):
            cls_of(kernel).from_bytes(bytes(flipped))
    for length in range(len(data)):
        with pytest.raises(CorruptFilterError):
            cls_of(kernel).from_bytes(data[:length])
    with pytest.raises(CorruptFilterError):
        cls_of(kernel).from_bytes(data + b"\0")


def trie_bytes(
    nodes: list[tuple[bool, list[tuple[int, bool]]]],
    *,
    num_keys: int | None = None,
    firsts: list[bool] | None = None,
    claimed_nodes: int | None = None,
) -> bytes:
    """A filter without suffixes: in level order, whether a key ends in a node, and its edges."""

    def row(bits: list[bool]) -> bytes:
        packed = sum(bit << place for place, bit in enumerate(bits))
        return packed.to_bytes(-(-len(bits) // 64) * 8, "little")

    edges = [edge for _, each in nodes for edge in each]
    if firsts is None:
        firsts = [index == 0 for _, each in nodes for index in range(len(each))]
    leads_on = [child for _, child in edges]
    ends = [end for end, _ in nodes]
    if num_keys is None:
        num_keys = leads_on.count(False) + sum(ends)
    count = len(nodes) if claimed_nodes is None else claimed_nodes
    payload = struct.pack("<LL", count, 0) + row(leads_on) + row(firsts) + row(ends)
    payload += bytes(label for label, _ in edges)
    head = struct.pack("<4s4B4Q", b"LSFB", 10, 1, num_keys == 0, 0, num_keys, len(edges), 1, 2)
    return signed(head + payload)


END = (False, [(97, False)])

FORGED: dict[str, tuple[bytes, str]] = {
    "the first edge is none": (
        trie_bytes([(False, [(97, False), (98, False)])], firsts=[False, True]),
        "begins with edge 0",
    ),
    "a node nothing leads to yet": (
        trie_bytes([(False, [(97, False)]), (False, [(98, True)])]),
        "a node 1 before any edge leads to it",
    ),
    "labels fall": (trie_bytes([(False, [(98, False), (97, False)])]), "ascending, at edge 1"),
    "a label twice": (trie_bytes([(False, [(97, False), (97, False)])]), "ascending, at edge 1"),
    "more nodes than begin": (
        trie_bytes([(False, [(97, True), (98, False)]), (True, [])]),
        "has edges of 1 nodes",
    ),
    "an edge that leads nowhere": (
        trie_bytes([(False, [(97, True), (98, True)]), END]),
        "has 2 edges that lead to nodes",
    ),
    "an edge to itself": (trie_bytes([(False, [(97, True)])]), "has 1 edges that lead to nodes"),
    "too few keys": (trie_bytes([(True, [(97, False)])], num_keys=1), "has 2 keys in its trie"),
    "too many keys": (trie_bytes([(True, [(97, False)])], num_keys=3), "has 2 keys in its trie"),
    "no key in the only node": (trie_bytes([(False, [])], num_keys=1), "has 0 keys in its trie"),
    "edges of no keys": (trie_bytes([(False, [(97, False)])], num_keys=0), "has 1 keys"),
    "a node of no keys": (trie_bytes([(False, [])], num_keys=0), "claims 1 nodes and 0 edges"),
    "no node": (trie_bytes([], num_keys=1), "claims 0 nodes and 0 edges of 1 keys"),
    "a billion nodes": (
        trie_bytes([(True, [(97, False)])], claimed_nodes=1 << 30),
        "claims 1073741824 nodes and 1 edges",
    ),
}


@pytest.mark.parametrize("title", FORGED)
def test_a_trie_that_is_none_is_refused(kernel: ModuleType, title: str) -> None:
    data, says = FORGED[title]
    with pytest.raises(CorruptFilterError, match=says):
        cls_of(kernel).from_bytes(data)


def test_what_is_forged_and_still_a_trie_is_read(kernel: ModuleType) -> None:
    """Our own writer makes no node for a single key; who reads has no need to refuse it."""
    read = cls_of(kernel).from_bytes(trie_bytes([(False, [(97, True)]), END]))
    assert read.might_contain_many([b"aa", b"a", b"aab", b"b"]) == [True, False, True, False]
    assert not read.may_contain_range(b"ab", None)


@pytest.mark.parametrize(
    ("offset", "layout", "values"),
    [
        (7, "B", [0, 3, 25, 33, 255]),
        (8, "<Q", [1, 39, 41, 1 << 60]),
        (16, "<Q", [0, 1, 50, 52, 1 << 32, 1 << 40, (1 << 64) - 1]),
        (40, "<L", [0, 1, 12, 1 << 20, (1 << 32) - 1]),
        (44, "<L", [0, 7, 9, 29, 33, (1 << 32) - 1]),
    ],
)
def test_forged_fields_are_refused_before_they_are_believed(
    kernel: ModuleType, offset: int, layout: str, values: list[int]
) -> None:
    data = build(kernel, KEYS).to_bytes()
    there = struct.unpack_from(layout, data, offset)[0]
    for value in values:
        if value != there:
            with pytest.raises(CorruptFilterError):
                cls_of(kernel).from_bytes(forged(data, offset, layout, value))


def test_bits_behind_rows_and_suffixes_are_refused(kernel: ModuleType) -> None:
    built = build(kernel, KEYS[:5], suffix_bits=3)
    data = built.to_bytes()
    for at, says in (
        (48 + 7, "row of"),
        (48 + 15, "row of"),
        (48 + 23, "row of"),
        (-9, "the last"),
    ):
        body = bytearray(data)
        body[at] |= 0x80
        with pytest.raises(CorruptFilterError, match=f"bits set behind.*{says}"):
            cls_of(kernel).from_bytes(signed(body[:-8]))


ASKED = [b"", b"key1", b"key11", b"k", b"\0", b"\xff" * 9, b"kez", b"key1\0\0"]


def told(kernel: ModuleType, data: bytes) -> Any:
    """All that a filter in these bytes says, or why it is refused."""
    try:
        read = cls_of(kernel).from_bytes(data)
    except FilterError as error:
        return type(error), str(error)
    ends = [None, *ASKED]
    return (
        read.num_keys,
        read.num_nodes,
        read.hash_bits,
        read.real_bits,
        read.might_contain_many(ASKED),
        [read.may_contain_range(low, high) for low, high in itertools.product(ends, ends)],
        read.to_bytes() == data,
        repr(read),
    )


def damaged(rng: random.Random, data: bytes) -> bytes:
    """The filter with a few bytes, bits or fields changed and a checksum that fits."""
    body = bytearray(data[:-8])
    for _ in range(rng.randrange(1, 4)):
        kind, at = rng.randrange(4), rng.randrange(7, len(body))
        if kind == 0:
            body[at] = rng.randrange(256)
        elif kind == 1:
            body[at] ^= 1 << rng.randrange(8)
        elif kind == 2:
            other = rng.randrange(40, len(body))
            body[at], body[other] = body[other], body[at]
        else:
            del body[at : at + rng.randrange(3)]
    return signed(body)


def any_trie(rng: random.Random) -> bytes:
    """A trie of any shape, which may lack nodes or have too many."""
    nodes: list[tuple[bool, list[tuple[int, bool]]]] = []
    waiting, most = 1, rng.choice((1, 5, 40))
    while waiting and len(nodes) < most:
        labels = rng.sample(range(95, 125), rng.choice((1, 1, 2, 3, 9)))
        if rng.random() < 0.98:
            labels.sort()
        edges = [(label, rng.random() < 0.4) for label in labels]
        waiting += sum(child for _, child in edges) - 1
        nodes.append((rng.random() < 0.3, edges))
    while waiting and rng.random() < 0.95:
        nodes.append((rng.random() < 0.3, [(rng.choice(b"key1"), False)]))
        waiting -= 1
    return trie_bytes(nodes)


def hostile(rng: random.Random) -> bytes:
    keys = [rng.choice(POOL) + rng.choice(ASKED) for _ in range(rng.choice((0, 1, 2, 30)))]
    size = rng.choice(SIZES)
    data: bytes = KEY_FAMILIES["surf"].filter_class("python").build(keys, **size).to_bytes()  # type: ignore[attr-defined]
    data = rng.choice((data, any_trie(rng)))
    return damaged(rng, data) if rng.random() < 0.7 else data


def judged(data: bytes) -> Any:
    """The answers of a reader that was written from the page, or None where it refuses."""
    try:
        reader: Any = independent_reader.read(data)
    except independent_reader.RefusedError:
        return None
    ends = [None, *ASKED]
    ranges = [reader.answer_range(low, high) for low, high in itertools.product(ends, ends)]
    return [reader.answer(key) for key in ASKED], ranges


def test_hostile_bytes_are_refused_or_read_as_the_page_says(
    kernel: ModuleType, rng: random.Random
) -> None:
    kinds = set()
    for _ in range(by_effort(300, 2000, 100_000)):
        data = hostile(rng)
        facts, judge = told(kernel, data), judged(data)
        kinds.add(judge is None)
        if judge is None:
            assert issubclass(facts[0], FilterError)
        else:
            assert facts[4:6] == judge
    assert kinds == {True, False}


# ---- twins ----


@needs_native
def test_both_kernels_tell_the_same_of_hostile_bytes(rng: random.Random) -> None:
    python, native = twins()
    for _ in range(by_effort(400, 3000, 200_000)):
        data = hostile(rng)
        assert told(native, data) == told(python, data)


@needs_native
@every_size
def test_both_kernels_write_the_same_bytes(size: dict[str, Any], rng: random.Random) -> None:
    python, native = twins()
    sets = [
        [],
        [b""],
        POOL,
        random_keys(rng, 1000, length=3),
        urls(rng, 300),
        [b"\xff" * length for length in range(300)],
        [rng.choice(POOL) * rng.randrange(9) for _ in range(300)],
    ]
    for keys in sets:
        one, two = build(python, keys, **size), build(native, keys, **size)
        assert two.to_bytes() == one.to_bytes()
        asked = [key + end for key in keys[:100] for end in (b"", b"\0", b"1")] + ASKED
        assert two.might_contain_many(asked) == one.might_contain_many(asked)
        for low, high in zip(asked, rng.sample(asked, len(asked)), strict=True):
            assert two.may_contain_range(low, high) is one.may_contain_range(low, high)
            assert two.may_contain_range(low, None) is one.may_contain_range(low, None)


def pairs(count: int) -> list[bytes]:
    """So many nodes of two keys each, below a few."""
    return [number.to_bytes(2, "big") + end for number in range(count) for end in (b"0", b"1")]


@needs_native
@pytest.mark.parametrize("around", [512, 1024])
def test_both_kernels_find_edges_and_nodes_where_blocks_of_them_end(around: int) -> None:
    python, native = twins()
    for count in range(around - 10, around + 4):
        for keys in (pairs(count), pairs(count // 2), [key[:2] for key in pairs(count)]):
            data = build(python, keys, suffix_bits=3).to_bytes()
            one, two = (cls_of(kernel).from_bytes(data) for kernel in (python, native))
            assert all(two.might_contain_many(keys))
            for key in keys[:: max(1, len(keys) // 50)] + keys[-9:]:
                ends = (key, key + b"\0"), (key[:1], key), (key + b"\xff", None), (None, key)
                for low, high in ends:
                    assert two.may_contain_range(low, high) is one.may_contain_range(low, high)


@needs_native
def test_both_kernels_have_the_same_names_and_refuse_alike() -> None:
    python, native = map(cls_of, twins())
    assert {name for name in dir(native) if name[0] != "_"} == {
        name for name in dir(python) if name[0] != "_"
    }
    for name in dir(python):
        if name[0] != "_":
            assert inspect.getdoc(getattr(native, name)) == inspect.getdoc(getattr(python, name)), (
                name
            )
    assert inspect.getdoc(native) == inspect.getdoc(python)
    for arguments in ((), ("\ud800", None), (None, 3), (b"a",), (b"a", b"b", b"c")):
        results = [
            outcome(cls.build([b"key"]).may_contain_range, *arguments) for cls in (python, native)
        ]
        assert (results[0] is True) == (results[1] is True)
        assert isinstance(results[0], bool) or results[0][0] is results[1][0]
    with pytest.raises(TypeError, match=r"made by build\(\)"):
        native()
    with pytest.raises(TypeError):
        native.build([b"key"], 3)
