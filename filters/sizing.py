"""Bits per key and false-positive rates of every family, both ways, before anything is built.

``n`` is a number of keys; None means many (a million), where small numbers no longer matter. What
is predicted here is what the families' own ``plan`` leads to, so it includes rounding. A scalable
filter is predicted as it is built, or with ``capacity=1024`` as it has grown from there. What a
surf filter takes and passes depends on its keys, and is predicted for keys of random bytes.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from filters.families import FAMILIES, every
from filters.family import Family
from filters.sizing_parameters import checked_int, checked_number

if TYPE_CHECKING:
    from filters.kernels.python.base import Filter

MANY = 1 << 20


def lower_bound(fpr: float) -> float:
    """The bits per key below which no filter of any kind can have this rate: log2(1/fpr)."""
    return -math.log2(checked_number("fpr", fpr, 2**-64, 1))


def fpr(
    family: str,
    *,
    n: int | None = None,
    num_probes: int | None = None,
    over_filled: float = 1,
    **size: float,
) -> float:
    """The expected rate of a family under its sizing parameter (``bits_per_key=10``, ``fpr=0.01``).

    ``over_filled=2`` is the rate once twice as many keys are in as the filter was made for.
    """
    found, count, geometry = _plan(family, n, num_probes, size)
    checked_number("over_filled", over_filled, 0, 1000)
    if over_filled > 1 and not found.can_be_over_filled:
        raise ValueError(
            f"a {family} filter cannot be over-filled: it is built of the keys it is made for, "
            f"grows, or refuses more; possible for {', '.join(_growing())}"
        )
    return float(found.predicted_fpr(count * over_filled, geometry))


def bits_per_key(
    family: str, *, n: int | None = None, num_probes: int | None = None, **size: float
) -> float:
    """The payload bits per key that a family takes under its sizing parameter."""
    found, count, geometry = _plan(family, n, num_probes, size)
    return found.payload_bytes(geometry) * 8 / max(1, count)


def stored_bits_per_key(
    family: str, *, n: int | None = None, num_probes: int | None = None, **size: float
) -> float:
    """The same with what stands around the payload, which counts where keys are few."""
    found, count, geometry = _plan(family, n, num_probes, size)
    return (found.payload_bytes(geometry) + found.overhead) * 8 / max(1, count)


def estimate_num_keys(filter: Filter) -> float:
    """How many distinct keys a filter holds, as its fill suggests.

    For what other engines wrote, which does not say; beside ``num_keys`` it tells over-filling. A
    cuckoo, a binary fuse, a bumped ribbon, an xor and a scalable filter know their count.
    """
    return every()[filter.family].estimate_num_keys(filter)


def _plan(
    family: str, n: int | None, num_probes: int | None, size: dict[str, float]
) -> tuple[Family, int, Any]:
    known = every()
    if family not in known:
        raise ValueError(f"there is no family {family!r}: choose {', '.join(known)}")
    found = known[family]
    count = MANY if n is None else checked_int("n", n, 0, 1 << 40)
    return found, count, found.sized(count, num_probes, **size)


def _growing() -> list[str]:
    return [family.name for family in FAMILIES.values() if family.can_be_over_filled]
