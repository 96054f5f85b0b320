"""Warnings about sizes that are allowed and unwise, once, to whoever chose them.

Who is told is a matter of the context, and what changes it runs in a copy: a context manager that
an interruption keeps from being left would have nobody in the thread told any more.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from contextvars import ContextVar, copy_context
from typing import ParamSpec, TypeVar

_P = ParamSpec("_P")
_T = TypeVar("_T")

_OUR_PACKAGES = ("filters", "policies", "lsm")
_is_given: ContextVar[bool] = ContextVar("_is_given", default=False)
_is_followed: ContextVar[bool] = ContextVar("_is_followed", default=False)


class UnwiseSizeError(ValueError):
    """A size that is advised against, where it is asked whether it is."""


def is_wanted() -> bool:
    """Whether whoever chose a size has not been told what to think of it."""
    return not _is_given.get()


def silently(function: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """Calls what makes filters of a size whose chooser was warned before, and warns nobody."""
    return copy_context().run(_with, True, function, *args, **kwargs)


def strictly(function: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """Calls a function that raises an UnwiseSizeError in place of each warning."""
    return copy_context().run(_with, False, function, *args, **kwargs)


def _with(given: bool, function: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
    _is_given.set(given)
    if not given:
        _is_followed.set(True)
    return function(*args, **kwargs)


def warn(message: Callable[[], str]) -> None:
    """A UserWarning that points at the first line outside of this package and those above it."""
    if _is_followed.get():
        raise UnwiseSizeError
    warnings.warn(message(), stacklevel=_level_of_chooser())


def _level_of_chooser() -> int:
    """How far up from ``warn`` that line is: the compiled kernel has none, attrs generates some."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and (
        frame.f_globals.get("__name__", "").partition(".")[0] in _OUR_PACKAGES
        or frame.f_code.co_filename.startswith("<attrs generated")
    ):
        level, frame = level + 1, frame.f_back
    return level
