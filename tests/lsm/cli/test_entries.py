"""get, put, delete, scan, count: what is asked for, in which form, and what is left alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import lsm
from tests.lsm.cli.conftest import ENTRIES, Run, snapshot


def test_get_prints_a_value_and_names_what_is_not_there(run: Run, store: Path) -> None:
    assert run("get", store, "user:1").stdout == "Ada\n"
    found = run("get", store, "user:1", "nobody", "user:2", status=1)
    assert found.stdout == "user:1\tAda\nuser:2\tZoë\n"
    assert found.stderr == "lsm: nobody: not found\n"


def test_get_in_every_form(run: Run, store: Path) -> None:
    assert run("get", store, "user:3").stdout == "\\xff\\x00raw\n"
    assert run("get", store, "user:3", "--raw").stdout_bytes == b"\xff\x00raw"
    assert run("get", store, "--keys", "hex", "feff", "--values", "hex").stdout == (
        b"not UTF-8".hex() + "\n"
    )
    assert run("get", store, "--keys", "base64", "/v8=").stdout == "not UTF-8\n"
    assert run("get", store, "--keys", "escaped", "back\\\\slash").stdout == "a\\tb\\nc\n"
    assert run("get", store, "back\\slash").stdout == "a\\tb\\nc\n"
    assert run("get", store, "").stdout == "empty\n"


def test_get_as_json(run: Run, store: Path) -> None:
    found = json.loads(run("get", store, "user:3", "nobody", "--json", status=1).stdout)
    assert found == [
        {"key": "user:3", "value": {"base64": "/wByYXc="}},
        {"key": "nobody", "value": None},
    ]


@pytest.mark.parametrize(
    "words", [("--keys", "hex", "xyz"), ("--keys", "base64", "=="), ("--keys", "escaped", "\\q")]
)
def test_a_word_that_is_not_of_its_form_is_refused(
    run: Run, store: Path, words: tuple[str, ...]
) -> None:
    refused = run("get", store, *words, status=2)
    assert f"is not {words[1]}" in refused.stderr


def test_put_and_delete(run: Run, store: Path, tmp_path: Path) -> None:
    told = json.loads(run("put", store, "new", "value", "--json").stdout)
    assert told == {"path": str(store), "key": "new", "value_bytes": 5}
    run("put", store, "raw", "--file", "-", input=b"\x00\xff")
    run("put", store, "--keys", "hex", "--values", "base64", "00ff", "AAE=")
    run("delete", store, "user:1", "user:2", "never there")
    with lsm.DB(store) as db:
        assert db.get(b"new") == b"value"
        assert db.get(b"raw") == b"\x00\xff"
        assert db.get(b"\x00\xff") == b"\x00\x01"
        assert db.get(b"user:1") is None
    assert "one of them" in run("put", store, "key", status=2).stderr
    assert "does not exist" in run("put", tmp_path / "none", "key", "v", status=2).stderr
    assert not (tmp_path / "none").exists()
    run("put", tmp_path / "none", "key", "v", "--create")
    assert run("get", tmp_path / "none", "key").stdout == "v\n"


def test_delete_of_a_range(run: Run, store: Path) -> None:
    before = snapshot(store)
    told = json.loads(run("delete", store, "--prefix", "user:", "--dry-run", "--json").stdout)
    assert (told["dry_run"], told["entries"]) == (True, 3)
    asked = ("delete", store, "--start", "user:1", "--stop", "user:3")
    assert run(*asked, "--dry-run").stdout == "would delete: 2 entries\n"
    assert run("delete", store, "user:1", "none", "--dry-run").stdout == "would delete: 1 entry\n"
    assert "there is no terminal to ask on" in run(*asked, status=2).stderr
    assert snapshot(store) == before
    assert run(*asked, "--yes").stdout == "deleted: 2 entries\n"
    assert run("scan", store, "--prefix", "user:", "--keys-only").stdout == "user:3\n"
    assert "give KEYs, or" in run("delete", store, status=2).stderr
    assert "give KEYs, or" in run("delete", store, "a", "--prefix", "b", status=2).stderr


def test_delete_of_more_than_a_batch(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "many"
    with lsm.DB(path, create_if_missing=True) as db, db.write_batch() as batch:
        for number in range(10_000):
            batch.put(b"%05d" % number, b"")
    run("delete", path, "--start", "00005", "--yes", "--sync")
    assert run("count", path).stdout == "5\n"


def shown(scan: str) -> list[list[str]]:
    return [line.split("\t") for line in scan.splitlines()]


def test_scan_shows_every_entry_on_a_line_of_its_own(run: Run, store: Path) -> None:
    lines = shown(run("scan", store).stdout)
    assert lines == [
        ["", "empty"],
        ["back\\\\slash", "a\\tb\\nc"],
        ["naïve", ""],
        ["user:1", "Ada"],
        ["user:2", "Zoë"],
        ["user:3", "\\xff\\x00raw"],
        ["\\xfe\\xff", "not UTF-8"],
    ]
    hexed = shown(run("scan", store, "--keys", "hex", "--values", "hex").stdout)
    assert {bytes.fromhex(key): bytes.fromhex(value) for key, value in hexed} == ENTRIES


def test_scan_of_a_range(run: Run, store: Path) -> None:
    def keys(*words: str) -> list[str]:
        return run("scan", store, "--keys-only", *words).stdout.splitlines()

    assert keys("--prefix", "user:") == ["user:1", "user:2", "user:3"]
    assert keys("--prefix", "user:", "--reverse", "--limit", "2") == ["user:3", "user:2"]
    assert keys("--start", "user:2", "--stop", "user:3") == ["user:2"]
    assert keys("--keys", "hex", "--start", "fe") == ["feff"]
    assert run("scan", store, "--prefix", "none", status=1).stdout == ""
    assert "leave out" in run("scan", store, "--prefix", "a", "--stop", "b", status=2).stderr
    assert "--start" in run("scan", store, "--keys", "hex", "--start", "g", status=2).stderr


def test_scan_as_json_lines_has_every_byte(run: Run, store: Path) -> None:
    lines = list(map(json.loads, run("scan", store, "--json").stdout.splitlines()))
    assert lines[3] == {"key": "user:1", "value": "Ada"}
    assert lines[6] == {"key": {"base64": "/v8="}, "value": "not UTF-8"}
    keys = run("scan", store, "--json", "--keys-only", "--prefix", "user:1").stdout
    assert json.loads(keys) == {"key": "user:1"}


def test_count(run: Run, store: Path) -> None:
    assert run("count", store).stdout == f"{len(ENTRIES)}\n"
    assert run("count", store, "--prefix", "user:").stdout == "3\n"
    assert run("count", store, "--prefix", "none").stdout == "0\n"
    told = json.loads(run("count", store, "--json").stdout)
    assert told == {
        "path": str(store),
        "entries": len(ENTRIES),
        "key_bytes": sum(map(len, ENTRIES)),
        "value_bytes": sum(map(len, ENTRIES.values())),
    }


def test_reading_changes_no_byte(run: Run, store: Path) -> None:
    (store / "LOCK").unlink()
    before = snapshot(store)
    run("get", store, "user:1")
    run("scan", store)
    run("count", store)
    assert snapshot(store) == before
