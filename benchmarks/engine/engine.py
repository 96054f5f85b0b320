"""What an engine is to this benchmark: one shape for all of them.

The shape is what plyvel and ours have in common. An engine with another interface overrides what
differs; the loops of the rows ask for functions, and know nothing else of it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import attrs

from benchmarks.errors import UnavailableError
from benchmarks.timing import fresh_loop
from lsm.options import MIB

Pair = tuple[bytes, bytes]
Pairs = Sequence[Pair]

BITS_PER_KEY = 10
CACHE_BYTES = 256 * MIB
TABLE_SUFFIXES = (".ldb", ".sst")


@attrs.frozen
class Opening:
    """What :meth:`Engine.open` was asked for; a size that is None is the engine's own."""

    create: bool = False
    write_buffer_size: int | None = None
    durable: bool = False
    compressed: bool = True


class Engine(ABC):
    """An engine, by what the rows do with it."""

    name: str
    seek_body: ClassVar[str] = "subject.seek(key) or next(subject)"  # seek returns None
    has_levels: ClassVar[bool] = True
    same_files_as: ClassVar[str] = ""
    """The engine whose files this one opens as they are."""
    remarks: Mapping[str, str] = {}
    """By the names of rows, what they mean for this engine, where that is not plain."""

    def __init__(self) -> None:
        self._put_all = fresh_loop("subject(key[0], key[1])")

    def open(
        self,
        path: Path,
        *,
        create: bool = False,
        write_buffer_size: int | None = None,
        durable: bool = False,
        compressed: bool = True,
    ) -> Any:
        """The database in a directory, with the filters and the cache that all engines get.

        ``durable`` says that it will be written with ``sync``, ``compressed`` whether its tables
        are.
        """
        return self.opened(path, Opening(create, write_buffer_size, durable, compressed))

    @abstractmethod
    def opened(self, path: Path, how: Opening) -> Any:
        """The same, for an engine to say."""

    @property
    @abstractmethod
    def memory_allowed(self) -> str:
        """What its options let it keep in memory, in words."""

    def close(self, db: Any) -> float | None:
        """Close it, and say how many bytes went to tables since it was opened; None: not told."""
        db.close()
        return None

    def put_batch(self, db: Any, pairs: Pairs) -> None:
        """Write these in one batch."""
        batch = db.write_batch()
        self._put_all(pairs, batch.put)
        batch.write()

    def putter(self, db: Any, *, sync: bool) -> Callable[[bytes, bytes], object]:
        """What one entry is written with."""
        put: Callable[[bytes, bytes], object] = partial(db.put, sync=True) if sync else db.put
        return put

    @abstractmethod
    def settle(self, db: Any) -> float:
        """Wait until nothing is left to be done for what was written.

        How many seconds of that were spent on making sure: nothing went on any more.
        """

    def compact(self, db: Any) -> None:
        """Bring everything to where it stays."""
        db.compact_range()

    def getter(self, db: Any) -> Callable[[bytes], bytes | None]:
        """What a key is looked up with."""
        get: Callable[[bytes], bytes | None] = db.get
        return get

    def many_getter(self, db: Any) -> Callable[[list[bytes]], list[bytes | None]]:
        """What a list of keys is looked up with; None stands for those that are not there."""
        get = db.get
        return lambda keys: [get(key) for key in keys]

    def items(self, db: Any, *, reverse: bool = False) -> Iterator[Pair]:
        """All entries in order, or from the last one on."""
        found: Iterator[Pair] = db.iterator(reverse=reverse)
        return found

    def keys(self, db: Any, *, reverse: bool = False) -> Iterator[bytes]:
        """The keys of all entries."""
        found: Iterator[bytes] = db.iterator(reverse=reverse, include_value=False)
        return found

    def values(self, db: Any, *, reverse: bool = False) -> Iterator[bytes]:
        """The values of all entries, in the order of their keys."""
        found: Iterator[bytes] = db.iterator(reverse=reverse, include_key=False)
        return found

    def seeker(self, db: Any) -> Any:
        """The ``subject`` of ``seek_body``."""
        return self.items(db)

    def snapshot_getter(self, db: Any) -> Callable[[bytes], bytes | None]:
        """What a key is looked up with in a snapshot, which lives as long as this does."""
        get: Callable[[bytes], bytes | None] = db.snapshot().get
        return get

    def prefix_iterator(self, db: Any) -> Callable[[bytes], Iterator[Pair]]:
        """What gives the entries whose keys begin with a prefix."""
        iterator = db.iterator
        return lambda prefix: iterator(prefix=prefix)

    def disk_bytes(self, path: Path) -> int:
        """What its tables take."""
        return sum(f.stat().st_size for f in path.iterdir() if f.suffix in TABLE_SUFFIXES)

    # -- Levels that are filled ------------------------------------------------------------

    def fill(self, path: Path, runs: Mapping[int, Pairs], *, compressed: bool = True) -> None:
        """Make a database that has these runs on these levels, and nothing elsewhere.

        Blocks tell whether they are compressed, so that opening it takes no such option.
        """
        raise NotImplementedError(f"{self.name} has no levels")

    def open_filled(self, path: Path) -> Any:
        """Open it such that whatever is read, every table stays where it is."""
        return self.open(path)

    def tables_per_level(self, db: Any) -> list[int]:
        """How many tables each level has, from level 0 on; none where there are no levels."""
        return []


def peer_module(name: str) -> ModuleType:
    """A peer's module; UnavailableError says how to install it."""
    try:
        return import_module(name)
    except ImportError as error:
        raise UnavailableError(
            f"peer {name} is not installed: pip install {name} ({error})"
        ) from error
