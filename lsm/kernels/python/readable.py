"""What readers read: the state of an open database that a lookup begins with."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lsm.kernels.python.iterator import Walkers
    from lsm.kernels.python.view import View
    from lsm.tables import TableCache


class Readable:
    """A view, the rank of the newest versions that readers see, and the tables' cache.

    The view is None when the database is closed. ``closed_by`` is why nobody is to begin anything,
    and ``walkers`` are those to be closed then.
    """

    view: View | None
    visible: int
    tables: TableCache
    closed_by: str | None
    walkers: Walkers
