"""What a run that is not finished has measured so far: a file that a later run goes on with.

The first line says what is measured, each further line has the rows of one unit. A line is written
when its unit is done; one that was cut off counts for nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from benchmarks.rows import Row

JOURNAL_NAME = "unfinished.jsonl"

# What must be the same for rows of two sessions to be of one run.
SAME = ("schema", "command", "size", "settings", "kernel", "versions")


class Journal:
    """The rows of the units that are done, by the units' names."""

    def __init__(self, path: Path, head: Mapping[str, Any]):
        self.path = path
        self.head = head
        self.done: dict[str, list[Row]] = {}
        self.seconds = 0.0

    @classmethod
    def begun(cls, path: Path, head: Mapping[str, Any]) -> Self:
        """A journal of nothing yet, in a new file."""
        path.write_text(json.dumps(head) + "\n")
        return cls(path, head)

    @classmethod
    def found(cls, path: Path, head: Mapping[str, Any]) -> Self:
        """One to go on with, of a run of the same; ValueError says what differs."""
        lines = path.read_text().splitlines(keepends=True)
        try:
            before = json.loads(lines[0])
        except (IndexError, ValueError) as error:
            raise ValueError(f"{path} is no journal of a run: remove it ({error})") from error
        wanted = json.loads(json.dumps(head))
        for name in SAME:
            if before.get(name) != wanted[name]:
                raise ValueError(
                    f"{path} is of another run: its {name} was {before.get(name)}, now it is "
                    f"{wanted[name]}; give the same options, or begin anew in another directory"
                )
        journal = cls(path, before)
        whole = [lines[0]]
        for line in lines[1:]:
            if not line.endswith("\n"):
                break
            entry = json.loads(line)
            journal.done[entry["unit"]] = [Row.from_dict(row) for row in entry["rows"]]
            journal.seconds += entry["seconds"]
            whole.append(line)
        path.write_text("".join(whole))
        return journal

    def add(self, unit: str, rows: Sequence[Row], seconds: float) -> None:
        """Keep the rows of a unit that is done."""
        entry = {"unit": unit, "seconds": seconds, "rows": [row.as_dict() for row in rows]}
        with self.path.open("a") as file:
            file.write(json.dumps(entry) + "\n")
        self.done[unit] = list(rows)
        self.seconds += seconds

    def remove(self) -> None:
        """The run is finished and recorded."""
        self.path.unlink(missing_ok=True)
