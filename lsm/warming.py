"""Loading the filters of a whole database before anybody asks them."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from lsm.errors import CorruptionError, IOError
from policies.containment import let_pass
from policies.errors import cause

if TYPE_CHECKING:
    from lsm.kernels.python import Table
    from lsm.state import State
    from lsm.tables import TableCache
    from lsm.version import PlacedTable

_log = logging.getLogger("lsm")


class Warming:
    """Work of the background: all filters that memory has room for, from level 0 down, once."""

    def __init__(self, state: State, is_kept_out: Callable[[], bool]):
        self._state = state
        self._is_kept_out = is_kept_out
        self._is_done = not state.options.warm_filters

    def has_work(self) -> bool:
        """Whether there are filters that nobody has looked at, and nobody has to wait for that."""
        return not self._is_done and self._state.view is not None and not self._is_kept_out()

    def work(self) -> None:
        """Load what there is; what had to stop for others is gone on with later."""
        state = self._state
        try:
            self._is_done = load_all(state, lambda: state.must_stop() or self._is_kept_out())
        except BaseException as error:
            self._is_done = True
            if not state.must_stop():
                _log.warning(
                    "%s: not all filters are loaded ahead: %s", state.directory, cause(error)
                )
                let_pass(error)


def load_all(state: State, should_stop: Callable[[], bool] = bool) -> bool:
    """Load filters from level 0 down as long as there is room for them; False if it was stopped.

    What cannot be read is left to whoever reads it; with ``paranoid_checks`` it is an error.
    """
    tables = state.tables
    for placed in state.opened_view().version.tables():
        if should_stop():
            return False
        try:
            if not _load(tables, placed, should_stop):
                break
        except (IOError, CorruptionError):
            if state.options.paranoid_checks:
                raise
    return not should_stop()


def _load(tables: TableCache, placed: PlacedTable, should_stop: Callable[[], bool]) -> bool:
    """Load the filters of one table; False where there is no room for them."""
    pushed_out = tables.open_tables.evictions
    opened = tables.opened(placed.file)
    if tables.open_tables.evictions > pushed_out or not tables.filters.has_room_for(opened):
        return False
    loaded = tables.filters.load(opened)
    return loaded.partitions is None or _load_partitions(tables, opened, should_stop)


def _load_partitions(tables: TableCache, opened: Table, should_stop: Callable[[], bool]) -> bool:
    whole = opened.filter
    if whole is None or whole.partitions is None:
        return True
    for number in range(len(whole.partitions)):
        if should_stop() or not tables.filters.has_room_for(opened, number):
            return False
        tables.filters.load_partition(opened, whole, number)
    return True
