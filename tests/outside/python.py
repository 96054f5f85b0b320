"""The family in the readable kernel."""

from __future__ import annotations

from typing import ClassVar

from filters.kernels.python.bloom import Layout
from filters.kernels.python.classic import ClassicBloomFilter
from tests.outside import page


class OutsideFilter(ClassicBloomFilter):
    """A Bloom filter from outside; sized by ``bits_per_key`` or ``fpr``."""

    __slots__ = ()
    family = page.FAMILY
    layout: ClassVar[Layout] = page
