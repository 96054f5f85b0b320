"""A program that writes to a database until it is killed, and says on a pipe how far it came.

``python -m tests.lsm.victim DIRECTORY CONFIG SEED NUMBER...`` has one thread for each NUMBER, which
writes the batches from that number on. Its standard output has a line for each operation on the
directory that begins, one for each time the database is open, and one for each batch that is
written: the last ones acknowledge.
"""

from __future__ import annotations

import faulthandler
import os
import random
import sys
import threading
from collections.abc import Iterator
from typing import Any

import lsm
from lsm.storage import FileSystem

OPERATION, OPENED = b"operation", b"opened"

# How often a batch is synced, and how often the only writer closes and opens the database anew.
_SYNCED = 0.1
_REOPENED = 0.02


def batch(seed: int, writer: int, number: int) -> list[tuple[bytes, bytes | None]]:
    """A batch: puts, overwrites and deletes, each value with the number of its batch."""
    rng = random.Random(f"{seed} {writer} {number}")
    keys = [b"%d/%02d" % (writer, rng.randrange(40)) for _ in range(rng.randrange(1, 8))]
    # Some are longer than a block of the log.
    padding = bytes(rng.choice((0, 20, 300)) if rng.random() < 0.97 else 40_000)
    operations: list[tuple[bytes, bytes | None]] = [
        (key, None if rng.random() < 0.3 else b"%d %s" % (number, padding)) for key in keys
    ]
    return [*operations, (last_key(writer), b"%d" % number)]


def last_key(writer: int) -> bytes:
    """The key that every batch of this writer sets to its number."""
    return b"%d/last" % writer


def tell(line: bytes) -> None:
    """Write a line: in one piece, as all that is this short in a pipe."""
    os.write(1, line + b"\n")


class Telling(FileSystem):
    """The system's own files, and a line for what is about to be done with the directory."""

    def __getattribute__(self, name: str) -> Any:
        if not name.startswith("_"):
            tell(OPERATION)
        return super().__getattribute__(name)


class Victim:
    """The database, which its only writer opens anew from time to time."""

    def __init__(self, directory: str, config: str, seed: int, writers: int):
        self.directory = directory
        self.config = config
        self.seed = seed
        self.alone = writers == 1
        self.db = self.opened()

    def opened(self) -> lsm.DB:
        storage = Telling()
        db = lsm.DB(self.directory, create_if_missing=True, config=self.config, storage=storage)
        tell(OPENED)
        return db

    def write(self, writer: int, first: int) -> None:
        """Write batches until the end."""
        rng = random.Random(f"{self.seed} {writer} {first} what else happens")
        for number in self.numbers(first, rng):
            with self.db.write_batch(sync=rng.random() < _SYNCED) as written:
                for key, value in batch(self.seed, writer, number):
                    if value is None:
                        written.delete(key)
                    else:
                        written.put(key, value)
            tell(b"%d %d" % (writer, number))

    def numbers(self, first: int, rng: random.Random) -> Iterator[int]:
        number = first
        while True:
            yield number
            number += 1
            if self.alone and rng.random() < _REOPENED:
                self.db.close()
                self.db = self.opened()


def main(directory: str, config: str, seed: str, *firsts: str) -> None:
    """Write with one thread each until killed."""
    faulthandler.enable()
    victim = Victim(directory, config, int(seed), len(firsts))
    threads = [
        threading.Thread(target=victim.write, args=(writer, int(first)), daemon=True)
        for writer, first in enumerate(firsts)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()  # only an error ends one
        os._exit(1)


if __name__ == "__main__":
    main(*sys.argv[1:])
