"""``docs/family-formats.md`` is right: a reader written from it agrees with the code."""

from __future__ import annotations

import math
import random
import re
import struct
import warnings
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import attrs
import pytest
from xxhash import xxh3_64_intdigest

from filters import binary_fuse, bumped_ribbon, scalable, xor
from filters.errors import CorruptFilterError, UnsupportedVersionError
from filters.header import Header, pack
from filters.kernels.python.binary_fuse import build_shard as build_fuse_shard
from filters.kernels.python.binary_fuse import populate as populate_fuse_shard
from filters.kernels.python.chain import positions
from filters.kernels.python.xor import build_shard as build_xor_shard
from tests.effort import once
from tests.filters import independent_reader
from tests.filters.cases import class_of, over_filling
from tests.filters.independent_reader import RefusedError, UnknownVersionError
from tests.worked_examples import example_bytes, example_titles, sections, table_rows

PAGE = Path(__file__).parents[2] / "docs" / "family-formats.md"
SEED = 0x0123456789ABCDEF
SALT = 0x0F1E2D3C4B5A6978
KEYS = [b"apple", b"banana", b"cherry"]
BYTE, U32, U64 = struct.Struct("<B"), struct.Struct("<L"), struct.Struct("<Q")

SIZING_PARAMETERS: list[tuple[str, dict[str, Any]]] = [
    ("classic", {}),
    ("classic", {"bits_per_key": 1}),
    ("classic", {"bits_per_key": 3.7}),
    ("classic", {"fpr": 1e-9}),
    ("classic", {"bits_per_key": 6, "num_probes": 64}),
    ("counting", {}),
    ("counting", {"counters_per_key": 1}),
    ("counting", {"fpr": 0.01}),
    ("cuckoo", {}),
    ("cuckoo", {"fingerprint_bits": 6}),
    ("cuckoo", {"fingerprint_bits": 7}),
    ("cuckoo", {"fingerprint_bits": 13}),
    ("cuckoo", {"fingerprint_bits": 32}),
    ("blocked", {}),
    ("blocked", {"bits_per_key": 1}),
    ("blocked", {"bits_per_key": 24}),
    ("blocked", {"bits_per_key": 8, "num_probes": 32}),
    ("binary-fuse", {}),
    ("binary-fuse", {"fingerprint_bits": 16}),
    ("scalable", {}),
    ("scalable", {"fpr": 1e-9, "growth": 4}),
    ("xor", {}),
    ("xor", {"fingerprint_bits": 16}),
    ("bumped-ribbon", {}),
    ("bumped-ribbon", {"fpr": 0.4}),
    ("bumped-ribbon", {"bits_per_key": 33}),
    ("grafite", {}),
    ("grafite", {"bits_per_key": 3}),
    ("grafite", {"bits_per_key": 64}),
    ("grafite", {"fpr": 0.01, "range_length": 100}),
    ("surf", {}),
    ("surf", {"suffix_bits": 0}),
    ("surf", {"fpr": 0.2, "suffix": "hash"}),
    ("surf", {"suffix_bits": 31, "suffix": "real"}),
]


