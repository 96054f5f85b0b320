"""What a file is, by its bytes and its name; which files of a directory are to be looked at."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from lsm import foreign
from lsm.storage import FileSystem, trying
from lsm.survey import bare, cassandra, parquet, table
from lsm.survey.found import FileFound
from lsm.survey.source import Source

_SUFFIXES = (".ldb", ".sst", ".parquet", ".parq")
_NUMBER = re.compile(r"([0-9]+)")
_TREES = ("LevelDB", "RocksDB", "Pebble", "lsm")
"""Stores whose files all lie in one directory."""


def look(path: str | os.PathLike[str], *, cassandra_version: str | None = None) -> FileFound:
    """What a file is, and the filters in it.

    With ``cassandra_version`` it is a ``Filter.db`` of that version, whatever its name. What nobody
    here knows is a file of no known store. lsm.IOError for what cannot be read, CorruptionError,
    which names file and offset, for what is damaged so that nothing of it can be told.
    """
    source = Source(path)
    is_cassandras = cassandra_version is not None or cassandra.is_one(source.path)
    if not is_cassandras and table.is_one(source):
        return table.found(source)  # which goes on reading it
    with source:
        if is_cassandras:
            return cassandra.found(source, cassandra_version)
        if parquet.is_one(source):
            return parquet.found(source)
        if bare.is_one(source):
            return bare.found(source)
        return _unknown(source)


def _unknown(source: Source) -> FileFound:
    begin, end = source.read(0, min(8, source.size), "first bytes"), source.end(8)
    return FileFound(
        path=source.path,
        size=source.size,
        store="unknown",
        kind="unknown",
        problems=(
            f"{source.path}: of no store that is known here: it begins at byte 0 with "
            f"{begin.hex()!r} and ends before byte {source.size} with {end.hex()!r}",
        ),
    )


def store_of(directory: str | os.PathLike[str]) -> str:
    """Whose database a directory is; empty for one that is nobody's, or holds others."""
    path = os.fspath(directory)
    seen, owner = foreign.look(FileSystem(), path)
    if owner is not None:
        return owner.store
    if seen.is_ours:
        return "lsm"
    return "LevelDB" if seen.is_like_leveldbs else ""


def files_of(path: str | os.PathLike[str]) -> Iterator[str]:
    """The files to look at: a file itself; of a directory, in order, what may have filters.

    These are tables, Cassandra's filters and Parquet files, in the order of their numbers; behind
    them those of the directories in it, but not of those in a database. Links to directories are
    not followed. lsm.IOError where something cannot be listed.
    """
    top = os.fspath(path)
    if not os.path.isdir(top):
        yield top
        return
    below = []
    with trying("list the directory", top):
        entries = sorted(os.scandir(top), key=lambda entry: _in_order(entry.name))
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            below.append(entry.path)
        elif entry.name.endswith(_SUFFIXES) or cassandra.is_one(entry.name):
            yield entry.path
    if store_of(top) not in _TREES:
        for each in below:
            yield from files_of(each)


def _in_order(name: str) -> list[tuple[bool, int, str]]:
    """A name so that 9 comes before 10."""
    return [
        (index % 2 == 0, int(part) if index % 2 else 0, part)
        for index, part in enumerate(_NUMBER.split(name))  # every second one is a number
    ]
