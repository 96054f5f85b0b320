"""Opening a database: what is made, what is refused, and who else may open it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.lsm.manners.outcomes import LOCKED, only_lsm, only_plyvel, refused

Open = Callable[..., Any]


def test_a_missing_database_is_made_when_asked_for(api: ModuleType, path: str) -> None:
    with api.DB(path, create_if_missing=True) as db:
        assert list(db) == []
    assert os.path.isdir(path)


def test_an_empty_directory_becomes_a_database(api: ModuleType, path: str) -> None:
    os.mkdir(path)
    with api.DB(path, create_if_missing=True) as db:
        assert list(db) == []


@pytest.mark.parametrize("options", [{}, {"create_if_missing": False}, {"error_if_exists": True}])
def test_a_missing_database_is_an_error_otherwise(
    api: ModuleType, path: str, options: dict[str, bool]
) -> None:
    with refused(api, "Error", "create_if_missing"):
        api.DB(path, **options)


def test_an_empty_directory_is_no_database(api: ModuleType, path: str) -> None:
    os.mkdir(path)
    with refused(api, "Error", "create_if_missing"):
        api.DB(path)


@pytest.mark.parametrize("create", [True, False])
def test_an_existing_database_can_be_an_error(api: ModuleType, path: str, create: bool) -> None:
    api.DB(path, create_if_missing=True).close()
    with refused(api, "Error", "error_if_exists"):
        api.DB(path, create_if_missing=create, error_if_exists=True)


def test_error_if_exists_does_not_mind_a_new_database(api: ModuleType, path: str) -> None:
    with api.DB(path, create_if_missing=True, error_if_exists=True) as db:
        assert not db.closed


def test_create_if_missing_keeps_what_is_there(api: ModuleType, path: str) -> None:
    with api.DB(path, create_if_missing=True) as db:
        db.put(b"key", b"value")
    with api.DB(path, create_if_missing=True) as db:
        assert list(db) == [(b"key", b"value")]


@pytest.mark.parametrize("create", [True, False])
def test_parent_directories_are_not_made(api: ModuleType, path: str, create: bool) -> None:
    with pytest.raises(api.Error):
        api.DB(os.path.join(path, "deeper"), create_if_missing=create)
    assert not os.path.exists(path)


@pytest.mark.parametrize("create", [True, False])
def test_a_file_is_no_database(api: ModuleType, path: str, create: bool) -> None:
    Path(path).write_bytes(b"something else")
    with refused(api, "IOError"):
        api.DB(path, create_if_missing=create)
    assert Path(path).read_bytes() == b"something else"


def test_an_empty_name_is_no_database(api: ModuleType) -> None:
    with pytest.raises(api.Error):
        api.DB("", create_if_missing=True)


@pytest.mark.parametrize("name", [None, 1, 1.5, bytearray(b"db"), ["db"]])
def test_a_name_is_text_or_bytes(api: ModuleType, name: Any) -> None:
    with pytest.raises(TypeError):
        api.DB(name, create_if_missing=True)


def test_a_name_must_be_given(api: ModuleType) -> None:
    with pytest.raises(TypeError):
        api.DB()


@pytest.mark.parametrize("lone", ["-\ud800", "\udcff-"])
def test_a_name_that_is_no_name_of_a_file_is_refused(api: ModuleType, path: str, lone: str) -> None:
    with pytest.raises(ValueError, match="surrogate"):
        api.DB(path + lone, create_if_missing=True)


@only_plyvel
def test_a_path_object_is_no_name(api: ModuleType, path: str) -> None:
    with pytest.raises(TypeError):
        api.DB(Path(path), create_if_missing=True)


@only_lsm
def test_a_path_object_is_a_name(api: ModuleType, path: str) -> None:
    with api.DB(Path(path), create_if_missing=True) as db:
        db.put(b"key", b"value")
    with api.DB(path) as db:
        assert db.get(b"key") == b"value"


def test_names_may_be_bytes_and_name_the_same_database(api: ModuleType, path: str) -> None:
    with api.DB(os.fsencode(path), create_if_missing=True) as db:
        db.put(b"key", b"value")
    with api.DB(path) as db:
        assert db.get(b"key") == b"value"


@pytest.mark.parametrize("name", ["naïve schön", "データベース", "with space", "quo'te"])
def test_names_may_be_of_any_letters(api: ModuleType, tmp_path: Path, name: str) -> None:
    with api.DB(str(tmp_path / name), create_if_missing=True) as db:
        db.put(b"key", b"value")
    assert os.path.isdir(tmp_path / name)
    with api.DB(str(tmp_path / name)) as db:
        assert db.get(b"key") == b"value"


def test_a_name_may_be_relative(
    api: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with api.DB("here", create_if_missing=True) as db:
        assert db.name == "here"
    assert os.path.isdir(tmp_path / "here")


def test_the_name_is_what_was_given(api: ModuleType, path: str) -> None:
    with api.DB(path, create_if_missing=True) as db:
        assert db.name == path
    with api.DB(os.fsencode(path)) as db:
        assert db.name == os.fsencode(path)
    assert db.name == os.fsencode(path), "after closing too"


def test_name_and_closed_can_only_be_read(db: Any) -> None:
    with pytest.raises(AttributeError):
        db.name = "another"
    with pytest.raises(AttributeError):
        db.closed = True


def test_a_database_shows_its_name_and_whether_it_is_closed(db: Any) -> None:
    assert repr(db.name) in repr(db)
    assert "DB" in repr(db)
    assert "closed" not in repr(db).replace(repr(db.name), "")
    db.close()
    assert repr(db.name) in repr(db)
    assert "closed" in repr(db).replace(repr(db.name), "")


def test_options_go_by_keyword_only(api: ModuleType, path: str) -> None:
    with pytest.raises(TypeError):
        api.DB(path, True)
    assert not os.path.exists(path)


def test_an_unknown_option_is_an_error(api: ModuleType, path: str) -> None:
    with pytest.raises(TypeError):
        api.DB(path, create_if_missing=True, no_such_option=1)
    assert not os.path.exists(path)


def test_a_database_is_opened_only_once(api: ModuleType, open_db: Open, path: str) -> None:
    db = open_db()
    with refused(api, "IOError", LOCKED):
        api.DB(path)
    with refused(api, "IOError", LOCKED):
        api.DB(path, create_if_missing=True, error_if_exists=True)
    db.put(b"key", b"the first goes on")
    assert db.get(b"key") == b"the first goes on"


@only_lsm
@pytest.mark.parametrize("spelling", ["{}/", "{}/.", "{}-link"])
def test_another_spelling_of_its_name_is_the_same_database(
    api: ModuleType, open_db: Open, path: str, spelling: str
) -> None:
    open_db()
    os.symlink(path, f"{path}-link")
    with refused(api, "IOError", LOCKED):
        api.DB(spelling.format(path))


ATTEMPT = """
import sys
sys.path[:] = {path!r}
import {api} as api
try:
    {call}
