"""Which parameters a policy class takes, found without making an instance."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import Any

import attrs

from policies.errors import UnknownParameterError, did_you_mean

PREFIX_KEYS = ("prefix", "prefix_until", "whole_keys")
"""The keys of a configuration that say which beginnings of keys filters have."""

BUDGET_KEYS = ("budget", "read_cost", "absent_share", "families", "heat")
"""The keys of a configuration that stand in for a policy and its parameters."""

# Keys of a configuration table with a meaning of their own, and the one secret: no parameter may
# be called so.
RESERVED = frozenset(
    {
        *("layout", "level", "optimize_filters_for_hits", "partition_blocks", "policy", "seed"),
        *PREFIX_KEYS,
        *BUDGET_KEYS,
    }
)


def parameter_fields(cls: type[Any]) -> list[attrs.Attribute[Any]]:
    """The fields of an attrs class that are parameters: given to it, and part of its equality."""
    return [field for field in attrs.fields(cls) if field.init and field.eq]


def parameter_names(cls: type[Any]) -> tuple[str, ...] | None:
    """The names that may be given to a class as keywords; None where it takes any name."""
    if attrs.has(cls):
        return tuple(sorted(field.alias or field.name for field in parameter_fields(cls)))
    taken = inspect.signature(cls).parameters.values()
    if any(each.kind is each.VAR_KEYWORD for each in taken):
        return None
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return tuple(sorted(each.name for each in taken if each.kind in by_name))


def check_parameters(policy: str, cls: type[Any], given: Iterable[str]) -> None:
    """UnknownParameterError for the first name that the class does not take."""
    allowed = parameter_names(cls)
    if allowed is None:
        return
    for name in given:
        if name not in allowed:
            raise UnknownParameterError(
                f"unknown parameter {name!r} of filter policy {policy!r}"
                f"{did_you_mean(name, allowed)}: "
                + (f"allowed are {', '.join(allowed)}" if allowed else "it takes none")
            )
