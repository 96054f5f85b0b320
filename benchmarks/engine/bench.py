"""One run: its databases, from the first write to the last lookup.

A row asks for what it needs, and that for what has to come before: every engine is loaded twice and
closed. The first database is opened again, and keys are looked up while everything is merged; the
second is merged undisturbed, closed, opened some times, and read. No engine has a database open
while another one is measured, except where both have only to answer.
"""

from __future__ import annotations

import contextlib
import gc
import re
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any, Self

import attrs

from benchmarks.engine import latency, memory
from benchmarks.engine.data import Data
from benchmarks.engine.engines import OURS, PLYVEL, Engine, Pairs, all_engines
from benchmarks.engine.latency import Latencies
from benchmarks.engine.memory import Memory
from benchmarks.engine.reads import Read, measure
from benchmarks.engine.settings import Settings
from benchmarks.engine.steps import Step
from benchmarks.errors import WrongAnswersError
from benchmarks.timing import fresh_loop
from lsm.options import MIB

# What LevelDB counts for a key of 16 bytes and a value of 100 is 148; a log that fits is replayed
# into one memtable.
_BYTES_FOR_AN_ENTRY = 200
_REPLAY_CHECKS = 1000

FIRST, SECOND = "first load", "second load"


@attrs.frozen
class Reopening:
    """What opening a database took that was closed right after a load, and what its logs had."""

    seconds: float
    log_bytes: int


@attrs.frozen
class Merged:
    """What opening a load and bringing everything to its place took, and what it came to."""

    reopening: Reopening
    seconds: float
    amplification: float
    disk_bytes: int


@attrs.frozen
class Store:
    """A database that is read."""

    engine: Engine
    db: Any


