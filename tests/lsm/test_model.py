"""The whole engine beside a dict: whatever is done to both, they answer the same."""

from __future__ import annotations

import tempfile
from bisect import bisect_left
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

import lsm
import policies
from lsm.options import LEVELS
from tests.effort import examples
from tests.lsm import odd_policies
from tests.lsm.configurations import BUILT_IN, Configuration, configurations
from tests.lsm.refilterable import reconfigure
from tests.lsm.simulated import SimulatedStorage

# -- What is expected ----------------------------------------------------------------------


@attrs.frozen
class Order:
    """An order of keys: ``place`` makes of a key what Python sorts and compares the same way."""

    place: Callable[[bytes], Any]
    name: bytes | None = None

    @property
    def arguments(self) -> dict[str, Any]:
        """What a database is opened with for this order."""
        if self.name is None:
            return {}
        return {"comparator": self.compare, "comparator_name": self.name}

    def compare(self, one: bytes, other: bytes) -> int:
        here, there = self.place(one), self.place(other)
        return int(here > there) - int(here < there)


BYTEWISE = Order(bytes)
# A key's end comes after all bytes, and of those the highest comes first.
REVERSED = Order(lambda key: (*(-byte for byte in key), 1), b"reversed")
FOLDED = Order(bytes.lower, b"folded")

Bounds = dict[str, Any]


class Held:
    """What a database holds. Of keys that are equal in the order the latest is kept."""

    def __init__(self, order: Order, entries: dict[Any, tuple[bytes, bytes]] | None = None):
        self.order = order
        self._entries = {} if entries is None else entries

    def put(self, key: bytes, value: bytes) -> None:
        self._entries[self.order.place(key)] = key, value

    def delete(self, key: bytes) -> None:
        self._entries.pop(self.order.place(key), None)

    def get(self, key: bytes) -> bytes | None:
        return self._entries.get(self.order.place(key), (key, None))[1]

    def frozen(self) -> Held:
        return Held(self.order, dict(self._entries))

    def items(self, of: bytes = b"", bounds: Bounds | None = None) -> list[tuple[bytes, bytes]]:
        """What an iterator with these bounds gives, in a database with the prefix ``of``."""
        inside = [
            (place, key, value)
            for place, (key, value) in sorted(self._entries.items())
            if self._is_inside(place, key, of, **(bounds or {}))
        ]
        return [(key[len(of) :], value) for _, key, value in inside]

    def _is_inside(
        self,
        place: Any,
        key: bytes,
        of: bytes,
        *,
        start: bytes | None = None,
        stop: bytes | None = None,
        include_start: bool = True,
        include_stop: bool = False,
        prefix: bytes | None = None,
    ) -> bool:
        whole = of + (prefix or b"")
        if self.order is BYTEWISE:
            if not key.startswith(whole):
                return False
        elif of or prefix is not None:  # from the prefix on, up to the next one in bytes
            after = next_prefix(whole)
            low = self.order.place(of + start) if start is not None else self.order.place(whole)
            if place < low or (
                stop is None and after is not None and not place < self.order.place(after)
            ):
                return False
        if start is not None:
            first = self.order.place(of + start)
            if place < first or (place == first and not include_start):
                return False
        if stop is not None:
            last = self.order.place(of + stop)
            if last < place or (place == last and not include_stop):
                return False
        return True


def next_prefix(prefix: bytes) -> bytes | None:
    """The first key in bytes after all with this prefix."""
    while prefix.endswith(b"\xff"):
        prefix = prefix[:-1]
    return prefix[:-1] + bytes([prefix[-1] + 1]) if prefix else None


class Gap:
    """A list and a place between two of its items, as an iterator has it."""

    def __init__(self, order: Order, items: list[tuple[bytes, bytes]], of: bytes, reverse: bool):
        self._places = [order.place(of + key) for key, _ in items]
        self._order, self._items, self._of, self._reverse = order, items, of, reverse
        self._at = len(items) if reverse else 0

    def move(self, how: str, target: bytes) -> tuple[bytes, bytes] | None:
        """The item that a move gives; None if there is none."""
        if how == "seek":
            self._at = bisect_left(self._places, self._order.place(self._of + target))
        elif how in ("seek_to_start", "seek_to_stop"):
            self._at = 0 if how == "seek_to_start" else len(self._items)
        elif (how == "next") != self._reverse:
            if self._at < len(self._items):
                self._at += 1
                return self._items[self._at - 1]
        elif self._at > 0:
            self._at -= 1
            return self._items[self._at]
        return None


