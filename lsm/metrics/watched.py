"""Databases whose metrics somebody reads, known weakly, and silent when they are closed.

Who reads takes no lock that a writer wants. What a counter has said it never falls behind, though
the counts of statistics are taken without a lock, and one of them from two others.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from lsm import inspection
from lsm.db import DB
from lsm.metrics.catalogue import COUNTER, Metric

if TYPE_CHECKING:
    from lsm.stats import Stats

# Metrics that are asked for one by one are of one moment unless so much time lies between them:
# longer than a collection takes, and shorter than the time from one to the next.
_ONE_COLLECTION_SECONDS = 1.0

REGISTERING = threading.RLock()
"""Held while somebody looks whether a database is known already, and makes it known."""


class Watched:
    """A database with the labels that tell it apart from others."""

    def __init__(self, db: DB, labels: Mapping[str, Any]):
        # Not the database itself: whoever reads could become the last to have it, and close it.
        self._store = weakref.ref(db._store)
        self.labels = dict(labels)
        self._most: dict[tuple[str, tuple[str, ...]], float] = {}
        self._lock = threading.RLock()
        self._taken: Stats | None = None
        self._taken_at = 0.0
        self._told: set[str] = set()

    @property
    def is_open(self) -> bool:
        """Whether there is anything to be told of it."""
        store = self._store()
        return store is not None and store.closed_by is None

    def stats(self) -> Stats | None:
        """The statistics as of now; None if it is closed."""
        store = self._store()
        if store is None or store.closed_by is not None:
            return None
        try:
            found = inspection.stats(store)
        except Exception:
            if store.closed_by is None:
                raise
            return None  # it was closed meanwhile, which can make whatever reads it fail
        return found if store.closed_by is None else None

    def stats_for(self, metric: Metric) -> Stats | None:
        """The same for one metric of many that are asked for one by one, from one moment for all.

        The second time that a metric is asked for, another collection has begun.
        """
        if not self.is_open:
            return None
        with self._lock:
            now = time.monotonic()
            is_old = now - self._taken_at > _ONE_COLLECTION_SECONDS
            if self._taken is None or is_old or metric.name in self._told:
                self._taken, self._taken_at = self.stats(), now
                self._told.clear()
            self._told.add(metric.name)
            return self._taken

    def samples(self, metric: Metric, stats: Stats) -> dict[tuple[str, ...], float]:
        """The values of a metric by those of its labels."""
        found = {where: value for where, value in metric.read(stats) if value is not None}
        if metric.kind != COUNTER:
            return found
        with self._lock:
            for where, value in found.items():
                most = max(value, self._most.get((metric.name, where), value))
                found[where] = self._most[metric.name, where] = most
        return found


class Watchlist:
    """The databases whose metrics go to one place, which their labels tell apart there."""

    def __init__(self) -> None:
        self._watched: dict[frozenset[tuple[str, Any]], Watched] = {}

    def add(self, watched: Watched, place: str) -> None:
        """Add a database; ValueError if another open one of this place has the same labels.

        The caller holds ``REGISTERING``.
        """
        for key, each in tuple(self._watched.items()):
            if not each.is_open:
                del self._watched[key]
        where = frozenset(watched.labels.items())
        if where in self._watched:
            raise ValueError(
                f"the {place} has the metrics of an open database with the labels "
                f"{watched.labels!r} already: close that registration first, or give this "
                "database labels of its own"
            )
        self._watched[where] = watched

    def remove(self, watched: Watched) -> None:
        """Remove a database if it is there."""
        where = frozenset(watched.labels.items())
        if self._watched.get(where) is watched:
            del self._watched[where]

    def all(self) -> tuple[Watched, ...]:
        """The databases, in the order in which they came; those that were closed are left out."""
        return tuple(each for each in tuple(self._watched.values()) if each.is_open)

    def __len__(self) -> int:
        return len(self._watched)


class Registration:
    """A database's place among those whose metrics are told; ``close()`` ends it.

    It need not be kept: when the database is closed or collected, its metrics end as well.
    """

    def __init__(self, end: Callable[[], None]):
        self._end: Callable[[], None] | None = end

    def close(self) -> None:
        """Tell no more of the database; without effect the second time."""
        with REGISTERING:
            end, self._end = self._end, None
            if end is not None:
                end()

    def __enter__(self) -> Registration:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def watched(
    db: DB,
    argument: str,
    given: Mapping[str, Any] | None,
    name: str,
    check: Callable[[Any, Any], None],
) -> Watched:
    """A database with the labels of an argument, which all pass ``check``, and ``name`` its path.

    TypeError or ValueError for what is no database, or no label; RuntimeError if it is closed.
    """
    if not isinstance(db, DB):
        raise TypeError(f"db must be an lsm.DB, not {type(db).__name__}")
    if given is not None and not isinstance(given, Mapping):
        raise TypeError(
            f"{argument} must be a mapping of names to values, not {type(given).__name__}"
        )
    labels = {name: db._store.directory, **(given or {})}
    for label, value in labels.items():
        check(label, value)
    db._store.check_open()
    return Watched(db, {label: _encodable(value) for label, value in labels.items()})


def _encodable(value: Any) -> Any:
    """A value as it can be written as UTF-8, which paths of other bytes cannot."""
    if not isinstance(value, str) or value.isascii():
        return value
    return value.encode("utf-8", "backslashreplace").decode()
