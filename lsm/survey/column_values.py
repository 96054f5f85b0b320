"""The values of a Parquet column in plain encoding, as its Bloom filter is asked for them.

Reading columns is pyarrow's business: without it the values are not at hand. It is loaded when
somebody asks for them, by name, since nothing here depends on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from lsm.errors import CorruptionError

_WIDTHS = {"INT32": 4, "INT64": 8, "FLOAT": 4, "DOUBLE": 8}
_STRINGS = ("BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY")
_ROWS_AT_ONCE = 1 << 14


def of(path: str, row_group: int, column: int, type: str) -> Callable[[], Iterator[bytes]] | None:
    """What gives the values of a column in a row group; None where nobody here can read them."""
    if (type not in _WIDTHS and type not in _STRINGS) or find_spec("pyarrow") is None:
        return None
    return partial(values, path, row_group, column, type)


def values(path: str, row_group: int, column: int, type: str) -> Iterator[bytes]:
    """The values that are not null, some thousand read at a time.

    CorruptionError for pages that cannot be read, ValueError for values whose encoding is not known
    here.
    """
    arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    where = f"{path}: column {column} of row group {row_group}"
    try:
        with parquet.ParquetFile(path, pre_buffer=False, arrow_extensions_enabled=False) as file:
            name = file.schema.column(column).path
            batches = file.iter_batches(
                _ROWS_AT_ONCE, row_groups=[row_group], columns=[name], use_threads=False
            )
            for batch in batches:
                yield from _plain(_leaf(batch, where), type, where)
    except (OSError, arrow.ArrowException) as error:
        raise CorruptionError(f"{where} cannot be read: {error}") from error


def _leaf(batch: Any, where: str) -> Any:
    """The one column of a batch, out of the lists and structs it lies in, without its nulls."""
    types = import_module("pyarrow.types")
    if batch.num_columns != 1:
        raise _unknown(where, f"{batch.num_columns} columns of one path")
    array = batch.column(0)
    while types.is_nested(array.type):
        if types.is_struct(array.type) and array.type.num_fields == 1:
            (array,) = array.flatten()
        elif types.is_list(array.type) or types.is_large_list(array.type):
            array = array.flatten()
        else:
            raise _unknown(where, f"{array.type}")
    if types.is_dictionary(array.type):
        array = array.dictionary_decode()
    return array.drop_null()


def _plain(array: Any, type: str, where: str) -> Iterator[bytes]:
    arrow, types = import_module("pyarrow"), import_module("pyarrow.types")
    if type in _WIDTHS:
        return _slices(_as_stored(array, type, where), _WIDTHS[type])
    if types.is_float16(array.type):
        return _slices(array, 2)
    if types.is_fixed_size_binary(array.type):
        return iter(array.to_pylist())
    if type == "BYTE_ARRAY" and not types.is_decimal(array.type):
        return iter(array.cast(arrow.large_binary()).to_pylist())
    raise _unknown(where, f"{array.type}")


def _as_stored(array: Any, type: str, where: str) -> Any:
    """The numbers of a column as wide as they are stored."""
    arrow, types = import_module("pyarrow"), import_module("pyarrow.types")
    wide = {
        "INT32": arrow.int32(),
        "INT64": arrow.int64(),
        "FLOAT": arrow.float32(),
        "DOUBLE": arrow.float64(),
    }[type]
    found = array.type
    if types.is_integer(found):
        return array.cast(wide, safe=False)
    if found == wide:
        return array
    counts = types.is_timestamp(found) or types.is_time(found) or types.is_duration(found)
    if counts or types.is_date32(found):
        return array.view(wide)
    raise _unknown(where, f"{found}")


def _slices(array: Any, width: int) -> Iterator[bytes]:
    """The bytes of each of an array's numbers."""
    if not len(array):
        return
    start = array.offset * width
    data = memoryview(array.buffers()[1])[start : start + len(array) * width].tobytes()
    for at in range(0, len(data), width):
        yield data[at : at + width]


def _unknown(where: str, what: str) -> ValueError:
    return ValueError(
        f"{where} has values of {what}, whose plain encoding is not known here: its filter cannot "
        "be asked for them"
    )
