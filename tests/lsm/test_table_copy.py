"""Tables copied with another filter: the bytes that a new table of the same entries would have."""

from __future__ import annotations

import errno
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import plyvel
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import lsm
import policies
from filters import hashing
from lsm import kernels, loaded_filter, table_copy
from lsm.compaction import StoppedError
from lsm.comparator import BYTEWISE, Comparator
from lsm.disk.compression import KINDS
from lsm.disk.filter_blocks import FilterPlan
from lsm.disk.keys import Entry, pack, rank_of
from lsm.disk.properties import METAINDEX_KEY, Properties
from lsm.disk.table import TableReader
from lsm.disk.table_builder import TableBuilder, TableFormat
from lsm.errors import CorruptionError
from lsm.options import LEVELS
from lsm.storage import FileSystem, Mapped, Storage
from lsm.table_copy import NotCopiableError, copy
from lsm.table_factory import Output, TableFactory
from policies import FilterPolicy, LevelPolicies
from policies.builtin import BUILTIN
from policies.config import Choice
from tests.effort import by_effort, examples, spread
from tests.lsm.forging import Parts
from tests.lsm.independent_table import (
    LEVELDB_FILTER,
    TRAILER,
    Table,
    contents_of,
    footer,
    parse,
    stored,
    varint,
)
from tests.lsm.odd_policies import SetPolicy
from tests.lsm.simulated import SimulatedStorage
from tests.lsm.test_table_bytes import (
    COMPRESSIONS,
    KeyVersion,
    comparators,
    in_order,
    some_data,
)

if TYPE_CHECKING:
    from lsm.kernels import TableFile

POLICIES = sorted(cls.name for cls in BUILTIN)
SOURCE, COPY = "db/000005.ldb", "db/000009.ldb"
ENTRIES: list[Entry] = [
    (b"key%05d" % at, rank_of(9, 1), random.Random(at).randbytes(60)) for at in range(400)
]


@pytest.fixture(autouse=True)
def same_salts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Filters draw a salt each, and are to have the same bytes however they are written."""
    monkeypatch.setattr(hashing, "random64", lambda: 7)


def factory_in(
    storage: Storage,
    directory: str = "db",
    *,
    comparator: Comparator = BYTEWISE,
    block_size: int = 300,
    interval: int = 16,
    compression: str = "none",
    max_file_size: int = 1 << 21,
) -> TableFactory:
    storage.make_directory(directory)
    return TableFactory(
        storage=storage,
        directory=directory,
        format=TableFormat(
            comparator=comparator,
            block_size=block_size,
            block_restart_interval=interval,
            compression=KINDS[compression],
            table_body=kernels.of(comparator).TableBody,
        ),
        policies=LevelPolicies((Choice(policies.create("none")),) * LEVELS),
        max_file_size=max_file_size,
        new_number=lambda: 9,
    )


def plan_of(policy: FilterPolicy | str, layout: str = "table", **others: Any) -> FilterPlan:
    planned = policies.create(policy) if isinstance(policy, str) else policy
    given = {
        "level": 3,
        "reason": "compaction",
        "none_below": lambda first, last: False,
        **others,
    }
    return FilterPlan(policy=planned, layout=layout, **given)


def write(factory: TableFactory, number: int, entries: list[Entry], plan: FilterPlan) -> Output:
    builder = TableBuilder(factory.create(number), factory.format, plan)
    builder.add(entries)
    return Output(number, builder.finish())


def put(storage: SimulatedStorage, data: bytes, path: str = SOURCE) -> TableFile:
    """A file with these bytes, on the device."""
    storage.make_directory("db")
    file = storage.create(path)
    file.append(data)
    file.sync()
    file.close()
    storage.sync_directory("db")
    return file_of(5, len(data))


def file_of(number: int, size: int) -> TableFile:
    """A table's file, as the kernel that runs has them."""
    file: TableFile = kernels.of(BYTEWISE).TableFile(number, size)
    return file


def table_of(entries: list[Entry] = ENTRIES, **form: Any) -> bytes:
    storage = SimulatedStorage()
    write(factory_in(storage, **form), 5, entries, plan_of("classic"))
    return storage.read(SOURCE)


def copied(data: bytes, plan: FilterPlan | None = None, **form: Any) -> Table:
    """The copy of a table, taken apart."""
    storage = SimulatedStorage()
    file = put(storage, data)
    copy(factory_in(storage, **form), file, 9, plan or plan_of("blocked"))
    return parse(storage.read(COPY))


def properties_of(table: Table) -> Properties:
    return Properties.decode(table.meta[METAINDEX_KEY].contents)


