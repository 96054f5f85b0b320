"""How much memory a database takes at most while everything is put in; where Linux tells.

``python -m benchmarks.engine.peak ENGINE PATH KEYS BATCH SEED`` does that in a process of its own,
which says first what it has before the database is opened. It is watched from outside, so that
watching takes no part in it.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path

from benchmarks.engine import memory
from benchmarks.engine.data import VALUE_BYTES, cut
from benchmarks.engine.engine import Pairs
from benchmarks.engine.engines import engine
from benchmarks.engine.settings import Scale
from benchmarks.errors import UnavailableError
from benchmarks.keys import KEY_BYTES, random_bytes

_BETWEEN_LOOKS = 0.002

# No block has two of as many.
_VALUES = 1 << 16


def while_loading(name: str, path: Path, scale: Scale) -> int:
    """The most bytes that loading so many keys until nothing is left to do has taken, at any time.

    They are those of the process's own memory; what is mapped of files is not counted.
    """
    if memory.resident() is None:
        raise UnavailableError(f"this system has no {memory.STATUS}, or it does not tell")
    given = (name, str(path), str(scale.keys), str(scale.batch), str(scale.seed))
    with (
        tempfile.TemporaryFile() as stderr,
        subprocess.Popen(
            [sys.executable, "-m", "benchmarks.engine.peak", *given],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            stdout=subprocess.PIPE,
            stderr=stderr,
        ) as process,
    ):
        assert process.stdout is not None
        before = process.stdout.readline()
        most = _most(Path(f"/proc/{process.pid}/status"))
        if process.wait():
            stderr.seek(0)
            raise RuntimeError(stderr.read().decode(errors="replace").strip())
    return max(0, most - int(before))


def _most(status: Path) -> int:
    """The most that a process has had until it has ended."""
    most = 0
    while (now := memory.resident(status)) is not None:
        most = max(most, now.own)
        time.sleep(_BETWEEN_LOOKS)
    return most


def batches(keys: int, batch: int, seed: int) -> Iterator[Pairs]:
    """Entries like the others', made as they are needed; the values come again after a while."""
    rng = random.Random(seed)
    some = random_bytes(rng, KEY_BYTES * keys)
    halves = cut(random_bytes(rng, VALUE_BYTES // 2 * min(keys, _VALUES)), VALUE_BYTES // 2)
    values = cycle([half * 2 for half in halves])
    yield ()  # all is made that stays
    for at in range(0, keys, batch):
        piece = cut(some[KEY_BYTES * at : KEY_BYTES * (at + batch)], KEY_BYTES)
        yield list(zip(piece, islice(values, len(piece)), strict=True))


def main(name: str, path: str, keys: str, batch: str, seed: str) -> None:
    """Say what there is before, load everything, wait until nothing is left to do, and close."""
    measured = engine(name)
    given = batches(int(keys), int(batch), int(seed))
    next(given)
    before = memory.trimmed()
    assert before is not None
    print(before.own, flush=True)
    db = measured.open(Path(path), create=True)
    for pairs in given:
        measured.put_batch(db, pairs)
    measured.settle(db)
    measured.close(db)


if __name__ == "__main__":
    main(*sys.argv[1:])
