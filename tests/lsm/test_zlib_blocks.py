"""Databases whose blocks zlib has compressed, as Minecraft's LevelDB writes them."""

from __future__ import annotations

import random
import re
import zlib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import lsm
from lsm.disk import compression
from lsm.errors import CorruptionError
from lsm.repair import repair
from tests.lsm.forging import Parts, with_table
from tests.lsm.independent_table import (
    DEFLATE,
    RAW,
    TRAILER,
    ZSTD,
    Block,
    contents_of,
    deflated,
    footer,
    parse,
    stored,
    varint,
)
from tests.lsm.refilterable import AFTER, STILL, Data, files, filters_of, made

Squeeze = Callable[[bytes], bytes]
Kind = tuple[int, Squeeze]

ZLIB: Kind = (ZSTD, zlib.compress)
RAW_DEFLATE: Kind = (DEFLATE, deflated)
KINDS = pytest.mark.parametrize(
    "kinds", [[ZLIB], [RAW_DEFLATE], [RAW_DEFLATE, ZLIB, (RAW, bytes)]], ids=["2", "4", "turns"]
)
OPTIONS: dict[str, Any] = STILL | {"filter_policy": None}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "db"


def squeezed(data: bytes, kinds: list[Kind]) -> bytes:
    """The table with its data blocks compressed in turns, and its index as the first of them."""
    parts, made, index, metaindex, handles = Parts.of(data), b"", [], [], []
    for turn, (key, contents, _) in enumerate(parts.blocks):
        block = stored(contents, *kinds[turn % len(kinds)])
        index.append((key, varint(len(made)) + varint(len(block) - TRAILER)))
        made += block
    for name, contents in parts.meta:
        metaindex.append((name, varint(len(made)) + varint(len(contents))))
        made += stored(contents)
    for pairs in (metaindex, index):
        block = stored(contents_of(pairs), *kinds[0])
        handles.append(varint(len(made)) + varint(len(block) - TRAILER))
        made += block
    return made + footer(*handles)


def squeeze_tables(path: Path, kinds: list[Kind]) -> None:
    """Have all tables of a database be such ones."""
    now = {name: data for name, data in files(path).items() if name != "LOCK"}
    for name in sorted(name for name in now if name.endswith(".ldb")):
        now = with_table(now, name, squeezed(now[name], kinds))
    for name, data in now.items():
        (path / name).write_bytes(data)


def blocks_of(path: Path) -> list[Block]:
    """All data blocks of all tables."""
    return [block for table in path.glob("*.ldb") for block in parse(table.read_bytes()).blocks]


def numbered(kinds: list[Kind]) -> set[int]:
    return {number for number, _ in kinds}


# -- Reading -----------------------------------------------------------------------------------


@KINDS
def test_they_are_read(path: Path, kinds: list[Kind], chosen: ModuleType) -> None:
    expected = made(path)
    squeeze_tables(path, kinds)
    assert {block.kind for block in blocks_of(path)} == numbered(kinds)
    before = files(path)
    with lsm.DB(path, read_only=True) as db:
        pairs = sorted(expected.items())
        assert list(db) == pairs
        assert list(db.iterator(reverse=True)) == pairs[::-1]
        assert [(key, db.get(key)) for key, _ in pairs] == pairs
        assert db.get_many([key for key, _ in pairs]) == [value for _, value in pairs]
        assert db.get(b"0007") is None
    assert files(path) == before


@KINDS
def test_compactions_read_them_and_write_none(
    path: Path, kinds: list[Kind], chosen: ModuleType
) -> None:
    expected = made(path)
    squeeze_tables(path, kinds)
    with lsm.DB(path, **(STILL | {"compression": "snappy"})) as db:
        db.compact_range()
        assert dict(db) == expected
    assert {block.kind for block in blocks_of(path)} == {compression.SNAPPY}


# -- Damage under right checksums --------------------------------------------------------------


def cut(data: bytes) -> bytes:
    return data[:-1]


def gone_on(data: bytes) -> bytes:
    return data + b"\0"


