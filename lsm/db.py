"""The database as programs see it: plyvel's interface, and what is ours on top."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Self, final

from lsm import checkpoint, drift, inspection, iterators, lookups, opening
from lsm.arguments import (
    check_progress,
    checked_levels,
    flag,
    key_bytes,
    optional_key,
    optional_size,
)
from lsm.batch import WriteBatch
from lsm.kernels import Keyspace
from lsm.options import NOT_GIVEN, NotGiven
from lsm.prefixed_db import PrefixedDB
from lsm.snapshot import Snapshot
from lsm.state import ITERATOR_CLOSED

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from lsm.checkpoint import CheckpointProgress, CheckpointReport
    from lsm.inspection import LevelFilters
    from lsm.iterators import Iterator, RawIterator
    from lsm.lookups import Explanation
    from lsm.manual import CompactionProgress
    from lsm.refiltering import RefilterProgress, RefilterReport
    from lsm.stats import Stats
    from lsm.storage import Storage
    from lsm.store import Store
    from lsm.tree_advice import TreeAdvice
    from policies import FilterPolicy, LevelPolicies


@final
class DB(Keyspace):
    """A database in a directory. ``docs/engine.md`` has every argument and what it promises.

    One process has it open at a time, for writing; any number of its threads use it together.
    """

    __slots__ = ("__weakref__", "_finalizer", "_name")

    def __init__(
        self,
        name: str | bytes | os.PathLike[str],
        *,
        create_if_missing: bool | None = False,
        error_if_exists: bool | None = False,
        paranoid_checks: bool | None = None,
        write_buffer_size: int | None = None,
        max_open_files: int | None = None,
        lru_cache_size: int | None = None,
        block_size: int | None = None,
        block_restart_interval: int | None = None,
        max_file_size: int | None = None,
        compression: str | bytes | NotGiven | None = NOT_GIVEN,
        bloom_filter_bits: int = 0,
        comparator: Callable[[bytes, bytes], int] | None = None,
        comparator_name: bytes | None = None,
        read_only: bool | None = False,
        config: str | os.PathLike[str] | None = None,
        filter_policy: FilterPolicy | LevelPolicies | NotGiven | None = NOT_GIVEN,
        filter_layout: str | None = None,
        filter_partition_blocks: int | None = None,
        filter_prefix: int | None = None,
        filter_prefix_until: str | None = None,
        filter_whole_keys: bool | None = None,
        filter_budget: str | None = None,
        filter_read_cost: str | None = None,
        filter_absent_share: float | None = None,
        filter_families: Iterable[str] | None = None,
        filter_heat: bool | None = None,
        filter_cache_size: int | str | None = None,
        pin_filters: str | None = None,
        load_filters: str | None = None,
        warm_filters: bool | None = None,
        filters_compare_bytes: bool | None = None,
        table_cache_size: int | None = None,
        level_size_base: int | None = None,
        level_size_ratio: int | None = None,
        level0_compact_files: int | None = None,
        level0_slow_files: int | None = None,
        level0_stop_files: int | None = None,
        max_background_jobs: int | None = None,
        refilter_bytes_per_second: int | None = None,
        storage: Storage | None = None,
    ):
        given = {
            "paranoid_checks": paranoid_checks,
            "write_buffer_size": write_buffer_size,
            "max_open_files": max_open_files,
            "lru_cache_size": lru_cache_size,
            "block_size": block_size,
            "block_restart_interval": block_restart_interval,
            "max_file_size": max_file_size,
            "compression": compression,
            "bloom_filter_bits": bloom_filter_bits,
            "filter_policy": filter_policy,
            "filter_layout": filter_layout,
            "filter_partition_blocks": filter_partition_blocks,
            "filter_prefix": filter_prefix,
            "filter_prefix_until": filter_prefix_until,
            "filter_whole_keys": filter_whole_keys,
            "filter_budget": filter_budget,
            "filter_read_cost": filter_read_cost,
            "filter_absent_share": filter_absent_share,
            "filter_families": filter_families,
            "filter_heat": filter_heat,
            "filter_cache_size": filter_cache_size,
            "pin_filters": pin_filters,
            "load_filters": load_filters,
            "warm_filters": warm_filters,
            "filters_compare_bytes": filters_compare_bytes,
            "table_cache_size": table_cache_size,
            "level_size_base": level_size_base,
            "level_size_ratio": level_size_ratio,
            "level0_compact_files": level0_compact_files,
            "level0_slow_files": level0_slow_files,
            "level0_stop_files": level0_stop_files,
            "max_background_jobs": max_background_jobs,
            "refilter_bytes_per_second": refilter_bytes_per_second,
        }
        self._prefix = self._read_rank = self._pinned_db = None
        self._store: Store = opening.open_store(
            opening.directory_of(name),
            opening.comparator_of(comparator, comparator_name),
            given,
            create_if_missing=create_if_missing,
            error_if_exists=error_if_exists,
            read_only=read_only,
            config=config,
            storage=storage,
        )
        self._name = name
        self._finalizer = weakref.finalize(self, self._store.close_when_collected)

    # -- Reading and writing ---------------------------------------------------------------

    def write_batch(
        self, *, transaction: bool | None = False, sync: bool | None = False
    ) -> WriteBatch:
        """An empty batch, which writes all of its operations or none.

        What an exception within its ``with`` block does is said at ``WriteBatch``.
        """
        self._store.check_open()
        return WriteBatch(
            self._store, self, b"", flag("transaction", transaction), flag("sync", sync)
        )

    def _closed_error(self) -> RuntimeError:
        return self._store.closed_error()

    def _closed_iterator_error(self) -> RuntimeError:
        return self._store.closed_error(ITERATOR_CLOSED)

    def might_contain(self, key: Buffer) -> bool:
        """False if memory and filters alone tell that the key has no value; reads no data."""
        return lookups.might_contain(self._store, key_bytes("key", key))

    # -- Ranges ----------------------------------------------------------------------------

    def raw_iterator(
        self, *, verify_checksums: bool | None = False, fill_cache: bool | None = True
    ) -> RawIterator:
        """LevelDB's own kind of iterator, as the database is now."""
        return iterators.raw_iterator(
            self._store, None, self, verify_checksums=verify_checksums, fill_cache=fill_cache
        )

    def __iter__(self) -> Iterator[tuple[bytes, bytes]]:
        self._store.check_open()
        return self.iterator()

    def snapshot(self) -> Snapshot:
        """The database as it is now, to be read later."""
        return Snapshot(self._store, None, self)

    def prefixed_db(self, prefix: Buffer) -> PrefixedDB:
        """The part of the database whose keys begin with a prefix."""
        return PrefixedDB(self._store, self, key_bytes("prefix", prefix))

    # -- Looking after it ------------------------------------------------------------------

    def compact_range(
        self,
        *,
        start: Buffer | None = None,
        stop: Buffer | None = None,
        force: bool | None = False,
        progress: Callable[[CompactionProgress], object] | None = None,
    ) -> None:
        """Write what is in memory to tables, and merge all tables of a range, level by level.

        What lies deepest stays as it is where nothing is merged with it, but for ``force``: then
        all tables are written anew. ``progress`` is called now and then, in this thread. What it
        raises ends the compaction, as an interruption does: what was merged until then stays so.
        """
        low, high = optional_key("start", start), optional_key("stop", stop)
        check_progress(progress)
        self._store.check_open()
        wrap = self._store.comparator.wrap
        if wrap is not None:
            low = None if low is None else wrap(low)
            high = None if high is None else wrap(high)
        self._store.compact_range(low, high, flag("force", force), progress)

    def refilter(
        self,
        *,
        dry_run: bool | None = False,
        levels: Iterable[int] | None = None,
        max_bytes: int | str | None = None,
        bytes_per_second: int | str | None = None,
        progress: Callable[[RefilterProgress], object] | None = None,
    ) -> RefilterReport:
        """Give tables the filters that they would be given today; their data stay as they are.

        Tables that were moved, or written under another configuration or for a smaller tree, are
        copied with new filters, those first that save the most. ``dry_run`` only tells which and
        why. ``levels`` are the levels to look at, ``max_bytes`` how many bytes of tables are taken
        at most, the first table in any case, and ``bytes_per_second`` the pace; both may be text
        such as ``"20 MiB"``. ``progress`` is called in this thread after each; what it raises ends
        the refiltering, as an interruption does, and the tables that were done stay so.
        """
        asked, most = checked_levels(levels), optional_size("max_bytes", max_bytes)
        pace = optional_size("bytes_per_second", bytes_per_second)
        check_progress(progress)
        self._store.check_open()
        return self._store.refilter(
            dry_run=flag("dry_run", dry_run),
            levels=asked,
            max_bytes=most,
            bytes_per_second=pace,
            progress=progress,
        )

    def checkpoint(
        self,
        path: str | bytes | os.PathLike[str],
        *,
        flush: bool | None = False,
        progress: Callable[[CheckpointProgress], object] | None = None,
    ) -> CheckpointReport:
        """Copy the database as it is at this moment to another directory, while it goes on.

        The directory must not be there yet, or be empty; the one above it has to be there. This
        engine and LevelDB open the copy, and what happens to one of the two does not happen to the
        other. Tables are linked, or copied where the file system does not link. What is in memory
        is copied as the log has it; with ``flush`` it is written to tables before. When this
        returns the copy survives a loss of power.

        ``progress`` is called in this thread before the first table and after each. What it raises
        leaves nothing of the copy, and so does any error or interruption; a crash leaves a
        directory without CURRENT, which is no database.
        """
        check_progress(progress)
        return checkpoint.take(
            self._store,
            opening.directory_of(path, "path"),
            flush=flag("flush", flush),
            progress=progress,
        )

    def flush(self) -> None:
        """Write what is in memory to tables."""
        self._store.flush()

    def resume(self) -> None:
        """Go on after a failure that was mended, such as a full disk; raise it if it still stands.

        The next write that needs to does the same. After a failed sync nothing does: the database
        has to be closed and opened again.
        """
        self._store.resume()

    def wait_until_idle(self) -> None:
        """Return when nothing is left to be flushed and no level is full."""
        self._store.check_open()
        self._store.wait_until_idle()

    def approximate_size(self, start: Buffer, stop: Buffer) -> int:
        """About how many bytes of table files a range takes."""
        return self.approximate_sizes((start, stop))[0]

    def approximate_sizes(self, *ranges: Sequence[Buffer]) -> list[int]:
        """The same of many ``(start, stop)`` pairs, in order."""
        self._store.check_open()
        return inspection.approximate_sizes(self._store, ranges)

    def get_property(self, name: bytes) -> bytes | None:
        """One of LevelDB's properties, such as ``b"leveldb.stats"``; None for an unknown name."""
        name = key_bytes("name", name)
        self._store.check_open()
        return inspection.get_property(self._store, name)

    def explain(self, key: Buffer) -> Explanation:
        """Which memtables, filters and blocks answer for a key, and why."""
        whole = key_bytes("key", key)
        self._store.check_open()
        return lookups.explain(self._store, whole)

    def filters(self) -> tuple[LevelFilters, ...]:
        """What every level is configured to use, and what its tables really carry."""
        self._store.check_open()
        return inspection.filters(self._store)

    def advise(
        self,
        *,
        budget: str | None = None,
        read_cost: str | None = None,
        absent_share: float | None = None,
        families: Iterable[str] | None = None,
    ) -> TreeAdvice:
        """What the filters of all levels are, what would be best, and what refiltering costs.

        What is not said is as configured. Without a budget there either, it is what the filters
        take now.
        """
        self._store.check_open()
        asked = {
            "budget": budget,
            "read_cost": read_cost,
            "absent_share": absent_share,
            "families": families,
        }
        return drift.advise(self._store, {k: v for k, v in asked.items() if v is not None})

    def stats(self) -> Stats:
        """What there is and what was counted since the database was opened."""
        self._store.check_open()
        return inspection.stats(self._store)

    @property
    def name(self) -> str | bytes | os.PathLike[str]:
        """The directory, as it was given."""
        return self._name

    @property
    def closed(self) -> bool:
        """Whether it is closed."""
        return self._store.closed_by is not None

    def close(self) -> None:
        """Stop, and let others open it. What was written is in the log, and is found again."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __repr__(self) -> str:
        closed = " (closed)" if self.closed else ""
        return f"<lsm.DB with name {self._name!r}{closed} at {id(self):#x}>"
