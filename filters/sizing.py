"""Bits per key and false-positive rates of every family, both ways, before anything is built.

``n`` is a number of keys; None means many (a million), where small numbers no longer matter. What
is predicted here is what the families' own ``plan`` leads to, so it includes rounding. A scalable
filter is predicted as it is built, or with ``capacity=1024`` as it has grown from there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import attrs

from filters import (
    binary_fuse,
    blocked,
    bumped_ribbon,
    cassandra,
    classic,
    counting,
    cuckoo,
    header,
    leveldb,
    peeled,
    ribbon,
    rocksdb,
    rocksdb_forms,
    scalable,
    xor,
)
from filters.sizing_parameters import checked_int, checked_number

if TYPE_CHECKING:
    from filters.kernels.python.base import Filter

MANY = 1 << 20


@attrs.frozen
class Model:
    """How one family is sized: its geometry, the bytes that takes, and the rate it leads to."""

    plan: Callable[[int, Any, int | None], Any]
    payload_bytes: Callable[[Any], int]
    rate: Callable[[float, Any], float]
    check: Callable[..., Any]  # what plan() takes
    takes_probes: bool = True
    can_be_over_filled: bool = False
    overhead: int = header.OVERHEAD
    """The bytes that are stored beside the payload."""


MODELS: dict[str, Model] = {
    "classic": Model(
        classic.plan,
        classic.payload_bytes,
        classic.predicted_fpr,
        classic.check,
        can_be_over_filled=True,
    ),
    "counting": Model(
        counting.plan,
        counting.payload_bytes,
        counting.predicted_fpr,
        counting.check,
        can_be_over_filled=True,
    ),
    "cuckoo": Model(
        lambda n, size, _: cuckoo.plan(n, size),
        cuckoo.payload_bytes,
        cuckoo.predicted_fpr,
        cuckoo.check,
        takes_probes=False,
    ),
    "blocked": Model(
        blocked.plan,
        blocked.payload_bytes,
        blocked.predicted_fpr,
        blocked.check,
        can_be_over_filled=True,
    ),
    "leveldb": Model(
        leveldb.plan,
        leveldb.payload_bytes,
        lambda n, geometry: leveldb.predicted_fpr(round(n), geometry),
        leveldb.check,
        overhead=1,  # the number of probes
    ),
    "rocksdb": Model(
        rocksdb.plan,
        rocksdb.payload_bytes,
        lambda n, geometry: rocksdb.predicted_fpr(round(n), geometry),
        rocksdb.check,
        overhead=rocksdb_forms.TRAILER_BYTES,
    ),
    "binary-fuse": Model(
        lambda n, size, _: binary_fuse.size_of(n, size),
        binary_fuse.payload_bytes,
        peeled.predicted_fpr,
        binary_fuse.check,
        takes_probes=False,
    ),
    "ribbon": Model(
        lambda n, size, _: ribbon.plan(n, size),
        ribbon.payload_bytes,
        lambda n, geometry: ribbon.predicted_fpr(round(n), geometry),
        ribbon.check,
        takes_probes=False,
        overhead=rocksdb_forms.TRAILER_BYTES,
    ),
    "scalable": Model(
        lambda n, terms, _: scalable.plan(n, terms),
        scalable.payload_bytes,
        scalable.predicted_fpr,
        scalable.check,
        takes_probes=False,
    ),
    "xor": Model(
        lambda n, size, _: xor.size_of(n, size),
        xor.payload_bytes,
        peeled.predicted_fpr,
        xor.check,
        takes_probes=False,
    ),
    "cassandra": Model(
        lambda n, size, _: cassandra.plan(n, size),
        cassandra.payload_bytes,
        cassandra.predicted_fpr,
        cassandra.check,
        takes_probes=False,
        overhead=cassandra.HEADER_BYTES,
    ),
    "bumped-ribbon": Model(
        lambda n, size, _: bumped_ribbon.plan(n, size),
        bumped_ribbon.payload_bytes,
        bumped_ribbon.predicted_fpr,
        bumped_ribbon.check,
        takes_probes=False,
    ),
}


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
    model, count, geometry = _plan(family, n, num_probes, size)
    checked_number("over_filled", over_filled, 0, 1000)
    if over_filled > 1 and not model.can_be_over_filled:
        raise ValueError(
            f"a {family} filter cannot be over-filled: it is built of the keys it is made for, "
            f"grows, or refuses more; possible for {', '.join(_growing())}"
        )
    return float(model.rate(count * over_filled, geometry))


def bits_per_key(
    family: str, *, n: int | None = None, num_probes: int | None = None, **size: float
) -> float:
    """The payload bits per key that a family takes under its sizing parameter."""
    model, count, geometry = _plan(family, n, num_probes, size)
    return model.payload_bytes(geometry) * 8 / max(1, count)


def stored_bits_per_key(
    family: str, *, n: int | None = None, num_probes: int | None = None, **size: float
) -> float:
    """The same with what stands around the payload, which counts where keys are few."""
    model, count, geometry = _plan(family, n, num_probes, size)
    return (model.payload_bytes(geometry) + model.overhead) * 8 / max(1, count)


def estimate_num_keys(filter: Filter) -> float:
    """How many distinct keys a filter holds, as its fill suggests.

    For what other engines wrote, which does not say; beside ``num_keys`` it tells over-filling. A
    cuckoo, a binary fuse, a bumped ribbon, an xor and a scalable filter know their count.
    """
    built: Any = filter
    match filter.family:
        case "classic":
            geometry = classic.Geometry(built.num_bits, built.num_probes)
            return classic.count_from_fill(filter.fill, geometry)
        case "counting":
            geometry = classic.Geometry(built.num_counters, built.num_probes)
            return counting.count_from_fill(filter.fill, geometry)
        case "blocked":
            lines = blocked.Geometry(built.num_lines, built.num_probes)
            return blocked.count_from_fill(filter.fill, lines)
        case "leveldb":
            bits = leveldb.Geometry(built.num_bits, built.num_probes)
            return leveldb.count_from_fill(filter.fill, bits) if built.num_bits else 0.0
        case "rocksdb" | "ribbon":
            return rocksdb_forms.estimate_num_keys(built)
        case "cassandra":
            words = cassandra.Geometry(built.num_bits, built.num_probes)
            return cassandra.count_from_fill(filter.fill, words)
        case _:
            return float(built.num_keys)


def _plan(
    family: str, n: int | None, num_probes: int | None, size: dict[str, float]
) -> tuple[Model, int, Any]:
    if family not in MODELS:
        raise ValueError(f"there is no family {family!r}: choose {', '.join(MODELS)}")
    model = MODELS[family]
    count = MANY if n is None else checked_int("n", n, 0, 1 << 40)
    more: dict[str, Any] = {"num_probes": num_probes} if model.takes_probes else {}
    return model, count, model.plan(count, model.check(**size, **more), num_probes)


def _growing() -> list[str]:
    return [family for family, model in MODELS.items() if model.can_be_over_filled]
