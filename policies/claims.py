"""What a plug-in says of itself for people to read: its rate, its name, its parameters.

Nothing depends on it, so that what it fails to say, or says wrongly, is unknown and no error. The
log tells it once for each class.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, TypeVar

from policies.block import Identity
from policies.containment import is_momentary, let_pass
from policies.contract import FilterPolicy
from policies.errors import cause

_T = TypeVar("_T")
_log = logging.getLogger("lsm")
_told: set[tuple[str, str]] = set()


def claimed(subject: object, what: str, ask: Callable[[], _T]) -> _T | None:
    """The answer to a question about a policy or a reader; None where asking raises."""
    try:
        return ask()
    except BaseException as error:
        let_pass(error)
        if not is_momentary(error):
            _tell(subject, what, cause(error))
        return None


def identity(policy: FilterPolicy) -> Identity | None:
    """A policy's name and parameters, where it says what a table can hold."""
    return claimed(policy, "the name and parameters", lambda: Identity.of(policy))


def expected_fpr(reader: Any) -> float | None:
    """The share of absent keys that a reader expects to let through, where it says one."""
    return claimed(reader, "expected_fpr", lambda: _rate(getattr(reader, "expected_fpr", None)))


def _rate(said: Any) -> float | None:
    if said is None:
        return None
    if not isinstance(said, int | float) or isinstance(said, bool):
        raise TypeError(f"a rate is a number, not {type(said).__name__}")
    rate = float(said)
    if not 0 <= rate <= 1:  # nor is it that if it is no number at all
        raise ValueError(f"a rate is 0 to 1, not {rate}")
    return rate


def _tell(subject: object, what: str, problem: str) -> None:
    cls = f"{type(subject).__module__}.{type(subject).__qualname__}"
    if (cls, what) not in _told:
        _told.add((cls, what))
        _log.warning("%s of %s is shown as unknown: %s", what, cls, problem)
