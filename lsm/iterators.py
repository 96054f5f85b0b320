"""The iterators of the public interface: plyvel's, both ways, with seek."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Self

from lsm.errors import IteratorInvalidError
from lsm.kernels import CLOSED, Stepper, Walker, stepping

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from lsm.kernels.python.cursor import Window


class BaseIterator(Walker):
    """What both kinds of iterators share: they can be closed, by the database, too."""

    __slots__ = ()

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


@stepping
class Iterator(BaseIterator, Stepper):
    """Iterates over a range of the database, as it was when the iterator was made.

    It stands between two entries: ``next()`` gives the one behind and steps over it, ``prev()`` the
    one before. So one after the other gives the same entry twice. A reverse iterator begins at the
    end, and ``next()`` and ``prev()`` change places.
    """

    __slots__ = ()


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
        self._enter_right(self._place_of(target))

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
            key: bytes = window.items[at][0]
            return key
        raise self._nowhere()

    def value(self) -> bytes:
        """The entry's value; IteratorInvalidError if there is no entry here."""
        window = self._cursor.window
        at = window.at
        if 0 <= at < window.end:
            value: bytes = window.items[at][1]
            return value
        raise self._nowhere()

    def item(self) -> tuple[bytes, bytes]:
        """The entry's key and value; IteratorInvalidError if there is no entry here."""
        window = self._cursor.window
        at = window.at
        if 0 <= at < window.end:
            item: tuple[bytes, bytes] = window.items[at]
            return item
        raise self._nowhere()

    def _enter_right(self, window: Window) -> None:
        """Stand at the first entry on the right of a window; nowhere if there is none."""
        cursor = self._open()
        found = self._found(cursor.next_window, window)
        if found is None:
            found = window.vacated()
        cursor.window = found

    def _enter_left(self, window: Window) -> None:
        """Stand at the last entry on the left of a window; nowhere if there is none."""
        cursor = self._open()
        found = self._found(cursor.previous_window, window)
        if found is None:
            found = window.vacated()
        else:
            found.at = found.end - 1
        cursor.window = found

    def _nowhere(self) -> Exception:
        """The error of asking for an entry where there is none."""
        self._open()
        return IteratorInvalidError()
