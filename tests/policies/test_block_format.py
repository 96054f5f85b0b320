"""``docs/block-format.md`` is right: a reader written from it agrees with the code."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest
from xxhash import xxh3_64_intdigest

import filters
import policies
from filters.compat_hashing import xxph3_64
from filters.families import every
from filters.header import Header, pack
from policies import (
    CorruptBlockError,
    FilterPolicy,
    UnknownPolicyError,
    UnsupportedVersionError,
    describe_block,
    encode_block,
    open_block,
)
from policies.builtin import BUILTIN
from tests.filters.independent_reader import RefusedError, UnknownVersionError
from tests.filters.test_family_formats import KEYS, SALT, SEED, read_example
from tests.policies import independent_block
from tests.policies.cases import built_in
from tests.policies.independent_block import UnknownNameError
from tests.worked_examples import example_bytes, example_titles, sections, table_rows

PAGE = Path(__file__).parents[2] / "docs" / "block-format.md"
ABSENT = [b"absent%d" % number for number in range(400)]
LENGTHS = [b"x" * length for length in range(20)]

ERRORS: list[tuple[type[Exception], type[Exception]]] = [
    (UnknownVersionError, UnsupportedVersionError),  # before RefusedError, its base
    (RefusedError, CorruptBlockError),
    (UnknownNameError, UnknownPolicyError),
]

POLICIES = built_in()


def label(policy: FilterPolicy) -> str:
    return f"{policy.name} {policy.params()}"


def sealed(body: bytes | bytearray) -> bytes:
    """These bytes under a checksum that fits."""
    return bytes(body) + xxh3_64_intdigest(bytes(body)).to_bytes(8, "little")


def block_of(policy: FilterPolicy, keys: list[bytes]) -> bytes:
    filter = policy.create_filter(keys)
    assert filter is not None
    return encode_block(policy, filter, num_keys=len(set(keys)))


def forged(
    *,
    magic: bytes = b"LSMF",
    version: int = 1,
    flags: int | None = None,
    name: bytes = b"leveldb",
    name_length: int | None = None,
    params: bytes = b"{}",
    params_length: int | None = None,
    num_keys: int = 1,
    payload: bytes = b"\xa5" * 8 + b"\x06",
    payload_length: int | None = None,
    after: bytes = b"",
) -> bytes:
    """A block that says what it is told to, under a checksum that fits."""
    name_length = len(name) if name_length is None else name_length
    params_length = len(params) if params_length is None else params_length
    payload_length = len(payload) if payload_length is None else payload_length
    flags = int(num_keys == 0) if flags is None else flags
    return sealed(
        magic
        + bytes((version, flags, name_length))
        + name
        + params_length.to_bytes(2, "little")
        + params
        + num_keys.to_bytes(8, "little")
        + payload_length.to_bytes(8, "little")
        + payload
        + after
    )


def independent_answers(reader: independent_block.Reader, keys: list[bytes]) -> list[bool]:
    """The answers of the reader that was written from the page."""
    return [reader.answer(key, xxph3_64(key)) for key in keys]


def compare(block: bytes, keys: list[bytes]) -> str:
    """Both readers' one verdict on a block: the name of an error, or "read" for equal answers."""
    expected: type[Exception] | None = None
    try:
        reader = independent_block.Reader(block)
    except Exception as error:
        expected = next(ours for theirs, ours in ERRORS if isinstance(error, theirs))
    if expected is not None:
        with pytest.raises(expected):
            open_block(block)
        return expected.__name__
    assert independent_answers(reader, keys) == open_block(block).might_contain_many(keys)
    described = describe_block(block)
    assert described.policy == reader.block.name
    assert described.params == reader.block.params
    assert described.num_keys == reader.block.num_keys
    assert described.payload_bytes == len(reader.block.payload)
    return "read"


# --- the same answers as the code -----------------------------------------------------------------


@pytest.mark.parametrize("count", [0, 1, 3, 700])
@pytest.mark.parametrize("policy", POLICIES, ids=label)
def test_the_independent_reader_answers_as_the_code_does(policy: FilterPolicy, count: int) -> None:
    keys = [b"key%d" % number for number in range(count)]
    block = block_of(policy, keys)
    reader = independent_block.Reader(block)
    assert reader.block.num_keys == count
    assert all(independent_answers(reader, keys))
    assert compare(block, keys + ABSENT + LENGTHS) == "read"
    described = describe_block(block)
    assert described.params == reader.block.params == policy.params()
    lengths = {field.name: field.length for field in reader.block.fields}
    fixed = len(block) - lengths["name"] - lengths["parameters"] - lengths["payload"]
    assert fixed == 33
    assert described.total_bytes == len(block)


