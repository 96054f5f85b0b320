"""A reader's C API, its door, asked from Python: what a compiled lookup would be told."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from filters import digest
from filters.hashing import key_bytes

if TYPE_CHECKING:
    from filters.hashing import Key

_NAME = b"lsm.probe.v1"
_XXH3_64 = 0  # of its digests a lookup makes one for all filters of a seed


class _Door(ctypes.Structure):
    """The struct of ``lsm_probe.h``."""

    _fields_ = (
        ("struct_size", ctypes.c_uint32),
        ("digest_kind", ctypes.c_uint32),
        ("digest_seed", ctypes.c_uint64),
        ("self", ctypes.c_void_p),
        (
            "probe",
            ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t),
        ),
        ("probe_digest", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_uint64)),
    )


_pointer_in = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


def ways_in(reader: Any) -> list[tuple[str, Callable[[Key], int]]]:
    """How compiled code may ask this reader for a key, by name; none where it has no such door.

    ValueError for a capsule that is not what ``__lsm_probe__`` promises.
    """
    offer = getattr(reader, "__lsm_probe__", None)
    if offer is None:
        return []
    capsule = offer()
    door = _Door.from_address(_pointer_in(capsule, _NAME))
    if door.struct_size < ctypes.sizeof(_Door) or not door.probe or not door.probe_digest:
        raise ValueError(
            f"the struct of its capsule has {door.struct_size} bytes and not all functions, "
            f"expected are {ctypes.sizeof(_Door)} bytes or more"
        )

    door.capsule = capsule  # it keeps alive what the functions below use

    def probe(key: Key) -> int:
        key = key_bytes(key)
        answer: int = door.probe(door.self, key, len(key))
        return answer

    def probe_digest(key: Key) -> int:
        answer: int = door.probe_digest(door.self, digest(key, door.digest_seed))
        return answer

    ways: list[tuple[str, Callable[[Key], int]]] = [("probe", probe)]
    if door.digest_kind == _XXH3_64:
        ways.append(("probe_digest", probe_digest))
    return ways
