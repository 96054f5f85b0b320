"""SIGKILL again and again, life after life in one directory, with LevelDB as the witness.

``python -m tests.lsm.kills [KILLS] [SEED]`` kills as often as the effort says, 500 times in a soak,
or so often. Each life does to the database all that changes it; it ends while it opens, writes,
flushes, merges, refilters or closes. After each, LevelDB and ours open copies of the directory, in
which all must be that was acknowledged, and what was under way when it came, whole or not at all.
The directory itself goes on to the next life as it was left, or behind one of them. What was found
is told at the end.
"""

from __future__ import annotations

import logging
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import attrs

import lsm
from tests.effort import by_effort
from tests.lsm.killed import Killed
from tests.lsm.mortal import FLUSHING, MERGING, PHASES, REFILTERING, WRITTEN, write_of
from tests.lsm.witnesses import Contents, by_a_reader, by_lsm, by_plyvel, by_repair

KILLS = by_effort(20, 100, 500)
LIVES = 10  # in one directory

# A table that two threads remove: whoever comes second finds it gone.
HARMLESS = "an obsolete file stays: [Errno 2]"

Reader = Callable[[Path], Contents]

# Beside the two that are asked each time, by how likely it is that they are.
SOMETIMES: dict[str, tuple[Reader, float]] = {
    "repair_db": (by_repair, 0.25), "lsm, read-only": (by_a_reader, 0.25),
}  # fmt: skip
# Who has the directory itself between two lives.
HEIRS: dict[str, Callable[[Path], Contents | None]] = {
    "by nobody": lambda directory: None, "by lsm": by_lsm, "by LevelDB": by_plyvel,
}  # fmt: skip


@attrs.define
class Figures:
    """What a run has come to, as it is told at its end."""

    seed: int
    directories: int = 0
    kills: Counter[str] = attrs.field(factory=Counter)
    """By what the process had said last."""
    acknowledged: Counter[str] = attrs.field(factory=Counter)
    unacknowledged: int = 0
    nothing_yet: int = 0
    unfinished: int = 0
    complaints: int = 0
    opened: Counter[str] = attrs.field(factory=Counter)
    inherited: Counter[str] = attrs.field(factory=Counter)
    seconds: float = 0.0

    def __str__(self) -> str:
        lines = (
            f"{self.kills.total()} kills in {self.directories} directories, {self.seconds:.0f} s, "
            f"{lsm.KERNEL} kernel; last said: {_told(self.kills)}",
            f"{self.acknowledged.total():,} writes acknowledged, none lost: "
            f"{_told(self.acknowledged)}",
            f"{self.unacknowledged} writes there, and whole, before they were acknowledged",
            f"{self.unfinished} times there were tables that were not live yet, or no longer, "
            f"{self.nothing_yet} times there was no database yet, {self.complaints} times a file "
            "was gone that was to be removed",
            f"copies opened: {_told(self.opened)}",
            f"opened between two lives: {_told(self.inherited)}",
            f"again: python -m tests.lsm.kills {self.kills.total()} {self.seed}",
        )
        return "\n".join(lines)


def _told(counted: Counter[str]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in sorted(counted.items()))


def _difference(found: Contents, expected: Contents) -> str:
    keys = sorted(key for key in found | expected if found.get(key) != expected.get(key))
    some = (f"{key!r} is {found.get(key)!r:.30}, not {expected.get(key)!r:.30}" for key in keys[:3])
    return f"{len(keys)} keys: {'; '.join(some)}"


@attrs.define
class Writer:
    """How far one writer's story is known to have come, and what it has led to."""

    story: int
    writer: int
    number: int = 0
    contents: Contents = attrs.field(factory=dict)

    def goes_on(self) -> str:
        """Take the next write; how it is done."""
        self.number += 1
        write = write_of(self.story, self.writer, self.number)
        if write.how != "abandoned":
            for key, value in write.puts:
                if value is None:
                    self.contents.pop(key, None)
                else:
                    self.contents[key] = value
        return write.how

    def follow(self, found: Contents) -> int:
        """Take what was found: nothing more than was acknowledged, or one write; how many."""
        mine = b"%d/" % self.writer
        part = {key: value for key, value in found.items() if key.startswith(mine)}
        if part == self.contents:
            return 0
        before = dict(self.contents)
        self.goes_on()
        assert part == self.contents, (
            f"writer {self.writer} has acknowledged {self.number - 1} writes, and of these or one "
            f"more is wrong: {_difference(part, before)}; with one more: "
            f"{_difference(part, self.contents)}"
        )
        return 1


