"""Jobs that run at once: what a compaction claims, and which may run beside each other.

A compaction from a level to the next claims its input tables, and the range of their keys on the
level of its outputs. Two compactions **touch** if they share a table, if both write to the same
level and their ranges overlap, or if both begin on level 0. No two that touch ever run at once.
That is enough for each to come out as if it had run alone:

- **Inputs.** A table that is claimed stays where it is until its compaction has ended: whoever
  would delete or move it shares it.
- **Outputs.** They lie in the range of the inputs, and whatever was in that range on their level is
  an input. So they can only overlap what has come there since, and only two could have brought
  that: another compaction to that level, which would touch this one, or a flush that goes deeper
  than level 0. Such a flush goes on only while no compaction runs, and none begins meanwhile; nor
  does one beside a bulk load, which waits for those that run.
- **Order.** Who reads goes down the levels and takes what comes first, so that nothing newer may
  get below something older. A compaction takes along all versions of its keys on its level, as
  picking sees to, and merges those of the next. Newer versions may come to its level while it runs:
  from level 0, which a flush adds to, or from a compaction above. That one shares no table with
  this one, and so brings no key that this one has taken.
- **Tombstones** are dropped where no deeper table could have the key when the compaction was
  planned. That stays true while it runs. A version of the key that was on a deeper level then was
  seen. One on the level of the outputs is an input, which nobody else moves deeper. One above is
  newer than the tombstone, or an input too.
- **Level 0** is one at a time: its tables overlap, and which of them is newer is told by their
  numbers. Flushes, which are one at a time as well, only add newer ones.
- **Moves** are compactions that write nothing, and claim the same.
- **Several levels** at once, which a manual compaction may merge, are claimed like one: it touches
  whatever else writes to one of them, or takes from it, in its range.
- **In place** is a table written anew on its own level, with another filter or none of the entries
  that nobody sees. It stays in the range of its input, so that it touches whoever shares a table
  with it and nobody else. Several that are merged in place may come to lie across the gaps between
  them: they claim their range, like a compaction from the level above that takes nothing of it.
  On level 0, where a new number makes a table a newer one, all tables are written anew at once, in
  their order; a flush gives its table a number either before, and then they wait for it, or after
  they have theirs.
- **Manual compactions** are planned before all others. What touches a plan that waits does not
  begin before it, so that it waits for no more than what runs already; the same goes for the plan
  of a level that is fuller than another.
- **Pointers**, of where a level's next turn begins, are set by whichever compaction of that level
  was installed last. They decide what is picked next, and nothing depends on them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import attrs

_FEWEST, _MOST = 2, 8


@attrs.frozen
class Claim:
    """What a compaction from ``level`` to the next has for itself.

    ``tables`` are the numbers of its inputs, of which those on ``level`` have ``upper_bytes``; all
    of its keys lie from ``low`` to ``high``. It may begin on a level above, its ``top``; a ``top``
    below its level says that it goes to no other.
    """

    level: int
    tables: frozenset[int]
    low: Any
    high: Any
    upper_bytes: int
    top: int = attrs.field(default=attrs.Factory(lambda self: self.level, takes_self=True))

    @classmethod
    def in_place(cls, level: int, tables: frozenset[int], low: Any, high: Any) -> Claim:
        """The claim of tables that are written anew on their own level."""
        if level and len(tables) > 1:
            return cls(level - 1, tables, low, high, 0)
        return cls(level, tables, low, high, 0, top=level + 1 if level else 0)

    @property
    def is_in_place(self) -> bool:
        """Whether its tables stay on their level."""
        return self.upper_bytes == 0

    def touches(self, other: Claim) -> bool:
        """Whether the two compactions may not run at once."""
        if not self.tables.isdisjoint(other.tables) or self.top == other.top == 0:
            return True
        share_a_level = max(self.top, other.top) <= min(self.level, other.level)
        return share_a_level and not (self.high < other.low or other.high < self.low)

    def is_free(self, claims: Iterable[Claim]) -> bool:
        """Whether it touches none of these."""
        return not any(self.touches(each) for each in claims)


def at_once(asked: int) -> int:
    """How many jobs may run at once; 0 asks for as many as there are cores, within limits."""
    if asked:
        return asked
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or _FEWEST
    return min(max(cores, _FEWEST), _MOST)
