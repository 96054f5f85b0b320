"""A table's filter in memory, found through the metaindex and opened by whoever made it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import attrs

import policies
from filters import rocksdb_forms
from filters.errors import FilterError, UnsupportedVersionError
from lsm.comparator import BYTEWISE, Comparator
from lsm.disk.filter_blocks import (
    FULL_PREFIX,
    PREFIXED_PREFIX,
    ROCKSDB_KEY,
    ROCKSDB_POLICIES,
    WINDOWS_KEY,
    WindowReader,
)
from lsm.disk.footer import Handle
from lsm.disk.partitioned_filters import PARTITIONED_PREFIX, PartitionIndex
from lsm.disk.table import TableReader
from lsm.errors import CorruptionError
from lsm.kernels import FilterDoor, of
from policies import FilterReader, RangeReader, RocksDBPolicy, claims, registry
from policies.block import BlockDescription, read_block
from policies.containment import MOMENTARY, is_momentary
from policies.errors import DuplicatePolicyError, UnknownPolicyError
from policies.prefixes import MAGIC as PREFIXED_MAGIC
from policies.prefixes import Prefixes, PrefixReader

if TYPE_CHECKING:
    from lsm.disk.properties import Properties
    from lsm.kernels.python.partitions import Partitions

_log = logging.getLogger("lsm")

# What a partition's filter takes beside its bytes: what is said of it, its reader, its place.
_PARTITION_OVERHEAD = 1500
# So many partitions are looked at to say what rate of absent keys a filter lets through.
_LOOKED_AT = 8

PATIENCE = 4096
"""So many lookups go on without a filter that could not be loaded for the moment, before the next
tries again."""


@attrs.frozen
class FilterInfo:
    """What a table carries, whether or not it can be opened here."""

    state: str
    policy: str = "none"
    params: dict[str, Any] = attrs.field(factory=dict, hash=False)
    layout: str = "table"
    written_for_level: int | None = None
    num_keys: int | None = None
    bytes: int = 0
    num_entries: int | None = None
    placement: dict[str, Any] = attrs.field(factory=dict, hash=False)
    partition_blocks: int | None = None
    prefixes: dict[str, Any] = attrs.field(factory=dict, hash=False)


class LoadedFilter(FilterDoor):
    """A filter to be asked: by the table's ``reader``, or by the ``windows`` of its blocks.

    Or there are ``partitions``, each with a filter of its own that is loaded when it is asked. With
    none of these there is no say, and ``state`` tells why. Where that may pass, ``patience`` is how
    many lookups go on without it. ``ranges`` is what answers for ranges, if it can.
    """

    __slots__ = (
        "_expected_fpr",
        "charge",
        "has_warned",
        "info",
        "owner",
        "partitions",
        "patience",
        "ranges",
        "reader",
        "stored_bytes",
        "windows",
    )

    def __init__(
        self,
        info: FilterInfo,
        reader: FilterReader | None = None,
        windows: WindowReader | None = None,
        patience: int = 0,
        partitions: Partitions | None = None,
        ranges: RangeReader | None = None,
    ):
        super().__init__()
        self.info = info
        self.reader = reader
        self.windows = windows
        self.partitions = partitions
        self.ranges = ranges
        self.patience = patience
        self.charge = info.bytes if partitions is None else partitions.charge
        self.owner: Any = None
        self.stored_bytes = info.bytes if partitions is None else 0  # that were read for it
        self.has_warned = False  # of a partition that cannot be asked
        self._expected_fpr: float | None = None

    @property
    def state(self) -> str:
        """``built``, or why the filter has no say."""
        return self.info.state

    def evict(self) -> None:
        """Leave its place; the next lookup loads it again."""
        if self.owner is not None:
            self.owner.let_go(self)

    def went_without(self) -> None:
        """Count a lookup that did without it for the moment; after the last it is loaded anew."""
        self.patience -= 1
        if self.patience <= 0:
            self.evict()

    def expected_fpr(self) -> float | None:
        """The share of absent keys it is expected to let through; of partitions see below."""
        if self._expected_fpr is None and self.partitions is None:
            asked = self.windows if self.reader is None else self.reader
            self._expected_fpr = claims.expected_fpr(asked)
        return self._expected_fpr

    def sample(self, load: Callable[[int], LoadedFilter]) -> None:
        """Find out the same for partitions from some of them, which ``load`` has or loads."""
        partitions = self.partitions
        if partitions is None or self._expected_fpr is not None:
            return
        last, count = len(partitions) - 1, min(len(partitions), _LOOKED_AT)
        numbers = {last * step // max(1, count - 1) for step in range(count)}
        keys = passed = 0.0
        for number in sorted(numbers):
            loaded = load(number)
            rate = loaded.expected_fpr()
            if rate is not None and loaded.info.num_keys:
                keys += loaded.info.num_keys
                passed += loaded.info.num_keys * rate
        self._expected_fpr = passed / keys if keys else None


def load(table: TableReader, *, paranoid: bool, comparator: Comparator = BYTEWISE) -> LoadedFilter:
    """The table's filter, opened; with a state other than ``built`` where that cannot be.

    A damaged filter is an error if ``paranoid``, and else costs its reads. Of a filter in
    partitions, which are in the order of the ``comparator``, only their index is read.
    """
    properties = _properties(table)
    loaded = _load(table, properties, paranoid, comparator)
    if properties is not None:
        loaded.info = attrs.evolve(
            loaded.info,
            num_entries=properties.num_entries,
            placement=properties.placed,
            prefixes=loaded.info.prefixes or properties.prefixes,
        )
    return loaded


def announced(table: TableReader) -> tuple[str, int]:
    """The policy of a table's filter and the bytes it is read in, without reading them.

    Of a filter in partitions that is their index. A size of 0 is for none, and for what cannot be
    told or be read.
    """
    try:
        entries = table.filter_entries()
    except CorruptionError:
        return "unreadable", 0
    if not entries:
        return "none", 0
    key, handle = min(entries.items(), key=lambda entry: not _is_known(entry[0]))
    size = handle.size if handle.offset + handle.size <= len(table.mapped.data) else 0
    return _policy_behind(key, _properties(table)), size


def load_partition(
    table: TableReader, whole: LoadedFilter, number: int, *, paranoid: bool
) -> LoadedFilter:
    """The filter of one partition, in the same way: what is damaged is a matter of its keys."""
    assert whole.partitions is not None
    handle = whole.partitions.handle(number)
    key = PARTITIONED_PREFIX + whole.info.policy

    def opened() -> LoadedFilter:
        contents, is_checked = table.read_filter(handle)
        is_framed = contents[: len(PREFIXED_MAGIC)] == PREFIXED_MAGIC
        return _open_block(contents, is_checked, is_framed)

    loaded = _guarded(table, key, None, paranoid, opened, is_told=whole.has_warned)
    whole.has_warned |= loaded.state != "built"
    loaded.info = attrs.evolve(
        whole.info,
        state=loaded.state,
        num_keys=loaded.info.num_keys,
        bytes=loaded.info.bytes,
        prefixes=loaded.info.prefixes,
    )
    if loaded.charge:
        loaded.charge += _PARTITION_OVERHEAD
    return loaded


def _load(
    table: TableReader, properties: Properties | None, paranoid: bool, comparator: Comparator
) -> LoadedFilter:
    if table.metaindex_damage is not None:
        damage = table.metaindex_damage
        return _unusable(table, "corrupt", "", damage, properties=properties, paranoid=paranoid)
    try:
        entries = table.filter_entries()
    except CorruptionError as error:
        return _unusable(table, "corrupt", "", error, properties=properties, paranoid=paranoid)
    if not entries:
        return LoadedFilter(_absent(properties))
    key, handle = min(entries.items(), key=lambda entry: not _is_known(entry[0]))
    opened = partial(_open, table, key, handle, properties, comparator)
    return _guarded(table, key, properties, paranoid, opened)


def _guarded(
    table: TableReader,
    key: str,
    properties: Properties | None,
    paranoid: bool,
    open: Callable[[], LoadedFilter],
    is_told: bool = False,
) -> LoadedFilter:
    """A filter that is opened so, or what tells why there is none."""
    about: dict[str, Any] = {"properties": properties, "is_told": is_told}
    try:
        return open()
    except (UnknownPolicyError, DuplicatePolicyError, UnsupportedVersionError) as error:
        return _unusable(table, "unknown", key, error, **about)
    except (CorruptionError, policies.CorruptBlockError) as error:
        return _unusable(table, "corrupt", key, error, paranoid=paranoid, **about)
    except MOMENTARY as error:
        return _unusable(table, "failed", key, error, patience=PATIENCE, **about)
    except FilterError as error:
        patience = PATIENCE if is_momentary(error.__cause__) else 0
        return _unusable(table, "failed", key, error, patience=patience, **about)


def _open(
    table: TableReader,
    key: str,
    handle: Handle,
    properties: Properties | None,
    comparator: Comparator,
) -> LoadedFilter:
    level = properties.level if properties else None
    if not _is_known(key):
        raise UnknownPolicyError(f"nobody here reads filters of the form {key!r}")
    contents, is_checked = table.read_filter(handle)
    if key == WINDOWS_KEY:
        windows = WindowReader(contents)
        return LoadedFilter(
            _info(properties, "leveldb", "block", level, len(contents)), windows=windows
        )
    if key.startswith(PARTITIONED_PREFIX):
        return _open_partitions(table, key, contents, properties, comparator)
    if key == ROCKSDB_KEY:
        opened: Any = RocksDBPolicy().open(contents)
        policy = _rocksdb_policy(properties) or _policy_of_form(opened.form)
        return LoadedFilter(_info(properties, policy, "table", level, len(contents)), opened)
    loaded = _open_block(contents, is_checked, key.startswith(PREFIXED_PREFIX))
    loaded.info = attrs.evolve(loaded.info, written_for_level=level)
    return loaded


def _open_block(contents: bytes, is_checked: bool, is_framed: bool) -> LoadedFilter:
    """The filter in a block that describes itself, and perhaps stands in a frame."""
    prefixes, block = Prefixes.decode(contents) if is_framed else (None, contents)
    described, reader = read_block(block, is_checked=is_checked)
    info = _described(described, len(contents), prefixes)
    if prefixes is None:
        ranges: Any = reader if callable(getattr(reader, "may_contain_range", None)) else None
        return LoadedFilter(info, reader, ranges=ranges)
    by_prefix = PrefixReader(reader, prefixes)
    return LoadedFilter(info, reader if prefixes.whole_keys else by_prefix, ranges=by_prefix)


def _described(described: BlockDescription, size: int, prefixes: Prefixes | None) -> FilterInfo:
    return FilterInfo(
        "built",
        described.policy,
        described.params,
        num_keys=described.num_keys,
        bytes=size,
        prefixes={} if prefixes is None else prefixes.entries(),
    )


def _open_partitions(
    table: TableReader,
    key: str,
    contents: bytes,
    properties: Properties | None,
    comparator: Comparator,
) -> LoadedFilter:
    policy = key.removeprefix(PARTITIONED_PREFIX)
    registry.lookup(policy)
    index = PartitionIndex.decode(contents, len(table.mapped.data))
    partitions = of(comparator).Partitions(index.lasts, index.handles, comparator.wrap)
    if not partitions.ascend():
        raise CorruptionError("the last keys of the filter's partitions do not ascend")
    level = properties.level if properties else None
    info = _info(properties, policy, "partitioned", level, index.size)
    if properties is not None and properties.filter_partition_blocks:
        info = attrs.evolve(info, partition_blocks=properties.filter_partition_blocks)
    loaded = LoadedFilter(info, partitions=partitions)
    loaded.stored_bytes = len(contents)
    return loaded


def _rocksdb_policy(properties: Properties | None) -> str:
    """Whose bytes RocksDB's key leads to, as who wrote them says it; empty where nobody does."""
    said = properties.filter_policy if properties is not None else ""
    return said if said in ROCKSDB_POLICIES else ""


