"""Where filters sit in a table, and how they are written there.

The metaindex names them as LevelDB and RocksDB do, so that each finds its own:

- ``filter.leveldb.BuiltinBloomFilter2``: a filter per 2 KiB window of the file, LevelDB's form.
- ``fullfilter.rocksdb.BuiltinBloomFilter``: one for the table, RocksDB's bytes as they are, Bloom
  or Ribbon.
- ``fullfilter.<name>``: one for the table, in a block that describes itself.
- ``prefixfilter.lsm.<name>``: one for the table, of prefixes of its keys and perhaps of keys, in
  such a block behind what says which prefixes.
- ``partitionedfilter.lsm.<name>``: an index of filters, each for some of the table's data blocks.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Sequence
from struct import pack, unpack_from
from typing import ClassVar, Literal, Protocol

import attrs

from filters import Digests
from filters.families import FAMILIES
from filters.sampling import ENOUGH_HITS, SAMPLE_GROUP, SAMPLE_GROUPS, sample_keys
from lsm.disk.filter_part import FilterPart
from lsm.disk.partitioned_filters import Cutter, PartitionedFilters
from lsm.disk.written_filter import Ends, FilterWriter, WrittenFilter, part_of
from lsm.errors import CorruptionError
from policies import (
    BuildContext,
    FilterPolicy,
    FilterReader,
    LevelDBPolicy,
    NoFilterPolicy,
    VerifiedBuilder,
)
from policies.block import Identity
from policies.builtin import is_built_in, table_key
from policies.containment import is_attended, let_pass
from policies.layouts import DEFAULT_PARTITION_BLOCKS, PARTITIONED
from policies.prefixes import Prefixes

WINDOWS_KEY = "filter.leveldb.BuiltinBloomFilter2"
ROCKSDB_KEY = "fullfilter.rocksdb.BuiltinBloomFilter"
ROCKSDB_POLICIES = frozenset(
    family.name for family in FAMILIES.values() if family.table_key == ROCKSDB_KEY
)
WINDOWS_POLICY = LevelDBPolicy()
FULL_PREFIX = "fullfilter."
PREFIXED_PREFIX = "prefixfilter.lsm."
PREFIXES = ("fullfilter.", "filter.", "partitionedfilter.", "prefixfilter.")

_BASE_LG = 11
_WINDOW_BYTES = 1 << _BASE_LG
_MOST_WINDOW_BYTES = 0xFFFF_FFFF  # an offset is a u32
_WINDOWS_TAIL = 5  # where the offsets begin, and the base's logarithm


class NoFilter:
    """Writes no filter."""

    wants_keys: ClassVar[bool] = False

    def __init__(self, placement: str = ""):
        self._placement = placement

    def add_blocks(self, keys: Sequence[bytes], ends: Ends) -> None:
        """Let go of the keys."""

    def finish(self) -> WrittenFilter:
        """That there is none."""
        return WrittenFilter("none", placement=self._placement)


class FullFilter:
    """One filter for the whole table."""

    wants_keys: ClassVar[bool] = True

    def __init__(self, policy: FilterPolicy, part: FilterPart, prefixes: Prefixes | None = None):
        self._policy = policy
        self._prefixes = prefixes
        self._part = part

    def add_blocks(self, keys: Sequence[bytes], ends: Ends) -> None:
        """Add the keys to the table's one filter."""
        self._part.add_many(keys)

    def finish(self) -> WrittenFilter:
        """The filter under its name."""
        result = self._part.finish()
        if result.filter is None:
            return WrittenFilter(result.state, reason=result.reason)
        num_keys, identity = result.num_keys, result.identity
        bare = table_key(self._policy)
        if bare and self._prefixes is None:
            return WrittenFilter("built", bare, (result.filter,), num_keys, identity=identity)
        assert identity is not None, "a filter that was verified for another policy"
        key = (FULL_PREFIX if self._prefixes is None else PREFIXED_PREFIX) + identity.name
        parts = self._part.stored(result)
        return WrittenFilter("built", key, parts, num_keys, identity=identity)