# ---- what is written ----


@pytest.mark.parametrize("name", kernels.available())
@examples(150)
@given(
    data=some_data,
    comparator=comparators,
    block_size=st.sampled_from([1, 64, 300, 1500, 4096]),
    interval=st.integers(1, 32),
    compression=st.sampled_from(COMPRESSIONS),
    before=st.sampled_from(POLICIES),
    policy=st.sampled_from([*POLICIES, "leveldb in blocks", "a plug-in"]),
    partition_blocks=st.sampled_from([0, 1, 2, 128]),
    is_bulk=st.booleans(),
    at_once=st.sampled_from([1, 200, 5000, 1 << 20]),
)
@example(  # a block whose keys come before its end does, which is that of a window as well
    data={b"\x00": [(0, 1, b"ab" * 2035)]},
    comparator=BYTEWISE,
    block_size=1,
    interval=1,
    compression="none",
    before="binary-fuse",
    policy="leveldb in blocks",
    partition_blocks=0,
    is_bulk=False,
    at_once=1,
)
def test_a_copy_is_the_table_that_would_be_written_anew(
    name: str,
    data: dict[bytes, list[KeyVersion]],
    comparator: Comparator,
    block_size: int,
    interval: int,
    compression: str,
    before: str,
    policy: str,
    partition_blocks: int,
    is_bulk: bool,
    at_once: int,
) -> None:
    entries = in_order(data, comparator)
    layout = "block" if policy.endswith("in blocks") else "table"
    given: dict[str, Any] = {"layout": layout}
    if partition_blocks:
        given = {"layout": "partitioned", "partition_blocks": partition_blocks}
    planned = (
        SetPolicy() if policy == "a plug-in" else policies.create(policy.removesuffix(" in blocks"))
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "_chosen", kernels.load(name))
        patch.setattr(table_copy, "_COPIED_AT_ONCE", at_once)
        storage = SimulatedStorage()
        factory = factory_in(
            storage,
            comparator=comparator,
            block_size=block_size,
            interval=interval,
            compression=compression,
        )
        reason = "bulk" if is_bulk else "flush"
        source = write(factory, 5, entries, plan_of(before, level=1, reason=reason))
        anew = write(factory, 7, entries, plan_of(planned, reason=reason, **given))
        output = copy(
            factory, file_of(5, source.table.size), 9, plan_of(planned, reason="flush", **given)
        )
    assert storage.read(COPY) == storage.read("db/000007.ldb")
    assert output == Output(9, anew.table)


@pytest.mark.parametrize("policy", POLICIES)
def test_the_new_filter_lets_all_keys_through_and_few_others(policy: str) -> None:
    storage = SimulatedStorage()
    file = put(storage, table_of())
    copy(factory_in(storage), file, 9, plan_of(policy))
    loaded = loaded_filter.load(TableReader(COPY, storage.map(COPY)), paranoid=True)
    if policy == "none":
        assert loaded.reader is None
        return
    assert loaded.info.num_keys == len(ENTRIES)
    assert loaded.reader is not None
    assert all(loaded.reader.might_contain(key) for key, _, _ in ENTRIES)
    assert sum(loaded.reader.might_contain(b"no%05d" % at) for at in range(400)) < 60


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_data_and_index_keep_their_bytes(compression: str) -> None:
    """Also where the database would compress them in another way by now."""
    data = table_of(compression=compression)
    before, after = parse(data), copied(data, compression="none")
    end = before.blocks[-1].end
    assert after.data[:end] == data[:end]
    assert (after.index.kind, after.index.size) == (before.index.kind, before.index.size)
    assert stored_at(after, after.index.offset, after.index.size) == stored_at(
        before, before.index.offset, before.index.size
    )
    assert after.pairs == before.pairs
    assert properties_of(after).num_entries == len(ENTRIES)


def stored_at(table: Table, offset: int, size: int) -> bytes:
    return table.data[offset : offset + size + TRAILER]


def test_whether_a_load_has_written_a_table_outlives_its_filter() -> None:
    for reason in ("bulk", "flush", "compaction"):
        storage = SimulatedStorage()
        write(factory_in(storage), 5, ENTRIES, plan_of("none", reason=reason))
        source = storage.read(SOURCE)
        for planned in ("bulk", "compaction"):
            table = copied(source, plan_of("blocked", reason=planned))
            assert properties_of(table).reason == ("bulk" if reason == "bulk" else "")


