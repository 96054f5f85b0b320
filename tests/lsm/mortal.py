"""A program that does all to a database that changes it, until it is killed, and tells how far.

``python -m tests.lsm.mortal DIRECTORY STORY SEED NUMBER...`` has one thread for each NUMBER, which
does the writes of STORY from that number on; SEED decides about everything else. Its standard
output has a line for whatever begins, and one for each write that is done: these acknowledge. The
database is opened with nothing between it and the system's files.
"""

from __future__ import annotations

import faulthandler
import inspect
import os
import random
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

import attrs

import lsm
import policies
from lsm import bulk
from tests.lsm.refilterable import reconfigure

OPENING, WRITTEN, FLUSHING, MERGING, REFILTERING, CLOSING = (
    b"opening", b"written", b"flushing", b"merging", b"refiltering", b"closing",
)  # fmt: skip
PHASES = (OPENING, WRITTEN, FLUSHING, MERGING, REFILTERING, CLOSING)
KEYS = 300

Put = tuple[bytes, bytes | None]


@attrs.frozen
class Write:
    """A write: how it is done, and what it puts and deletes, in order; all of that or nothing."""

    how: str
    puts: Sequence[Put]


HOW = ("put", "delete", "batch", "transaction", "abandoned", "bulk")


def write_of(story: int, writer: int, number: int) -> Write:
    """What a writer writes at this place of its story."""
    rng = random.Random(f"{story} {writer} {number}")
    how = rng.choices(HOW, (12, 4, 10, 4, 2, 1))[0]
    if how == "bulk":
        numbers = sorted(rng.sample(range(KEYS), rng.randrange(1, KEYS // 2)))
        return Write(how, [(b"%d/%03d" % (writer, key), b"%d" % number) for key in numbers])
    count = 1 if how in ("put", "delete") else rng.randrange(1, 12)
    # Some are longer than a block of the log.
    padding = bytes(rng.choice((0, 20, 300)) if rng.random() < 0.99 else 40_000)
    puts: list[Put] = []
    for at in range(count):
        key = b"%d/%03d" % (writer, rng.randrange(KEYS))
        deleted = how == "delete" or (how != "put" and rng.random() < 0.3)
        puts.append((key, None if deleted else b"%d %d %s" % (number, at, padding)))
    return Write(how, puts)


def options(rng: random.Random) -> dict[str, Any]:
    """Options with which there is always something to flush and to compact."""
    found = {
        "write_buffer_size": rng.choice((1000, 5000, 30_000)),
        "max_file_size": rng.choice((1024, 4096, 20_000)),
        "block_size": rng.choice((100, 1000)),
        "level_size_base": rng.choice((2048, 10_000)),
        "level_size_ratio": rng.choice((2, 4)),
        "level0_compact_files": rng.choice((1, 2, 4)),
        "compression": rng.choice((None, "snappy")),
        "bloom_filter_bits": rng.choice((0, 10)),
        "refilter_bytes_per_second": rng.choice((0, 1 << 20, 1 << 30)),
    }
    if "max_background_jobs" in inspect.signature(lsm.DB).parameters:
        found["max_background_jobs"] = rng.choice((1, 2, 4))
    return found


def tell(line: bytes) -> None:
    """Write a line: in one piece, as all that is this short in a pipe."""
    os.write(1, line + b"\n")


class AbandonedError(Exception):
    """What leaves a transaction in its middle."""


class Mortal:
    """The database, its writers, and who disturbs them."""

    def __init__(self, directory: str, story: int, seed: int, writers: int):
        self.directory = directory
        self.story = story
        self.rng = random.Random(seed)
        self.alone = writers == 1
        sys.setswitchinterval(self.rng.choice((1e-5, 5e-3)))
        self.db = self.opened()

    def opened(self) -> lsm.DB:
        tell(OPENING)
        return lsm.DB(self.directory, create_if_missing=True, **options(self.rng))

    def write(self, writer: int, number: int) -> None:
        """Do what comes next in the story, over and over."""
        rng = random.Random(f"{writer} {number} what else happens")
        while True:
            self.do(write_of(self.story, writer, number), sync=rng.random() < 0.05)
            tell(b"%s %d %d" % (WRITTEN, writer, number))
            number += 1
            if self.alone and rng.random() < 0.03:
                rng.choice((self.flush, self.compact, self.refilter, self.reopen))(rng)

    def do(self, write: Write, *, sync: bool) -> None:
        """One write, in the way that it says."""
        if write.how in ("put", "delete"):
            [(key, value)] = write.puts
            if value is None:
                self.db.delete(key, sync=sync)
            else:
                self.db.put(key, value, sync=sync)
            return
        if write.how == "bulk":
            bulk.load(self.db, write.puts)
            return
        try:
            with self.db.write_batch(transaction=write.how != "batch", sync=sync) as batch:
                for key, value in write.puts:
                    if value is None:
                        batch.delete(key)
                    else:
                        batch.put(key, value)
                if write.how == "abandoned":
                    raise AbandonedError
        except AbandonedError:
            pass

    def disturb(self, seed: int) -> None:
        """Flush, merge ranges that overlap those of others, and hold on to snapshots meanwhile."""
        rng = random.Random(seed)
        while True:
            with self.db.snapshot() as snapshot:
                before = list(snapshot)
                rng.choice((self.flush, self.compact, self.refilter))(rng)
                assert list(snapshot) == before, "a snapshot has changed"

    def flush(self, rng: random.Random) -> None:
        """Have what is in memory written to a table."""
        tell(FLUSHING)
        self.db.flush()

    def compact(self, rng: random.Random) -> None:
        """A range that begins in one writer's keys and may end in another's; or everything."""
        start, stop = sorted(b"%d/%03d" % (rng.randrange(3), rng.randrange(KEYS)) for _ in "12")
        tell(MERGING)
        if rng.random() < 0.2:
            self.db.compact_range(force=rng.random() < 0.5)
        else:
            self.db.compact_range(start=start, stop=stop)

    def refilter(self, rng: random.Random) -> None:
        """Give tables filters that they lack, after some that were not lacking yet."""
        reconfigure(self.db, policies.create(rng.choice(policies.available())))
        tell(REFILTERING)
        self.db.refilter(max_bytes=rng.choice((None, 20_000)))

    def reopen(self, rng: random.Random) -> None:
        """Close it, and open it with other options."""
        tell(CLOSING)
        self.db.close()
        self.db = self.opened()


def main(directory: str, story: str, seed: str, *numbers: str) -> None:
    """Write with one thread each until killed, beside two that disturb if there are several."""
    faulthandler.enable()
    mortal = Mortal(directory, int(story), int(seed), len(numbers))
    work: list[tuple[Callable[..., None], tuple[int, ...]]] = [
        (mortal.write, (writer, int(number))) for writer, number in enumerate(numbers)
    ]
    if not mortal.alone:
        work += [(mortal.disturb, (mortal.rng.getrandbits(32),)) for _ in range(2)]
    ended = threading.Event()

    def until_it_ends(target: Callable[..., None], arguments: tuple[int, ...]) -> None:
        try:
            target(*arguments)
        finally:
            ended.set()

    for each in work:
        threading.Thread(target=until_it_ends, args=each, daemon=True).start()
    ended.wait()  # only an error ends one, which its thread reports first
    for thread in threading.enumerate():
        if thread is not threading.current_thread():
            thread.join(0.1)
    os._exit(1)


if __name__ == "__main__":
    main(*sys.argv[1:])
