"""The databases of one size, from the first write to the last lookup.

A row asks for what it needs, and that for what has to come before: every engine is loaded and
closed; what was loaded is merged, closed, opened some times, and read. Copies of the first load are
merged once more, while keys are looked up, and of what was merged are written and read by many
threads. What was loaded until nothing was left to do goes at once; only where that takes long is it
the one load of all that there is. No engine has a database open while another one is measured,
except where all have only to answer.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, suppress
from functools import cache, partial
from pathlib import Path
from typing import Any

import attrs

from benchmarks.engine import crowd, latency, loading, memory, peak, plug_in, threads
from benchmarks.engine.crowd import Done
from benchmarks.engine.data import LEVELS, THREADS
from benchmarks.engine.databases import Databases
from benchmarks.engine.engine import Engine, Pairs
from benchmarks.engine.engines import (
    ALL,
    ONE_OF_OURS,
    PLYVEL,
    THAT_MERGE,
    THAT_REPLAY,
    WITH_A_LOG,
)
from benchmarks.engine.latency import Latencies
from benchmarks.engine.loading import Load
from benchmarks.engine.memory import Memory
from benchmarks.engine.ours import PLUG_IN
from benchmarks.engine.reads import PRESENT, Read, Store, measure
from benchmarks.engine.settings import Scale
from benchmarks.engine.steps import Step
from benchmarks.errors import UnavailableError, WrongAnswersError
from benchmarks.timing import fresh_loop, quiet
from lsm.options import MIB

# What LevelDB counts for a key of 16 bytes and a value of 100 is 148; a log that fits is replayed
# into one memtable.
_BYTES_FOR_AN_ENTRY = 200
_CHECKS = 1000

# One in so many entries is looked up so that every block is in the cache: a block has about 35.
_ONE_OF_A_BLOCK = 8

# Among more keys the cache has long been full.
MOST_READ = 1_000_000

Seconds = dict[str, list[float]]


@attrs.frozen
class Disturbed:
    """What lookups took while everything was merged, and as long a time with nothing going on."""

    merging: Latencies
    idle: Latencies


@attrs.frozen
class Merged:
    """What bringing everything to its place took, and what it came to."""

    seconds: float
    amplification: float | None
    disk_bytes: int


@attrs.frozen
class Reopening:
    """What opening a database took that was closed right after a load, and what its logs had."""

    seconds: float
    log_bytes: int


class Bench(Databases):
    """What is measured of all engines with so many keys, each step of it once."""

    def __init__(self, scale: Scale, directory: Path):
        super().__init__(scale, directory)
        self._names = ExitStack()
        self.read = cache(self._read)
        self.read_filled = cache(self._read_filled)
        self.read_uncompressed = cache(self._read_uncompressed)
        self.read_plugged = cache(self._read_plugged)

    def __exit__(self, *exc: object) -> None:
        self._names.close()
        super().__exit__(*exc)

    @property
    def _few(self) -> Pairs:
        """Some of all pairs, from the first one on."""
        return self.data.pairs[:: max(1, self.scale.keys // _CHECKS)]

    def _after(self, step: str) -> None:
        """Take a step first, if it was not taken; UnavailableError if nobody came through it."""
        if not getattr(self, step):
            raise UnavailableError(f"no engine came through what has to come first: {step}")

    # -- Writing ---------------------------------------------------------------------------

    @Step
    def loaded(self) -> Seconds:
        """Seconds for writing everything, in each load."""
        if self.scale.large:
            return {name: [each.calls for each in some] for name, some in self.sustained.items()}
        taken: Seconds = {}
        for load, engine in self.in_turn(self.scale.writes):
            with self.attempt(engine):
                path = self.path(f"load {load}", engine)
                taken.setdefault(engine.name, []).append(self._load(engine, path))
                self.close(path)
                if load == 0 and engine.name in THAT_MERGE:
                    shutil.copytree(path, self.path("disturbed", engine))
        return taken

    def _load(self, engine: Engine, path: Path, **options: Any) -> float:
        batches = self.data.batches
        db = self.open(engine, path, create=True, **options)
        start = time.perf_counter()
        for pairs in batches:
            engine.put_batch(db, pairs)
        return time.perf_counter() - start

    @Step
    def sustained(self) -> dict[str, list[Load]]:
        """Loading until nothing is left to do."""
        return self._sustained(ONE_OF_OURS, compressed=True)

    @Step
    def sustained_uncompressed(self) -> dict[str, list[Load]]:
        """The same without compression, and then merging it."""
        names = [name for name in ONE_OF_OURS if name in WITH_A_LOG]
        return self._sustained(names, compressed=False)

    def _sustained(self, names: Iterable[str], *, compressed: bool) -> dict[str, list[Load]]:
        found: dict[str, list[Load]] = {}
        kept = compressed and self.scale.large
        for load, engine in self.in_turn(self.scale.loads, names):
            with self.attempt(engine):
                path = self.path(f"load {load}" if kept else f"sustained {load}", engine)
                taken = self._load_until_idle(engine, path, compressed=compressed)
                found.setdefault(engine.name, []).append(taken)
                if not kept:
                    self.remove(path)
        return found

    def _load_until_idle(self, engine: Engine, path: Path, *, compressed: bool) -> Load:
        """The values are looked up afterwards: LevelDB may merge what it is asked for in vain."""
        batches = self.data.batches
        db = self.open(engine, path, create=True, compressed=compressed)
        taken = loading.load(engine, db, batches)
        self.close(path)
        written = self.written(path)
        if written is not None:
            taken = attrs.evolve(taken, amplification=written / self.data.user_bytes)
        db = self.open(engine, path, compressed=compressed)
        if not compressed:
            taken = attrs.evolve(taken, merging=self._compaction(engine, db))
        check_values(engine, db, self._few)
        self.close(path)
        return taken

    def _compaction(self, engine: Engine, db: Any) -> float:
        start = time.perf_counter()
        engine.compact(db)
        return time.perf_counter() - start

    @Step
    def loading_memory(self) -> dict[str, int]:
        """The most bytes that each engine has in memory while everything is put in."""
        found: dict[str, int] = {}
        for _, engine in self.in_turn(1, THAT_MERGE):
            with self.attempt(engine):
                path = self.path("watched", engine)
                found[engine.name] = peak.while_loading(engine.name, path, self.scale)
                shutil.rmtree(path)
        return found

    def single_puts(self, pairs: Pairs, *, sync: bool) -> Seconds:
        """Seconds for writing these one by one, each time into a new database."""
        taken: Seconds = {}
        for repeat, engine in self.in_turn(self.scale.repeats):
            with self.attempt(engine):
                path = self.path(f"puts {repeat} {sync}", engine)
                db = self.open(engine, path, create=True, durable=sync)
                put, put_all = engine.putter(db, sync=sync), fresh_loop("subject(key[0], key[1])")
                start = time.perf_counter()
                put_all(pairs, put)
                taken.setdefault(engine.name, []).append(time.perf_counter() - start)
                check_values(engine, db, pairs)
                self.close(path)
                self.remove(path)
        return taken

    # -- After loading ---------------------------------------------------------------------

    @Step
    def disturbed(self) -> dict[str, list[Disturbed]]:
        """Lookups while all that was loaded is merged, and while nothing is going on."""
        self._after("loaded")
        found: dict[str, list[Disturbed]] = {}
        for repeat, engine in self.in_turn(self.scale.disturbances, THAT_MERGE):
            with self.attempt(engine):
                loaded = self.path("disturbed", engine)
                if repeat == 0:
                    engine.settle(self.open(engine, loaded))
                    self.close(loaded)
                merging = self._latencies(engine, loaded, engine.compact)
                idle = self._latencies(engine, loaded, partial(_nothing, merging.seconds))
                found.setdefault(engine.name, []).append(Disturbed(merging, idle))
        return found

    def _latencies(self, engine: Engine, loaded: Path, work: Callable[[Any], object]) -> Latencies:
        """Lookups in a copy that was just opened, until this is done with it.

        The database itself stays as it is: LevelDB merges what it is asked for in vain.
        """
        copy = self.path("disturbed copy", engine)
        shutil.copytree(loaded, copy)
        values = dict(zip(self.data.present, self.data.answers, strict=True))
        db = self.open(engine, copy)
        taken = latency.during(partial(work, db), engine.getter(db), values, self.data.present)
        self.close(copy)
        self.remove(copy)
        return taken

    @Step
    def reopened(self) -> dict[str, list[Reopening]]:
        """Opening what was closed right after it was loaded."""
        self._after("loaded")
        found: dict[str, list[Reopening]] = {}
        for load, engine in self.in_turn(self.scale.writes, WITH_A_LOG):
            with self.attempt(engine):
                path = self.path(f"load {load}", engine)
                size = sum(file.stat().st_size for file in path.glob("*.log"))
                start = time.perf_counter()
                self.open(engine, path)
                taken = Reopening(time.perf_counter() - start, size)
                found.setdefault(engine.name, []).append(taken)
                self.close(path)
        return found

    @Step
    def merged(self) -> dict[str, list[Merged]]:
        """Merging undisturbed what was loaded. The databases are then closed."""
        self._after("reopened")
        user_bytes = self.data.user_bytes
        found: dict[str, list[Merged]] = {}
        for load, engine in self.in_turn(self.scale.writes):
            with self.attempt(engine):
                path = self.path(f"load {load}", engine)
                db = self.open(engine, path)
                seconds = self._compaction(engine, db)
                self.close(path)
                written = self.written(path)
                merged = Merged(
                    seconds,
                    None if written is None else written / user_bytes,
                    engine.disk_bytes(path),
                )
                found.setdefault(engine.name, []).append(merged)
        return found

    # -- Opening ---------------------------------------------------------------------------

    def merged_path(self, engine: Engine) -> Path:
        """The database that is opened and read."""
        self._after("merged")
        return self.path("load 0", engine)

    @Step
    def opened(self) -> Seconds:
        """Seconds for opening what was merged and closed."""
        taken: Seconds = {}
        for _, engine in self.in_turn(self.scale.repeats):
            with self.attempt(engine):
                path = self.merged_path(engine)
                start = time.perf_counter()
                self.open(engine, path)
                taken.setdefault(engine.name, []).append(time.perf_counter() - start)
                self.close(path)
        return taken

    @Step
    def replayed(self) -> Seconds:
        """Seconds for opening a database that has everything in its log."""
        return self._replayed(compressed=True)

    @Step
    def replayed_uncompressed(self) -> Seconds:
        """The same where the table that comes of it is not compressed."""
        return self._replayed(compressed=False)

    def _replayed(self, *, compressed: bool) -> Seconds:
        taken: Seconds = {}
        buffer = max(MIB, _BYTES_FOR_AN_ENTRY * self.scale.keys)
        for repeat, engine in self.in_turn(self.scale.writes, THAT_REPLAY):
            with self.attempt(engine):
                path = self.path(f"replay {repeat}", engine)
                how = {"write_buffer_size": buffer, "compressed": compressed}
                self._load(engine, path, **how)
                self.close(path)
                if self.written(path):
                    raise WrongAnswersError(f"{engine.name} has not left everything in its log")
                start = time.perf_counter()
                db = self.open(engine, path, **how)
                taken.setdefault(engine.name, []).append(time.perf_counter() - start)
                check_values(engine, db, self._few)
                self.close(path)
                self.remove(path)
        return taken

    # -- Reading ---------------------------------------------------------------------------

    @Step
    def memory(self) -> dict[str, Memory]:
        """What each engine takes that has read every key of what was merged, or a million."""
        keys = [key for key, _ in self.data.pairs[:MOST_READ]]
        found: dict[str, Memory] = {}
        for _, engine in self.in_turn(1):
            with self.attempt(engine):
                found[engine.name] = memory.taken(engine.name, self.merged_path(engine), keys)
        return found

    @Step
    def stores(self) -> dict[str, Store]:
        """The databases that are read: merged, opened anew, with everything in their caches."""
        with suppress(Exception):
            self._after("memory")  # now, for another process cannot open them later
        self._after("opened")
        found: dict[str, Store] = {}
        for _, engine in self.in_turn(1):
            with self.attempt(engine):
                db = self.open(engine, self.merged_path(engine))
                found[engine.name] = self._warmed(Store(engine, db))
        return found

    @Step
    def filled(self) -> dict[str, Store]:
        """The databases with five filled levels; where there are no levels, the merged one."""
        return self._filled("five levels", self.data.runs, ALL)

    @Step
    def uncompressed(self) -> dict[str, Store]:
        """The databases with everything on one level as it is; where there are none, the merged."""
        runs = {LEVELS: self.data.pairs}
        return self._filled("uncompressed", runs, ONE_OF_OURS, compressed=False)

    @Step
    def plugged(self) -> dict[str, Store]:
        """The one with five filled levels whose filters are a plug-in's, and plyvel's beside it."""
        self._names.enter_context(plug_in.registered())
        found = self._filled("plug-in", self.data.runs, (PLUG_IN,))
        return found | {name: self.filled[name] for name in (PLYVEL,) if name in self.filled}

    def _filled(
        self, what: str, runs: Mapping[int, Pairs], names: Iterable[str], *, compressed: bool = True
    ) -> dict[str, Store]:
        found: dict[str, Store] = {}
        paths: dict[str, Path] = {}
        for _, engine in self.in_turn(1, names):
            with self.attempt(engine):
                if not engine.has_levels:
                    found[engine.name] = self.stores[engine.name]
                    continue
                path = self.path(what, engine)
                if engine.same_files_as in paths:
                    shutil.copytree(paths[engine.same_files_as], path)
                else:
                    engine.fill(path, runs, compressed=compressed)
                paths[engine.name] = path
        for name, path in paths.items():
            engine = self.engines[name]
            with self.attempt(engine):
                db = self._kept(engine, path, engine.open_filled(path))
                store = Store(engine, db, levels=frozenset(runs))
                store.check_levels()
                found[name] = self._warmed(store)
        return found

    def _warmed(self, store: Store) -> Store:
        """The same, after a lookup in every block."""
        keys = [key for key, _ in self.data.in_order[::_ONE_OF_A_BLOCK]]
        fresh_loop("subject(key)")(keys, store.engine.getter(store.db))
        return store

    def _read(self, read: Read) -> Seconds:
        return self._measured(read, self.stores)

    def _read_filled(self, read: Read) -> Seconds:
        return self._measured(read, self.filled)

    def _read_uncompressed(self, read: Read) -> Seconds:
        return self._measured(read, self.uncompressed)

    def _read_plugged(self, read: Read) -> Seconds:
        return self._measured(read, self.plugged)

    @Step
    def threaded(self) -> dict[int, Seconds]:
        """Nanoseconds of the wall clock for each key that one thread looks up, and that many do."""
        keys = self.data.present
        found: dict[int, Seconds] = {1: {}, THREADS: {}}
        for _, engine in self.in_turn(1, self.stores):
            with self.attempt(engine):
                PRESENT.check(self.stores[engine.name], self.data)
        for _, engine in self.in_turn(self.scale.repeats, self.stores):
            getter = partial(engine.getter, self.stores[engine.name].db)
            for count, taken in found.items():
                with self.attempt(engine), quiet(pinned=False):
                    seconds = threads.seconds(getter, list(threads.dealt(keys, count)))
                    taken.setdefault(engine.name, []).append(seconds / len(keys) * 1e9)
        return found

    @Step
    def crowded(self) -> dict[int, dict[str, list[Done]]]:
        """What one writer and one reader get done at the same time, and what many of each do."""
        found: dict[int, dict[str, list[Done]]] = {1: {}, THREADS: {}}
        for repeat, engine in self.in_turn(self.scale.disturbances, ONE_OF_OURS):
            with self.attempt(engine):
                path = self.path(f"crowd {repeat}", engine)
                shutil.copytree(self.merged_path(engine), path)
                db = self.open(engine, path)
                for count, done in found.items():
                    done.setdefault(engine.name, []).append(self._crowd(engine, db, count))
                check_values(engine, db, self._few)
                self.close(path)
                self.remove(path)
        return found

    def _crowd(self, engine: Engine, db: Any, count: int) -> Done:
        """They put what is there already, so that the right answers stay the same."""
        data, seconds = self.data, self.scale.crowd_seconds
        PRESENT.check(Store(engine, db), data)
        with quiet(pinned=False):
            done = crowd.of_each(engine, db, count, data.pairs, data.present, seconds)
        engine.settle(db)
        return done

    def _measured(self, read: Read, stores: dict[str, Store]) -> Seconds:
        """Nanoseconds for each thing in each repeat, of those whose answers are right."""
        taking_part = [stores[each.name] for _, each in self.in_turn(1, stores)]
        for store in taking_part:
            with self.attempt(store.engine):
                read.check(store, self.data)
        right = [store for store in taking_part if store.engine.name not in self.failed]
        taken = measure(read, right, self.data, self.scale)
        for store in right:
            with self.attempt(store.engine):
                store.check_levels()
        return taken


def _nothing(seconds: float, db: Any) -> None:
    time.sleep(seconds)


def check_values(engine: Engine, db: Any, pairs: Pairs) -> None:
    """WrongAnswersError unless all of these are in the database."""
    get = engine.getter(db)
    for key, value in pairs:
        if get(key) != value:
            raise WrongAnswersError(f"{engine.name} has lost the value of {key!r}")
