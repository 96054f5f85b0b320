"""Iterators, as databases, prefixed databases and snapshots share them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, NamedTuple

from lsm.arguments import flag, key_bytes, prefix_successor
from lsm.iterators import Iterator, RawIterator
from lsm.store import ITERATOR_CLOSED

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from lsm.kernels.python import Cursor
    from lsm.store import Store

    # A key at which a range begins or ends, if there is one, and whether it is included.
    Bound = tuple[bytes, bool] | None


class Reading(NamedTuple):
    """The part of a database that is read: keys with a prefix, at a read rank or as of now."""

    store: Store
    prefix: bytes | None
    read_rank: int | None
    pinned_db: object
    """The database, which is not collected, and so not closed, as long as this is referred to."""


class Ranges(ABC):
    """Iterating, as databases, prefixed databases and snapshots do alike."""

    __slots__ = ()

    @abstractmethod
    def _reading(self) -> Reading:
        """The keys and the moment that iterators of this object are made for."""

    def iterator(
        self,
        *,
        reverse: bool | None = False,
        start: Buffer | None = None,
        stop: Buffer | None = None,
        include_start: bool | None = True,
        include_stop: bool | None = False,
        prefix: Buffer | None = None,
        include_key: bool | None = True,
        include_value: bool | None = True,
        verify_checksums: bool | None = False,
        fill_cache: bool | None = True,
    ) -> Iterator:
        """An iterator over a range of keys as it is now, in either direction.

        ``prefix`` stands for the range of all keys that begin with it. Blocks are checked when they
        enter memory, with ``verify_checksums`` or without.
        """
        # Most are what they are by default, and an iterator may be made for a few entries.
        if reverse is not False:
            reverse = flag("reverse", reverse)
        if include_key is not True:
            include_key = flag("include_key", include_key)
        if include_value is not True:
            include_value = flag("include_value", include_value)
        if verify_checksums is not False:
            flag("verify_checksums", verify_checksums)
        if fill_cache is not True:
            fill_cache = flag("fill_cache", fill_cache)
        if start is not None:
            start = key_bytes("start", start)
        if stop is not None:
            stop = key_bytes("stop", stop)
        if include_start is not True:
            include_start = flag("include_start", include_start)
        if include_stop is not False:
            include_stop = flag("include_stop", include_stop)
        if prefix is not None:
            prefix = key_bytes("prefix", prefix)
        store, own_prefix, read_rank, pinned_db = self._reading()
        store.check_open(ITERATOR_CLOSED)
        low = None if start is None else (start, include_start)
        high = None if stop is None else (stop, include_stop)
        if prefix is not None:
            if low is not None or high is not None:
                raise TypeError("'prefix' cannot be used together with 'start' or 'stop'")
            low, high = _bounds_of(prefix)
        if own_prefix is not None:
            low, high = _within(own_prefix, low, high)
        cursor = _cursor(
            store, read_rank, fill_cache, low, high, include_key, include_value, own_prefix
        )
        iterator = Iterator(cursor, store.comparator, own_prefix or b"", pinned_db, reverse)
        store.add_iterator(iterator)
        return iterator

    def __iter__(self) -> Iterator:
        return self.iterator()


def _bounds_of(prefix: bytes) -> tuple[Bound, Bound]:
    """The bounds of all keys with a prefix."""
    stop = prefix_successor(prefix)
    return (prefix, True), None if stop is None else (stop, False)


def _within(prefix: bytes, low: Bound, high: Bound) -> tuple[Bound, Bound]:
    """The same bounds with this prefix prepended to both of them."""
    first, end = _bounds_of(prefix)
    if low is not None:
        first = (prefix + low[0], low[1])
    if high is not None:
        end = (prefix + high[0], high[1])
    return first, end


def raw_iterator(
    store: Store,
    read_rank: int | None,
    pinned_db: object,
    *,
    verify_checksums: bool | None = False,
    fill_cache: bool | None = True,
) -> RawIterator:
    """A raw iterator over the whole database, with the arguments of ``DB.raw_iterator``."""
    flag("verify_checksums", verify_checksums)
    fill = flag("fill_cache", fill_cache)
    store.check_open(ITERATOR_CLOSED)
    cursor = _cursor(store, read_rank, fill, None, None, True, True, None)
    iterator = RawIterator(cursor, store.comparator, b"", pinned_db)
    store.add_iterator(iterator)
    return iterator


def _cursor(
    store: Store,
    read_rank: int | None,
    fill_cache: bool,
    low: Bound,
    high: Bound,
    include_key: bool,
    include_value: bool,
    prefix: bytes | None,
) -> Cursor:
    """A cursor over a range, whose items have keys without a prefix."""
    view = store.view
    if view is None:
        raise store.closed_error(ITERATOR_CLOSED)
    cursor: Cursor
    kernel, wrap, unwrap = store.kernel, store.comparator.wrap, None
    if wrap is not None:
        unwrap = store.comparator.unwrap
        low = None if low is None else (wrap(low[0]), low[1])
        high = None if high is None else (wrap(high[0]), high[1])
    cursor = kernel.Cursor(
        kernel.Source(
            view,
            store.tables,
            store.visible if read_rank is None else read_rank,
            fill_cache,
            low,
            high,
            include_key,
            include_value,
            0 if prefix is None else len(prefix),
            unwrap,
        )
    )
    return cursor
