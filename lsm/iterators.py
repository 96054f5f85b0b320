"""The iterators of the public interface: plyvel's, both ways, with seek."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, Self

from lsm.arguments import key_bytes
from lsm.errors import IteratorInvalidError
from lsm.kernels.python.cursor import CLOSED, Cursor, Source, Window

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from lsm.comparator import Comparator


class BaseIterator:
    """What both kinds of iterators share: a cursor, which the database can close, too.

    An operation that raises leaves an iterator at its position, and can be tried again.
    """

    __slots__ = ("__weakref__", "_comparator", "_cursor", "_pinned_db", "_prefix", "_why_closed")

    def __init__(self, source: Source, comparator: Comparator, prefix: bytes, pinned_db: object):
        self._cursor = Cursor(source)
        self._comparator = comparator
        self._prefix = prefix
        self._pinned_db: object = pinned_db  # which stays open as long as this is in use
        self._why_closed = "Database or iterator is closed"

    def close(self) -> None:
        """Release the view; every further use except closing is a RuntimeError."""
        self._cursor = CLOSED
        self._pinned_db = None

    def abandon(self, reason: str) -> None:
        """Close, with this reason in the RuntimeError of every further use."""
        self._why_closed = reason
        self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> Literal[False]:
        self.close()
        return False

    def _open(self) -> Cursor:
        cursor = self._cursor
        if cursor is CLOSED:
            raise RuntimeError(self._why_closed)
        return cursor

    def _found(self, find: Callable[[Window], Window | None], window: Window) -> Window | None:
        """The window that ``find``, of the cursor, finds beside another one, with its items."""
        try:
            found = find(window)
        except Exception:
            self._open()  # if it was closed meanwhile, that is why
            raise
        if found is not None:
            found.items = self._items_of(found)
        return found

    def _items_of(self, window: Window) -> list[Any]:
        """The items that the iterator returns for a window's entries."""
        raise NotImplementedError

    def _ordered(self, key: Buffer) -> Any:
        whole = self._prefix + key_bytes("target", key)
        wrap = self._comparator.wrap
        return whole if wrap is None else wrap(whole)

    def _outer_keys(self, keys: list[Any]) -> list[bytes]:
        """The keys as bytes, without the prefix of a prefixed database."""
        if self._comparator.wrap is not None:
            keys = [self._comparator.unwrap(key) for key in keys]
        cut = len(self._prefix)
        return [key[cut:] for key in keys] if cut else keys


class Iterator(BaseIterator):
    """Iterates over a range of the database, as it was when the iterator was made.

    It stands between two entries: ``next()`` gives the one behind and steps over it, ``prev()`` the
    one before. So one after the other gives the same entry twice. A reverse iterator begins at the
    end, and ``next()`` and ``prev()`` change places.
    """

    __slots__ = ("_include_key", "_include_value", "_reverse")

    def __init__(
        self,
        source: Source,
        comparator: Comparator,
        prefix: bytes,
        pinned_db: object,
        *,
        reverse: bool,
        include_key: bool,
        include_value: bool,
    ):
        super().__init__(source, comparator, prefix, pinned_db)
        self._reverse = reverse
        self._include_key = include_key
        self._include_value = include_value
        if reverse:
            self.seek_to_stop()

    def __iter__(self) -> Self:
        return self

    # A step within a window is one attribute set, and no call comes between it and the return: an
    # interruption finds it taken, and its item given, or neither.

    def __next__(self) -> Any:
        while True:
            window = self._cursor.window
            at = window.at
            if self._reverse:
                if at > 0:
                    window.at = at = at - 1
                    return window.items[at]
                self._enter_left(window)
            else:
                if at < window.end:
                    window.at = at + 1
                    return window.items[at]
                self._enter_right(window)

    def prev(self) -> Any:
        """The entry before; StopIteration at the start of the range."""
        while True:
            window = self._cursor.window
            at = window.at
            if self._reverse:
                if at < window.end:
                    window.at = at + 1
                    return window.items[at]
                self._enter_right(window)
            else:
                if at > 0:
                    window.at = at = at - 1
                    return window.items[at]
                self._enter_left(window)

    def seek_to_start(self) -> None:
        """Stand before the first entry of the range."""
        cursor = self._open()
        cursor.window = cursor.before_first()

    def seek_to_stop(self) -> None:
        """Stand behind the last entry of the range."""
        cursor = self._open()
        cursor.window = cursor.after_last()

    def seek(self, target: Buffer) -> None:
        """Stand before the first entry of the range from this key on."""
        ordered = self._ordered(target)
        cursor = self._open()
        place = cursor.place_of(ordered)
        # At once, so that this is where damage shows.
        found = self._found(cursor.next_window, place)
        cursor.window = place if found is None else found

    def _enter_right(self, window: Window) -> None:
        """Enter the window behind this one, unless a reentrant step has left it meanwhile."""
        cursor = self._open()
        found = self._found(cursor.next_window, window)
        if cursor.window is window and window.at == window.end:
            if found is None:
                raise StopIteration
            cursor.window = found

    def _enter_left(self, window: Window) -> None:
        """Enter the window before this one, unless a reentrant step has left it meanwhile."""
        cursor = self._open()
        found = self._found(cursor.previous_window, window)
        if cursor.window is window and window.at == 0:
            if found is None:
                raise StopIteration
            found.at = found.end
            cursor.window = found

    def _items_of(self, window: Window) -> list[Any]:
        if self._include_key and self._include_value:
            return list(zip(self._outer_keys(window.keys), window.values, strict=True))
        if self._include_key:
            return self._outer_keys(window.keys)
        return window.values if self._include_value else [None] * window.end


