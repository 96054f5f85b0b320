"""Heat: which tables absent keys are looked for in, for whoever sizes the next filters.

Each table counts the lookups that came by: those whose key it has not (``TableFile.missed``) and
those whose key it has (``found``). Lookups of absent keys come by every run that has their range.
So each run is a row of sensors side by side, each for its own range of keys, and what one run has
seen another would have seen in its place.

Counts fade: from time to time all are halved together, so that they speak of the same lookups. A
new table therefore does not begin with nothing, but with what it would have counted up to now if it
had been there all along:

- The tables of its own level that it overlaps are those it replaces. Each hands its whole counts to
  its successors, by the parts of it that lie between their bounds.
- For ranges where its level had none, as above the first table or in the hole that a compaction has
  left, the deepest run that has the range tells, since its tables are the finest sensors: what came
  by a run beneath was not found above it, and what missed one above goes on to those beneath.

A table that is only moved keeps its file, and the count with it. Within one table lookups are taken
to be even: so heat that nobody renews blurs at its edges, with each rewriting a little more.
"""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import attrs

from lsm.attempt import HEAT_NAME
from lsm.disk import heat_file
from lsm.disk.keys import NEWEST
from lsm.errors import CorruptionError, IOError
from lsm.options import LEVELS
from lsm.version import Version
from policies.errors import cause

if TYPE_CHECKING:
    from lsm.options import Options
    from lsm.storage import Storage
    from lsm.version import PlacedTable

_log = logging.getLogger("lsm")

# A count of 1,024, the least after a halving, tells how often lookups come within 3 %: an error of
# 0.05 bits for each key of a filter. A store of few tables would else forget all in milliseconds.
_MOST_A_TABLE = 2048
_LEAST_TABLES = 1024

# Where so many tables lie side by side, a hole between them is a small part of their range, and to
# ask others about every seam would take milliseconds.
_MOST_SEAMS = 64


def is_wanted(options: Options) -> bool:
    """Whether tables are written by what was counted, so that it is kept in the directory."""
    rule = options.filters.rule
    return rule is not None and rule.heat


class Heat:
    """What lookups have asked of a database's tables, kept in its directory if ``is_kept``.

    Whoever calls a method holds the installer's lock, or is opening the database, but for
    ``encoded()``. None of them ever raises an Exception: without heat filters are sized as if all
    tables were asked alike.
    """

    def __init__(self, storage: Storage, directory: str, *, is_kept: bool):
        self._storage = storage
        self._path = f"{directory}/{HEAT_NAME}"
        self._is_kept = is_kept
        self._in_file: bytes | None = None
        self._is_due = False

    def load(self, version: Version) -> None:
        """Take up the counts that were kept, for tables that have none of their own yet."""
        if not self._is_kept:
            return
        try:
            data = self._read()
            if data is None:
                return
            asked = heat_file.decode(data)
        except Exception as error:
            _log.warning("%s: all tables begin without heat: %s", self._path, cause(error))
            return
        self._in_file = data
        known: list[PlacedTable] = []
        unknown: list[PlacedTable] = []
        for table in version.tables():
            table.file.missed, table.file.found = asked.get(table.number, (0, 0))
            (known if table.number in asked else unknown).append(table)
        # They were written after the file, and before a crash.
        self._hand_over(_arrived(known, unknown))

    def inherit(self, before: Version, after: Version) -> None:
        """Hand over to new tables what those before them have counted, and let all counts fade."""
        known = {table.number for table in before.tables()}
        added = [table for table in after.tables() if table.number not in known]
        self._hand_over(_inherited(before, added))
        self._fade(after)

    def save_if_due(self, version: Version) -> None:
        """Save what has changed a lot since it was saved."""
        if self._is_due:
            self.save(version)

    def save(self, version: Version) -> None:
        """Save the counts if they are kept and others than those in the file."""
        self._is_due = False
        data = self.encoded(version)
        if data is None or data == self._in_file:
            return
        try:
            self._storage.replace(self._path, data, f"{self._path}.dbtmp")
        except Exception as error:
            _log.warning("%s: the heat of tables is not kept: %s", self._path, cause(error))
        else:
            self._in_file = data

    def encoded(self, version: Version) -> bytes | None:
        """The counts of a version's tables as a file has them; None if there is none to keep."""
        if not self._is_kept:
            return None
        files = [table.file for table in version.tables()]
        asked = {file.number: (file.missed, file.found) for file in files}
        if self._in_file is None and not any(map(any, asked.values())):
            return None
        return heat_file.encode(asked)

    def _read(self) -> bytes | None:
        """The file's bytes; None if there is no file."""
        try:
            mapped = self._storage.map(self._path)
        except IOError:
            if self._storage.exists(self._path):
                raise
            return None
        try:
            if len(mapped.data) > heat_file.MOST_BYTES:
                raise CorruptionError(
                    f"it has {len(mapped.data)} bytes, allowed are {heat_file.MOST_BYTES}"
                )
            return bytes(mapped.data)
        finally:
            mapped.close()

    def _hand_over(self, shares: Iterator[tuple[PlacedTable, int, int]]) -> None:
        try:
            for table, missed, found in shares:
                table.file.missed += missed
                table.file.found += found
        except Exception as error:  # of a comparator, which is anybody's code
            _log.warning("%s: new tables begin without heat: %s", self._path, cause(error))

    def _fade(self, version: Version) -> None:
        """Halve all counts until together they are no more than are needed."""
        files = [table.file for table in version.tables()]
        most, halvings = _MOST_A_TABLE * max(len(files), _LEAST_TABLES), 0
        asked = sum(file.missed + file.found for file in files)
        while asked >> halvings > most:
            halvings += 1
        if halvings:
            for file in files:
                file.missed >>= halvings
                file.found >>= halvings
            self._is_due = True


