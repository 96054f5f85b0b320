"""Where the answers of a batch go when the caller brings the memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Buffer


def checked_out(out: Buffer, count: int) -> memoryview:
    """``out`` as one row of writable bytes, one for each answer."""
    try:
        view = memoryview(out)
    except TypeError:
        raise TypeError(
            f"out= takes a writable buffer of {count} bytes, not {type(out).__name__}"
        ) from None
    if view.readonly or view.itemsize != 1 or view.ndim != 1 or not view.c_contiguous:
        raise TypeError(
            "out= takes one row of writable single bytes, such as a bytearray or a NumPy array of "
            f"bool: this one has format {view.format!r}, shape {view.shape}"
            + (" and is read-only" if view.readonly else "")
        )
    if len(view) != count:
        raise ValueError(f"out= has room for {len(view)} answers, and there are {count} keys")
    return view.cast("B")
