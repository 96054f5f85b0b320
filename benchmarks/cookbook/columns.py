"""Programs that make filters of columns, and ask them with columns."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import filters
from benchmarks.cookbook.comparison import Comparison, Side, load, names, set_bytes


def parquet_column(count: int, directory: Path) -> Iterator[Comparison]:
    """A column of a file, into a filter and into a set."""
    program = load("parquet_column")
    pa, pq = import_module("pyarrow"), import_module("pyarrow.parquet")
    path = directory / "users.parquet"
    users = names("user", count)
    pq.write_table(pa.table({"user": users, "age": [42] * count}), path)
    size = program.filter_of(path, "user").size_in_bytes
    yield Comparison(
        "parquet_column",
        "read the column",
        count,
        Side("a filter", lambda: program.filter_of(path, "user"), size),
        Side(
            "a set",
            lambda: set(pq.read_table(path, columns=["user"])["user"].to_pylist()),
            set_bytes(users),
        ),
        lambda ours, other: all(ours.might_contain_many(list(other))),
    )


def pandas_column(count: int, directory: Path) -> Iterator[Comparison]:
    """Rows whose key is among others, in pandas."""
    program, pd = load("pandas_column"), import_module("pandas")
    users = pd.DataFrame({"user": names("user", count)})
    visits = pd.DataFrame({"user": [f"user-{number * 7}" for number in range(count)]})

    def built() -> Any:
        return filters.BlockedBloomFilter.build(users["user"], fpr=0.01)

    known = built()
    others = (
        Side("`isin`", lambda: visits[visits["user"].isin(users["user"])]),
        Side("`merge`", lambda: visits.reset_index().merge(users, on="user").set_index("index")),
    )

    def agrees(ours: Any, other: Any) -> bool:
        return bool(other.index.isin(ours.index).all())

    for what, ours in (
        ("build and ask", lambda: program.rows_that_may_match(visits, built())),
        ("ask again", lambda: program.rows_that_may_match(visits, known)),
    ):
        for other in others:
            yield Comparison("pandas_column", what, count, Side("a filter", ours), other, agrees)


def polars_column(count: int, directory: Path) -> Iterator[Comparison]:
    """Rows whose key is among others, in Polars."""
    program, pl = load("polars_column"), import_module("polars")
    users = pl.DataFrame({"user": names("user", count)})
    visits = pl.LazyFrame({"user": [f"user-{number * 7}" for number in range(count)]})

    def built() -> Any:
        return filters.BlockedBloomFilter.build(users["user"], fpr=0.01)

    known = built()
    other = Side("a semi join", lambda: visits.join(users.lazy(), on="user", how="semi").collect())

    def agrees(ours: Any, other: Any) -> bool:
        return set(other["user"]) <= set(ours["user"])

    for what, ours in (
        ("build and ask", lambda: visits.filter(program.may_be_in(built(), "user")).collect()),
        ("ask again", lambda: visits.filter(program.may_be_in(known, "user")).collect()),
    ):
        yield Comparison("polars_column", what, count, Side("a filter", ours), other, agrees)


def numpy_array(count: int, directory: Path) -> Iterator[Comparison]:
    """Which numbers are among others."""
    program, np = load("numpy_array"), import_module("numpy")
    draw = np.random.default_rng(1)
    bought = draw.integers(0, 2**40, count)
    asked = draw.integers(0, 2**40, count)
    asked[::10] = bought[::10]
    known = filters.BinaryFuseFilter.build(bought)
    other = Side("`np.isin`", lambda: np.isin(asked, bought))

    def agrees(ours: Any, other: Any) -> bool:
        return bool(ours[other].all())

    for what, ours in (
        (
            "build and ask",
            lambda: program.mask_of(filters.BinaryFuseFilter.build(bought), asked),
        ),
        ("ask again", lambda: program.mask_of(known, asked)),
    ):
        yield Comparison("numpy_array", what, count, Side("a filter", ours), other, agrees)