# -- What is done --------------------------------------------------------------------------


def all_keys(letters: list[bytes]) -> list[bytes]:
    """Every key of up to two letters, some of three, and two that are long."""
    pairs = [one + other for one in letters for other in letters]
    long = letters[1] * 200
    return [b"", *letters, *pairs, *(letters[1] + pair for pair in pairs), long, long + letters[2]]


SIZES = st.sampled_from([8] * 12 + [0, 0, 1, 40, 300, 300, 5000, 100 << 10])
FLAGS = st.booleans()
MOST = st.none() | st.integers(1, 5000)
WHICH = st.integers(0, 7)
MOVES = st.sampled_from(["next", "prev"] * 2 + ["seek", "seek_to_start", "seek_to_stop"])
RAW_MOVES = st.sampled_from(["next", "prev"] * 2 + ["seek", "seek_to_first", "seek_to_last"])


@attrs.define
class Walking:
    """An open iterator and where it should be."""

    iterator: Any
    gap: Gap
    shown: Callable[[tuple[bytes, bytes]], Any]


@attrs.define
class RawWalking:
    """An open raw iterator, what it walks over, and its place there; None: not valid."""

    iterator: Any
    items: list[tuple[bytes, bytes]]
    at: int | None = None


@attrs.define
class Taken:
    """An open snapshot of a part of the database, and what it should see."""

    snapshot: Any
    of: bytes
    held: Held


class Machine(RuleBasedStateMachine):
    """One database on a simulated file system, opened again and again with other options."""

    order: ClassVar[Order] = BYTEWISE
    letters: ClassVar[list[bytes]] = [b"\x00", b"a", b"b", b"\xff"]

    def __init__(self) -> None:
        super().__init__()
        self.scratch = tempfile.TemporaryDirectory(prefix="lsm-model-")
        self.storage: Any = SimulatedStorage()
        self.name = "/db"
        self.held = Held(self.order)
        self.written = 0
        self.snapshots: list[Taken] = []
        self.walking: list[Any] = []  # of Walking
        self.raw: list[Any] = []  # of RawWalking
        self.db: Any = None

    def teardown(self) -> None:
        try:
            if self.db is not None:
                self.db.close()
        finally:
            self.scratch.cleanup()

    def open(self, configuration: Configuration | None, **arguments: Any) -> None:
        """Open it, with the options that are kept if there is no configuration."""
        arguments |= {"storage": self.storage, **self.order.arguments}
        if configuration is None:
            self.db = lsm.DB(self.name, **arguments)
        else:
            self.db = configuration.open(self.name, Path(self.scratch.name), **arguments)

    def close(self) -> None:
        """Close it; what was made of it is closed, too."""
        self.db.close()
        for iterator in [walking.iterator for walking in self.walking + self.raw]:
            with pytest.raises(RuntimeError, match="closed"):
                iterator.seek(b"")
            iterator.close()
        for taken in self.snapshots:
            with pytest.raises(RuntimeError, match="closed"):
                taken.snapshot.get(b"")
            taken.snapshot.close()
        self.walking, self.raw, self.snapshots = [], [], []

    def value(self, size: int) -> bytes:
        """A value that no other write has, unless it is too short for that."""
        self.written += 1
        return (b"%d." % self.written).ljust(size, b"*")[:size]

    def part(self, which: int) -> tuple[Any, bytes]:
        """Something to write to, and its prefix: mostly the database itself."""
        if which < 5:
            return self.db, b""
        prefix = self.letters[1 + which % 2]
        part = self.db.prefixed_db(prefix)
        return (
            (part.prefixed_db(self.letters[0]), prefix + self.letters[0])
            if which == 7
            else (
                part,
                prefix,
            )
        )

    def reader(self, which: int) -> tuple[Any, bytes, Held]:
        """Something to read: the database, a part of it, or a snapshot."""
        if which % 2 and self.snapshots:
            taken = self.snapshots[which % len(self.snapshots)]
            return taken.snapshot, taken.of, taken.held
        return *self.part(which), self.held

    def check_all(self) -> None:
        """All that is there, both ways and by key, without a trace in the counters."""
        expected = self.held.items()
        before = self.db.stats().filters
        assert list(self.db) == expected
        assert list(self.db.iterator(reverse=True)) == expected[::-1]
        after = self.db.stats()
        assert after.filters == before
        assert after.background_error is None
        assert self.db.get_many(self.keys()) == [self.held.get(key) for key in self.keys()]

    @classmethod
    def keys(cls) -> list[bytes]:
        return all_keys(cls.letters)


