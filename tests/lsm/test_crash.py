"""Processes that are killed while they write, and what others find in their directory then."""

from __future__ import annotations

import random
import signal
from collections.abc import Callable, Iterable
from pathlib import Path

import attrs
import pytest

from tests.effort import by_effort
from tests.lsm import kills
from tests.lsm.killed import Killed
from tests.lsm.victim import OPENED, OPERATION, batch, last_key
from tests.lsm.witnesses import Contents, by_a_reader, by_lsm, by_plyvel

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no SIGKILL here")

DIRECTORIES = by_effort(2, 5, 50)
KILLS_PER_DIRECTORY = 6

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


@attrs.define
class Victim:
    """A process that writes into a directory, until it is killed."""

    process: Killed

    @classmethod
    def begin(cls, directory: Path, seed: int, firsts: Iterable[int]) -> Victim:
        """Begin to write, with one thread from each of these numbers on."""
        config = directory.parent / "lsm.toml"
        config.write_text(CONFIG)
        arguments = (str(directory), str(config), str(seed), *map(str, firsts))
        stderr = directory.parent / "stderr"
        return cls(Killed.begin("tests.lsm.victim", *arguments, stderr=stderr))

    def kill_after_lines(self, count: int) -> None:
        """Kill it as soon as it has written so many lines."""
        while len(self.process.lines) < count:
            self.process.must_read()
        assert self.process.kill() == ""

    def kill_after_seconds(self, seconds: float) -> None:
        """Kill it at this moment from when it began to open the database."""
        self.process.must_read()
        self.process.read_for(seconds)
        assert self.process.kill() == ""

    def acknowledged(self, writer: int) -> int | None:
        """The last batch that this writer has acknowledged, or None."""
        for line in reversed(self.process.lines):
            if line not in (OPERATION, OPENED) and int(line.split()[0]) == writer:
                return int(line.split()[1])
        return None


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


def test_whatever_it_did_a_killed_process_loses_nothing(tmp_path: Path, test_seed: int) -> None:
    """``python -m tests.lsm.kills``, which tells its figures, in short."""
    figures = kills.run(by_effort(5, 50, 50), test_seed, tmp_path)
    assert figures.acknowledged.total() > 0
    assert figures.opened["LevelDB"] == figures.opened["lsm"] > 0
    assert f"{figures.kills.total()} {test_seed}" in str(figures)
