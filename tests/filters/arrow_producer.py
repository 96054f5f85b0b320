"""Arrow arrays made by hand, so that they can lie: structs in capsules, and how often these go."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

from filters.arrow_structs import (
    ARRAY,
    GET,
    GET_TEXT,
    RELEASE,
    SCHEMA,
    STREAM,
    ArrowArray,
    ArrowArrayStream,
    ArrowSchema,
)

_new_capsule = ctypes.PYFUNCTYPE(
    ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p
)(("PyCapsule_New", ctypes.pythonapi))


class Producer:
    """Makes arrays whose callbacks count how often each is called."""

    def __init__(self) -> None:
        self.made = 0
        self.released: list[int] = []
        self._kept: list[Any] = []

    @property
    def is_even(self) -> bool:
        """Whether everything that was made was released, once."""
        return sorted(self.released) == list(range(self.made))

    def _owned(self, given: Any) -> Any:
        """A copy of the struct, with a release of its own."""
        number, kind = self.made, type(given)
        struct = kind.from_buffer_copy(given)
        self.made += 1

        def release(address: int) -> None:
            self.released.append(number)
            kind.from_address(address).release = None

        callback = RELEASE(release)
        struct.release = ctypes.cast(callback, ctypes.c_void_p).value
        self._kept += [given, struct, callback]
        return struct

    def schema(self, form: str, dictionary: str = "", children: Sequence[str] = ()) -> Any:
        inner = [ArrowSchema(format=each.encode(), name=b"child") for each in children]
        row = (ctypes.POINTER(ArrowSchema) * max(len(inner), 1))(*map(ctypes.pointer, inner))
        values = ArrowSchema(format=dictionary.encode())
        self._kept += [inner, row, values]
        return ArrowSchema(
            format=form.encode(),
            n_children=len(inner),
            children=ctypes.cast(row, ctypes.POINTER(ctypes.POINTER(ArrowSchema))),
            dictionary=ctypes.pointer(values) if dictionary else None,
        )

    def array(
        self,
        length: int,
        *buffers: bytes | None,
        offset: int = 0,
        null_count: int = 0,
        dictionary: Any = None,
        children: Sequence[Any] = (),
    ) -> Any:
        blocks = [None if each is None else ctypes.create_string_buffer(each) for each in buffers]
        addresses = [None if each is None else ctypes.addressof(each) for each in blocks]
        row = (ctypes.c_void_p * max(len(blocks), 1))(*addresses)
        inner = (ctypes.POINTER(ArrowArray) * max(len(children), 1))(*map(ctypes.pointer, children))
        self._kept += [blocks, row, inner, children, dictionary]
        return ArrowArray(
            length=length,
            null_count=null_count,
            offset=offset,
            n_buffers=len(buffers),
            n_children=len(children),
            buffers=ctypes.cast(row, ctypes.POINTER(ctypes.c_void_p)),
            children=ctypes.cast(inner, ctypes.POINTER(ctypes.POINTER(ArrowArray))),
            dictionary=None if dictionary is None else ctypes.pointer(dictionary),
        )

    def column(self, schema: Any, array: Any) -> Column:
        return Column(
            _new_capsule(ctypes.addressof(self._owned(schema)), SCHEMA, None),
            _new_capsule(ctypes.addressof(self._owned(array)), ARRAY, None),
        )

    def stream(
        self, schema: Any, arrays: Sequence[Any], code: int = 0, said: bytes = b""
    ) -> Stream:
        """A stream of these arrays, which fails at its end if there is a code."""
        waiting = list(arrays)

        def get_schema(_: int, into: int) -> int:
            self._moved(schema, into)
            return 0

        def get_next(_: int, into: int) -> int:
            if waiting:
                self._moved(waiting.pop(0), into)
                return 0
            return code

        told = ctypes.create_string_buffer(said)
        callbacks = GET(get_schema), GET(get_next), GET_TEXT(lambda _: ctypes.addressof(told))
        struct = ArrowArrayStream(
            get_schema=ctypes.cast(callbacks[0], ctypes.c_void_p).value,
            get_next=ctypes.cast(callbacks[1], ctypes.c_void_p).value,
            get_last_error=ctypes.cast(callbacks[2], ctypes.c_void_p).value,
        )
        self._kept += [callbacks, told]
        return Stream(_new_capsule(ctypes.addressof(self._owned(struct)), STREAM, None))

    def _moved(self, struct: Any, into: int) -> None:
        ctypes.memmove(into, ctypes.addressof(self._owned(struct)), ctypes.sizeof(struct))


class Column:
    """What offers an array."""

    def __init__(self, schema: object, array: object):
        self._capsules = schema, array

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        return self._capsules


class Stream:
    """What offers arrays."""

    def __init__(self, stream: object):
        self._capsule = stream

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._capsule