class WindowFilters:
    """LevelDB's form: a filter for the blocks that begin in each 2 KiB of the file.

    Whoever made them, they are read as LevelDB's filters, here and by LevelDB.
    """

    wants_keys: ClassVar[bool] = True

    def __init__(self, policy: FilterPolicy, context: BuildContext):
        self._policy = policy
        self._context = context
        self._keys: list[Sequence[bytes]] = []
        self._filters = bytearray()
        self._offsets: list[int] = []
        self._num_keys = 0
        self._trouble: WrittenFilter | None = None

    def add_blocks(self, keys: Sequence[bytes], ends: Ends) -> None:
        """Collect the keys, and close the windows that end before the block behind them."""
        start = end = 0
        for end, next_offset in ends:
            if next_offset // _WINDOW_BYTES > len(self._offsets) and start < end:
                self._keys.append(part_of(keys, start, end))
                start = end
            while next_offset // _WINDOW_BYTES > len(self._offsets):
                self._close_window()
        if start < end:
            self._keys.append(part_of(keys, start, end))

    def finish(self) -> WrittenFilter:
        """All filters, then u32 offsets of each, the offset of those, and the window's size."""
        if self._keys:
            self._close_window()
        if self._trouble:
            return self._trouble
        offsets = pack(f"<{len(self._offsets) + 1}I", *self._offsets, len(self._filters))
        parts = bytes(self._filters), offsets + bytes((_BASE_LG,))
        return WrittenFilter("built", WINDOWS_KEY, parts, self._num_keys)

    def _close_window(self) -> None:
        self._offsets.append(len(self._filters))
        if not self._keys:
            return
        builder = VerifiedBuilder(self._policy, self._context, read_by=WINDOWS_POLICY)
        for keys in self._keys:
            builder.add_many(keys)
        self._keys = []
        result = builder.finish()
        if result.filter is None:
            self._trouble = WrittenFilter(result.state, reason=result.reason)
        elif len(self._filters) + len(result.filter) > _MOST_WINDOW_BYTES:
            reason = f"the windows' filters take more than {_MOST_WINDOW_BYTES} bytes"
            self._trouble = WrittenFilter("failed", reason=reason)
        else:
            self._filters += result.filter
            self._num_keys += result.num_keys


class WindowReader:
    """LevelDB's form opened: which filter answers depends on where the block begins.

    In ``contents`` the windows' filters come first, and their offsets ``offsets_at``; a window has
    two to the ``base_lg`` bytes.
    """

    def __init__(self, contents: bytes):
        if len(contents) < _WINDOWS_TAIL:
            raise CorruptionError(
                f"LevelDB's filter block takes {_WINDOWS_TAIL} bytes at least, not {len(contents)}"
            )
        self.base_lg = contents[-1]
        (self.offsets_at,) = unpack_from("<I", contents, len(contents) - _WINDOWS_TAIL)
        count, odd = divmod(len(contents) - _WINDOWS_TAIL - self.offsets_at, 4)
        if count < 0 or odd or self.base_lg > 32:
            raise CorruptionError(
                f"LevelDB's filter block is malformed: offsets at byte {self.offsets_at} of "
                f"{len(contents)}, windows of 2^{self.base_lg} bytes"
            )
        self._offsets: tuple[int, ...] = unpack_from(f"<{count + 1}I", contents, self.offsets_at)
        if any(b < a for a, b in zip(self._offsets, self._offsets[1:], strict=False)):
            raise CorruptionError("LevelDB's filter block is malformed: its offsets go backwards")
        self.contents = contents
        self._readers: list[FilterReader | None] = [None] * count

    def __len__(self) -> int:
        return len(self._readers)

    def bounds(self, window: int) -> tuple[int, int]:
        """Where a window's filter begins and ends in the contents: at one place if it has none."""
        return self._offsets[window], self._offsets[window + 1]

    def at(self, block_offset: int) -> FilterReader | None:
        """The filter of the blocks in this window, or None if it has none to ask."""
        window = block_offset >> self.base_lg
        if window >= len(self._readers):
            return None
        reader = self._readers[window]
        if reader is None:
            start, end = self.bounds(window)
            if start == end:
                return None  # no keys were seen here, yet a block is: rather read it
            reader = WINDOWS_POLICY.open(self.contents[start:end])
            self._readers[window] = reader
        return reader

    @property
    def expected_fpr(self) -> float | None:
        """The share of absent keys let through: random ones, a few by each window in turn."""
        starts = range(len(self._readers))
        opened = (self.at(window << self.base_lg) for window in starts)
        readers = [reader for reader in opened if reader is not None]
        if not readers:
            return None
        hits = asked = 0
        for index, reader in zip(range(SAMPLE_GROUPS), itertools.cycle(readers), strict=False):
            hits += sum(reader.might_contain_many(sample_keys(index)))
            asked += SAMPLE_GROUP
            if hits >= ENOUGH_HITS:
                break
        return hits / asked


