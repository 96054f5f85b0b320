"""Checking one table against itself: every checksum, the order of its keys, its filter.

A table that is damaged is read past the damage, so that all that is wrong with it is found.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby, islice, pairwise
from operator import lt
from typing import TYPE_CHECKING, Any

import attrs

from lsm import loaded_filter
from lsm.disk.footer import FOOTER_BYTES, Footer, Handle
from lsm.disk.keys import DELETE, PUT, pack, sequence_of
from lsm.errors import CorruptionError
from lsm.salvage import reason_of
from policies.prefixes import PrefixReader

if TYPE_CHECKING:
    from lsm.disk.properties import Properties
    from lsm.disk.table import TableReader
    from lsm.kernels.python import Table
    from lsm.loaded_filter import LoadedFilter
    from lsm.salvage import Position

# How messages of damage name its place.
_PLACE = re.compile(r"\bbytes? ([0-9]+)")


@attrs.frozen
class Problem:
    """Something wrong with a file; ``offset`` is where in it, None where it is all of it."""

    path: str
    offset: int | None
    what: str

    @classmethod
    def of(cls, path: str, error: Exception, offset: int | None = None) -> Problem:
        """What an error says of a file, at an offset or at the first place that it names."""
        said = reason_of(error) if isinstance(error, CorruptionError) else str(error)
        what = said.removeprefix(f"{path}: ")
        if offset is None and (place := _PLACE.search(what)):
            offset = int(place[1])
        return cls(path, offset, what)

    def __str__(self) -> str:
        where = self.path if self.offset is None else f"{self.path}: byte {self.offset}"
        return f"{where}: {self.what}"


@attrs.define(eq=False)
class TableCheck:
    """One check of an open table; problems and counts grow while it runs.

    ``done`` is called with the offset up to which the table was looked at.
    """

    table: Table
    done: Callable[[int], object]
    problems: list[Problem] = attrs.field(factory=list)
    blocks: int = 0
    entries: int = 0
    asked_keys: int = 0
    """For how many keys the filter was asked."""
    denied_keys: int = 0
    last_sequence: int = 0
    unasked: str = ""
    """Why the filter could not be asked, of a table that has one."""
    first: Position | None = None
    last: Position | None = None
    _first_denied: str = ""

    @property
    def path(self) -> str:
        """The table's file."""
        return self.table.reader.name

    def run(self) -> None:
        """Check all of it."""
        properties = self._check_meta_blocks()
        filter = self._filter()
        bound_before: Position | None = None
        for number, bound in enumerate(self.table.bounds()):
            offset = self.table.offset(number)
            self.done(offset)
            try:
                keys, first, last = self._block(number)
            except CorruptionError as error:
                self._report(error, offset)
                self.last = None  # nobody knows where the next block is to begin
            else:
                if self.last is not None and first < self.last:
                    self._report("its keys do not follow those of the block before", offset)
                if bound < last or (bound_before is not None and not bound_before < first):
                    self._report("the index leads to it for other keys than it has", offset)
                self.first = first if self.first is None else self.first
                self.last = last
                self._ask(filter, keys, offset)
            bound_before = bound
        self._report_denied()
        if properties is not None and not self.problems and properties.num_entries != self.entries:
            said = properties.num_entries
            self._report(f"it has {self.entries} entries, and its properties say {said}", None)

    def check_bounds(self, smallest: bytes, largest: bytes) -> None:
        """Compare its first and last key with those that a manifest has."""
        if self.problems or self.first is None or self.last is None:
            return
        if (pack(*self.first), pack(*self.last)) != (smallest, largest):
            self._report("its first and last key are not those that the manifest has", None)

    def _block(self, number: int) -> tuple[list[bytes], Position, Position]:
        """The user keys of a block, its first position and its last; CorruptionError if damaged."""
        keys: list[bytes] = []
        first: Position | None = None
        last: Position | None = None
        for piece in self.table.read(number).pieces():
            if (last is not None and piece[0][:2] < last) or not _ascend(piece):
                raise CorruptionError("its keys do not ascend")
            if not {-rank & 0xFF for _, rank, _ in piece} <= {DELETE, PUT}:
                raise CorruptionError("it has versions of an unknown kind")
            first, last = first or piece[0][:2], piece[-1][:2]
            keys += [key for key, _, _ in piece]
            newest = sequence_of(min(rank for _, rank, _ in piece))
            self.last_sequence = max(self.last_sequence, newest)
        if first is None or last is None:
            raise CorruptionError("it has no entries")
        self.blocks += 1
        self.entries += len(keys)
        return keys, first, last

    def _check_meta_blocks(self) -> Properties | None:
        """Read every block that the metaindex names; the properties, if there are any."""
        reader = self.table.reader
        if reader.metaindex_damage is not None:
            self._report(reader.metaindex_damage, _footer_of(reader).metaindex.offset)
            return None
        for key, value in reader.metaindex.items():
            name = key.decode("utf-8", "replace")
            try:
                handle = Handle.decode(value, f"the handle of block {name!r}")
            except CorruptionError as error:
                self._report(error, _footer_of(reader).metaindex.offset)
                continue
            try:
                reader.read(handle, f"block {name!r}")
            except CorruptionError as error:
                self._report(error, handle.offset)
        try:
            return reader.properties()
        except CorruptionError as error:
            self._report(error, None)
            return None

    # -- Its filter --------------------------------------------------------------------------

    def _filter(self) -> _AskedFilter | None:
        """The filter, if it can be asked."""
        reader = self.table.reader
        try:
            loaded = loaded_filter.load(reader, paranoid=True)
            filter = _AskedFilter.of(reader, loaded)
        except CorruptionError as error:
            self._report(error, self._filter_offset())
            return None
        if loaded.state not in ("built", "none", "declined"):
            self.unasked = f"its filter of policy {loaded.info.policy} is {loaded.state}"
        return filter

    def _filter_offset(self) -> int | None:
        try:
            handles = list(self.table.reader.filter_entries().values())
        except CorruptionError:
            return None
        return handles[0].offset if handles else None

    def _ask(self, filter: _AskedFilter | None, keys: Sequence[bytes], offset: int) -> None:
        """Ask the filter for all keys of a block, and report it if it denies any."""
        if filter is None:
            return
        self.asked_keys += len(keys)
        denied = filter.denied(keys, offset)
        if denied and not self.denied_keys:
            self._first_denied = f"{denied[0][:40]!r} of the data block at byte {offset}"
        self.denied_keys += len(denied)

    def _report_denied(self) -> None:
        if self.denied_keys:
            self._report(
                f"the filter denies {self.denied_keys} of {self.asked_keys} keys, the first of "
                f"which is {self._first_denied}",
                self._filter_offset(),
            )

    def _report(self, what: Exception | str, offset: int | None) -> None:
        error = CorruptionError(what) if isinstance(what, str) else what
        problem = Problem.of(self.path, error, offset)
        # A filter that cannot be read is one of the blocks that the metaindex names.
        if problem.offset is None or problem.offset not in {each.offset for each in self.problems}:
            self.problems.append(problem)