def key_of(letters: list[bytes]) -> st.SearchStrategy[bytes]:
    return st.sampled_from(all_keys(letters))


def machine(order: Order, letters: list[bytes], compare_bytes: bool) -> type[Machine]:
    """The machine of an order, with keys of these letters."""
    keys = key_of(letters)
    any_key = st.none() | keys
    any_configuration = configurations(compare_bytes)
    bounds = st.fixed_dictionaries(
        {},
        optional={
            "start": any_key,
            "stop": any_key,
            "include_start": FLAGS,
            "include_stop": FLAGS,
        },
    ) | st.fixed_dictionaries({"prefix": keys})

    class OrderedMachine(Machine):
        @initialize(configuration=any_configuration)
        def create(self, configuration: Configuration) -> None:
            if isinstance(self.storage, SimulatedStorage):
                self.storage.make_directory(self.name)
            self.open(configuration, create_if_missing=True)

        # Writing

        @rule(key=keys, size=SIZES, which=WHICH, sync=FLAGS)
        def put(self, key: bytes, size: int, which: int, sync: bool) -> None:
            part, prefix = self.part(which)
            value = self.value(size)
            part.put(key, value, sync=sync)
            self.held.put(prefix + key, value)

        @rule(key=keys, which=WHICH)
        def delete(self, key: bytes, which: int) -> None:
            part, prefix = self.part(which)
            part.delete(key)
            self.held.delete(prefix + key)

        @rule(
            operations=st.lists(st.tuples(keys, st.none() | SIZES), max_size=20),
            which=WHICH,
            transaction=FLAGS,
            failing=st.sampled_from([False, False, False, True]),
        )
        def batch(
            self,
            operations: list[tuple[bytes, int | None]],
            which: int,
            transaction: bool,
            failing: bool,
        ) -> None:
            part, prefix = self.part(which)
            after = self.held.frozen()
            try:
                with part.write_batch(transaction=transaction) as batch:
                    for key, size in operations:
                        if size is None:
                            batch.delete(key)
                            after.delete(prefix + key)
                        else:
                            value = self.value(size)
                            batch.put(key, value)
                            after.put(prefix + key, value)
                    if failing:
                        raise InterruptedError
            except InterruptedError:
                assert failing
            if not (failing and transaction):
                self.held = after

        @rule(first=st.integers(0, 40), step=st.integers(1, 3), size=SIZES)
        def put_many(self, first: int, step: int, size: int) -> None:
            for key in self.keys()[first::step]:
                value = self.value(size)
                self.db.put(key, value)
                self.held.put(key, value)

        # Reading

        @rule(key=keys, which=WHICH, fill=FLAGS)
        def get(self, key: bytes, which: int, fill: bool) -> None:
            reader, prefix, held = self.reader(which)
            missing = object()
            value = held.get(prefix + key)
            expected = missing if value is None else value
            assert reader.get(key, missing, fill_cache=fill) == expected

        @rule(wanted=st.lists(keys, max_size=8), which=WHICH)
        def get_many(self, wanted: list[bytes], which: int) -> None:
            reader, prefix, held = self.reader(which)
            assert reader.get_many(wanted) == [held.get(prefix + key) for key in wanted]

        @rule(wanted=st.lists(keys, max_size=5))
        def explain(self, wanted: list[bytes]) -> None:
            for key in wanted:
                before = self.db.stats().filters
                explanation = self.db.explain(key)
                present = self.held.get(key) is not None
                assert explanation.found == present, str(explanation)
                assert self.db.might_contain(key) or not present
                assert self.db.stats().filters == before

        @rule(within=bounds, which=WHICH, reverse=FLAGS, fill=FLAGS)
        def iterate(self, within: Bounds, which: int, reverse: bool, fill: bool) -> None:
            reader, prefix, held = self.reader(which)
            expected = held.items(prefix, within)
            if reverse:
                expected.reverse()
            assert list(reader.iterator(reverse=reverse, fill_cache=fill, **within)) == expected

        @precondition(lambda self: len(self.walking) < 4)
        @rule(within=bounds, which=WHICH, reverse=FLAGS, parts=st.sampled_from(["both", "key", ""]))
        def open_iterator(self, within: Bounds, which: int, reverse: bool, parts: str) -> None:
            reader, prefix, held = self.reader(which)
            wanted = {"include_key": parts != "", "include_value": parts == "both"}
            shown = {"both": lambda item: item, "key": lambda item: item[0], "": lambda item: None}
            iterator = reader.iterator(reverse=reverse, **wanted, **within)
            gap = Gap(self.order, held.items(prefix, within), prefix, reverse)
            self.walking.append(Walking(iterator, gap, shown[parts]))

        @precondition(lambda self: self.walking)
        @rule(which=WHICH, moves=st.lists(st.tuples(MOVES, keys), max_size=12))
        def walk(self, which: int, moves: list[tuple[str, bytes]]) -> None:
            walking = self.walking[which % len(self.walking)]
            for how, target in moves:
                expected = walking.gap.move(how, target)
                if how not in ("next", "prev"):
                    getattr(walking.iterator, how)(*[target] * (how == "seek"))
                    continue
                step = walking.iterator.__next__ if how == "next" else walking.iterator.prev
                if expected is None:
                    with pytest.raises(StopIteration):
                        step()
                else:
                    assert step() == walking.shown(expected)

        @precondition(lambda self: self.walking)
        @rule(which=WHICH)
        def close_iterator(self, which: int) -> None:
            self.walking.pop(which % len(self.walking)).iterator.close()

        @precondition(lambda self: len(self.raw) < 3)
        @rule(which=WHICH)
        def open_raw_iterator(self, which: int) -> None:
            if which % 2 and self.snapshots:
                taken = self.snapshots[which % len(self.snapshots)]
                raw = RawWalking(taken.snapshot.raw_iterator(), taken.held.items())
            else:
                raw = RawWalking(self.db.raw_iterator(), self.held.items())
            assert not raw.iterator.valid()
            self.raw.append(raw)

        @precondition(lambda self: self.raw)
        @rule(which=WHICH, moves=st.lists(st.tuples(RAW_MOVES, keys), max_size=12))
        def walk_raw(self, which: int, moves: list[tuple[str, bytes]]) -> None:
            raw = self.raw[which % len(self.raw)]
            for how, target in moves:
                step_raw(self.order, raw, how, target)

        @precondition(lambda self: self.raw)
        @rule(which=WHICH)
        def close_raw_iterator(self, which: int) -> None:
            self.raw.pop(which % len(self.raw)).iterator.close()

        # Snapshots

        @precondition(lambda self: len(self.snapshots) < 4)
        @rule(which=WHICH)
        def take_snapshot(self, which: int) -> None:
            part, prefix = self.part(which)
            self.snapshots.append(Taken(part.snapshot(), prefix, self.held.frozen()))

        @precondition(lambda self: self.snapshots)
        @rule(which=WHICH, silently=FLAGS)
        def close_snapshot(self, which: int, silently: bool) -> None:
            taken = self.snapshots.pop(which % len(self.snapshots))
            if not silently:  # else it is let go of, and that is as good
                taken.snapshot.close()

        # Looking after it

        @rule()
        def flush(self) -> None:
            self.db.flush()
            assert self.db.stats().memtable_bytes == 0

        @rule(start=any_key, stop=any_key, force=FLAGS)
        def compact_range(self, start: bytes | None, stop: bytes | None, force: bool) -> None:
            self.db.compact_range(start=start, stop=stop, force=force)
            self.check_all()

        @rule(policy=st.sampled_from(sorted({policy.name for policy, _ in BUILT_IN})), most=MOST)
        def refilter(self, policy: str, most: int | None) -> None:
            reconfigure(self.db, policies.create(policy))
            self.db.refilter(max_bytes=most)
            self.check_all()

        @rule()
        def wait_until_idle(self) -> None:
            self.db.wait_until_idle()
            self.check_all()

        @rule(ends=st.lists(st.tuples(keys, keys), max_size=3))
        def measure(self, ends: list[tuple[bytes, bytes]]) -> None:
            sizes = self.db.approximate_sizes(*ends)
            assert len(sizes) == len(ends)
            assert all(0 <= size <= 1 << 30 for size in sizes)

        @rule()
        def inspect(self) -> None:
            check_inspection(self.db)

        @rule(configuration=st.none() | any_configuration)
        def reopen(self, configuration: Configuration | None) -> None:
            self.close()
            self.open(configuration)
            self.check_all()

        @rule(configuration=st.none() | any_configuration)
        def reopen_read_only(self, configuration: Configuration | None) -> None:
            self.close()
            self.open(configuration, read_only=True)
            self.check_all()
            with pytest.raises(lsm.ReadOnlyError):
                self.db.put(b"a", b"")
            self.db.close()
            self.open(None)

        @precondition(lambda self: isinstance(self.storage, SimulatedStorage))
        @rule(configuration=st.none() | any_configuration)
        def be_killed(self, configuration: Configuration | None) -> None:
            survivor = self.storage.kill()
            self.close()
            self.storage = survivor
            self.open(configuration)
            self.check_all()

    OrderedMachine.order, OrderedMachine.letters = order, letters
    return OrderedMachine


