"""What the units share: the keys of one kind and number, a built filter in its file, its pace."""

from __future__ import annotations

import time
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import attrs

from benchmarks.filters import keysets
from benchmarks.filters.contenders import Contender
from benchmarks.filters.keysets import KeySet, Wanted
from benchmarks.filters.settings import Settings
from benchmarks.machine import cache_bytes
from benchmarks.rows import Row
from benchmarks.subjects import Subject, check_keys
from benchmarks.timing import fresh_loop

PART = "filters"

# A walk over so much leaves nothing else in the caches of a processor that does not tell theirs.
LEAST_WIPED, LINE_BYTES = 1 << 26, 64

# So many questions tell how long one takes.
PACE_KEYS = 500


@attrs.frozen
class Built:
    """A subject's filter of some keys, as it came out of its file, with right answers for all."""

    contender: Contender
    subject: Subject
    kind: str
    keys: KeySet
    path: Path
    reader: Any
    size: int
    pace: float

    def row(self, group: str, name: str, unit: str) -> Row:
        """A row on it."""
        return attrs.evolve(
            row(self.contender, self.kind, len(self.keys.keys)), group=group, name=name, unit=unit
        )


def row(contender: Contender, kind: str, count: int) -> Row:
    """The first row on a contender over so many keys of a kind."""
    return Row(
        part=PART,
        group="Rates and sizes",
        name="false negatives",
        subject=contender.name,
        at={"keys": kind, "n": count},
        unit="keys",
    )


class Bench:
    """Keys, made once for all subjects in turn, and a directory for the subjects' files."""

    def __init__(self, settings: Settings, directory: Path):
        self.settings = settings
        self.directory = directory
        self.keys = lru_cache(maxsize=1)(self._keys)

    def wanted(self, kind: str, count: int) -> Wanted:
        """Which keys these are."""
        return Wanted(kind, count, self.settings.seed, self.settings.keys_file)

    def _keys(self, kind: str, count: int) -> KeySet:
        settings = self.settings
        return keysets.made(
            self.wanted(kind, count),
            settings.absent,
            settings.many_absent if kind == keysets.RANDOM else settings.absent,
            settings.timed_keys,
        )

    def built(self, contender: Contender, kind: str, count: int) -> Built:
        """The contender's filter; WrongAnswersError if it denies a key."""
        subject, keys = contender.make(), self.keys(kind, count)
        made = subject.build(keys.keys)
        path = self.directory / "filter"
        path.unlink(missing_ok=True)
        subject.storage.save(made, path)
        size = subject.storage.size(made, path)
        del made
        reader = subject.storage.load(path)
        check_keys(subject, reader, keys.keys)
        pace = _pace(subject, reader, keys.absent[:PACE_KEYS])
        return Built(contender, subject, kind, keys, path, reader, size, pace)

    def wipe_caches(self) -> None:
        """Walk over memory until nothing of what was there before is in the processor's caches."""
        # Writing makes each line this processor's own; the stride is one line.
        self._other_memory[::LINE_BYTES] = bytes(len(self._other_memory) // LINE_BYTES)

    @cached_property
    def _other_memory(self) -> bytearray:
        return bytearray(max(LEAST_WIPED, 2 * max(cache_bytes().values(), default=0)))


def _pace(subject: Subject, reader: Any, keys: list[bytes]) -> float:
    """About how many seconds a question takes."""
    loop = fresh_loop(subject.ask)
    loop(keys, reader)
    start = time.perf_counter()
    loop(keys, reader)
    return (time.perf_counter() - start) / len(keys)
