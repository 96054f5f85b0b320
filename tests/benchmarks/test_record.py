"""A record is written as a whole, read again as it was, and refused when it is something else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import attrs
import pytest

import lsm
from benchmarks import machine, record
from benchmarks.record import Record
from benchmarks.rows import Row, Target, timed

ROW = Row(part="p", group="g", name="n", subject="s", at={"n": 10}, target=Target(2, "two"))


@attrs.frozen
class Settings:
    seed: int = 1
    file: Path = Path("keys")


def a_record() -> Record:
    head = record.head("filters", "quick", {"filters": Settings()}, "2026-01-02T03:04:05+00:00")
    rows = [timed(ROW, [1.0, 2.0], [3.0]), attrs.evolve(ROW, name="other", part="q")]
    return Record(head, rows, {"seconds": 1.5})


def test_it_is_read_as_it_was_written(tmp_path: Path) -> None:
    path, made = tmp_path / record.RECORD_NAME, a_record()
    made.write(path)
    for where in (path, tmp_path):
        found = Record.read(where)
        assert found.rows == made.rows
        assert found.head == json.loads(json.dumps(made.head))
        assert found.summary == made.summary
    assert [row.name for row in found.of("p")] == ["n"]
    assert [file.name for file in tmp_path.iterdir()] == [record.RECORD_NAME]
    assert len([line for line in path.read_text().splitlines() if line.startswith('{"id"')]) == 2


def test_the_head_says_who_where_and_what() -> None:
    head = a_record().head
    assert head["settings"] == {"filters": {"seed": 1, "file": "keys"}}
    assert {"processor", "load_average", "cache_bytes", "memory_bytes", "pinned_to"} <= set(
        head["machine"]
    )
    assert {"python", "lsm-filters", "rbloom", "rocksdict", "leveldb"} <= set(head["versions"])
    assert head["kernel"]["name"] in ("native", "python")
    assert head["kernel"]["engine"] == getattr(lsm, "KERNEL", "python")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "there is no record here"),
        ("no json", "not JSON"),
        ("[]", "it has no rows"),
        ('{"schema": 2}', "it has no rows"),
        ('{"schema": 2, "rows": 5}', "it has no rows"),
        ('{"schema": 1, "rows": []}', "has schema 1; this version reads 2"),
        ('{"schema": 2, "rows": [{"part": "p"}]}', "not a row"),
        ('{"schema": 2, "rows": [5]}', "no attribute"),
    ],
)
def test_what_is_no_record_is_refused(content: str | None, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ValueError, match=reason) as raised:
        Record.read(path)
    assert str(path) in str(raised.value)


def test_caches_are_data_caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[dict[str, Any]] = [
        {"level": 1, "type": "Data", "size": "48K"},
        {"level": 1, "type": "Instruction", "size": "32K"},
        {"level": 3, "type": "Unified", "size": "32M"},
        {"level": 4, "type": "Unified", "size": "odd"},
    ]
    for number, cache in enumerate(found):
        (tmp_path / f"index{number}").mkdir()
        for name, value in cache.items():
            (tmp_path / f"index{number}" / name).write_text(f"{value}\n")
    monkeypatch.setattr(machine, "CACHES", tmp_path)
    assert machine.cache_bytes() == {"L1": 48 << 10, "L3": 32 << 20}
