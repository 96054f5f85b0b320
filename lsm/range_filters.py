"""Which tables an iterator between two bounds need not look at, since their filters say so.

They are asked when the iterator is made, for the whole of its range, before any block is read. What
an iterator reads then is a view without the tables that have nothing there. Whatever goes wrong
leaves a table in: the walk comes to it, and says what is wrong with it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import attrs

from lsm.errors import CorruptionError, IOError
from lsm.version import Version
from policies.builtin import FamilyPolicy, NoFilterPolicy
from policies.contract import may_contain_range
from policies.prefixes import PrefixReader

if TYPE_CHECKING:
    from lsm.kernels.python import Table
    from lsm.loaded_filter import LoadedFilter
    from lsm.tables import TableCache
    from lsm.version import PlacedTable
    from policies import FilterPolicy, LevelPolicies

# A range with more tables of a level is taken to have keys there.
_MOST_ASKED = 4

_low_of = attrgetter("low")

_NO_TABLES = Version.empty()  # for many views: a version takes longer to make than to ask filters


@attrs.define
class RangeTally:
    """What became of ranges at one level whose tables carry one policy's filters."""

    skipped: int = 0
    passed: int = 0
    untold: int = 0


@attrs.frozen
class KeyRange:
    """All keys from ``low`` up to, but without, ``high``."""

    low: bytes
    high: bytes

    @classmethod
    def between(cls, low: tuple[bytes, bool], high: tuple[bytes, bool]) -> KeyRange:
        """The range between two bounds, each a key and whether it is included."""
        first, is_first = low
        last, is_last = high
        return cls(first if is_first else first + b"\0", last + b"\0" if is_last else last)


def may_be_asked(policies: LevelPolicies) -> bool:
    """Whether tables may get filters that answer for ranges."""
    if any(policies.prefixes(level) for level in range(len(policies))):
        return True
    classes = {type(policy) for policy in policies}
    if policies.rule is not None:
        classes.update(policies.rule.classes())
    return any(map(_may_answer, classes))


def _may_answer(cls: type[FilterPolicy]) -> bool:
    """Whether filters of a policy answer for ranges, as any plug-in's may."""
    if issubclass(cls, FamilyPolicy):
        return cls.family.answers_ranges
    return cls is not NoFilterPolicy


def narrowed(
    tables: TableCache, view: Any, low: tuple[bytes, bool], high: tuple[bytes, bool]
) -> Any:
    """A view without the tables whose filters deny all keys between two bounds; else this one."""
    asked = KeyRange.between(low, high)
    if asked.low >= asked.high:
        return view
    version: Version = view.version
    levels: list[Sequence[PlacedTable]] = [()] * len(version.levels)
    has_less = has_any = False
    for run in _runs(version, asked):
        kept = run
        if run[0].level == 0 or len(run) <= _MOST_ASKED:
            kept = [placed for placed in run if _may_have(tables, placed, asked)]
        levels[run[0].level] = kept
        has_less |= len(kept) < len(run)
        has_any |= bool(kept)
    if not has_less:
        return view
    return type(view)(view.memtables, version.only(levels) if has_any else _NO_TABLES)


def _runs(version: Version, asked: KeyRange) -> Iterator[Sequence[PlacedTable]]:
    """The tables of each level whose bounds the range overlaps, where there are any."""
    newest = [
        placed
        for placed in version.levels[0]
        if placed.low < asked.high and not placed.high < asked.low
    ]
    if newest:
        yield newest
    for level, highs in version.sorted_levels:
        run = level[bisect_left(highs, asked.low) : bisect_left(level, asked.high, key=_low_of)]
        if run:
            yield run


def _may_have(tables: TableCache, placed: PlacedTable, asked: KeyRange) -> bool:
    """Whether a table may have any of these keys."""
    try:
        opened = tables.opened(placed.file)
        loaded = opened.filter or tables.filters.load(opened)
        loaded.used = True
        answer = _answer(tables, opened, loaded, asked)
    except (IOError, CorruptionError):  # the walk comes to it, and tells
        return True
    tally = tables.range_tally(placed.level, loaded.info.policy)
    if answer is None:
        tally.untold += 1
    elif answer:
        tally.passed += 1
    else:
        tally.skipped += 1
    return answer is not False


def _answer(
    tables: TableCache, opened: Table, loaded: LoadedFilter, asked: KeyRange
) -> bool | None:
    """What a filter says; None where it cannot tell.

    Of one in partitions that is the first that may have any of the keys: it has them all, or ends
    in one of them, which it does not deny.
    """
    if loaded.partitions is not None:
        loaded = tables.filters.find_partition(opened, loaded, asked.low)
        loaded.used = True
    return _answer_of(tables, opened, loaded, asked)


def _answer_of(
    tables: TableCache, opened: Table, loaded: LoadedFilter, asked: KeyRange
) -> bool | None:
    ranges = loaded.ranges
    if ranges is None:
        return None
    try:
        if isinstance(ranges, PrefixReader):
            return ranges.told(asked.low, asked.high)
        return may_contain_range(ranges, asked.low, asked.high)
    except BaseException as error:
        tables.filters.probe_failed(opened, loaded, error)
        return None
