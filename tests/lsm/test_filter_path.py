"""A filter on its way into a table and out of it: how often it is parsed, hashed and copied."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import attrs
import pytest

import policies
from filters import header, rocksdb_forms
from lsm import kernels, loaded_filter
from lsm.comparator import BYTEWISE
from lsm.disk import table as tables
from lsm.disk.filter_blocks import FilterPlan
from lsm.disk.keys import PUT, Entry, pack, rank_of
from lsm.disk.table import TableReader
from lsm.disk.table_builder import TableBuilder, TableFormat, WrittenTable
from lsm.storage import Mapped
from policies import BuildContext, BuildResult, FilterBuilder, FilterPolicy, VerifiedBuilder, block
from policies.builtin import BUILTIN
from tests.lsm import simulated
from tests.lsm.forging import Parts
from tests.lsm.independent_table import RAW, SNAPPY, contents_of, footer, parse, stored, varint
from tests.lsm.simulated import SimulatedStorage

NAME = "db/000005.ldb"
KEYS = [b"key%05d" % number for number in range(500)]
FILTERED = [cls.name for cls in BUILTIN if cls.name != "none"]
OURS = ["binary-fuse", "blocked", "bumped-ribbon", "classic", "counting", "cuckoo", "grafite"]
OURS += ["surf", "xor"]
# SuRF is built of keys, and so keeps them.
OF_DIGESTS = [name for name in FILTERED if name != "surf"]
UNLABELLED = ["rocksdb", "ribbon"]
PIECE = 50


class Counted(bytes):
    """A key that is counted as long as somebody has it."""

    alive: ClassVar[int] = 0

    def __init__(self, _bytes: bytes):
        type(self).alive += 1

    def __del__(self) -> None:
        type(self).alive -= 1


def entries_of(keys: list[bytes]) -> list[Entry]:
    return [(Counted(key), rank_of(1, PUT), b"v") for key in keys]


def write(
    policy: FilterPolicy,
    *,
    layout: str = "table",
    after_piece: Callable[[], object] = bool,
    **plan: Any,
) -> tuple[bytes, WrittenTable]:
    """A table of all keys, given some at a time, and what its writer says of it."""
    storage = SimulatedStorage()
    form = TableFormat(
        comparator=BYTEWISE,
        block_size=1024,
        block_restart_interval=16,
        compression=0,
        table_body=kernels.of(BYTEWISE).TableBody,
    )
    given = {"level": 2, "reason": "flush", "none_below": lambda first, last: False, **plan}
    planned = FilterPlan(policy=policy, layout=layout, **given)
    builder = TableBuilder(storage.create("table"), form, planned)
    for start in range(0, len(KEYS), PIECE):
        entries = entries_of(KEYS[start : start + PIECE])
        builder.add(entries)
        after_piece()
    written = builder.finish()
    return storage.read("table"), written


def with_filter(contents: bytes, kind: int) -> bytes:
    """A table whose filter block is stored with this compression, under a right checksum."""
    key = pack(KEYS[0], rank_of(1, PUT))
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


def open_table(data: bytes) -> TableReader:
    return TableReader(NAME, Mapped(data))


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


@pytest.mark.parametrize("with_properties", [True, False])
@pytest.mark.parametrize("name", FILTERED)
def test_a_filter_is_parsed_once_and_hashed_once(
    name: str,
    with_properties: bool,
    counted: Callable[[Any, str], list[int]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data, _ = write(policies.create(name))
    (filter,) = (each for key, each in parse(data).meta.items() if key.startswith(b"fullfilter."))
    opened = open_table(data)
    if not with_properties:
        monkeypatch.setattr(TableReader, "properties", lambda self: None)
    unpacked, parsed = counted(header, "unpack"), counted(block, "_parse")
    decoded = counted(rocksdb_forms, "decode")
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
    assert len(decoded) == (name in UNLABELLED)


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


# -- Writing -----------------------------------------------------------------------------------


@attrs.frozen
class Told(FilterPolicy):
    """A plug-in that notes what it is told of a table before its first key."""

    name: ClassVar[str] = "test.told"
    contexts: ClassVar[list[BuildContext]] = []
    counts: ClassVar[list[int]] = []

    def create_filter(self, keys: Sequence[bytes]) -> bytes:
        self.counts.append(len(keys))
        return b"bits of all keys"

    def key_may_match(self, key: bytes, filter: bytes) -> bool:
        return True

    def new_builder(self, context: BuildContext) -> FilterBuilder:
        self.contexts.append(context)
        return super().new_builder(context)


@pytest.fixture
def told() -> Iterator[Told]:
    yield Told()
    Told.contexts.clear()
    Told.counts.clear()


@pytest.mark.parametrize(
    ("name", "layout"), [*((name, "table") for name in ("none", *OF_DIGESTS)), ("leveldb", "block")]
)
def test_a_table_keeps_no_keys_for_the_filter_of_a_built_in_policy(name: str, layout: str) -> None:
    alive: list[int] = []
    _, written = write(
        policies.create(name), layout=layout, after_piece=lambda: alive.append(Counted.alive)
    )
    assert written.filter.state == ("none" if name == "none" else "built")
    # Those of the piece that is being added, of the open block and of the open window.
    assert PIECE <= max(alive) < 5 * PIECE
    assert Counted.alive == 0


@pytest.mark.parametrize("cls", BUILTIN)
def test_no_built_in_policy_asks_what_only_the_last_key_tells(cls: type[FilterPolicy]) -> None:
    """Or it would have to get its keys as a plug-in does."""

    class Unknown:
        def __getattribute__(self, name: str) -> Any:
            raise AssertionError(f"a built-in policy asks for {name}")

    context: Any = Unknown()
    builder = cls().new_builder(context)
    for key in KEYS:
        builder.add(key)
    assert (builder.finish() is None) == (cls.name == "none")


def test_a_plug_in_is_told_all_of_a_table_before_its_first_key(told: Told) -> None:
    asked: list[tuple[bytes, bytes]] = []

    def none_below(first: bytes, last: bytes) -> bool:
        asked.append((first, last))
        return True

    _, written = write(told, none_below=none_below)
    assert written.filter.state == "built"
    assert told.contexts == [
        BuildContext(level=2, is_bottommost=True, reason="flush", expected_keys=len(KEYS))
    ]
    assert told.counts == [len(KEYS)]
    assert asked == [(KEYS[0], KEYS[-1])]
    asked.clear()
    assert Counted.alive == 0


@pytest.mark.parametrize("is_plug_in", [False, True])
def test_a_table_of_the_last_level_can_do_without(is_plug_in: bool, told: Told) -> None:
    policy = told if is_plug_in else policies.BlockedPolicy()
    for level, below, state in ((2, False, "none"), (2, True, "built"), (0, False, "built")):
        data, written = write(
            policy, level=level, none_below=lambda _f, _l, b=below: not b, unless_last=True
        )
        assert written.filter.state == state
        assert len(open_table(data).filter_entries()) == (state == "built")
    assert len(told.contexts) == 2 * is_plug_in


@pytest.mark.parametrize("name", [*FILTERED, "test.told"])
def test_a_filter_is_verified_named_and_copied_no_more_than_once(
    name: str, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = told if name == "test.told" else policies.create(name)
    finished: list[bytes | None] = []
    appended: list[object] = []
    named: list[FilterPolicy] = []
    opened: list[object] = []
    finish, append, identity, open_filter = (
        VerifiedBuilder.finish,
        simulated._WritableFile.append,
        block.Identity.of,
        type(policy).open,
    )

    def finishing(self: VerifiedBuilder) -> BuildResult:
        result = finish(self)
        finished.append(result.filter)
        return result

    def appending(self: Any, data: Any) -> None:
        appended.append(data)
        append(self, data)

    def naming(policy: FilterPolicy) -> block.Identity:
        named.append(policy)
        return identity(policy)

    def opening(self: Any, filter: Any) -> Any:
        opened.append(filter)
        return open_filter(self, filter)

    monkeypatch.setattr(VerifiedBuilder, "finish", finishing)
    monkeypatch.setattr(simulated._WritableFile, "append", appending)
    monkeypatch.setattr(block.Identity, "of", naming)
    monkeypatch.setattr(type(policy), "open", opening)
    _, written = write(policy)
    (filter,) = finished
    assert filter is not None
    assert [each for each in appended if each is filter] == [filter]
    assert sum(filter in bytes(each) for each in appended) == 1  # type: ignore[call-overload]
    assert named == [policy]
    assert opened == [filter]
    assert written.filter.parts == ()
