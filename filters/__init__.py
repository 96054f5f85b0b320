"""Filter families for LSM stores: bytes in, bytes out.

Every family is one class with one shape::

    f = BlockedBloomFilter.build(keys, bits_per_key=10)    # or fpr=0.01
    f.might_contain(key)                                   # False is certain, True means "maybe"
    BlockedBloomFilter.from_bytes(f.to_bytes()) == f
    filters.load("of-any-family.filter")                   # what f.save() has written

The classes are those of the kernel that runs here; ``filters.KERNEL`` names it and
``filters.KERNEL_REASON`` says why it was chosen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from filters import kernels
from filters.errors import (
    CapacityError,
    CorruptFilterError,
    FilterError,
    GeometryMismatchError,
    KernelUnavailableError,
    UnsupportedVersionError,
)
from filters.hashing import digest
from filters.opening import load
from filters.packed_keys import PackedKeys

KERNEL, KERNEL_REASON = kernels.choose()

__all__ = [
    "KERNEL",
    "KERNEL_REASON",
    "CapacityError",
    "CorruptFilterError",
    "FilterError",
    "GeometryMismatchError",
    "KernelUnavailableError",
    "PackedKeys",
    "UnsupportedVersionError",
    "digest",
    "load",
]

if TYPE_CHECKING:
    # The classes are listed once, in the readable kernel, whose signatures all kernels have.
    from filters.kernels import python as _kernel
    from filters.kernels.python import *  # noqa: F403 - listed there
else:
    _kernel = kernels.load(KERNEL)
    globals().update({name: getattr(_kernel, name) for name in _kernel.__all__})
__all__ += _kernel.__all__