def _policy_of_form(form: str) -> str:
    return "ribbon" if form == rocksdb_forms.RIBBON else "rocksdb"


def _info(
    properties: Properties | None, policy: str, layout: str, level: int | None, size: int
) -> FilterInfo:
    """What is known of a filter that does not describe itself."""
    if properties is None or properties.filter_policy != policy:
        return FilterInfo("built", policy, {}, layout, level, None, size)
    keys = properties.num_filter_keys
    return FilterInfo("built", policy, properties.params, layout, level, keys, size)


def _absent(properties: Properties | None) -> FilterInfo:
    if properties is None:
        return FilterInfo("none")
    state = properties.filter_state
    if state not in ("failed", "declined"):
        return FilterInfo("none", written_for_level=properties.level)
    return FilterInfo(
        state, properties.filter_policy, properties.params, written_for_level=properties.level
    )


def _unusable(
    table: TableReader,
    state: str,
    key: str,
    error: Exception,
    *,
    properties: Properties | None,
    paranoid: bool = False,
    patience: int = 0,
    is_told: bool = False,
) -> LoadedFilter:
    if paranoid:
        if isinstance(error, CorruptionError) and table.name in str(error):
            raise error
        raise CorruptionError(
            f"{table.name}: the filter block is damaged: {error}; without paranoid_checks the "
            "table is read without it, and a compaction writes a new one"
        ) from error
    _log.log(
        logging.DEBUG if is_told else logging.WARNING,
        *("%s: reading on without its filter (%s): %s", table.name, state, str(error)),
    )
    level = properties.level if properties else None
    info = FilterInfo(state, _policy_behind(key, properties), written_for_level=level)
    return LoadedFilter(info, patience=patience)


def _policy_behind(key: str, properties: Properties | None) -> str:
    """The policy of a filter by the key of the metaindex that leads to it."""
    policy = key
    for prefix in (FULL_PREFIX, PREFIXED_PREFIX, PARTITIONED_PREFIX):
        policy = policy.removeprefix(prefix)
    rocksdbs = _rocksdb_policy(properties) or "rocksdb"
    return {WINDOWS_KEY: "leveldb", ROCKSDB_KEY: rocksdbs, "": "unreadable"}.get(key, policy)


def _properties(table: TableReader) -> Properties | None:
    """What the table says about itself; nothing where that is damaged, for nothing needs it."""
    try:
        return table.properties()
    except CorruptionError as error:
        _log.warning("%s: its properties cannot be read: %s", table.name, str(error))
        return None


def _is_known(key: str) -> bool:
    return key == WINDOWS_KEY or key.startswith((FULL_PREFIX, PREFIXED_PREFIX, PARTITIONED_PREFIX))
