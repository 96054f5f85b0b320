"""Every error a policy, a block or a configuration raises on purpose, and how it words a typo."""

from __future__ import annotations

from collections.abc import Iterable

from filters.errors import FilterError, UnsupportedVersionError

__all__ = [
    "CorruptBlockError",
    "DuplicatePolicyError",
    "PluginError",
    "PolicyConfigError",
    "UnknownParameterError",
    "UnknownPolicyError",
    "UnsupportedVersionError",
    "cause",
    "did_you_mean",
]


class UnknownPolicyError(FilterError, LookupError):
    """No policy of this name is built in, registered or installed."""


class UnknownParameterError(FilterError, TypeError):
    """The policy has no parameter of this name; the message lists those it has."""


class DuplicatePolicyError(FilterError, ValueError):
    """Two different policies claim one name, and nothing says which of them is meant."""


class PluginError(FilterError):
    """A policy from outside this package cannot be used; the message names where it came from."""


class PolicyConfigError(FilterError, ValueError):
    """A configuration that selects no valid policy; the message names file, table and key."""


class CorruptBlockError(FilterError):
    """These bytes are not a filter block, or no longer one."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`` (did you mean 'x'?)`` for the known word nearest to this one, or nothing."""
    import difflib  # only a typo needs it

    nearest = difflib.get_close_matches(word, list(known), n=1)
    return f" (did you mean {nearest[0]!r}?)" if nearest else ""


def cause(error: BaseException) -> str:
    """An exception in words, even one whose own ``str`` fails."""
    try:
        words = str(error)
    except Exception:  # a plug-in's exception class is as foreign as the plug-in
        words = ""
    return f"{type(error).__name__}: {words}" if words else type(error).__name__
