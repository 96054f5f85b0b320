"""Cassandra's ``Filter.db``: its version is in its name, and nothing is over its bytes.

What is known of a filter whose version nobody tells is all but its answers: probes, words and fill
are the same in each, the order of bytes and of a key's hashes is not. Its keys are those of the
``Index.db`` beside it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from filters import CassandraBloomFilter, cassandra, sizing
from filters.errors import CorruptFilterError
from lsm.survey.cassandra_index import keys_of
from lsm.survey.found import FileFound, FilterFound, Guard
from lsm.survey.source import Source

# nb-1-big-Filter.db, nb-3g7k_0dxq_4ga0g2v31w3z1xm0vh-big-Filter.db, foo-atable-ka-1-Filter.db
_NAME = re.compile(
    r"(?P<sstable>(?:.+-)?(?P<version>[a-z]{2})-[0-9a-z_]+(?:-[a-z]+)?)-Filter\.db", re.DOTALL
)

# What stands beside it and holds a checksum, of other bytes.
_CHECKSUMS = ("Digest.crc32", "Digest.adler32", "Digest.sha1", "CRC.db")

_ANY_VERSION = "na"
_FILTER, _INDEX = "Filter.db", "Index.db"
_WITHOUT_INDEX = "d"  # the first letter of versions that have tries in its place
_BEFORE_VARINTS = "jkl"


def version_of(path: str) -> str | None:
    """The version in the name of a ``Filter.db``; None for a name that has none."""
    match = _NAME.fullmatch(os.path.basename(path))
    return match["version"] if match else None


def is_one(path: str) -> bool:
    """Whether a file is called as Cassandra calls its filters."""
    return os.path.basename(path) == "Filter.db" or version_of(path) is not None


def found(source: Source, version: str | None = None) -> FileFound:
    """The filter of a file, of an SSTable of the version given, else of that in its name.

    ValueError for a version given that is none of Cassandra's.
    """
    if version is not None:
        cassandra.layout_of(version)
    wanted = version_of(source.path) if version is None else version
    problem = _unknown(source, wanted)
    try:
        data = source.read(0, source.size, "filter")
        read = CassandraBloomFilter.from_bytes(
            data, sstable_version=_ANY_VERSION if problem else wanted or _ANY_VERSION
        )
    except CorruptFilterError as error:
        return _file(source, wanted, (), (f"{source.path}: at byte 0: {error}",))
    if not source.size:
        problem = ""  # every key is present, in any version
    return _file(source, wanted, (_filter(source, read, wanted, problem),), ())


def _unknown(source: Source, version: str | None) -> str:
    """Why the filter cannot be asked; empty where its version is known."""
    if version is None:
        return (
            f"{source.path}: at byte 0: its name does not say of which SSTable's version it is: "
            "tell the version, two letters such as 'nb'"
        )
    try:
        cassandra.layout_of(version)
    except ValueError as error:
        return f"{source.path}: at byte 0: {error}"
    return ""


def _filter(
    source: Source, read: CassandraBloomFilter, version: str | None, problem: str
) -> FilterFound:
    parameters: dict[str, Any] = {"probes": read.num_probes, "bits": read.num_bits}
    form = "Bloom filter of Cassandra"
    if not read.num_bits:
        form = "no filter at all: every key is present"
    elif not problem and version is not None:
        layout = cassandra.layout_of(version)
        parameters["sstable version"] = version
        parameters["words"] = "reversed" if layout.reversed_words else "as they are"
        parameters["probes from"] = "h1" if layout.old_order else "h2"
    if read.num_bits:
        parameters["estimated keys"] = round(sizing.estimate_num_keys(read))
    return FilterFound(
        where="whole file",
        offset=0,
        size=source.size,
        family=cassandra.FAMILY,
        form=form,
        guard=Guard(),
        parameters=parameters,
        fill=read.fill,
        expected_fpr=read.expected_fpr,
        problem=problem,
        reader=None if problem else read,
        keys=None if problem or version is None else _keys(source.path, version),
    )


def _keys(path: str, version: str) -> Callable[[], Iterator[bytes]] | None:
    """What gives the keys of the SSTable; None where its index is not here."""
    index = _index_of(path)
    if index is None or version[0] in _WITHOUT_INDEX:
        return None
    return partial(keys_of, index, has_varints=version[0] not in _BEFORE_VARINTS)


def _index_of(path: str) -> str | None:
    if not path.endswith(_FILTER):
        return None
    index = path.removesuffix(_FILTER) + _INDEX
    return index if os.path.isfile(index) else None


def _file(
    source: Source,
    version: str | None,
    found: tuple[FilterFound, ...],
    problems: tuple[str, ...],
) -> FileFound:
    return FileFound(
        path=source.path,
        size=source.size,
        store="Cassandra",
        kind="filter",
        facts={
            "version": version or "unknown",
            "checksum": _checksum(source.path),
            "keys": os.path.basename(_index_of(source.path) or "") or "not at hand",
        },
        filters=found,
        problems=problems,
    )


def _checksum(path: str) -> str:
    """What to say of checksums: none is over a ``Filter.db``, whatever stands beside it."""
    match = _NAME.fullmatch(os.path.basename(path))
    directory = os.path.dirname(path)
    names = [f"{match['sstable']}-{name}" for name in _CHECKSUMS] if match else []
    there = [name for name in names if os.path.exists(os.path.join(directory, name))]
    if not there:
        return "none"
    return f"none: {' and '.join(there)} cover{'s' * (len(there) == 1)} Data.db, not this file"
