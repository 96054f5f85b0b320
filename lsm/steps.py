"""Atomic updates: changes of several places that no interruption can leave half done.

Between two of its own instructions Python may raise an interruption, or run a signal handler or a
finalizer. Within one call of a built-in function that calls built-in functions only it does not.
So what has to change together is prepared as **steps**, and then run by one such call. An iterator
of steps runs once, whoever comes first: to run it again does nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from itertools import starmap
from operator import call
from typing import Any, TypeAlias

# A built-in function and its arguments. Those that are used here allocate nothing that the garbage
# collector looks after: it would run finalizers. So ``operator.ior``, and not ``dict.update``.
Step: TypeAlias = tuple[Callable[..., Any], Any] | tuple[Callable[..., Any], Any, Any]

_drain = deque[Any](maxlen=0).extend


def run_steps(steps: Iterator[tuple[Any, ...]]) -> None:
    """Run all steps that are left, in one call of a built-in function."""
    _drain(starmap(call, steps))


def call_all(*calls: Callable[[], object]) -> None:
    """Call each function, whatever Exception another raises; raise the first of these at the end.

    An interruption ends it there: the functions can be called again, from the first on.
    """
    raised: Exception | None = None
    for each in calls:
        try:
            each()
        except Exception as error:
            raised = raised or error
    if raised is not None:
        raise raised
