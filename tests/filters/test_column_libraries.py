"""Columns as the libraries of data frames hand them over: the filters of their values' bytes.

What arrays of Arrow and NumPy are to a filter is in ``test_columns.py``; here are those who make
them, each with the types that it has of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from filters import kernels
from tests.effort import examples

pytest.importorskip("pyarrow")

SEED, SALT = 0x0123_4567_89AB_CDEF, 0xFEDC_BA98_7654_3210

Rows = list[Any]
"""Values as Python has them, with None for a null."""

TEXTS: Rows = ["", "a", "bär", "x" * 12, "y" * 13, "long " * 20, "a\0b", "€"] + [
    f"{i:x}" * (i % 9) for i in range(200)
]
NUMBERS: Rows = [0, 1, 2, 127, 100, 5, 7, 3] * 20
WIDTHS = {"int8": 1, "uint8": 1, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4}
WIDTHS |= {"int64": 8, "uint64": 8}


def with_nulls(rows: Rows) -> Rows:
    return [None if i % 7 in (2, 3) else each for i, each in enumerate(rows)]


def key_of(value: Any, width: int = 8) -> bytes:
    if isinstance(value, int):
        return value.to_bytes(width, "little", signed=value < 0)
    return value.encode() if isinstance(value, str) else bytes(value)


def check(kernel: ModuleType, column: Any, rows: Rows, width: int) -> None:
    """Built of, added from and asked with a column is the same as of a list of its bytes."""
    keys = [None if row is None else key_of(row, width) for row in rows]
    there = [key for key in keys if key is not None]
    for cls in (kernel.BlockedBloomFilter, kernel.BinaryFuseFilter):
        built = cls.build(column, seed=SEED, salt=SALT, nulls="skip")
        assert built == cls.build(there, seed=SEED, salt=SALT)
    one, other = (
        kernel.ClassicBloomFilter.with_capacity(1000, seed=SEED, salt=SALT) for _ in range(2)
    )
    one.add_many(column, nulls="skip")
    other.add_many(there)
    assert one == other
    some = kernel.CuckooFilter.build(there[::2], fingerprint_bits=32)
    wanted = [key is not None and some.might_contain(key) for key in keys]
    assert some.might_contain_many(column, nulls="skip") == wanted
    answers = some.might_contain_many(column, "arrow", nulls="skip")
    assert np.asarray(answers).tolist() == wanted
    if None in rows:
        with pytest.raises((ValueError, TypeError), match='nulls="skip"'):
            some.might_contain_many(column)


Case = tuple[Callable[[Rows], Any], Rows, int]


def pandas_cases() -> dict[str, Case]:
    pd = pytest.importorskip("pandas")

    def series(dtype: Any) -> Callable[[Rows], Any]:
        return lambda rows: pd.Series(rows, dtype=dtype)

    binary = [text.encode() for text in TEXTS]
    cases: dict[str, Case] = {
        "str": (series("str"), TEXTS, 0),
        "object": (series(object), TEXTS, 0),
        "object of bytes": (series(object), binary, 0),
        "string[pyarrow]": (series("string[pyarrow]"), TEXTS, 0),
        "string[python]": (series("string[python]"), TEXTS, 0),
        "large": (series("large_string[pyarrow]"), TEXTS, 0),
        "binary": (series("binary[pyarrow]"), binary, 0),
        "category": (series("category"), TEXTS, 0),
        "int64[pyarrow]": (series("int64[pyarrow]"), NUMBERS, 8),
        "Int32": (series("Int32"), NUMBERS, 4),
    }
    cases |= {name: (series(name), NUMBERS, width) for name, width in WIDTHS.items()}
    return cases


def polars_cases() -> dict[str, Case]:
    pl = pytest.importorskip("polars")

    def series(dtype: Any) -> Callable[[Rows], Any]:
        return lambda rows: pl.Series("key", rows, dtype=dtype)

    def lazy(rows: Rows) -> Any:
        return pl.LazyFrame({"key": rows, "row": range(len(rows))}).select("key").collect()["key"]

    def in_chunks(rows: Rows) -> Any:
        parts = [pl.Series(rows[at : at + 30], dtype=pl.String) for at in range(0, len(rows), 30)]
        return pl.concat(parts, rechunk=False)

    cases: dict[str, Case] = {
        "String": (series(pl.String), TEXTS, 0),
        "Binary": (series(pl.Binary), [text.encode() for text in TEXTS], 0),
        "Categorical": (series(pl.Categorical), TEXTS, 0),
        "Enum": (series(pl.Enum(sorted(set(TEXTS)))), TEXTS, 0),
        "in chunks": (in_chunks, TEXTS, 0),
        "of a lazy frame": (lazy, TEXTS, 0),
        "a frame": (lambda rows: pl.DataFrame({"key": rows}), TEXTS, 0),
    }
    for name, width in WIDTHS.items():
        kind = getattr(pl, name.replace("int", "Int").replace("uI", "UI"))
        cases[name] = (series(kind), NUMBERS, width)
    return cases


def duckdb_cases() -> dict[str, Case]:
    duckdb = pytest.importorskip("duckdb")
    connections = []  # which relations do not keep alive before DuckDB 2

    def relation(kind: str) -> Callable[[Rows], Any]:
        def made(rows: Rows) -> Any:
            connection = duckdb.connect()
            connections.append(connection)
            connection.execute(f"create table rows (place integer, key {kind})")
            connection.executemany("insert into rows values (?, ?)", list(enumerate(rows)))
            return connection.sql("select key from rows order by place")

        return made

    kinds = {"tinyint": 1, "usmallint": 2, "integer": 4, "uinteger": 4, "bigint": 8}
    cases: dict[str, Case] = {
        "varchar": (relation("varchar"), TEXTS, 0),
        "blob": (relation("blob"), [text.encode() for text in TEXTS], 0),
        "enum": (relation("enum ('a', 'b', 'car')"), ["a", "b", "car", "a"] * 9, 0),
    }
    return cases | {kind: (relation(kind), NUMBERS, width) for kind, width in kinds.items()}


def nanoarrow_cases() -> dict[str, Case]:
    na = pytest.importorskip("nanoarrow")

    def array(schema: Any) -> Callable[[Rows], Any]:
        return lambda rows: na.Array(rows, schema)

    cases: dict[str, Case] = {
        "string": (array(na.string()), TEXTS, 0),
        "large_string": (array(na.large_string()), TEXTS, 0),
        "binary": (array(na.binary()), [text.encode() for text in TEXTS], 0),
        "c_array": (lambda rows: na.c_array(rows, na.string()), TEXTS, 0),
    }
    for name, width in WIDTHS.items():
        cases[name] = (array(getattr(na, name)()), NUMBERS, width)
    return cases


def pyarrow_cases() -> dict[str, Case]:
    pa = pytest.importorskip("pyarrow")

    def array(kind: Any) -> Callable[[Rows], Any]:
        return lambda rows: pa.array(rows, kind)

    def sliced(kind: Any) -> Callable[[Rows], Any]:
        return lambda rows: pa.array([rows[0]] * 11 + rows + [rows[0]] * 3, kind)[11:-3]

    def in_chunks(kind: Any) -> Callable[[Rows], Any]:
        def made(rows: Rows) -> Any:
            parts = (rows[:50], [], rows[50:51], rows[51:])
            return pa.chunked_array([pa.array(part, kind) for part in parts], kind)

        return made

    binary = [text.encode() for text in TEXTS]
    texts = [pa.string(), pa.large_string(), pa.string_view()]
    texts += [pa.dictionary(pa.int8(), pa.string()), pa.dictionary(pa.uint32(), pa.string())]
    kinds = [(kind, TEXTS) for kind in texts if kind != texts[3]]
    kinds += [(texts[3], TEXTS[:100])]
    kinds += [(kind, binary) for kind in (pa.binary(), pa.large_binary(), pa.binary_view())]
    kinds += [(pa.binary(3), [b"abc", b"\0\0\0", b"def"] * 40)]
    kinds += [(pa.dictionary(pa.int16(), pa.binary(2)), [b"ab", b"cd"] * 60)]
    cases: dict[str, Case] = {}
    for form in (array, sliced, in_chunks):
        for kind, rows in kinds:
            cases[f"{form.__name__} of {kind}"] = (form(kind), rows, 0)
        for name, width in WIDTHS.items():
            kind = getattr(pa, name)()
            cases[f"{form.__name__} of {name}"] = (form(kind), NUMBERS, width)
    return cases


LIBRARIES = {
    "pandas": pandas_cases,
    "polars": polars_cases,
    "duckdb": duckdb_cases,
    "nanoarrow": nanoarrow_cases,
    "pyarrow": pyarrow_cases,
}
SLICED = {"pandas", "polars", "pyarrow"}
"""Those whose columns are cut by ``column[one:two]``."""


@pytest.mark.parametrize("nulls", [False, True], ids=["whole", "with nulls"])
@pytest.mark.parametrize("library", LIBRARIES)
def test_columns_are_their_values_bytes(kernel: ModuleType, library: str, nulls: bool) -> None:
    for name, (column_of, rows, width) in LIBRARIES[library]().items():
        if nulls and library == "pandas" and name in WIDTHS:
            continue  # NumPy's integers have no nulls
        print(name)  # which one it was
        asked = with_nulls(rows) if nulls else rows
        column = column_of(asked)
        check(kernel, column, asked, width)
        if library in SLICED:
            check(kernel, column[5:60], asked[5:60], width)


@pytest.mark.parametrize(
    ("library", "name"), [("pandas", "str"), ("polars", "String"), ("nanoarrow", "string")]
)
@examples(40)
@given(
    rows=st.lists(st.none() | st.text(st.characters(codec="utf-8"), max_size=20), max_size=30),
    start=st.integers(0, 9),
)
def test_any_texts(library: str, name: str, rows: Rows, start: int) -> None:
    column_of, _, width = LIBRARIES[library]()[name]
    column = column_of(rows)
    if library in SLICED:
        column, rows = column[start:], rows[start:]
    for each in kernels.available():
        check(kernels.load(each), column, rows, width)