def bomb(data: bytes) -> bytes:
    return zlib.compress(bytes(1 << 22)) if data[0] == 0x78 else deflated(bytes(1 << 22))


@pytest.mark.parametrize("kind", [ZLIB, RAW_DEFLATE], ids=["2", "4"])
@pytest.mark.parametrize(
    ("spoilt", "message"),
    [
        (cut, "it ends before its stream"),
        (gone_on, "its stream ends 1 bytes before it"),
        (bomb, "holds more than"),
    ],
)
def test_damage_is_named_with_its_file_and_place(
    path: Path,
    kind: Kind,
    spoilt: Squeeze,
    message: str,
    chosen: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(compression, "ROOM", 1 << 20)
    made(path)
    number, squeeze = kind
    squeeze_tables(path, [kind, (number, lambda contents: spoilt(squeeze(contents)))])
    name = "zlib" if number == ZSTD else "deflate"
    told = re.compile(rf"000\d+\.ldb: the data block at byte \d+: {name} data of .*{message}")
    with lsm.DB(path, **STILL) as db:
        with pytest.raises(CorruptionError, match=told):
            list(db)
        with pytest.raises(CorruptionError, match=told):
            db.get_many([b"%04d" % number for number in range(200)])
        with pytest.raises(lsm.Error, match=told):
            db.compact_range()


# -- Tables that stay as they are --------------------------------------------------------------


@KINDS
def test_another_filter_leaves_their_blocks_as_they_are(
    path: Path, kinds: list[Kind], chosen: ModuleType
) -> None:
    expected = made(path)
    squeeze_tables(path, kinds)
    with lsm.DB(path, **(STILL | {"filter_policy": AFTER})) as db:
        before = Data.of(path, db)
        assert len(db.refilter().tables) == 13
        assert Data.of(path, db) == before
        assert filters_of(db) == {("classic", "built")}
        assert dict(db) == expected
    assert {block.kind for block in blocks_of(path)} == numbered(kinds)


@KINDS
def test_repairing_keeps_them(path: Path, kinds: list[Kind]) -> None:
    expected = made(path)
    squeeze_tables(path, kinds)
    before = {table: table.read_bytes() for table in path.glob("*.ldb")}
    report = repair(path)
    assert (report.losses, report.tables_kept) == ((), 13)
    assert {table: table.read_bytes() for table in before} == before
    with lsm.DB(path, read_only=True) as db:
        assert dict(db) == expected


@KINDS
def test_their_entries_are_found_without_an_index(
    path: Path, kinds: list[Kind], rng: random.Random
) -> None:
    """By their checksums, one block after the other."""
    contents = {b"%04d" % number: b"value %d, " % number * 9 for number in range(300)}
    with lsm.DB(path, create_if_missing=True, **(OPTIONS | {"max_file_size": 1 << 20})) as db:
        for key, value in contents.items():
            db.put(key, value)
        db.flush()
    squeeze_tables(path, kinds)
    [table] = path.glob("*.ldb")
    assert len(blocks_of(path)) > 20
    data = table.read_bytes()
    table.write_bytes(data[:-1] + b"\0")
    repair(path)
    with lsm.DB(path, read_only=True) as db:
        assert dict(db) == contents


def test_of_a_damaged_block_only_its_keys_are_lost(path: Path) -> None:
    contents = {b"%04d" % number: b"value %d, " % number * 9 for number in range(300)}
    with lsm.DB(path, create_if_missing=True, **(OPTIONS | {"max_file_size": 1 << 20})) as db:
        for key, value in contents.items():
            db.put(key, value)
        db.flush()
    squeeze_tables(path, [ZLIB])
    [table] = path.glob("*.ldb")
    data = bytearray(table.read_bytes())
    damaged = parse(bytes(data)).blocks[7]
    data[damaged.offset + damaged.size // 2] ^= 1
    table.write_bytes(data)
    report = repair(path)
    assert len(report.losses) == 1
    lost = {key[:-8] for key, _ in damaged.pairs}
    with lsm.DB(path, read_only=True) as db:
        assert dict(db) == {key: value for key, value in contents.items() if key not in lost}
