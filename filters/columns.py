"""Columns of values in the place of keys: Arrow's, NumPy's, and those of data frames.

A column is told by what it offers, and none of these libraries is imported. Strings are keys by
their UTF-8 bytes, binary values as they are, integers by their little-endian bytes in the column's
width. What lies one behind the other is read where it lies.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, compress
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, overload

from filters.hashing import key_bytes
from filters.packed_keys import PackedKeys

if TYPE_CHECKING:
    from filters.hashing import Key

    Nulls: TypeAlias = Literal["error", "skip"]

_UTF_32 = "utf-32-le" if sys.byteorder == "little" else "utf-32-be"
_VIEW_BYTES = 16
_INLINE = 12
_KEY_FORMATS = frozenset("swxhHiIlLqQnN")  # as in the module struct, and w for NumPy's texts
_INTEGERS = {1: "B", 2: "H", 4: "I", 8: "Q"}


class Values(Protocol):
    """Values that are keys, each at its place: of a Python sequence no more than is needed."""

    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> bytes: ...


class PaddedKeys:
    """Keys of up to ``width`` bytes, filled up with zeros: NumPy's dtype ``S``."""

    __slots__ = ("data", "width")

    def __init__(self, data: memoryview, width: int):
        self.data = data
        self.width = width

    def __len__(self) -> int:
        return len(self.data) // self.width

    def __getitem__(self, index: int) -> bytes:
        start = index * self.width
        return self.data[start : start + self.width].tobytes().rstrip(b"\0")


class TextKeys:
    """Texts of up to ``width`` characters of four bytes, filled up with zeros: NumPy's dtype ``U``.

    Their UTF-8 are the keys.
    """

    __slots__ = ("characters", "width")

    def __init__(self, characters: memoryview, width: int):
        self.characters = characters
        self.width = width

    def __len__(self) -> int:
        return len(self.characters) // (4 * self.width)

    def __getitem__(self, index: int) -> bytes:
        start, size = 4 * index * self.width, 4 * self.width
        text = self.characters[start : start + size].tobytes().decode(_UTF_32, "surrogatepass")
        return key_bytes(text.rstrip("\0"))


class ViewKeys:
    """Arrow's views: short values in 16 bytes each, long ones somewhere in one of many buffers."""

    __slots__ = ("buffers", "views")

    def __init__(self, views: memoryview, buffers: list[memoryview]):
        self.views = views
        self.buffers = buffers

    def __len__(self) -> int:
        return len(self.views) // _VIEW_BYTES

    def __getitem__(self, index: int) -> bytes:
        view = self.views[index * _VIEW_BYTES : (index + 1) * _VIEW_BYTES].tobytes()
        length = _signed(view[:4])
        if 0 <= length <= _INLINE:
            return view[4 : 4 + length]
        buffer, start = _signed(view[8:12]), _signed(view[12:])
        sizes = [len(each) for each in self.buffers]
        if length < 0 or not 0 <= buffer < len(sizes) or not 0 <= start <= sizes[buffer] - length:
            raise ValueError(
                f"the view at {index} claims {length} bytes from {start} on in buffer {buffer}, "
                f"and the buffers have {sizes} bytes"
            )
        return self.buffers[buffer][start : start + length].tobytes()


def _signed(number: bytes) -> int:
    return int.from_bytes(number, sys.byteorder, signed=True)


class Chunk:
    """A part of a column: some values, all in order or those that ``codes`` name for each row.

    ``present`` has a byte for each row, 0 for a null; without it there is none. ``owner`` is
    whatever has to live as long as the values are read.
    """

    __slots__ = ("_rows", "codes", "owner", "present", "values")

    def __init__(
        self,
        values: Values,
        present: bytes | None = None,
        codes: memoryview | None = None,
        owner: object = None,
    ):
        self.values = values
        self.present = present
        self.codes = codes
        self.owner = owner
        self._rows: list[int] | None = None

    def __len__(self) -> int:
        if self.present is not None:
            return self.present.count(1)
        return len(self.values if self.codes is None else self.codes)

    def __getitem__(self, index: int) -> bytes:
        row = self._row(index)
        if not 0 <= row < len(self.values):
            raise ValueError(f"key {index} claims to be value {row} of {len(self.values)}")
        return self.values[row]

    def _row(self, index: int) -> int:
        """Which of the values is a key."""
        if self.present is None:
            return index if self.codes is None else self.codes[index]
        if self._rows is None:
            rows: Iterable[int] = range(len(self.present)) if self.codes is None else self.codes
            self._rows = list(compress(rows, self.present))
        return self._rows[index]


