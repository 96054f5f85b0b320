"""Programs of many processes and threads that make or ask one filter."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import filters
from benchmarks.cookbook.comparison import TASKS, Comparison, Side, load, names, set_bytes


def many_processes(count: int, directory: Path) -> Iterator[Comparison]:
    """Partitions that processes read: their filters, or their keys through a pipe."""
    program, part = load("many_processes"), count // TASKS

    def one_set() -> set[str]:
        with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
            return set().union(*pool.map(program.keys_of, range(TASKS), [part] * TASKS))

    yield Comparison(
        "many_processes",
        f"{TASKS} partitions, 2 processes",
        count,
        Side("filters, united", lambda: program.united(TASKS, part)),
        Side("keys through a pipe, into a set", one_set),
        lambda ours, other: all(ours.might_contain_many(list(other))),
    )


def dask_partitions(count: int, directory: Path) -> Iterator[Comparison]:
    """A column of a Dask frame, by its threads."""
    program = load("dask_partitions")
    users = import_module("pandas").DataFrame({"user": names("user", count)})
    column = import_module("dask.dataframe").from_pandas(users, npartitions=TASKS)["user"]
    yield Comparison(
        "dask_partitions",
        f"{TASKS} partitions, by threads",
        count,
        Side("filters, united", lambda: program.filter_of(column, count)),
        Side("`unique`, into a set", lambda: set(column.unique().compute())),
        lambda ours, other: all(ours.might_contain_many(list(other))),
    )


def count_in(found: Any, keys: list[str]) -> int:
    """What a process does with what has come through a pipe."""
    return sum(key in found for key in keys)


def shared_filter(count: int, directory: Path) -> Iterator[Comparison]:
    """Tasks that ask a thousand keys each, in processes that run already."""
    program = load("shared_filter")
    users = names("user", count)
    found, asked = filters.BinaryFuseFilter.build(users), users[:: max(1, count // 1000)]
    memory, size = program.share(found), found.size_in_bytes
    every, keys = set(users), [asked] * TASKS
    try:
        with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
            ours = Side(
                "shared memory",
                lambda: list(
                    pool.map(program.count_maybe, [memory.name] * TASKS, [size] * TASKS, keys)
                ),
                size,
            )
            for words, sent, its_size in (
                ("the filter, pickled", found, size * 2),
                ("a set, pickled", every, set_bytes(every) * 2),
            ):
                yield Comparison(
                    "shared_filter",
                    f"{TASKS} tasks, 2 processes",
                    count,
                    ours,
                    Side(
                        words,
                        lambda sent=sent: list(pool.map(count_in, [sent] * TASKS, keys)),  # type: ignore[misc]
                        its_size,
                    ),
                    lambda ours, other: ours == other == [len(asked)] * TASKS,
                )
    finally:
        memory.close()
        memory.unlink()


def mapped_file(count: int, directory: Path) -> Iterator[Comparison]:
    """From a file to the first answer."""
    users = names("user", count)
    path, pickled = directory / "users.filter", directory / "users.pickle"
    cls: Any = filters.BlockedBloomFilter
    cls.build(users, fpr=0.01).save(path)
    pickled.write_bytes(pickle.dumps(set(users)))

    def of_a_set() -> bool:
        with pickled.open("rb") as file:
            return users[0] in pickle.load(file)

    for words, run in (
        ("a filter that is read", lambda: users[0] in cls.load(path, mmap=False)),
        ("a set, pickled", of_a_set),
    ):
        yield Comparison(
            "mapped_file",
            "open, ask one key",
            count,
            Side("a mapped filter", lambda: users[0] in cls.load(path, mmap=True)),
            Side(words, run),
            lambda ours, other: ours and other,
        )
