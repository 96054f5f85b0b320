"""Which kernel the engine runs on: the one place that chooses between readable and compiled.

The compiled one runs where the filters' does, ``LSM_KERNEL`` chooses both, and for databases whose
keys compare as bytes: one with a comparator of its own has the readable kernel, whatever runs.
"""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

import filters
from filters import KernelUnavailableError

if TYPE_CHECKING:
    from types import ModuleType

    from lsm.comparator import Comparator


@cache
def load(name: str) -> ModuleType:
    """The kernel called ``python`` or ``native``; KernelUnavailableError says why it cannot run."""
    if name not in ("python", "native"):
        raise ValueError(f"there is no kernel {name!r}: choose python or native")
    if name == "native" and not getattr(sys, "_is_gil_enabled", lambda: True)():
        raise KernelUnavailableError(
            "the engine's native kernel cannot run here: it counts on the global interpreter lock, "
            "which this interpreter runs without"
        )
    try:
        return import_module(f"lsm.kernels.{name}")
    except ImportError as error:
        raise KernelUnavailableError(
            f"the engine's {name} kernel cannot run here: {error}"
        ) from error


def available() -> tuple[str, ...]:
    """The kernels that can run here."""
    return tuple(name for name in ("python", "native") if _why_not(name) is None)


def choose() -> tuple[str, str]:
    """The kernel that goes with the filters', and the reason in words."""
    if filters.KERNEL == "python":
        return filters.KERNEL, filters.KERNEL_REASON
    why_not = _why_not("native")
    if why_not is None:
        return filters.KERNEL, filters.KERNEL_REASON
    if filters.KERNEL_REASON.startswith("LSM_KERNEL"):
        load("native")  # who asks for it is told
    return "python", why_not


def of(comparator: Comparator) -> ModuleType:
    """The kernel for databases of this order of keys."""
    return _chosen if comparator.wrap is None else load("python")


def name_of(kernel: ModuleType) -> str:
    """Its name, as ``load`` takes it."""
    return kernel.__name__.rpartition(".")[2]


def _why_not(name: str) -> str | None:
    try:
        load(name)
    except KernelUnavailableError as error:
        return str(error)
    return None


KERNEL, KERNEL_REASON = choose()
_chosen = load(KERNEL)

# What all databases have in common, whatever the order of their keys.
if TYPE_CHECKING:
    from lsm.kernels.python import CLOSED as CLOSED
    from lsm.kernels.python import Batch as Batch
    from lsm.kernels.python import FilterDoor as FilterDoor
    from lsm.kernels.python import Iterator as Iterator
    from lsm.kernels.python import Keyspace as Keyspace
    from lsm.kernels.python import LogEnd as LogEnd
    from lsm.kernels.python import Readable as Readable
    from lsm.kernels.python import Reader as Reader
    from lsm.kernels.python import TableFile as TableFile
    from lsm.kernels.python import Tally as Tally
    from lsm.kernels.python import Walker as Walker
    from lsm.kernels.python import Walkers as Walkers
else:
    FilterDoor, TableFile, Tally = _chosen.FilterDoor, _chosen.TableFile, _chosen.Tally
    Readable, Reader, Keyspace = _chosen.Readable, _chosen.Reader, _chosen.Keyspace
    Batch, LogEnd = _chosen.Batch, _chosen.LogEnd
    CLOSED, Iterator, Walker, Walkers = (
        _chosen.CLOSED, _chosen.Iterator, _chosen.Walker, _chosen.Walkers
    )  # fmt: skip
