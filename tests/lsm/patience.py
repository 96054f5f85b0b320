"""Tests that fail, with the stacks of all threads, where they would hang."""

from __future__ import annotations

import faulthandler
import functools
import gc
import tempfile
import threading
from collections.abc import Callable
from typing import Any

import pytest

import lsm

SECONDS = 120.0


def patient(test: Callable[..., None]) -> Callable[..., None]:
    """Have a test run in a thread of its own, and fail when that does not end."""

    @functools.wraps(test)
    def in_time(*arguments: Any, **fixtures: Any) -> None:
        within(SECONDS, lambda: test(*arguments, **fixtures))

    return in_time


def within(seconds: float, call: Callable[[], Any]) -> Any:
    """What a call returns or raises; a failure if it does neither in so many seconds."""
    outcome: list[Any] = []

    def run() -> None:
        try:
            outcome.extend((call(), None))
        except BaseException as error:
            outcome.extend((None, error))

    thread = threading.Thread(target=run, name="test", daemon=True)
    thread.start()
    thread.join(seconds)
    if not outcome:
        _give_up_databases()
        pytest.fail(f"hangs for {seconds} seconds:\n{stacks()}", pytrace=False)
    value, error = outcome
    if error is not None:
        raise error
    return value


def _give_up_databases() -> None:
    """Have no database closed at the end of this process, which would hang there again."""
    for each in gc.get_objects():
        if isinstance(each, lsm.DB):
            each._finalizer.detach()


def stacks() -> str:
    """What every thread is doing."""
    with tempfile.TemporaryFile("w+") as file:
        faulthandler.dump_traceback(file, all_threads=True)
        file.seek(0)
        return file.read()
