"""Which kernel runs: the one place that chooses between the readable and the compiled one.

``LSM_KERNEL`` is ``auto`` (the default: native where it can run), ``native`` (an error where it
cannot) or ``python``. Both can be loaded side by side with :func:`load`.
"""

from __future__ import annotations

import os
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from filters import families
from filters.errors import FilterError, KernelUnavailableError

if TYPE_CHECKING:
    from types import ModuleType

    from filters.kernels.python.base import Filter

CHOICES = ("auto", "native", "python")


@cache
def load(name: str) -> ModuleType:
    """The kernel called ``python`` or ``native``; KernelUnavailableError says why it cannot run."""
    if name not in ("python", "native"):
        raise ValueError(f"there is no kernel {name!r}: choose python or native")
    try:
        return import_module(f"filters.kernels.{name}")
    except ImportError as error:
        raise KernelUnavailableError(f"the {name} kernel cannot run here: {error}") from error


def available() -> tuple[str, ...]:
    """The kernels that can run here."""
    return tuple(name for name in ("python", "native") if _why_not(name) is None)


def choose() -> tuple[str, str]:
    """The kernel that ``LSM_KERNEL`` and this installation lead to, and the reason in words."""
    wanted = os.environ.get("LSM_KERNEL") or "auto"
    if wanted not in CHOICES:
        raise ValueError(f"LSM_KERNEL={wanted!r} is not allowed: choose {', '.join(CHOICES)}")
    if wanted != "auto":
        load(wanted)
        return wanted, f"LSM_KERNEL={wanted}"
    why_not = _why_not("native")
    return ("native", "it is compiled") if why_not is None else ("python", why_not)


def module(name: str) -> ModuleType:
    """The chosen kernel's module of this name."""
    return import_module(f"filters.kernels.{choose()[0]}.{name}")


def filter_class(family: str) -> type[Filter]:
    """The chosen kernel's class for a family; FilterError where this release has no such one."""
    known = families.every()
    if family not in known:
        raise FilterError(
            f"there is no family {family!r}; this release has {', '.join(known)}: upgrade "
            "lsm-filters if a later one wrote this filter"
        )
    return known[family].filter_class(choose()[0])


def restore(family: str, data: bytes, **how: Any) -> Filter:
    """Unpickle: the bytes of a filter, read by whichever kernel runs here."""
    return filter_class(family).from_bytes(data, **how)


def _why_not(name: str) -> str | None:
    try:
        load(name)
    except KernelUnavailableError as error:
        return str(error)
    return None
