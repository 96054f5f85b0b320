"""What a reader reads: memtables and tables that together are the whole database."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from lsm.memtable import Memtable
    from lsm.version import Version


@attrs.frozen(eq=False)
class View:
    """The memtables, newest first, and the tables beneath them.

    A view is replaced as a whole, so that readers take it without a lock; its tables' files stay
    as long as somebody holds it.
    """

    memtables: tuple[Memtable, ...]
    version: Version
