"""Keys in Arrow's arrays, handed over as C data by whatever library has them.

Buffers are read where they lie: an array stays alive as long as its keys are read. The interface
does not tell how long most buffers are, so that a producer is believed what it says of its array's
length; whatever can be checked against anything else is.
"""

from __future__ import annotations

import ctypes
import re
import sys
from array import array
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from filters.arrow_structs import (
    ARRAY,
    GET,
    GET_TEXT,
    SCHEMA,
    STREAM,
    ArrowArray,
    ArrowSchema,
    Owned,
    moved,
)
from filters.columns import Chunk, Values, ViewKeys, check_nulls, turned
from filters.packed_keys import PackedKeys

if TYPE_CHECKING:
    from filters.columns import Nulls

_OFFSETS: dict[str, Literal["i", "q"]] = {"u": "i", "z": "i", "U": "q", "Z": "q"}
_VIEWS = ("vu", "vz")
_INTEGERS: dict[str, Literal["b", "B", "h", "H", "i", "I", "q", "Q"]] = {
    "c": "b",
    "C": "B",
    "s": "h",
    "S": "H",
    "i": "i",
    "I": "I",
    "l": "q",
    "L": "Q",
}
_NULLS = "n"
_STRUCT = "+s"

_NO_NULLS = bytes.maketrans(b"01", b"\0\1")
_VIEW_BYTES = 16
_MOST = 1 << 48  # bytes: more than any machine addresses
_PYBUF_READ = 0x100

_memory = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int)(
    ("PyMemoryView_FromMemory", ctypes.pythonapi)
)


class Form(NamedTuple):
    """What a schema says of a column of keys."""

    format: str
    values: str = ""
    """The format of a dictionary's values; empty for a column that has none."""
    is_child: bool = False
    """Whether it is the only column of a table."""


def read(column: Any, nulls: Nulls) -> tuple[list[Chunk], bytes | None]:
    """The keys of a column, and which of its rows have one: see ``filters.columns.Column``."""
    with ExitStack() as always, ExitStack() as on_error:
        if hasattr(type(column), "__arrow_c_array__"):
            schema_capsule, array_capsule = column.__arrow_c_array__()
            schema = _held(moved(schema_capsule, SCHEMA), always)
            arrays = [_held(moved(array_capsule, ARRAY), on_error)]
        else:
            stream = _held(moved(column.__arrow_c_stream__(), STREAM), always)
            schema = _held(Owned(ArrowSchema()), always)
            arrays = _streamed(stream, schema, on_error)
        found = _keys_of(arrays, _form(schema.struct))
        check_nulls(found[1], nulls)
        on_error.pop_all()  # whoever has a chunk has its array, which goes with the last of them
        return found


def _held(owned: Owned, until: ExitStack) -> Owned:
    """The struct, to be released at the end of a block."""
    until.callback(owned.release)
    return owned


def _streamed(stream: Owned, schema: Owned, until: ExitStack) -> list[Owned]:
    """All arrays of a stream, whose schema is asked for first."""
    arrays: list[Owned] = []
    _check(stream, GET(stream.struct.get_schema)(stream.address, schema.address))
    while True:
        following = _held(Owned(ArrowArray()), until)
        _check(stream, GET(stream.struct.get_next)(stream.address, following.address))
        if not following.struct.release:
            return arrays
        arrays.append(following)


def _check(stream: Owned, code: int) -> None:
    if code:
        said = GET_TEXT(stream.struct.get_last_error)(stream.address) or b"it does not say why"
        raise OSError(code, f"the Arrow stream of keys failed: {said.decode(errors='replace')}")


def _keys_of(arrays: list[Owned], form: Form) -> tuple[list[Chunk], bytes | None]:
    chunks: list[Chunk] = []
    presents: list[bytes | None] = []
    for each in arrays:
        chunk, present = _chunk(each, form)
        chunks.append(chunk)
        presents.append(present)
    if all(present is None for present in presents):
        return chunks, None
    rows = [_slice(each.struct, form).length for each in arrays]
    return chunks, b"".join(
        b"\1" * count if present is None else present
        for count, present in zip(rows, presents, strict=True)
    )


