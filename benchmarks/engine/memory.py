"""How much memory a database takes, in a process that has nothing else; where Linux tells.

``python -m benchmarks.engine.memory ENGINE PATH WIDTH`` opens the database, looks up all keys that
come through stdin, each so many bytes wide, and prints what the process has come to have meanwhile.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import attrs

from benchmarks.engine.engines import engine
from benchmarks.errors import UnavailableError
from benchmarks.timing import fresh_loop

STATUS = Path("/proc/self/status")


@attrs.frozen
class Memory:
    """Bytes of the process's own, and bytes of files that are mapped and in memory."""

    own: int
    mapped: int


def taken(name: str, path: Path, keys: Sequence[bytes]) -> Memory:
    """What opening a database and looking up these keys takes, which are equally long."""
    if resident() is None:
        raise UnavailableError(f"this system has no {STATUS}, or it does not tell")
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.engine.memory", name, path, str(len(keys[0]))],
        input=b"".join(keys),
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stderr.decode(errors="replace").strip())
    return Memory(*json.loads(done.stdout))


def resident(status: Path | None = None) -> Memory | None:
    """What this process has now, or the one with this status; None where nothing tells."""
    try:
        lines = (status or STATUS).read_text().splitlines()
    except OSError:
        return None
    found = {name: value.split() for name, _, value in (line.partition(":") for line in lines)}
    if "RssAnon" not in found or "RssFile" not in found:
        return None
    return Memory(int(found["RssAnon"][0]) << 10, int(found["RssFile"][0]) << 10)


def trimmed() -> Memory | None:
    """What this process has when it has given back what it no longer needs, where Linux tells.

    What is free in its heap could be taken without anybody seeing it, by some engines more than by
    others: LevelDB allocates in pieces that fit everywhere.
    """
    gc.collect()
    with contextlib.suppress(OSError, AttributeError):  # no glibc
        ctypes.CDLL(None).malloc_trim(0)
    return resident()


def main(name: str, path: str, width: str) -> None:
    """Open, read all keys of the standard input, and print what that took as JSON."""
    data, size = sys.stdin.buffer.read(), int(width)
    keys = [data[at : at + size] for at in range(0, len(data), size)]
    measured = engine(name)
    before = trimmed()
    db = measured.open(Path(path))
    fresh_loop("subject(key)")(keys, measured.getter(db))
    after = resident()
    assert before is not None
    assert after is not None
    print(json.dumps([after.own - before.own, after.mapped - before.mapped]))
    measured.close(db)


if __name__ == "__main__":
    main(*sys.argv[1:])