class RawIterator(BaseIterator):
    """LevelDB's own kind of iterator: it stands at an entry, or is not valid."""

    __slots__ = ()

    def valid(self) -> bool:
        """Whether it stands at an entry."""
        window = self._open().window
        return 0 <= window.at < window.end

    def seek_to_first(self) -> None:
        """Stand at the first entry, if there is one."""
        self._enter_right(self._open().before_first())

    def seek_to_last(self) -> None:
        """Stand at the last entry, if there is one."""
        self._enter_left(self._open().after_last())

    def seek(self, target: Buffer) -> None:
        """Stand at the first entry from this key on, if there is one."""
        ordered = self._ordered(target)
        self._enter_right(self._open().place_of(ordered))

    def next(self) -> None:
        """Step to the entry behind; not valid any more after the last one."""
        window = self._cursor.window
        at = window.at + 1
        if at < window.end:
            window.at = at
        elif at == window.end:
            self._enter_right(window)
        else:
            raise self._nowhere()

    def prev(self) -> None:
        """Step to the entry before; not valid any more before the first one."""
        window = self._cursor.window
        at = window.at
        if 0 < at < window.end:
            window.at = at - 1
        elif 0 == at < window.end:
            self._enter_left(window)
        else:
            raise self._nowhere()

    def key(self) -> bytes:
        """The entry's key; IteratorInvalidError if there is no entry here."""
        window = self._cursor.window
        at = window.at
        if 0 <= at < window.end:
            key: bytes = window.items[at]
            return key
        raise self._nowhere()

    def value(self) -> bytes:
        """The entry's value; IteratorInvalidError if there is no entry here."""
        window = self._cursor.window
        at = window.at
        if 0 <= at < window.end:
            return window.values[at]
        raise self._nowhere()

    def item(self) -> tuple[bytes, bytes]:
        """The entry's key and value; IteratorInvalidError if there is no entry here."""
        window = self._cursor.window
        at = window.at
        if 0 <= at < window.end:
            return window.items[at], window.values[at]
        raise self._nowhere()

    def _enter_right(self, window: Window) -> None:
        """Stand at the first entry on the right of a window; nowhere if there is none."""
        cursor = self._open()
        found = self._found(cursor.next_window, window)
        if found is None:
            found = Window([], [], window.left, window.right)
        cursor.window = found

    def _enter_left(self, window: Window) -> None:
        """Stand at the last entry on the left of a window; nowhere if there is none."""
        cursor = self._open()
        found = self._found(cursor.previous_window, window)
        if found is None:
            found = Window([], [], window.left, window.right)
        else:
            found.at = found.end - 1
        cursor.window = found

    def _items_of(self, window: Window) -> list[Any]:
        return self._outer_keys(window.keys)

    def _nowhere(self) -> Exception:
        """The error of asking for an entry where there is none."""
        self._open()
        return IteratorInvalidError()
