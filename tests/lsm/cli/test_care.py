"""compact, refilter, verify, repair, destroy: what they do, say, ask for, and leave alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import lsm
import policies
from lsm.cli import questions
from lsm.cli.program import program
from tests.lsm.cli.conftest import Run, snapshot
from tests.lsm.refilterable import entries, made


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A database with tables on three levels."""
    made(tmp_path / "tree")
    return tmp_path / "tree"


def tables(path: Path) -> list[int]:
    with lsm.DB(path, read_only=True) as db:
        return [level.tables for level in db.stats().levels]


def damage(path: Path) -> Path:
    """Flip a byte in the first data block of a table of the deepest level."""
    with lsm.DB(path, read_only=True) as db:
        number = db.filters()[2].tables[0].file_number
    file = path / f"{number:06}.ldb"
    data = bytearray(file.read_bytes())
    data[20] ^= 0xFF
    file.write_bytes(data)
    return file


def test_compact(run: Run, tree: Path) -> None:
    before = snapshot(tree)
    told = json.loads(run("compact", tree, "--dry-run", "--json").stdout)
    assert told["tables"] == 13
    assert told["table_bytes"] > 0
    assert run("compact", tree, "--dry-run").stdout.startswith("would write ")
    assert snapshot(tree) == before
    told = json.loads(run("compact", tree, "--json").stdout)
    assert sum(level["tables_before"] for level in told["levels"]) == 13
    assert sum(tables(tree)) < 13
    assert tables(tree)[0] == 0
    shown = run("compact", tree, "--force").stdout
    assert shown.splitlines()[0].split()[:2] == ["level", "tables"]


def test_compact_of_a_range_leaves_others(run: Run, tree: Path) -> None:
    run("compact", tree, "--prefix", "000")
    assert sum(tables(tree)) > 4


def test_refilter(run: Run, tree: Path, tmp_path: Path) -> None:
    file = tmp_path / "lsm.toml"
    file.write_text('[filters]\npolicy = "cuckoo"\n[engine]\nlevel0_compact_files = 100\n'
                    "level0_slow_files = 100\nlevel0_stop_files = 100\n")  # fmt: skip
    before = snapshot(tree)
    told = json.loads(
        run("refilter", tree, "--config", file, "--level", 2, "--dry-run", "--json").stdout
    )
    assert told["dry_run"]
    assert {table["level"] for table in told["tables"]} == {2}
    assert snapshot(tree) == before
    shown = run("refilter", tree, "--config", file, "--level", 2).stdout
    assert "4 tables of" in shown
    with lsm.DB(tree, read_only=True) as db:
        assert {table.policy for table in db.filters()[2].tables} == {"cuckoo"}
        assert {table.policy for table in db.filters()[1].tables} == {"blocked"}


def test_verify(run: Run, tree: Path) -> None:
    before = snapshot(tree)
    sound = run("verify", tree)
    assert sound.stdout.splitlines()[-1] == "nothing is wrong"
    assert snapshot(tree) == before
    file = damage(tree)
    told = run("verify", tree, status=1)
    assert told.stdout.splitlines()[0].startswith(f"{file}: byte 0: ")
    assert told.stdout.splitlines()[-1] == "1 problem found"
    report = json.loads(run("verify", tree, "--json", status=1).stdout)
    assert report["is_sound"] is False
    assert report["problems"][0]["path"] == str(file)
    assert report["problems"][0]["offset"] == 0


def test_repair_says_what_it_would_do_and_does_it(run: Run, tree: Path) -> None:
    file = damage(tree)
    before = snapshot(tree)
    told = json.loads(run("repair", tree, "--dry-run", "--json", status=1).stdout)
    assert told["losses"]
    shown = run("repair", tree, "--dry-run", status=1).stdout
    assert shown.startswith("what would be done:\n")
    assert "lost: " in shown
    refused = run("repair", tree, status=2)
    assert refused.stdout == ""
    assert refused.stderr.startswith("lsm: there is no terminal to ask on")
    assert snapshot(tree) == before
    done = json.loads(run("repair", tree, "--yes", "--json", status=1).stdout)
    assert done["dry_run"] is False
    assert done["losses"] == told["losses"]
    assert not file.exists()
    assert run("verify", tree).exit_code == 0
    with lsm.DB(tree, read_only=True) as db:
        assert db.get(b"0100") == entries(2)[b"0100"]


