"""Repairing and destroying databases: the public functions, for which ``lsm.repairing`` works."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from lsm import foreign, opening
from lsm.arguments import flag
from lsm.attempt import BESIDE, Attempt, make_directory
from lsm.disk import filenames
from lsm.disk.filenames import Kind
from lsm.dry_run import DryRunStorage
from lsm.errors import IOError
from lsm.options import NOT_GIVEN, NotGiven
from lsm.quarantine import LOST, UNREADABLE
from lsm.repair_report import RepairProgress, Report
from lsm.repairing import Repair, is_directory
from lsm.storage import FileSystem

if TYPE_CHECKING:
    from lsm.storage import Storage
    from policies import FilterPolicy, LevelPolicies

_log = logging.getLogger("lsm")

__all__ = [
    "LOST",
    "UNREADABLE",
    "Report",
    "destroy_db",
    "files_to_destroy",
    "repair",
    "repair_db",
]


def repair_db(
    name: str | bytes | os.PathLike[str],
    *,
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
    storage: Storage | None = None,
    dry_run: bool | None = False,
) -> Report | None:
    """Make a database of what can still be read in a directory; an empty one where nothing is.

    It must not be open. The options are those of ``DB``, for the tables that are written anew; not
    given, those that the database was opened with last. With its manifests gone nobody can tell
    whether the comparator is the right one: under another, all tables look damaged, and none is
    read. What is left out moves into ``lost/``; a table that cannot be read, or not all of it, is
    kept where it is, with ``.unreadable`` behind its name. What happened is logged; ``repair``
    returns it as well.

    With ``dry_run`` no byte changes, and what would happen is returned. What would be written then
    goes into temporary files, and so takes its room there.
    """
    report = repair(
        name,
        comparator=comparator,
        comparator_name=comparator_name,
        config=config,
        storage=storage,
        paranoid_checks=paranoid_checks,
        write_buffer_size=write_buffer_size,
        max_open_files=max_open_files,
        lru_cache_size=lru_cache_size,
        block_size=block_size,
        block_restart_interval=block_restart_interval,
        max_file_size=max_file_size,
        compression=compression,
        bloom_filter_bits=bloom_filter_bits,
        filter_policy=filter_policy,
        filter_layout=filter_layout,
        filter_partition_blocks=filter_partition_blocks,
        filter_prefix=filter_prefix,
        filter_prefix_until=filter_prefix_until,
        filter_whole_keys=filter_whole_keys,
        filter_budget=filter_budget,
        filter_read_cost=filter_read_cost,
        filter_absent_share=filter_absent_share,
        filter_families=filter_families,
        filter_heat=filter_heat,
        dry_run=dry_run,
    )
    return report if dry_run else None


def repair(
    name: str | bytes | os.PathLike[str],
    *,
    comparator: Callable[[bytes, bytes], int] | None = None,
    comparator_name: bytes | None = None,
    config: str | os.PathLike[str] | None = None,
    storage: Storage | None = None,
    dry_run: bool | None = False,
    progress: Callable[[RepairProgress], object] = bool,
    **given: Any,
) -> Report:
    """Repair as ``repair_db`` does, with the same options, and say what was kept and lost.

    ``progress`` is called after each table that was read; what it raises ends the repair, which
    then has changed nothing.
    """
    dry_run = flag("dry_run", dry_run)
    storage = FileSystem() if storage is None else storage
    directory = storage.absolute(opening.directory_of(name))
    order = opening.comparator_of(comparator, comparator_name)
    if not dry_run:
        opening.check_writable(directory, order)
    foreign.check(storage, directory)
    options = opening.options_of(storage, directory, config, given)
    with Attempt(storage, directory) as attempt:
        if dry_run:
            if storage.exists(directory):
                attempt.lock_shared()
            overlay = DryRunStorage(storage)
            make_directory(overlay, directory)
            return Repair(overlay, directory, order, options, _DryRunLog(_log), progress).run()
        attempt.create_directory()
        attempt.lock_exclusively()
        return Repair(storage, directory, order, options, progress=progress).run()


class _DryRunLog(logging.LoggerAdapter[logging.Logger]):
    """Marks every line of a dry run's log as such."""

    def process(self, msg: Any, kwargs: Any) -> tuple[Any, Any]:
        """The line with the mark in front."""
        return f"dry run: {msg}", kwargs


def destroy_db(name: str | bytes | os.PathLike[str], *, storage: Storage | None = None) -> None:
    """Remove a database's files, and its directory if nothing else is in it.

    Files of others stay, and so does what repairing set aside or could not read. Nothing happens
    where there is no such directory. A database that is open is refused, and so is another store's.
    """
    storage = FileSystem() if storage is None else storage
    directory = storage.absolute(opening.directory_of(name))
    if not _is_there(storage, directory):
        return
    foreign.check(storage, directory)
    with Attempt(storage, directory) as attempt:
        attempt.lock_exclusively()
        for each in _ours(storage, directory):
            storage.remove(f"{directory}/{each}")
        storage.remove(f"{directory}/{filenames.LOCK}")
        with contextlib.suppress(IOError):  # there is something else in it
            storage.remove_directory(directory)


def files_to_destroy(
    name: str | bytes | os.PathLike[str], *, storage: Storage | None = None
) -> list[str]:
    """The names of the files that ``destroy_db`` would remove, its lock left out; changes nothing.

    A database that is open is refused, and so is another store's.
    """
    storage = FileSystem() if storage is None else storage
    directory = storage.absolute(opening.directory_of(name))
    if not _is_there(storage, directory):
        return []
    foreign.check(storage, directory)
    with Attempt(storage, directory) as attempt:
        attempt.lock_shared()
        return _ours(storage, directory)


def _is_there(storage: Storage, directory: str) -> bool:
    try:
        storage.list(directory)
    except IOError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            return False
        raise
    return True


def _ours(storage: Storage, directory: str) -> list[str]:
    """The files that go with a database, but for its lock, in the order in which they do.

    CURRENT first: what an interruption leaves is no database any more, rather than a bad one.
    """
    names = sorted(storage.list(directory), key=lambda each: each != filenames.CURRENT)
    return [
        each
        for each in names
        if _is_ours(each) and not is_directory(storage, f"{directory}/{each}")
    ]


def _is_ours(name: str) -> bool:
    """Whether a file of this name is removed with a database; its lock goes last."""
    parsed = filenames.parse(name)
    if parsed is not None:
        return parsed[0] is not Kind.LOCK
    return name in BESIDE
