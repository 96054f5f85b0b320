"""Commits that nobody is in the way of: the bytes and answers of those that take steps."""

from __future__ import annotations

import errno
import itertools
import random
from pathlib import Path
from typing import Any

import pytest

import lsm
from lsm.disk.fragments import BLOCK_BYTES
from lsm.storage import FileSystem
from tests.effort import by_effort
from tests.lsm.interrupting import Stepwise

needs_native = pytest.mark.skipif(lsm.KERNEL == "python", reason="there every commit takes steps")
LIMIT = 100_000


def logs(path: Path) -> dict[str, bytes]:
    return {each.name: each.read_bytes() for each in path.glob("*.log")}


def pair(tmp_path: Path, **options: Any) -> tuple[lsm.DB, lsm.DB]:
    storages = {"alone": FileSystem(), "stepwise": Stepwise()}
    one, other = (
        lsm.DB(tmp_path / name, create_if_missing=True, storage=storage, **options)
        for name, storage in storages.items()
    )
    return one, other


def write(db: lsm.DB, rng: random.Random) -> None:
    """Singles, deletions, batches, parts, empty ones, and records around the ends of blocks."""
    left = BLOCK_BYTES - sum(map(len, logs(Path(str(db.name))).values())) % BLOCK_BYTES
    key = b"%03d" % rng.randrange(200)
    what = rng.randrange(6)
    if what == 0:
        db.put(key, rng.randbytes(rng.randrange(100)))
    elif what == 1:
        db.delete(key)
    elif what == 2:  # such that the record ends about where the block does
        db.put(key, bytes(max(0, left - 30 + rng.randrange(20))))
    elif what == 3:
        db.prefixed_db(b"p").put(key, rng.randbytes(rng.choice((3, 3000, 70_000))))
    else:
        with db.write_batch(transaction=rng.random() < 0.5) as batch:
            for _ in range(rng.choice((0, 1, 5, 300))):
                batch.put(b"%03d" % rng.randrange(200), bytes(rng.randrange(200)))
                batch.delete(b"%03d" % rng.randrange(200))


def test_logs_counters_and_answers_are_those_of_commits_in_steps(
    tmp_path: Path, test_seed: int
) -> None:
    one, other = pair(tmp_path, write_buffer_size=16 << 20)
    for db in (one, other):
        rng = random.Random(test_seed)
        for _ in range(by_effort(300, 1000, 10_000)):
            write(db, rng)
    assert logs(tmp_path / "alone") == logs(tmp_path / "stepwise")
    assert list(one) == list(other)
    mine, theirs = one.stats(), other.stats()
    for name in ("user_bytes_written", "log_bytes_written", "memtable_bytes"):
        assert getattr(mine, name) == getattr(theirs, name) > 0
    found = dict(one)
    for db in (one, other):
        db.close()
    with lsm.DB(tmp_path / "alone", paranoid_checks=True) as again:
        assert dict(again) == found


@needs_native
def test_a_commit_alone_takes_no_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with lsm.DB(tmp_path / "db", create_if_missing=True) as db:
        db.put(b"first", b"1")  # which gets the log ready
        monkeypatch.setattr(db._store, "write", None)
        monkeypatch.setattr(db._store.writer, "_write_group", None)
        db.put(b"key", b"value")
        db.delete(b"first")
        monkeypatch.undo()
        with pytest.raises(TypeError):
            db.put(b"key", b"value", sync="yes")  # type: ignore[arg-type]
        assert dict(db) == {b"key": b"value"}
    with lsm.DB(tmp_path / "db") as db:
        assert dict(db) == {b"key": b"value"}


def put_without_end(db: lsm.DB, written: dict[bytes, bytes]) -> None:
    for number in itertools.count():
        db.put(b"%d" % number, b"v" * 100)
        written[b"%d" % number] = b"v" * 100


def test_a_file_that_may_not_grow_is_told_and_nothing_is_lost(tmp_path: Path) -> None:
    """The system refuses what a commit alone would write; the one in steps tells, and mends."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    written: dict[bytes, bytes] = {}
    with lsm.DB(tmp_path / "db", create_if_missing=True) as db:
        resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT, before[1]))
        try:
            with pytest.raises(lsm.IOError) as caught:
                put_without_end(db, written)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert caught.value.errno == errno.EFBIG
        assert dict(db) == written
        db.put(b"later", b"1")
        written[b"later"] = b"1"
        assert dict(db) == written
    with lsm.DB(tmp_path / "db", paranoid_checks=True) as db:
        assert dict(db) == written


def test_nobody_writes_who_may_not(tmp_path: Path) -> None:
    db = lsm.DB(tmp_path / "db", create_if_missing=True)
    batch = db.write_batch()
    for _ in range(3):
        db.put(b"key", b"value")
    batch.put(b"too late", b"")
    db.close()
    calls: list[Any] = [lambda: db.put(b"a", b""), lambda: db.delete(b"a"), batch.write]
    for call in calls:
        with pytest.raises(RuntimeError, match="closed"):
            call()
    with lsm.DB(tmp_path / "db", read_only=True) as again:
        for call in (lambda: again.put(b"a", b""), lambda: again.delete(b"a")):
            with pytest.raises(lsm.ReadOnlyError):
                call()
        assert dict(again) == {b"key": b"value"}