def step_raw(order: Order, raw: RawWalking, how: str, target: bytes) -> None:
    """One move of a raw iterator, and a look at where it stands then."""
    last = len(raw.items) - 1
    if how == "seek":
        at = bisect_left([order.place(key) for key, _ in raw.items], order.place(target))
        raw.iterator.seek(target)
    elif how in ("seek_to_first", "seek_to_last"):
        at = 0 if how == "seek_to_first" else last
        getattr(raw.iterator, how)()
    elif raw.at is None:
        with pytest.raises(lsm.IteratorInvalidError):
            getattr(raw.iterator, how)()
        return
    else:
        at = raw.at + (1 if how == "next" else -1)
        getattr(raw.iterator, how)()
    raw.at = at if 0 <= at <= last else None
    assert raw.iterator.valid() == (raw.at is not None)
    if raw.at is not None:
        assert raw.iterator.item() == raw.items[raw.at]
        assert (raw.iterator.key(), raw.iterator.value()) == raw.items[raw.at]


def check_inspection(db: Any) -> None:
    """What the database says about itself adds up."""
    db.flush()
    db.wait_until_idle()  # from here on nothing changes between two looks
    stats, levels = db.stats(), db.filters()
    assert stats.background_error is None
    assert [level.level for level in levels] == list(range(LEVELS))
    for level, seen in zip(stats.levels, levels, strict=True):
        assert level.tables == len(seen.tables)
        assert (
            db.get_property(b"leveldb.num-files-at-level%d" % level.level) == b"%d" % level.tables
        )
        assert (level.bytes > 0) == (level.tables > 0)
        # What a plug-in has spoilt is loaded anew with its table, which may leave the cache, and
        # come back, between the two looks.
        if not any(table.policy.startswith("test.") for table in seen.tables):
            assert level.filter_bytes == sum(table.bytes for table in seen.tables)
        assert all(table in seen.tables for table in seen.drifted)
        for table in seen.tables:
            assert (table.bytes > 0) == (table.state == "built"), table
            assert table.expected_fpr is None or 0 <= table.expected_fpr <= 1
        here = [each.counters for each in stats.filters if each.level == level.level]
        assert level.skipped == sum(counters.skipped for counters in here)
        assert all(value >= 0 for counters in here for value in attrs.astuple(counters))
    for cache in (stats.block_cache, stats.filter_cache, stats.table_cache):
        assert 0 <= cache.bytes <= cache.limit
        assert cache.items >= 0
    assert str(stats)
    assert stats.as_dict()["path"] == stats.path
    for name in (b"leveldb.stats", b"leveldb.sstables", b"leveldb.approximate-memory-usage"):
        assert db.get_property(name)