class Bench:
    """The databases of one run, in a directory that goes when they do."""

    def __init__(self, settings: Settings, directory: Path | None = None):
        self.settings = settings
        self.engines, self.missing = all_engines()
        self._root = Path(tempfile.mkdtemp(prefix="lsm-benchmark-", dir=directory))
        self._open: dict[Path, tuple[Engine, Any]] = {}
        self._written: dict[Path, float] = {}
        self.read = cache(self._read)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        gc.unfreeze()
        try:
            for path in list(self._open):
                self.close(path)
        finally:
            shutil.rmtree(self._root)

    @Step
    def data(self) -> Data:
        """The keys and values, which the garbage collector leaves alone: they are no engine's."""
        data = Data(self.settings)
        gc.collect()
        gc.freeze()
        return data

    # -- Databases -------------------------------------------------------------------------

    def path(self, what: str, engine: Engine) -> Path:
        """A place for a database."""
        parent = self._root / what
        parent.mkdir(exist_ok=True)
        return parent / re.sub(r"\W+", "-", engine.name)

    def open(self, engine: Engine, path: Path, **options: Any) -> Any:
        """Open a database, which is closed at the end of the run if not before."""
        db = engine.open(path, **options)
        self._open[path] = engine, db
        return db

    def close(self, path: Path) -> None:
        """Close a database, and count what it has written."""
        engine, db = self._open.pop(path)
        self._written[path] = self._written.get(path, 0) + engine.table_bytes_written(db)
        engine.close(db)

    def in_turn(self, repeats: int, names: Iterable[str] = ()) -> Iterator[tuple[int, Engine]]:
        """Each engine once in every repeat, forwards and backwards; of those named, or of all."""
        names = list(names) or list(self.engines)
        taking_part = [self.engines[name] for name in names if name in self.engines]
        for repeat in range(repeats):
            yield from ((repeat, engine) for engine in taking_part)
            taking_part.reverse()

    def everyone(self) -> dict[str, list[float]]:
        """An empty list of numbers for every engine."""
        return {name: [] for name in self.engines}

    # -- Writing ---------------------------------------------------------------------------

    @Step
    def loaded(self) -> dict[str, list[float]]:
        """Seconds for writing everything, in each load."""
        taken, batches = self.everyone(), self.data.batches
        for load, engine in self.in_turn(2):
            path = self.path((FIRST, SECOND)[load], engine)
            db = self.open(engine, path, create=True)
            start = time.perf_counter()
            for pairs in batches:
                engine.put_batch(db, pairs)
            taken[engine.name].append(time.perf_counter() - start)
            self.close(path)
        return taken

    def single_puts(self, pairs: Pairs, *, sync: bool) -> dict[str, list[float]]:
        """Seconds for writing these one by one, each time into a new database."""
        taken = self.everyone()
        body = "subject(key[0], key[1], sync=True)" if sync else "subject(key[0], key[1])"
        for repeat, engine in self.in_turn(self.settings.repeats):
            path = self.path(f"puts {repeat} {sync}", engine)
            db = self.open(engine, path, create=True)
            put, put_all = db.put, fresh_loop(body)
            start = time.perf_counter()
            put_all(pairs, put)
            taken[engine.name].append(time.perf_counter() - start)
            check_values(engine, db, pairs)
            self.close(path)
            shutil.rmtree(path)
        return taken

    # -- After loading ---------------------------------------------------------------------

    @Step
    def disturbed(self) -> dict[str, tuple[Reopening, Latencies]]:
        """Lookups while all that was loaded first is merged in the background."""
        assert self.loaded
        found = {}
        for _, engine in self.in_turn(1, (OURS[0], PLYVEL)):
            path = self.path(FIRST, engine)
            reopening, db = self._reopen(engine, path)
            compact = partial(engine.compact, db)
            taken = latency.during(compact, engine.getter(db), self.data.values, self.data.present)
            found[engine.name] = reopening, taken
            self.close(path)
        shutil.rmtree(path.parent)
        return found

    @Step
    def merged(self) -> dict[str, Merged]:
        """Merging undisturbed what was loaded last. The databases are then closed."""
        assert self.loaded
        user_bytes = sum(len(key) + len(value) for key, value in self.data.pairs)
        found = {}
        for _, engine in self.in_turn(1):
            path = self.path(SECOND, engine)
            reopening, db = self._reopen(engine, path)
            start = time.perf_counter()
            engine.compact(db)
            seconds = time.perf_counter() - start
            self.close(path)
            amplification = self._written[path] / user_bytes
            disk_bytes = engine.disk_bytes(path)
            found[engine.name] = Merged(reopening, seconds, amplification, disk_bytes)
        return found

    def _reopen(self, engine: Engine, path: Path) -> tuple[Reopening, Any]:
        """Open a database that was closed right after the last write."""
        size = sum(file.stat().st_size for file in path.glob("*.log"))
        start = time.perf_counter()
        db = self.open(engine, path)
        return Reopening(time.perf_counter() - start, size), db

    def reopenings(self) -> dict[str, list[Reopening]]:
        """How it was to open databases that were closed right after the last write."""
        found = {name: [merged.reopening] for name, merged in self.merged.items()}
        for name, (reopening, _) in self.disturbed.items():
            found[name].append(reopening)
        return found

    # -- Opening ---------------------------------------------------------------------------

    @Step
    def opened(self) -> dict[str, list[float]]:
        """Seconds for opening what was merged and closed."""
        assert self.merged
        taken = self.everyone()
        for _, engine in self.in_turn(self.settings.repeats):
            path = self.path(SECOND, engine)
            start = time.perf_counter()
            self.open(engine, path)
            taken[engine.name].append(time.perf_counter() - start)
            self.close(path)
        return taken

    @Step
    def replayed(self) -> dict[str, list[float]]:
        """Seconds for opening a database that has everything in its log."""
        taken: dict[str, list[float]] = {}
        buffer = max(MIB, _BYTES_FOR_AN_ENTRY * len(self.data.pairs))
        for repeat, engine in self.in_turn(self.settings.replays, (OURS[0], PLYVEL)):
            path = self.path(f"replay {repeat}", engine)
            db = self.open(engine, path, create=True, write_buffer_size=buffer)
            for pairs in self.data.batches:
                engine.put_batch(db, pairs)
            self.close(path)
            if self._written.pop(path):
                raise WrongAnswersError(f"{engine.name} has not left everything in its log")
            start = time.perf_counter()
            db = self.open(engine, path, write_buffer_size=buffer)
            taken.setdefault(engine.name, []).append(time.perf_counter() - start)
            check_values(engine, db, self.data.pairs[:: len(self.data.pairs) // _REPLAY_CHECKS])
            self.close(path)
            shutil.rmtree(path)
        return taken

    # -- Reading ---------------------------------------------------------------------------

    @Step
    def memory(self) -> dict[str, Memory]:
        """What each engine takes that has read every key of what was merged."""
        assert self.opened
        keys = list(self.data.values)
        return {
            engine.name: memory.taken(engine.name, self.path(SECOND, engine), keys)
            for _, engine in self.in_turn(1)
        }

    @Step
    def stores(self) -> dict[str, Store]:
        """The databases that are read: merged, opened anew, with everything in their caches."""
        with contextlib.suppress(Exception):
            assert self.memory  # now, for another process cannot open them later
        assert self.opened
        found = {}
        for _, engine in self.in_turn(1):
            db = self.open(engine, self.path(SECOND, engine))
            fresh_loop("subject(key)")(self.data.values, engine.getter(db))
            found[engine.name] = Store(engine, db)
        return found

    def _read(self, read: Read) -> dict[str, list[float]]:
        return measure(read, self.stores.values(), self.data, self.settings.repeats)


def check_values(engine: Engine, db: Any, pairs: Pairs) -> None:
    """WrongAnswersError unless all of these are in the database."""
    get = engine.getter(db)
    for key, value in pairs:
        if get(key) != value:
            raise WrongAnswersError(f"{engine.name} has lost the value of {key!r}")
