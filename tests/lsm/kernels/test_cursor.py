"""Cursors on both kernels, over memtables, level 0 and other levels: all walk along one list."""

from __future__ import annotations

import gc
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsm import kernels
from lsm.comparator import BYTEWISE
from lsm.disk.keys import NEWEST, PUT, Entry, pack, rank_of
from lsm.kernels.python.batch import encode_batch
from lsm.options import LEVELS, Options
from lsm.storage import Mapped
from lsm.tables import TableCache
from lsm.version import PlacedTable, Version
from tests.effort import by_effort, examples
from tests.lsm.simulated import SimulatedStorage
from tests.lsm.test_table_bytes import write

Item = tuple[bytes, bytes]
Bound = tuple[bytes, bool] | None


@pytest.fixture(scope="module", params=kernels.available())
def kernel(request: pytest.FixtureRequest) -> ModuleType:
    """Each of the engine's kernels."""
    return kernels.load(request.param)


@contextmanager
def chosen(kernel: ModuleType) -> Iterator[None]:
    """A while in which tables are opened on this kernel."""
    before = kernels._chosen
    kernels._chosen = kernel
    try:
        yield
    finally:
        kernels._chosen = before


class Files(SimulatedStorage):
    """A storage of tables, by their numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.tables: dict[str, bytes] = {}

    def exists(self, path: str) -> bool:
        return path in self.tables

    def map(self, path: str) -> Mapped:
        return Mapped(self.tables[path])


class Moody:
    """A table cache of which every call asks first."""

    def __init__(self, tables: TableCache, ask: Callable[[], object]):
        self._tables = tables
        self._ask = ask

    def open(self, file: Any) -> Any:
        self._ask()
        return self._tables.open(file)

    def opened(self, file: Any) -> Any:
        self._ask()
        return self._tables.opened(file)

    def block(self, table: Any, number: int, fill_cache: bool = True) -> Any:
        self._ask()
        return self._tables.block(table, number, fill_cache)


class Held:
    """A view whose entries are spread over memtables and tables, with the table cache."""

    def __init__(self, kernel: ModuleType, block_size: int = 60):
        self.kernel = kernel
        self.block_size = block_size
        self.files = Files()
        self.memtables: list[Any] = []
        self.levels: list[list[PlacedTable]] = [[] for _ in range(LEVELS)]

    def add_memtable(self, entries: list[Entry]) -> None:
        """A memtable above all others; some look at its order makes runs of it."""
        memtable = self.kernel.Memtable(BYTEWISE)
        for number, (key, rank, value) in enumerate(sorted(entries, key=lambda each: -each[1])):
            memtable.apply(encode_batch(-rank >> 8, [(key, value if rank & 1 else None)]))
            if number % 7 == 3:
                next(memtable.ascending(None), None)
        self.memtables.insert(0, memtable)

    def add_table(self, level: int, entries: Sequence[Entry], interval: int = 3) -> None:
        """A table of entries in this order, between the least and the greatest of them."""
        number = 5 + len(self.files.tables)
        data, _ = write(entries, block_size=self.block_size, interval=interval)
        self.files.tables[f"db/{number:06}.ldb"] = data
        low, high = (pack(*each(entries)[:2]) for each in (min, max))
        file = self.kernel.TableFile(number, len(data))
        self.levels[level].append(PlacedTable.at(level, file, low, high, BYTEWISE))

    def view(self) -> Any:
        return self.kernel.View(tuple(self.memtables), Version(self.levels))

    def tables(self, **options: Any) -> TableCache:
        return TableCache(self.files, "db", Options(**options), BYTEWISE)


STEMS = st.sampled_from([b"", b"", b"key", b"k" * 9, b"k" * 70, b"k" * 200])
KEYS = st.builds(
    bytes.__add__, STEMS, st.sampled_from([b"", b"\0", b"a", b"b", b"bb", b"c\0", b"d", b"\xff"])
)
VALUES = st.one_of(st.none(), st.binary(max_size=4), st.just(b"large" * 9000))
HISTORIES = st.lists(st.tuples(KEYS, VALUES), max_size=60)
BOUNDS = st.one_of(st.none(), st.tuples(KEYS, st.booleans()))
CUTS = st.lists(st.integers(0, 60), max_size=7).map(sorted)
ACTIONS = st.lists(
    st.one_of(st.sampled_from(["first", "last", "next", "next", "back", "back"]), KEYS), max_size=25
)


def spread(
    kernel: ModuleType,
    history: list[tuple[bytes, bytes | None]],
    cuts: list[int],
    block_size: int = 60,
) -> Held:
    """The history in memtables, in tables of level 0 and on deeper levels, the oldest deepest."""
    held = Held(kernel, block_size)
    entries = [
        (key, rank_of(sequence, 0 if value is None else PUT), value or b"")
        for sequence, (key, value) in enumerate(history, 1)
    ]
    places = [0, *cuts, len(entries)]
    for number, (start, end) in enumerate(pairwise(places)):
        part = sorted(entries[start:end])
        depth = 5 - number
        if not part:
            continue
        if depth > 3:  # levels 2 and 1, in several tables that may share a key
            for at in range(0, len(part), 9):
                held.add_table(depth - 3, part[at : at + 9])
        elif depth > 1:
            held.add_table(0, part)
        else:
            held.add_memtable(part)
    return held


def visible(
    history: list[tuple[bytes, bytes | None]], sequence: int, low: Bound, high: Bound
) -> list[Item]:
    state = dict(history[:sequence])
    return sorted(
        (key, value)
        for key, value in state.items()
        if value is not None
        and (low is None or key > low[0] or (key == low[0] and low[1]))
        and (high is None or key < high[0] or (key == high[0] and high[1]))
    )


@examples(400)
@given(
    history=HISTORIES,
    cuts=CUTS,
    age=st.integers(0, 60),
    low=BOUNDS,
    high=BOUNDS,
    actions=ACTIONS,
    shape=st.tuples(st.booleans(), st.booleans(), st.sampled_from([0, 0, 1, 5])),
    block_size=st.sampled_from([60, 400, 4000]),
)
def test_windows_on_both_sides_are_the_list(
    kernel: ModuleType,
    history: list[tuple[bytes, bytes | None]],
    cuts: list[int],
    age: int,
    low: Bound,
    high: Bound,
    actions: list[Any],
    shape: tuple[bool, bool, int],
    block_size: int,
) -> None:
    with chosen(kernel):
        held = spread(kernel, history, cuts, block_size)
        entries = visible(history, age, low, high)
        source = kernel.Source(held.view(), held.tables(), rank_of(age), True, low, high, *shape)
        walk(kernel.Cursor(source), entries, actions, shape)


def shaped(entry: Item, shape: tuple[bool, bool, int]) -> object:
    include_key, include_value, cut = shape
    key, value = entry[0][cut:], entry[1]
    if include_key:
        return (key, value) if include_value else key
    return value if include_value else None


def walk(
    cursor: Any, entries: list[Item], actions: list[Any], shape: tuple[bool, bool, int]
) -> None:
    """All along the list; where the cursor's window lies in it is known at every moment."""
    begin = end = 0
    for action in [*actions, *["next", "back"] * 2]:
        if action == "first":
            cursor.window, begin, end = cursor.before_first(), 0, 0
        elif action == "last":
            cursor.window, begin, end = cursor.after_last(), len(entries), len(entries)
        elif action == "next":
            found = cursor.next_window(cursor.window)
            assert (found is not None) == (end < len(entries))
            if found is not None:
                assert found.end > 0
                cursor.window, begin, end = found, end, end + found.end
        elif action == "back":
            found = cursor.previous_window(cursor.window)
            assert (found is not None) == (begin > 0)
            if found is not None:
                assert found.end > 0
                cursor.window, begin, end = found, begin - found.end, begin
        else:
            cursor.window = cursor.place_of(action)
            begin = end = sum(key < action for key, _ in entries)
        window = cursor.window
        assert list(window.items) == [shaped(each, shape) for each in entries[begin:end]]
        assert window.end == len(window.items)
    cursor.window, forwards = cursor.before_first(), []
    while (found := cursor.next_window(cursor.window)) is not None:
        cursor.window = found
        forwards += found.items
    assert forwards == [shaped(each, shape) for each in entries]
    cursor.window, backwards = cursor.after_last(), []
    while (found := cursor.previous_window(cursor.window)) is not None:
        cursor.window = found
        backwards = [*found.items, *backwards]
    assert backwards == forwards


