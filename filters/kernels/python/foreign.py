"""What the filters of other engines share: bytes as those write them, unseeded hashes, a rate."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from itertools import groupby
from typing import TYPE_CHECKING, ClassVar

from filters.kernels.python.base import DigestFilter
from filters.kernels.python.digests import Digests, digests_of

if TYPE_CHECKING:
    from filters.hashing import Key


class ForeignFilter(DigestFilter):
    """A filter in the bytes of another engine, which say neither its family nor its keys.

    There is nothing secret in it: who chooses the keys can choose ones that pass.
    """

    __slots__ = ("_data", "_measured_fpr", "_num_keys")
    _kind: ClassVar[str]
    _data: memoryview | bytearray

    def __init__(self, data: memoryview | bytearray, num_keys: int | None):
        self._data = data
        self._num_keys = num_keys
        self._measured_fpr: float | None = None

    @classmethod
    def digests(cls) -> Digests:
        """An empty collection of digests for ``build`` and ``count_missing``."""
        return Digests(cls._kind, 0)

    @property
    def num_keys(self) -> int | None:
        """How many keys ``build`` counted; None after ``from_bytes``."""
        return self._num_keys

    @property
    def size_in_bytes(self) -> int:
        """The length of ``to_bytes()``."""
        return len(self._data)

    @property
    def expected_fpr(self) -> float:
        """The rate of this very filter; measured once (within 5 %) where its fill does not tell."""
        if self._measured_fpr is None:
            self._measured_fpr = self._measure_fpr()
        return self._measured_fpr

    @abstractmethod
    def _measure_fpr(self) -> float:
        """The rate, from the fill or from a sample."""

    @property
    def _digest_kind(self) -> tuple[str, int]:
        return self._kind, 0


def distinct_neighbours(keys: Iterable[Key] | Digests, kind: str) -> list[int]:
    """The digests of the keys, without those that equal the one before them."""
    digests, _ = digests_of(keys, kind, None)
    return [digest for digest, _ in groupby(digests)]
