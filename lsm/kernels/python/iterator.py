"""Who walks along a cursor: what iterators share, and those that stand between entries."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, Generic, Literal, NoReturn, Self, TypeVar

from lsm.arguments import key_bytes
from lsm.kernels.python.cursor import CLOSED
from lsm.refusals import no_pickle

if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import Buffer

    from lsm.comparator import Comparator
    from lsm.kernels.python.cursor import Cursor, Window

_Item_co = TypeVar("_Item_co", covariant=True)


class Walker:
    """A base with a cursor, which is ``CLOSED`` when this was closed; ``_why_closed`` says why.

    ``_pinned_db`` stays open as long as this is in use. An operation that raises leaves a walker at
    its position, and can be tried again.
    """

    __slots__ = ("__weakref__", "_comparator", "_cursor", "_pinned_db", "_prefix", "_why_closed")

    def __init__(self, cursor: Cursor, comparator: Comparator, prefix: bytes, pinned_db: object):
        self._cursor = cursor
        self._comparator = comparator
        self._prefix = prefix
        self._pinned_db = pinned_db
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

    def __reduce__(self) -> NoReturn:
        raise no_pickle(self)

    def _open(self) -> Cursor:
        cursor = self._cursor
        if cursor is CLOSED:
            raise RuntimeError(self._why_closed)
        return cursor

    def _found(self, find: Callable[[Window], Window | None], window: Window) -> Window | None:
        """The window that ``find``, of the cursor, finds beside another one."""
        try:
            return find(window)
        except Exception:
            self._open()  # if it was closed meanwhile, that is why
            raise

    def _place_of(self, target: Buffer) -> Window:
        """The place of a key that was given without the prefix."""
        whole = self._prefix + key_bytes("target", target)
        wrap = self._comparator.wrap
        return self._open().place_of(whole if wrap is None else wrap(whole))


class Iterator(Walker, Generic[_Item_co]):
    """Iterates over a range of the database, as it was when the iterator was made.

    It stands between two entries: ``next()`` gives the one behind and steps over it, ``prev()`` the
    one before. So one after the other gives the same entry twice. A reverse iterator begins at the
    end, and ``next()`` and ``prev()`` change places.
    """

    __slots__ = ("_reverse",)

    def __init__(
        self,
        cursor: Cursor,
        comparator: Comparator,
        prefix: bytes,
        pinned_db: object,
        reverse: bool,
    ):
        super().__init__(cursor, comparator, prefix, pinned_db)
        self._reverse = reverse
        if reverse:
            self.seek_to_stop()

    def __iter__(self) -> Self:
        return self

    # A step within a window is one attribute set, and no call comes between it and the return: an
    # interruption finds it taken, and its item given, or neither.

    def __next__(self) -> _Item_co:
        item: _Item_co
        while True:
            window = self._cursor.window
            at = window.at
            if self._reverse:
                if at > 0:
                    item = window.items[at - 1]
                    window.at = at - 1
                    return item
                self._enter_left(window)
            else:
                if at < window.end:
                    item = window.items[at]
                    window.at = at + 1
                    return item
                self._enter_right(window)

    def prev(self) -> _Item_co:
        """The entry before; StopIteration at the start of the range."""
        item: _Item_co
        while True:
            window = self._cursor.window
            at = window.at
            if self._reverse:
                if at < window.end:
                    item = window.items[at]
                    window.at = at + 1
                    return item
                self._enter_right(window)
            else:
                if at > 0:
                    item = window.items[at - 1]
                    window.at = at - 1
                    return item
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
        place = self._place_of(target)
        cursor = self._open()
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


class Walkers:
    """The walkers of a database, known by weak references, which leave by themselves."""

    __slots__ = ("_references",)

    def __init__(self) -> None:
        self._references: dict[weakref.ref[Any], None] = {}

    def add(self, walker: Walker) -> None:
        """Know a walker from now on."""
        self._references[weakref.ref(walker, self._references.pop)] = None

    def alive(self) -> list[Any]:
        """Those that are still there."""
        walkers = [reference() for reference in list(self._references)]
        return [walker for walker in walkers if walker is not None]

    def __len__(self) -> int:
        return len(self._references)
