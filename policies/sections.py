"""Sections of a configuration file: read strictly, named in errors, and written as TOML."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import attrs

from policies.errors import PolicyConfigError, did_you_mean

_BARE_KEY = re.compile(r"[A-Za-z0-9_]+")


@attrs.frozen
class Section:
    """One section of a configuration, and how to name it in an error."""

    source: str
    path: str
    entries: Mapping[str, Any]

    @classmethod
    def top(cls, document: Mapping[str, Any], name: str, source: str) -> Section:
        """A document's section of this name; an empty one where there is none."""
        entries = document.get(name, {})
        if not isinstance(entries, Mapping):
            raise PolicyConfigError(
                f"{source}: {name!r} is a table, written [{name}], not a value like {entries!r}"
            )
        return cls(source, name, entries)

    def child(self, key: str) -> Section:
        """The section under this key; an empty one where there is none."""
        path = f"{self.path}.{toml_key(key)}"
        entries = self.entries.get(key, {})
        if not isinstance(entries, Mapping):
            raise self.error(f"{key!r} is a table, written [{path}], not a value like {entries!r}")
        return Section(self.source, path, entries)

    def error(self, problem: str) -> PolicyConfigError:
        """An error that names the file and this section."""
        return PolicyConfigError(f"{self.source}: [{self.path}]: {problem}")

    def check_keys(self, allowed: Collection[str], when: str) -> None:
        """Refuse a key that is not allowed here."""
        for key in self.entries:
            if key not in allowed:
                raise self.error(
                    f"unknown key {key!r}{did_you_mean(key, allowed)}; "
                    f"allowed {when} are {', '.join(sorted(allowed))}"
                )

    def to_toml(self) -> str:
        """The section as TOML writes it."""
        lines = (f"{toml_key(key)} = {toml_value(value)}\n" for key, value in self.entries.items())
        return f"[{self.path}]\n{''.join(lines)}"


def read(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The document in a TOML file; a file that cannot be opened raises OSError as always."""
    return parsed(Path(path).read_bytes(), os.fspath(path))


def parsed(data: bytes, source: str) -> dict[str, Any]:
    """The document in these bytes; PolicyConfigError names the source where they are no TOML."""
    try:
        return tomllib.loads(data.decode())
    except (ValueError, RecursionError) as error:
        raise PolicyConfigError(f"{source}: not valid TOML: {error}") from error


def toml_key(key: str) -> str:
    """A key as TOML writes it."""
    return key if _BARE_KEY.fullmatch(key) else _toml_string(key)


def toml_value(value: Any) -> str:
    """A value as TOML writes it; TypeError for what TOML lacks."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        return _toml_string(value)
    if isinstance(value, Mapping):
        pairs = (f"{toml_key(key)} = {toml_value(each)}" for key, each in value.items())
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    raise TypeError(f"a parameter of type {type(value).__name__} cannot be written in TOML")


def _toml_string(text: str) -> str:
    """A string as TOML writes it: JSON's escapes, and one more."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
