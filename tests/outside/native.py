"""The family in the compiled kernel."""

from __future__ import annotations

from typing import Any, ClassVar

from filters.kernels import load
from tests.outside import page

Classic: Any = load("native").ClassicBloomFilter


class OutsideFilter(Classic):
    """A Bloom filter from outside; sized by ``bits_per_key`` or ``fpr``."""

    __slots__ = ()
    family: ClassVar[str] = page.FAMILY
    layout: ClassVar[Any] = page