class Law(Protocol):
    """Chooses the policies of tables by a budget."""

    def digests(self) -> Digests | None:
        """What digests are collected in, where any policy it may choose takes them."""

    def choose(self, num_keys: int, first: bytes, last: bytes) -> tuple[FilterPolicy | None, str]:
        """The policy of a table of so many keys between two, and why, as JSON.

        None where it cannot tell: then it is that of the plan.
        """


@attrs.frozen(kw_only=True)
class FilterPlan:
    """Which filter the next table gets: that of a policy, or of one that a ``law`` will choose.

    ``none_below`` says whether no table with keys between two bounds lies on a deeper level. A
    table of which that is true gets no filter with ``unless_last``, but for level 0, where older
    tables of the same level lie below. ``placement`` is why a budget has chosen the policy.
    """

    level: int
    policy: FilterPolicy
    layout: str
    reason: Literal["flush", "compaction", "bulk"]
    none_below: Callable[[bytes, bytes], bool]
    unless_last: bool = False
    law: Law | None = None
    placement: str = ""
    partition_blocks: int = DEFAULT_PARTITION_BLOCKS
    prefixes: Prefixes | None = None

    def identity(self) -> Identity:
        """How the table's properties name the policy; as unknown where it fails to say."""
        try:
            return Identity.of(self.policy)
        except BaseException as error:
            let_pass(error, attended=is_attended())
            return Identity("unknown", "{}")

    def writer(self) -> FilterWriter:
        """What takes the keys of the next table from its first block on."""
        if self.law is not None:
            return ChosenFilter(self, self.law)
        if type(self.policy) is NoFilterPolicy:
            return NoFilter(self.placement)
        return PlannedFilter(self)

    def is_last(self, first: bytes, last: bytes) -> bool:
        """Whether nothing lies beneath a table between these keys."""
        return self.level > 0 and self.none_below(first, last)

    def context(self, num_keys: int, first: bytes, last: bytes) -> BuildContext:
        """All that is known of a table, once all of its keys are."""
        return BuildContext(
            level=self.level,
            is_bottommost=self.is_last(first, last),
            reason=self.reason,
            expected_keys=num_keys,
        )

    def filter_of(self, context: BuildContext) -> FilterWriter:
        """What writes the filter of a table of which that is known."""
        if self.layout == "block":
            return WindowFilters(self.policy, context)
        if self.layout == PARTITIONED:
            return PartitionedFilters(self.policy, context, self.partition_blocks, self.prefixes)
        part = FilterPart(self.policy, context, self.prefixes)
        return FullFilter(self.policy, part, self.prefixes)


