"""Every error a policy, a block or a configuration raises on purpose, and how it words a typo."""

from __future__ import annotations

from collections.abc import Iterable

from filters.errors import FilterError, UnsupportedVersionError
from policies.containment import is_attended, let_pass

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
    "plugin_error",
    "words",
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


def words(error: BaseException) -> str:
    """What an exception says, nothing where its own ``str`` fails."""
    try:
        return str(error)
    except BaseException as raised:  # a plug-in's exception class is as foreign as the plug-in
        let_pass(raised, attended=is_attended())
        return ""


def cause(error: BaseException) -> str:
    """An exception in words, with the name of its class."""
    said = words(error)
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def plugin_error(policy: object, what: str, error: BaseException) -> PluginError:
    """What to raise for whatever a policy raised; an interruption is raised as it is."""
    let_pass(error)
    return PluginError(f"filter policy {type(policy).__qualname__} {what}: {cause(error)}")
