"""Checks of the arguments of public methods, with the same errors everywhere."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from filters.sizing_parameters import checked_int
from lsm.options import LEVELS, Size, size_in_bytes

if TYPE_CHECKING:
    from typing_extensions import Buffer


def key_bytes(name: str, value: Buffer) -> bytes:
    """The bytes of a bytes-like argument; TypeError for anything else, str above all."""
    if type(value) is bytes:
        return value
    if isinstance(value, str):
        how = f", {name}.encode()" if name.isidentifier() else ""
        raise TypeError(f"{name} is bytes, not str: encode it first{how}")
    try:
        return bytes(memoryview(value))
    except TypeError:
        raise TypeError(
            f"{name} is bytes or another bytes-like object, not {type(value).__name__}"
        ) from None


def optional_key(name: str, value: Buffer | None) -> bytes | None:
    """The bytes of a bytes-like argument, or None for None."""
    return None if value is None else key_bytes(name, value)


def flag(name: str, value: Any) -> bool:
    """True or False; None counts as False, as in plyvel."""
    if value is True:
        return True
    if value is False or value is None:
        return False
    raise TypeError(f"{name} is True or False, not {type(value).__name__}")


def optional_size(name: str, value: int | str | None) -> int | None:
    """A number of bytes above 0, which may be text such as ``"20 MiB"``, or None for None."""
    if value is None:
        return None
    size: int = size_in_bytes(value)
    rule = Size(1, 1 << 62)
    if isinstance(size, bool) or not isinstance(size, int):
        raise rule.wrong_kind(name, size)
    return checked_int(name, size, rule.low, rule.high)


def check_progress(progress: object) -> None:
    """TypeError for what can neither be called nor be left out."""
    if progress is not None and not callable(progress):
        raise TypeError(f"progress is a function, or None, not {type(progress).__name__}")


def checked_levels(levels: Iterable[int] | None) -> frozenset[int]:
    """The numbers of levels; all there are for None."""
    if levels is None:
        return frozenset(range(LEVELS))
    if isinstance(levels, str | bytes) or not isinstance(levels, Iterable):
        raise TypeError(f"levels are numbers, like [0, 1], or None, not {levels!r:.60}")
    return frozenset(checked_int("a level", level, 0, LEVELS - 1) for level in levels)


def prefix_successor(prefix: bytes) -> bytes | None:
    """The least key that is greater than all with this prefix; None if there is none."""
    head = prefix.rstrip(b"\xff")
    return head[:-1] + bytes((head[-1] + 1,)) if head else None
