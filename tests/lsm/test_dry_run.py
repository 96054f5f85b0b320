"""A dry run of a repair: it says what the repair then does, and changes nothing."""

from __future__ import annotations

import errno
import logging
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lsm
from lsm.dry_run import DryRunStorage
from lsm.errors import ForeignDatabaseError, IOError, LockedError, NotADatabaseError
from lsm.repair import LOST, Report, repair
from lsm.storage import FileSystem, Storage
from tests.effort import examples
from tests.lsm.simulated import SimulatedStorage
from tests.lsm.test_foreign import State, state

SMALL = {"write_buffer_size": 4096, "max_file_size": 2048, "block_size": 256}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "db"


def filled(path: Path, rng: random.Random) -> None:
    """A database of many tables and a log."""
    with lsm.DB(path, create_if_missing=True, **SMALL) as db:
        for _ in range(600):
            db.put(b"%03d" % rng.randrange(300), rng.randbytes(40))
        db.wait_until_idle()
        db.put(b"last", b"one")


def spoil(path: Path, pattern: str, at: float) -> None:
    """Turn the bits of one byte of the last file like this."""
    file = max(path.glob(pattern))
    data = bytearray(file.read_bytes())
    data[int(at * (len(data) - 1))] ^= 0xFF
    file.write_bytes(data)


DAMAGES: dict[str, Callable[[Path], Any]] = {
    "none": lambda path: None,
    "no CURRENT": lambda path: (path / "CURRENT").unlink(),
    "no manifest": lambda path: next(path.glob("MANIFEST-*")).unlink(),
    "no manifest and no CURRENT": lambda path: [
        file.unlink() for file in [*path.glob("MANIFEST-*"), path / "CURRENT"]
    ],
    "a damaged manifest": lambda path: spoil(path, "MANIFEST-*", 0.5),
    "a damaged log": lambda path: spoil(path, "*.log", 0.1),
    "a damaged block": lambda path: spoil(path, "*.ldb", 0.1),
    "a damaged footer": lambda path: spoil(path, "*.ldb", 1.0),
    "an empty table": lambda path: max(path.glob("*.ldb")).write_bytes(b""),
    "no table": lambda path: max(path.glob("*.ldb")).unlink(),
    "no seed": lambda path: (path / "lsm-seed").unlink(),
    "no lock": lambda path: (path / "LOCK").unlink(),
}


def dry_run(path: Path, **options: Any) -> Report:
    """What a repair would do, with nothing changed."""
    before: State = state(path.parent)
    report = lsm.repair_db(path, dry_run=True, **options)
    assert isinstance(report, Report)
    assert state(path.parent) == before
    return report


@pytest.mark.parametrize("damage", DAMAGES)
def test_it_says_what_the_repair_then_does(path: Path, rng: random.Random, damage: str) -> None:
    filled(path, rng)
    DAMAGES[damage](path)
    for options in ({}, SMALL):
        expected = [dry_run(path, **options) for _ in range(2)]
        report = repair(path, **options)
        assert expected == [report, report]
        assert {*report.set_aside} <= {*os.listdir(path / LOST)}
        assert all(Path(kept).exists() for kept in report.unreadable)
    with lsm.DB(path) as db:
        assert len(list(db)) > 100


def test_only_a_dry_run_returns_its_report(path: Path) -> None:
    for said in (False, None):
        assert lsm.repair_db(path, dry_run=said) is None
    with pytest.raises(TypeError):
        lsm.repair_db(path, dry_run="yes")


def test_where_nothing_is_nothing_is_made(tmp_path: Path) -> None:
    report = dry_run(tmp_path / "db")
    assert (report.tables_kept, report.losses, report.set_aside) == (0, (), ())
    assert os.listdir(tmp_path) == []
    with pytest.raises(NotADatabaseError, match="above it"):
        lsm.repair_db(tmp_path / "not" / "there", dry_run=True)
    (tmp_path / "file").write_bytes(b"mine")
    with pytest.raises(IOError, match="file"):
        lsm.repair_db(tmp_path / "file", dry_run=True)
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "data.mdb").write_bytes(b"mine")
    before = state(tmp_path)
    with pytest.raises(ForeignDatabaseError, match="LMDB"):
        lsm.repair_db(tmp_path / "theirs", dry_run=True)
    assert state(tmp_path) == before


def test_who_writes_is_waited_for_and_who_reads_is_not(path: Path, rng: random.Random) -> None:
    filled(path, rng)
    with lsm.DB(path), pytest.raises(LockedError):
        lsm.repair_db(path, dry_run=True)
    with lsm.DB(path, read_only=True):
        dry_run(path)
    lsm.DB(path).close()