def build(kernel: ModuleType, family: str, keys: list[bytes], **sizes: Any) -> Any:
    """Unwise sizes are meant here, so their warnings are not."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return class_of(kernel, family).build(keys, **sizes)


def random_keys(rng: random.Random, count: int, most: int = 40) -> list[bytes]:
    """Keys of many lengths, so that XXH3 takes every path; a few are very long."""
    keys = [rng.randbytes(rng.randint(0, most)) for _ in range(count)]
    return keys + [rng.randbytes(length) for length in (128, 129, 240, 241, 3000)]


# --- the same answers as the code -----------------------------------------------------------------


@once
@pytest.mark.parametrize("count", [1, 2, 30, 2000])
@pytest.mark.parametrize(("family", "sizes"), SIZING_PARAMETERS)
def test_the_independent_reader_answers_as_the_code_does(
    kernel: ModuleType, rng: random.Random, family: str, sizes: dict[str, Any], count: int
) -> None:
    keys = random_keys(rng, count)
    absent = random_keys(rng, 1500)
    real = build(kernel, family, keys, **sizes)
    reader = independent_reader.read(real.to_bytes())
    assert reader.frame.family == family
    assert reader.frame.num_keys == real.num_keys
    assert all(reader.answer(key) for key in keys)
    assert [reader.answer(key) for key in absent] == real.might_contain_many(absent)


@pytest.mark.parametrize(("family", "sizes"), SIZING_PARAMETERS)
def test_both_answer_no_to_everything_in_an_empty_set(
    kernel: ModuleType, rng: random.Random, family: str, sizes: dict[str, Any]
) -> None:
    real = build(kernel, family, [], **sizes)
    reader = independent_reader.read(real.to_bytes())
    absent = random_keys(rng, 1000)
    assert reader.frame.num_keys == 0
    assert not any(reader.answer(key) for key in absent)
    assert not any(real.might_contain_many(absent))


@pytest.mark.parametrize("family", ["classic", "counting", "cuckoo", "blocked", "scalable"])
def test_both_agree_on_a_filter_that_has_lived(
    kernel: ModuleType, rng: random.Random, family: str
) -> None:
    keys = [rng.randbytes(9) for _ in range(600)]
    real = class_of(kernel, family).with_capacity(600)
    real.add_many(keys)
    if hasattr(real, "remove"):
        assert all(real.remove(key) for key in keys[::2])
        real.add_many(keys[1::4])
    reader = independent_reader.read(real.to_bytes())
    asked = keys + random_keys(rng, 1500)
    assert [reader.answer(key) for key in asked] == real.might_contain_many(asked)


@over_filling
def test_a_counting_filter_may_say_maybe_under_the_empty_flag(kernel: ModuleType) -> None:
    real = kernel.CountingBloomFilter.with_capacity(10)
    for _ in range(15):
        real.add(b"stuck")
    for _ in range(15):
        real.remove(b"stuck")
    data = real.to_bytes()
    assert data[6] == 1
    assert independent_reader.read(data).answer(b"stuck")
    assert kernel.CountingBloomFilter.from_bytes(data).might_contain(b"stuck")


def test_both_agree_on_a_filter_that_has_grown(kernel: ModuleType, rng: random.Random) -> None:
    keys = [rng.randbytes(9) for _ in range(900)]
    real = kernel.ScalableBloomFilter.with_capacity(5)
    real.add_many(keys)
    reader: Any = independent_reader.read(real.to_bytes())
    assert len(reader.slices) == real.num_slices == 8
    asked = keys + random_keys(rng, 3000)
    assert [reader.answer(key) for key in asked] == real.might_contain_many(asked)


@pytest.mark.parametrize("shards", [1, 2, 8, 64])
@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("family", ["binary-fuse", "xor"])
def test_both_agree_on_a_filter_of_many_shards(
    kernel: ModuleType, rng: random.Random, family: str, bits: int, shards: int
) -> None:
    keys = random_keys(rng, 800)
    data = sharded(family, keys, shards, bits)
    reader = independent_reader.read(data)
    real = class_of(kernel, family).from_bytes(data)
    assert reader.frame.size == shards
    assert all(reader.answer(key) for key in keys)
    asked = keys + random_keys(rng, 1500)
    assert [reader.answer(key) for key in asked] == real.might_contain_many(asked)


def sharded(family: str, keys: list[bytes], shards: int, bits: int) -> bytes:
    """A filter of more shards than our writer would make for so few keys."""
    mixed = sorted({independent_reader.mix(xxh3_64_intdigest(key, SEED), SALT) for key in keys})
    parts = [[each for each in mixed if each * shards >> 64 == index] for index in range(shards)]
    if family == "xor":
        payload = xor.payload_of([build_xor_shard(part, bits) for part in parts])
    else:
        fuse = [build_fuse_shard(part, bits, populate_fuse_shard) for part in parts]
        payload = binary_fuse.payload_of(fuse)
    return pack(Header(family, bits, shards, len(mixed), SEED, SALT), payload)


def sliced(parts: list[list[bytes]], bits: int, probes: int) -> bytes:
    """A scalable filter of smaller slices than our writer would make, with these keys in each."""
    slices, salt, arrays = [scalable.Geometry(bits, probes)] * len(parts), SALT, []
    for part in parts:
        array = bytearray(bits // 8)
        for key in part:
            salted = independent_reader.mix(xxh3_64_intdigest(key, SEED), salt)
            for position in positions(salted, bits, probes):
                array[position // 8] |= 1 << position % 8
        arrays.append(array)
        salt = independent_reader.mix((salt + 1) % 2**64, 0)
    head = scalable.head_of(scalable.Terms(2, 0.01, 0.85, 2), slices)
    count = sum(map(len, parts))
    return pack(Header("scalable", 2, len(parts), count, SEED, SALT), head, *arrays)


# --- the worked examples --------------------------------------------------------------------------


@attrs.frozen
class Example:
    """One worked example of the page: its bytes and the rows of its table."""

    title: str
    data: bytes
    rows: list[list[str]]

    @property
    def family(self) -> str:
        """The family that the title names."""
        return self.title.partition(",")[0].replace(" ", "-")


def read_example(title: str) -> Example:
    """The example under ``### Example: <title>``."""
    text = sections(PAGE)[f"Example: {title}"]
    return Example(title, example_bytes(PAGE, title), table_rows(text))


TITLES = [
    "classic",
    "counting",
    "cuckoo",
    "blocked",
    "binary fuse, 8 bits",
    "binary fuse, 16 bits, two shards",
    "binary fuse, empty set",
    "scalable, two slices",
    "xor, 8 bits",
    "xor, 16 bits, two shards",
    "bumped ribbon, a list",
    "bumped ribbon, one layer",
    "grafite",
    "surf",
]


def spelled(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers))


