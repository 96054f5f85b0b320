"""rocksdict: RocksDB, behind a binding in Rust."""
# ruff: noqa: D102 - what the methods of engines do is said in Engine

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import Any

from benchmarks.engine import idle
from benchmarks.engine.data import LEVELS, LOADED_NAMES, SUSTAINED_NAMES
from benchmarks.engine.engine import (
    BITS_PER_KEY,
    CACHE_BYTES,
    Engine,
    Opening,
    Pair,
    Pairs,
    peer_module,
)
from lsm.options import MIB

# Tables as large as RocksDB's own, before compression.
_TABLE_ENTRIES = 500_000
# Properties that are 0 when nothing is left to do.
_AT_WORK = (
    "rocksdb.num-running-flushes",
    "rocksdb.num-running-compactions",
    "rocksdb.mem-table-flush-pending",
    "rocksdb.compaction-pending",
)
_EVENT = "EVENT_LOG_v1 "
_RAISES = "snapshot[key], which raises where there is none, in a function that answers None then"


class Rocksdict(Engine):
    """RocksDB in raw mode, in which keys and values are bytes; with a log, as it comes."""

    name = "rocksdict"
    seek_body = "subject.seek(key) or (subject.key(), subject.value())"

    def __init__(self) -> None:
        super().__init__()
        self._module = peer_module("rocksdict")
        self._synced = self._module.WriteOptions()
        self._synced.sync = True
        self.remarks = {
            "put in a batch of 1000": "write buffers of 64 MiB, its default; the others have 4",
            "get of an absent key from a snapshot": _RAISES,
            "get of a present key from a snapshot": _RAISES,
            **dict.fromkeys(SUSTAINED_NAMES, "until no flush or compaction runs or is pending"),
            **dict.fromkeys(LOADED_NAMES, "with what it writes when it closes"),
        }

    def opened(self, path: Path, how: Opening) -> Any:
        options = self.options(compressed=how.compressed)
        if how.write_buffer_size is not None:
            options.set_write_buffer_size(how.write_buffer_size)
        return self.open_with(path, options)

    def open_with(self, path: Path, options: Any) -> Any:
        """Open it with these options for its one column family, too.

        Given only as those of the database they are not applied to a column family that is there
        already: it would be read without its filters, and with a cache of 8 MiB.
        """
        return self._module.Rdict(str(path), options, column_families={"default": options})

    def options(self, *, compressed: bool = True) -> Any:
        """Options with the filters and the cache that all engines get."""
        rocks = self._module
        tables = rocks.BlockBasedOptions()
        tables.set_bloom_filter(BITS_PER_KEY, False)
        tables.set_block_cache(rocks.Cache(CACHE_BYTES))
        options = rocks.Options(raw_mode=True)
        options.create_if_missing(True)
        options.set_block_based_table_factory(tables)
        kinds = rocks.DBCompressionType
        options.set_compression_type(kinds.snappy() if compressed else kinds.none())
        return options

    def close(self, db: Any) -> float:
        """RocksDB notes every table in its log of events."""
        log = Path(db.path()) / "LOG"
        db.close()
        found = (line.partition(_EVENT)[2] for line in log.read_text().splitlines())
        events = [json.loads(event) for event in found if event]
        tables = (each for each in events if each["event"] == "table_file_creation")
        return float(sum(each.get("file_size", 0) for each in tables))

    def put_batch(self, db: Any, pairs: Pairs) -> None:
        batch = self._module.WriteBatch(raw_mode=True)
        self._put_all(pairs, batch.put)
        db.write(batch)

    def putter(self, db: Any, *, sync: bool) -> Callable[[bytes, bytes], object]:
        return partial(db.put, write_opt=self._synced) if sync else db.put

    def settle(self, db: Any) -> float:
        idle.wait_until(lambda: not any(map(db.property_int_value, _AT_WORK)))
        return 0.0

    def compact(self, db: Any) -> None:
        db.flush()
        db.compact_range(None, None)

    def many_getter(self, db: Any) -> Callable[[list[bytes]], list[bytes | None]]:
        """The same function: given a list it answers with one, and asks for all at once."""
        get: Callable[[list[bytes]], list[bytes | None]] = db.get
        return get

    def items(self, db: Any, *, reverse: bool = False) -> Iterator[Pair]:
        found: Iterator[Pair] = db.items(backwards=reverse)
        return found

    def keys(self, db: Any, *, reverse: bool = False) -> Iterator[bytes]:
        found: Iterator[bytes] = db.keys(backwards=reverse)
        return found

    def values(self, db: Any, *, reverse: bool = False) -> Iterator[bytes]:
        found: Iterator[bytes] = db.values(backwards=reverse)
        return found

    def seeker(self, db: Any) -> Any:
        return db.iter()

    def snapshot_getter(self, db: Any) -> Callable[[bytes], bytes | None]:
        """By its index, which is all that a snapshot has to ask for one key."""
        snapshot = db.snapshot()

        def get(key: bytes) -> bytes | None:
            try:
                value: bytes = snapshot[key]
            except Exception as error:  # it has no type of its own
                if error.args == ("key not found",):
                    return None
                raise
            return value

        return get

    def prefix_iterator(self, db: Any) -> Callable[[bytes], Iterator[Pair]]:
        items = db.items
        return lambda prefix: takewhile(
            lambda pair: pair[0].startswith(prefix), items(from_key=prefix)
        )

    # -- Levels that are filled ------------------------------------------------------------

    def fill(self, path: Path, runs: Mapping[int, Pairs], *, compressed: bool = True) -> None:
        """Deepest first, as tables that it takes in: each goes as deep as it meets none."""
        options = self._filled_options(compressed=compressed)
        db = self.open_with(path, options)
        into = self._module.IngestExternalFileOptions()
        into.set_move_files(True)
        for level in sorted(runs, reverse=True):
            pairs = sorted(runs[level])
            written = [
                self._table(
                    path.parent / f"{path.name}-{at}.sst", options, pairs[at:][:_TABLE_ENTRIES]
                )
                for at in range(0, len(pairs), _TABLE_ENTRIES)
            ]
            db.ingest_external_file(written, into)
        db.close()

    def open_filled(self, path: Path) -> Any:
        return self.open_with(path, self._filled_options())

    def tables_per_level(self, db: Any) -> list[int]:
        told = (
            db.property_value(f"rocksdb.num-files-at-level{level}") for level in range(LEVELS + 2)
        )
        return [int(each or 0) for each in told]

    def _filled_options(self, *, compressed: bool = True) -> Any:
        """As many levels as are filled, and nothing that moves by itself."""
        options = self.options(compressed=compressed)
        options.set_num_levels(LEVELS + 1)
        options.set_level_compaction_dynamic_level_bytes(False)
        options.set_disable_auto_compactions(True)
        return options

    def _table(self, path: Path, options: Any, pairs: Pairs) -> str:
        writer = self._module.SstFileWriter(options)
        writer.open(str(path))
        for key, value in pairs:
            writer[key] = value
        writer.finish()
        return str(path)

    @property
    def memory_allowed(self) -> str:
        buffers, blocks = 128, CACHE_BYTES // MIB
        return f"{buffers + blocks} MiB, and the indexes and filters of all tables"
