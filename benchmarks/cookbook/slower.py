"""Programs with a filter in front of what is slower, and a store instead of another one."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import filters
import lsm
from benchmarks.cookbook.comparison import Comparison, Side, load, names, set_bytes


def join_prefilter(count: int, directory: Path) -> Iterator[Comparison]:
    """A file joined with a fiftieth of its rows."""
    program = load("join_prefilter")
    pa, pq = import_module("pyarrow"), import_module("pyarrow.parquet")
    path = directory / "orders.parquet"
    pq.write_table(
        pa.table({"order": range(count), "text": [f"order {number}" for number in range(count)]}),
        path,
    )
    few = range(0, count, 50)
    late = pa.table({"order": few, "days": [9] * len(few)})
    yield Comparison(
        "join_prefilter",
        "read and join",
        count,
        Side(
            "filtered while it is read",
            lambda: program.prefiltered(path, "order", late).join(late, "order", join_type="inner"),
        ),
        Side(
            "all rows joined",
            lambda: pq.read_table(path).join(late, "order", join_type="inner"),
        ),
        lambda ours, other: bool(ours.sort_by("order") == other.sort_by("order")),
    )


def stream_dedup(count: int, directory: Path) -> Iterator[Comparison]:
    """A stream in which everything comes twice."""
    program = load("stream_dedup")
    stream = [f"https://example.org/{number % (count // 2)}" for number in range(count)]

    def by_filter() -> tuple[list[str], int]:
        seen = filters.ScalableBloomFilter.with_capacity(fpr=0.001)
        return list(program.fresh(stream, seen)), seen.size_in_bytes

    def by_set() -> list[str]:
        seen: set[str] = set()
        taken = []
        for item in stream:
            if item not in seen:
                seen.add(item)
                taken.append(item)
        return taken

    yield Comparison(
        "stream_dedup",
        "one by one",
        count,
        Side("a filter that grows", by_filter, by_filter()[1]),
        Side("a set", by_set, set_bytes(stream)),
        lambda ours, other: set(ours[0]) <= set(other) and len(ours[0]) > 0.99 * len(other),
    )


def slow_store(count: int, directory: Path) -> Iterator[Comparison]:
    """Keys that are not in a database of SQLite's, in a file that the system has in memory."""
    program, count = load("slow_store"), count // 10
    store = sqlite3.connect(directory / "users.sqlite")
    store.execute("create table pairs (key primary key, value)")
    store.executemany(
        "insert into pairs values (?, ?)", ((name, 1) for name in names("user", count))
    )
    store.commit()
    absent = names("guest", count)
    users = program.Guarded(store, count)
    ask = "select value from pairs where key = ?"
    yield Comparison(
        "slow_store",
        "absent keys, one by one",
        count,
        Side("a filter before it", lambda: [users.get(key) for key in absent]),
        Side("the store", lambda: [store.execute(ask, (key,)).fetchone() for key in absent]),
        lambda ours, other: ours == other,
    )
    store.close()


def from_plyvel(count: int, directory: Path) -> Iterator[Comparison]:
    """The same program with either library, opening and closing with it."""
    program, plyvel, count = load("from_plyvel"), import_module("plyvel"), count // 10

    def by(library: Any) -> Callable[[], Any]:
        return lambda: program.work(library, tempfile.mkdtemp(dir=directory), count)

    yield Comparison(
        "from_plyvel",
        "the program",
        count,
        Side("lsm", by(lsm)),
        Side("plyvel", by(plyvel)),
        lambda ours, other: ours == other,
    )