def test_blocks_of_other_writers_stay_and_filters_go() -> None:
    parts = Parts.of(table_of())
    parts.meta += [(b"other.stats", b"some bytes"), (b"zzz", b""), (b"filter.of.tomorrow", b"old")]
    parts.meta += [(LEVELDB_FILTER, b"x"), (b"partitionedfilter.x", b"y"), (b"\xff", b"z")]
    parts.meta.sort()
    table = copied(parts.assembled())
    assert set(table.meta) == {
        b"other.stats", b"zzz", b"\xff", METAINDEX_KEY, b"fullfilter.blocked"
    }  # fmt: skip
    assert table.meta[b"other.stats"].contents == b"some bytes"
    assert table.meta[b"\xff"].contents == b"z"
    places = sorted(block.offset for block in table.meta.values())
    assert places[0] >= table.blocks[-1].end


def test_a_compressed_block_of_another_writer_stays_compressed() -> None:
    table = parse(table_of())
    end = table.metaindex.offset
    squeezed = Parts([], []).squeeze(1, bytes(5000))
    data = table.data[:end] + stored(squeezed, 1)
    handle = varint(end) + varint(len(squeezed))
    meta = contents_of([(b"other", handle)])
    handles = []
    for contents in (meta, table.index.contents):
        handles.append(varint(len(data)) + varint(len(contents)))
        data += stored(contents)
    found = copied(data + footer(*handles)).meta[b"other"]
    assert (found.kind, found.size, found.contents) == (1, len(squeezed), bytes(5000))


@pytest.mark.parametrize("name", kernels.available())
def test_windows_let_through_what_begins_in_them_also_behind_empty_blocks(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernels, "_chosen", kernels.load(name))
    monkeypatch.setattr(table_copy, "_COPIED_AT_ONCE", 1)
    parts = Parts.of(table_of())
    for at in range(len(parts.blocks), 0, -1):
        key = parts.blocks[at - 1][0]
        parts.blocks[at:at] = [(key, contents_of([]), 0)] * (at % 7)
    storage = SimulatedStorage()
    file = put(storage, parts.assembled())
    copy(factory_in(storage), file, 9, plan_of("leveldb", "block"))
    table = parse(storage.read(COPY))
    loaded = loaded_filter.load(TableReader(COPY, storage.map(COPY)), paranoid=True)
    assert loaded.windows is not None
    assert len(loaded.windows) > 5
    for block in table.blocks:
        reader = loaded.windows.at(block.offset)
        for key, _ in block.pairs:
            assert reader is not None
            assert reader.might_contain(key[:-8])


# ---- LevelDB ----


@pytest.mark.parametrize("compression", [None, "snappy"])
@pytest.mark.parametrize(("policy", "layout"), [("leveldb", "block"), ("bumped-ribbon", "table")])
def test_leveldb_reads_the_copy_of_a_table_of_its_own(
    tmp_path: Path, compression: str | None, policy: str, layout: str, rng: random.Random
) -> None:
    theirs = tmp_path / "theirs"
    pairs = {b"key%05d" % at: rng.randbytes(50) + b"ab" * 30 for at in range(2000)}
    with plyvel.DB(
        str(theirs), create_if_missing=True, compression=compression, bloom_filter_bits=10
    ) as db:
        for key in sorted(pairs):
            db.put(key, pairs[key])
            db.put(key, pairs[key], sync=False)
        db.delete(b"key00000")
        db.compact_range()
    [path] = theirs.glob("*.ldb")
    ours = tmp_path / "ours"
    factory = factory_in(FileSystem(), str(ours))
    shutil.copy(path, ours / "000005.ldb")
    source = parse(path.read_bytes())
    assert set(source.meta) == {LEVELDB_FILTER}
    copy(factory, file_of(5, path.stat().st_size), 9, plan_of(policy, layout))
    table = parse((ours / "000009.ldb").read_bytes())
    assert table.pairs == source.pairs
    assert (LEVELDB_FILTER in table.meta) == (layout == "block")
    (ours / "000005.ldb").unlink()
    plyvel.repair_db(str(ours))
    with plyvel.DB(str(ours), bloom_filter_bits=10, paranoid_checks=True) as db:
        del pairs[b"key00000"]
        assert dict(db) == pairs
        assert all(db.get(key, verify_checksums=True) == value for key, value in pairs.items())
        assert db.get(b"key00000") is None


# ---- what is refused ----


def refused(data: bytes, expected: type[Exception], match: str, **form: Any) -> None:
    """See that a table is not copied, and that nothing of a copy is left."""
    storage = SimulatedStorage()
    file = put(storage, data)
    with pytest.raises(expected, match=match):
        copy(factory_in(storage, **form), file, 9, plan_of("blocked"))
    assert storage.list("db") == ["000005.ldb"]
    assert storage.read(SOURCE) == data


