"""What a program can do with a database whose files were forged, done in every way.

``python -m tests.lsm.forged_life SEED FIRST COUNT`` lives so many lives, each of its own number, in
bounded memory, and prints what may not happen: anything raised but the engine's own errors, damage
that names no file, more than some seconds for one life.
"""

from __future__ import annotations

import faulthandler
import logging
import random
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import lsm
import policies
from lsm.errors import CorruptionError, Error
from policies.errors import PolicyConfigError
from tests.lsm.forging import DIRECTORY, Files, files_of, forged, small_options, storage_of
from tests.lsm.refilterable import reconfigure
from tests.lsm.simulated import SimulatedStorage

KEYS = 150
MEMORY = 1 << 30
"""How much may be mapped beyond what a process without a database has."""
SECONDS = 60
"""How long one life may take on the slowest machine; it takes a tenth of a second."""


def sound(seed: int) -> Files:
    """A small database with tables on several levels, deletions, and something in its log."""
    rng, storage = random.Random(seed), SimulatedStorage()
    options = small_options(rng)
    with lsm.DB(DIRECTORY, create_if_missing=True, storage=storage, **options) as db:
        for number in range(300):
            with db.write_batch() as batch:
                batch.put(key(number * 7 % KEYS), b"v" * (number % 40))
                if number % 5 == 0:
                    batch.delete(key(number % KEYS))
        db.wait_until_idle()
    return files_of(storage)


def key(number: int) -> bytes:
    return b"k%03d" % number


class Life:
    """One database from opening to repair; ``findings`` says what may not have happened."""

    def __init__(self, files: Files, rng: random.Random):
        self.storage = storage_of(files)
        self.findings: list[str] = []
        self._rng = rng
        self._refused: Error | None = None

    def live(self) -> list[str]:
        """Read, write, repair and read again, as chance has it."""
        rng = self._rng
        if rng.random() < 0.75:
            self._use(paranoid_checks=rng.random() < 0.3, read_only=rng.random() < 0.3)
        if rng.random() < 0.4:
            self._try("repair", lambda: lsm.repair_db(DIRECTORY, storage=self.storage))
            self._use()
        return self.findings

    def _use(self, **options: Any) -> None:
        db = self._try("open", lambda: lsm.DB(DIRECTORY, storage=self.storage, **options))
        if db is None:
            return
        for name, read in _reads(db):
            self._try(name, read)
        if not options.get("read_only"):
            for name, write in _writes(db):
                self._try(name, write)
            self._try("list again", lambda: list(db))
        self._try("close", db.close)
        if not options.get("read_only"):
            self._reopen(**options)

    def _reopen(self, **options: Any) -> None:
        """What could be opened can be opened again: its manifest is one of ours by now."""
        again = self._try("open again", lambda: lsm.DB(DIRECTORY, storage=self.storage, **options))
        if again is not None:
            self._try("list after opening again", lambda: list(again))
            self._try("close again", again.close)
        elif isinstance(self._refused, CorruptionError):
            self._find("open again", self._refused)

    def _try(self, what: str, do: Callable[[], Any]) -> Any:
        self._refused = None
        try:
            return do()
        except PolicyConfigError:
            pass
        except Error as error:
            self._refused = error
            reason = error.__cause__ if isinstance(error.__cause__, BaseException) else error
            if isinstance(error, lsm.ReadOnlyError) and not isinstance(reason, Error):
                self._find(f"{what}: background", reason)
            elif isinstance(error, CorruptionError) and f"{DIRECTORY}/" not in str(error):
                self._find(f"{what}: no file is named", error)
        except BaseException as error:
            self._find(what, error)
        return None

    def _find(self, what: str, error: BaseException) -> None:
        frames = traceback.extract_tb(error.__traceback__)[-3:]
        where = " < ".join(
            f"{frame.filename.rpartition('/')[2]}:{frame.lineno}" for frame in frames[::-1]
        )
        self.findings.append(f"{what}: {type(error).__name__}: {str(error)[:150]} ({where})")


def _reads(db: lsm.DB) -> Iterator[tuple[str, Callable[[], Any]]]:
    yield "get", lambda: [db.get(key(number)) for number in range(0, KEYS, 7)]
    yield "get absent", lambda: (db.get(b""), db.get(b"k0005"), db.get(b"\xff" * 9))
    yield "list", lambda: list(db)
    yield "list backwards", lambda: list(db.iterator(reverse=True))
    yield "seek", lambda: _seek(db)
    yield "get_many", lambda: db.get_many([key(1), b"k100", b"none"])
    yield "might_contain", lambda: db.might_contain(key(3))
    yield "explain", lambda: str(db.explain(key(3)))
    yield "stats", lambda: (str(db.stats()), repr(db.stats()))
    yield "filters", lambda: str(db.filters())
    yield "drifted", lambda: [level.drifted for level in db.filters()]
    yield "advise", lambda: str(db.advise())
    yield "what refiltering would do", lambda: str(db.refilter(dry_run=True))
    yield "sizes", lambda: db.approximate_sizes((b"a", b"z"), (b"k05", b"k07"))
    yield "sstables", lambda: db.get_property(b"leveldb.sstables")
    yield "property", lambda: db.get_property(b"leveldb.stats")


def _seek(db: lsm.DB) -> None:
    for number in range(0, KEYS, 30):
        with db.iterator(start=key(number), stop=key(number + 9)) as iterator:
            iterator.seek(key(number + 3))
            for step in (iterator.prev, iterator.__next__, iterator.__next__):
                with suppress(StopIteration):
                    step()


def _writes(db: lsm.DB) -> Iterator[tuple[str, Callable[[], Any]]]:
    yield "put", lambda: db.put(key(10), b"new")
    yield "delete", lambda: db.delete(key(11))
    yield "flush", db.flush
    yield "wait_until_idle", db.wait_until_idle
    yield "compact_range", db.compact_range
    yield "refilter", lambda: (reconfigure(db, policies.create("cuckoo")), str(db.refilter()))
    yield "compact_range by force", lambda: db.compact_range(force=True)
    yield "put again", lambda: db.put(key(12), b"new")


def lives(seed: int, first: int, count: int) -> Iterator[str]:
    """What may not happen, in so many lives from a number on."""
    files = [sound(seed + number) for number in range(6)]
    for number in range(first, first + count):
        faulthandler.dump_traceback_later(SECONDS, exit=True)
        rng = random.Random(f"{seed} {number}")
        what, changed = forged(rng, rng.choice(files))
        for finding in Life(changed, rng).live():
            yield f"life {number}: {what}: {finding}"
    faulthandler.cancel_dump_traceback_later()


def bound_memory() -> None:
    """Have this process take no more than MEMORY beyond what it has."""
    try:
        import resource
    except ImportError:  # pragma: no cover - not on Windows
        return
    with open("/proc/self/statm") as statm:
        mapped = int(statm.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (mapped + MEMORY, mapped + MEMORY))


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    bound_memory()
    for line in lives(*map(int, sys.argv[1:4])):
        print(line, flush=True)