@pytest.fixture
def deep(kernel: ModuleType) -> tuple[Held, list[Item]]:
    """Some hundred keys everywhere, with several versions of each."""
    rng = random.Random(1)
    history = [
        (b"%04d" % rng.randrange(400), None if rng.random() < 0.2 else b"%d" % number)
        for number in range(1500)
    ]
    with chosen(kernel):
        return spread(kernel, history, [600, 900, 1100, 1300, 1400]), visible(
            history, 1500, None, None
        )


def iterator_over(source: Any, reverse: bool = False) -> Any:
    kernel = kernels.load(type(source).__module__.split(".")[2])
    return kernel.Iterator(kernel.Cursor(source), BYTEWISE, b"", None, reverse)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("turn", [False, True])
def test_a_step_that_raises_is_as_if_it_had_not_been_tried(
    kernel: ModuleType, deep: tuple[Held, list[Item]], reverse: bool, turn: bool, rng: Any
) -> None:
    held, entries = deep
    good = 0

    def ask() -> None:
        nonlocal good
        good -= 1
        if good == 0:
            raise OSError("for a moment")

    with chosen(kernel):
        tables = Moody(held.tables(lru_cache_size=500, table_cache_size=0), ask)
        source = kernel.Source(held.view(), tables, NEWEST)
        iterator = iterator_over(source, reverse)
        at, failed = len(entries) if reverse else 0, 0
        share = 0.7 if turn else 1.0  # of its steps that go ahead
        for _ in range(9 * len(entries)):
            good = rng.choice((0, 0, 1, 2, 3, 9))
            ahead = rng.random() < share
            right = ahead != reverse
            place = at if right else at - 1
            expected = entries[place] if 0 <= place < len(entries) else None
            for _ in range(20):
                try:
                    got = next(iterator, None) if ahead else give(iterator.prev)
                except OSError:
                    failed += 1
                    good = rng.choice((0, 0, 5))
                    continue
                break
            assert got == expected
            if expected is not None:
                at += 1 if right else -1
            else:
                share = 1 - share  # back from the end, where nothing is read
    assert failed > 3


