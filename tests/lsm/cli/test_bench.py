"""bench: every operation has a time, what filters spare is counted, the store stays as it is."""

from __future__ import annotations

import json
from pathlib import Path

import lsm
from tests.lsm.cli.conftest import Run, snapshot
from tests.lsm.refilterable import made


def test_bench(run: Run, tmp_path: Path) -> None:
    made(tmp_path)
    before = snapshot(tmp_path)
    told = json.loads(run("bench", tmp_path, "--count", 50, "--write", "--json").stdout)
    assert [each["operation"] for each in told["operations"]] == [
        "get, present",
        "get, absent",
        "get_many, present",
        "scan",
        "put",
    ]
    assert all(each["ns"] > 0 for each in told["operations"])
    absent = told["absent"]
    assert absent["lookups"] > 0
    assert absent["skipped"] > absent["false_positives"]
    assert snapshot(tmp_path) == before
    again = json.loads(run("bench", tmp_path, "--count", 50, "--json").stdout)
    assert again["absent"] == absent
    text = run("bench", tmp_path, "--count", 50).stdout
    assert text.splitlines()[0].split() == ["operation", "count", "ns", "each", "in", "a", "second"]


def test_an_empty_store_has_nothing_to_measure(run: Run, tmp_path: Path) -> None:
    lsm.DB(tmp_path, create_if_missing=True).close()
    assert "it has no keys" in run("bench", tmp_path, status=2).stderr
