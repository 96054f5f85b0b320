"""The names of the files in a database directory; all their numbers come from one counter."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from typing import TypeAlias

CURRENT = "CURRENT"
LOCK = "LOCK"

LAST_NUMBER = (1 << 62) - 1
"""The highest number that a file of a database is given."""

_MAX_NUMBER = (1 << 63) - 1  # a name with a higher one was given by nobody who counts


class Kind(enum.Enum):
    """What a file in a database directory is for."""

    LOG = "write-ahead log"
    TABLE = "table"
    MANIFEST = "manifest"
    CURRENT = "name of the manifest in use"
    LOCK = "lock"
    INFO_LOG = "info log"
    TEMPORARY = "file being written"

    __hash__ = object.__hash__  # that of Enum is written in Python


Files: TypeAlias = Mapping[Kind, Mapping[str, int]]
"""The files of a database in a directory: of each kind the names, and the number in each."""

_FIXED = {
    CURRENT: Kind.CURRENT,
    LOCK: Kind.LOCK,
    "LOG": Kind.INFO_LOG,
    "LOG.old": Kind.INFO_LOG,
}
_BY_SUFFIX = {
    "log": Kind.LOG,
    "ldb": Kind.TABLE,
    "sst": Kind.TABLE,
    "dbtmp": Kind.TEMPORARY,
}
_MANIFEST = "MANIFEST-"
_MOST_DIGITS = 19  # those of 2**63; any number of zeros may stand before them


def log_name(number: int) -> str:
    """The write-ahead log of this number."""
    return f"{number:06}.log"


def table_name(number: int) -> str:
    """The table of this number."""
    return f"{number:06}.ldb"


def old_table_name(number: int) -> str:
    """The table of this number as releases of LevelDB before 1.14 named it."""
    return f"{number:06}.sst"


def manifest_name(number: int) -> str:
    """The manifest of this number."""
    return f"{_MANIFEST}{number:06}"


def temporary_name(number: int) -> str:
    """The file of this number that is being written and will be renamed."""
    return f"{number:06}.dbtmp"


def parse(name: str) -> tuple[Kind, int] | None:
    """The kind of a file and its number, or 0; None for a name that no file of a database has."""
    digits, _, suffix = name.rpartition(".")
    kind = _BY_SUFFIX.get(suffix)
    if kind is None:
        if name in _FIXED:
            return _FIXED[name], 0
        if not name.startswith(_MANIFEST):
            return None
        kind, digits = Kind.MANIFEST, name[len(_MANIFEST) :]
    if not (digits.isdigit() and digits.isascii()):
        return None
    if len(digits) >= _MOST_DIGITS:
        digits = digits.lstrip("0") or "0"
        if len(digits) > _MOST_DIGITS or int(digits) > _MAX_NUMBER:
            return None
    return kind, int(digits)


def database_files(names: Iterable[str]) -> Files:
    """Those of these names that a file of a database can have."""
    files: dict[Kind, dict[str, int]] = {kind: {} for kind in Kind}
    for name in names:
        parsed = parse(name)
        if parsed is not None:
            files[parsed[0]][name] = parsed[1]
    return files
