"""What readers of databases share, of their parts and of snapshots: lookups, and iterators."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeAlias, TypeVar, overload

from lsm.arguments import flag, key_bytes, optional_key, prefix_successor
from lsm.kernels.python.cursor import Cursor, Source
from lsm.kernels.python.iterator import Iterator
from lsm.refusals import no_length, no_pickle

if TYPE_CHECKING:
    from typing_extensions import Buffer, Unpack

    from lsm.kernels.python.view import View
    from lsm.range_options import RangeOptions
    from lsm.state import State

_Default = TypeVar("_Default")

# A key at which a range begins or ends, if there is one, and whether it is included.
Bound: TypeAlias = tuple[bytes, bool] | None


class Reader(ABC):
    """A base that reads all keys, or those with a prefix, at a read rank or as of now.

    Keys are given and got without the prefix. ``_store`` is None when this was closed. Iterators
    keep ``_pinned_db`` open, or the reader itself if that is None.
    """

    __slots__ = ("_pinned_db", "_prefix", "_read_rank", "_store")

    _prefix: bytes | None
    _read_rank: int | None
    _store: State | None
    _pinned_db: object

    @abstractmethod
    def _closed_error(self) -> Exception:
        """Why there are no lookups any more."""

    @abstractmethod
    def _closed_iterator_error(self) -> Exception:
        """Why there are no iterators any more."""

    def _opened(self) -> tuple[State, View]:
        store = self._store
        view = None if store is None else store.view
        if store is None or view is None:
            raise self._closed_error()
        return store, view

    @overload
    def get(
        self,
        key: Buffer,
        default: None = None,
        *,
        verify_checksums: bool | None = False,
        fill_cache: bool | None = True,
    ) -> bytes | None: ...

    @overload
    def get(
        self,
        key: Buffer,
        default: _Default,
        *,
        verify_checksums: bool | None = False,
        fill_cache: bool | None = True,
    ) -> bytes | _Default: ...

    def get(
        self,
        key: Buffer,
        default: Any = None,
        *,
        verify_checksums: bool | None = False,
        fill_cache: bool | None = True,
    ) -> Any:
        """The key's value, or the default if it has none.

        Blocks are always checked when they enter memory, with ``verify_checksums`` or without. With
        ``fill_cache=False`` what has to be read for this does not push other things out.
        """
        if type(key) is not bytes:
            key = key_bytes("key", key)
        if fill_cache is not True or verify_checksums is not False:
            fill_cache = flag("fill_cache", fill_cache)
            flag("verify_checksums", verify_checksums)
        # The view before the read rank: what a compaction drops may be visible to older ones.
        store, view = self._opened()
        whole = key if self._prefix is None else self._prefix + key
        rank = store.visible if self._read_rank is None else self._read_rank
        wrap = store.comparator.wrap
        ordered = whole if wrap is None else wrap(whole)
        value = store.kernel.find(view, store.tables, whole, ordered, rank, fill_cache)
        return default if value is None else value

    @overload
    def get_many(self, keys: Iterable[Buffer], default: None = None) -> list[bytes | None]: ...

    @overload
    def get_many(self, keys: Iterable[Buffer], default: _Default) -> list[bytes | _Default]: ...

    def get_many(self, keys: Iterable[Buffer], default: Any = None) -> list[Any]:
        """The values of many keys as of one moment, in order; the default for those without."""
        store, view = self._opened()
        rank = store.visible if self._read_rank is None else self._read_rank
        wrap, tables, find = store.comparator.wrap, store.tables, store.kernel.find
        prefix, values = self._prefix or b"", []
        for key in keys:
            whole = prefix + key_bytes("key", key)
            value = find(view, tables, whole, whole if wrap is None else wrap(whole), rank, True)
            values.append(default if value is None else value)
        return values

    def __contains__(self, key: Buffer) -> bool:
        return self.get(key) is not None

    def __getitem__(self, key: Buffer) -> bytes:
        value = self.get(key)
        if value is None:
            raise KeyError(key)
        return value

    def __len__(self) -> NoReturn:
        raise no_length(self)

    def __bool__(self) -> bool:
        return True

    def __reduce__(self) -> NoReturn:
        raise no_pickle(self)

    @overload
    def iterator(
        self,
        *,
        include_key: Literal[True] = True,
        include_value: Literal[True] = True,
        **others: Unpack[RangeOptions],
    ) -> Iterator[tuple[bytes, bytes]]: ...

    @overload
    def iterator(
        self,
        *,
        include_key: Literal[True] = True,
        include_value: Literal[False] | None,
        **others: Unpack[RangeOptions],
    ) -> Iterator[bytes]: ...

    @overload
    def iterator(
        self,
        *,
        include_key: Literal[False] | None,
        include_value: Literal[True] = True,
        **others: Unpack[RangeOptions],
    ) -> Iterator[bytes]: ...

    @overload
    def iterator(
        self,
        *,
        include_key: Literal[False] | None,
        include_value: Literal[False] | None,
        **others: Unpack[RangeOptions],
    ) -> Iterator[None]: ...

    @overload
    def iterator(
        self,
        *,
        include_key: bool | None = True,
        include_value: bool | None = True,
        **others: Unpack[RangeOptions],
    ) -> Iterator[Any]: ...

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
    ) -> Iterator[Any]:
        """An iterator over a range of keys as it is now, in either direction.

        ``prefix`` stands for the range of all keys that begin with it. Blocks are checked when they
        enter memory, with ``verify_checksums`` or without.
        """
        reverse = flag("reverse", reverse)
        include_key = flag("include_key", include_key)
        include_value = flag("include_value", include_value)
        flag("verify_checksums", verify_checksums)
        fill_cache = flag("fill_cache", fill_cache)
        start = optional_key("start", start)
        stop = optional_key("stop", stop)
        include_start = flag("include_start", include_start)
        include_stop = flag("include_stop", include_stop)
        prefix = optional_key("prefix", prefix)
        store = self._store
        view = None if store is None else store.view
        if store is None or view is None:
            raise self._closed_iterator_error()
        low: Bound = None if start is None else (start, include_start)
        high: Bound = None if stop is None else (stop, include_stop)
        if prefix is not None:
            if low is not None or high is not None:
                raise TypeError("'prefix' cannot be used together with 'start' or 'stop'")
            low, high = bounds_of(prefix)
        pinned_db = self if self._pinned_db is None else self._pinned_db
        cursor = cursor_over(
            store, view, self._prefix, self._read_rank, low, high, fill_cache,
            include_key, include_value,
        )  # fmt: skip
        iterator: Iterator[Any] = Iterator(
            cursor, store.comparator, self._prefix or b"", pinned_db, reverse
        )
        store.walkers.add(iterator)
        if store.closed_by is not None:  # by somebody who may not have found it there
            iterator.close()
            raise self._closed_iterator_error()
        return iterator

    def __iter__(self) -> Iterator[tuple[bytes, bytes]]:
        return self.iterator()


def bounds_of(prefix: bytes) -> tuple[Bound, Bound]:
    """The bounds of all keys with a prefix."""
    stop = prefix_successor(prefix)
    return (prefix, True), None if stop is None else (stop, False)


def cursor_over(
    store: State,
    view: View,
    prefix: bytes | None,
    read_rank: int | None,
    low: Bound,
    high: Bound,
    fill_cache: bool,
    include_key: bool,
    include_value: bool,
) -> Cursor:
    """A cursor over a range of the keys, or of those with a prefix, which its items leave out.

    It has what is visible at the read rank, or now. Keys are in the order of the comparator.
    """
    if prefix is not None:
        first, end = bounds_of(prefix)
        low = first if low is None else (prefix + low[0], low[1])
        high = end if high is None else (prefix + high[0], high[1])
    wrap, unwrap = store.comparator.wrap, None
    if wrap is not None:
        unwrap = store.comparator.unwrap
        low = None if low is None else (wrap(low[0]), low[1])
        high = None if high is None else (wrap(high[0]), high[1])
    elif low is not None and high is not None and store.tables.filters.asks_ranges:
        view = store.tables.narrowed(view, low, high)
    # The view was looked at before the rank: what a compaction drops may be visible to an older
    # one only.
    rank = store.visible if read_rank is None else read_rank
    return Cursor(
        Source(
            view, store.tables, rank, fill_cache, low, high, include_key, include_value,
            len(prefix or b""), unwrap,
        )
    )  # fmt: skip