def _arrived(
    known: Iterable[PlacedTable], unknown: Iterable[PlacedTable]
) -> Iterator[tuple[PlacedTable, int, int]]:
    """What tables take over from others of the same version."""
    levels: list[list[PlacedTable]] = [[] for _ in range(LEVELS)]
    for table in known:
        levels[table.level].append(table)
    yield from _inherited(Version(levels), unknown)


def _inherited(
    version: Version, added: Iterable[PlacedTable]
) -> Iterator[tuple[PlacedTable, int, int]]:
    """What new tables take over from those of a version, missed and found, in several sums."""
    if not any(_asked(table) for table in version.tables()):
        return
    successors: dict[int, list[tuple[PlacedTable, float]]] = {}
    sensors: dict[int, PlacedTable] = {}
    for table in added:
        own = _own_level(version, table)
        for sensor in own:
            sensors[sensor.number] = sensor
            successors.setdefault(sensor.number, []).append((table, _part(sensor, table)))
        yield table, round(_seen_elsewhere(version, table, own)), 0
    for number, heirs in successors.items():
        file, parts = sensors[number].file, [part for _, part in heirs]
        shares = zip(_shared_out(file.missed, parts), _shared_out(file.found, parts), strict=True)
        for (table, _), (missed, found) in zip(heirs, shares, strict=True):
            yield table, missed, found


def _shared_out(count: int, parts: Sequence[float]) -> Iterator[int]:
    """All of a count, in shares by parts that are above 0."""
    whole, done, given = sum(parts), 0.0, 0
    for part in parts:
        done += part
        share = min(round(count * done / whole), count) - given
        given += share
        yield share


def _asked(table: PlacedTable) -> int:
    return table.file.missed + table.file.found


def _missed(table: PlacedTable) -> int:
    return table.file.missed


@attrs.frozen
class _Gap:
    """The keys between two others, in the words of a table that may have none of them."""

    low: Any
    high: Any
    size: int = 0

    @property
    def first(self) -> tuple[Any, int]:
        """Behind every version of the lower key."""
        return self.low, 1

    @property
    def last(self) -> tuple[Any, int]:
        """Before every version of the higher key."""
        return self.high, NEWEST


def _seen_elsewhere(version: Version, table: PlacedTable, own: Sequence[PlacedTable]) -> float:
    """What has come by other runs in a table's range where there are none of its own level."""
    above = version.levels[table.level - 1 : 0 : -1] if table.level else ()
    runs: list[tuple[Sequence[PlacedTable], Callable[[PlacedTable], int]]] = [
        *((run, _asked) for run in version.levels[: table.level : -1]),
        *((run, _missed) for run in above),
        *(((each,), _missed if table.level else _asked) for each in reversed(version.levels[0])),
    ]
    seen, left = 0.0, _gaps(table, own)
    for run, count in runs:
        gaps: list[PlacedTable | _Gap] = []
        for where in left:
            sensors = _overlapping(run, where)
            seen += sum(count(sensor) * _part(sensor, where) for sensor in sensors)
            if len(sensors) <= _MOST_SEAMS:
                gaps += _gaps(where, sensors)
        left = gaps
    return seen


def _gaps(where: PlacedTable | _Gap, tables: Sequence[PlacedTable]) -> Sequence[PlacedTable | _Gap]:
    """What tables side by side leave of a range; all of it if there are none."""
    if not tables:
        return [where]
    ends = [where.low, *(table.high for table in tables)]
    begins = [*(table.low for table in tables), where.high]
    return [_Gap(*each) for each in zip(ends, begins, strict=True) if each[0] < each[1]]


def _own_level(version: Version, table: PlacedTable) -> Sequence[PlacedTable]:
    """The tables that a table of a level below 0 overlaps there."""
    return _overlapping(version.levels[table.level], table) if table.level else ()


def _overlapping(run: Sequence[PlacedTable], where: PlacedTable | _Gap) -> Sequence[PlacedTable]:
    first = bisect_left(run, where.first, key=attrgetter("last"))
    end = first
    while end < len(run) and not where.last < run[end].first:
        end += 1
    return run[first:end]


def _part(sensor: PlacedTable, where: PlacedTable | _Gap) -> float:
    """About which part of a table's entries lies in a range that overlaps its own.

    An open one has the blocks in its index; one in which both ends lie counts for a table, and not
    for a gap. Of one that is closed only the size is known, and that it reaches beyond the range:
    nobody has asked it lately.
    """
    if not sensor.low < where.low and not where.high < sensor.high:
        return 1.0
    opened = sensor.file.opened
    if opened is None or opened.block_count == 0:
        return min(0.5, where.size / max(sensor.size, 1))
    last = opened.block_count - 1
    begin = min(opened.block_for(where.low, NEWEST), last)
    end = min(opened.block_for(where.high, NEWEST), last)
    return (end - begin + (where.size > 0)) / opened.block_count
