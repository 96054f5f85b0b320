"""Warnings about sizes that are allowed and unwise, once, to whoever chose them."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_OUR_PACKAGES = ("filters", "policies", "lsm")
_is_given: ContextVar[bool] = ContextVar("_is_given", default=False)
_is_followed: ContextVar[bool] = ContextVar("_is_followed", default=False)


class UnwiseSizeError(ValueError):
    """A size that is advised against, where it is asked whether it is."""


def is_wanted() -> bool:
    """Whether whoever chose a size has not been told what to think of it."""
    return not _is_given.get()


@contextmanager
def given() -> Iterator[None]:
    """Builds filters of a size whose chooser was warned before, and is not warned again."""
    before = _is_given.set(True)
    try:
        yield
    finally:
        _is_given.reset(before)


@contextmanager
def followed() -> Iterator[None]:
    """Has an UnwiseSizeError raised in place of each warning, in this thread alone."""
    before, given_before = _is_followed.set(True), _is_given.set(False)
    try:
        yield
    finally:
        _is_followed.reset(before)
        _is_given.reset(given_before)


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