def test_every_line_it_logs_says_that_it_is_one(
    path: Path, rng: random.Random, caplog: pytest.LogCaptureFixture
) -> None:
    filled(path, rng)
    spoil(path, "*.ldb", 0.1)
    with caplog.at_level(logging.INFO, "lsm"):
        dry_run(path)
    told = [record.getMessage() for record in caplog.records]
    assert told
    assert all(line.startswith("dry run: ") for line in told)


def test_another_storage_is_not_changed_either(rng: random.Random) -> None:
    storage = SimulatedStorage()
    with lsm.DB("db", create_if_missing=True, storage=storage, **SMALL) as db:
        for _ in range(300):
            db.put(b"%03d" % rng.randrange(100), rng.randbytes(40))
    storage.remove("db/CURRENT")
    before = storage.mutations
    expected = lsm.repair_db("db", storage=storage, dry_run=True)
    assert storage.mutations == before
    assert repair("db", storage=storage) == expected


def test_for_want_of_room_it_stops_and_says_where(
    path: Path, rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(path, rng)
    (path / "CURRENT").unlink()

    class Full:
        def write(self, _data: bytes) -> int:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        def close(self) -> None:
            pass

    monkeypatch.setattr("tempfile.TemporaryFile", Full)
    before = state(path)
    with pytest.raises(IOError, match="cannot write a dry run's file into .*No space left") as info:
        lsm.repair_db(path, dry_run=True)
    assert info.value.errno == errno.ENOSPC
    assert state(path) == before


# ---- The storage itself ------------------------------------------------------------------------


NAMES = st.sampled_from(["a", "b", "c", "d/e", "d/f"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["create", "remove", "replace"]), NAMES, st.binary(max_size=9)),
        st.tuples(st.just("rename"), NAMES, NAMES),
        st.tuples(st.just("make"), st.just("d"), st.just("")),
    ),
    max_size=25,
)


def do(storage: Storage, what: str, name: str, other: Any) -> Any:
    """One step, and what came of it."""
    try:
        if what == "create":
            file = storage.create(f"db/{name}")
            file.append(other)
            file.append(b"tail")
            file.truncate(file.size - 2)
            file.append(b"!")
            file.sync()
            file.close()
        elif what == "replace":
            storage.replace(f"db/{name}", other, "db/temporary")
        elif what == "remove":
            storage.remove(f"db/{name}")
        elif what == "rename":
            storage.rename(f"db/{name}", f"db/{other}")
        else:
            storage.make_directory(f"db/{name}")
    except IOError as error:
        return error.errno
    return None


def seen(storage: Storage) -> dict[str, Any]:
    """All that can be seen in it."""
    found: dict[str, Any] = {}
    for directory in ("db", "db/d"):
        found[directory] = storage.exists(directory) and storage.list(directory)
        for name in ("a", "b", "c", "e", "f", "temporary"):
            path = f"{directory}/{name}"
            if storage.exists(path):
                mapped = storage.map(path)
                data = storage.read(path)
                assert bytes(mapped.data[:]) == data
                assert storage.size(path) == len(data)
                mapped.close()
                found[path] = data
            else:
                for use in (storage.read, storage.map, storage.size, storage.remove):
                    with pytest.raises(IOError):
                        use(path)
    return found


@given(steps=STEPS)
@examples(30)
def test_it_is_what_the_storage_would_be(steps: list[tuple[str, str, Any]]) -> None:
    real, below = SimulatedStorage(), SimulatedStorage()
    for storage in (real, below):
        storage.make_directory("db")
        storage.create("db/a").close()
        do(storage, "create", "b", b"there")
    overlay = DryRunStorage(below)
    untouched = seen(below)
    for what, name, other in steps:
        if "d/" in name + str(other) and not real.exists("db/d"):
            continue  # a dry run's file needs no directory
        if what == "rename" and name == other:
            continue
        assert do(overlay, what, name, other) == do(real, what, name, other)
    assert seen(overlay) == seen(real)
    assert seen(below) == untouched


def test_a_closed_file_takes_no_more(tmp_path: Path) -> None:
    overlay = DryRunStorage(FileSystem())
    file = overlay.create(f"{tmp_path}/file")
    file.close()
    file.close()
    with pytest.raises(ValueError, match="is closed"):
        file.append(b"more")
    overlay.make_directory(f"{tmp_path}/d")
    with pytest.raises(IOError, match="not empty"):
        overlay.remove_directory(str(tmp_path))
    overlay.remove_directory(f"{tmp_path}/d")
    overlay.sync_directory(str(tmp_path))
    assert overlay.list(str(tmp_path)) == ["file"]
    assert os.listdir(tmp_path) == []
