"""The row on memory: what a build takes above its keys, measured in a process of its own.

A peak belongs to a process: in one that has built other filters, memory that they gave back would
be taken again without a trace.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import attrs

from benchmarks.errors import UnavailableError
from benchmarks.filters.bench import Bench, Built
from benchmarks.filters.settings import Settings
from benchmarks.rows import NOT_MEASURED, Row

GROUP = "Memory"
ROOT = Path(__file__).parents[2]
TIMEOUT = 600


def peak_while_building(built: Built, bench: Bench) -> Row:
    """The row, or why there is none."""
    count = len(built.keys.keys)
    row = built.row(GROUP, "peak while building", "bytes/key")
    try:
        taken = peak(bench.settings, built.contender.name, built.kind, count)
    except UnavailableError as error:
        return attrs.evolve(row, verdict=NOT_MEASURED, reason=str(error))
    return attrs.evolve(row, value=taken / count, note="above the list of keys")


def peak(settings: Settings, name: str, kind: str, count: int) -> int:
    """How many bytes a contender takes at most while it builds, in a new process."""
    plain = attrs.asdict(settings, value_serializer=lambda _owner, _field, each: _plain(each))
    paths = filter(None, (str(ROOT), os.environ.get("PYTHONPATH")))
    wanted = json.dumps([plain, name, kind, count])
    try:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.filters.peak", wanted],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
        )
    except subprocess.TimeoutExpired as error:
        raise UnavailableError(f"the peak of {name} was not there in {TIMEOUT} s") from error
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        raise UnavailableError(f"the peak of {name} cannot be measured: {lines[-1]}")
    return int(done.stdout)


def _plain(each: object) -> object:
    return str(each) if isinstance(each, Path) else each
