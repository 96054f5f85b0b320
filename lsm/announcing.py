"""What a database has done, in one line each at INFO in the log ``lsm``; where it is off, nothing.

A line begins with the directory and says what was done: of how many tables and bytes, on which
levels, in how many seconds.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lsm.disk.edit import Edit
    from lsm.kernels import TableFile
    from lsm.picking import Plan
    from lsm.recovery import Replayed
    from lsm.version import Version

_log = logging.getLogger("lsm")


def _is_heard() -> bool:
    return _log.isEnabledFor(logging.INFO)


def opened(directory: str, version: Version, read_only: bool, seconds: float) -> None:
    """A database is open."""
    if _is_heard():
        tables = list(version.tables())
        _log.info(
            "%s: opened%s: %s on %s, in %.3f s",
            directory,
            " to read" if read_only else "",
            _tables(table.size for table in tables),
            _levels(table.level for table in tables),
            seconds,
        )


def recovered(
    directory: str, replayed: Replayed, tables: Sequence[TableFile], seconds: float
) -> None:
    """Logs with something in them were replayed, and written to tables unless only to be read."""
    if replayed.log_bytes and _is_heard():
        _log.info(
            "%s: recovered: %d bytes of %s replayed, %s written, in %.3f s",
            directory,
            replayed.log_bytes,
            _counted(len(replayed.logs), "log"),
            _tables(table.size for table in tables),
            seconds,
        )


def flushed(directory: str, edit: Edit, memory: int, seconds: float) -> None:
    """A memtable of so many bytes was written to the tables that an edit adds."""
    if edit.added and _is_heard():
        _log.info(
            "%s: flushed: %d bytes of memory to %s on %s, in %.3f s",
            directory,
            memory,
            _tables(added.size for added in edit.added),
            _levels(added.level for added in edit.added),
            seconds,
        )


def compacted(directory: str, plan: Plan, outputs: Sequence[TableFile], seconds: float) -> None:
    """Tables were merged into others a level deeper."""
    if _is_heard():
        _log.info(
            "%s: compacted: %s of %s to %s on %s, in %.3f s",
            directory,
            _tables(table.size for table in plan.inputs),
            _levels(table.level for table in plan.inputs),
            _tables(file.size for file in outputs),
            _levels((plan.level + 1,)),
            seconds,
        )


def moved(directory: str, plan: Plan) -> None:
    """A table went down a level as it is."""
    if _is_heard():
        (table,) = plan.upper
        _log.info(
            "%s: moved: table %d of %d bytes from level %d to level %d",
            directory,
            table.number,
            table.size,
            plan.level,
            plan.level + 1,
        )


def closed(directory: str, seconds: float) -> None:
    """A database is closed."""
    if _is_heard():
        _log.info("%s: closed, in %.3f s", directory, seconds)


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _tables(sizes: Iterable[int]) -> str:
    """How many tables there are of these sizes, and what they come to."""
    listed = list(sizes)
    return f"{_counted(len(listed), 'table')} of {sum(listed)} bytes"


def _levels(levels: Iterable[int]) -> str:
    """The levels, each once."""
    listed = sorted(set(levels))
    if not listed:
        return "no level"
    return f"level{'s' if len(listed) > 1 else ''} {', '.join(map(str, listed))}"