def traced(reader: Any, key: bytes) -> list[str]:
    """The row that the page should have for a key, from the independent reader."""
    salted = reader.salted(key)
    match reader.frame.family:
        case "scalable":
            digest = independent_reader.key_digest(key, SEED)
            cells = [spelled(each) for each in reader.positions(digest)]
        case "classic":
            cells = [spelled(reader.positions(salted))]
        case "counting":
            positions = reader.positions(salted)
            cells = [spelled(positions), spelled([reader.counter(each) for each in positions])]
        case "cuckoo":
            fingerprint, one, other = reader.candidates(salted)
            cells = [f"0x{fingerprint:02x}", str(one), str(other)]
        case "blocked":
            line, bits = reader.line_and_bits(salted)
            cells = [str(line), spelled(bits)]
        case "bumped-ribbon":
            value, layer, start = reader.place(salted)
            cells = [f"0x{value:016x}", "none", "", "", ""]
            if start >= 0:
                found, expected = reader.column(value, layer, start)
                cells[1:] = [str(layer), str(start), spelled(found), spelled(expected)]
        case "grafite":
            number = reader.number_of(key)
            code = reader.code(number)
            bucket, low = divmod(code, 2**reader.low_bits)
            start, end = reader.bucket(bucket)
            codes = [2**reader.low_bits * bucket + reader.low(each) for each in range(start, end)]
            cells = [f"0x{number:012x}", str(code), str(bucket), spelled(codes), str(low)]
        case "surf":
            _, place = reader.edges[0].get(key[0], (False, -1))
            cells = ["none", "", ""]
            if place >= 0:
                kept, own = reader.leaves[place][1], reader.suffix_of(key, 1)
                cells = [str(place), f"0x{kept:03x}", f"0x{own:03x}"]
        case _:
            shard, value, slots, fingerprint = reader.places(salted)
            width = reader.frame.parameter // 4
            cells = [str(shard), f"0x{value:016x}", spelled(slots), f"0x{fingerprint:0{width}x}"]
    return [f"`{key.decode()}`", *cells, "maybe" if reader.answer(key) else "no"]


def test_the_page_has_exactly_these_examples() -> None:
    titles = example_titles(PAGE)
    assert titles == TITLES
    assert PAGE.read_text(encoding="utf-8").count("```hex\n") == len(TITLES)


def test_the_page_gives_the_seed_and_the_salt_of_its_examples() -> None:
    text = " ".join(sections(PAGE)["From key to salted digest"].split())
    assert f"**seed 0x{SEED:016x}** and **salt 0x{SALT:016x}**" in text
    for title in TITLES:
        frame = independent_reader.read(read_example(title).data).frame
        assert (frame.seed, frame.salt) == (SEED, SALT)


def test_the_hash_table_of_the_page() -> None:
    rows = [
        row for row in table_rows(sections(PAGE)["From key to salted digest"]) if row[0].isdigit()
    ]
    assert len(rows) >= 10
    for length, unseeded, seeded in rows:
        key = bytes(index % 251 for index in range(int(length)))
        assert int(unseeded, 16) == xxh3_64_intdigest(key)
        assert int(seeded, 16) == xxh3_64_intdigest(key, SEED)


def test_the_digest_table_of_the_page_covers_every_key_of_an_example() -> None:
    rows = table_rows(sections(PAGE)["From key to salted digest"])
    digests = {row[0]: row[1:] for row in rows if not row[0].isdigit()}
    for name, (digest, salted) in digests.items():
        key = name.strip("`").encode()
        assert int(digest, 16) == independent_reader.key_digest(key, SEED)
        assert int(salted, 16) == independent_reader.mix(int(digest, 16), SALT)
    assert digests.keys() == {row[0] for title in TITLES for row in read_example(title).rows}


@pytest.mark.parametrize("title", TITLES)
def test_a_worked_example_is_what_its_table_says(kernel: ModuleType, title: str) -> None:
    example = read_example(title)
    reader = independent_reader.read(example.data)
    real = class_of(kernel, example.family).from_bytes(example.data)
    assert reader.frame.family == example.family
    assert real.to_bytes() == example.data
    answers = {row[0].strip("`").encode(): row[-1] for row in example.rows}
    for key, row in zip(answers, example.rows, strict=True):
        assert traced(reader, key) == row
        assert real.might_contain(key) == (row[-1] == "maybe")
    if example.rows:
        assert [answers[key] for key in KEYS] == ["maybe"] * 3
        assert "no" in answers.values()
        assert real.num_keys == 3
    else:
        assert real.num_keys == 0
        assert not any(real.might_contain(key) or reader.answer(key) for key in KEYS)


def test_the_slots_that_the_cuckoo_example_spells_out() -> None:
    reader: Any = independent_reader.read(read_example("cuckoo").data)
    assert [reader.slots(0), reader.slots(1)] == [[0x2F, 0x34, 0, 0], [0x3B, 0, 0, 0]]


def blocked_example(kernel: ModuleType) -> Any:
    real = kernel.BlockedBloomFilter.with_capacity(
        100, bits_per_key=10, num_probes=4, seed=SEED, salt=SALT
    )
    real.add_many(KEYS)
    return real


