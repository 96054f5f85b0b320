"""What is read of a database by those who iterate: its ranges as cursors."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from lsm.arguments import prefix_successor
from lsm.kernels.python.cursor import Cursor, Source

if TYPE_CHECKING:
    from lsm.kernels.python.view import View
    from lsm.store import Store

# A key at which a range begins or ends, if there is one, and whether it is included.
Bound: TypeAlias = tuple[bytes, bool] | None


class Reading:
    """The part of a database that is read: keys with a prefix, at a read rank or as of now.

    ``pinned_db`` is the database, which is not collected, and so not closed, as long as it is
    referred to.
    """

    __slots__ = ("pinned_db", "prefix", "read_rank", "store")

    def __init__(
        self, store: Store, prefix: bytes | None, read_rank: int | None, pinned_db: object
    ):
        self.store = store
        self.prefix = prefix
        self.read_rank = read_rank
        self.pinned_db = pinned_db

    def cursor(
        self,
        view: View,
        low: Bound,
        high: Bound,
        fill_cache: bool,
        include_key: bool,
        include_value: bool,
    ) -> Cursor:
        """A cursor over a range of the keys, whose items have them without the prefix."""
        return readable_cursor(self, view, low, high, fill_cache, include_key, include_value)


def bounds_of(prefix: bytes) -> tuple[Bound, Bound]:
    """The bounds of all keys with a prefix."""
    stop = prefix_successor(prefix)
    return (prefix, True), None if stop is None else (stop, False)


def readable_cursor(
    reading: Reading,
    view: View,
    low: Bound,
    high: Bound,
    fill_cache: bool,
    include_key: bool,
    include_value: bool,
) -> Cursor:
    """The cursor of the readable kernel, which orders keys as the comparator does."""
    store, prefix, unwrap = reading.store, reading.prefix, None
    if prefix is not None:
        first, end = bounds_of(prefix)
        low = first if low is None else (prefix + low[0], low[1])
        high = end if high is None else (prefix + high[0], high[1])
    wrap = store.comparator.wrap
    if wrap is not None:
        unwrap = store.comparator.unwrap
        low = None if low is None else (wrap(low[0]), low[1])
        high = None if high is None else (wrap(high[0]), high[1])
    return Cursor(
        Source(
            view,
            store.tables,
            store.visible if reading.read_rank is None else reading.read_rank,
            fill_cache,
            low,
            high,
            include_key,
            include_value,
            len(prefix or b""),
            unwrap,
        )
    )
