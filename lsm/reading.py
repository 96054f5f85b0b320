"""Iterators, as databases, prefixed databases and snapshots share them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from lsm.arguments import flag, key_bytes
from lsm.iterators import Iterator, RawIterator
from lsm.kernels import Reading, bounds_of
from lsm.store import ITERATOR_CLOSED

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from lsm.kernels.python import View
    from lsm.store import Store

__all__ = ["Ranges", "Reading", "raw_iterator"]


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
        reading = self._reading()
        view = _view(reading.store)
        low = None if start is None else (start, include_start)
        high = None if stop is None else (stop, include_stop)
        if prefix is not None:
            if low is not None or high is not None:
                raise TypeError("'prefix' cannot be used together with 'start' or 'stop'")
            low, high = bounds_of(prefix)
        cursor = reading.cursor(view, low, high, fill_cache, include_key, include_value)
        iterator = Iterator(cursor, reading, reverse)
        reading.store.add_iterator(iterator)
        return iterator

    def __iter__(self) -> Iterator:
        return self.iterator()


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
    reading = Reading(store, None, read_rank, pinned_db)
    cursor = reading.cursor(_view(store), None, None, fill, True, True)
    iterator = RawIterator(cursor, reading)
    store.add_iterator(iterator)
    return iterator


def _view(store: Store) -> View:
    """What an open database consists of now."""
    view = store.view
    if view is None or store.closed_by is not None:
        raise store.closed_error(ITERATOR_CLOSED)
    return view
