"""The machine's own limits, from loops in C: ``floor.c``, compiled when it is first used."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Self

from benchmarks.errors import UnavailableError

SOURCE = Path(__file__).with_name("floor.c")
LINE_BYTES = 64
COMPILERS = ("cc", "gcc", "clang")


class Memory:
    """Memory allocated as a filter's own is: on a huge page's boundary, in huge pages if told.

    A context manager, which releases it.
    """

    def __init__(self, size: int, *, huge: bool):
        self._library = library()
        self._lines = size // LINE_BYTES
        self._next = 0
        self._start: int | None = self._library.floor_allocate(size, huge)
        if not self._start:
            raise UnavailableError(f"there is no memory for {size >> 20} MiB")

    def touch(self, count: int, distance: int) -> None:
        """Load from so many random lines, each prefetched so many before; others at every call."""
        self._library.floor_touch(self._start, self._lines, count, distance, self._next)
        self._next += count + distance

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self._library.floor_release(self._start)
        self._start = None


@cache
def library() -> ctypes.CDLL:
    """The compiled loops; UnavailableError says why there are none."""
    with tempfile.TemporaryDirectory(prefix="lsm-floor-") as folder:
        target = Path(folder) / "floor.so"
        _compile(target)
        loaded = ctypes.CDLL(str(target))
    loaded.floor_allocate.argtypes = (ctypes.c_size_t, ctypes.c_int)
    loaded.floor_allocate.restype = ctypes.c_void_p
    loaded.floor_release.argtypes = (ctypes.c_void_p,)
    loaded.floor_release.restype = None
    loaded.floor_touch.argtypes = (ctypes.c_void_p, *[ctypes.c_uint64] * 4)
    loaded.floor_touch.restype = ctypes.c_uint64
    return loaded


def compiler() -> str | None:
    """The C compiler at hand: what CC says, or the first one found."""
    wanted = (os.environ["CC"],) if os.environ.get("CC") else COMPILERS
    return next((path for path in map(shutil.which, wanted) if path), None)


def _compile(target: Path) -> None:
    command = compiler()
    if command is None:
        raise UnavailableError("there is no C compiler at hand: install one, or set CC")
    done = subprocess.run(
        [command, "-O2", "-std=gnu99", "-shared", "-fPIC", "-o", str(target), str(SOURCE)],
        capture_output=True,
        text=True,
    )
    if done.returncode:
        first_line = (done.stderr.strip().splitlines() or ["no message"])[0]
        raise UnavailableError(f"{command} cannot compile {SOURCE.name}: {first_line}")
