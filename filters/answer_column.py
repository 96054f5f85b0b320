"""The answers for many keys as a column, for whoever has the keys in one."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any, overload

from filters.arrow_structs import ARRAY, SCHEMA, ArrowArray, ArrowSchema, in_capsule

_NULLABLE = 2
_DIGITS = bytes.maketrans(b"\0\1", b"01")


class AnswerColumn:
    """Answers in the order of the keys: False is certain, True means "maybe", None is for a null.

    It is an Arrow array of booleans for whatever takes one through the PyCapsule interface, such as
    ``pyarrow.array(answers)`` and ``polars.Series(answers)``, and ``numpy.asarray(answers)`` views
    it as an array of bool, in which nulls are False. It is no
    ``Sequence`` to ``isinstance``: Polars goes through these one by one, before it looks for Arrow.
    """

    __slots__ = ("_answers", "_present")

    def __init__(self, answers: bytearray, present: bytes | None):
        """A byte for each answer, and where there are nulls a byte for each, 0 for a null."""
        self._answers = answers
        self._present = present

    def __len__(self) -> int:
        return len(self._answers)

    @overload
    def __getitem__(self, index: int) -> bool | None: ...
    @overload
    def __getitem__(self, index: slice) -> list[bool | None]: ...
    def __getitem__(self, index: int | slice) -> bool | list[bool | None] | None:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        answer = self._answers[index] == 1
        return answer if self._present is None or self._present[index] else None

    def __iter__(self) -> Iterator[bool | None]:
        return (self[index] for index in range(len(self)))

    def __repr__(self) -> str:
        return f"<AnswerColumn: {self._answers.count(1)} of {len(self)} maybe>"

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return {"version": 3, "shape": (len(self),), "typestr": "|b1", "data": self._answers}

    def __arrow_c_schema__(self) -> object:
        """The type of an array of booleans."""
        schema = ArrowSchema(format=b"b", name=b"", flags=_NULLABLE)
        return in_capsule(SCHEMA, schema, None)

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        """The type and the array; it has no other type than this, whichever is asked for."""
        bits = _bits(self._answers)
        present = None if self._present is None else _bits(self._present)
        buffers = (ctypes.c_void_p * 2)(
            None if present is None else ctypes.addressof(present), ctypes.addressof(bits)
        )
        array = ArrowArray(
            length=len(self),
            null_count=0 if self._present is None else self._present.count(0),
            n_buffers=2,
            buffers=ctypes.cast(buffers, ctypes.POINTER(ctypes.c_void_p)),
        )
        return self.__arrow_c_schema__(), in_capsule(ARRAY, array, (bits, present, buffers))


def _bits(answers: bytes | bytearray) -> Any:
    """A bit for each byte, the lowest first, in whole words of 64."""
    number = int(answers.translate(_DIGITS)[::-1] or b"0", 2)
    return ctypes.create_string_buffer(number.to_bytes(-(-len(answers) // 64) * 8, "little"))
