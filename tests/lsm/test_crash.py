"""Processes that are killed while they write, and what others find in their directory then."""

from __future__ import annotations

import os
import random
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import attrs
import pytest

import lsm
from tests.effort import by_effort
from tests.lsm.victim import OPENED, OPERATION, batch, last_key

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no SIGKILL here")

DIRECTORIES = by_effort(2, 5, 50)
KILLS_PER_DIRECTORY = 6
PATIENCE = 60.0
ROOT = Path(__file__).parents[2]

# Flushes and compactions all the time, down to the third level.
CONFIG = """
[engine]
write_buffer_size = 1000
max_file_size = 2000
block_size = 100
level_size_base = 4000
level_size_ratio = 2
level0_compact_files = 2
"""

Contents = dict[bytes, bytes]


@attrs.define
class Victim:
    """A process that writes into a directory, until it is killed."""

    directory: Path
    process: subprocess.Popen[bytes]
    stderr: Path
    lines: list[bytes] = attrs.field(factory=list)
    _unfinished: bytes = b""

    @classmethod
    def begin(cls, directory: Path, seed: int, firsts: Iterable[int]) -> Victim:
        """Begin to write, with one thread from each of these numbers on."""
        scratch = directory.parent
        config, stderr = scratch / "lsm.toml", scratch / "stderr"
        config.write_text(CONFIG)
        arguments = (str(directory), str(config), str(seed), *map(str, firsts))
        with stderr.open("wb") as file:
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.lsm.victim", *arguments],
                env=os.environ | {"PYTHONPATH": ":".join(filter(None, [str(ROOT), *sys.path]))},
                stdout=subprocess.PIPE,
                stderr=file,
            )
        return cls(directory, process, stderr)

    def kill_after_lines(self, count: int) -> None:
        """Kill it as soon as it has written so many lines."""
        while len(self.lines) < count:
            assert self._read(PATIENCE), f"hangs, or ended by itself:\n{self._last_words()}"
        self._kill()

    def kill_after_seconds(self, seconds: float) -> None:
        """Kill it at this moment from when it began to open the database."""
        assert self._read(PATIENCE), f"hangs, or ended by itself:\n{self._last_words()}"
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self._read(left)
        self._kill()

    def acknowledged(self, writer: int) -> int | None:
        """The last batch that this writer has acknowledged, or None."""
        for line in reversed(self.lines):
            if line not in (OPERATION, OPENED) and int(line.split()[0]) == writer:
                return int(line.split()[1])
        return None

    def _read(self, seconds: float) -> bool:
        """Wait so long for lines; False if none came."""
        assert self.process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            if not selector.select(seconds):
                return False
        data = os.read(self.process.stdout.fileno(), 1 << 16)
        *lines, self._unfinished = (self._unfinished + data).split(b"\n")
        self.lines += lines
        return bool(data)

    def _kill(self) -> None:
        self.process.kill()
        while self._read(PATIENCE):
            pass
        status = self.process.wait(PATIENCE)
        assert self.process.stdout is not None
        self.process.stdout.close()
        assert status == -signal.SIGKILL, f"ended by itself:\n{self.stderr.read_text()}"
        assert self.stderr.read_text() == ""

    def _last_words(self) -> str:
        """The stacks of its threads, if it still has any."""
        self.process.send_signal(signal.SIGABRT)
        self.process.wait(PATIENCE)
        return self.stderr.read_text()


@attrs.define
class Writer:
    """What the batches of one writer have come to."""

    seed: int
    writer: int
    number: int = 0
    contents: Contents = attrs.field(factory=dict)

    def follow(self, found: Contents, acknowledged: int | None) -> None:
        """Go on to what was found: all that was acknowledged, and at most one batch more."""
        least = self.number if acknowledged is None else acknowledged
        number = int(found.get(last_key(self.writer), b"0"))
        assert least <= number <= least + 1
        while self.number < number:
            self.number += 1
            for key, value in batch(self.seed, self.writer, self.number):
                if value is None:
                    self.contents.pop(key, None)
                else:
                    self.contents[key] = value
        assert found == self.contents


def by_lsm(directory: Path) -> Contents:
    with lsm.DB(directory) as db:
        db.wait_until_idle()
        tables = sum(level.tables for level in db.stats().levels)
        assert len(list(directory.glob("*.ldb"))) == tables, "what nobody needs is removed"
        contents = dict(db)
        assert [db.get(key) for key in contents] == list(contents.values())
        assert list(db.iterator(reverse=True)) == list(contents.items())[::-1]
    return contents


def by_a_reader(directory: Path) -> Contents:
    before = {path: path.read_bytes() for path in directory.iterdir()}
    with lsm.DB(directory, read_only=True) as db:
        contents = dict(db)
        assert [db.get(key) for key in contents] == list(contents.values())
    assert before == {path: path.read_bytes() for path in directory.iterdir()}
    return contents


def by_plyvel(directory: Path) -> Contents:
    plyvel = pytest.importorskip("plyvel")
    with plyvel.DB(str(directory), paranoid_checks=True) as db:
        contents = dict(db.iterator(verify_checksums=True))
        assert [db.get(key) for key in contents] == list(contents.values())
    return contents


READERS: list[Callable[[Path], Contents]] = [by_lsm, by_a_reader, by_plyvel]


def kill_sometime(victim: Victim, rng: random.Random) -> None:
    """Kill it while it opens the database, or early or late in what it does then."""
    if rng.random() < 0.3:
        victim.kill_after_seconds(rng.choice((0.01, 0.1, 0.4)) * rng.random())
    else:
        victim.kill_after_lines(rng.randrange(1, rng.choice((50, 500, 3000))))


@pytest.mark.parametrize("number", range(DIRECTORIES))
def test_killed_processes_lose_nothing_they_have_acknowledged(
    number: int, tmp_path: Path, rng: random.Random
) -> None:
    directory = tmp_path / "db"
    seed = rng.getrandbits(32)
    writers = [Writer(seed, writer) for writer in range(3 if number % 3 == 2 else 1)]
    for kill in range(KILLS_PER_DIRECTORY):
        victim = Victim.begin(directory, seed, [writer.number + 1 for writer in writers])
        kill_sometime(victim, rng)
        found: Contents = {}
        if (directory / "CURRENT").exists():
            found = READERS[(number + kill) % len(READERS)](directory)
        for writer in writers:
            mine = b"%d/" % writer.writer
            part = {key: value for key, value in found.items() if key.startswith(mine)}
            writer.follow(part, victim.acknowledged(writer.writer))
        assert len(found) == sum(len(writer.contents) for writer in writers)