def give(step: Callable[[], Any]) -> Any:
    try:
        return step()
    except StopIteration:
        return None


@pytest.mark.parametrize("reverse", [False, True])
def test_steps_in_the_middle_of_a_step_get_entries_of_their_own(
    kernel: ModuleType, deep: tuple[Held, list[Item]], reverse: bool, rng: Any
) -> None:
    """Whoever reads blocks for a step takes steps itself: each entry is given once, to one."""
    held, entries = deep
    given: list[Item] = []
    depth = 0

    def ask() -> None:
        nonlocal depth
        if depth < 3 and rng.random() < 0.3:
            depth += 1
            given.extend(filter(None, [next(iterator, None)]))
            depth -= 1

    with chosen(kernel):
        tables = Moody(held.tables(lru_cache_size=500, table_cache_size=0), ask)
        source = kernel.Source(held.view(), tables, NEWEST)
        depth = 3
        iterator = iterator_over(source, reverse)
        depth = 0
        for item in iterator:
            given.append(item)
    assert given == (entries[::-1] if reverse else entries)


@examples(100)
@given(data=st.data())
def test_blocks_out_of_order_are_walked_to_an_end(kernel: ModuleType, data: Any) -> None:
    """Under right checksums: each entry comes once at most, in whatever order."""
    count = data.draw(st.integers(1, 60))
    entries = [
        (b"%03d" % number * data.draw(st.sampled_from([1, 9])), rank_of(number + 1, PUT), b"v")
        for number in range(count)
    ]
    shuffled = data.draw(st.permutations(entries))
    held = Held(kernel, data.draw(st.sampled_from([30, 200, 5000])))
    keys = st.sampled_from([key for key, _, _ in entries])
    bound = st.one_of(st.none(), st.tuples(keys, st.booleans()))
    low, high, cut = data.draw(bound), data.draw(bound), data.draw(st.integers(0, 5))
    with chosen(kernel):
        held.add_table(0, shuffled, data.draw(st.sampled_from([1, 3, 100])))
        held.add_table(1, sorted(entries)[::2])
        held.add_memtable(entries[::5])
        source = kernel.Source(
            held.view(),
            held.tables(),
            NEWEST,
            True,
            low,
            high,
            True,
            True,
            cut,
        )
        for way in ("first", "last", "key"):
            cursor = kernel.Cursor(source)
            if way == "last":
                cursor.window = cursor.after_last()
            if way == "key":
                cursor.window = cursor.place_of(shuffled[0][0])
            for step in (cursor.next_window, cursor.previous_window):
                place = cursor.window
                for _ in range(3 * count + 3):
                    found = step(place)
                    if found is None:
                        break
                    place = found
                else:
                    pytest.fail("it does not end")


