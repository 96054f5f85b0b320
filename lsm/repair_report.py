"""The report of a repair, or of its dry run."""

from __future__ import annotations

import attrs


@attrs.frozen(kw_only=True)
class RepairProgress:
    """How far a repair has come with reading tables, after which it writes what it has to."""

    tables: int
    total_tables: int


@attrs.frozen(kw_only=True)
class Report:
    """What became of a database's files, and what could not be read.

    Tables are ``kept`` as they are, ``rewritten`` with what could be read or merged with others,
    left out because others have ``replaced`` them or the bulk load that wrote them did not end, or
    ``lost`` with all they had. ``set_aside`` are the names of the files that moved into ``lost/``,
    ``unreadable`` the paths of the tables of which not all could be read, as they are named from
    now on, and of those of earlier repairs.
    """

    tables_kept: int
    tables_rewritten: int
    tables_replaced: int
    tables_lost: int
    logs_replayed: int
    losses: tuple[str, ...]
    set_aside: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()

    def __str__(self) -> str:
        return (
            f"{self.tables_kept} tables kept, {self.tables_rewritten} rewritten, "
            f"{self.tables_replaced} left out as replaced, {self.tables_lost} lost, "
            f"{self.logs_replayed} logs replayed, {len(self.losses)} losses"
        )
