"""repair_db and destroy_db: what is left of a database after each."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.lsm.manners.outcomes import LOCKED, only_lsm, only_plyvel, refused

Open = Callable[..., Any]


def filled(api: ModuleType, path: str, rng: random.Random) -> list[tuple[bytes, bytes]]:
    """Make a database with entries in tables and in its log, and say which."""
    model: dict[bytes, bytes] = {}
    with api.DB(path, create_if_missing=True, write_buffer_size=64 << 10) as db:
        for _ in range(1200):
            key = b"%03d" % rng.randrange(600)
            model[key] = rng.randbytes(100)
            db.put(key, model[key])
        for number in range(0, 600, 7):
            db.delete(b"%03d" % number)
            model.pop(b"%03d" % number, None)
    return sorted(model.items())


def test_repairing_a_sound_database_keeps_everything(
    api: ModuleType, path: str, rng: random.Random
) -> None:
    entries = filled(api, path, rng)
    for _ in range(2):
        assert api.repair_db(path) is None
        with api.DB(path) as db:
            assert list(db) == entries


@pytest.mark.parametrize("lost", ["CURRENT", "MANIFEST-*"])
def test_repairing_does_without_what_lists_the_tables(
    api: ModuleType, path: str, rng: random.Random, lost: str
) -> None:
    entries = filled(api, path, rng)
    for file in Path(path).glob(lost):
        file.unlink()
    with pytest.raises(api.Error):
        api.DB(path)
    api.repair_db(path)
    with api.DB(path) as db:
        assert list(db) == entries
        db.put(b"and goes", b"on")
        db.compact_range()
    with api.DB(path) as db:
        assert list(db) == [*entries, (b"and goes", b"on")]


def test_repairing_does_without_tables_that_are_gone(
    api: ModuleType, path: str, rng: random.Random
) -> None:
    entries = filled(api, path, rng)
    gone = sorted(Path(path).glob("*.ldb"))[0]
    gone.unlink()
    with refused(api, "CorruptionError"):
        api.DB(path)
    api.repair_db(path)
    with api.DB(path) as db:
        # Values that were hidden, and entries that were deleted, may come back with their
        # deletion lost; but no key that was never there.
        assert {key for key, _ in db} <= {b"%03d" % number for number in range(600)}
        assert set(db) & set(entries)


def test_repairing_where_nothing_is_makes_an_empty_database(api: ModuleType, path: str) -> None:
    assert api.repair_db(path) is None
    with api.DB(path) as db:
        assert list(db) == []


def test_repairing_an_empty_directory_makes_an_empty_database(api: ModuleType, path: str) -> None:
    os.mkdir(path)
    assert api.repair_db(path) is None
    with api.DB(path) as db:
        assert list(db) == []


def test_repairing_makes_no_parent_directories(api: ModuleType, path: str) -> None:
    with pytest.raises(api.Error):
        api.repair_db(os.path.join(path, "deeper"))
    assert not os.path.exists(path)


def test_a_file_is_not_repaired(api: ModuleType, path: str) -> None:
    Path(path).write_bytes(b"something else")
    with refused(api, "IOError"):
        api.repair_db(path)
    assert Path(path).read_bytes() == b"something else"


def test_repairing_takes_the_options_of_opening(
    api: ModuleType, path: str, rng: random.Random
) -> None:
    entries = filled(api, path, rng)
    api.repair_db(
        os.fsencode(path),
        paranoid_checks=True,
        write_buffer_size=1 << 20,
        max_open_files=100,
        lru_cache_size=1 << 20,
        block_size=1024,
        block_restart_interval=8,
        max_file_size=1 << 20,
        compression=None,
        bloom_filter_bits=10,
        comparator=None,
        comparator_name=None,
    )
    with api.DB(path) as db:
        assert list(db) == entries
    with pytest.raises(ValueError, match="compression"):
        api.repair_db(path, compression="garbage")
    for wrong in ({"create_if_missing": True}, {"error_if_exists": True}, {"unknown": 1}):
        with pytest.raises(TypeError):
            api.repair_db(path, **wrong)
    with pytest.raises(TypeError):
        api.repair_db(path, True)


@only_lsm
def test_an_open_database_is_not_repaired(api: ModuleType, open_db: Open, path: str) -> None:
    db = open_db()
    db.put(b"key", b"value")
    with refused(api, "IOError", LOCKED):
        api.repair_db(path)
    assert db.get(b"key") == b"value"


@pytest.mark.parametrize("name", [None, 1, bytearray(b"db"), ["db"]], ids=repr)
def test_a_name_is_text_or_bytes(api: ModuleType, name: Any) -> None:
    for use in (api.repair_db, api.destroy_db):
        with pytest.raises(TypeError):
            use(name)


@only_plyvel
def test_a_path_object_is_no_name(api: ModuleType, path: str) -> None:
    for use in (api.repair_db, api.destroy_db):
        with pytest.raises(TypeError):
            use(Path(path))


@only_lsm
def test_a_path_object_is_a_name(api: ModuleType, path: str, rng: random.Random) -> None:
    entries = filled(api, path, rng)
    api.repair_db(Path(path))
    with api.DB(path) as db:
        assert list(db) == entries
    api.destroy_db(Path(path))
    with refused(api, "Error", "create_if_missing"):
        api.DB(path)


@pytest.mark.parametrize("name", [str, os.fsencode])
def test_destroying_removes_the_directory(
    api: ModuleType, path: str, rng: random.Random, name: Callable[[str], Any]
) -> None:
    filled(api, path, rng)
    assert api.destroy_db(name(path)) is None
    assert not os.path.exists(path)
    with api.DB(path, create_if_missing=True, error_if_exists=True) as db:
        assert list(db) == []


def test_destroying_leaves_what_is_not_the_databases(
    api: ModuleType, path: str, rng: random.Random
) -> None:
    filled(api, path, rng)
    (Path(path) / "letters").mkdir()
    (Path(path) / "letters" / "000001.ldb").write_bytes(b"mine")
    (Path(path) / "notes.txt").write_bytes(b"mine")
    api.destroy_db(path)
    assert sorted(os.listdir(path)) == ["letters", "notes.txt"]
    assert (Path(path) / "letters" / "000001.ldb").read_bytes() == b"mine"
    with pytest.raises(api.Error):
        api.DB(path)


def test_destroying_leaves_what_repairing_set_aside(
    api: ModuleType, path: str, rng: random.Random
) -> None:
    filled(api, path, rng)
    api.repair_db(path)
    api.destroy_db(path)
    assert os.listdir(path) == ["lost"]
    assert os.listdir(os.path.join(path, "lost"))


def test_destroying_what_is_not_there_does_nothing(api: ModuleType, path: str) -> None:
    assert api.destroy_db(path) is None
    assert api.destroy_db(os.path.join(path, "deeper")) is None
    assert not os.path.exists(path)


def test_destroying_twice_is_destroying(api: ModuleType, path: str) -> None:
    api.DB(path, create_if_missing=True).close()
    api.destroy_db(path)
    api.destroy_db(path)
    assert not os.path.exists(path)


def test_destroying_a_file_does_nothing(api: ModuleType, path: str) -> None:
    Path(path).write_bytes(b"something else")
    assert api.destroy_db(path) is None
    assert Path(path).read_bytes() == b"something else"


def test_an_open_database_is_not_destroyed(api: ModuleType, open_db: Open, path: str) -> None:
    db = open_db()
    db.put(b"key", b"value")
    with refused(api, "IOError", LOCKED):
        api.destroy_db(path)
    assert db.get(b"key") == b"value"
    db.close()
    with api.DB(path) as again:
        assert list(again) == [(b"key", b"value")]


def test_destroying_takes_the_name_and_nothing_else(api: ModuleType, path: str) -> None:
    api.DB(path, create_if_missing=True).close()
    for wrong in ({"paranoid_checks": True}, {"compression": None}, {"comparator": None}):
        with pytest.raises(TypeError):
            api.destroy_db(path, **wrong)
    with pytest.raises(TypeError):
        api.destroy_db()
    assert os.path.isdir(path)
    api.destroy_db(name=path)
    assert not os.path.exists(path)