WRITERS: dict[str, Callable[[ModuleType], Any]] = {
    "classic": lambda kernel: kernel.ClassicBloomFilter.build(
        KEYS, bits_per_key=1, num_probes=3, seed=SEED, salt=SALT
    ),
    "counting": lambda kernel: kernel.CountingBloomFilter.build(
        KEYS, counters_per_key=1, num_probes=3, seed=SEED, salt=SALT
    ),
    "cuckoo": lambda kernel: kernel.CuckooFilter.build(
        KEYS, fingerprint_bits=6, seed=SEED, salt=SALT
    ),
    "blocked": blocked_example,
    "binary fuse, 8 bits": lambda kernel: kernel.BinaryFuseFilter.build(
        KEYS, fingerprint_bits=8, seed=SEED, salt=SALT
    ),
    "binary fuse, 16 bits, two shards": lambda kernel: kernel.BinaryFuseFilter.from_bytes(
        sharded("binary-fuse", KEYS, 2, 16)
    ),
    "binary fuse, empty set": lambda kernel: kernel.BinaryFuseFilter.build(
        [], fingerprint_bits=8, seed=SEED, salt=SALT
    ),
    "scalable, two slices": lambda kernel: kernel.ScalableBloomFilter.from_bytes(
        sliced([KEYS[:2], KEYS[2:]], 64, 3)
    ),
    "xor, 8 bits": lambda kernel: kernel.XorFilter.build(
        KEYS, fingerprint_bits=8, seed=SEED, salt=SALT
    ),
    "xor, 16 bits, two shards": lambda kernel: kernel.XorFilter.from_bytes(
        sharded("xor", KEYS, 2, 16)
    ),
    "bumped ribbon, a list": lambda kernel: kernel.BumpedRibbonFilter.build(
        KEYS, fpr=0.01, seed=SEED, salt=SALT
    ),
    "bumped ribbon, one layer": lambda kernel: layered(kernel),
    "grafite": lambda kernel: kernel.GrafiteFilter.build(
        KEYS, bits_per_key=7, seed=SEED, salt=SALT
    ),
    "surf": lambda kernel: kernel.SurfFilter.build(KEYS, seed=SEED, salt=SALT),
}


def test_the_ranges_that_the_surf_example_tells_of(kernel: ModuleType) -> None:
    data = read_example("surf").data
    reader: Any = independent_reader.read(data)
    real = class_of(kernel, "surf").from_bytes(data)
    ranges = [(b"aq", b"b"), (b"d", None), (b"ap", b"aq"), (b"banz", b"c")]
    text = " ".join(sections(PAGE)["Example: surf"].split())
    assert re.findall(r"`(\w+)` (?:to `(\w+)`|on)", text) == [
        (low.decode(), high.decode() if high else "") for low, high in ranges
    ]
    for ask in (reader.answer_range, real.may_contain_range):
        assert [ask(low, high) for low, high in ranges] == [False, False, True, True]


@pytest.mark.parametrize(
    "sizes", [sizes for family, sizes in SIZING_PARAMETERS if family == "surf"], ids=str
)
def test_the_independent_reader_answers_for_ranges_as_the_code_does(
    kernel: ModuleType, rng: random.Random, sizes: dict[str, Any]
) -> None:
    keys = random_keys(rng, 60, most=3)
    real = build(kernel, "surf", keys, **sizes)
    reader: Any = independent_reader.read(real.to_bytes())
    ends = [None, *keys, *random_keys(rng, 60, most=3)]
    for _ in range(1500):
        low, high = rng.choice(ends), rng.choice(ends)
        assert reader.answer_range(low, high) is real.may_contain_range(low, high)


