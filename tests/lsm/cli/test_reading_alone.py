"""What only reads changes no byte, of databases of LevelDB's as of our own, and creates no file."""

from __future__ import annotations

from pathlib import Path

import plyvel
import pytest

from tests.lsm.cli.conftest import Run, snapshot
from tests.lsm.refilterable import made

COMMANDS = [
    ("get", "{}", "0100"),
    ("scan", "{}", "--limit", "3"),
    ("count", "{}"),
    ("dump", "{}"),
    ("stats", "{}"),
    ("filters", "{}", "--tables"),
    ("explain", "{}", "0100"),
    ("config", "{}"),
    ("advise", "{}"),
    ("what-if", "{}", "--policy", "cuckoo"),
    ("verify", "{}"),
    ("bench", "{}", "--count", "10"),
    ("compact", "{}", "--dry-run"),
    ("refilter", "{}", "--dry-run"),
    ("repair", "{}", "--dry-run"),
    ("destroy", "{}", "--dry-run"),
]


def leveldbs(path: Path) -> None:
    """A database of LevelDB's, with tables, a log, and its lock taken away as on a copied one."""
    db = plyvel.DB(str(path), create_if_missing=True, bloom_filter_bits=10)
    for number in range(300):
        db.put(b"%04d" % number, b"value" * 10)
    db.compact_range()
    db.put(b"0100", b"newest")
    db.close()


@pytest.mark.parametrize("command", COMMANDS, ids=lambda words: words[0])
@pytest.mark.parametrize("whose", ["leveldb", "lsm"])
def test_no_byte_changes(run: Run, tmp_path: Path, whose: str, command: tuple[str, ...]) -> None:
    path = tmp_path / "db"
    leveldbs(path) if whose == "leveldb" else made(path)
    (path / "LOCK").unlink()
    before = snapshot(path)
    printed = run(*(word.format(path) for word in command)).stdout
    assert printed
    assert snapshot(path) == before
    assert [each.name for each in tmp_path.iterdir()] == ["db"]