def _form(schema: Any, is_child: bool = False) -> Form:
    """What the schema of a column is, or that of a table's only one; TypeError for all others."""
    form = (schema.format or b"").decode(errors="replace")
    if form == _STRUCT and not is_child:
        names = [
            (schema.children[i].contents.name or b"").decode(errors="replace")
            for i in range(min(schema.n_children, 20))
        ]
        if schema.n_children != 1:
            raise TypeError(
                f"this is a table of {schema.n_children} columns {names}: pass one of them, e.g. "
                "table['key'], or a select() of it"
            )
        return _form(schema.children[0].contents, True)
    if not schema.dictionary:
        _check_format(form)
        return Form(form, "", is_child)
    values = (schema.dictionary.contents.format or b"").decode(errors="replace")
    _check_format(values)
    if form not in _INTEGERS:
        raise TypeError(f"an Arrow dictionary has integers for its rows, not format {form!r}")
    return Form(form, values, is_child)


def _check_format(form: str) -> None:
    if (
        form in _OFFSETS
        or form in _VIEWS
        or form in _INTEGERS
        or form == _NULLS
        or re.fullmatch(r"w:\d{1,9}", form)
    ):
        return
    raise TypeError(
        f"an Arrow array of format {form!r} has no keys: these are strings, binaries and integers. "
        "Cast it, e.g. column.cast(pyarrow.string()) or column.cast('int64')"
    )


class _Slice(NamedTuple):
    """The part of an array's buffers that is meant."""

    struct: Any
    offset: int
    length: int


def _slice(struct: Any, form: Form) -> _Slice:
    """The column's part of an array, which may be that of a table."""
    _check_extent(struct)
    if not form.is_child:
        return _Slice(struct, struct.offset, struct.length)
    if struct.n_children != 1 or not struct.children:
        raise ValueError(f"an Arrow table has {struct.n_children} columns, and its schema has one")
    if (present := _present(_Slice(struct, struct.offset, struct.length))) and 0 in present:
        raise ValueError("an Arrow table has rows that are null as a whole: drop them")
    child = struct.children[0].contents
    _check_extent(child)
    if struct.offset + struct.length > child.length:
        raise ValueError(
            f"an Arrow table claims rows up to {struct.offset + struct.length}, and its column has "
            f"{child.length}"
        )
    return _Slice(child, child.offset + struct.offset, struct.length)


def _check_extent(struct: Any) -> None:
    if struct.length < 0 or struct.offset < 0 or struct.length + struct.offset > _MOST:
        raise ValueError(
            f"an Arrow array claims {struct.length} values from {struct.offset} on: its producer "
            "is at fault"
        )


def _chunk(owned: Owned, form: Form) -> tuple[Chunk, bytes | None]:
    """The keys of one array, and which of its rows have one."""
    part = _slice(owned.struct, form)
    if form.format == _NULLS:
        return Chunk(PackedKeys(b"", width=1)), bytes(part.length) or None
    if form.values:
        return _of_dictionary(owned, part, form)
    present = _present(part)
    return Chunk(_values(part, form.format), present, None, owned), present


def _of_dictionary(owned: Owned, part: _Slice, form: Form) -> tuple[Chunk, bytes | None]:
    """The values that the rows of a dictionary's array name."""
    if not part.struct.dictionary:
        raise ValueError("an Arrow dictionary's array has no dictionary: its producer is at fault")
    dictionary = part.struct.dictionary.contents
    _check_extent(dictionary)
    its = _Slice(dictionary, dictionary.offset, dictionary.length)
    if form.values == _NULLS:
        return Chunk(PackedKeys(b"", width=1)), bytes(part.length) or None
    _check_buffers(part, form.format, 2)
    code = _INTEGERS[form.format]
    width = array(code).itemsize
    codes = _buffer(part, 1, part.offset * width, part.length * width).cast(code)
    present, known = _present(part), _present(its)
    if known is not None:
        # A row of a null is one; a row of no value at all is told when it is read.
        rows = zip(present or b"\1" * part.length, codes, strict=True)
        present = bytes(there and known[i] if 0 <= i < len(known) else there for there, i in rows)
    return Chunk(_values(its, form.values), present, codes, owned), present