def layered(kernel: ModuleType) -> Any:
    """A ribbon filter with a layer where our writer would make a list."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bumped_ribbon, "blocks_for", lambda keys, layers, size: [3][layers:])
        return kernel.BumpedRibbonFilter.build(KEYS, fpr=0.4, seed=SEED, salt=SALT)


@pytest.mark.parametrize("title", TITLES)
def test_our_writer_writes_the_worked_examples(kernel: ModuleType, title: str) -> None:
    assert WRITERS[title](kernel).to_bytes() == read_example(title).data


def test_the_table_for_checking_a_writer(kernel: ModuleType) -> None:
    rows = table_rows(sections(PAGE)["Checking a writer"])
    assert {row[0].replace(" ", "-") for row in rows} == set(independent_reader.FAMILIES.values())
    for name, asked, count, *expected in rows:
        size, _, value = asked.rpartition(" ")
        keys = [number.to_bytes(8, "little") for number in range(int(count))]
        sizes = {size.replace(" ", "_"): int(value), "seed": SEED, "salt": SALT}
        data = build(kernel, name.replace(" ", "-"), keys, **sizes).to_bytes()
        frame = independent_reader.read(data).frame
        (checksum,) = U64.unpack(data[-8:])
        facts = [str(frame.size), str(frame.parameter), str(len(data)), f"0x{checksum:016x}"]
        assert facts == expected, f"{name} of {count} keys"


def test_the_grown_filter_that_the_page_tells_of(kernel: ModuleType) -> None:
    text = " ".join(sections(PAGE)["Scalable (family 8)"].split())
    grown = kernel.ScalableBloomFilter.with_capacity(100, seed=SEED, salt=SALT)
    grown.add_many([number.to_bytes(8, "little") for number in range(5000)])
    data = grown.to_bytes()
    (checksum,) = U64.unpack(data[-8:])
    assert (
        f"it has {grown.num_slices} slices and {grown.num_keys} keys in {len(data)} bytes, with "
        f"the checksum 0x{checksum:016x}"
    ) in text


def test_the_salt_of_a_slice_that_the_page_tells_of() -> None:
    second = independent_reader.mix(SALT + 1, 0)
    text = " ".join(sections(PAGE)["Example: scalable, two slices"].split())
    assert f"The salt of the second one is 0x{second:016x}" in text


def test_a_cuckoo_build_that_starts_anew_stores_the_salt_that_the_page_says(
    kernel: ModuleType,
) -> None:
    keys = [number.to_bytes(8, "little") for number in range(18)]
    data = build(kernel, "cuckoo", keys, fingerprint_bits=6, seed=SEED, salt=SALT).to_bytes()
    salt = independent_reader.read(data).frame.salt
    assert salt == independent_reader.mix(SALT + 1, 0)
    assert f"second attempt, with the salt 0x{salt:016x}" in " ".join(
        sections(PAGE)["Checking a writer"].split()
    )


def test_every_salt_that_a_cuckoo_build_goes_on_to_is_the_one_of_the_page(
    kernel: ModuleType,
) -> None:
    keys = [number.to_bytes(8, "little") for number in range(18)]
    restarted = 0
    for asked in range(1, 200, 2):
        data = build(kernel, "cuckoo", keys, fingerprint_bits=6, seed=SEED, salt=asked).to_bytes()
        frame, salt, buckets = independent_reader.read(data).frame, asked, 5
        while salt != frame.salt:
            salt = independent_reader.mix(salt + 1, 0)
            buckets += 1
            restarted += 1
            assert buckets <= frame.size
        assert buckets == frame.size
    assert restarted


# --- what must be refused -------------------------------------------------------------------------


def sealed(body: bytes | bytearray) -> bytes:
    """These bytes under a checksum that fits."""
    return bytes(body) + U64.pack(xxh3_64_intdigest(bytes(body)))


def changed(title: str, *edits: tuple[int, struct.Struct, float], payload: int = 0) -> bytes:
    """An example with some fields set, its payload longer or shorter, and a checksum that fits."""
    body = bytearray(read_example(title).data[:-8])
    for offset, field, value in edits:
        field.pack_into(body, offset, value)
    return sealed(body[:payload] if payload < 0 else body + bytes(payload))


FUSE, FUSE2 = "binary fuse, 8 bits", "binary fuse, 16 bits, two shards"
CHAIN = "scalable, two slices"
DOUBLE = struct.Struct("<d")
XOR, XOR2 = "xor, 8 bits", "xor, 16 bits, two shards"
LIST, LAYER = "bumped ribbon, a list", "bumped ribbon, one layer"
REFUSED: list[tuple[str, str, tuple[tuple[int, struct.Struct, float], ...], int]] = [
    *[
        (f"{title}: {what}", title, edits, payload)
        for title in TITLES
        for what, edits, payload in (
            ("magic", ((0, BYTE, 0x6C),), 0),
            ("family 0", ((4, BYTE, 0),), 0),
            ("family 200", ((4, BYTE, 200),), 0),
            ("reserved flag", ((6, BYTE, 0x80),), 0),
            ("keys and flag disagree", ((6, BYTE, 1), (8, U64, 1)), 0),
            ("no keys, no flag", ((6, BYTE, 0), (8, U64, 0)), 0),
            ("parameter 0", ((7, BYTE, 0),), 0),
            ("parameter 65", ((7, BYTE, 65),), 0),
            ("size 0", ((16, U64, 0),), 0),
            ("size 2^64 - 1", ((16, U64, 2**64 - 1),), 0),
            ("a byte more", (), 1),
            ("a byte less", (), -1),
        )
        if (title, what) != (LIST, "size 0")  # which it has
    ],
    ("classic: 63 bits", "classic", ((16, U64, 63),), 0),
    ("classic: 65 bits in 8 bytes", "classic", ((16, U64, 65),), 0),
    ("counting: 63 counters", "counting", ((16, U64, 63),), 0),
    ("counting: 65 counters in 32 bytes", "counting", ((16, U64, 65),), 0),
    ("cuckoo: 5-bit fingerprints", "cuckoo", ((7, BYTE, 5), (16, U64, 2)), -1),
    ("cuckoo: 33-bit fingerprints", "cuckoo", ((7, BYTE, 33),), 27),
    ("cuckoo: 9 keys in 8 slots", "cuckoo", ((8, U64, 9),), 0),
    ("fuse: 13 keys in 12 slots", FUSE, ((8, U64, 13),), 0),
    ("blocked: 33 probes", "blocked", ((7, BYTE, 33),), 0),
    ("fuse: 12-bit fingerprints", FUSE, ((7, BYTE, 12),), 0),
    ("fuse: directory cut short", FUSE, ((16, U64, 1 << 20),), 0),
    ("fuse: 2^21 shards", FUSE, ((16, U64, 1 << 21),), 0),
    ("fuse: segments of 2", FUSE, ((48, U32, 2),), -6),
    ("fuse: segments of 6", FUSE, ((48, U32, 6),), 6),
    ("fuse: segments of 2^19", FUSE, ((48, U32, 1 << 19),), 3 * (1 << 19) - 12),
    ("fuse: no segment", FUSE, ((52, U32, 0),), -4),
    ("fuse: too many segments", FUSE, ((52, U32, 2),), 0),
    ("fuse: 2^32 - 1 segments", FUSE, ((52, U32, 2**32 - 1),), 0),
    ("fuse: a later shard too long", FUSE2, ((68, U32, 2),), 0),
    ("fuse: a segment length of 0", FUSE2, ((64, U32, 0),), 0),
    ("scalable: growth of 3", CHAIN, ((7, BYTE, 3),), 0),
    ("scalable: growth of 5", CHAIN, ((7, BYTE, 5),), 0),
    ("scalable: 65 slices", CHAIN, ((16, U64, 65),), 63 * 24),
    ("scalable: directory cut short", CHAIN, ((16, U64, 5),), 0),
    ("scalable: one slice", CHAIN, ((16, U64, 1),), 0),
    ("scalable: no capacity", CHAIN, ((40, U64, 0),), 0),
    ("scalable: capacity of 2^40 + 1", CHAIN, ((40, U64, 2**40 + 1),), 0),
    *[
        (f"scalable: {name} {value}", CHAIN, ((offset, DOUBLE, value),), 0)
        for name, offset, values in (("fpr", 48, (9.9e-10, 0.51)), ("tightening", 56, (0.49, 1)))
        for value in (*values, 0, -0.8, math.nan, math.inf, -math.inf)
    ],
    *[
        (f"scalable: {bits} bits in slice {index}", CHAIN, ((64 + 16 * index, U64, bits),), 0)
        for index in (0, 1)
        for bits in (0, 56, 65, 72, 2**40, 2**40 + 8, 2**64 - 8)
    ],
    *[
        (f"scalable: {probes} probes in slice {index}", CHAIN, ((72 + 16 * index, U64, probes),), 0)
        for index in (0, 1)
        for probes in (0, 65, 2**32 + 3)
    ],
    ("scalable: bits that another slice has", CHAIN, ((64, U64, 72), (80, U64, 56)), 0),
    ("xor: 12-bit fingerprints", XOR, ((7, BYTE, 12),), 0),
    ("xor: 34 keys in 33 slots", XOR, ((8, U64, 34),), 0),
    ("xor: three shards", XOR, ((16, U64, 3),), 0),
    ("xor: 2^21 shards", XOR, ((16, U64, 1 << 21),), 0),
    ("xor: directory cut short", XOR, ((16, U64, 1 << 20),), 0),
    ("xor: blocks of no slot", XOR, ((48, U32, 0),), -33),
    ("xor: blocks of 12 slots", XOR, ((48, U32, 12),), 0),
    ("xor: blocks of 10 slots", XOR, ((48, U32, 10),), 0),
    ("xor: blocks of 2^32 - 1 slots", XOR, ((48, U32, 2**32 - 1),), 0),
    ("xor: a later shard too long", XOR2, ((60, U32, 12),), 0),
    ("xor: a later block of no slot", XOR2, ((60, U32, 0),), 0),
    ("ribbon: 33 columns", LAYER, ((7, BYTE, 33), (16, U64, 99)), 8 * 94),
    ("ribbon: 32 columns and one more", LAYER, ((7, BYTE, 32), (16, U64, 97)), 8 * 92),
    ("ribbon: every block wide", LAYER, ((16, U64, 6),), 8),
    ("ribbon: fewer words than blocks", LAYER, ((16, U64, 2),), 0),
    ("ribbon: words without blocks", LIST, ((16, U64, 1),), 0),
    ("ribbon: 9 layers", LAYER, ((40, U32, 9),), 0),
    ("ribbon: layers without blocks", LIST, ((40, U32, 8), (48, U64, 0)), -24),
    ("ribbon: no payload", LIST, (), -32),
    ("ribbon: a layer of one block", LAYER, ((44, U32, 1),), 0),
    ("ribbon: a layer of 2^32 - 1 blocks", LAYER, ((44, U32, 2**32 - 1),), 0),
    ("ribbon: a code for no bucket", LAYER, ((48, BYTE, 4),), 0),
    ("ribbon: padding that is not zero", LAYER, ((55, BYTE, 0x80),), 0),
    ("ribbon: four bytes more", LAYER, (), 4),
    ("ribbon: hashes in descending order", LIST, ((48, U64, 2**64 - 1),), 0),
    ("ribbon: a hash twice", LIST, ((48, U64, 0x4922DA1012E2EF9B),), 0),
    ("ribbon: fewer keys than hashes", LIST, ((8, U64, 2),), 0),
    ("ribbon: more keys than hashes", LIST, ((8, U64, 4),), 0),
    ("ribbon: more keys than slots", LAYER, ((8, U64, 193),), 0),
    ("grafite: numbers of 9 bytes", "grafite", ((52, BYTE, 9),), 0),
    ("grafite: more codes than keys", "grafite", ((40, U64, 4),), 1),
    ("grafite: fewer codes than there are", "grafite", ((40, U64, 2),), 0),
    ("grafite: no codes", "grafite", ((40, U64, 0),), -2),
    ("grafite: a prefix that there is not", "grafite", ((48, U32, 1),), 0),
    ("grafite: a prefix of 2^32 - 1 bytes", "grafite", ((48, U32, 2**32 - 1),), 0),
    ("grafite: no payload", "grafite", (), -16),
    ("grafite: a bit behind the lowest ones", "grafite", ((54, BYTE, 0xAC),), 0),
    ("grafite: one code more in its buckets", "grafite", ((55, BYTE, 0x1D),), 0),
    ("grafite: one code less in its buckets", "grafite", ((55, BYTE, 0x05),), 0),
    ("grafite: a code behind the last bucket", "grafite", ((55, BYTE, 0x25),), 0),
    ("grafite: a bit behind the last bucket", "grafite", ((55, BYTE, 0x4D),), 0),
    ("grafite: codes below 2^63 + 1", "grafite", ((16, U64, 2**63 + 1), (7, BYTE, 63)), 0),
    ("surf: 4 keys in 3 leaves", "surf", ((8, U64, 4),), 0),
    ("surf: 2 keys in 3 leaves", "surf", ((8, U64, 2),), 0),
    ("surf: 2^32 - 1 edges", "surf", ((16, U64, 2**32 - 1),), 0),
    ("surf: 4 edges", "surf", ((16, U64, 4),), 2),
    ("surf: 33 bits of hashes", "surf", ((7, BYTE, 33), (44, U32, 0)), 8),
    ("surf: 33 bits of suffixes", "surf", ((44, U32, 29),), 8),
    ("surf: 2^32 - 1 bits of keys", "surf", ((44, U32, 2**32 - 1),), 0),
    ("surf: no node", "surf", ((40, U32, 0),), 0),
    ("surf: two nodes", "surf", ((40, U32, 2),), -1),
    ("surf: 2^32 - 1 nodes", "surf", ((40, U32, 2**32 - 1),), 0),
    ("surf: an edge to nowhere", "surf", ((48, BYTE, 1),), -1),
    ("surf: an edge that is none", "surf", ((48, BYTE, 8),), 0),
    ("surf: no first edge", "surf", ((56, BYTE, 2),), 0),
    ("surf: two first edges", "surf", ((56, BYTE, 3),), 0),
    ("surf: a first edge that is none", "surf", ((63, BYTE, 0x80),), 0),
    ("surf: a key more", "surf", ((64, BYTE, 1),), 0),
    ("surf: a node that is none", "surf", ((64, BYTE, 2),), 0),
    ("surf: labels that fall", "surf", ((73, BYTE, 0x60),), 0),
    ("surf: a label twice", "surf", ((74, BYTE, 0x62),), 0),
    ("surf: bits behind the suffixes", "surf", ((79, BYTE, 0x17),), 0),
]


@pytest.mark.parametrize("case", REFUSED, ids=[case[0] for case in REFUSED])
def test_both_refuse_what_the_page_says_must_be_refused(kernel: ModuleType, case: Any) -> None:
    _, title, edits, payload = case
    data = changed(title, *edits, payload=payload)
    with pytest.raises(RefusedError):
        independent_reader.read(data)
    with pytest.raises(CorruptFilterError):
        class_of(kernel, read_example(title).family).from_bytes(data)


def test_both_refuse_three_shards_that_are_sound_otherwise(kernel: ModuleType) -> None:
    for family in ("binary-fuse", "xor"):
        data = sharded(family, KEYS, 3, 8)
        with pytest.raises(RefusedError, match="size"):
            independent_reader.read(data)
        with pytest.raises(CorruptFilterError, match="3 shards"):
            class_of(kernel, family).from_bytes(data)


@pytest.mark.parametrize(
    ("title", "largest"),
    [
        ("classic", 2**40),
        ("counting", 2**40),
        ("cuckoo", 2**36),
        ("blocked", 2**31),
        (FUSE, 2**20),
        (CHAIN, 64),
        (XOR, 2**20),
    ],
)
def test_both_draw_the_line_at_the_same_size(kernel: ModuleType, title: str, largest: int) -> None:
    cls = class_of(kernel, read_example(title).family)
    allowed = (16, U64, largest)
    beyond = (16, U64, 2 * largest if title in (FUSE, XOR) else largest + 1)
    with pytest.raises(RefusedError, match=r"payload length|directory"):
        independent_reader.read(changed(title, allowed))
    with pytest.raises(CorruptFilterError, match=r"payload of|directory"):
        cls.from_bytes(changed(title, allowed))
    with pytest.raises(RefusedError, match="size"):
        independent_reader.read(changed(title, beyond))
    with pytest.raises(CorruptFilterError, match="allowed are"):
        cls.from_bytes(changed(title, beyond))


LARGEST = [
    ("classic", ((16, U64, 72), (7, BYTE, 64)), 1),
    ("classic", ((16, U64, 65), (7, BYTE, 1)), 1),
    ("counting", ((16, U64, 65), (7, BYTE, 64)), 1),
    ("cuckoo", ((16, U64, 1),), -3),
    ("cuckoo", ((7, BYTE, 32), (8, U64, 8)), 26),
    ("cuckoo", ((7, BYTE, 7), (16, U64, 3)), 5),
    ("blocked", ((7, BYTE, 32),), 0),
    (FUSE, ((8, U64, 12),), 0),
    (FUSE, ((48, U32, 1 << 18),), 3 * (1 << 18) - 12),
    (FUSE2, ((68, U32, 2),), 8),
    (CHAIN, ((7, BYTE, 4), (40, U64, 2**40), (48, DOUBLE, 0.5), (56, DOUBLE, 0.95)), 0),
    (CHAIN, ((40, U64, 1), (48, DOUBLE, 1e-9), (56, DOUBLE, 0.5), (72, U64, 64)), 0),
    (CHAIN, ((80, U64, 6400), (88, U64, 1)), 792),
    (CHAIN, ((8, U64, 2**60),), 0),
    (XOR, ((8, U64, 33),), 0),
    (XOR, ((48, U32, 1),), -30),
    (XOR2, ((60, U32, 12),), 6),
    (LAYER, ((7, BYTE, 32), (16, U64, 96)), 8 * 91),
    (LAYER, ((7, BYTE, 31), (16, U64, 95)), 8 * 90),
    (LAYER, ((8, U64, 192),), 0),
    *[(LAYER, ((48, BYTE, code),), 8) for code in (0, 1, 2, 3)],
    *[("grafite", ((52, BYTE, width),), 0) for width in (0, 1, 8)],
    ("grafite", ((16, U64, 65), (8, U64, 2**60)), 0),
]


@pytest.mark.parametrize("case", LARGEST)
def test_both_take_what_lies_on_a_limit(kernel: ModuleType, rng: random.Random, case: Any) -> None:
    title, edits, payload = case
    data = changed(title, *edits, payload=payload)
    reader = independent_reader.read(data)
    real = class_of(kernel, read_example(title).family).from_bytes(data)
    asked = random_keys(rng, 300)
    assert [reader.answer(key) for key in asked] == real.might_contain_many(asked)


UNUSED_BITS = [
    ("classic", ((16, U64, 65),), 1),
    ("counting", ((16, U64, 65),), 1),
    ("cuckoo", ((7, BYTE, 7), (16, U64, 3)), 5),
]


@pytest.mark.parametrize("case", UNUSED_BITS)
def test_both_refuse_unused_bits_that_are_set(kernel: ModuleType, case: Any) -> None:
    title, edits, payload = case
    plain = changed(title, *edits, payload=payload)
    cls = class_of(kernel, title)
    independent_reader.read(plain)
    cls.from_bytes(plain)
    strange = sealed(plain[:-9] + bytes([plain[-9] | 0x80]))
    with pytest.raises(RefusedError, match="unused bits"):
        independent_reader.read(strange)
    with pytest.raises(CorruptFilterError, match="behind the last"):
        cls.from_bytes(strange)


@pytest.mark.parametrize("version", [0, 2, 255])
@pytest.mark.parametrize("title", TITLES)
def test_both_tell_another_version_from_damage(
    kernel: ModuleType, title: str, version: int
) -> None:
    data = changed(title, (5, BYTE, version), (6, BYTE, 0xFF), (7, BYTE, 0), payload=3)
    cls = class_of(kernel, read_example(title).family)
    with pytest.raises(UnknownVersionError):
        independent_reader.read(data)
    with pytest.raises(UnsupportedVersionError):
        cls.from_bytes(data)
    damaged = data[:-1] + bytes([data[-1] ^ 1])
    with pytest.raises(RefusedError, match="checksum"):
        independent_reader.read(damaged)
    with pytest.raises(CorruptFilterError, match="checksum"):
        cls.from_bytes(damaged)


@pytest.mark.parametrize("title", TITLES)
def test_a_class_refuses_the_other_families(kernel: ModuleType, title: str) -> None:
    example = read_example(title)
    for family in set(independent_reader.FAMILIES.values()) - {example.family}:
        with pytest.raises(CorruptFilterError, match=f"not a {family} filter"):
            class_of(kernel, family).from_bytes(example.data)


@pytest.mark.parametrize("title", TITLES)
def test_both_refuse_every_flipped_bit_and_every_cut(kernel: ModuleType, title: str) -> None:
    data = read_example(title).data
    cls = class_of(kernel, read_example(title).family)
    flipped = [
        data[:index] + bytes([data[index] ^ 1 << bit]) + data[index + 1 :]
        for index in range(len(data))
        for bit in range(8)
    ]
    cut = [data[:length] for length in range(len(data))]
    for each in [*flipped, *cut, data + b"\0", b"\0" + data]:
        with pytest.raises(RefusedError):
            independent_reader.read(each)
        with pytest.raises(CorruptFilterError):
            cls.from_bytes(each)


def test_the_reader_takes_nothing_from_the_package() -> None:
    source = Path(independent_reader.__file__).read_text(encoding="utf-8")
    imports = re.findall(r"^\s*(?:from|import) (\S+)", source, flags=re.MULTILINE)
    assert imports == ["__future__", "struct", "dataclasses", "xxhash"]