def regions(data: bytes) -> dict[str, range]:
    """Where the parts of a table are, trailers included."""
    table = parse(data)
    found = {"data": range(table.blocks[-1].end), "footer": range(len(data) - 8, len(data))}
    for name, block in {"index": table.index, "metaindex": table.metaindex}.items():
        found[name] = range(block.offset, block.end)
    for key, block in table.meta.items():
        found[key.decode()] = range(block.offset, block.end)
    return found


@pytest.mark.parametrize("name", kernels.available())
@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_damage_is_told_wherever_it_is(
    name: str, compression: str, rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernels, "_chosen", kernels.load(name))
    data = table_of(compression=compression)
    expected: dict[str, type[Exception] | None] = {
        "data": CorruptionError,
        "index": CorruptionError,
        "footer": CorruptionError,
        "metaindex": NotCopiableError,
        "lsm.properties": NotCopiableError,
        "fullfilter.classic": None,
    }
    places = regions(data)
    assert set(places) == set(expected)
    for region, error in expected.items():
        for _ in range(by_effort(6, 30, 500)):
            at = rng.choice(places[region])
            damaged = data[:at] + bytes((data[at] ^ 1 << rng.randrange(8),)) + data[at + 1 :]
            if error is None:
                assert parse(data).pairs == copied(damaged).pairs
            else:
                refused(damaged, error, SOURCE)


def mended(change: Callable[[Parts], None]) -> bytes:
    """A table with something else in it, under right checksums."""
    parts = Parts.of(table_of())
    change(parts)
    return parts.assembled()


def test_keys_out_of_order_are_told() -> None:
    def swap(parts: Parts) -> None:
        parts.blocks[1], parts.blocks[4] = parts.blocks[4], parts.blocks[1]

    def turn(parts: Parts) -> None:
        entries = [(pack(b"%d" % key, -257), b"") for key in (1, 3, 2)]
        parts.blocks = [(entries[-1][0], contents_of(entries), 0)]

    for change in (swap, turn):
        refused(mended(change), CorruptionError, f"{SOURCE}: the data block at byte .*ascend")


def moved(data: bytes, handles: Callable[[list[tuple[int, int]]], list[tuple[int, int]]]) -> bytes:
    """A table whose index leads elsewhere."""
    table = parse(data)
    places = handles([(block.offset, block.size) for block in table.blocks])
    parts = Parts.of(data)
    keys = [key for key, _, _ in parts.blocks]
    parts.index = lambda _: contents_of(
        [(key, varint(at) + varint(size)) for key, (at, size) in zip(keys, places, strict=False)],
        1,
    )
    return parts.assembled()


def test_data_that_do_not_follow_one_another_stay_where_they_are() -> None:
    data, match = table_of(), f"{SOURCE}: its data blocks do not follow one another"
    for handles in (
        lambda places: places[1:],
        lambda places: places[:3] + places[4:],
        lambda places: places[:3] + places[2:],
        lambda places: places[::-1],
        lambda places: [],
        lambda places: [(0, 2**64 - 1)],
    ):
        refused(moved(data, handles), NotCopiableError, match)
    outside = moved(data, lambda places: [*places[:-1], (places[-1][0], 10**6)])
    refused(outside, CorruptionError, f"{SOURCE}: the data blocks would end at byte")


def test_what_would_be_lost_stays() -> None:
    def shares(parts: Parts) -> None:
        parts.meta += [(b"other%03d" % at, bytes(1000)) for at in range(3)]
        parts.metaindex = lambda pairs: contents_of(
            [(b"again%03d" % at, pairs[-1][1]) for at in range(999)], 1
        )

    def no_handle(parts: Parts) -> None:
        parts.metaindex = lambda pairs: contents_of([(b"other", b"\xff")])

    def empty(parts: Parts) -> None:
        parts.blocks = [(parts.blocks[0][0], contents_of([]), 0)]

    def odd_properties(parts: Parts) -> None:
        parts.meta = [(METAINDEX_KEY, contents_of([(b"lsm.level", b"\x01")]))]

    def few_properties(parts: Parts) -> None:
        parts.meta = [(METAINDEX_KEY, b"")]

    refused(mended(shares), NotCopiableError, f"{SOURCE}: .*more bytes than stand behind its data")
    refused(mended(no_handle), NotCopiableError, f"{SOURCE}: .*handle")
    refused(mended(empty), NotCopiableError, f"{SOURCE}: it has no entries")
    refused(mended(odd_properties), NotCopiableError, f"{SOURCE}: .*lack")
    refused(mended(few_properties), NotCopiableError, SOURCE)