class Column(Sequence[bytes]):
    """The keys of a column without its nulls, in chunks; ``present`` tells where there were any.

    That has a byte for each row, 0 for a null, and is None where there is no null at all.
    """

    __slots__ = ("_ends", "chunks", "present")

    def __init__(self, chunks: Iterable[Chunk], present: bytes | None = None):
        self.chunks = [chunk for chunk in chunks if len(chunk)]
        self.present = present
        self._ends = list(accumulate(map(len, self.chunks)))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> list[bytes]: ...
    def __getitem__(self, index: int | slice) -> bytes | list[bytes]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(f"key {index} of {len(self)} in a column")
        index %= len(self)
        place = bisect_right(self._ends, index)
        return self.chunks[place][index - (self._ends[place - 1] if place else 0)]

    def __iter__(self) -> Iterator[bytes]:
        return (chunk[i] for chunk in self.chunks for i in range(len(chunk)))

    def fault(self, index: int) -> Exception:
        """What is wrong with a key that cannot be read."""
        try:
            self[index]
        except ValueError as error:
            return error
        return RuntimeError("the column became another one while it was read")


def one_by_one(keys: Any, nulls: Nulls = "error") -> Iterable[Key]:
    """The keys in a form that yields them: a column opened, and a bare buffer refused.

    The bytes of a single key are numbers, and so are the characters of a single text. ``nulls``
    says what becomes of nulls: ``"skip"`` leaves them out.
    """
    opened: Iterable[Key] = _opened(keys, nulls)[0]
    return opened


def with_gaps(keys: Iterable[Key], nulls: Nulls) -> tuple[Sequence[Key], bytes | None]:
    """The keys that are no nulls, and where in the rows they were: see :class:`Column`."""
    opened, present = _opened(keys, nulls)
    return opened if isinstance(opened, Sequence) else list(opened), present


def _opened(keys: Any, nulls: Nulls) -> tuple[Any, bytes | None]:
    if nulls not in ("error", "skip"):
        raise ValueError(f'nulls={nulls!r:.40}: allowed are "error" and "skip"')
    if isinstance(keys, Column):
        return keys, keys.present
    if isinstance(keys, PackedKeys):
        return keys, None
    if not isinstance(keys, (list, tuple)):
        if is_column(keys):
            return _column(keys, nulls)
        _refuse_bare(keys)
    if nulls == "skip" and hasattr(type(keys), "__iter__"):
        rows = list(keys)
        present = bytes(not is_null(key) for key in rows)
        return list(compress(rows, present)), present
    return keys, None


def is_null(value: object) -> bool:
    """Whether a value among Python objects stands for none."""
    if isinstance(value, float):
        return value != value
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def is_column(keys: object) -> bool:
    """Whether these are a column: Arrow's, NumPy's, whatever turns into that, or array.array."""
    offers = type(keys)
    return not isinstance(keys, (str, bytes)) and (
        hasattr(offers, "__arrow_c_array__")
        or hasattr(offers, "__arrow_c_stream__")
        or hasattr(offers, "__array_interface__")
        or hasattr(offers, "to_numpy")
        or (type(keys) is array and keys.itemsize > 1)
    )