@attrs.frozen(eq=False)
class _AskedFilter:
    """A table's filter, in one of its forms, to be asked for the keys of one block at a time."""

    loaded: LoadedFilter
    partitions: Sequence[LoadedFilter] = ()

    @classmethod
    def of(cls, reader: TableReader, loaded: LoadedFilter) -> _AskedFilter | None:
        """The filter with all of its partitions; None where it has no say."""
        if loaded.state != "built":
            return None
        count = 0 if loaded.partitions is None else len(loaded.partitions)
        parts = [
            loaded_filter.load_partition(reader, loaded, number, paranoid=True)
            for number in range(count)
        ]
        return cls(loaded, parts)

    def denied(self, keys: Sequence[bytes], block_offset: int) -> list[bytes]:
        """The keys of the block at an offset that the filter says no to."""
        if self.loaded.windows is not None:
            window = self.loaded.windows.at(block_offset)
            return [] if window is None else _denied(window, keys)
        if self.loaded.partitions is None:
            return _denied_by(self.loaded, keys)
        denied: list[bytes] = []
        for number, some in groupby(keys, self.loaded.partitions.find):
            if number < len(self.partitions):  # behind the last one a lookup asks nobody
                denied += _denied_by(self.partitions[number], list(some))
        return denied


def _denied_by(loaded: LoadedFilter, keys: Sequence[bytes]) -> list[bytes]:
    """The keys that a filter says no to, or to whose prefixes."""
    if loaded.state != "built":
        return []
    denied = [] if loaded.reader is None else _denied(loaded.reader, keys)
    if isinstance(loaded.ranges, PrefixReader) and loaded.ranges is not loaded.reader:
        denied += _denied(loaded.ranges, keys)
    return denied


def _denied(reader: Any, keys: Iterable[bytes]) -> list[bytes]:
    asked = list(keys)
    answers: Iterator[bool] = iter(reader.might_contain_many(asked))
    return [key for key, answer in zip(asked, answers, strict=True) if answer is False]


def _ascend(piece: Sequence[tuple[Any, int, bytes]]) -> bool:
    """Whether entries are in order; a version that is there twice is no harm."""
    if all(map(lt, piece, islice(piece, 1, None))):
        return True
    return not any(other[:2] < one[:2] for one, other in pairwise(piece))


def _footer_of(reader: TableReader) -> Footer:
    return Footer.decode(reader.mapped.data[-FOOTER_BYTES:])
