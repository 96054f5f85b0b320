"""The record of a run: who measured what, when and where, and all rows. ``docs/benchmarks.md``."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import attrs

import filters
import lsm
from benchmarks import machine
from benchmarks.rows import Row

SCHEMA = 2
RECORD_NAME = "record.json"


@attrs.frozen
class Record:
    """What a run came to."""

    head: Mapping[str, Any]
    rows: Sequence[Row]
    summary: Mapping[str, Any]

    def of(self, part: str) -> list[Row]:
        """The rows of one part."""
        return [row for row in self.rows if row.part == part]

    def write(self, path: Path) -> None:
        """Write it as JSON, one row a line, so that it is there as a whole or not at all."""
        head = json.dumps(self.head, indent=1)
        rows = ",\n".join(json.dumps(row.as_dict()) for row in self.rows)
        text = (
            f'{head[:-2]},\n "rows": [\n{rows}\n ],\n "summary": {json.dumps(self.summary)}\n}}\n'
        )
        beside = path.with_name(path.name + ".new")
        beside.write_text(text)
        os.replace(beside, path)

    @classmethod
    def read(cls, path: Path) -> Self:
        """The record in a file, or in a run's directory; ValueError says what is wrong with it."""
        path = path / RECORD_NAME if path.is_dir() else path
        try:
            members = json.loads(path.read_text())
        except OSError as error:
            raise ValueError(f"{path}: there is no record here ({error.strerror})") from error
        except ValueError as error:
            raise ValueError(f"{path} is no record: not JSON ({error})") from error
        if not isinstance(members, dict) or not isinstance(members.get("rows"), list):
            raise ValueError(f"{path} is no record: it has no rows")
        if members.get("schema") != SCHEMA:
            raise ValueError(
                f"{path} has schema {members.get('schema')!r}; this version reads {SCHEMA}: "
                "measure anew, or use the version that wrote it"
            )
        try:
            rows = [Row.from_dict(row) for row in members.pop("rows")]
        except (ValueError, AttributeError) as error:
            raise ValueError(f"{path}: {error}") from error
        summary = members.pop("summary", {})
        return cls(members, rows, summary)


def head(command: str, size: str, settings: Mapping[str, Any], date: str) -> dict[str, Any]:
    """What is known before anything is measured."""
    return {
        "schema": SCHEMA,
        "command": command,
        "size": size,
        "date": date,
        "machine": machine.describe(),
        "kernel": kernel(),
        "versions": machine.versions(),
        "settings": {
            part: attrs.asdict(each, value_serializer=_plain) for part, each in settings.items()
        },
    }


def kernel() -> dict[str, Any]:
    """Which kernel of the filters is at work, and why; and which one of the engine."""
    found: dict[str, Any] = {
        "name": filters.KERNEL,
        "reason": filters.KERNEL_REASON,
        "engine": lsm.KERNEL,
    }
    if filters.KERNEL == "native":
        from filters.kernels.native import simd

        found |= {"simd": simd.in_use(), "simd_available": list(simd.available())}
    return found


def _plain(instance: Any, attribute: Any, value: Any) -> Any:
    return str(value) if isinstance(value, Path) else value
