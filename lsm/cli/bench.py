"""The command bench: how fast a store is on its own keys, and what its filters spare it."""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Any

import attrs
import click

import lsm
from lsm.cli import options, output
from lsm.cli.entries import reading
from lsm.cli.mistakes import Failure
from lsm.cli.progress import Meter
from lsm.stats import Counters

_ROUNDS = 5
_LOOK_EVERY = 4096


@attrs.frozen
class _Row:
    """What an operation took: the fastest of some rounds."""

    operation: str
    count: int
    ns: float


@click.command(short_help="Measure a store on its own keys.")
@options.path
@click.option("--count", type=click.IntRange(1, 10_000_000), default=10_000, show_default=True,
              help="Take so many keys, drawn from all.")  # fmt: skip
@click.option("--seed", type=int, default=0, show_default=True, help="Draw them by this number.")
@click.option("--write", is_flag=True, help="Put them as well, into a store that is thrown away.")
@options.as_json
def bench(path: str, count: int, seed: int, write: bool, as_json: bool) -> None:
    """Measure lookups and a scan on a store's own keys, and count what its filters spare.

    Absent keys are keys of the store with another last byte, or one byte more. Nothing in the store
    changes. Everything is asked once before it is measured, so that blocks and filters that have
    room in the caches are in memory.
    """
    rng = random.Random(seed)
    with reading(path) as db:
        keys = _drawn(db, count, rng)
        if not keys:
            raise Failure(f"{path}: it has no keys to ask for")
        absent = [key for key in (_changed(key, rng) for key in keys) if db.get(key) is None]
        rows = [
            _timed("get, present", len(keys), lambda: _get_all(db, keys)),
            _timed("get, absent", len(absent), lambda: _get_all(db, absent)),
            _timed("get_many, present", len(keys), lambda: db.get_many(keys)),
            _timed("scan", len(keys), lambda: _scan(db, len(keys))),
        ]
        before = _counted(db)
        _get_all(db, absent)
        after = _counted(db)
        values = db.get_many(keys)
    if write:
        rows.append(_puts(keys, values))
    spared = {name: after[name] - before[name] for name in after}
    if as_json:
        output.document(
            {"path": path, "absent": {"lookups": len(absent), **spared}}
            | {"operations": [attrs.asdict(row) for row in rows]}
        )
        return
    output.table(
        ("operation", "count", "ns each", "in a second"),
        [
            (row.operation, f"{row.count:,}", f"{row.ns:,.0f}", f"{1e9 / row.ns:,.0f}")
            for row in rows
            if row.count
        ],
        left=("operation",),
    )
    spared_by = f"filters said no {spared['skipped']:,} times"
    output.line(f"{len(absent):,} lookups of absent keys: {spared_by};")
    output.line(
        f"{spared['false_positives']:,} blocks were read in vain, "
        f"and {spared['unasked']:,} without a filter to ask"
    )


def _drawn(db: lsm.DB, count: int, rng: random.Random) -> list[bytes]:
    """So many keys, each with the same chance, in no order."""
    drawn: list[bytes] = []
    with Meter("drawing keys", None, "keys") as meter:
        for seen, key in enumerate(db.iterator(include_value=False, fill_cache=False)):
            if len(drawn) < count:
                drawn.append(key)
            elif (place := rng.randrange(seen + 1)) < count:
                drawn[place] = key
            if seen % _LOOK_EVERY == 0:
                meter.reach(seen)
    rng.shuffle(drawn)
    return drawn


def _changed(key: bytes, rng: random.Random) -> bytes:
    if not key or rng.random() < 0.5:
        return key + bytes((rng.randrange(256),))
    return key[:-1] + bytes((rng.randrange(256),))


def _timed(operation: str, count: int, run: Callable[[], object]) -> _Row:
    run()
    best = float("inf")
    for _ in range(_ROUNDS):
        start = time.perf_counter_ns()
        run()
        best = min(best, time.perf_counter_ns() - start)
    return _Row(operation, count, max(1.0, best) / max(1, count))


def _get_all(db: lsm.DB, keys: Sequence[bytes]) -> None:
    get = db.get
    for key in keys:
        get(key)


def _scan(db: lsm.DB, count: int) -> None:
    entries = iter(db.iterator())
    for _ in range(count):
        if next(entries, None) is None:
            break


def _puts(keys: Sequence[bytes], values: Sequence[Any]) -> _Row:
    """The same entries in a new store, which is removed."""
    with (
        tempfile.TemporaryDirectory(prefix="lsm-bench-") as directory,
        lsm.DB(f"{directory}/db", create_if_missing=True) as db,
    ):
        start = time.perf_counter_ns()
        for key, value in zip(keys, values, strict=True):
            db.put(key, value)
        return _Row("put", len(keys), (time.perf_counter_ns() - start) / len(keys))


def _counted(db: lsm.DB) -> dict[str, int]:
    """What became of lookups until now."""
    all_counters: list[Counters] = [each.counters for each in db.stats().filters]
    return {
        "skipped": sum(each.skipped for each in all_counters),
        "false_positives": sum(each.false_positives for each in all_counters),
        "unasked": sum(
            each.blocks_read - each.true_positives - each.false_positives for each in all_counters
        ),
    }


COMMANDS = (bench,)
