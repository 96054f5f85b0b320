"""Iterators, as databases, prefixed databases and snapshots share them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import attrs

from lsm.arguments import flag, optional_key, prefix_successor
from lsm.iterators import Iterator, RawIterator
from lsm.store import ITERATOR_CLOSED

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from lsm.comparator import OrderedKey
    from lsm.kernels.python import Cursor
    from lsm.store import Store


@attrs.frozen
class Reading:
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
        flags = [
            flag("reverse", reverse),
            flag("include_key", include_key),
            flag("include_value", include_value),
        ]
        flag("verify_checksums", verify_checksums)
        fill = flag("fill_cache", fill_cache)
        span = Span(
            optional_key("start", start),
            optional_key("stop", stop),
            flag("include_start", include_start),
            flag("include_stop", include_stop),
        )
        within = optional_key("prefix", prefix)
        reading = self._reading()
        reading.store.check_open(ITERATOR_CLOSED)
        if within is not None:
            span = span.of_prefix(within)
        return _iterator(reading, span.with_prefix(reading.prefix), fill, *flags)

    def __iter__(self) -> Iterator:
        return self.iterator()


@attrs.frozen
class Span:
    """The bounds of an iterator, as they were given."""

    start: bytes | None
    stop: bytes | None
    include_start: bool
    include_stop: bool

    def of_prefix(self, prefix: bytes) -> Span:
        """The range of all keys with a prefix; TypeError beside a start or a stop."""
        if self.start is not None or self.stop is not None:
            raise TypeError("'prefix' cannot be used together with 'start' or 'stop'")
        return Span(prefix, prefix_successor(prefix), include_start=True, include_stop=False)

    def with_prefix(self, prefix: bytes | None) -> Span:
        """The same range with this prefix prepended to both of its bounds."""
        if prefix is None:
            return self
        start, include_start = prefix, True
        if self.start is not None:
            start, include_start = prefix + self.start, self.include_start
        if self.stop is not None:
            return Span(start, prefix + self.stop, include_start, self.include_stop)
        return Span(start, prefix_successor(prefix), include_start, include_stop=False)


def _iterator(
    reading: Reading,
    span: Span,
    fill_cache: bool,
    reverse: bool,
    include_key: bool,
    include_value: bool,
) -> Iterator:
    store, prefix = reading.store, reading.prefix or b""
    cursor = _cursor(
        store,
        reading.read_rank,
        fill_cache,
        _bound(store, span.start, span.include_start),
        _bound(store, span.stop, span.include_stop),
        include_key,
        include_value,
        len(prefix),
    )
    iterator = Iterator(cursor, store.comparator, prefix, reading.pinned_db, reverse)
    store.add_iterator(iterator)
    return iterator


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
    cursor = _cursor(store, read_rank, fill, None, None, True, True, 0)
    iterator = RawIterator(cursor, store.comparator, b"", pinned_db)
    store.add_iterator(iterator)
    return iterator


def _cursor(
    store: Store,
    read_rank: int | None,
    fill_cache: bool,
    low: tuple[OrderedKey, bool] | None,
    high: tuple[OrderedKey, bool] | None,
    include_key: bool,
    include_value: bool,
    cut: int,
) -> Cursor:
    view = store.view
    if view is None:
        raise store.closed_error(ITERATOR_CLOSED)
    rank = store.visible if read_rank is None else read_rank
    comparator, kernel = store.comparator, store.kernel
    unwrap = None if comparator.wrap is None else comparator.unwrap
    source = kernel.Source(
        view, store.tables, rank, fill_cache, low, high, include_key, include_value, cut, unwrap
    )
    cursor: Cursor = kernel.Cursor(source)
    return cursor


def _bound(store: Store, key: bytes | None, included: bool) -> tuple[OrderedKey, bool] | None:
    if key is None:
        return None
    wrap = store.comparator.wrap
    return key if wrap is None else wrap(key), included
