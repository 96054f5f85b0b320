"""The partitions of a table's filter: their last keys, and the filters that readers find here."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lsm.comparator import OrderedKey
    from lsm.disk.footer import Handle
    from lsm.loaded_filter import LoadedFilter

# What a partition takes beside its filter: a key object, a handle and their places in three lists.
_OVERHEAD = 200


class Partitions:
    """Which partition may have a key, and of each its filter once that was loaded."""

    __slots__ = ("__weakref__", "_filters", "_handles", "_lasts", "charge")

    def __init__(
        self,
        lasts: Sequence[bytes],
        handles: Sequence[Handle],
        wrap: Callable[[bytes], OrderedKey] | None = None,
    ):
        self._lasts: Sequence[OrderedKey] = lasts if wrap is None else list(map(wrap, lasts))
        self._handles = handles
        self._filters: list[LoadedFilter | None] = [None] * len(handles)
        self.charge = _OVERHEAD * (len(handles) + 1) + sum(map(len, lasts))

    def __len__(self) -> int:
        return len(self._handles)

    def ascend(self) -> bool:
        """Whether the last keys do; several partitions may end in versions of one key."""
        return not any(last < before for before, last in pairwise(self._lasts))

    def find(self, key: OrderedKey) -> int:
        """The number of the partition that a key is in if it is in the table.

        As many as there are partitions for one behind all of them, of which nobody can tell.
        """
        return bisect_left(self._lasts, key)

    def handle(self, number: int) -> Handle:
        """Where the filter of this number is in the file."""
        return self._handles[number]

    def cached(self, number: int) -> LoadedFilter | None:
        """The filter of this number, if readers find it here."""
        return self._filters[number]

    def place(self, number: int, loaded: LoadedFilter | None) -> None:
        """Let readers find this filter under this number, or none."""
        self._filters[number] = loaded

    def emptied(self) -> list[LoadedFilter]:
        """The filters that readers have found here, and do not find any more."""
        filters, self._filters = self._filters, [None] * len(self._handles)
        return [loaded for loaded in filters if loaded is not None]
