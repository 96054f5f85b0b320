"""A filter on its way into a table and out of it: how often it is parsed, hashed and copied."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import policies
from filters import header
from lsm import loaded_filter
from lsm.comparator import BYTEWISE
from lsm.disk import table as tables
from lsm.disk.filter_blocks import FilterPlan
from lsm.disk.keys import PUT, Entry, pack, rank
from lsm.disk.table import Table
from lsm.disk.table_builder import TableBuilder, TableFormat, WrittenTable
from lsm.storage import Mapped
from policies import FilterPolicy, block
from policies.builtin import BUILTIN
from tests.lsm.forging import Parts
from tests.lsm.independent_table import RAW, SNAPPY, contents_of, footer, parse, stored, varint
from tests.lsm.simulated import SimulatedStorage

NAME = "db/000005.ldb"
KEYS = [b"key%05d" % number for number in range(500)]
FILTERED = [cls.name for cls in BUILTIN if cls.name != "none"]
OURS = ["binary-fuse", "blocked", "bumped-ribbon", "classic", "counting", "cuckoo", "xor"]
UNLABELLED = ["rocksdb", "ribbon"]


def entries_of(keys: list[bytes]) -> list[Entry]:
    return [(key, rank(number + 1, PUT), b"v") for number, key in enumerate(keys)]


def write(
    policy: FilterPolicy, *, layout: str = "table", **plan: Any
) -> tuple[bytes, WrittenTable]:
    """A table of all keys, and what its writer says of it."""
    storage = SimulatedStorage()
    form = TableFormat(
        comparator=BYTEWISE, block_size=1024, block_restart_interval=16, compression=0
    )
    given = {"level": 2, "reason": "flush", "none_below": lambda first, last: False, **plan}
    planned = FilterPlan(policy=policy, layout=layout, **given)
    builder, at = TableBuilder(storage.create("table"), form, planned), 0
    entries = entries_of(KEYS)
    while at < len(entries):
        at = builder.add_block(entries, at)
    written = builder.finish()
    return storage.read("table"), written


def with_filter(contents: bytes, kind: int) -> bytes:
    """A table whose filter block is stored with this compression, under a right checksum."""
    key = pack(KEYS[0], rank(1, PUT))
    data = stored(contents_of([(key, b"v")]))
    handle = varint(0) + varint(len(data) - 5)
    squeezed = stored(Parts([], []).squeeze(kind, contents), kind)
    place = varint(len(data)) + varint(len(squeezed) - 5)
    data += squeezed
    handles = []
    for pairs in ([(b"fullfilter.blocked", place)], [(key, handle)]):
        named = stored(contents_of(pairs))
        handles.append(varint(len(data)) + varint(len(named) - 5))
        data += named
    return data + footer(*handles)


def open_table(data: bytes) -> Table:
    return Table(NAME, Mapped(data), BYTEWISE)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any, str], list[int]]:
    """Has the calls of a function listed, each by the length of what it is given first."""

    def counting(module: Any, name: str) -> list[int]:
        real, lengths = getattr(module, name), []

        def wrapper(first: Any, *others: Any, **named: Any) -> Any:
            lengths.append(len(getattr(first, "view", first)))
            return real(first, *others, **named)

        monkeypatch.setattr(module, name, wrapper)
        return lengths

    return counting


@pytest.mark.parametrize("name", FILTERED)
def test_a_filter_is_parsed_once_and_hashed_once(
    name: str, counted: Callable[[Any, str], list[int]]
) -> None:
    data, _ = write(policies.create(name))
    (filter,) = (each for key, each in parse(data).meta.items() if key.startswith(b"fullfilter."))
    opened = open_table(data)
    unpacked, parsed = counted(header, "unpack"), counted(block, "_parse")
    hashed = counted(header, "xxh3_64_intdigest"), counted(block, "xxh3_64_intdigest")
    summed = counted(tables, "crc32c")
    loaded = loaded_filter.load(opened, paranoid=True)
    assert loaded.reader is not None
    assert all(loaded.reader.might_contain_many(KEYS))
    size = len(filter.contents)
    assert hashed == ([], [])
    assert summed.count(size) == 1
    assert parsed == ([] if name in UNLABELLED else [size])
    assert len(unpacked) == (name in OURS)


@pytest.mark.parametrize("kind", [RAW, SNAPPY])
def test_what_a_checksum_is_not_of_it_does_not_stand_for(kind: int) -> None:
    """That of a compressed block is none of the bytes that come out of it."""
    policy = policies.BlockedPolicy()
    filter = bytearray(policy.create_filter(KEYS) or b"")
    filter[-1] ^= 1  # of the filter's own checksum
    sealed = block.encode_block(policy, filter, num_keys=len(KEYS))
    for contents, state in (
        (sealed, "built" if kind == RAW else "corrupt"),
        (sealed[:-1] + bytes((sealed[-1] ^ 1,)), "built" if kind == RAW else "corrupt"),
    ):
        loaded = loaded_filter.load(open_table(with_filter(contents, kind)), paranoid=False)
        assert loaded.state == state
    whole = block.encode_block(policy, policy.create_filter(KEYS) or b"", num_keys=len(KEYS))
    assert loaded_filter.load(open_table(with_filter(whole, kind)), paranoid=True).state == "built"


@pytest.mark.parametrize("name", FILTERED)
def test_no_flipped_bit_of_a_filter_in_a_table_is_believed(name: str) -> None:
    data, _ = write(policies.create(name))
    (place,) = open_table(data).filter_entries().values()
    for position in range(place.offset, place.offset + place.size + 5, 7):
        flipped = bytearray(data)
        flipped[position] ^= 1 << position % 8
        assert loaded_filter.load(open_table(bytes(flipped)), paranoid=False).state == "corrupt"
