"""The orders that other programs give their databases, to read these with.

::

    order = lsm.comparators.idb_cmp1
    lsm.DB(path, comparator=order, comparator_name=order.name, read_only=True)

Where a key stands is the other program's to say: what it does not write may stand elsewhere in its
next release. So databases in these orders are opened for reading alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs

from lsm import indexeddb_keys

__all__ = ["KNOWN", "ForeignOrder", "idb_cmp1"]


@attrs.frozen
class ForeignOrder:
    """An order of keys, called with two of them as plyvel calls comparators.

    ``rank`` gives for a key the bytes that order as the keys do; of any bytes, for what is on disk
    is untrusted. ``of`` says whose order it is.
    """

    name: bytes
    of: str
    rank: Callable[[bytes], bytes]

    def __call__(self, one: bytes, other: bytes) -> int:
        """-1, 0 or 1, as the first key is before, with or behind the second."""
        low, high = self.rank(one), self.rank(other)
        return (low > high) - (low < high)


idb_cmp1 = ForeignOrder(b"idb_cmp1", "Chrome's IndexedDB", indexeddb_keys.rank)
"""The order of IndexedDB in Chrome, Edge, Electron and whatever else Chromium is in."""

KNOWN: Mapping[str, ForeignOrder] = {order.name.decode(): order for order in (idb_cmp1,)}
"""All of them, by the names that manifests record."""
