"""Views: the memtables and the version that together are the whole database."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from lsm.kernels.python.memtable import Memtable
    from lsm.version import Version


@attrs.frozen(eq=False)
class View:
    """The memtables, newest first, and the version beneath them: RocksDB's super version.

    A view is replaced as a whole, so that readers take it without a lock; the files of its tables
    are not removed as long as a reader holds it.
    """

    memtables: tuple[Memtable, ...]
    version: Version
