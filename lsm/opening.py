"""Opening a database: detecting foreign directories, locking, options, creating, recovery."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from lsm import foreign
from lsm import options as engine_options
from lsm.arguments import flag
from lsm.attempt import OPTIONS_NAME, SEED_NAME, Attempt
from lsm.comparator import BYTEWISE, Comparator, CustomComparator, ForeignComparator
from lsm.comparators import ForeignOrder
from lsm.disk import filenames
from lsm.disk.filenames import Kind
from lsm.errors import IOError, NotADatabaseError
from lsm.manifest import Manifest
from lsm.storage import FileSystem
from lsm.store import Store, watch_for_forks

if TYPE_CHECKING:
    from lsm.options import Options
    from lsm.storage import Storage
    from policies import LevelPolicies

_SEED_BYTES = 8


def directory_of(name: str | bytes | os.PathLike[str], argument: str = "name") -> str:
    """The path that this argument stands for, as str."""
    if isinstance(name, os.PathLike):
        name = os.fspath(name)
    if not isinstance(name, str | bytes):
        raise TypeError(f"'{argument}' is a path, as str, bytes or Path, not {type(name).__name__}")
    try:
        if isinstance(name, bytes):
            return os.fsdecode(name)
        name.encode(sys.getfilesystemencoding())
    except UnicodeError as error:
        raise ValueError(f"'{argument}' cannot be a path in this system: {error}") from error
    return name


def comparator_of(compare: Callable[[bytes, bytes], int] | None, name: bytes | None) -> Comparator:
    """The comparator that ``comparator=`` and ``comparator_name=`` mean."""
    if (compare is None) != (name is None):
        raise ValueError("'comparator' and 'comparator_name' must be specified together")
    if compare is None or name is None:
        return BYTEWISE
    if not isinstance(name, bytes):
        raise TypeError(f"comparator_name is bytes, not {type(name).__name__}")
    if not callable(compare):
        raise TypeError("comparator is a function of two keys that says -1, 0 or 1")
    text = name.decode("utf-8", "surrogateescape")
    if isinstance(compare, ForeignOrder):
        return ForeignComparator(text, compare)
    return CustomComparator(text, compare)


def check_writable(directory: str, comparator: Comparator) -> None:
    """ValueError where tables are to be written in an order that is another program's."""
    if isinstance(comparator, ForeignComparator):
        raise ValueError(
            f"{directory}: the order {comparator.name!r} is that of {comparator.order.of}, and "
            "nothing is written in it: open the database with read_only=True, and copy what is to "
            "be changed into a database of your own"
        )


def open_store(
    directory: str,
    comparator: Comparator,
    given: Mapping[str, Any],
    *,
    create_if_missing: bool | None = False,
    error_if_exists: bool | None = False,
    read_only: bool | None = False,
    config: str | os.PathLike[str] | None = None,
    storage: Storage | None = None,
) -> Store:
    """The open database in a directory, which is left as it was unless it is returned."""
    create = flag("create_if_missing", create_if_missing)
    error_if_exists = flag("error_if_exists", error_if_exists)
    read_only = flag("read_only", read_only)
    if read_only and create:
        raise ValueError("a database opened with read_only=True cannot be created: leave out one")
    storage = FileSystem() if storage is None else storage
    directory = storage.absolute(directory)
    if not read_only:
        check_writable(directory, comparator)
    seen = foreign.check(storage, directory)
    options = options_of(storage, directory, config, given)
    with Attempt(storage, directory) as attempt:
        if create:
            attempt.create_directory()
        lock = attempt.lock_shared() if read_only else attempt.lock_exclusively()
        exists = filenames.CURRENT in attempt.names
        if not exists:
            check_vacant(directory, attempt.names, create)
        if exists and error_if_exists:
            raise NotADatabaseError(
                f"{directory}: there is a database already (error_if_exists is true)"
            )
        if not exists:
            Manifest.create(storage, directory, comparator)
        policies = options.filters
        if not read_only:
            policies = policies.with_seed(seed_of(storage, directory))
            _save_options(storage, directory, options, attempt)
        store = Store(storage, directory, options, policies, comparator, lock, read_only)
        attempt.on_failure(store.close_in_this_thread)
        store.recover(seen.files_among(attempt.names), seen.edits)
        watch_for_forks(store)
        attempt.keep_lock()
        return store


def options_of(
    storage: Storage,
    directory: str,
    config: str | os.PathLike[str] | None,
    given: Mapping[str, Any],
) -> Options:
    """The options that are given, or else those that the database was opened with last.

    In ``given`` are keywords in plyvel's forms: ``compression`` may be bytes, and
    ``paranoid_checks`` anything that is true or false.
    """
    given = dict(given)
    if isinstance(given.get("compression"), bytes):
        given["compression"] = given["compression"].decode()
    if given.get("paranoid_checks") is not None:
        given["paranoid_checks"] = bool(given["paranoid_checks"])

    def kept(filters: LevelPolicies | None) -> Options | None:
        path = f"{directory}/{OPTIONS_NAME}"
        try:
            data = storage.read(path)
        except IOError:
            if storage.exists(path):
                raise
            return None
        return engine_options.from_kept(data, path, filters)

    return engine_options.effective(kept=kept, config=config, given=given)


def check_vacant(directory: str, names: Iterable[str], create: bool) -> None:
    """NotADatabaseError unless a new database may be created in a directory without CURRENT."""
    files = filenames.database_files(names)
    if files[Kind.TABLE] or files[Kind.LOG]:  # which a new database would remove as obsolete
        raise NotADatabaseError(
            f"{directory}: has tables or logs of a database whose {filenames.CURRENT} does not "
            "exist: lsm.repair_db() makes a database of them again, create_if_missing does not"
        )
    if not create:
        raise NotADatabaseError(f"{directory}: does not exist (create_if_missing is false)")


def _save_options(storage: Storage, directory: str, options: Options, attempt: Attempt) -> None:
    """Save the options in the directory, before the first table that uses them."""
    path = f"{directory}/{OPTIONS_NAME}"
    before = storage.read(path) if OPTIONS_NAME in attempt.names else None
    if before is not None:
        if engine_options.is_text_of(before, options):
            return
        attempt.on_failure(lambda: storage.replace(path, before, f"{path}.dbtmp"))
    storage.replace(path, options.to_toml().encode(), f"{path}.dbtmp")


def seed_of(storage: Storage, directory: str) -> int:
    """The secret seed of this database's filters; a new one where it was lost.

    Filters carry the seed that they were written with, so that tables need not be written anew.
    """
    path = f"{directory}/{SEED_NAME}"
    try:
        seed = storage.read(path)
    except IOError:
        seed = b""
    if len(seed) != _SEED_BYTES:
        seed = secrets.token_bytes(_SEED_BYTES)
        storage.replace(path, seed, f"{path}.dbtmp")
    return int.from_bytes(seed, "little")