def test_every_name_of_the_page_is_built_in_and_the_other_way_round() -> None:
    rows = table_rows(sections(PAGE)["From name to payload"])
    assert [row[0].strip("`") for row in rows] == [*sorted(OURS), *OTHERS, "another name"]
    assert {cls.name for cls in BUILTIN} == {*OURS, *OTHERS}
    for name, payload in rows[: len(OURS)]:
        link = re.search(r"\]\((\S+?)#(\S+?)\), family (\d+)", payload)
        assert link, payload
        page, heading, number = link.groups()
        assert heading in anchors(PAGE.parent / page)
        data = independent_block.parse(block_of(policies.create(name.strip("`")), KEYS)).payload
        assert data[4] == int(number)


OURS = {each.name for each in every().values() if each.policy and each.is_salted}
OTHERS = [
    *sorted(each.name for each in every().values() if each.policy and not each.is_salted),
    "none",
]


# --- the worked examples --------------------------------------------------------------------------


def anchors(page: Path) -> set[str]:
    """What the headings of a page are called in links."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def example(title: str) -> bytes:
    return example_bytes(PAGE, title)


def written_counting() -> bytes:
    built = filters.CountingBloomFilter.build(
        KEYS, counters_per_key=1, num_probes=3, seed=SEED, salt=SALT
    )
    policy = policies.create("counting", counters_per_key=1, num_probes=3)
    return encode_block(policy, built.collapse().to_bytes(), num_keys=3)


WRITERS: dict[str, Callable[[], bytes]] = {
    "leveldb": lambda: block_of(policies.create("leveldb"), KEYS),
    "counting": written_counting,
    "rocksdb, empty set": lambda: block_of(policies.create("rocksdb"), []),
}


def test_the_page_has_exactly_these_examples() -> None:
    titles = example_titles(PAGE)
    assert titles == list(WRITERS)
    assert PAGE.read_text(encoding="utf-8").count("```hex\n") == len(WRITERS)
    assert f"**seed 0x{SEED:016x}**, **salt 0x{SALT:016x}**" in sections(PAGE)["Examples"]


@pytest.mark.parametrize("title", WRITERS)
def test_our_writer_writes_the_worked_examples(title: str) -> None:
    assert WRITERS[title]() == example(title)


@pytest.mark.parametrize("title", WRITERS)
def test_the_table_of_an_example_is_what_its_bytes_say(title: str) -> None:
    data = example(title)
    described = describe_block(data)
    fields = independent_block.parse(data).fields
    rows = [row for row in table_rows(sections(PAGE)[f"Example: {title}"]) if row[0].isdigit()]
    assert [(int(row[0]), int(row[1]), row[2]) for row in rows] == [
        (field.offset, field.length, field.name) for field in fields
    ]
    for field, row in zip(fields, rows, strict=True):
        raw, value = data[field.offset : field.offset + field.length], row[3]
        if field.name in ("magic", "name", "parameters"):
            assert value == f"`{raw.decode()}`"
        elif field.name == "payload" and title == "counting":
            assert "#example-classic" in value
            assert raw == read_example("classic").data
        elif field.name == "payload":
            assert value == (f"`{raw.hex(' ')}`" if raw else "nothing")
        else:
            assert int(value, 0) == int.from_bytes(raw, "little")
    assert (described.policy, described.num_keys) == (
        title.partition(",")[0],
        0 if "empty" in title else 3,
    )
    assert compare(data, KEYS + ABSENT) == "read"


def test_the_traces_of_the_leveldb_example() -> None:
    data = example("leveldb")
    rows = [
        row for row in table_rows(sections(PAGE)["Example: leveldb"]) if row[1].startswith("0x")
    ]
    assert [row[0] for row in rows[:3]] == [f"`{key.decode()}`" for key in KEYS]
    assert [row[-1] for row in rows] == ["maybe", "maybe", "maybe", "no", "no", "maybe"]
    for name, hashed, bits, answer in rows:
        key = name.strip("`").encode()
        assert int(hashed, 16) == independent_block.leveldb_hash(key)
        assert open_block(data).might_contain(key) == (answer == "maybe")
        payload = independent_block.parse(data).payload
        positions = [int(bit) for bit in bits.split(",")]
        assert len(positions) == payload[-1]
        assert all(payload[bit // 8] >> bit % 8 & 1 for bit in positions) == (answer == "maybe")


def test_the_offsets_of_the_layout_add_up() -> None:
    rows = table_rows(sections(PAGE)["Layout"])
    assert len(rows) == 11
    name, params, payload = 11, 222, 3333
    lengths = {"4 bytes": 4, "u8": 1, "u16": 2, "u64": 8}
    lengths |= {"`n` bytes": name, "`p` bytes": params, "`s` bytes": payload}
    offset = 0
    for cell, kind, _ in rows:
        terms = [{"n": name, "p": params, "s": payload}.get(each, each) for each in cell.split()]
        assert sum(int(each) for each in terms if each != "+") == offset, cell
        offset += lengths[kind]
    assert offset == 33 + name + params + payload


def test_the_links_of_the_page_lead_somewhere() -> None:
    links = re.findall(r"\]\(([^)#]*)(?:#([^)]*))?\)", PAGE.read_text(encoding="utf-8"))
    assert len(links) >= 10
    for page, heading in links:
        assert heading in anchors(PAGE.parent / page if page else PAGE), (page, heading)


# --- what must be refused -------------------------------------------------------------------------


REFUSED: dict[str, dict[str, Any]] = {
    "magic of a filter": {"magic": b"LSFB"},
    "name length 0": {"name": b""},
    "name of 65": {"name": b"a" * 65},
    "upper case": {"name": b"LevelDB"},
    "first letter": {"name": b".leveldb"},
    "not ASCII": {"name": "bücher".encode()},
    "line break": {"name": b"leveldb\n"},
    "name too long for the block": {"name_length": 255},
    "no parameters": {"params": b""},
    "an array": {"params": b"[]"},
    "null": {"params": b"null"},
    "two objects": {"params": b"{}{}"},
    "not UTF-8": {"params": b'{"a":"\xff"}'},
    "byte order mark": {"params": b"\xef\xbb\xbf{}"},
    "NaN": {"params": b'{"a":NaN}'},
    "Infinity": {"params": b'{"a":Infinity}'},
    "-Infinity": {"params": b'{"a":[-Infinity]}'},
    "too large a number": {"params": b'{"a":[1e999]}'},
    "half a surrogate pair": {"params": b'{"a":"\\udc00"}'},
    "no JSON": {"params": b"{'a':1}"},
    "parameters too long for the block": {"params_length": 0xFFFF},
    "payload a byte longer": {"payload_length": 10},
    "payload a byte shorter": {"payload_length": 8},
    "payload of 2^64 - 1": {"payload_length": 2**64 - 1},
    "payload length that wraps around": {"payload_length": 2**64 - 26},
    "a byte behind": {"after": b"\0"},
    "reserved flag": {"flags": 2},
    "highest flag": {"flags": 0x80},
    "reserved flag of an empty set": {"flags": 3, "num_keys": 0},
    "empty with keys": {"flags": 1},
    "no keys and no flag": {"flags": 0, "num_keys": 0},
    "keys without payload": {"payload": b""},
    "no filter": {"name": b"blocked"},
    "another family": {"name": b"blocked", "payload": "classic"},
    "counting with counters": {"name": b"counting", "payload": "counting"},
    "classic with counters": {"name": b"classic", "payload": "counting"},
}


@pytest.mark.parametrize("what", REFUSED)
def test_both_refuse_what_the_page_says_must_be_refused(what: str) -> None:
    fields = dict(REFUSED[what])
    if isinstance(fields.get("payload"), str):
        fields["payload"] = read_example(fields["payload"]).data
    assert compare(forged(**fields), KEYS) == "CorruptBlockError"


TAKEN: dict[str, dict[str, Any]] = {
    "unsorted, with spaces": {"params": b' { "b" : 1, "a" : 2.50 }\r\n'},
    "a name twice": {"params": b'{"bits_per_key":1,"bits_per_key":2}'},
    "another release's parameters": {"params": '{"later":[{"ä":null}],"fpr":9}'.encode()},
    "65535 bytes of parameters": {"params": b"{" + b" " * 65533 + b"}"},
    "most keys": {"num_keys": 2**64 - 1},
    "no keys, but bytes": {"num_keys": 0},
    "no keys, no bytes": {"num_keys": 0, "payload": b""},
    "no keys, no bytes, unknown": {"num_keys": 0, "payload": b"", "name": b"acme.lost"},
    "none": {"name": b"none", "payload": b"?"},
    "none of no bytes": {"name": b"none", "payload": b"", "num_keys": 0},
    "leveldb of 1 byte": {"payload": b"\xff"},
    "leveldb, 31 probes": {"payload": b"\0" * 8 + b"\x1f"},
    "leveldb, no probes": {"payload": b"\0" * 9},
    "cassandra, 14 probes": {"name": b"cassandra", "payload": b"\0\0\0\x0e\0\0\0\1" + b"\xf7" * 8},
    "rocksdb of 5 bytes": {"name": b"rocksdb", "payload": b"\xff\0\6\0\0"},
    "rocksdb": {"name": b"rocksdb", "payload": b"\xa5" * 128 + b"\xff\0\2\0\0"},
    "rocksdb, Ribbon": {"name": b"rocksdb", "payload": b"\xa5" * 64 + b"\xfe\0\6\0\0"},
    "ribbon, few columns": {"name": b"ribbon", "payload": b"\xa5" * 80 + b"\xfe\1\3\0\0"},
    "ribbon, one block": {"name": b"ribbon", "payload": b"\0" * 64 + b"\xfe\0\1\0\0"},
    "ribbon, 63 bytes": {"name": b"ribbon", "payload": b"\0" * 63 + b"\xfe\0\2\0\0"},
    "ribbon, 33 columns": {"name": b"ribbon", "payload": b"\xa5" * 16 * 66 + b"\xfe\0\2\0\0"},
    "ribbon, a Bloom filter": {"name": b"ribbon", "payload": b"\xa5" * 64 + b"\xff\0\3\0\0"},
    "rocksdb, other lines": {"name": b"rocksdb", "payload": b"\0" * 64 + b"\xff\0\x26\0\0"},
    "rocksdb, 31 probes": {"name": b"rocksdb", "payload": b"\0" * 64 + b"\xff\0\x1f\0\0"},
    "rocksdb, no probes": {"name": b"rocksdb", "payload": b"\0" * 64 + b"\xff\0\0\0\0"},
    "rocksdb, implementation": {"name": b"rocksdb", "payload": b"\0" * 64 + b"\xff\1\6\0\0"},
    "rocksdb, reserved": {"name": b"rocksdb", "payload": b"\0" * 64 + b"\xff\0\6\0\1"},
    "rocksdb, 63 bytes": {"name": b"rocksdb", "payload": b"\0" * 63 + b"\xff\0\6\0\0"},
}


@pytest.mark.parametrize("what", TAKEN)
def test_both_take_what_is_unusual_and_allowed(what: str) -> None:
    assert compare(forged(**TAKEN[what]), KEYS + ABSENT + LENGTHS) == "read"


def test_the_name_decides_and_not_the_count() -> None:
    """A payload's own count may differ from the block's, either way."""
    data = read_example("classic").data
    for num_keys in (0, 1, 10**12):
        assert compare(forged(name=b"classic", payload=data, num_keys=num_keys), KEYS) == "read"


@pytest.mark.parametrize("name", [b"lost", b"acme.lost", b"a" * 64, b"0._-"])
def test_a_sound_block_of_an_unknown_name_is_described(name: bytes) -> None:
    block = forged(name=name, params=b'{"width":3}')
    assert compare(block, []) == "UnknownPolicyError"
    described, parsed = describe_block(block), independent_block.parse(block)
    assert (described.policy, described.params) == (parsed.name, parsed.params)


@pytest.mark.parametrize("version", [0, 2, 255])
def test_both_tell_another_version_from_damage(version: int) -> None:
    for rest in (b"", b"anything", b"\xff" * 200):
        block = sealed(b"LSMF" + bytes((version,)) + rest)
        assert compare(block, []) == "UnsupportedVersionError"
        damaged = block[:-1] + bytes([block[-1] ^ 1])
        assert compare(damaged, []) == "CorruptBlockError"


def test_twelve_bytes_are_no_block_and_thirteen_may_be() -> None:
    assert compare(sealed(b"LSMF"), []) == "CorruptBlockError"
    assert compare(sealed(b"LSMF\x02"), []) == "UnsupportedVersionError"
    assert compare(sealed(b"LSMF\x01"), []) == "CorruptBlockError"


def test_a_newer_payload_in_a_block_of_today() -> None:
    data = bytearray(read_example("blocked").data[:-8])
    data[5] = 2
    assert compare(forged(name=b"blocked", payload=sealed(data)), []) == "UnsupportedVersionError"


@pytest.mark.parametrize("title", WRITERS)
def test_both_refuse_every_flipped_bit_and_every_cut(title: str) -> None:
    data = example(title)
    flipped = [
        data[:index] + bytes([data[index] ^ 1 << bit]) + data[index + 1 :]
        for index in range(len(data))
        for bit in range(8)
    ]
    cut = [data[:length] for length in range(len(data))]
    for each in [*flipped, *cut, data + b"\0", b"\0" + data]:
        assert compare(each, []) == "CorruptBlockError"


@pytest.mark.parametrize("policy", POLICIES, ids=label)
def test_both_agree_on_changed_fields_under_a_right_checksum(
    policy: FilterPolicy, rng: random.Random
) -> None:
    """Anything but a legacy RocksDB payload, which the page leaves to RocksDB."""
    body = block_of(policy, KEYS)[:-8]
    verdicts = set()
    for _ in range(400):
        changed = bytearray(body)
        for _ in range(rng.randint(1, 2)):
            changed[rng.randrange(4, len(body))] = rng.choice((0, 1, 0x7F, rng.randrange(256)))
        block = sealed(changed)
        if policy.name not in ("rocksdb", "ribbon") or not is_legacy(block):
            verdicts.add(compare(block, KEYS + ABSENT[:20]))
    assert "CorruptBlockError" in verdicts
    assert "read" in verdicts


def is_legacy(block: bytes) -> bool:
    try:
        payload = independent_block.parse(block).payload
    except RefusedError:
        return False
    return len(payload) > 5 and 1 <= payload[-5] <= 127


def test_canonical_json_is_as_the_page_says() -> None:
    @attrs.frozen
    class Odd(policies.NoFilterPolicy):
        name = "test.odd"
        z: Any = None
        a: Any = None
        ä: Any = None
        missing: Any = None

    policy = Odd(z=10.0, a=['"\\\b\f\n\r\t\x01\x1f', "é", 1e-5, 0.001, {"y": 1, "x": True}], ä="")
    block = encode_block(policy, b"x", num_keys=1)
    written = r'{"a":["\"\\\b\f\n\r\t\u0001\u001f","é",1e-05,0.001,{"x":true,"y":1}],"z":10,"ä":""}'
    field = next(field for field in independent_block.parse(block).fields if field.length > 50)
    assert block[field.offset : field.offset + field.length].decode() == written
    assert b"{}" in encode_block(policies.NoFilterPolicy(), b"x", num_keys=1)


def test_the_empty_sets_of_the_page() -> None:
    assert policies.create("leveldb").create_filter([]) == bytes(8) + b"\x06"
    assert policies.create("rocksdb").create_filter([]) == b""
    assert policies.create("cassandra").create_filter([]) == bytes(
        (0, 0, 0, 5, 0, 0, 0, 1)
    ) + bytes(8)
    assert policies.create("none").create_filter([]) is None
    for name in OURS:
        data = policies.create(name).create_filter([])
        assert data is not None
        assert data[6] == 1


def test_a_full_counter_is_a_set_bit() -> None:
    """What the page says of ``counting``: collapsing keeps every answer."""
    counting = filters.CountingBloomFilter.build(KEYS, seed=SEED, salt=SALT)
    block = encode_block(
        policies.create("counting"), counting.collapse().to_bytes(), num_keys=len(KEYS)
    )
    reader = independent_block.Reader(block)
    assert independent_answers(reader, ABSENT) == counting.might_contain_many(ABSENT)
    refused = pack(Header("counting", 3, 64, 3, SEED, SALT), bytes(32))
    with pytest.raises(CorruptBlockError):
        open_block(encode_block(policies.create("counting"), refused, num_keys=3))


def test_the_reader_takes_nothing_from_the_package() -> None:
    source = Path(independent_block.__file__).read_text(encoding="utf-8")
    imports = re.findall(r"^\s*(?:from|import) (\S+)", source, flags=re.MULTILINE)
    assert not {"policies", "filters"} & {each.partition(".")[0] for each in imports}
    assert set(imports) == {
        "__future__", "dataclasses", "json", "tests.filters", "tests.filters.independent_reader",
        "typing", "xxhash",
    }  # fmt: skip
