"""The iterators of the public interface: plyvel's, both ways, with seek."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, Self

from lsm.arguments import key_bytes
from lsm.cursor import Cursor, Source
from lsm.errors import IteratorInvalidError

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from lsm.comparator import Comparator


class Walker:
    """What both kinds of iterators share: a cursor that can be closed, by the database too."""

    __slots__ = ("__weakref__", "_comparator", "_cursor", "_keep", "_prefix", "_why_closed")

    def __init__(self, source: Source, comparator: Comparator, prefix: bytes, keep: object):
        self._cursor: Cursor | None = Cursor(source)
        self._comparator = comparator
        self._prefix = prefix
        self._keep: object = keep  # the database, which stays open as long as this is in use
        self._why_closed = "Database or iterator is closed"

    def close(self) -> None:
        """Let go of what is read; every further use but this one is a RuntimeError."""
        self._cursor = None
        self._keep = None

    def abandon(self, reason: str) -> None:
        """Close, and have every further use tell this reason."""
        self._why_closed = reason
        self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> Literal[False]:
        self.close()
        return False

    def _open(self) -> Cursor:
        if self._cursor is None:
            raise RuntimeError(self._why_closed)
        return self._cursor

    def _ordered(self, key: Buffer) -> Any:
        whole = self._prefix + key_bytes("target", key)
        wrap = self._comparator.wrap
        return whole if wrap is None else wrap(whole)

    def _outer_keys(self, keys: list[Any]) -> list[bytes]:
        """The keys as the user has them."""
        if self._comparator.wrap is not None:
            keys = [self._comparator.unwrap(key) for key in keys]
        cut = len(self._prefix)
        return [key[cut:] for key in keys] if cut else keys


class Iterator(Walker):
    """Iterates over a range of the database, as it was when the iterator was made.

    It stands between two entries: ``next()`` gives the one behind and steps over it, ``prev()`` the
    one before. So one after the other gives the same entry twice. A reverse iterator begins at the
    end, and ``next()`` and ``prev()`` change places.
    """

    __slots__ = ("_at", "_include_key", "_include_value", "_items", "_reverse")

    def __init__(
        self,
        source: Source,
        comparator: Comparator,
        prefix: bytes,
        keep: object,
        *,
        reverse: bool,
        include_key: bool,
        include_value: bool,
    ):
        super().__init__(source, comparator, prefix, keep)
        self._reverse = reverse
        self._include_key = include_key
        self._include_value = include_value
        self._items: list[Any] = []
        self._at = 0
        if reverse:
            self.seek_to_stop()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        if self._reverse:
            return self._step_left()
        at = self._at
        if at < len(self._items):
            self._at = at + 1
            return self._items[at]
        return self._step_right()

    def prev(self) -> Any:
        """The entry before; StopIteration at the start of the range."""
        return self._step_right() if self._reverse else self._step_left()

    def seek_to_start(self) -> None:
        """Stand before the first entry of the range."""
        self._open().place_before()
        self._forget()

    def seek_to_stop(self) -> None:
        """Stand behind the last entry of the range."""
        self._open().place_after()
        self._forget()

    def seek(self, target: Buffer) -> None:
        """Stand before the first entry of the range from this key on."""
        ordered = self._ordered(target)
        self._open().place_at(ordered)
        self._forget()
        if self._open().right():  # read at once, so that this is where damage shows
            self._show()

    def close(self) -> None:
        """Let go of what is read; every further use but this one is a RuntimeError."""
        super().close()
        self._forget()

    def _forget(self) -> None:
        self._items, self._at = [], 0

    def _step_right(self) -> Any:
        if self._at >= len(self._items):
            if not self._open().right():
                raise StopIteration
            self._show()
            self._at = 0
        item = self._items[self._at]
        self._at += 1
        return item

    def _step_left(self) -> Any:
        if self._at == 0:
            if not self._open().left():
                raise StopIteration
            self._show()
            self._at = len(self._items)
        self._at -= 1
        return self._items[self._at]

    def _show(self) -> None:
        """Make the items of the cursor's window."""
        cursor = self._open()
        if self._include_key and self._include_value:
            self._items = list(zip(self._outer_keys(cursor.keys), cursor.values, strict=True))
        elif self._include_key:
            self._items = self._outer_keys(cursor.keys)
        elif self._include_value:
            self._items = cursor.values
        else:
            self._items = [None] * len(cursor.keys)


class RawIterator(Walker):
    """LevelDB's own kind of iterator: it stands at an entry, or is not valid."""

    __slots__ = ("_at", "_keys")

    def __init__(self, source: Source, comparator: Comparator, prefix: bytes, keep: object):
        super().__init__(source, comparator, prefix, keep)
        self._keys: list[bytes] = []
        self._at = -1

    def valid(self) -> bool:
        """Whether it stands at an entry."""
        self._open()
        return self._at >= 0

    def seek_to_first(self) -> None:
        """Stand at the first entry, if there is one."""
        self._open().place_before()
        self._enter(self._open().right, at_end=False)

    def seek_to_last(self) -> None:
        """Stand at the last entry, if there is one."""
        self._open().place_after()
        self._enter(self._open().left, at_end=True)

    def seek(self, target: Buffer) -> None:
        """Stand at the first entry from this key on, if there is one."""
        ordered = self._ordered(target)
        self._open().place_at(ordered)
        self._enter(self._open().right, at_end=False)

    def next(self) -> None:
        """Step to the entry behind; not valid any more after the last one."""
        self._check_valid()
        if self._at + 1 < len(self._keys):
            self._at += 1
        else:
            self._enter(self._open().right, at_end=False)

    def prev(self) -> None:
        """Step to the entry before; not valid any more before the first one."""
        self._check_valid()
        if self._at > 0:
            self._at -= 1
        else:
            self._enter(self._open().left, at_end=True)

    def key(self) -> bytes:
        """The entry's key; IteratorInvalidError if there is no entry here."""
        self._check_valid()
        return self._keys[self._at]

    def value(self) -> bytes:
        """The entry's value; IteratorInvalidError if there is no entry here."""
        cursor = self._check_valid()
        return cursor.values[self._at]

    def item(self) -> tuple[bytes, bytes]:
        """The entry's key and value; IteratorInvalidError if there is no entry here."""
        return self.key(), self.value()

    def _enter(self, step: Callable[[], bool], *, at_end: bool) -> None:
        self._at = -1
        if step():
            self._keys = self._outer_keys(self._open().keys)
            self._at = len(self._keys) - 1 if at_end else 0

    def _check_valid(self) -> Cursor:
        cursor = self._open()
        if self._at < 0:
            raise IteratorInvalidError
        return cursor
