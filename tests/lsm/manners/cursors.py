"""What iterators are to do, over a plain list: as anybody would have it, and as plyvel has it."""

from __future__ import annotations

import abc
from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

import attrs
import pytest

plyvel = pytest.importorskip("plyvel")

# A key in a form that orders itself as the database's comparator orders keys, and the entry.
Ordered = tuple[Any, tuple[bytes, bytes]]
Entry = tuple[bytes, bytes]


@attrs.frozen
class Range:
    """The bounds of an iterator, as keys that order themselves; None is no bound."""

    start: Any = None
    stop: Any = None
    include_start: bool = True
    include_stop: bool = False

    def begins_at(self, key: Any) -> bool:
        """Whether the key is not before the range."""
        if self.start is None or self.start < key:
            return True
        return self.include_start and self.start == key

    def reaches(self, key: Any) -> bool:
        """Whether the key is not behind the range."""
        if self.stop is None or key < self.stop:
            return True
        return self.include_stop and key == self.stop


class Walk(abc.ABC):
    """A cursor that goes forth or back, and answers the entry it passes or None at an end."""

    def __init__(self, entries: Sequence[Ordered], within: Range, reverse: bool):
        self.within = within
        self.reverse = reverse
        self.entries = list(entries)
        self.keys = [key for key, _ in entries]
        if reverse:
            self.seek_to_stop()
        else:
            self.seek_to_start()

    def next(self) -> Entry | None:
        """The next entry in the direction of the iterator."""
        return self.down() if self.reverse else self.up()

    def prev(self) -> Entry | None:
        """The next entry against the direction of the iterator."""
        return self.up() if self.reverse else self.down()

    @abc.abstractmethod
    def up(self) -> Entry | None:
        """Upwards in the order of the keys."""

    @abc.abstractmethod
    def down(self) -> Entry | None:
        """Downwards in the order of the keys."""

    @abc.abstractmethod
    def seek_to_start(self) -> None:
        """Stand before the range, whatever the direction."""

    @abc.abstractmethod
    def seek_to_stop(self) -> None:
        """Stand behind the range, whatever the direction."""

    @abc.abstractmethod
    def seek(self, target: Any) -> None:
        """Stand before the first entry of the range from a key on."""


class Between(Walk):
    """It stands between two entries of the range, and nothing else is there."""

    def __init__(self, entries: Sequence[Ordered], within: Range, reverse: bool):
        inside = [
            (key, entry) for key, entry in entries if within.begins_at(key) and within.reaches(key)
        ]
        super().__init__(inside, within, reverse)

    def up(self) -> Entry | None:
        """The entry behind the gap, which is then before it."""
        if self.at == len(self.entries):
            return None
        self.at += 1
        return self.entries[self.at - 1][1]

    def down(self) -> Entry | None:
        """The entry before the gap, which is then behind it."""
        if self.at == 0:
            return None
        self.at -= 1
        return self.entries[self.at][1]

    def seek_to_start(self) -> None:
        """Before all entries."""
        self.at = 0

    def seek_to_stop(self) -> None:
        """Behind all entries."""
        self.at = len(self.entries)

    def seek(self, target: Any) -> None:
        """Before the first entry from a key on."""
        self.at = bisect_left(self.keys, target)


class Plyvels(Walk):
    """It stands before the start, behind the stop, at an entry passed, or at one sought.

    The last two are places in the whole database, and it depends on the step which bounds are
    looked at.
    """

    BEFORE, BEHIND, PASSED, SOUGHT = range(4)

    def up(self) -> Entry | None:
        """Upwards; whatever is beyond the stop counts as the end, nothing else is checked."""
        if self.state == self.BEHIND:
            return None
        if self.state == self.BEFORE:
            start = self.within.start
            at = 0 if start is None else bisect_left(self.keys, start)
            if at < len(self.keys) and not self.within.begins_at(self.keys[at]):
                at += 1
            if at == len(self.keys):
                return None
        else:
            at = self.at + (self.state == self.PASSED)
        if at == len(self.keys) or not self.within.reaches(self.keys[at]):
            self.state = self.BEHIND
            return None
        self.state, self.at = self.PASSED, at
        return self.entries[at][1]

    def down(self) -> Entry | None:
        """Downwards; only the entry after the one answered is compared with the start."""
        if self.state == self.BEFORE:
            return None
        if self.state == self.PASSED:
            at = self.at
        elif self.state == self.SOUGHT:
            at = self.at - 1
            if at < 0:
                self.state = self.BEFORE
        else:
            at = self._last()
            if at >= 0 and self.within.start is not None and not self.within.start < self.keys[at]:
                return None
        if at < 0:
            return None
        inside = at > 0 and self.within.begins_at(self.keys[at - 1])
        self.state, self.at = (self.PASSED if inside else self.BEFORE), at - 1
        return self.entries[at][1]

    def _last(self) -> int:
        """Where the last entry within the stop is; -1 if there is none."""
        if self.within.stop is None:
            return len(self.keys) - 1
        at = bisect_left(self.keys, self.within.stop)
        return at if at < len(self.keys) and self.within.reaches(self.keys[at]) else at - 1

    def seek_to_start(self) -> None:
        """Before the start."""
        self.state = self.BEFORE

    def seek_to_stop(self) -> None:
        """Behind the stop."""
        self.state = self.BEHIND

    def seek(self, target: Any) -> None:
        """At the first entry from a key on that is moved into the bounds before."""
        if self.within.start is not None and target < self.within.start:
            target = self.within.start
        if self.within.stop is not None and self.within.stop < target:
            target = self.within.stop
        at = bisect_left(self.keys, target)
        self.state, self.at = (self.BEHIND, 0) if at == len(self.keys) else (self.SOUGHT, at)


class Raw:
    """A raw iterator: at one of the entries, or nowhere."""

    def __init__(self, entries: Sequence[Ordered]):
        self.entries = list(entries)
        self.at = -1

    def valid(self) -> bool:
        """Whether it is at an entry."""
        return 0 <= self.at < len(self.entries)

    def item(self) -> Entry:
        """The entry it is at."""
        if not self.valid():
            raise plyvel.IteratorInvalidError
        return self.entries[self.at][1]

    def key(self) -> bytes:
        """The key of that."""
        return self.item()[0]

    def value(self) -> bytes:
        """The value of that."""
        return self.item()[1]

    def next(self) -> None:
        """One up, or off the end."""
        self.item()
        self.at += 1

    def prev(self) -> None:
        """One down, or off the front."""
        self.item()
        self.at -= 1

    def seek_to_first(self) -> None:
        """To the first entry, or nowhere."""
        self.at = 0

    def seek_to_last(self) -> None:
        """To the last entry, or nowhere."""
        self.at = len(self.entries) - 1

    def seek(self, target: Any) -> None:
        """To the first entry from a key on, or nowhere."""
        self.at = bisect_left(self.entries, target, key=lambda entry: entry[0])
