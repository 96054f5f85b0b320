"""The row on opening: a filter that nothing has touched for long, from its file to 1000 answers."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import attrs

from benchmarks.filters.bench import Bench, Built
from benchmarks.rows import Row, timed
from benchmarks.timing import fresh_loop, quiet

GROUP = "Opening"
WAVE = 1000


def cold_open(built: Built, bench: Bench) -> Row:
    """The median of several openings, each followed by questions one by one, on the wall clock.

    Half of them are for keys and half for absent ones, from everywhere among them.
    """
    load, path = built.subject.storage.load, built.path
    keys = _wave(built)
    repeats = []
    with quiet():
        for _ in range(bench.settings.repeats):
            ask = fresh_loop(built.subject.ask)
            forget(path)
            bench.wipe_caches()
            repeats.append(_seconds(load, path, ask, keys) * 1e6)
    row = built.row(GROUP, "first wave after a cold open", "us")
    note = f"{WAVE} keys one by one, opening included; median"
    if not hasattr(os, "posix_fadvise"):
        note += "; the file was still in the system's cache, which cannot be emptied here"
    return timed(attrs.evolve(row, note=note), repeats, counts="median")


def _seconds(
    load: Callable[[Path], Any],
    path: Path,
    ask: Callable[[Iterable[bytes], Any], None],
    keys: Sequence[bytes],
) -> float:
    start = time.perf_counter()
    reader = load(path)
    ask(keys, reader)
    return time.perf_counter() - start


def _wave(built: Built) -> list[bytes]:
    """Keys that are in and absent ones in turn."""
    half = WAVE // 2
    hits, misses = (built.keys.asked[known].shuffled[:half] for known in (True, False))
    return [key for pair in zip(hits, misses, strict=True) for key in pair]


def forget(path: Path) -> None:
    """Have the system drop the file's pages from its cache, where it can be told to."""
    if hasattr(os, "posix_fadvise"):
        with path.open("r+b") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
