"""Many keys in one buffer: the form in which a compiled kernel takes them without objects."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast, overload

if TYPE_CHECKING:
    from typing_extensions import Buffer

_OFFSET_FORMATS = frozenset("iIlLqQnN")
_NATIVE_ORDER = "@=<" if sys.byteorder == "little" else "@=>!"


class NumpyArray(Protocol):
    """An array, which type checkers do not know to be a buffer before Python 3.12."""

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """Where its memory is, and how it is laid out."""


class PackedKeys(Sequence[bytes]):
    """Keys that lie one behind the other in a buffer; nothing is copied.

    ``PackedKeys(data, width=16)``: each key takes so many bytes, trailing zeros included; a buffer
    of single bytes is cut into such keys, and a NumPy array of dtype ``V16``, of 16-byte rows or of
    numbers as wide has them as its items. ``PackedKeys(data, offsets=ends)``: key ``i`` is
    ``data[offsets[i]:offsets[i + 1]]``, with 32-bit or 64-bit integers, one more than there are
    keys, that never fall: the two buffers of an Arrow array of binaries.

    It is a sequence of bytes for whoever wants one, and compiled filters read the buffers without
    holding the GIL: do not change these meanwhile.
    """

    __slots__ = ("_count", "_data", "_offsets", "_width")

    def __init__(
        self,
        data: Buffer | NumpyArray,
        *,
        width: int | None = None,
        offsets: Buffer | NumpyArray | None = None,
    ):
        if (width is None) == (offsets is None):
            raise TypeError("PackedKeys takes either width= or offsets=, and not both")
        view = memoryview(cast("Buffer", data))
        _refuse_padding(view)
        self._data = _bytes_view(view)
        self._offsets: memoryview | None = None
        self._width = 0
        if offsets is not None:
            self._offsets = _integers_view(cast("Buffer", offsets))
            self._count = len(self._offsets) - 1
        else:
            self._width = _checked_width(width)
            _check_items(view, self._width)
            self._count, rest = divmod(len(self._data), self._width)
            if rest:
                raise ValueError(
                    f"{len(self._data)} bytes are no whole keys of {self._width} bytes: "
                    f"{rest} are left over"
                )

    @property
    def data(self) -> memoryview:
        """The bytes of all keys."""
        return self._data

    @property
    def width(self) -> int:
        """How many bytes each key takes; 0 where offsets tell."""
        return self._width

    @property
    def offsets(self) -> memoryview | None:
        """Where each key begins, and where the last one ends; None where all are equally wide."""
        return self._offsets

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> list[bytes]: ...
    def __getitem__(self, index: int | slice) -> bytes | list[bytes]:
        if isinstance(index, slice):
            return [self._key(i) for i in range(*index.indices(self._count))]
        if not -self._count <= index < self._count:
            raise IndexError(f"key {index} of {self._count} packed keys")
        return self._key(index % self._count)

    def __iter__(self) -> Iterator[bytes]:
        return map(self._key, range(self._count))

    def __repr__(self) -> str:
        form = "offsets" if self._offsets is not None else f"width={self._width}"
        return f"<PackedKeys: {self._count} keys in {len(self._data)} bytes, {form}>"

    def _key(self, index: int) -> bytes:
        if self._offsets is None:
            start = index * self._width
            return self._data[start : start + self._width].tobytes()
        start, stop = self._offsets[index], self._offsets[index + 1]
        if not 0 <= start <= stop <= len(self._data):
            raise bad_offsets(index, start, stop, len(self._data))
        return self._data[start:stop].tobytes()


def bad_offsets(index: int, start: int, stop: int, size: int) -> ValueError:
    """What is wrong where a key's offsets do not lie within the data, in ascending order."""
    return ValueError(
        f"packed key {index} claims bytes {start} to {stop}: offsets must not fall, and must stay "
        f"within the {size} bytes of data"
    )


def _refuse_padding(view: memoryview) -> None:
    """Refuse arrays whose items are no bytes, or end with bytes that belong to no key."""
    kind = re.sub(r"^[@=<>!]?\d*", "", view.format)
    if kind == "s":
        raise TypeError(
            f"an array of format {view.format!r}, NumPy's S{view.itemsize}, pads its keys with "
            "zeros that belong to none: pass the array itself as the keys, or, where they do "
            f"belong to them, PackedKeys(array.view('V{view.itemsize}'), width={view.itemsize})"
        )
    if kind == "w":
        raise TypeError(
            f"an array of format {view.format!r}, NumPy's U{view.itemsize // 4}, has four bytes "
            "for each character: pass the array itself as the keys, which are its texts in UTF-8"
        )
    if kind == "O":
        raise TypeError(
            "an array of objects has their addresses, and not their bytes: pass the array itself, "
            "or array.tolist(), as the keys"
        )


def _check_items(view: memoryview, width: int) -> None:
    """Refuse to cut the items of a typed buffer, or the rows of one, or to run some together."""
    item = view.itemsize
    for length in view.shape[1:] if view.shape else ():
        item *= length
    is_row = view.ndim > 1
    if item == width or (item == 1 and not is_row) or (is_row and not item):
        return
    what = "rows" if is_row else "items"
    raise ValueError(
        f"width={width} does not match a buffer of format {view.format!r} whose {what} take {item} "
        f"bytes: pass width={item} for a key of each, or its bytes, memoryview(...).cast('B'), to "
        "cut them otherwise"
    )


def _bytes_view(view: memoryview) -> memoryview:
    if not view.c_contiguous:
        raise ValueError("packed keys lie in one contiguous buffer: copy the array first")
    return view.cast("B") if view.nbytes else memoryview(b"")


def _integers_view(offsets: Buffer) -> memoryview:
    view = memoryview(offsets)
    plain = view.format.lstrip(_NATIVE_ORDER)
    if view.ndim != 1 or plain not in _OFFSET_FORMATS or view.itemsize not in (4, 8):
        raise TypeError(
            "offsets are one row of 32-bit or 64-bit integers, not "
            f"{view.ndim} of format {view.format!r}: of raw bytes, pass memoryview(...).cast('i') "
            "or .cast('q')"
        )
    if not view.c_contiguous:
        raise ValueError("offsets lie in one contiguous buffer: copy the array first")
    if not len(view):
        raise ValueError("offsets number one more than the keys: there is none at all")
    return view.cast("B").cast(cast(Literal["i"], plain))


def _checked_width(width: int | None) -> int:
    if isinstance(width, bool) or not isinstance(width, int):
        raise TypeError(f"width is an int, not {type(width).__name__}")
    if width < 1:
        raise ValueError(f"width={width} is out of range: a packed key takes 1 byte or more")
    return width
