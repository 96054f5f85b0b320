"""stats, filters, explain, config, policies: what they show is what the engine says."""

from __future__ import annotations

import json
from pathlib import Path

import attrs
import pytest

import lsm
import policies
from lsm import options as engine_options
from tests.lsm.cli.conftest import Run, snapshot


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A database with tables on two levels."""
    path = tmp_path / "tree"
    with lsm.DB(path, create_if_missing=True, filter_policy=policies.create("cuckoo")) as db:
        for number in range(2000):
            db.put(b"key:%06d" % number, b"value")
        db.compact_range()
        for number in range(0, 2000, 7):
            db.put(b"key:%06d" % number, b"newer")
        db.flush()
    return path


def test_stats(run: Run, tree: Path) -> None:
    text = run("stats", tree).stdout
    with lsm.DB(tree, read_only=True) as db:
        found = db.stats()
    told = json.loads(run("stats", tree, "--json").stdout)
    assert told == json.loads(json.dumps(found.as_dict()))
    for level in found.levels:
        if level.tables:
            assert any(
                line.split()[:2] == [str(level.level), str(level.tables)]
                for line in text.splitlines()
            )
    assert max(map(len, text.splitlines())) <= 80


def test_filters(run: Run, tree: Path) -> None:
    text = run("filters", tree).stdout
    assert text.startswith("levels 0 to 6: cuckoo fingerprint_bits=12\n")
    with lsm.DB(tree, read_only=True) as db:
        levels = db.filters()
    told = json.loads(run("filters", tree, "--json").stdout)
    assert told == json.loads(json.dumps([attrs.asdict(level) for level in levels]))
    by_table = run("filters", tree, "--tables").stdout
    for level in levels:
        for table in level.tables:
            assert any(
                line.split()[:3] == [str(level.level), str(table.file_number), "cuckoo"]
                for line in by_table.splitlines()
            )
    assert max(map(len, (text + by_table).splitlines())) <= 80
    assert "without the filter" not in text


def test_filters_says_how_many_tables_are_behind(run: Run, tree: Path) -> None:
    with lsm.DB(tree, filter_policy=policies.create("blocked")) as db:
        count = sum(level.tables for level in db.stats().levels)
        assert count == 2
    text = run("filters", tree).stdout
    assert "\n2 tables without the filter that is to be there: see lsm refilter\n" in text
    with lsm.DB(tree) as db:
        db.compact_range(force=True)
        db.put(b"key:000000", b"newest")
        db.flush()
    with lsm.DB(tree, filter_policy=policies.create("cuckoo")) as db:
        db.refilter(levels=[level.level for level in db.stats().levels if level.tables][:1])
    text = run("filters", tree).stdout
    assert "\n1 table without the filter that is to be there: see lsm refilter\n" in text


def test_explain(run: Run, tree: Path) -> None:
    found = run("explain", tree, "key:000007", "other", status=1)
    assert found.stdout.splitlines()[0] == "key:000007: found"
    assert "filter cuckoo says maybe" in found.stdout
    assert "other: not found" in found.stdout
    told = json.loads(run("explain", tree, "key:000007", "--json").stdout)
    assert told[0]["found"]
    assert told[0]["key"] == "key:000007"
    assert told[0]["steps"][-1]["level"] is not None


def test_config(run: Run, tree: Path, tmp_path: Path) -> None:
    assert run("config", tree).stdout == (tree / "lsm-options.toml").read_text()
    defaults = run("config").stdout
    file = tmp_path / "lsm.toml"
    file.write_text(defaults)
    assert engine_options.load(file) == engine_options.Options()
    assert run("config", file).stdout == defaults
    told = json.loads(run("config", tree, "--json").stdout)
    assert told["filters"]["3"]["policy"] == "cuckoo"
    file.write_text('[filters]\nbudget = "10 bits/key"\n')
    told = json.loads(run("config", file, "--json").stdout)
    assert told["filters"]["budget"]["budget"] == "10 bits/key"
    file.write_text('[filters]\npolicy = "cukoo"\n')
    refused = run("config", file, status=2).stderr
    assert "did you mean 'cuckoo'" in refused
    assert refused.count("\n") == 1


def test_policies(run: Run) -> None:
    told = json.loads(run("policies", "--json").stdout)
    assert [each["policy"] for each in told] == list(policies.available())
    text = run("policies").stdout
    for name in policies.available():
        assert any(line.split()[0] == name for line in text.splitlines())


def test_looking_changes_no_byte(run: Run, tree: Path) -> None:
    (tree / "LOCK").unlink()
    before = snapshot(tree)
    for command in ("stats", "filters", "config"):
        run(command, tree)
    run("explain", tree, "key:000007")
    assert snapshot(tree) == before
