"""A filter's file: written whole or not at all, and read by mapping it into memory."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from mmap import ACCESS_READ, mmap
from typing import Any, TypeAlias, TypeVar

from filters.errors import FilterError

Path: TypeAlias = "str | bytes | os.PathLike[str] | os.PathLike[bytes]"
Opened = TypeVar("Opened")


def write(path: Path, data: bytes) -> None:
    """Put these bytes in the place of the file, which readers see as it was or as it is to be.

    They are on the disk when this returns. On an error the file is as it was, and no other is left.
    """
    place = os.path.realpath(os.fsdecode(path))  # what a link leads to, for it to go on doing that
    folder = os.path.dirname(place)
    temporary = os.path.join(folder, f".lsm-filters-{os.urandom(8).hex()}.tmp")
    try:
        with open(temporary, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, place)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    _sync_folder(folder)


def opened(path: Path, opener: Callable[[Any], Opened], *, mapped: bool) -> Opened:
    """What the opener makes of a file's bytes; an error about these names the file."""
    name = os.fsdecode(path)
    data = _read(name, mapped=mapped)
    try:
        return opener(data)
    except FilterError as error:
        raise type(error)(f"{name}: {error}") from error


def _read(name: str, *, mapped: bool) -> bytes | mmap:
    """The bytes of a file, or a read-only mapping, which lives as long as views of it do."""
    with open(name, "rb") as file:
        if mapped and os.fstat(file.fileno()).st_size:  # nothing cannot be mapped
            return mmap(file.fileno(), 0, access=ACCESS_READ)
        return file.read()


def _sync_folder(folder: str) -> None:
    if sys.platform == "win32":  # pragma: no cover - no such thing there
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
