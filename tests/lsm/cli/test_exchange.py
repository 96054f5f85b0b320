"""dump and load: what comes out goes in again, from files and pipes, up to the first bad line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import lsm
from tests.lsm.cli.conftest import ENTRIES, Run, snapshot


def contents(path: Path) -> dict[bytes, bytes]:
    with lsm.DB(path, read_only=True) as db:
        return dict(db)


@pytest.mark.parametrize(
    "words", [(), ("--format", "csv"), ("--keys", "hex", "--values", "base64")]
)
def test_a_dump_loads_again_through_a_pipe(
    run: Run, store: Path, tmp_path: Path, words: tuple[str, ...]
) -> None:
    dumped = run("dump", store, *words).stdout_bytes
    loaded = run("load", tmp_path / "other", "--create", *words, input=dumped)
    assert loaded.stdout == f"loaded: {len(ENTRIES)} entries\n"
    assert contents(tmp_path / "other") == ENTRIES


@pytest.mark.parametrize("name", ["all.csv", "all.jsonl"])
def test_a_dump_loads_again_from_a_file(run: Run, store: Path, tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    run("dump", store, "-o", file)
    assert file.read_bytes() == run("dump", store, "--format", file.suffix[1:]).stdout_bytes
    told = json.loads(
        run("load", tmp_path / "other", file, "--create", "--sorted", "--json").stdout
    )
    assert told == {"path": str(tmp_path / "other"), "entries": len(ENTRIES)}
    assert contents(tmp_path / "other") == ENTRIES
    assert [each.name for each in tmp_path.glob("*.part")] == []


def test_a_dump_of_a_range_is_that_range(run: Run, store: Path) -> None:
    lines = run("dump", store, "--prefix", "user:", "--limit", "1").stdout.splitlines()
    assert [json.loads(line)["key"] for line in lines] == ["user:1"]


def test_a_dump_changes_no_byte(run: Run, store: Path) -> None:
    before = snapshot(store)
    run("dump", store)
    assert snapshot(store) == before


def lines_of(count: int, bad: int) -> bytes:
    lines = [b'{"key": "%05d", "value": "v"}\n' % number for number in range(count)]
    lines[bad] = b"{\n"
    return b"".join(lines)


def test_what_comes_before_a_malformed_line_is_loaded(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "in.jsonl"
    file.write_bytes(lines_of(250, 203))
    refused = run("load", tmp_path / "db", file, "--create", "--batch", 100, status=2)
    assert refused.stderr.startswith(f"lsm: {file}: line 204: ")
    assert refused.stderr.endswith("; loaded: 203 entries before it\n")
    assert len(contents(tmp_path / "db")) == 203


def test_of_a_sorted_load_nothing_is_there_after_a_malformed_line(run: Run, tmp_path: Path) -> None:
    refused = run(
        "load", tmp_path / "db", "--create", "--sorted", status=2, input=lines_of(250, 203)
    )
    assert refused.stderr.startswith("lsm: standard input: line 204: ")
    assert contents(tmp_path / "db") == {}


def test_a_dump_that_fails_leaves_the_file_that_was_there(
    run: Run, store: Path, tmp_path: Path
) -> None:
    [table] = store.glob("*.ldb")
    data = bytearray(table.read_bytes())
    data[5] ^= 0xFF
    table.write_bytes(data)
    file = tmp_path / "all.csv"
    file.write_text("before")
    refused = run("dump", store, "-o", file, status=2)
    assert refused.stderr.startswith(f"lsm: {table}: ")
    assert refused.stderr.endswith("; lsm repair keeps what can still be read\n")
    assert file.read_text() == "before"
    assert [each.name for each in tmp_path.glob("*.part")] == []


def test_a_dump_writes_over_nobodys_file_on_its_way(run: Run, store: Path, tmp_path: Path) -> None:
    (tmp_path / "all.csv.part").write_bytes(b"mine")
    result = run("dump", store, "-o", tmp_path / "all.csv", status=2)
    assert result.stderr == f"lsm: {tmp_path / 'all.csv.part'}: File exists\n"
    assert (tmp_path / "all.csv.part").read_bytes() == b"mine"
    assert not (tmp_path / "all.csv").exists()


def test_a_missing_file_creates_no_database(run: Run, tmp_path: Path) -> None:
    refused = run("load", tmp_path / "db", tmp_path / "none.csv", "--create", status=2)
    assert refused.stderr == f"lsm: {tmp_path}/none.csv: No such file or directory\n"
    assert not (tmp_path / "db").exists()