def _column(keys: Any, nulls: Nulls) -> tuple[Any, bytes | None]:
    offers = type(keys)
    if hasattr(offers, "__arrow_c_array__") or hasattr(offers, "__arrow_c_stream__"):
        from filters.arrow_columns import read  # ctypes, which few programs need

        try:
            chunks, present = read(keys, nulls)
        except ImportError:  # pandas, without pyarrow
            if not hasattr(offers, "to_numpy"):
                raise
        else:
            column = Column(chunks, present)
            return column, column.present
    if hasattr(offers, "to_numpy"):
        return _opened(keys.to_numpy(), nulls)
    return _of_buffer(keys, nulls)


def check_nulls(present: bytes | None, nulls: Nulls) -> None:
    """Refuse nulls that nobody has said what is to become of."""
    if present is not None and nulls == "error":
        raise ValueError(
            f"{present.count(0)} of {len(present)} values are null, and a null is no key: fill or "
            'drop them, or pass nulls="skip"'
        )


def _of_buffer(keys: Any, nulls: Nulls) -> tuple[Any, bytes | None]:
    """The keys of a NumPy array, or of an array of integers."""
    if hasattr(type(keys), "mask"):  # what a masked array has under its mask are no values
        return _opened(keys.tolist(), nulls)
    try:
        view = memoryview(keys)
    except (TypeError, ValueError, BufferError):  # NumPy exports neither dates nor its new strings
        form = str((getattr(keys, "__array_interface__", None) or {}).get("typestr"))
        if form.startswith("StringDType"):
            return _opened(keys.tolist(), nulls)
        raise _no_keys(form) from None
    if view.ndim != 1:
        raise TypeError(
            f"a column is one row of keys, and this array has {view.ndim} dimensions: pass one "
            "column of it, or for a key of each row PackedKeys(array, width=bytes of a row)"
        )
    kind = view.format.lstrip("@=<>!0123456789")
    if kind == "O":
        return _opened(keys.tolist(), nulls)
    if kind in ("b", "B", "c"):
        raise _bare(keys)
    if kind not in _KEY_FORMATS:
        raise _no_keys(view.format)
    order = view.format[0]
    is_big = order in ">!" or (order != "<" and sys.byteorder == "big")
    if not view.itemsize:
        return [b""] * len(view), None
    return Column([Chunk(_items(view, kind, is_big))]), None


def _items(view: memoryview, kind: str, is_big: bool) -> Values:
    """Equally wide items as keys; those that do not lie one behind the other are copied."""
    data = view.cast("B") if view.c_contiguous and view.nbytes else memoryview(view.tobytes())
    if kind == "s":
        return PaddedKeys(data, view.itemsize)
    if kind == "w":
        is_foreign = is_big != (sys.byteorder == "big")
        return TextKeys(turned(data, 4) if is_foreign else data, view.itemsize // 4)
    if kind != "x" and is_big:
        data = turned(data, view.itemsize)
    return PackedKeys(data, width=view.itemsize)


def turned(data: memoryview, width: int) -> memoryview:
    """Integers of so many bytes with these the other way round, copied."""
    numbers = array(_INTEGERS[width], data.tobytes())
    numbers.byteswap()
    return memoryview(numbers).cast("B")


def _no_keys(form: str) -> TypeError:
    return TypeError(
        f"values of format {form!r} are no keys: these are strings, bytes and integers. Cast them, "
        "e.g. array.astype('S') or array.view('i8'), or say which bytes are keys with "
        "PackedKeys(array, width=...)"
    )


def _refuse_bare(keys: Any) -> None:
    """Refuse a single key, or the bytes of many, where keys are expected."""
    if isinstance(keys, str):
        raise _bare(keys)
    try:
        memoryview(keys)
    except TypeError:
        return
    except (ValueError, BufferError):
        pass
    raise _bare(keys)


def _bare(keys: object) -> TypeError:
    return TypeError(
        f"keys come as a list or another iterable, not as one {type(keys).__name__}: pass a single "
        "key in a list, and keys that share a buffer as filters.PackedKeys(buffer, width=...) or "
        "filters.PackedKeys(buffer, offsets=...)"
    )
