"""Reading the ``[filters]`` tables of a configuration: strict, and clear about what is wrong."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import attrs

from filters.errors import FilterError
from policies import registry
from policies.containment import let_pass
from policies.contract import FilterPolicy
from policies.errors import PolicyConfigError, cause, did_you_mean, words
from policies.parameters import parameter_names

DEFAULT_POLICY = "blocked"
DEFAULT_LAYOUT = "table"
LAYOUTS = ("table", "block")
HITS = "optimize_filters_for_hits"
TOP_LEVEL = ("filters", "engine")

_LEVEL_KEYS = frozenset({"policy", "layout"})
_FILTERS_KEYS = _LEVEL_KEYS | {"level", HITS}

_SPEC = re.compile(r"(?P<low>0|[1-9][0-9]{0,3})(?:-(?P<high>0|[1-9][0-9]{0,3})|(?P<plus>\+))?")
_SPEC_ADVICE = 'a level is written "3", a range "1-2", all from one on "4+"'
_BARE_KEY = re.compile(r"[A-Za-z0-9_]+")


@attrs.frozen
class Choice:
    """What one level uses: a policy, and where its filters sit."""

    policy: FilterPolicy
    layout: str = DEFAULT_LAYOUT

    def __attrs_post_init__(self) -> None:
        """Refuse what is no policy, and a layout that the policy has no form for."""
        if not isinstance(self.policy, FilterPolicy):
            raise TypeError(
                f"a filter policy is what policies.create(name) makes, not {self.policy!r}"
            )
        if self.layout not in LAYOUTS:
            raise ValueError(f"layout is {self.layout!r}, allowed are {' and '.join(LAYOUTS)}")
        if self.layout not in self.policy.layouts:
            raise ValueError(
                f"layout {self.layout!r} is for policies with native windows, and "
                f"{self.policy.name!r} has none: choose {' or '.join(sorted(self.policy.layouts))}"
            )


@attrs.frozen
class Table:
    """One table of a configuration, and how to name it in an error."""

    source: str
    path: str
    entries: Mapping[str, Any]

    def error(self, problem: str) -> PolicyConfigError:
        """An error that names the file and this table."""
        return PolicyConfigError(f"{self.source}: [{self.path}]: {problem}")

    def child(self, key: str) -> Table:
        """The table under this key; an empty one where there is none."""
        path = f"{self.path}.{toml_key(key)}"
        entries = self.entries.get(key, {})
        if not isinstance(entries, Mapping):
            raise self.error(f"{key!r} is a table, written [{path}], not a value like {entries!r}")
        return Table(self.source, path, entries)

    def check_keys(self, allowed: Collection[str], when: str) -> None:
        """Refuse a key that is not allowed here."""
        for key in self.entries:
            if key not in allowed:
                raise self.error(
                    f"unknown key {key!r}{did_you_mean(key, allowed)}; "
                    f"allowed {when} are {', '.join(sorted(allowed))}"
                )


def read(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The document in a TOML file; a file that cannot be opened raises OSError as always."""
    with Path(path).open("rb") as file:
        try:
            return tomllib.load(file)
        except (ValueError, RecursionError) as error:
            raise PolicyConfigError(f"{os.fspath(path)}: not valid TOML: {error}") from error


def choices(document: Mapping[str, Any], levels: int, source: str) -> tuple[list[Choice], bool]:
    """The choice for each level, and the value of ``optimize_filters_for_hits``."""
    table = _filters_table(document, source)
    hits = table.entries.get(HITS, False)
    if not isinstance(hits, bool):
        raise table.error(f"{HITS} is true or false, not {hits!r}")
    chosen = [_choice(table, _FILTERS_KEYS)] * levels
    taken: dict[int, str] = {}
    by_level = table.child("level")
    for spec in by_level.entries:
        meant = _levels_of(by_level, spec, levels)
        choice = _level_choice(by_level.child(spec))
        for level in meant:
            if level in taken:
                raise by_level.error(f"level {level} is in both {taken[level]!r} and {spec!r}")
            taken[level] = spec
            chosen[level] = choice
    return chosen, hits


def toml_key(key: str) -> str:
    """A key as TOML writes it."""
    return key if _BARE_KEY.fullmatch(key) else toml_string(key)


def toml_string(text: str) -> str:
    """A string as TOML writes it: JSON's escapes, and one more."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _filters_table(document: Mapping[str, Any], source: str) -> Table:
    for key in document:
        if key not in TOP_LEVEL:
            raise PolicyConfigError(
                f"{source}: unknown key or table {key!r}{did_you_mean(key, TOP_LEVEL)}; "
                "allowed at the top are [filters] and [engine]"
            )
    entries = document.get("filters", {})
    if not isinstance(entries, Mapping):
        raise PolicyConfigError(
            f"{source}: 'filters' is a table, written [filters], not a value like {entries!r}"
        )
    return Table(source, "filters", entries)


def _level_choice(table: Table) -> Choice:
    """What the table of one level or range selects; it inherits nothing."""
    if HITS in table.entries:
        raise table.error(f"{HITS} is for the whole database: move it to [filters]")
    if "policy" not in table.entries:
        near = [key for key in table.entries if did_you_mean(key, ["policy"])]
        known = ", ".join(registry.available())
        raise table.error(
            "it names no policy, and a level's table inherits nothing"
            + (f"; is {near[0]!r} meant to be 'policy'?" if near else "")
            + f": add policy = ... with one of {known}"
        )
    return _choice(table, _LEVEL_KEYS)


def _choice(table: Table, own_keys: frozenset[str]) -> Choice:
    """The policy and layout of one table, all of its keys checked."""
    name = table.entries.get("policy")
    if name is None:
        table.check_keys(own_keys, "where no policy is named")
        name = DEFAULT_POLICY
    if not isinstance(name, str):
        known = ", ".join(registry.available())
        raise table.error(f"policy is a name in quotes, not {name!r}: known are {known}")
    try:
        cls = registry.lookup(name)
    except FilterError as error:
        raise table.error(f"policy: {error}") from error
    parameters = parameter_names(cls)
    if parameters is not None:
        table.check_keys(own_keys.union(parameters), f"with policy {name!r}")
    params = {key: value for key, value in table.entries.items() if key not in own_keys}
    try:
        return Choice(cls(**params), table.entries.get("layout", DEFAULT_LAYOUT))
    except BaseException as error:  # a plug-in may raise anything, and only here is its table known
        let_pass(error)
        expected = isinstance(error, (TypeError, ValueError)) and words(error)
        raise table.error(expected or cause(error)) from error


def _levels_of(table: Table, spec: str, levels: int) -> range:
    """The levels that a specification means."""
    match = _SPEC.fullmatch(spec)
    if match is None:
        raise table.error(f"{spec!r} names no level: {_SPEC_ADVICE}")
    low = int(match["low"])
    high = levels - 1 if match["plus"] else int(match["high"] or low)
    if max(low, high) >= levels:
        raise table.error(f"{spec!r} is out of range: allowed are levels 0 to {levels - 1}")
    if high < low:
        raise table.error(f'{spec!r} runs backwards: write "{high}-{low}"')
    return range(low, high + 1)
