"""The iterators of the public interface: plyvel's, both ways, with seek."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsm.arguments import flag
from lsm.errors import IteratorInvalidError
from lsm.kernels import Iterator, Walker
from lsm.state import ITERATOR_CLOSED

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from lsm.kernels.python.cursor import Window
    from lsm.state import State

__all__ = ["Iterator", "RawIterator", "raw_iterator"]


class RawIterator(Walker):
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


def raw_iterator(
    state: State,
    read_rank: int | None,
    pinned_db: object,
    *,
    verify_checksums: bool | None = False,
    fill_cache: bool | None = True,
) -> RawIterator:
    """A raw iterator over the whole database, with the arguments of ``DB.raw_iterator``."""
    flag("verify_checksums", verify_checksums)
    fill = flag("fill_cache", fill_cache)
    view = state.view
    if view is None or state.closed_by is not None:
        raise state.closed_error(ITERATOR_CLOSED)
    cursor = state.kernel.cursor_over(state, view, None, read_rank, None, None, fill, True, True)
    iterator = RawIterator(cursor, state.comparator, b"", pinned_db)
    state.add_iterator(iterator)
    return iterator
