"""What the engine wrote once it reads for ever, and it still writes the same bytes."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import lsm
from lsm import loaded_filter
from lsm import options as engine_options
from lsm.disk import heat_file
from lsm.disk.compression import RAW
from lsm.disk.table import TableReader
from lsm.kernels.python.table import Table
from lsm.storage import Mapped
from tests.golden.write_engine import (
    ABSENT,
    ASKED,
    HERE,
    OPTIONS,
    TABLES,
    GoldenTable,
    contents,
    write,
)
from tests.lsm import independent_table as independent

NAMES = sorted(str(path.relative_to(HERE)) for path in HERE.rglob("*") if path.is_file())
every_table = pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A copy, for opening writes to the directory."""
    return Path(shutil.copytree(HERE / "database", tmp_path / "database"))


@pytest.fixture(scope="module")
def today(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is written today."""
    folder = tmp_path_factory.mktemp("golden")
    assert sorted(write(folder)) == NAMES
    return folder


def test_what_is_there_is_never_written_again(today: Path) -> None:
    assert write(HERE) == []
    table = today / TABLES[0].name
    kept = table.read_bytes()
    table.write_bytes(b"kept")
    (today / "zstd.ldb").unlink()
    assert write(today) == ["zstd.ldb"]
    assert table.read_bytes() == b"kept"
    table.write_bytes(kept)


def test_the_database_still_opens_and_holds_what_it_held(database: Path) -> None:
    expected = contents()
    with lsm.DB(database) as db:
        assert list(db) == sorted(expected.items())
        assert list(db.iterator(reverse=True)) == sorted(expected.items(), reverse=True)
        assert {key: db.get(key) for key in expected} == expected
        assert db.get_many(ABSENT) == [None] * len(ABSENT)
        db.put(b"more", b"1")
        db.compact_range()
        assert dict(db) == expected | {b"more": b"1"}


def test_every_filter_is_read_and_asked(database: Path) -> None:
    with lsm.DB(database, read_only=True) as db:
        found = {level.level: level.tables for level in db.filters() if level.tables}
        for table in TABLES[:4]:
            [carried] = found[table.level]
            assert (carried.policy, carried.layout, carried.state) == (
                table.policy,
                table.layout,
                "built",
            )
            assert carried.written_for_level == table.level
        assert len(found) == 4
        for key in ABSENT:
            db.get(key)
        counters = {each.policy: each.counters for each in db.stats().filters}
    assert set(counters) == {table.policy for table in TABLES[:4]}
    for each in counters.values():
        assert each.skipped > 10 * each.false_positives
        assert each.unknown == each.corrupt == each.none == each.failed == 0


def test_the_options_are_still_read() -> None:
    data = (HERE / "database" / "lsm-options.toml").read_bytes()
    assert engine_options.from_kept(data, "lsm-options.toml") == OPTIONS


def test_the_heat_is_still_read() -> None:
    assert heat_file.decode((HERE / "database" / "lsm-heat").read_bytes()) == ASKED


@every_table
def test_tables_are_still_read(table: GoldenTable) -> None:
    data = (HERE / table.name).read_bytes()
    read = Table(TableReader(table.name, Mapped(data)), None)
    blocks = [read.read(number) for number in range(len(read.handles))]
    assert [
        entry for block in blocks for piece in block.pieces() for entry in piece
    ] == table.entries
    assert len(blocks) > 3
    properties = read.reader.properties()
    assert properties is not None
    assert (properties.level, properties.filter_policy) == (table.level, table.policy)
    assert properties.num_entries == len(table.entries)
    loaded = loaded_filter.load(read.reader, paranoid=True)
    assert loaded.info.policy == table.policy
    if loaded.reader is not None:
        assert all(loaded.reader.might_contain_many(list(table.versions)))


@pytest.mark.parametrize("name", NAMES)
def test_the_same_bytes_are_written_today(name: str, today: Path) -> None:
    kept, written = (HERE / name).read_bytes(), (today / name).read_bytes()
    compressed = [table.name for table in TABLES if table.compression != RAW]
    if name in compressed:
        # Another release of the library may compress otherwise; what was compressed is the same.
        old, new = independent.parse(kept), independent.parse(written)
        assert [b.contents for b in old.blocks] == [b.contents for b in new.blocks]
        assert [(b.kind, key) for b, (key, _) in zip(old.blocks, old.index.pairs, strict=True)] == [
            (b.kind, key) for b, (key, _) in zip(new.blocks, new.index.pairs, strict=True)
        ]
        filters = [
            {key: block.contents for key, block in table.meta.items()} for table in (old, new)
        ]
        assert filters[0] == filters[1]
    elif name.endswith("options.toml"):
        # A later release may write more of them.
        assert set(kept.splitlines()) <= set(written.splitlines())
    elif "MANIFEST" in name and today_has_other_sizes(today):
        assert len(kept) == pytest.approx(len(written), abs=20)
    else:
        assert kept == written


def today_has_other_sizes(today: Path) -> bool:
    """Whether a compressed table has another size today: the manifest names the sizes."""
    return any(
        (HERE / table.name).stat().st_size != (today / table.name).stat().st_size
        for table in TABLES
    )


def test_leveldb_opens_the_database(database: Path) -> None:
    plyvel = pytest.importorskip("plyvel")
    with plyvel.DB(str(database), bloom_filter_bits=10, paranoid_checks=True) as db:
        assert dict(db) == contents()
        assert all(db.get(key) == value for key, value in contents().items())
        assert not any(db.get(key) for key in ABSENT)
