"""Why a row of a benchmark has no number."""

from __future__ import annotations


class UnavailableError(Exception):
    """What a row needs is not here; the message says what would bring it."""


class WrongAnswersError(Exception):
    """A subject denies a key or lets too many absent keys pass: it is not timed."""
