"""Prefixes: what they are of a key, of a range, in a configuration and in bytes."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import policies
from filters.errors import UnsupportedVersionError
from policies.errors import CorruptBlockError
from policies.prefixes import Prefixes, PrefixFeed, PrefixReader
from tests.effort import examples

KEYS = st.binary(max_size=6) | st.lists(st.sampled_from(b"a:\xff\0"), max_size=6).map(bytes)
ANY = st.builds(Prefixes, length=st.integers(1, 4), whole_keys=st.booleans()) | st.builds(
    Prefixes, until=st.sampled_from((b":", b"::", b"a:", b"\0")), whole_keys=st.booleans()
)


@pytest.mark.parametrize(
    ("prefixes", "key", "prefix"),
    [
        (Prefixes(length=3), b"abcd", b"abc"),
        (Prefixes(length=3), b"abc", b"abc"),
        (Prefixes(length=3), b"ab", None),
        (Prefixes(until=b":"), b"user:17:x", b"user:"),
        (Prefixes(until=b":"), b":", b":"),
        (Prefixes(until=b":"), b"user", None),
        (Prefixes(until=b"::"), b"a:b::c", b"a:b::"),
        (Prefixes(until=b"::"), b"a:b:c", None),
    ],
)
def test_the_prefix_of_a_key(prefixes: Prefixes, key: bytes, prefix: bytes | None) -> None:
    assert prefixes.of(key) == prefix


@pytest.mark.parametrize(
    ("prefixes", "low", "high", "shared"),
    [
        (Prefixes(length=2), b"ab", b"ac", b"ab"),
        (Prefixes(length=2), b"ab", b"ac\0", None),
        (Prefixes(length=2), b"abc", b"abz", b"ab"),
        (Prefixes(length=2), b"a", b"b", None),
        (Prefixes(length=2), b"ab", None, None),
        (Prefixes(length=2), None, b"b", None),
        (Prefixes(length=2), b"a\xff", b"b", b"a\xff"),
        (Prefixes(length=2), b"\xff\xff", None, b"\xff\xff"),
        (Prefixes(length=2), b"\xff\xff", b"\xff\xff\xff", b"\xff\xff"),
        (Prefixes(until=b":"), b"user:", b"user;", b"user:"),
        (Prefixes(until=b":"), b"user:1", b"user:2", b"user:"),
        (Prefixes(until=b":"), b"user", b"uses", None),
    ],
)
def test_the_prefix_of_all_keys_of_a_range(
    prefixes: Prefixes, low: bytes | None, high: bytes | None, shared: bytes | None
) -> None:
    assert prefixes.shared_by(low, high) == shared


@examples(1000)
@given(prefixes=ANY, low=KEYS, high=st.none() | KEYS, keys=st.lists(KEYS, max_size=20))
def test_every_key_of_a_range_has_its_prefix(
    prefixes: Prefixes, low: bytes, high: bytes | None, keys: list[bytes]
) -> None:
    shared = prefixes.shared_by(low, high)
    for key in keys:
        if shared is not None and low <= key and (high is None or key < high):
            assert prefixes.of(key) == shared


def fed(prefixes: Prefixes, keys: list[bytes]) -> list[bytes]:
    """What a filter of these keys gets."""
    return [each for some in PrefixFeed(prefixes)(keys) for each in some]


@examples(500)
@given(prefixes=ANY, keys=st.lists(KEYS, max_size=30), cuts=st.integers(1, 4))
def test_a_filter_gets_each_prefix_once(prefixes: Prefixes, keys: list[bytes], cuts: int) -> None:
    keys.sort()
    feed, found = PrefixFeed(prefixes), list[bytes]()
    for at in range(cuts):
        for some in feed(keys[at * len(keys) // cuts : (at + 1) * len(keys) // cuts]):
            found += some
    expected = sorted({prefix for key in keys if (prefix := prefixes.of(key)) is not None})
    assert sorted(found) == sorted(expected + (keys if prefixes.whole_keys else []))


@examples(200)
@given(prefixes=ANY, keys=st.lists(KEYS, min_size=1, max_size=20), asked=st.lists(KEYS))
def test_a_reader_denies_no_key_and_no_range_that_holds_one(
    prefixes: Prefixes, keys: list[bytes], asked: list[bytes]
) -> None:
    policy = policies.ClassicPolicy()
    filter = policy.create_filter(fed(prefixes, sorted(keys)))
    assert filter is not None
    inner = policy.open(filter)
    reader = PrefixReader(inner, prefixes)
    for key in keys:
        assert reader.might_contain(key)
        assert not prefixes.whole_keys or inner.might_contain(key)
        assert reader.may_contain_range(key, key + b"\0")
        for high in asked:
            assert key >= high or reader.may_contain_range(key, high)
    assert reader.might_contain_many(asked) == [reader.might_contain(key) for key in asked]


def test_a_reader_denies_prefixes_that_are_not_there() -> None:
    prefixes = Prefixes(until=b":", whole_keys=False)
    policy = policies.ClassicPolicy(bits_per_key=20)
    keys = [b"user:%d" % number for number in range(50)] + [b"none"]
    reader = PrefixReader(policy.open(policy.create_filter(fed(prefixes, keys)) or b""), prefixes)
    assert not reader.might_contain(b"order:1")
    assert reader.might_contain(b"user:99")  # which it could not know
    assert reader.might_contain(b"other")  # has no prefix, so that nobody asked
    assert not reader.may_contain_range(b"order:", b"order;")
    assert reader.may_contain_range(b"order:", b"p")
    assert reader.expected_fpr is not None


# -- Bytes ---------------------------------------------------------------------------------


@examples(100)
@given(prefixes=ANY, block=st.binary(max_size=40))
def test_a_frame_says_which_prefixes_there_are(prefixes: Prefixes, block: bytes) -> None:
    found, rest = Prefixes.decode(prefixes.encode() + block)
    assert (found, bytes(rest)) == (prefixes, block)


def test_the_bytes_of_a_frame() -> None:
    """As docs/block-format.md has them."""
    eight = Prefixes(length=8).encode()
    assert eight[:8] == b"LSMP\x01\x01\x01\x08"
    assert len(eight) == 16
    until = Prefixes(until=b"::", whole_keys=False).encode()
    assert until[:10] == b"LSMP\x01\x02\x00\x02::"
    assert len(until) == 18


def test_a_flipped_bit_anywhere_is_found(rng: random.Random) -> None:
    for prefixes in (Prefixes(length=8), Prefixes(until=b":", whole_keys=False)):
        frame = prefixes.encode() + b"block"
        for bit in range(8 * (len(frame) - 5)):
            flipped = bytearray(frame)
            flipped[bit // 8] ^= 1 << bit % 8
            with pytest.raises((CorruptBlockError, UnsupportedVersionError)):
                Prefixes.decode(bytes(flipped))


def test_frames_that_are_cut_short_are_refused() -> None:
    frame = Prefixes(until=b"::").encode()
    for length in range(len(frame)):
        with pytest.raises(CorruptBlockError):
            Prefixes.decode(frame[:length])


def sealed(head: bytes) -> bytes:
    from xxhash import xxh3_64_intdigest

    return head + xxh3_64_intdigest(head).to_bytes(8, "little")


@pytest.mark.parametrize(
    ("head", "error", "words"),
    [
        (b"LSMP\x02\x01\x01\x08", UnsupportedVersionError, "version 2"),
        (b"LSMP\x01\x03\x01\x08", UnsupportedVersionError, "kind 3"),
        (b"LSMP\x01\x00\x01\x08", UnsupportedVersionError, "kind 0"),
        (b"LSMP\x01\x01\x02\x08", UnsupportedVersionError, "flags 0x02"),
        (b"LSMP\x01\x01\x01\x00", CorruptBlockError, "prefix is out of range"),
        (b"LSMP\x01\x02\x01\x00", CorruptBlockError, "prefix_until is out of range"),
        (b"LSMP\x01\x02\x01\x11" + b"x" * 17, CorruptBlockError, "prefix_until is out of range"),
        (b"LSMP\x01\x02\x01\x01\xff", CorruptBlockError, "not UTF-8"),
        (b"LSMF\x01\x01\x01\x08", CorruptBlockError, "expected b'LSMP'"),
    ],
)
def test_a_frame_under_a_right_checksum_is_not_believed_either(
    head: bytes, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        Prefixes.decode(sealed(head) + b"block")


# -- Configuration -------------------------------------------------------------------------


def load(tmp_path: Any, text: str) -> policies.LevelPolicies:
    path = tmp_path / "lsm.toml"
    path.write_text(text)
    return policies.load(path)


@pytest.mark.parametrize(
    ("text", "prefixes"),
    [
        ("prefix = 8", Prefixes(length=8)),
        ('prefix_until = ":"', Prefixes(until=b":")),
        ('prefix_until = "é"\nwhole_keys = false', Prefixes(until="é".encode(), whole_keys=False)),
        ("", None),
    ],
)
def test_a_configuration_is_read_and_written(
    text: str, prefixes: Prefixes | None, tmp_path: Any
) -> None:
    for section in ("[filters]", "[filters.level.0]"):
        selected = load(tmp_path, f'{section}\npolicy = "classic"\nlayout = "partitioned"\n{text}')
        assert selected.prefixes(0) == prefixes
        assert selected.prefixes(1) == (prefixes if section == "[filters]" else None)
        assert load(tmp_path, selected.to_toml()) == selected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("prefix = 0", "prefix is out of range: 0, allowed are 1 to 255"),
        ("prefix = 256", "prefix is out of range: 256, allowed are 1 to 255"),
        ('prefix = "8"', "prefix"),
        ('prefix_until = ""', "prefix_until is out of range"),
        ("prefix_until = 8", 'prefix_until is text, like ":"'),
        ('prefix = 8\nprefix_until = ":"', "leave out one"),
        ("whole_keys = false", "whole_keys goes with prefixes"),
        ('prefix = 8\nwhole_keys = "no"', "whole_keys is True or False"),
        ('policy = "grafite"\nprefix = 8', "'grafite' answers for all ranges itself"),
        ('policy = "surf"\nprefix = 8', "'surf' answers for all ranges itself"),
        ('policy = "none"\nprefix = 8', "'none' has no filter for prefixes"),
        ('policy = "leveldb"\nlayout = "block"\nprefix = 8', "prefixes go with one filter"),
        ('budget = "10 bits/key"\nprefix = 8', "leave out prefixes, or the budget"),
    ],
)
def test_mistakes_in_a_configuration_are_told(text: str, words: str, tmp_path: Any) -> None:
    with pytest.raises(policies.PolicyConfigError) as caught:
        load(tmp_path, f"[filters]\n{text}")
    assert words in str(caught.value)
    assert str(tmp_path / "lsm.toml") in str(caught.value)


def test_it_says_what_it_is() -> None:
    assert str(Prefixes(length=8)) == "8 bytes"
    assert str(Prefixes(until=b":", whole_keys=False)) == "up to b':', no whole keys"


def test_neither_both_nor_none() -> None:
    for asked in ({}, {"length": 8, "until": b":"}):
        with pytest.raises(ValueError, match="a prefix is of so many bytes"):
            Prefixes(**asked)
