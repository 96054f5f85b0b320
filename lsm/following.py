"""Filters that follow what is configured, and what the tree has become, by themselves."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from lsm import drift
from lsm.refiltering import Refiltering
from policies.errors import cause

if TYPE_CHECKING:
    from lsm.background import Background
    from lsm.installing import Installer
    from lsm.state import State

_log = logging.getLogger("lsm")


class Following:
    """Work of the background: tables that have drifted, while nothing else is to be done.

    Without a pace for that they wait until somebody asks.
    """

    def __init__(self, background: Background, state: State, installer: Installer):
        self._background = background
        self._state = state
        self._installer = installer
        self._installs_seen = -1
        self._hopeless: set[int] = set()

    def has_work(self) -> bool:
        """Whether anything was installed since the filters were looked at, and nobody works."""
        if not self._state.options.refilter_bytes_per_second:
            return False
        return (
            self._installs_seen != self._installer.installs and self._background.is_otherwise_idle()
        )

    def work(self) -> None:
        """Give the tables that have drifted other filters.

        What comes meanwhile is looked at again; what could not be helped is left alone.
        """
        installs, request = self._installer.installs, self._what_drifted()
        if request is None:
            self._installs_seen = installs
            return
        if self._background.follow(request):
            self._installs_seen = installs + request.installs
        self._hopeless |= request.hopeless
        for each in request.skipped:
            if each.number in request.hopeless:
                self._warn(f"a table keeps its filter: {each.reason}")
        if request.error is not None:
            self._warn(f"filters stay as they are: {cause(request.error)}")

    def _what_drifted(self) -> Refiltering | None:
        """The request for all tables that have drifted; None where that cannot be told."""
        try:
            tree = drift.find(self._state)
        except BaseException as error:  # of a plug-in that fails to say what its filters cost
            if not self._state.must_stop():
                self._warn(f"filters stay as they are: {cause(error)}")
            return None
        self._hopeless &= {table.number for table in tree.tables}
        levels = {table.level for table in tree.tables if table.number in self._hopeless}
        drifted = [
            table
            for table in tree.drifted
            if table.number not in self._hopeless and (table.level or 0 not in levels)
        ]
        return Refiltering.of(tree, drifted, self._state.options.refilter_bytes_per_second)

    def _warn(self, what: str) -> None:
        _log.warning("%s: %s", self._state.directory, what)