def test_repair_of_what_is_not_there_creates_nothing(run: Run, tmp_path: Path) -> None:
    refused = run("repair", tmp_path / "none", "--yes", status=2)
    assert "there is no such directory" in refused.stderr
    assert not (tmp_path / "none").exists()


def test_destroy(run: Run, tree: Path) -> None:
    (tree / "notes.txt").write_text("mine")
    before = snapshot(tree)
    listed = run("destroy", tree, "--dry-run").stdout.splitlines()
    told = json.loads(run("destroy", tree, "--dry-run", "--json").stdout)
    assert set(told["files"]) == set(before) - {"notes.txt", "LOCK"}
    assert listed[:-1] == [str(tree / name) for name in told["files"]]
    assert "there is no terminal to ask on" in run("destroy", tree, status=2).stderr
    assert snapshot(tree) == before
    run("destroy", tree, "--yes")
    assert snapshot(tree) == {"notes.txt": b"mine"}
    assert "there is no database" in run("destroy", tree, "--yes", status=2).stderr


def test_an_open_database_is_not_destroyed(run: Run, tree: Path) -> None:
    with lsm.DB(tree):
        for words in (("destroy", tree, "--yes"), ("destroy", tree, "--dry-run"), ("verify", tree)):
            assert "this process has the database open" in run(*words, status=2).stderr


@pytest.mark.parametrize(("answer", "status"), [("y\n", 0), ("n\n", 130)])
def test_a_terminal_is_asked(
    tree: Path, monkeypatch: pytest.MonkeyPatch, answer: str, status: int
) -> None:
    monkeypatch.setattr(questions, "has_terminal", lambda: True)
    asked = CliRunner().invoke(program, ["destroy", str(tree)], input=answer)
    assert "Remove " in asked.stderr
    assert asked.exit_code == status
    assert (tree / "CURRENT").exists() == (status != 0)


def test_foreign_directories_are_left_alone(run: Run, tmp_path: Path) -> None:
    (tmp_path / "OPTIONS-000007").write_text("[Version]\n")
    (tmp_path / "000009.ldb").write_bytes(b"whatever")
    before = snapshot(tmp_path)
    for words in (
        ("verify",),
        ("repair", "--yes"),
        ("repair", "--dry-run"),
        ("destroy", "--yes"),
        ("compact",),
        ("refilter",),
    ):
        command, *rest = words
        assert "this directory is RocksDB's" in run(command, tmp_path, *rest, status=2).stderr
    assert snapshot(tmp_path) == before


def test_a_configuration_for_care_is_kept(run: Run, tree: Path, tmp_path: Path) -> None:
    file = tmp_path / "lsm.toml"
    file.write_text('[filters]\npolicy = "xor"\n')
    run("compact", tree, "--config", file)
    with lsm.DB(tree, read_only=True) as db:
        carried = {table.policy for level in db.filters() for table in level.tables}
        assert db.filters()[3].configured == policies.create("xor").name
    assert carried == {"xor"}


def test_a_checkpoint_is_the_database(run: Run, tree: Path, tmp_path: Path) -> None:
    (tree / "LOCK").unlink()
    before = snapshot(tree)
    told = json.loads(run("checkpoint", tree, tmp_path / "copy", "--json").stdout)
    assert told["tables_linked"] + told["tables_copied"] == 13
    assert snapshot(tree) == before
    assert run("scan", tmp_path / "copy").stdout == run("scan", tree).stdout
    assert run("verify", tmp_path / "copy").exit_code == 0
    refused = run("checkpoint", tree, tmp_path / "copy", status=2).stderr
    assert refused.count("\n") == 1
    run("put", tree, "newest", "in the log")
    assert "linked" in run("checkpoint", tree, tmp_path / "flushed", "--flush").stdout
    assert run("get", tmp_path / "flushed", "newest").stdout == "in the log\n"