# -- The tests -----------------------------------------------------------------------------

BytewiseMachine = machine(BYTEWISE, [b"\x00", b"a", b"b", b"\xff"], compare_bytes=True)
ReversedMachine = machine(REVERSED, [b"\x00", b"a", b"b", b"\xff"], compare_bytes=True)
FoldedMachine = machine(FOLDED, [b"a", b"A", b"b", b"B"], compare_bytes=False)


class OnDisk(BytewiseMachine):  # type: ignore[misc, valid-type]
    """The same on the file system."""

    def __init__(self) -> None:
        super().__init__()
        self.storage = None
        self.name = f"{self.scratch.name}/db"


@pytest.fixture(autouse=True)
def odd() -> Iterator[None]:
    """Odd policies are among those that configurations choose."""
    with odd_policies.registered():
        yield


@pytest.mark.parametrize(
    ("machine", "count"),
    [(BytewiseMachine, 20), (ReversedMachine, 8), (FoldedMachine, 8), (OnDisk, 4)],
    ids=["bytewise", "reversed", "folded", "on disk"],
)
def test_a_database_is_a_sorted_dict(machine: type[Machine], count: int) -> None:
    run_state_machine_as_test(machine, settings=settings(examples(count), stateful_step_count=50))


STEPS = [
    *(("put", key) for key in (b"a", b"b", b"c")),
    *(("delete", key) for key in (b"a", b"b", b"c")),
    ("snapshot", b""),
    ("snapshot", b""),
    ("release", b""),
    ("flush", b""),
    ("compact", b""),
    ("compact", b"b"),
    ("compact by force", b""),
    ("refilter", b""),
]