def test_what_is_in_a_window_is_nothing_to_collect(
    kernel: ModuleType, deep: tuple[Held, list[Item]]
) -> None:
    """Many entries that are kept do not make collections of garbage slower."""
    if kernel.__name__.endswith("python"):
        pytest.skip("Python finds that out itself")
    held, entries = deep
    with chosen(kernel):
        source = kernel.Source(held.view(), held.tables(), NEWEST)
        items = list(iterator_over(source))
    assert items == entries
    assert not any(map(gc.is_tracked, items))


def test_who_walks_is_known_as_long_as_it_is_there(
    kernel: ModuleType, deep: tuple[Held, list[Item]]
) -> None:
    held, _ = deep
    with chosen(kernel):
        source = kernel.Source(held.view(), held.tables(), NEWEST)
    walkers = kernel.Walkers()
    some = [iterator_over(source) for _ in range(5)]
    for each in some:
        walkers.add(each)
    assert walkers.alive() == some
    del some[2], each
    assert walkers.alive() == some
    assert len(walkers) == 4
    del walkers
    del some[1:]
    walkers = kernel.Walkers()
    walkers.add(some[0])
    some.clear()
    assert walkers.alive() == []
    assert len(walkers) == 0


@pytest.mark.parametrize("shape", [(True, True), (True, False), (False, True)])
def test_what_somebody_keeps_of_an_item_stays_as_it_was(
    kernel: ModuleType, deep: tuple[Held, list[Item]], shape: tuple[bool, bool], rng: Any
) -> None:
    """A whole item, its key or its value alone, or a window; and their hashes are theirs."""
    held, entries = deep
    with chosen(kernel):
        source = kernel.Source(held.view(), held.tables(), NEWEST, True, None, None, *shape)
        for reverse in (False, True, True):
            iterator, kept, windows = iterator_over(source, reverse), [], []
            for number, item in enumerate(iterator):
                parts = item if isinstance(item, tuple) else (item,)
                copies = tuple(bytes(bytearray(part)) for part in parts)
                assert [*map(hash, parts)] == [*map(hash, copies)]
                assert hash(item) == hash(copies if isinstance(item, tuple) else copies[0])
                what = rng.randrange(8)
                if what < 2:
                    kept.append((number, None, item))
                elif what < 2 + len(parts):
                    kept.append((number, what - 2, parts[what - 2]))
                if rng.random() < 0.02:
                    window = iterator._cursor.window
                    windows.append((window, list(window.items), window.items))
                del item, parts
            expected = [shaped(each, (*shape, 0)) for each in entries][:: -1 if reverse else 1]
            for number, part, was in kept:
                whole: Any = expected[number]
                assert was == (
                    whole[part] if isinstance(whole, tuple) and part is not None else whole
                )
            for window, copied, items in windows:
                assert window.items is items
                assert items == copied


@examples(200)
@given(
    prefix=st.one_of(KEYS, st.binary(max_size=3), st.sampled_from([b"\xff\xff", b"a\xff", b"\xfe"]))
)
def test_a_prefix_has_the_bounds_of_its_keys(kernel: ModuleType, prefix: bytes) -> None:
    assert kernel.bounds_of(prefix) == kernels.load("python").bounds_of(prefix)


@pytest.mark.parametrize("interval", [1, 16, 1000])
def test_keys_that_share_any_number_of_bytes_come_whole(
    kernel: ModuleType, interval: int, rng: random.Random
) -> None:
    """In either direction, and from any of them on."""
    for _ in range(by_effort(10, 40, 400)):
        most = rng.choice((12, 24, 90))
        keys = {bytes(rng.choices(b"ab", k=rng.randrange(most))) for _ in range(150)}
        keys |= {key + tail for key in list(keys)[::3] for tail in (b"a", b"bb", b"\0" * 9)}
        entries = sorted((key, rank_of(rng.randrange(1, 99), PUT), key[::-1]) for key in keys)
        items = [(key, value) for key, _, value in entries]
        held = Held(kernel, 4000)
        with chosen(kernel):
            held.add_table(1, entries, interval)
            source = kernel.Source(held.view(), held.tables(), NEWEST)
            assert list(iterator_over(source)) == items
            assert list(iterator_over(source, True)) == items[::-1]
            iterator = iterator_over(source)
            for at in rng.choices(range(len(items)), k=30):
                iterator.seek(items[at][0])
                assert give(iterator.prev) == (items[at - 1] if at else None)
