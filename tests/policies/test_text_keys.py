"""Text and columns where policies take keys; what is handed to a policy of others are bytes."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any, ClassVar

import pytest

import filters
import policies
from policies import BuildContext, FilterPolicy, VerifiedBuilder, door
from policies.builtin import BUILTIN

TEXTS: list[Any] = ["a", "bär", b"c", bytearray(b"d"), "€" * 600]
BYTES = [b"a", "bär".encode(), b"c", b"d", ("€" * 600).encode()]


class Sighted(FilterPolicy):
    """Sees its keys one by one, and remembers them."""

    name: ClassVar[str] = "test.sighted"
    seen: ClassVar[list[Any]] = []

    def create_filter(self, keys: Sequence[bytes]) -> bytes:
        self.seen += keys
        return b"\0".join(keys)

    def key_may_match(self, key: bytes, filter: bytes) -> bool:
        self.seen.append(key)
        return key in filter.split(b"\0")


@pytest.fixture
def sighted() -> type[Sighted]:
    Sighted.seen.clear()
    return Sighted


@pytest.mark.parametrize("at_once", [False, True])
def test_a_policy_of_others_sees_bytes(sighted: type[Sighted], at_once: bool) -> None:
    builder = VerifiedBuilder(sighted(), BuildContext())
    if at_once:
        builder.add_many(TEXTS)
    else:
        for key in TEXTS:
            builder.add(key)
    assert builder.finish().state == "built"
    assert sighted.seen[:5] == BYTES
    assert {type(key) for key in sighted.seen} == {bytes}


def test_a_reader_of_others_is_asked_with_bytes(sighted: type[Sighted]) -> None:
    reader: Any = sighted().open(b"a\0b\xc3\xa4r")
    assert (reader.might_contain("bär"), reader.might_contain("b")) == (True, False)
    assert reader.might_contain_many(["a", "zz", bytearray(b"a")]) == [True, False, True]
    assert {type(key) for key in sighted.seen} == {bytes}
    with pytest.raises(TypeError, match="not as one str"):
        reader.might_contain_many("a")


@pytest.mark.parametrize("name", [cls.name for cls in BUILTIN if cls.name != "none"])
@pytest.mark.parametrize("at_once", [False, True])
def test_builders_and_blocks_take_text(name: str, at_once: bool) -> None:
    policy = policies.create(name)
    builder = VerifiedBuilder(policy, BuildContext())
    if at_once:
        builder.add_many(TEXTS)
    else:
        for key in TEXTS:
            builder.add(key)
    built = builder.finish()
    assert (built.state, built.reason) == ("built", "")
    assert built.filter is not None
    reader: Any = policies.open_block(
        policies.encode_block(policy, built.filter, num_keys=built.num_keys)
    )
    assert reader.might_contain_many(TEXTS) == reader.might_contain_many(BYTES) == [True] * 5
    assert all(map(reader.might_contain, TEXTS))


@pytest.mark.parametrize("name", ["blocked", "rocksdb", "surf"])
def test_builders_take_columns(name: str) -> None:
    numbers = array("q", range(300))
    builder = VerifiedBuilder(policies.create(name), BuildContext())
    builder.add_many(numbers)
    built = builder.finish()
    assert (built.state, built.num_keys) == ("built", 300)
    assert built.filter is not None
    reader: Any = policies.create(name).open(built.filter)
    assert reader.might_contain((299).to_bytes(8, "little"))


@pytest.mark.parametrize("name", ["blocked", "surf"])
def test_a_text_without_utf_8_is_contained(name: str) -> None:
    builder = VerifiedBuilder(policies.create(name), BuildContext())
    builder.add("\ud800")
    built = builder.finish()
    assert built.state == "failed"
    assert "raised in add(): UnicodeEncodeError" in built.reason
    assert "lone surrogate" in built.reason


def test_the_door_is_asked_with_text() -> None:
    built = filters.BlockedBloomFilter.build(TEXTS)
    for _, ask in door.ways_in(built):
        assert all(map(ask, TEXTS))
        assert not all(ask(f"absent{i}") for i in range(20))