def _values(part: _Slice, form: str) -> Values:
    """The values of an array's part, nulls included."""
    if form in _OFFSETS:
        return _strings(part, form)
    if form in _VIEWS:
        return _views(part, form)
    _check_buffers(part, form, 2)
    width = int(form[2:]) if form[1:2] == ":" else array(_INTEGERS[form]).itemsize
    if not width:
        nothing = array("q", bytes(8 * (part.length + 1)))
        return PackedKeys(b"", offsets=nothing)
    data = _buffer(part, 1, part.offset * width, part.length * width)
    if form in _INTEGERS and sys.byteorder == "big":
        data = turned(data, width)
    return PackedKeys(data, width=width)


def _strings(part: _Slice, form: str) -> Values:
    _check_buffers(part, form, 3)
    if not part.length:
        return PackedKeys(b"", width=1)
    code = _OFFSETS[form]
    width = array(code).itemsize
    offsets = _buffer(part, 1, part.offset * width, (part.length + 1) * width).cast(code)
    end = offsets[part.length]
    if not 0 <= offsets[0] <= end <= _MOST:
        raise ValueError(
            f"an Arrow array of format {form!r} claims bytes {offsets[0]} to {end}: its producer "
            "is at fault"
        )
    return PackedKeys(_buffer(part, 2, 0, end), offsets=offsets)


def _views(part: _Slice, form: str) -> Values:
    if part.struct.n_buffers < 3:
        _check_buffers(part, form, 3)
    others = part.struct.n_buffers - 3
    views = _buffer(part, 1, part.offset * _VIEW_BYTES, part.length * _VIEW_BYTES)
    sizes = _buffer(part, part.struct.n_buffers - 1, 0, 8 * others).cast("q").tolist()
    if any(not 0 <= size <= _MOST for size in sizes):
        raise ValueError(f"an Arrow array of views claims buffers of {sizes} bytes")
    return ViewKeys(views, [_buffer(part, 2 + i, 0, size) for i, size in enumerate(sizes)])


def _present(part: _Slice) -> bytes | None:
    """A byte for each value, 0 for a null; None where there is none."""
    struct = part.struct
    if not struct.null_count or not part.length:
        return None
    if struct.n_buffers < 1 or not struct.buffers or not struct.buffers[0]:
        if struct.null_count > 0:
            raise ValueError(
                f"an Arrow array claims {struct.null_count} nulls, and does not say which: its "
                "producer is at fault"
            )
        return None
    first, skipped = divmod(part.offset, 8)
    size = (skipped + part.length + 7) // 8
    bits = int.from_bytes(_buffer(part, 0, first, size), "little") >> skipped
    bits &= (1 << part.length) - 1
    if bits.bit_count() == part.length:
        return None
    return f"{bits:0{part.length}b}".encode()[::-1].translate(_NO_NULLS)


def _check_buffers(part: _Slice, form: str, count: int) -> None:
    if part.struct.n_buffers != count or not part.struct.buffers:
        raise ValueError(
            f"an Arrow array of format {form!r} has {part.struct.n_buffers} buffers, expected are "
            f"{count}: its producer is at fault"
        )


def _buffer(part: _Slice, index: int, start: int, size: int) -> memoryview:
    """So many bytes of a buffer; nothing of one is read where there are none."""
    if not size:
        return memoryview(b"")
    address = part.struct.buffers[index]
    if not address:
        raise ValueError(
            f"buffer {index} of an Arrow array of {part.length} values is null: its producer is at "
            "fault"
        )
    view: memoryview = _memory(address + start, size, _PYBUF_READ)
    return view
