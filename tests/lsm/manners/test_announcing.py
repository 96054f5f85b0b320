"""What a database says in the log ``lsm``, and where warnings point."""

from __future__ import annotations

import inspect
import logging
import re
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

import lsm
from lsm import announcing


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    with caplog.at_level(logging.INFO, "lsm"):
        yield caplog


def said(log: pytest.LogCaptureFixture) -> list[str]:
    """The lines since the last look, their numbers made 0."""
    lines = [record.getMessage() for record in log.records]
    assert {record.levelname for record in log.records} <= {"INFO"}
    assert {record.name for record in log.records} <= {"lsm"}
    log.clear()
    return [re.sub(r"\d+", "0", line.partition(": ")[2]) for line in lines]


SECONDS = "in 0.0 s"


def test_each_thing_of_note_is_one_line(tmp_path: Path, log: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "database"
    with lsm.DB(path, create_if_missing=True) as db:
        assert said(log) == [f"opened: 0 tables of 0 bytes on no level, {SECONDS}"]
        for turn in range(2):
            db.put(b"key", b"%d" % turn)
            db.put(b"other", b"%d" % turn)
            db.flush()
        flushed = f"flushed: 0 bytes of memory to 0 table of 0 bytes on level 0, {SECONDS}"
        assert said(log) == [flushed] * 2
        db.compact_range()
        tables = "0 tables? of 0 bytes"
        compacted = f"compacted: {tables} of levels? 0(, 0)* to {tables} on level 0, {SECONDS}"
        for line in (lines := said(log)):
            assert re.fullmatch(compacted, line)
        assert lines
        db.put(b"in the log", b"1")
    assert said(log) == [f"closed, {SECONDS}"]
    with lsm.DB(path) as db:
        recovered, opened = said(log)
        written = "0 table of 0 bytes written"
        assert recovered == f"recovered: 0 bytes of 0 log replayed, {written}, {SECONDS}"
        assert re.fullmatch(f"opened: 0 tables of 0 bytes on levels 0, 0, {SECONDS}", opened)
        db.close()
        db.close()
    assert said(log) == [f"closed, {SECONDS}"]


def test_a_line_begins_with_the_directory_and_has_the_figures(
    tmp_path: Path, log: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "database"
    with lsm.DB(path, create_if_missing=True) as db:
        db.put(b"key", bytes(1000))
        db.flush()
        (table,) = path.glob("*.ldb")
        size = table.stat().st_size
    flushed = next(each for each in log.messages if "flushed" in each)
    assert flushed.startswith(f"{path}: flushed: ")
    assert f"to 1 table of {size} bytes on level " in flushed


def test_a_table_that_moves_is_a_line(tmp_path: Path, log: pytest.LogCaptureFixture) -> None:
    with lsm.DB(
        tmp_path / "db",
        create_if_missing=True,
        compression=None,
        write_buffer_size=64 << 10,
        max_file_size=64 << 10,
        level_size_base=128 << 10,
    ) as db:
        for number in range(3000):
            db.put(b"%08d" % number, bytes(500))
        db.wait_until_idle()
        moves = db.stats().moves
    assert sum("moved: table " in each for each in log.messages) == moves > 0


def test_reading_alone_is_said_and_recovers_nothing_to_tables(
    tmp_path: Path, log: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "db"
    with lsm.DB(path, create_if_missing=True) as db:
        db.put(b"key", b"value")
    said(log)
    with lsm.DB(path, read_only=True) as db:
        assert db.get(b"key") == b"value"
    recovered, opened, closed = said(log)
    assert "0 tables of 0 bytes written" in recovered
    assert opened.startswith("opened to read: ")
    assert closed.startswith("closed")


def test_an_opening_that_fails_is_neither_opened_nor_closed(
    tmp_path: Path, log: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(lsm.NotADatabaseError):
        lsm.DB(tmp_path / "db")
    path = tmp_path / "broken"
    with lsm.DB(path, create_if_missing=True) as db:
        db.put(b"key", b"value")
        db.flush()
    said(log)
    for table in path.glob("*.ldb"):
        table.unlink()
    with pytest.raises(lsm.CorruptionError):
        lsm.DB(path)
    assert said(log) == []


def test_nothing_is_worded_where_nobody_listens(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("_tables", "_levels", "_counted"):
        monkeypatch.setattr(announcing, name, None)
    with caplog.at_level(logging.WARNING, "lsm"):
        with lsm.DB(tmp_path / "db", create_if_missing=True) as db:
            db.put(b"key", b"value")
            db.flush()
            db.compact_range(force=True)
        lsm.DB(tmp_path / "db").close()
    assert caplog.records == []


def test_a_warning_points_at_the_line_that_opened(tmp_path: Path) -> None:
    config = tmp_path / "lsm.toml"
    config.write_text('[filters]\npolicy = "blocked"\nbits_per_key = 24\n')
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        db = lsm.DB(tmp_path / "db", create_if_missing=True, config=config)
        db.put(b"key", b"value")
        db.flush()
        db.close()
    line = inspect.getsourcelines(test_a_warning_points_at_the_line_that_opened)[1] + 5
    assert [(each.filename, each.lineno) for each in caught] == [(__file__, line)]
