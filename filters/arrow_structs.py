"""The structs of Arrow's C data interface, and who has to release them.

See https://arrow.apache.org/docs/format/CDataInterface.html and, for the capsules they come in,
https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html.
"""

from __future__ import annotations

import ctypes
from itertools import count
from typing import Any

RELEASE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
GET = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
GET_TEXT = ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.c_void_p)


class ArrowSchema(ctypes.Structure):
    """What an array is."""


class ArrowArray(ctypes.Structure):
    """Where the buffers of an array are."""


class ArrowArrayStream(ctypes.Structure):
    """What gives arrays of one schema, one after the other."""

    _fields_ = (
        ("get_schema", ctypes.c_void_p),
        ("get_next", ctypes.c_void_p),
        ("get_last_error", ctypes.c_void_p),
        ("release", ctypes.c_void_p),
        ("private_data", ctypes.c_void_p),
    )


ArrowSchema._fields_ = (
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", ctypes.c_void_p),
    ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("children", ctypes.POINTER(ctypes.POINTER(ArrowSchema))),
    ("dictionary", ctypes.POINTER(ArrowSchema)),
    ("release", ctypes.c_void_p),
    ("private_data", ctypes.c_void_p),
)
ArrowArray._fields_ = (
    ("length", ctypes.c_int64),
    ("null_count", ctypes.c_int64),
    ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(ArrowArray))),
    ("dictionary", ctypes.POINTER(ArrowArray)),
    ("release", ctypes.c_void_p),
    ("private_data", ctypes.c_void_p),
)

SCHEMA, ARRAY, STREAM = b"arrow_schema", b"arrow_array", b"arrow_array_stream"
_STRUCTS: dict[bytes, Any] = {SCHEMA: ArrowSchema, ARRAY: ArrowArray, STREAM: ArrowArrayStream}

_pointer_in = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


class Owned:
    """A struct that is ours to release: once, by ``release`` or with the last who holds it."""

    __slots__ = ("struct",)

    def __init__(self, struct: Any):
        self.struct = struct

    @property
    def address(self) -> int:
        """Where the struct is."""
        return ctypes.addressof(self.struct)

    def release(self) -> None:
        """Release it, if that was not done before."""
        if self.struct.release:
            RELEASE(self.struct.release)(self.address)
            self.struct.release = None  # as the callback ought to have done

    def __del__(self) -> None:
        self.release()


def moved(capsule: object, name: bytes) -> Owned:
    """The struct out of a capsule, which has none to release from now on."""
    kind = _STRUCTS[name]
    address = _pointer_in(capsule, name)
    theirs = kind.from_address(address)
    if not theirs.release:
        raise ValueError(f"the capsule {name.decode()!r} was read before, and has nothing any more")
    mine = kind()
    ctypes.memmove(ctypes.addressof(mine), address, ctypes.sizeof(kind))
    theirs.release = None
    return Owned(mine)


_ANSWERED: dict[int, Any] = {}  # what our own arrays keep alive until they are released
_IN_CAPSULES: dict[int, Any] = {}  # our own structs, until their capsules die
_numbers = count(1)

_pointer_at = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
_new_capsule = ctypes.PYFUNCTYPE(
    ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p
)(("PyCapsule_New", ctypes.pythonapi))


def _released(kind: Any) -> Any:
    def release(address: int) -> None:
        struct = kind.from_address(address)
        _ANSWERED.pop(struct.private_data, None)
        struct.release = None

    return RELEASE(release)


def _destroyed(name: bytes) -> Any:
    # With the address of the capsule: it has no references any more, and must not get one.
    def destroy(capsule: int) -> None:
        Owned(_IN_CAPSULES.pop(_pointer_at(capsule, name))).release()

    return ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(destroy)


_RELEASES = {name: _released(_STRUCTS[name]) for name in (SCHEMA, ARRAY)}
_DESTROYS = {name: _destroyed(name) for name in (SCHEMA, ARRAY)}


def in_capsule(name: bytes, struct: Any, keeping: object) -> object:
    """A capsule of a struct of our own, which keeps something alive until it is released."""
    struct.private_data = next(_numbers)
    struct.release = ctypes.cast(_RELEASES[name], ctypes.c_void_p).value
    _ANSWERED[struct.private_data] = keeping
    address = ctypes.addressof(struct)
    _IN_CAPSULES[address] = struct
    return _new_capsule(address, name, ctypes.cast(_DESTROYS[name], ctypes.c_void_p).value)
