"""The engines that take part, behind one shape: ours under two kinds of filters, and its peers.

The shape is what plyvel and ours have in common. An engine with another interface overrides what
differs; the loops of the rows ask for functions, and know nothing else of it.
"""
# ruff: noqa: D102 - what the methods of engines do is said in Engine

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

import lsm
import policies
from benchmarks.errors import UnavailableError
from benchmarks.timing import fresh_loop
from lsm.options import MIB, Options

Pairs = Sequence[tuple[bytes, bytes]]

BITS_PER_KEY = 10
CACHE_BYTES = 256 * MIB
TABLE_SUFFIXES = (".ldb", ".sst")


class Engine(ABC):
    """An engine, by what the rows do with it."""

    name: str
    distributions: tuple[str, ...] = ()

    def __init__(self) -> None:
        self._put_all = fresh_loop("subject(key[0], key[1])")

    @abstractmethod
    def open(
        self, path: Path, *, create: bool = False, write_buffer_size: int | None = None
    ) -> Any:
        """The database in a directory, with the filters and the cache that all engines get."""

    @abstractmethod
    def table_bytes_written(self, db: Any) -> float:
        """How many bytes went to tables since it was opened."""

    @property
    @abstractmethod
    def memory_allowed(self) -> str:
        """What its options let it keep in memory, in words."""

    def close(self, db: Any) -> None:
        """Close it."""
        db.close()

    def put_batch(self, db: Any, pairs: Pairs) -> None:
        """Write these in one batch."""
        batch = db.write_batch()
        self._put_all(pairs, batch.put)
        batch.write()

    def compact(self, db: Any) -> None:
        """Bring everything to where it stays."""
        db.compact_range()

    def getter(self, db: Any) -> Callable[[bytes], bytes | None]:
        """What a key is looked up with."""
        get: Callable[[bytes], bytes | None] = db.get
        return get

    def many_getter(self, db: Any) -> Callable[[list[bytes]], list[bytes | None]]:
        """What a list of keys is looked up with."""
        get = db.get
        return lambda keys: [get(key) for key in keys]

    def items(self, db: Any, *, reverse: bool = False) -> Iterator[tuple[bytes, bytes]]:
        """All entries in order, or from the last one on."""
        found: Iterator[tuple[bytes, bytes]] = db.iterator(reverse=reverse)
        return found

    def snapshot_getter(self, db: Any) -> Callable[[bytes], bytes | None]:
        """What a key is looked up with in a snapshot, which lives as long as this does."""
        get: Callable[[bytes], bytes | None] = db.snapshot().get
        return get

    def prefix_iterator(self, db: Any) -> Callable[[bytes], Iterator[tuple[bytes, bytes]]]:
        """What gives the entries whose keys begin with a prefix."""
        iterator = db.iterator
        return lambda prefix: iterator(prefix=prefix)

    def disk_bytes(self, path: Path) -> int:
        """What its tables take."""
        return sum(f.stat().st_size for f in path.iterdir() if f.suffix in TABLE_SUFFIXES)


class Ours(Engine):
    """This project's engine with filters of one kind on all levels."""

    def __init__(self, filters: str):
        super().__init__()
        self.name = f"lsm, {filters}"
        self._options: dict[str, Any] = {"bloom_filter_bits": BITS_PER_KEY}
        if filters != "leveldb":
            policy = policies.create(filters, bits_per_key=BITS_PER_KEY)
            self._options = {"filter_policy": policy}

    def open(
        self, path: Path, *, create: bool = False, write_buffer_size: int | None = None
    ) -> Any:
        return lsm.DB(
            path,
            create_if_missing=create,
            lru_cache_size=CACHE_BYTES,
            write_buffer_size=write_buffer_size or Options().write_buffer_size,
            **self._options,
        )

    def table_bytes_written(self, db: Any) -> float:
        written: float = db.stats().table_bytes_written
        return written

    def many_getter(self, db: Any) -> Callable[[list[bytes]], list[bytes | None]]:
        get_many: Callable[[list[bytes]], list[bytes | None]] = db.get_many
        return get_many

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


class Plyvel(Engine):
    """plyvel: LevelDB itself, behind a binding in Cython."""

    name = "plyvel"
    distributions = ("plyvel",)

    def __init__(self) -> None:
        super().__init__()
        try:
            self._module = import_module("plyvel")
        except ImportError as error:
            raise UnavailableError(
                f"peer plyvel is not installed: pip install plyvel ({error})"
            ) from error

    def open(
        self, path: Path, *, create: bool = False, write_buffer_size: int | None = None
    ) -> Any:
        return self._module.DB(
            str(path),
            create_if_missing=create,
            lru_cache_size=CACHE_BYTES,
            write_buffer_size=write_buffer_size,
            bloom_filter_bits=BITS_PER_KEY,
        )

    def compact(self, db: Any) -> None:
        """With both bounds: plyvel takes one that is left out for the empty key."""
        db.compact_range(start=b"", stop=b"\xff" * 64)

    def table_bytes_written(self, db: Any) -> float:
        """LevelDB tells whole MiB, level by level."""
        lines = db.get_property(b"leveldb.stats").decode().splitlines()
        rows = itertools.dropwhile(lambda line: not line.startswith("---"), lines)
        return MIB * sum(float(line.split()[5]) for line in list(rows)[1:] if line.strip())

    @property
    def memory_allowed(self) -> str:
        buffers, blocks = 8, CACHE_BYTES // MIB
        return f"{buffers + blocks} MiB, and the indexes and filters of 1000 open tables"


OURS = ("lsm, blocked", "lsm, leveldb")
PLYVEL = Plyvel.name
LIBRARIES = ("plyvel", "crc32c", "cramjam", "sortedcontainers", "xxhash", "attrs")


def all_engines() -> tuple[dict[str, Engine], str]:
    """The engines that can take part, by name, and why one is missing."""
    engines: dict[str, Engine] = {name: Ours(name.partition(", ")[2]) for name in OURS}
    try:
        engines[PLYVEL] = Plyvel()
    except UnavailableError as error:
        return engines, str(error)
    return engines, ""


def versions() -> dict[str, str | None]:
    """The versions of the libraries that take part; None for what is not installed."""
    found: dict[str, str | None] = {}
    for name in LIBRARIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = None
    try:
        found["leveldb"] = import_module("plyvel").__leveldb_version__
    except ImportError:
        found["leveldb"] = None
    return found
