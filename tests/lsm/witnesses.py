"""What a directory holds, by whoever can read it; each asks in every way that it has."""

from __future__ import annotations

from pathlib import Path

import pytest

import lsm

Contents = dict[bytes, bytes]


def by_lsm(directory: Path) -> Contents:
    """The one that may write, too: it removes what nobody needs."""
    with lsm.DB(directory) as db:
        db.wait_until_idle()
        tables = sum(level.tables for level in db.stats().levels)
        assert len(list(directory.glob("*.ldb"))) == tables, "what nobody needs is removed"
        contents = dict(db)
        assert [db.get(key) for key in contents] == list(contents.values())
        assert list(db.iterator(reverse=True)) == list(contents.items())[::-1]
    return contents


def by_a_reader(directory: Path) -> Contents:
    """The one that only reads, and changes no byte."""
    before = {path: path.read_bytes() for path in directory.iterdir()}
    with lsm.DB(directory, read_only=True) as db:
        contents = dict(db)
        assert [db.get(key) for key in contents] == list(contents.values())
    assert before == {path: path.read_bytes() for path in directory.iterdir()}
    return contents


def by_plyvel(directory: Path) -> Contents:
    """LevelDB, which compares every checksum."""
    plyvel = pytest.importorskip("plyvel")
    with plyvel.DB(str(directory), paranoid_checks=True) as db:
        contents = dict(db.iterator(verify_checksums=True))
        assert [db.get(key) for key in contents] == list(contents.values())
    return contents


def by_repair(directory: Path) -> Contents:
    """Ours after ``repair_db``, which finds nothing to leave out."""
    lsm.repair_db(directory)
    return by_lsm(directory)