except api.IOError as error:
    print(error)
else:
    print("not refused")
"""


@pytest.mark.parametrize("call", ["api.DB({!r})", "api.destroy_db({!r})"])
def test_another_process_neither_opens_nor_destroys_it(
    api: ModuleType, open_db: Open, path: str, call: str
) -> None:
    db = open_db()
    db.put(b"key", b"value")
    script = ATTEMPT.format(path=sys.path, api=api.__name__, call=call.format(path))
    said = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert LOCKED in said.stdout
    assert db.get(b"key") == b"value"


def test_many_databases_are_open_at_once(open_db: Open, path: str) -> None:
    many = [open_db(f"{path}{number}") for number in range(5)]
    for number, db in enumerate(many):
        db.put(b"number", b"%d" % number)
    assert [db.get(b"number") for db in many] == [b"0", b"1", b"2", b"3", b"4"]


def test_a_failed_attempt_holds_no_lock(api: ModuleType, path: str) -> None:
    with refused(api, "Error"):
        api.DB(path)
    with api.DB(path, create_if_missing=True) as db:
        db.put(b"key", b"value")
    with refused(api, "Error"):
        api.DB(path, error_if_exists=True)
    with pytest.raises((TypeError, ValueError)):
        api.DB(path, compression="no such")
    with api.DB(path) as db:
        assert db.get(b"key") == b"value"


def test_what_was_written_is_there_at_the_next_opening(api: ModuleType, path: str) -> None:
    for generation in range(5):
        with api.DB(path, create_if_missing=True) as db:
            assert [db.get(b"%d" % number) for number in range(generation)] == [
                b"written at %d" % number for number in range(generation)
            ]
            db.put(b"%d" % generation, b"written at %d" % generation)
            db.put(b"passing", b"")
            if generation % 2:
                db.compact_range()
            db.delete(b"passing")
    with api.DB(path) as db:
        assert db.get(b"passing") is None
        assert len(list(db)) == 5


def damage(path: str, pattern: str, at: int) -> None:
    """Turn all bits of one byte of the only file like this."""
    (file,) = Path(path).glob(pattern)
    data = bytearray(file.read_bytes())
    data[at] ^= 0xFF
    file.write_bytes(data)


def filled(api: ModuleType, path: str) -> None:
    with api.DB(path, create_if_missing=True, compression=None) as db:
        for number in range(200):
            db.put(b"k%03d" % number, b"value" * 20)
        db.compact_range()


def test_a_current_file_that_is_damaged_is_corruption(api: ModuleType, path: str) -> None:
    filled(api, path)
    (Path(path) / "CURRENT").write_bytes(b"MANIFEST-000")
    with refused(api, "CorruptionError"):
        api.DB(path)


def test_a_missing_manifest_is_corruption(api: ModuleType, path: str) -> None:
    filled(api, path)
    (Path(path) / "CURRENT").write_bytes(b"MANIFEST-999999\n")
    with refused(api, "CorruptionError"):
        api.DB(path)


def test_a_missing_table_is_corruption(api: ModuleType, path: str) -> None:
    filled(api, path)
    (table,) = Path(path).glob("*.ldb")
    table.unlink()
    with refused(api, "CorruptionError", table.name):
        api.DB(path)


def test_without_its_current_file_a_database_is_none(api: ModuleType, path: str) -> None:
    filled(api, path)
    (Path(path) / "CURRENT").unlink()
    with refused(api, "Error"):
        api.DB(path)


def seek(iterator: Any, target: bytes) -> None:
    """Seek a key, and read what is there, of which either may find out what is wrong."""
    iterator.seek(target)
    next(iterator)


READS = {
    "get": lambda db: db.get(b"k010", verify_checksums=True),
    "get of a snapshot": lambda db: db.snapshot().get(b"k010", verify_checksums=True),
    "get of a prefixed database": lambda db: db.prefixed_db(b"k").get(
        b"010", verify_checksums=True
    ),
    "iterator": lambda db: list(db.iterator(verify_checksums=True)),
    "reverse iterator": lambda db: list(db.iterator(verify_checksums=True, reverse=True)),
    "iterator of a snapshot": lambda db: list(db.snapshot().iterator(verify_checksums=True)),
    "seek": lambda db: seek(db.iterator(verify_checksums=True), b"k010"),
    "raw iterator": lambda db: db.raw_iterator(verify_checksums=True).seek_to_first(),
    "raw seek": lambda db: db.raw_iterator(verify_checksums=True).seek(b"k010"),
}


@pytest.mark.parametrize("read", READS)
def test_with_checksums_a_damaged_table_never_answers(
    api: ModuleType, open_db: Open, path: str, read: str
) -> None:
    filled(api, path)
    damage(path, "*.ldb", 2000)
    db = open_db()
    with refused(api, "CorruptionError"):
        READS[read](db)
    assert db.get(b"k199", verify_checksums=True) == b"value" * 20, "in another block"