class Directory:
    """A directory, life after life."""

    def __init__(self, scratch: Path, rng: random.Random, figures: Figures):
        self._scratch = scratch
        self._path = scratch / "db"
        self._rng = rng
        self._figures = figures
        self._story = rng.getrandbits(32)
        self._writers = [Writer(self._story, at) for at in range(rng.choice((1, 1, 3)))]
        figures.directories += 1

    def live_and_die(self) -> None:
        """One life, and what is found after it."""
        process = self._life()
        self._acknowledge(process.lines)
        if not (self._path / "CURRENT").exists():
            assert not any(writer.number for writer in self._writers), "the database is gone"
            self._figures.nothing_yet += 1
            return
        self._examine()

    def _life(self) -> Killed:
        """A process that was killed in the phase whose turn it is, at a moment of its own."""
        rng = self._rng
        numbers = [str(writer.number + 1) for writer in self._writers]
        process = Killed.begin(
            "tests.lsm.mortal", str(self._path), str(self._story), str(rng.getrandbits(32)),
            *numbers, stderr=self._scratch / "stderr",
        )  # fmt: skip
        # Several writers open it once, and do not close it.
        alone = len(self._writers) == 1
        phase = rng.choice(PHASES if alone else (WRITTEN, FLUSHING, MERGING, REFILTERING))
        often = rng.randrange(1, rng.choice((10, 300, 2000)) if phase == WRITTEN else 5)
        while sum(line.startswith(phase) for line in process.lines) < often:
            process.must_read()
        process.read_for(rng.choice((0, 0.0003, 0.003, 0.02)) * rng.random())
        complaints = process.kill().splitlines()
        assert all(line.startswith(HARMLESS) for line in complaints), "\n".join(complaints)
        self._figures.complaints += len(complaints)
        self._figures.kills[process.lines[-1].split()[0].decode()] += 1
        return process

    def _acknowledge(self, lines: Sequence[bytes]) -> None:
        for line in lines:
            word, *numbers = line.split()
            if word == WRITTEN:
                writer = self._writers[int(numbers[0])]
                self._figures.acknowledged[writer.goes_on()] += 1
                assert writer.number == int(numbers[1])

    def _examine(self) -> None:
        """Have witnesses open copies, and perhaps one of them what the next life begins with."""
        figures = self._figures
        found = self._witnessed("lsm", by_lsm)
        figures.unacknowledged += sum(writer.follow(found) for writer in self._writers)
        assert len(found) == sum(len(writer.contents) for writer in self._writers)
        assert self._witnessed("LevelDB", by_plyvel) == found, "LevelDB finds something else"
        for name, (reader, likely) in SOMETIMES.items():
            if self._rng.random() < likely:
                assert self._witnessed(name, reader) == found, f"{name}: finds something else"
        figures.unfinished += self._has_tables_that_are_not_live()
        heir = self._rng.choice(list(HEIRS))
        figures.inherited[heir] += 1
        assert HEIRS[heir](self._path) in (None, found), f"{heir} finds something else in place"

    def _witnessed(self, name: str, reader: Reader) -> Contents:
        copy = self._scratch / "copy"
        shutil.copytree(self._path, copy)
        found = reader(copy)
        self._figures.opened[name] += 1
        shutil.rmtree(copy)
        return found

    def _has_tables_that_are_not_live(self) -> bool:
        """As after a kill in the middle of a flush or a compaction."""
        with lsm.DB(self._path, read_only=True) as db:
            live = sum(level.tables for level in db.stats().levels)
        return live < len(list(self._path.glob("*.ldb")))


def run(kills: int, seed: int, scratch: Path) -> Figures:
    """Kill so often; an error says what is wrong, and leaves the directory as it was found."""
    rng, figures, start = random.Random(seed), Figures(seed), time.monotonic()
    for first in range(0, kills, LIVES):
        place = scratch / f"{first}"
        place.mkdir()
        directory = Directory(place, rng, figures)
        for kill in range(first, min(first + LIVES, kills)):
            directory.live_and_die()
            if sys.stderr.isatty():
                print(f"\r{kill + 1} of {kills} kills", end="", file=sys.stderr, flush=True)
        shutil.rmtree(place)
    figures.seconds = time.monotonic() - start
    return figures


def main(kills: str = f"{KILLS}", seed: str = "") -> None:
    """Run, and tell the figures; where something is wrong, the directory is kept and told."""
    chosen = int(seed) if seed else random.SystemRandom().getrandbits(32)
    logging.disable(logging.WARNING)  # what repairs say of tables that were not finished
    print(f"python -m tests.lsm.kills {kills} {chosen}", flush=True)
    scratch = Path(tempfile.mkdtemp(prefix="lsm-kills-"))
    try:
        figures = run(int(kills), chosen, scratch)
    except BaseException:
        print(f"\nwhat was found is in {scratch}", file=sys.stderr)
        raise
    scratch.rmdir()
    print(f"\n{figures}" if sys.stderr.isatty() else figures)


if __name__ == "__main__":
    main(*sys.argv[1:])
