"""The self-describing block: what it says, and that nothing damaged is ever believed."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import attrs
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from xxhash import xxh3_64_intdigest

import filters
import policies
from filters.errors import FilterError
from filters.families import FAMILIES, every
from policies import (
    CorruptBlockError,
    FilterPolicy,
    FilterReader,
    PluginError,
    UnknownPolicyError,
    UnsupportedVersionError,
    describe_block,
    encode_block,
    open_block,
)
from policies.block import read_block
from policies.builtin import BUILTIN
from tests.policies import independent_block
from tests.stack import with_stack_for

KEYS = [b"key%d" % number for number in range(20)]
NAMES = [cls.name for cls in BUILTIN if cls.name != "none"]


def block_of(name: str, keys: Sequence[bytes] = KEYS, **params: Any) -> bytes:
    policy = policies.create(name, **params)
    filter = policy.create_filter(keys)
    assert filter is not None
    return encode_block(policy, filter, num_keys=len(set(keys)))


def sealed(body: bytes) -> bytes:
    """The body with the checksum that makes it an intact block, whatever it says."""
    return body + xxh3_64_intdigest(body).to_bytes(8, "little")


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
    payload: bytes = b"\xff" * 9,
    payload_length: int | None = None,
    after: bytes = b"",
) -> bytes:
    """An intact block that says whatever it is told to."""

    def length(given: int | None, field: bytes, width: int) -> bytes:
        return (len(field) if given is None else given).to_bytes(width, "little")

    flags = (0 if num_keys else 1) if flags is None else flags
    return sealed(
        magic
        + bytes((version, flags))
        + length(name_length, name, 1)
        + name
        + length(params_length, params, 2)
        + params
        + num_keys.to_bytes(8, "little")
        + length(payload_length, payload, 8)
        + payload
        + after
    )


def mended(block: bytes, start: int) -> bytes:
    """The block with right checksums, that of a filter of our own from ``start`` on included."""
    body = block[:-8]
    return sealed(
        body[:start] + sealed(body[start:-8]) if block[start : start + 4] == b"LSFB" else body
    )


def outcome(block: bytes, *, is_checked: bool) -> object:
    """What comes of opening a block: what it says and how its reader answers, or the error."""
    try:
        described, reader = read_block(block, is_checked=is_checked)
    except FilterError as error:
        return type(error), str(error)
    return described, reader.might_contain_many([*KEYS, *(b"%d" % each for each in range(200))])


def nested(levels: int) -> bytes:
    """An object in an object, so many in all."""
    return b'{"a":' * levels + b"1" + b"}" * levels


class TestLayout:
    def test_the_bytes_are_as_documented(self) -> None:
        policy = policies.LevelDBPolicy(num_probes=3)
        filter = policy.create_filter([b"a"])
        body = (
            b'LSMF\x01\x00\x07leveldb\x23\x00{"bits_per_key":10,"num_probes":3}'.replace(
                b"\x23", b"\x22"
            )
            + b"\x01\x00\x00\x00\x00\x00\x00\x00\x09\x00\x00\x00\x00\x00\x00\x00"
            + filter
        )
        assert encode_block(policy, filter, num_keys=1) == sealed(body)

    def test_parameters_are_canonical(self) -> None:
        described = block_of("rocksdb", bits_per_key=10.0)
        assert b'{"bits_per_key":10,"optimize_filters_for_memory":true}' in described
        assert described == block_of("rocksdb", bits_per_key=10)

    def test_text_is_written_as_utf8(self) -> None:
        policy = AnyParams({"ä": "ö", "a": [1.5, None, True]})
        block = encode_block(policy, b"x", num_keys=1)
        assert '{"a":[1.5,null,true],"ä":"ö"}'.encode() in block
        assert describe_block(block).params == {"ä": "ö", "a": [1.5, None, True]}

    @pytest.mark.parametrize("name", NAMES)
    def test_a_block_describes_itself(self, name: str) -> None:
        policy = policies.create(name)
        filter = policy.create_filter(KEYS)
        assert filter is not None
        described = describe_block(encode_block(policy, filter, num_keys=20))
        assert described.version == 1
        assert described.policy == name
        assert described.params == policy.params()
        assert described.num_keys == 20
        assert not described.is_empty
        assert described.payload_bytes == len(filter)
        overhead = 4 + 1 + 1 + 1 + len(name) + 2 + 8 + 8 + 8
        params = json.dumps(policy.params(), separators=(",", ":"))
        assert described.total_bytes == len(filter) + overhead + len(params)
        assert described.bits_per_key == len(filter) * 8 / 20
        assert hash(described) == hash(attrs.evolve(described))

    def test_the_empty_set_has_no_bits_per_key(self) -> None:
        described = describe_block(block_of("blocked", []))
        assert described.is_empty
        assert described.bits_per_key is None

    def test_a_block_of_an_unknown_policy_describes_itself(self) -> None:
        described = describe_block(forged(name=b"acme.lost", params=b'{"width":3}'))
        assert (described.policy, described.params) == ("acme.lost", {"width": 3})


class TestReading:
    @given(
        keys=st.lists(st.binary(max_size=20), max_size=50),
        name=st.sampled_from(NAMES),
    )
    def test_a_round_trip(self, keys: list[bytes], name: str) -> None:
        policy = policies.create(name)
        filter = policy.create_filter(keys)
        assert filter is not None
        reader = open_block(encode_block(policy, filter, num_keys=len(set(keys))))
        assert all(reader.might_contain_many(keys))

    def test_built_in_readers_are_views_of_the_block(self) -> None:
        block = block_of("blocked")
        reader = open_block(block)
        assert isinstance(reader, filters.BlockedBloomFilter)
        assert reader.num_keys == 20

    def test_a_block_that_changes_later_is_copied_first(self) -> None:
        block = bytearray(block_of("leveldb"))
        reader = open_block(block)
        block[:] = bytes(len(block))
        assert all(reader.might_contain_many(KEYS))

    def test_a_policy_without_views_gets_bytes(self, taught: type[Taught]) -> None:
        open_block(encode_block(taught(), b"payload", num_keys=1))
        open_block(memoryview(encode_block(taught(), b"payload", num_keys=1)))
        assert taught.opened == [b"payload", b"payload"]
        assert {type(each) for each in taught.opened} == {bytes}

    def test_a_filter_of_no_bytes_is_the_empty_set(self) -> None:
        block = encode_block(policies.RocksDBPolicy(), b"", num_keys=0)
        reader = open_block(block)
        assert reader.might_contain(b"a") is False
        assert reader.might_contain_many([b"a", b"b"]) == [False, False]
        assert getattr(reader, "num_keys", None) == 0
        assert reader.might_contain_many(["a", b"b"]) == [False, False]  # type: ignore[list-item]
        with pytest.raises(TypeError, match="a key is bytes-like or str"):
            reader.might_contain(7)  # type: ignore[arg-type]

    def test_an_empty_set_with_bytes_is_read_by_its_policy(self, taught: type[Taught]) -> None:
        open_block(encode_block(taught(), b"nothing in here", num_keys=0))
        assert taught.opened == [b"nothing in here"]

    def test_an_unknown_policy_is_named(self) -> None:
        with pytest.raises(UnknownPolicyError, match=r"'acme\.lost'"):
            open_block(forged(name=b"acme.lost"))

    @pytest.mark.parametrize(
        "params",
        [b'{"bits_per_key":10,"invented_later":true}', b'{"bits_per_key":1000000}', b'{"fpr":"?"}'],
    )
    def test_parameters_of_another_release_do_not_matter(self, params: bytes) -> None:
        assert open_block(forged(params=params)).might_contain(b"a")

    def test_required_parameters_come_from_the_block(self, taught: type[Taught]) -> None:
        taught.needs_width = True
        open_block(encode_block(taught(width=3), b"x", num_keys=1))
        with pytest.raises(PluginError, match=r"'test\.taught'.*needs a width"):
            open_block(forged(name=b"test.taught"))


class Taught(FilterPolicy):
    """A plug-in that does in ``open`` what a test tells it to."""

    name: ClassVar[str] = "test.taught"
    opened: ClassVar[list[object]]
    error: ClassVar[BaseException | None]
    reader: ClassVar[Any]
    needs_width: ClassVar[bool]

    def __init__(self, *, width: int | None = None):
        if self.needs_width and width is None:
            raise TypeError("needs a width")
        self.width = width

    def params(self) -> dict[str, Any]:
        return {} if self.width is None else {"width": self.width}

    def create_filter(self, keys: Sequence[bytes]) -> bytes:
        return b"filter"

    def open(self, filter: bytes) -> FilterReader:
        type(self).opened.append(filter)
        if self.error is not None:
            raise self.error
        reader: FilterReader = self.reader
        return reader


@pytest.fixture
def taught() -> Iterator[type[Taught]]:
    """The class, registered and with nothing taught to it yet."""

    class Fresh(Taught):
        opened: ClassVar[list[object]] = []
        error: ClassVar[BaseException | None] = None
        reader: ClassVar[Any] = policies.NoFilterPolicy().open(b"")
        needs_width: ClassVar[bool] = False

    policies.register(Fresh, replace=True)
    yield Fresh
    policies.registry._REGISTRY._registered.pop(Fresh.name)


class AnyParams(Taught):
    """A plug-in whose parameters are what they should not be."""

    def __init__(self, params: Any):
        self._params = params

    def params(self) -> Any:
        return self._params


class TestDamage:
    @pytest.mark.parametrize("name", NAMES)
    def test_every_single_flipped_bit_is_noticed(self, name: str) -> None:
        block = block_of(name)
        assert all(open_block(block).might_contain_many(KEYS))
        for position in range(len(block)):
            for bit in range(8):
                flipped = bytearray(block)
                flipped[position] ^= 1 << bit
                with pytest.raises(CorruptBlockError):
                    open_block(flipped)

    @pytest.mark.parametrize("name", NAMES)
    def test_every_truncation_is_noticed(self, name: str) -> None:
        block = block_of(name)
        for length in range(len(block)):
            with pytest.raises(CorruptBlockError):
                open_block(block[:length])
            with pytest.raises(CorruptBlockError):
                open_block(block[length + 1 :])

    @given(st.binary(max_size=200))
    @example(b"")
    @example(b"LSMF")
    def test_random_bytes_are_no_block(self, data: bytes) -> None:
        with pytest.raises(CorruptBlockError):
            open_block(data)

    @given(st.binary(max_size=120), st.booleans())
    def test_random_bytes_with_a_right_checksum_are_an_answer_or_an_error(
        self, data: bytes, versioned: bool
    ) -> None:
        block = sealed(b"LSMF" + (b"\x01" if versioned else b"") + data)
        try:
            reader = open_block(block)
        except FilterError:
            return
        reader.might_contain(b"a")

    def test_random_fields_with_a_right_checksum_are_an_answer_or_an_error(
        self, rng: random.Random
    ) -> None:
        block = block_of("leveldb")[:-8]
        for _ in range(3000):
            changed = bytearray(block)
            for _ in range(rng.randint(1, 3)):
                changed[rng.randrange(4, len(block))] = rng.randrange(256)
            try:
                reader = open_block(sealed(bytes(changed)))
            except FilterError:
                continue
            reader.might_contain(b"a")

    @pytest.mark.parametrize("version", [0, 2, 255])
    def test_a_future_version_is_not_taken_for_damage(self, version: int) -> None:
        with pytest.raises(UnsupportedVersionError, match=f"version {version}.*reads 1: upgrade"):
            open_block(sealed(b"LSMF" + bytes((version,)) + b"anything"))
        with pytest.raises(UnsupportedVersionError):
            describe_block(sealed(b"LSMF" + bytes((version,))))

    def test_the_checksum_comes_before_the_version(self) -> None:
        block = bytearray(block_of("leveldb"))
        block[4] = 2
        with pytest.raises(CorruptBlockError, match="XXH3-64 checksum does not match"):
            open_block(block)

    def test_no_buffer_at_all(self) -> None:
        with pytest.raises(TypeError, match="not str"):
            open_block("LSMF")  # type: ignore[arg-type]

    @pytest.mark.parametrize(
        ("fields", "message"),
        [
            ({"magic": b"LSFB"}, r"bytes 0 to 3 are b'LSFB', expected b'LSMF'"),
            ({"name_length": 255}, r"the name would take bytes 7 to 262"),
            ({"params_length": 0xFFFF}, r"the parameters would take bytes 16 to 65551"),
            (
                {"payload_length": 2**64 - 1},
                r"the filter would take bytes 34 to 18446744073709551649",
            ),
            ({"payload_length": 10}, r"the filter would take bytes 34 to 44, and there are 43"),
            ({"payload_length": 2**31}, r"the filter would take bytes"),
            ({"payload_length": 8}, r"1 bytes follow its last field"),
            ({"after": b"more"}, r"4 bytes follow its last field"),
            ({"flags": 2}, r"flags 0x02 \(byte 5\) with 1 keys"),
            ({"flags": 0x80}, r"flags 0x80"),
            ({"flags": 1}, r"flags 0x01 \(byte 5\) with 1 keys"),
            ({"flags": 0, "num_keys": 0}, r"flags 0x00 \(byte 5\) with 0 keys"),
            ({"payload": b""}, r"1 keys and a filter of no bytes"),
            ({"name": b""}, r"names b''"),
            ({"name": b"\xff\xfe"}, r"names b'\\xff\\xfe'"),
            ({"name": b"Level DB"}, r"names b'Level DB'"),
            ({"name": b"x" * 65}, r"names b'x+'"),
            ({"params": b""}, r"parameters that are not JSON"),
            ({"params": b"{"}, r"parameters that are not JSON"),
            ({"params": b"\xff"}, r"parameters that are not JSON: UnicodeDecodeError"),
            ({"params": b"[1]"}, r"parameters that are a JSON list, not an object"),
            ({"params": b"null"}, r"a JSON NoneType"),
            ({"params": b'{"x":NaN}'}, r"not JSON.*NaN"),
            ({"params": b'{"x":-Infinity}'}, r"not JSON.*-Infinity"),
            ({"params": b'{"x":1e999}'}, r"not JSON: ValueError: Out of range"),
            ({"params": b'{"x":"\\ud800"}'}, r"not JSON: UnicodeEncodeError"),
            ({"params": b"[" * 65000}, r"not JSON.*nest deeper than 64"),
            ({"params": b'{"a":' * 13000}, r"not JSON.*nest deeper than 64"),
            ({"params": nested(65)}, r"not JSON.*nest deeper than 64"),
            ({"params": b'{"x":"\\\\","y":' + nested(64) + b"}"}, r"not JSON.*nest deeper than 64"),
            ({"params": b'{"x":' + b"9" * 60000 + b"}"}, r"not JSON: ValueError"),
        ],
        ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
    )
    def test_intact_blocks_that_say_what_cannot_be(
        self, fields: dict[str, Any], message: str
    ) -> None:
        with pytest.raises(CorruptBlockError, match=message):
            open_block(forged(**fields))
        with pytest.raises(CorruptBlockError):
            describe_block(forged(**fields))

    def test_a_body_that_ends_within_its_fixed_fields(self) -> None:
        whole = forged()[:-8]
        for length in range(5, len(whole)):
            with pytest.raises(CorruptBlockError, match=r"filter block: .*(would take|follow)"):
                open_block(sealed(whole[:length]))

    @pytest.mark.parametrize("name", NAMES)
    def test_under_another_checksum_all_else_is_checked(self, name: str) -> None:
        """Whatever is wrong is found, as if somebody had mended all checksums in the block."""
        whole = block_of(name)
        start = len(whole) - 8 - describe_block(whole).payload_bytes
        for position in (*range(min(start + 200, len(whole))), *range(len(whole) - 9, len(whole))):
            for flip in (0x01, 0x80, 0xFF):
                changed = bytearray(whole)
                changed[position] ^= flip
                assert outcome(bytes(changed), is_checked=True) == outcome(
                    mended(bytes(changed), start), is_checked=False
                ), (position, flip)

    @pytest.mark.parametrize(
        "name", [each.name for each in FAMILIES.values() if each.is_salted and each.policy]
    )
    def test_a_damaged_filter_in_an_intact_block(self, name: str) -> None:
        policy = policies.create(name)
        filter = bytearray(policy.create_filter(KEYS) or b"")
        filter[len(filter) // 2] ^= 1
        with pytest.raises(CorruptBlockError, match="checksum is right, its filter is not") as info:
            open_block(encode_block(policy, filter, num_keys=20))
        assert isinstance(info.value.__cause__, filters.CorruptFilterError)

    def test_a_filter_of_a_newer_family_version(self) -> None:
        policy = policies.BlockedPolicy()
        body = bytearray(policy.create_filter(KEYS)[:-8])
        body[5] = 9
        with pytest.raises(UnsupportedVersionError, match="blocked filter has format version 9"):
            open_block(encode_block(policy, sealed(bytes(body)), num_keys=20))


class TestPlugins:
    def test_an_exception_in_open_is_the_plugins(self, taught: type[Taught]) -> None:
        taught.error = ZeroDivisionError("by zero")
        with pytest.raises(PluginError, match=r"'test\.taught' \(.*Fresh\).*ZeroDivisionError"):
            open_block(encode_block(taught(), b"x", num_keys=1))

    def test_memory_that_a_plugin_asks_for_in_vain_is_the_plugins(
        self, taught: type[Taught]
    ) -> None:
        taught.error = MemoryError()
        with pytest.raises(PluginError, match="MemoryError"):
            open_block(encode_block(taught(), b"x", num_keys=1))

    def test_damage_that_a_plugin_finds_is_damage(self, taught: type[Taught]) -> None:
        taught.error = filters.CorruptFilterError("holes in it")
        with pytest.raises(CorruptBlockError, match="holes in it"):
            open_block(encode_block(taught(), b"x", num_keys=1))

    def test_an_interrupt_is_nobodys(self, taught: type[Taught]) -> None:
        taught.error = KeyboardInterrupt()
        with pytest.raises(KeyboardInterrupt):
            open_block(encode_block(taught(), b"x", num_keys=1))

    @pytest.mark.parametrize("reader", [None, 3, object()])
    def test_what_is_no_reader_is_refused(self, taught: type[Taught], reader: object) -> None:
        taught.reader = reader
        with pytest.raises(PluginError, match=r"which has no might_contain\(\)"):
            open_block(encode_block(taught(), b"x", num_keys=1))


class TestNesting:
    """Known from the text alone: who is short of stack finds no block damaged that is not."""

    @pytest.mark.parametrize(
        "params",
        [
            nested(64),
            b'{"a":' + b"[" * 63 + b"]" * 63 + b"}",
            json.dumps({"a": "[" * 200, 'b"{': "\\", "c": '\\"' + "{" * 200}).encode(),
            b'{"a":[' + b"[],{}," * 500 + b"1]}",
        ],
    )
    def test_what_is_read(self, params: bytes) -> None:
        block = forged(params=params)
        assert describe_block(block).params == json.loads(params)
        assert independent_block.parse(block).params == json.loads(params)

    def test_what_cannot_be_read_is_not_written(self) -> None:
        deep: Any = 1
        for _ in range(64):
            deep = [deep]
        with pytest.raises(PluginError, match="nest deeper than 64"):
            encode_block(AnyParams({"a": deep}), b"x", num_keys=1)
        block = encode_block(AnyParams({"a": deep[0]}), b"x", num_keys=1)
        assert describe_block(block).params == {"a": deep[0]}

    @pytest.mark.parametrize("params", [b"[" * 60000, b'{"a":' * 12000, nested(65), nested(9000)])
    def test_a_reader_from_the_page_refuses_the_same(self, params: bytes) -> None:
        for read in (describe_block, open_block):
            with pytest.raises(CorruptBlockError, match="nest deeper than 64"):
                read(forged(params=params))
        with pytest.raises(independent_block.RefusedError):
            independent_block.parse(forged(params=params))

    def test_a_caller_without_stack_finds_no_damage(self) -> None:
        block, outcomes = forged(params=nested(60)), set()
        for frames in range(1, 120):
            try:
                outcomes.add(with_stack_for(frames, lambda: describe_block(block).policy))
            except RecursionError:
                outcomes.add("short of stack")
        assert outcomes == {"leveldb", "short of stack"}


class TestEncoding:
    @pytest.mark.parametrize("num_keys", [-1, 2**64])
    def test_a_count_out_of_range(self, num_keys: int) -> None:
        with pytest.raises(ValueError, match="num_keys is out of range"):
            encode_block(policies.LevelDBPolicy(), b"x", num_keys=num_keys)

    @pytest.mark.parametrize("num_keys", [True, 3.0, "3"])
    def test_a_count_that_is_no_int(self, num_keys: Any) -> None:
        with pytest.raises(TypeError, match="num_keys is an int"):
            encode_block(policies.LevelDBPolicy(), b"x", num_keys=num_keys)

    @pytest.mark.parametrize("name", NAMES)
    def test_a_filter_says_itself_how_many_keys_it_has(self, name: str) -> None:
        policy = policies.create(name)
        created = policy.create_filter(sorted(KEYS))
        built = every()[name].filter_class(filters.KERNEL).build(sorted(KEYS))
        built = built.collapse() if hasattr(built, "collapse") else built
        assert describe_block(encode_block(policy, built)).num_keys == len(KEYS)
        assert open_block(encode_block(policy, built)) == built
        assert encode_block(policy, built, len(KEYS)) == encode_block(policy, built)
        for wrong in (0, len(KEYS) - 1, len(KEYS) + 1):
            with pytest.raises(ValueError, match=f"num_keys={wrong} contradicts .* has 20 keys"):
                encode_block(policy, built, num_keys=wrong)
        assert created is not None
        if not every()[name].is_salted:
            with pytest.raises(TypeError, match="does not say how many.*num_keys="):
                encode_block(policy, created)
            with pytest.raises(TypeError, match="does not say how many.*num_keys="):
                encode_block(policy, type(built).from_bytes(created))
            return
        for data in (created, memoryview(created), bytearray(created)):
            whole = encode_block(policy, data)
            assert whole == encode_block(policy, data, num_keys=len(KEYS))
            assert describe_block(whole).num_keys == len(KEYS)

    @pytest.mark.parametrize("name", [name for name in NAMES if every()[name].is_salted])
    def test_bytes_count_a_key_once_that_is_given_twice(self, name: str) -> None:
        policy = policies.create(name)
        created = policy.create_filter(sorted(KEYS * 2)) or b""
        assert describe_block(encode_block(policy, created)).num_keys == len(KEYS)
        twice = encode_block(policy, created, num_keys=2 * len(KEYS))
        assert describe_block(twice).num_keys == 2 * len(KEYS)
        empty = policy.create_filter([]) or b""
        for data, wrong in ((created, 19), (created, 0), (empty, 1)):
            with pytest.raises(ValueError, match=f"num_keys={wrong} contradicts"):
                encode_block(policy, data, num_keys=wrong)

    def test_a_filter_of_the_programs_own(self) -> None:
        class Own:
            num_keys: int | None = 3

            def to_bytes(self) -> bytes:
                return b"own"

        own: Any = Own()
        assert describe_block(encode_block(policies.LevelDBPolicy(), own)).num_keys == 3
        own.num_keys = None
        with pytest.raises(TypeError, match="does not say"):
            encode_block(policies.LevelDBPolicy(), own)
        assert describe_block(encode_block(policies.LevelDBPolicy(), own, num_keys=9)).num_keys == 9

    @pytest.mark.parametrize("data", [b"LSFB", b"LSFB" + bytes(60), b"payload"])
    def test_bytes_that_only_look_like_ours_say_nothing(self, data: bytes) -> None:
        with pytest.raises(TypeError, match="does not say"):
            encode_block(policies.LevelDBPolicy(), data)
        assert (
            describe_block(encode_block(policies.LevelDBPolicy(), data, num_keys=7)).num_keys == 7
        )

    def test_a_damaged_filter_says_nothing(self) -> None:
        policy = policies.create("blocked")
        data = bytearray(policy.create_filter(KEYS) or b"")
        data[8] ^= 1
        with pytest.raises(TypeError, match="does not say"):
            encode_block(policy, data)

    def test_a_filter_that_is_no_bytes(self) -> None:
        with pytest.raises(TypeError, match="not str"):
            encode_block(policies.LevelDBPolicy(), "x", num_keys=1)  # type: ignore[arg-type]

    def test_a_filter_of_no_bytes_for_some_keys(self) -> None:
        with pytest.raises(ValueError, match="a filter of 3 keys has no bytes"):
            encode_block(policies.LevelDBPolicy(), b"", num_keys=3)

    @pytest.mark.parametrize(
        ("params", "message"),
        [
            ({"x": float("nan")}, "ValueError"),
            ({"x": b"bytes"}, "TypeError"),
            ({"x": "\ud800"}, "UnicodeEncodeError"),
            (["x"], r"params\(\) returned list, not a dict"),
            ({"x": "y" * 65536}, "its parameters take 65544 bytes, allowed are 65535"),
        ],
    )
    def test_parameters_that_are_no_json(self, params: Any, message: str) -> None:
        with pytest.raises(PluginError, match=f"AnyParams cannot be named in a block.*{message}"):
            encode_block(AnyParams(params), b"x", num_keys=1)

    def test_a_name_that_is_none(self) -> None:
        class Shouting(AnyParams):
            name: ClassVar[str] = "ACME"

        with pytest.raises(PluginError, match=r"Shouting.*'ACME' is not allowed"):
            encode_block(Shouting({}), b"x", num_keys=1)