@examples(150)
@given(st.lists(st.sampled_from(STEPS), max_size=40), st.sampled_from([1, 16]))
def test_every_snapshot_keeps_its_versions(steps: list[tuple[str, bytes]], interval: int) -> None:
    """Three keys, so that a compaction meets many versions of each, and snapshots between them."""
    held = Held(BYTEWISE)
    readers: list[tuple[Any, Held]] = []
    with lsm.DB(
        "/db",
        create_if_missing=True,
        storage=SimulatedStorage(),
        block_size=64,
        block_restart_interval=interval,
    ) as db:
        for number, (step, key) in enumerate(steps):
            match step:
                case "put":
                    db.put(key, b"%d" % number)
                    held.put(key, b"%d" % number)
                case "delete":
                    db.delete(key)
                    held.delete(key)
                case "snapshot":
                    readers.append((db.snapshot(), held.frozen()))
                case "release" if readers:
                    readers.pop(number % len(readers))[0].close()
                case "flush":
                    db.flush()
                case "compact":
                    db.compact_range(stop=key or None)
                case "compact by force":
                    db.compact_range(force=True)
                case "refilter":
                    reconfigure(db, policies.create(("classic", "cuckoo")[number % 2]))
                    db.refilter()
        for reader, expected in [*readers, (db, held)]:
            assert list(reader.iterator()) == expected.items()
            assert list(reader.iterator(reverse=True)) == expected.items()[::-1]
            assert [reader.get(key) for key in (b"a", b"b", b"c")] == [
                expected.get(key) for key in (b"a", b"b", b"c")
            ]


@pytest.mark.parametrize("last", [b"last", None])
def test_a_compaction_keeps_what_the_oldest_snapshot_sees_and_no_more(last: bytes | None) -> None:
    """The write just before it, whatever the very next one does to the same key."""
    with lsm.DB("/db", create_if_missing=True, storage=SimulatedStorage(), compression=None) as db:
        for value in (b"first", b"second"):
            db.put(b"key", value * 1000)
            db.flush()
        snapshot = db.snapshot()
        if last is None:
            db.delete(b"key")
        else:
            db.put(b"key", last)
        db.compact_range()
        assert snapshot.get(b"key") == b"second" * 1000
        assert db.get(b"key") == last
        # The first version is behind the snapshot's, and nobody sees it any more.
        assert 6000 < sum(level.bytes for level in db.stats().levels) < 11000
        snapshot.close()
        db.put(b"key", b"new")
        db.compact_range()
        assert sum(level.bytes for level in db.stats().levels) < 2000
