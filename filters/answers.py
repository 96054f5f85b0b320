"""Where the answers of a batch go, other than into a list."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import compress
from typing import TYPE_CHECKING, Any

from filters.columns import with_gaps

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from filters.columns import Nulls
    from filters.hashing import Key


def checked_out(out: Buffer, count: int) -> memoryview:
    """``out`` as one row of writable bytes, one for each answer."""
    try:
        view = memoryview(out)
    except TypeError:
        raise TypeError(
            f"out= takes a writable buffer of {count} bytes, not {type(out).__name__}"
            + (': of texts it takes "arrow"' if isinstance(out, str) else "")
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


def spread(answers: bytearray, present: bytes) -> bytearray:
    """The answers for keys as those for rows, of which some have none: there it is 0."""
    rows = bytearray(len(present))
    for row, answer in zip(compress(range(len(present)), present), answers, strict=True):
        rows[row] = answer
    return rows


def answered(
    filter: Any,
    keys: Iterable[Key],
    out: Any,
    nulls: Nulls,
    spread: Callable[[bytearray, bytes], bytearray] = spread,
) -> Any:
    """What ``might_contain_many`` returns of rows with nulls, or as a column.

    No filter has a null: in a list and in a buffer its answer is False.
    """
    found, present = with_gaps(keys, nulls)
    answers = bytearray(len(found))
    filter.might_contain_many(found, answers)
    if present is not None:
        answers = spread(answers, present)
    if out is None:
        return [answer != 0 for answer in answers]
    if isinstance(out, str) and out == "arrow":
        from filters.answer_column import AnswerColumn  # ctypes, which few programs need

        return AnswerColumn(answers, present)
    checked_out(out, len(answers))[:] = answers
    return out