class PlannedFilter:
    """The filter of a table whose last key is not known yet.

    A policy that is built in asks nothing of the table, and gets the keys with the blocks: it keeps
    their digests. A plug-in is told all before its first key, so it gets them at the end; its keys
    are kept to verify its filter in any case.
    """

    wants_keys: ClassVar[bool] = True

    def __init__(self, plan: FilterPlan):
        self._plan = plan
        self._first = self._last = b""
        self._num_keys = 0
        self._waiting: deque[tuple[Sequence[bytes], Ends]] = deque()
        self._filter: FilterWriter | None = None
        if is_built_in(plan.policy):
            self._filter = plan.filter_of(BuildContext(level=plan.level, reason=plan.reason))

    def add_blocks(self, keys: Sequence[bytes], ends: Ends) -> None:
        """Hand the keys on, or keep them for a plug-in."""
        if keys:
            self._first = self._first if self._num_keys else keys[0]
            self._last = keys[-1]
            self._num_keys += len(keys)
        if self._filter is not None:
            self._filter.add_blocks(keys, ends)
        else:
            self._waiting.append((keys, ends))

    def finish(self) -> WrittenFilter:
        """The filter, unless no table of the last level is to have one."""
        plan = self._plan
        if plan.unless_last and plan.is_last(self._first, self._last):
            return WrittenFilter("none")
        filter = self._filter
        if filter is None:
            filter = plan.filter_of(plan.context(self._num_keys, self._first, self._last))
        while self._waiting:
            filter.add_blocks(*self._waiting.popleft())
        return attrs.evolve(filter.finish(), placement=plan.placement)


@attrs.define
class _Collected:
    """The keys of a table or a partition: their digests, or else themselves; and the last one."""

    digests: Digests | None
    waiting: list[Sequence[bytes]] = attrs.field(factory=list)
    last: bytes = b""

    def add_many(self, keys: Sequence[bytes]) -> None:
        """Take the next keys."""
        self.last = keys[-1]
        if self.digests is None:
            self.waiting.append(keys)
        else:
            self.digests.add_many(keys)

    def part(self, policy: FilterPolicy, context: BuildContext) -> FilterPart:
        """The filter that a policy makes of them."""
        part = FilterPart(policy, context, digests=self.digests)
        for keys in self.waiting:
            part.add_many(keys)
        self.waiting.clear()
        return part


class ChosenFilter:
    """The filter of a table whose policy is chosen when all of its keys are known.

    Where whatever may be chosen takes one kind of digest, digests are all that is kept until then.
    """

    wants_keys: ClassVar[bool] = True

    def __init__(self, plan: FilterPlan, law: Law):
        self._plan = plan
        self._law = law
        self._first = self._last = b""
        self._num_keys = 0
        self._cutter = Cutter(plan.partition_blocks) if plan.layout == PARTITIONED else None
        self._collected: list[_Collected] = []
        self._is_open = False

    def add_blocks(self, keys: Sequence[bytes], ends: Ends) -> None:
        """Keep the keys, or their digests."""
        if keys:
            self._first = self._first if self._num_keys else keys[0]
            self._last = keys[-1]
            self._num_keys += len(keys)
        if self._cutter is None:
            self._take(keys)
            return
        for some, ends_here in self._cutter.cut(keys, ends):
            self._take(some)
            self._is_open = self._is_open and not ends_here

    def _take(self, keys: Sequence[bytes]) -> None:
        if not len(keys):
            return
        if not self._is_open:
            self._is_open = True
            self._collected.append(_Collected(self._law.digests()))
        self._collected[-1].add_many(keys)

    def finish(self) -> WrittenFilter:
        """The filter of the policy that the law chooses, which may be none."""
        plan, found = self._plan, (self._num_keys, self._first, self._last)
        chosen, placement = self._law.choose(*found)
        policy = plan.policy if chosen is None else chosen
        if type(policy) is NoFilterPolicy:
            return WrittenFilter("none", identity=Identity.of(policy), placement=placement)
        context = plan.context(*found)
        if self._cutter is None:
            [collected] = self._collected
            whole = FullFilter(policy, collected.part(policy, context))
            return attrs.evolve(whole.finish(), placement=placement)
        filters = PartitionedFilters(policy, context, plan.partition_blocks)
        while self._collected:
            collected = self._collected.pop(0)
            filters.add(collected.part(policy, context), collected.last)
        return attrs.evolve(filters.finish(), placement=placement)
