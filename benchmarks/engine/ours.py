"""This project's engine with filters of one kind on all levels."""
# ruff: noqa: D102 - what the methods of engines do is said in Engine

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import lsm
import policies
from benchmarks import filled_levels
from benchmarks.engine.engine import BITS_PER_KEY, CACHE_BYTES, Engine, Opening, Pairs
from benchmarks.engine.plug_in import PythonBloom
from lsm.options import MIB, Options

BLOCKED, LEVELDB = "lsm, blocked", "lsm, leveldb"
OURS = (BLOCKED, LEVELDB)
PLUG_IN = "lsm, plug-in"


class Ours(Engine):
    """``lsm.DB``, whose name here ends with the kind of its filters."""

    def __init__(self, name: str):
        super().__init__()
        self.name = name
        filters = name.partition(", ")[2]
        self._options: dict[str, Any] = {"bloom_filter_bits": BITS_PER_KEY}
        if name == PLUG_IN:
            self._options = {"filter_policy": PythonBloom()}
        elif name != LEVELDB:
            policy = policies.create(filters, bits_per_key=BITS_PER_KEY)
            self._options = {"filter_policy": policy}

    def opened(self, path: Path, how: Opening, **options: Any) -> Any:
        if not how.compressed:
            options["compression"] = None
        return lsm.DB(
            path,
            create_if_missing=how.create,
            lru_cache_size=CACHE_BYTES,
            write_buffer_size=how.write_buffer_size or Options().write_buffer_size,
            **options,
            **self._options,
        )

    def close(self, db: Any) -> float:
        written: float = db.stats().table_bytes_written
        db.close()
        return written

    def settle(self, db: Any) -> float:
        db.wait_until_idle()
        return 0.0

    def many_getter(self, db: Any) -> Callable[[list[bytes]], list[bytes | None]]:
        get_many: Callable[[list[bytes]], list[bytes | None]] = db.get_many
        return get_many

    def fill(self, path: Path, runs: Mapping[int, Pairs], *, compressed: bool = True) -> None:
        how = Opening(create=True, compressed=compressed)
        with self.opened(path, how, **filled_levels.STILL) as db:
            filled_levels.fill(db, runs)

    def tables_per_level(self, db: Any) -> list[int]:
        return filled_levels.tables_per_level(db)

    @property
    def memory_allowed(self) -> str:
        options = Options(lru_cache_size=CACHE_BYTES)
        caches = (options.lru_cache_size, options.filter_cache_size, options.table_cache_size)
        blocks, filters, tables = (size // MIB for size in caches)
        buffers = 2 * options.write_buffer_size // MIB
        return (
            f"{buffers + blocks + filters + tables} MiB: {buffers} of write buffers, {blocks} of "
            f"blocks, {filters} of filters, {tables} of open tables"
        )
