"""What a writer has written, and which of its states a reader beside it may have seen."""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Iterable, Mapping

PAIRS = 8
SINGLES = 24


class Ledger:
    """The states of the keys of one writer, by number.

    ``begun`` and ``done`` are the latest state that is being written and that was written: whoever
    looks at ``done``, reads, and looks at ``begun`` has seen a state from the one to the other.
    """

    def __init__(self, name: bytes):
        self.prefix = name + b"/"
        self.last = self.prefix + b"last"
        self.singles = [self.prefix + b"single%02d" % number for number in range(SINGLES)]
        self.pairs = [
            (self.prefix + b"left%d" % number, self.prefix + b"right%d" % number)
            for number in range(PAIRS)
        ]
        self.keys = [*self.singles, *(key for pair in self.pairs for key in pair), self.last]
        self.begun = self.done = 0
        # Of each key the numbers of the states that changed it, and negative where it was deleted.
        self._changes: dict[bytes, list[int]] = {key: [] for key in self.keys}

    def begin(self, keys: Iterable[bytes], deleted: Iterable[bytes] = ()) -> int:
        """The number of the next state, in which these keys are written anew or deleted."""
        number = self.begun + 1
        for key in keys:
            self._changes[key].append(number)
        for key in deleted:
            self._changes[key].append(-number)
        self.begun = number
        return number

    def finish(self) -> None:
        """The state that was begun has been written."""
        self.done = self.begun

    def value(self, key: bytes, number: int) -> bytes:
        """What a key is set to in a state; some values are long."""
        body = b"%s %d " % (_subject(key), number)
        return body + b"." * random.Random(body).choice((0, 10, 40, 90, 300))

    def state(self, number: int) -> dict[bytes, bytes]:
        """All keys that have a value in a state, with their values."""
        changed = {key: self._change(key, number) for key in self.keys}
        return {key: self.value(key, change) for key, change in changed.items() if change > 0}

    def seen(self, found: Mapping[bytes, bytes | None], low: int, high: int) -> int:
        """The earliest state, between two that are included, that has all that was found.

        AssertionError if there is none.
        """
        first, last = low, high
        for key, value in found.items():
            if value is None:
                continue
            change = int(value.split(b" ", 2)[1])
            changes = self._changes[key]
            at = bisect_right(changes, change, key=abs)
            assert at, f"{key!r} was never {value!r}"
            assert changes[at - 1] == change, f"{key!r} was never {value!r}"
            assert value == self.value(key, change), f"{key!r} was never {value!r}"
            first = max(first, change)
            if at < len(changes):
                last = min(last, abs(changes[at]) - 1)
        absent = [key for key, value in found.items() if value is None]
        for number in range(first, last + 1):
            if all(self._change(key, number) <= 0 for key in absent):
                return number
        raise AssertionError(f"no state from {low} to {high} has all of {found}")

    def _change(self, key: bytes, number: int) -> int:
        """The change that holds for a key in a state; 0 if it was never there."""
        changes = self._changes[key]
        at = bisect_right(changes, number, key=abs)
        return changes[at - 1] if at else 0


def _subject(key: bytes) -> bytes:
    """What a value begins with: the key, but the two of a pair have the same values."""
    return key.replace(b"left", b"pair").replace(b"right", b"pair")
