"""What readers read: the state of an open database that lookups and lone commits begin with."""

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

    ``pending`` is the commit that is under way, if there is one. A commit may be made at once if
    there is none and writing ``is_unhindered``: nothing has failed, and nobody is to wait before
    the memtable has its ``unhindered_size``. ``user_bytes`` and ``log_bytes`` count what was
    written.
    """

    view: View | None
    visible: int
    tables: TableCache
    closed_by: str | None
    walkers: Walkers
    pending: object
    is_unhindered: bool
    unhindered_size: int
    user_bytes: int
    log_bytes: int

    def begin_work(self) -> None:
        """Have those who read and write let a background thread have its turn from time to time.

        Between two instructions of Python they do so anyway, if seldom.
        """

    def end_work(self) -> None:
        """Count a background thread that has ended what it did."""
