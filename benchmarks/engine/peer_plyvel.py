"""plyvel: LevelDB itself, behind a binding in Cython."""
# ruff: noqa: D102 - what the methods of engines do is said in Engine

from __future__ import annotations

import itertools
import re
from collections.abc import Hashable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.engine import idle
from benchmarks.engine.data import MANY_NAMES, SUSTAINED_NAMES
from benchmarks.engine.engine import BITS_PER_KEY, CACHE_BYTES, Engine, Opening, Pairs, peer_module
from benchmarks.engine.ours import LEVELDB, Ours
from lsm.options import LEVELS, MIB

# LevelDB numbers its files from one counter.
_NUMBERED = re.compile(r"(?:MANIFEST-)?(\d{6,})(?:\.\w+)?")
_BLOCKED_NAMES = 8
# With so many tables on level 0 it merges them.
_LEVEL0_FULL = 4


class Plyvel(Engine):
    """LevelDB with the limits it comes with."""

    name = "plyvel"
    same_files_as = LEVELDB

    def __init__(self) -> None:
        super().__init__()
        self._module = peer_module("plyvel")
        self.remarks = dict.fromkeys(MANY_NAMES, "a loop of get: it has no more") | dict.fromkeys(
            SUSTAINED_NAMES, "until its files, its counts and its thread's time stood still"
        )

    def opened(self, path: Path, how: Opening) -> Any:
        return self._module.DB(
            str(path),
            create_if_missing=how.create,
            lru_cache_size=CACHE_BYTES,
            write_buffer_size=how.write_buffer_size,
            bloom_filter_bits=BITS_PER_KEY,
            compression="snappy" if how.compressed else None,
        )

    def close(self, db: Any) -> float:
        """LevelDB tells whole MiB, level by level."""
        lines = db.get_property(b"leveldb.stats").decode().splitlines()
        rows = itertools.dropwhile(lambda line: not line.startswith("---"), lines)
        written = MIB * sum(float(line.split()[5]) for line in list(rows)[1:] if line.strip())
        db.close()
        return written

    def settle(self, db: Any) -> float:
        """LevelDB cannot be asked: its files, its counts and its own thread stand still then."""
        return idle.wait_until_still(partial(_movements, db))

    def compact(self, db: Any) -> None:
        """With both bounds: plyvel takes one that is left out for the empty key."""
        db.compact_range(start=b"", stop=b"\xff" * 64)

    def fill(self, path: Path, runs: Mapping[int, Pairs], *, compressed: bool = True) -> None:
        """By our engine, which writes LevelDB's files: LevelDB cannot be told where to put them."""
        Ours(LEVELDB).fill(path, runs, compressed=compressed)

    def open_filled(self, path: Path) -> Any:
        """Open it, and have its first compaction fail.

        LevelDB merges a table down that some hundred lookups have passed through in vain; no option
        keeps it from that. Here the next names of files are taken by directories: the compaction
        that comes up cannot write its table, and LevelDB, which only reads from then on, starts no
        other.
        """
        db = self.open(path)
        found = (_NUMBERED.fullmatch(file.name) for file in path.iterdir())
        last = max(int(name[1]) for name in found if name)
        for number in range(last + 1, last + 1 + _BLOCKED_NAMES):
            (path / f"{number:06d}.ldb").mkdir()
        return db

    def tables_per_level(self, db: Any) -> list[int]:
        return [
            int(db.get_property(b"leveldb.num-files-at-level%d" % level)) for level in range(LEVELS)
        ]

    @property
    def memory_allowed(self) -> str:
        buffers, blocks = 8, CACHE_BYTES // MIB
        return f"{buffers + blocks} MiB, and the indexes and filters of 1000 open tables"


def _movements(db: Any) -> Hashable | None:
    """Whatever changes while LevelDB works; None where it is plain that it does, or has to."""
    if int(db.get_property(b"leveldb.num-files-at-level0")) >= _LEVEL0_FULL:
        return None
    files, threads = idle.sizes_of_files(Path(db.name)), idle.foreign_threads()
    if files is None or threads is None:
        return None
    return files, threads, db.get_property(b"leveldb.stats")