def test_a_table_stands_for_no_more_keys_than_one_that_is_written() -> None:
    entries: list[Entry] = [(bytes(9000) + b"%05d" % at, -257, b"") for at in range(900)]
    data = table_of(entries, interval=1 << 16, block_size=1 << 20)
    match = f"{SOURCE}: its keys take more than"
    refused(data, NotCopiableError, match, max_file_size=0)
    assert len(copied(data, max_file_size=1 << 20).pairs) == 900


def test_a_file_of_another_length_or_none_is_told() -> None:
    storage = SimulatedStorage()
    file = put(storage, table_of())
    factory = factory_in(storage)
    with pytest.raises(CorruptionError, match="bytes, and the manifest says"):
        copy(factory, file_of(5, file.size + 1), 9, plan_of("blocked"))
    with pytest.raises(CorruptionError, match="missing"):
        copy(factory, file_of(6, file.size), 9, plan_of("blocked"))
    assert storage.list("db") == ["000005.ldb"]


# ---- what goes wrong ----


@pytest.mark.parametrize(("error", "partial"), [(errno.EIO, False), (errno.ENOSPC, True)])
def test_whatever_operation_fails_the_table_stays_and_no_half_one_does(
    error: int, partial: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_copy, "_COPIED_AT_ONCE", 4000)
    data = table_of()
    storage = SimulatedStorage()
    file = put(storage, data)
    begun = len(storage.operations)
    copy(factory_in(storage), file, 9, plan_of("blocked"))
    done = storage.operations[begun:]
    assert [name for name, _ in done if name in ("map", "create", "sync")] == [
        "map", "create", "sync"
    ]  # fmt: skip
    for failing in range(begun, len(storage.operations)):
        again = SimulatedStorage()
        file = put(again, data)
        again.fail(lambda _operation, _path, now, at=failing: now == at, error, partial=partial)
        with pytest.raises(lsm.IOError):
            copy(factory_in(again), file, 9, plan_of("blocked"))
        assert again.list("db") == ["000005.ldb"]
        for after in (again, again.crash(), again.kill()):
            assert after.read(SOURCE) == data


class Watched(FileSystem):
    """Has the files that it made."""

    def __init__(self) -> None:
        self.files: list[Any] = []

    def create(self, path: str, *, small_appends: bool = False) -> Any:
        self.files.append(super().create(path, small_appends=small_appends))
        return self.files[-1]


def test_who_pauses_learns_what_was_copied_and_can_stop_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_copy, "_COPIED_AT_ONCE", 4000)
    storage = Watched()
    factory = factory_in(storage, str(tmp_path / "db"))
    source = write(factory, 5, ENTRIES, plan_of("none"))
    data = (tmp_path / "db" / "000005.ldb").read_bytes()
    sizes: list[int] = []
    file = file_of(5, source.table.size)
    copy(factory, file, 9, plan_of("blocked"), sizes.append)
    assert sum(sizes) == parse(data).blocks[-1].end
    assert {size % 4000 for size in sizes[:-1]} == {0}
    assert max(sizes) <= 8000
    assert len(sizes) > 5
    for stop in spread(range(len(sizes)), 3):
        for error in (StoppedError, KeyboardInterrupt):
            calls: Iterator[int] = iter(range(stop))

            def pause(_: int, calls: Iterator[int] = calls, error: Any = error) -> None:
                if next(calls, None) is None:
                    raise error

            with pytest.raises(error):
                copy(factory, file, 10, plan_of("blocked"), pause)
            with pytest.raises(ValueError, match="closed"):
                storage.files[-1].append(bytes(1 << 20))
            assert sorted(each.name for each in (tmp_path / "db").iterdir()) == [
                "000005.ldb", "000009.ldb"
            ]  # fmt: skip
    assert (tmp_path / "db" / "000005.ldb").read_bytes() == data


def test_a_copy_can_be_sealed_later() -> None:
    storage = SimulatedStorage()
    data = table_of()
    file = put(storage, data)
    begun = table_copy.TableCopy(factory_in(storage), file, 9, plan_of("blocked"))
    written = begun.complete(bool)
    assert written.size == len(storage.read(COPY))
    assert storage.count("sync") == 1
    begun.seal()
    assert storage.count("sync") == 2
    table = kernels.of(BYTEWISE).Table(TableReader(COPY, Mapped(storage.read(COPY))), None)
    assert [entry for piece in table.pieces() for entry in piece] == ENTRIES
