"""Whatever filters there are, or none, or bad ones: the answers are the same. And filters pay."""

from __future__ import annotations

import logging
import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

import lsm
import policies
from filters.families import FAMILIES
from lsm import loaded_filter
from lsm.comparator import BYTEWISE
from lsm.disk import checksum
from lsm.disk.filenames import table_name
from lsm.kernels import TableFile
from lsm.kernels.python.table import Table
from lsm.loaded_filter import LoadedFilter
from lsm.options import LEVELS
from lsm.tables import open_table
from policies import FilterPolicy, LevelPolicies
from policies.config import Choice
from tests.effort import by_effort, spread
from tests.lsm import odd_policies
from tests.lsm.configurations import BUILT_IN, ODD, TINY, Configuration, random_configuration
from tests.lsm.simulated import SimulatedStorage

DIRECTORY = "/db"


@attrs.define
class Place:
    """A directory on a simulated file system, and the one database that is open there."""

    scratch: Path
    storage: SimulatedStorage = attrs.Factory(SimulatedStorage)
    db: Any = None

    def open(self, configuration: Configuration | None = None, **arguments: Any) -> Any:
        """The database, closed before if it was open; with kept options without a configuration."""
        self.close()
        self.storage.make_directory(DIRECTORY)
        arguments |= {"storage": self.storage, "create_if_missing": True}
        if configuration is None:
            self.db = lsm.DB(DIRECTORY, **arguments)
        else:
            self.db = configuration.open(DIRECTORY, self.scratch, **arguments)
        return self.db

    def close(self) -> None:
        if self.db is not None:
            self.db.close()

    def tables(self) -> list[Any]:
        """The filters of all tables, from level 0 down."""
        return [table for level in self.db.filters() for table in level.tables]

    def states(self) -> list[tuple[str, str]]:
        return [(table.policy, table.state) for table in self.tables()]

    def path(self, number: int) -> str:
        return f"{DIRECTORY}/{table_name(number)}"

    def table(self, number: int) -> Table:
        """A table, opened beside the engine."""
        size = self.storage.size(self.path(number))
        return open_table(self.storage, DIRECTORY, TableFile(number, size), BYTEWISE)

    def filter(self, number: int) -> LoadedFilter:
        """A table's filter, opened beside the engine."""
        return loaded_filter.load(self.table(number).reader, paranoid=True)

    def overwrite(self, number: int, change: Callable[[bytearray], None]) -> None:
        """Change the bytes of a table, which must not be open."""
        data = bytearray(self.storage.read(self.path(number)))
        change(data)
        file = self.storage.create(self.path(number))
        file.append(data)
        file.sync()
        file.close()


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    place = Place(tmp_path)
    yield place
    place.close()


@pytest.fixture(autouse=True)
def odd() -> Iterator[None]:
    """Odd policies can be asked for by their names."""
    with odd_policies.registered():
        yield


@pytest.fixture(autouse=True)
def same_database_seed(rng: random.Random, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a run finds the false positives of the run before."""
    monkeypatch.setattr("lsm.opening.secrets.token_bytes", rng.randbytes)


def uniform(name: str, layout: str = "table", **params: Any) -> LevelPolicies:
    return LevelPolicies.uniform(policies.create(name, **params), LEVELS, layout)


def write(db: Any, keys: Any, value: bytes = b"value") -> None:
    """Put the keys, and flush."""
    with db.write_batch() as batch:
        for key in keys:
            batch.put(key, value)
    db.flush()


def counted(db: Any, level: int | None = None, policy: str | None = None) -> dict[str, int]:
    """What was counted at a level for a policy, or in all: what is not zero."""
    total: Counter[str] = Counter()
    for each in db.stats().filters:
        if level in (None, each.level) and policy in (None, each.policy):
            total.update(attrs.asdict(each.counters))
    return {name: count for name, count in total.items() if count}


KEYS = [b"key%03d" % number for number in range(0, 200, 2)]
ABSENT = [b"key%03d" % number for number in range(1, 199, 2)]
"""Between the keys, so that only a filter spares a read."""


# -- One history, many configurations ------------------------------------------------------

WORDS = [b"", b"\x00", b"\xff\xff", b"a" * 150, *(b"key%02d" % number for number in range(60))]
WORDS += [key + b"\x00" for key in WORDS[4:20]]

Operation = tuple[Any, ...]


def random_operations(rng: random.Random, count: int) -> list[Operation]:
    """Something to do: mostly writing and reading, now and then what moves tables around."""
    makers: list[tuple[int, Callable[[int], Operation]]] = [
        (12, lambda at: ("put", rng.choice(WORDS), b"%d" % at * rng.choice((1, 1, 8, 100)))),
        (6, lambda at: ("delete", rng.choice(WORDS))),
        (4, lambda at: ("batch", rng.sample(WORDS, 12), b"%d" % at, rng.random() < 0.3)),
        (10, lambda at: ("get", rng.choice(WORDS))),
        (4, lambda at: ("get_many", rng.sample(WORDS, 10))),
        (4, lambda at: ("iterate", rng.random() < 0.5, *rng.sample(WORDS, 2))),
        (2, lambda at: ("walk", rng.choice(WORDS), rng.choices(("__next__", "prev"), k=8))),
        (1, lambda at: ("snapshot", rng.randrange(3))),
        (3, lambda at: ("look back", rng.randrange(3), rng.sample(WORDS, 5))),
        (1, lambda at: ("forget", rng.randrange(3))),
        (1, lambda at: ("flush",)),
        (1, lambda at: ("compact", *sorted(rng.sample(WORDS, 2)))),
        (1, lambda at: ("wait",)),
        (1, lambda at: ("reopen",)),
    ]
    weights = [weight for weight, _ in makers]
    chosen = rng.choices([maker for _, maker in makers], weights, k=count)
    return [maker(at) for at, maker in enumerate(chosen)]


def history(configuration: Configuration, operations: list[Operation], scratch: Path) -> list[Any]:
    """What each operation answers in a new database."""
    place = Place(scratch)
    db = place.open(configuration)
    snapshots: dict[int, Any] = {}
    answers = []
    for operation in operations:
        if operation == ("reopen",):
            snapshots.clear()
            db = place.open(configuration)
            answers.append(list(db))
        else:
            answers.append(perform(db, operation, snapshots))
    db.wait_until_idle()
    answers.append(list(db))
    assert db.stats().background_error is None
    place.close()
    return answers


def perform(db: Any, operation: Operation, snapshots: dict[int, Any]) -> Any:
    """One operation's answer; None where it has none."""
    match operation:
        case "put", key, value:
            return db.put(key, value)
        case "delete", key:
            return db.delete(key)
        case "batch", keys, value, deletes:
            with db.write_batch() as batch:
                for at, key in enumerate(keys):
                    batch.delete(key) if deletes and at % 2 else batch.put(key, value)
        case "get", key:
            return db.get(key)
        case "get_many", keys:
            return db.get_many(keys)
        case "iterate", reverse, start, stop:
            return list(db.iterator(reverse=reverse, start=start, stop=stop))
        case "walk", key, steps:
            iterator = db.iterator()
            iterator.seek(key)
            return [step_or_end(getattr(iterator, step)) for step in steps]
        case "snapshot", number:
            snapshots[number] = db.snapshot()
        case "look back", number, keys if number in snapshots:
            snapshot = snapshots[number]
            return list(snapshot), snapshot.get_many(keys), [snapshot.get(key) for key in keys]
        case "forget", number:
            snapshots.pop(number, None)
        case ("flush",):
            db.flush()
        case "compact", start, stop:
            db.compact_range(start=start, stop=stop)
        case ("wait",):
            db.wait_until_idle()
    return None


def step_or_end(step: Callable[[], Any]) -> Any:
    try:
        return step()
    except StopIteration:
        return "end"


def check_same(
    expected: list[Any],
    configuration: Configuration,
    operations: list[Operation],
    scratch: Path,
    seed: int,
) -> None:
    """The history under a configuration is the expected one."""
    answers = history(configuration, operations, scratch)
    for at, (operation, answer, right) in enumerate(
        zip([*operations, "all"], answers, expected, strict=True)
    ):
        what = f"LSM_TEST_SEED={seed}, operation {at}, {operation}, {configuration}"
        assert answer == right, what


def test_answers_are_the_same_under_any_configuration(
    rng: random.Random, test_seed: int, tmp_path: Path
) -> None:
    operations = random_operations(rng, 300)
    expected = history(Configuration.of(None), operations, tmp_path)
    for _ in range(by_effort(8, 30, 600)):
        configuration = random_configuration(rng)
        check_same(expected, configuration, operations, tmp_path, test_seed)


def test_answers_are_the_same_under_any_policy(
    rng: random.Random, test_seed: int, tmp_path: Path
) -> None:
    """The built-in ones, those that others wrote well and badly, and none."""
    operations = random_operations(rng, 300)
    expected = history(Configuration.of(policies.NoFilterPolicy()), operations, tmp_path)
    for choice in spread(BUILT_IN + ODD, 8):
        filters = LevelPolicies((Choice(*choice),) * LEVELS)
        configuration = Configuration.of(filters, **TINY)
        check_same(expected, configuration, operations, tmp_path, test_seed)


@pytest.mark.parametrize(
    ("policy", "layout"), BUILT_IN + ODD, ids=lambda each: getattr(each, "name", each)
)
def test_a_deleted_key_never_comes_back(
    policy: FilterPolicy, layout: str, place: Place, rng: random.Random
) -> None:
    filters = LevelPolicies.uniform(policy, LEVELS, layout)
    configuration = Configuration.of(filters, **TINY)
    db = place.open(configuration)
    words = WORDS[4:64]
    for number in range(3):
        write(db, rng.sample(words, 50), b"%d" % number * 20)
        db.wait_until_idle()
    gone = rng.sample(words, 25)
    others = {key: db.get(key) for key in words if key not in gone}
    for key in gone:
        db.delete(key)
    for _ in range(12):
        match rng.randrange(4):
            case 0:
                db.flush()
            case 1:
                db.compact_range(start=rng.choice(words))
            case 2:
                others |= dict.fromkeys(rng.sample(sorted(others), 5), b"new" * 9)
                write(db, [key for key in others if others[key] == b"new" * 9], b"new" * 9)
                db.wait_until_idle()
            case 3:
                db = place.open(configuration)
        assert [db.get(key) for key in gone] == [None] * len(gone)
        assert {key: db.get(key) for key in others} == others
        assert not set(gone) & set(db.iterator(include_value=False))


# -- What becomes of filters ---------------------------------------------------------------


def test_a_policy_that_raises_while_building_leaves_tables_without_a_filter(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    db = place.open(Configuration.of(odd_policies.BuildingRaisesPolicy()))
    write(db, KEYS)
    write(db, KEYS)
    assert place.states() == [("test.raises-while-building", "failed")] * 2
    assert db.stats().filters_failed == 2
    assert caplog.text.count("written without a filter") == 2
    assert "KeyError: 'the builder is broken'" in caplog.text
    assert db.get_many(KEYS) == [b"value"] * len(KEYS)
    assert db.get_many(ABSENT) == [None] * len(ABSENT)
    assert counted(db) == {"failed": len(KEYS) + 2 * len(ABSENT)}


@pytest.mark.parametrize(
    "caches",
    [{}, {"filter_cache_size": 0}, {"table_cache_size": 0}, {"max_open_files": 1}],
    ids=str,
)
def test_a_policy_that_raises_while_probing_is_taken_for_maybe(
    caches: dict[str, int], place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    db = place.open(Configuration.of(odd_policies.ProbingRaisesPolicy(), **caches))
    write(db, KEYS)
    write(db, KEYS)
    assert place.states() == [("test.raises-while-probing", "built")] * 2
    assert db.get_many(KEYS) == [b"value"] * len(KEYS)
    assert [db.get(key) for key in ABSENT] == [None] * len(ABSENT)
    assert counted(db, policy="test.raises-while-probing") == counted(db)
    assert counted(db) == {"failed": len(KEYS) + 2 * len(ABSENT)}
    assert db.might_contain(ABSENT[0])
    assert db.explain(KEYS[0]).found
    assert db.stats().filter_cache.bytes >= 0
    assert caplog.text.count("reading on without its filter") == 2  # once for each table
    assert "ZeroDivisionError: the probe is broken" in caplog.text
    if not caches:
        assert place.states() == [("test.raises-while-probing", "failed")] * 2


def test_explain_and_might_contain_survive_a_policy_that_raises(place: Place) -> None:
    db = place.open(Configuration.of(odd_policies.ProbingRaisesPolicy()))
    write(db, KEYS)
    assert db.might_contain(KEYS[1])
    assert db.explain(KEYS[1]).found
    assert not db.explain(ABSENT[1]).found


def test_a_policy_that_raises_while_opening_is_read_on_without(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    db = place.open(Configuration.of(odd_policies.OpeningRaisesPolicy(building=True)))
    write(db, KEYS)
    assert db.get_many(KEYS + ABSENT) == [b"value"] * len(KEYS) + [None] * len(ABSENT)
    assert place.states() == [("test.raises-while-opening", "failed")]
    assert counted(db) == {"failed": len(KEYS + ABSENT)}
    assert caplog.text.count("the library is gone") == 1


@pytest.mark.parametrize(
    ("policy", "state", "reason"),
    [
        (odd_policies.LosingPolicy(), "failed", "misses 34 of its 100 keys"),
        (odd_policies.WrongTypesPolicy("filter"), "failed", "finished with str"),
        (odd_policies.WrongTypesPolicy("answers"), "failed", "answered many keys with str"),
        (odd_policies.WrongTypesPolicy("reader"), "failed", "NoneType"),
        (odd_policies.DecliningPolicy(), "declined", ""),
    ],
    ids=lambda each: each.params().get("what", each.name) if hasattr(each, "name") else None,
)
def test_a_filter_that_is_no_good_is_dropped_before_it_is_written(
    policy: FilterPolicy,
    state: str,
    reason: str,
    place: Place,
    caplog: pytest.LogCaptureFixture,
) -> None:
    db = place.open(Configuration.of(policy))
    write(db, KEYS)
    (table,) = place.tables()
    assert (table.policy, table.state, table.bytes) == (policy.name, state, 0)
    assert not place.table(table.file_number).reader.filter_entries()
    assert reason in caplog.text
    assert db.stats().filters_failed == (state == "failed")
    assert db.get_many(KEYS + ABSENT) == [b"value"] * len(KEYS) + [None] * len(ABSENT)
    assert counted(db) == {state: len(KEYS + ABSENT)}


def test_any_true_answer_is_maybe(place: Place) -> None:
    db = place.open(Configuration.of(odd_policies.WrongTypesPolicy("truth")))
    write(db, KEYS)
    assert db.get_many(KEYS) == [b"value"] * len(KEYS)
    assert counted(db) == {"true_positives": len(KEYS)}


def test_a_policy_that_gets_ready_is_used_from_then_on(place: Place) -> None:
    db = place.open(Configuration.of(odd_policies.SlowStartPolicy()))
    for _ in range(3):
        write(db, KEYS)
    assert [state for _, state in place.states()] == ["built", "failed", "failed"]
    db.compact_range()
    assert place.states() == [("test.slow-start", "built")]


def test_a_third_partys_good_filter_is_never_wrong(place: Place) -> None:
    db = place.open(Configuration.of(odd_policies.SetPolicy()))
    write(db, KEYS)
    assert db.get_many(KEYS) == [b"value"] * len(KEYS)
    assert db.get_many(ABSENT) == [None] * len(ABSENT)
    assert counted(db) == {"true_positives": len(KEYS), "skipped": len(ABSENT)}
    assert not any(map(db.might_contain, ABSENT))
    (table,) = place.tables()
    assert (table.num_keys, table.expected_fpr) == (len(KEYS), 0.0)


def test_always_maybe_costs_a_read_for_each_absent_key(place: Place) -> None:
    db = place.open(Configuration.of(odd_policies.MaybePolicy()))
    write(db, KEYS)
    assert db.get_many(KEYS + ABSENT) == [b"value"] * len(KEYS) + [None] * len(ABSENT)
    assert counted(db) == {"true_positives": len(KEYS), "false_positives": len(ABSENT)}


def test_a_policy_that_was_uninstalled_is_unknown_and_read_on_without(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    db = place.open(Configuration.of(odd_policies.SetPolicy()))
    write(db, KEYS)
    db.put(KEYS[0], b"newer")
    place.close()
    odd_policies.unregister(odd_policies.SetPolicy)
    with pytest.raises(policies.PolicyConfigError, match=r"lsm-options\.toml.*test\.set.*config="):
        place.open()
    db = place.open(filter_policy=policies.BlockedPolicy())
    assert db.get(KEYS[0]) == b"newer"
    assert db.get_many(KEYS[1:]) == [b"value"] * (len(KEYS) - 1)
    assert db.get_many(ABSENT) == [None] * len(ABSENT)
    (old,) = (table for table in place.tables() if table.policy == "test.set")
    assert (old.state, old.bytes) == ("unknown", 0)
    assert counted(db, policy="test.set") == {"unknown": len(KEYS) - 1 + len(ABSENT)}
    warnings = [each for each in caplog.records if each.levelno == logging.WARNING]
    assert len(warnings) == 1
    assert place.path(old.file_number) in warnings[0].getMessage()
    assert "'test.set'" in warnings[0].getMessage()
    db.compact_range()
    assert place.states() == [("blocked", "built")]
    assert db.get_many(KEYS[1:]) == [b"value"] * (len(KEYS) - 1)


def test_an_unknown_filter_is_no_damage(place: Place) -> None:
    db = place.open(Configuration.of(odd_policies.SetPolicy()))
    write(db, KEYS)
    place.close()
    odd_policies.unregister(odd_policies.SetPolicy)
    db = place.open(filter_policy=None, paranoid_checks=True)
    assert db.get_many(KEYS) == [b"value"] * len(KEYS)
    assert place.states() == [("test.set", "unknown")]


# -- Damage --------------------------------------------------------------------------------


def damaged(place: Place, policy: str, layout: str, where: float | bytes, sealed: bool) -> Any:
    """The description of a table whose filter has one bit flipped; it is closed then.

    Where is a share of its bytes, or what stands there. ``sealed`` mends the checksum of the block,
    which stands for those within it: what is found then is what cannot mean anything.
    """
    db = place.open(Configuration.of(uniform(policy, layout)))
    write(db, KEYS, b"value" * 50)
    (before,) = place.tables()
    (handle,) = place.table(before.file_number).reader.filter_entries().values()
    place.close()

    def flip(data: bytearray) -> None:
        end = handle.offset + handle.size
        if isinstance(where, bytes):
            data[data.index(where, handle.offset, end)] ^= 0x10
        else:
            data[handle.offset + int((handle.size - 1) * where)] ^= 0x10
        if sealed:
            body = bytes(data[handle.offset : end + 1])
            crc = checksum.mask(checksum.crc32c(body))
            data[end + 1 : end + 5] = crc.to_bytes(4, "little")

    place.overwrite(before.file_number, flip)
    return before


DAMAGES = [
    *(
        (policy.name, layout, where, False)
        for policy, layout in BUILT_IN
        if policy.name != "none" and policy.params() == policies.create(policy.name).params()
        for where in (0, 0.5, 1)
    ),
    ("blocked", "table", b"LSMF", True),
    ("blocked", "table", b"LSFB", True),
    ("leveldb", "block", 0.999, True),
]


@pytest.mark.parametrize(("policy", "layout", "where", "sealed"), DAMAGES)
def test_a_damaged_filter_costs_reads_and_no_answers(
    policy: str,
    layout: str,
    where: float | bytes,
    sealed: bool,
    place: Place,
    caplog: pytest.LogCaptureFixture,
) -> None:
    before = damaged(place, policy, layout, where, sealed)
    db = place.open()
    assert db.get_many(KEYS) == [b"value" * 50] * len(KEYS)
    assert db.get_many(ABSENT) == [None] * len(ABSENT)
    (table,) = place.tables()
    assert (table.policy, table.state) == (policy, "corrupt")
    assert counted(db) == {"corrupt": len(KEYS + ABSENT)}
    assert caplog.text.count("reading on without its filter") == 1
    assert place.path(before.file_number) in caplog.text
    assert all(map(db.might_contain, KEYS + ABSENT))
    write(db, [KEYS[0]])
    db.compact_range()
    (table,) = place.tables()
    assert (table.policy, table.state) == (policy, "built")


@pytest.mark.parametrize(("policy", "layout", "where", "sealed"), DAMAGES[-4:])
def test_a_damaged_filter_is_an_error_for_the_paranoid(
    policy: str, layout: str, where: float | bytes, sealed: bool, place: Place
) -> None:
    before = damaged(place, policy, layout, where, sealed)
    db = place.open(paranoid_checks=True)
    for read in (db.get, db.might_contain, db.explain):
        with pytest.raises(lsm.CorruptionError, match=place.path(before.file_number)):
            read(KEYS[3])


# -- Tombstones ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "layout"), BUILT_IN[1:], ids=lambda each: getattr(each, "name", each)
)
def test_a_tombstones_key_is_in_its_tables_filter(
    policy: FilterPolicy, layout: str, place: Place
) -> None:
    db = place.open(Configuration.of(LevelPolicies.uniform(policy, LEVELS, layout)))
    write(db, KEYS)
    for key in KEYS:
        db.delete(key)
    db.flush()
    assert [db.get(key) for key in KEYS] == [None] * len(KEYS)
    place.open()
    assert place.db.get_many(KEYS) == [None] * len(KEYS)
    upper, lower = place.tables()
    assert counted(place.db) == counted(place.db, 1) == {"true_positives": len(KEYS)}
    assert (upper.written_for_level, lower.written_for_level) == (1, 2)
    loaded, table = place.filter(upper.file_number), place.table(upper.file_number)
    for key in KEYS:
        reader = loaded.reader
        if loaded.windows is not None:
            reader = loaded.windows.at(table.handles[table.block_for(key, 0)].offset)
        assert reader is not None
        assert reader.might_contain(key)
        assert "tombstone" in str(place.db.explain(key))


def test_a_tombstone_goes_when_nothing_is_left_beneath_it(place: Place) -> None:
    db = place.open(Configuration.of(policies.BlockedPolicy()))
    write(db, KEYS)
    for key in KEYS[1:-1]:
        db.delete(key)
    db.compact_range()
    (table,) = place.tables()
    assert table.num_keys == 2


def test_a_tombstone_stays_where_a_deeper_table_has_keys_around_it(place: Place) -> None:
    db = place.open(Configuration.of(policies.BlockedPolicy(), level0_compact_files=2))
    write(db, KEYS)  # on level 2
    write(db, KEYS)  # on level 1
    db.delete(KEYS[5])
    db.put(KEYS[6], b"new")
    db.flush()
    db.delete(KEYS[5])
    db.flush()
    db.wait_until_idle()  # two tables of level 0 have gone to level 1
    assert [len(level.tables) for level in db.filters()[:3]] == [0, 1, 1]
    assert "tombstone" in str(db.explain(KEYS[5]))
    assert db.get(KEYS[5]) is None


# -- Which level gets what -----------------------------------------------------------------

ONE_EACH = LevelPolicies(
    (
        Choice(policies.BlockedPolicy(bits_per_key=4), "table"),
        Choice(policies.ClassicPolicy(), "table"),
        Choice(policies.LevelDBPolicy(), "block"),
        Choice(policies.CuckooPolicy(), "table"),
        Choice(policies.BinaryFusePolicy(), "table"),
        Choice(policies.RocksDBPolicy(), "table"),
        Choice(policies.NoFilterPolicy(), "table"),
    )
)


def test_a_flush_asks_the_level_it_goes_to(place: Place) -> None:
    db = place.open(Configuration.of(ONE_EACH))
    for level, policy in ((2, "leveldb"), (1, "classic"), (0, "blocked")):
        write(db, KEYS)
        table = db.filters()[level].tables[0]
        assert (table.policy, table.written_for_level) == (policy, level)
        assert (table.params, table.layout) == (ONE_EACH[level].params(), ONE_EACH.layout(level))
    assert [level.drifted for level in db.filters()] == [()] * LEVELS


def test_a_compaction_asks_the_level_it_goes_to(place: Place, rng: random.Random) -> None:
    db = place.open(Configuration.of(ONE_EACH, **TINY | {"write_buffer_size": 100_000}))
    seen: set[tuple[int | None, str]] = set()
    for _ in range(12):
        for _ in range(3):
            write(db, rng.sample(KEYS, 40), rng.randbytes(300))
        db.wait_until_idle()
        for level in db.filters():
            for table in level.tables:
                assert table.written_for_level is not None
                chosen = ONE_EACH[table.written_for_level]
                assert (table.policy, table.params) == (chosen.name, chosen.params())
                assert (table in level.drifted) == (table.written_for_level != level.level)
                seen.add((table.written_for_level, table.policy))
    assert {(level, ONE_EACH[level].name) for level in range(1, 6)} <= seen


def test_a_table_that_moves_keeps_its_filter(place: Place) -> None:
    tiny = TINY | {"write_buffer_size": 1 << 20, "compression": "none", "block_size": 4096}
    db = place.open(Configuration.of(ONE_EACH, **tiny))
    write(db, KEYS, b"value" * 26)  # as much as level 5 holds, and more than all above it
    db.wait_until_idle()
    stats = db.stats()
    assert (stats.compactions, stats.moves) == (0, 3)
    (deepest,) = (level for level in db.filters() if level.tables)
    assert deepest.level == 5
    (table,) = deepest.tables
    assert (table.policy, table.layout, table.written_for_level) == ("leveldb", "block", 2)
    assert deepest.drifted == (table,)
    db.get_many(ABSENT)
    assert db.stats().levels[deepest.level].skipped > len(ABSENT) * 0.9
    assert set(counted(db, deepest.level, "leveldb")) <= {"skipped", "false_positives"}
    assert counted(db) == counted(db, deepest.level, "leveldb")


def test_no_policy_writes_no_filter(place: Place) -> None:
    db = place.open(filter_policy=None)
    write(db, KEYS)
    (table,) = place.tables()
    assert (table.policy, table.state, table.bytes) == ("none", "none", 0)
    assert not place.table(table.file_number).reader.filter_entries()
    assert db.get_many(KEYS + ABSENT) == [b"value"] * len(KEYS) + [None] * len(ABSENT)
    assert counted(db) == {"none": len(KEYS + ABSENT)}
    assert [level.drifted for level in db.filters()] == [()] * LEVELS


def test_tables_written_before_a_change_drift_and_still_answer(place: Place) -> None:
    db = place.open(Configuration.of(policies.BlockedPolicy()))
    write(db, KEYS)
    db = place.open(Configuration.of(policies.CuckooPolicy()))
    (old,) = place.tables()
    (level,) = (level for level in db.filters() if level.tables)
    assert (level.configured, level.params) == ("cuckoo", {"fingerprint_bits": 12})
    assert level.drifted == (old,)
    assert (old.policy, old.params, old.state) == ("blocked", {"bits_per_key": 10}, "built")
    db.get_many(KEYS + ABSENT)
    told = counted(db, level.level, "blocked")
    assert told["true_positives"] == len(KEYS)
    assert told["skipped"] > len(ABSENT) * 0.9
    assert counted(db, policy="cuckoo") == {}
    write(db, KEYS)
    assert place.states() == [("cuckoo", "built"), ("blocked", "built")]
    assert sum(len(level.drifted) for level in db.filters()) == 1
    db.get_many(KEYS)
    assert counted(db, policy="cuckoo") == {"true_positives": len(KEYS)}
    db.compact_range()
    assert place.states() == [("cuckoo", "built")]
    assert not any(level.drifted for level in db.filters())


def test_other_parameters_or_another_layout_are_drift_too(place: Place) -> None:
    db = place.open(Configuration.of(uniform("leveldb", "block")))
    write(db, KEYS)
    for filters, drifted in (
        (uniform("leveldb", "block"), 0),
        (uniform("leveldb", "table"), 1),
        (uniform("leveldb", "block", bits_per_key=11), 1),
    ):
        db = place.open(Configuration.of(filters))
        assert sum(len(level.drifted) for level in db.filters()) == drifted


def test_optimizing_for_hits_leaves_the_last_level_without_filters(place: Place) -> None:
    hits = attrs.evolve(uniform("blocked"), optimize_filters_for_hits=True)
    db = place.open(Configuration.of(hits))
    write(db, KEYS)
    write(db, KEYS)
    (above,), (last,) = (level.tables for level in db.filters()[1:3])
    assert (above.policy, above.state) == ("blocked", "built")
    assert (last.policy, last.state, last.bytes) == ("none", "none", 0)
    db.get_many(ABSENT)
    assert counted(db, 2) == {"none": len(ABSENT)}
    assert counted(db, 1)["skipped"] > 0.9 * len(ABSENT)
    write(db, [b"apart", b"from all"])
    assert place.states()[-1] == ("none", "none")  # nothing lies below this one
    db.compact_range()
    assert set(place.states()) == {("none", "none")}
    assert db.get_many(KEYS) == [b"value"] * len(KEYS)


def test_without_that_the_last_level_has_filters(place: Place) -> None:
    db = place.open(Configuration.of(uniform("blocked")))
    write(db, KEYS)
    db.compact_range()
    assert place.states() == [("blocked", "built")]


def test_windows_of_blocks_answer_for_their_blocks(place: Place) -> None:
    """Also where a block is larger than a window, so that some windows have no filter."""
    sizes = (10, 700, 5000, 30)
    db = place.open(Configuration.of(uniform("leveldb", "block"), compression="none"))
    with db.write_batch() as batch:
        for at, key in enumerate(KEYS):
            batch.put(key, bytes(sizes[at % 4]))
    db.flush()
    (table,) = place.tables()
    assert (table.policy, table.layout, table.num_keys) == ("leveldb", "block", len(KEYS))
    (entry,) = place.table(table.file_number).reader.filter_entries()
    assert entry == "filter.leveldb.BuiltinBloomFilter2"
    assert [len(value) for value in db.get_many(KEYS)] == [sizes[at % 4] for at in range(len(KEYS))]
    assert db.get_many(ABSENT) == [None] * len(ABSENT)
    told = counted(db)
    assert told["true_positives"] == len(KEYS)
    assert told["skipped"] + told.get("false_positives", 0) == len(ABSENT)
    assert told["skipped"] > 0.9 * len(ABSENT)


# -- What is counted -----------------------------------------------------------------------


@pytest.mark.parametrize("look", ["iterators", "questions", "maintenance"])
def test_only_lookups_count(look: str, place: Place) -> None:
    db = place.open(Configuration.of(policies.BlockedPolicy()))
    write(db, KEYS)
    write(db, KEYS[::2])
    snapshot = db.snapshot()
    if look == "iterators":
        list(db.iterator(start=KEYS[3], stop=ABSENT[-3]))
        list(snapshot.iterator(reverse=True))
        list(db.prefixed_db(b"key"))
        for iterator in (db.iterator(), snapshot.raw_iterator()):
            for key in KEYS + ABSENT:
                iterator.seek(key)
    elif look == "questions":
        for key in KEYS + ABSENT:
            db.explain(key)
            db.might_contain(key)
        db.filters()
        db.approximate_size(KEYS[0], KEYS[-1])
        db.get_property(b"leveldb.sstables")
    else:
        db.put(KEYS[5], b"again")
        db.flush()
        db.compact_range()
    assert db.stats().filters == ()
    assert db.get(KEYS[0]) == b"value"
    assert counted(db) == {"true_positives": 1}


def test_a_key_outside_a_tables_bounds_asks_no_filter(place: Place) -> None:
    db = place.open(Configuration.of(policies.BlockedPolicy()))
    write(db, KEYS)
    assert db.get_many([b"a", b"key", b"key199", b"z"]) == [None] * 4
    assert db.stats().filters == ()


def test_a_version_that_is_too_new_is_no_false_positive(place: Place) -> None:
    """Also where the reader is sent to a block behind all versions of the key."""
    db = place.open(Configuration.of(odd_policies.SetPolicy(), block_size=64))
    db.put(b"a", b"first")
    before = db.snapshot()
    held = []
    for number in range(8):
        db.put(b"k", b"%d" % number * 60)
        held.append(db.snapshot())
    write(db, [b"l", b"m", b"n"])
    assert before.get(b"k") is None
    assert before.get_many([b"l", b"n"]) == [None, None]
    assert [snapshot.get(b"k") for snapshot in held] == [b"%d" % n * 60 for n in range(8)]
    assert counted(db) == {"true_positives": 11}


def test_what_is_cached_of_a_table_goes_with_it(place: Place) -> None:
    """Else each lookup would leave another mapping of the file."""
    db = place.open(Configuration.of(policies.BlockedPolicy(), table_cache_size=0))
    write(db, KEYS)
    for _ in range(3):
        db.get_many(KEYS + ABSENT)
        assert list(db)
    stats = db.stats()
    assert stats.table_cache.items == 0
    assert stats.filter_cache.items <= 1
    assert stats.block_cache.items <= 1


def test_unequal_bytes_that_are_one_key_ask_no_filter(place: Place) -> None:
    order: dict[str, Any] = {
        "comparator": lambda one, other: (
            (one.lower() > other.lower()) - (one.lower() < other.lower())
        ),
        "comparator_name": b"folded",
    }
    db = place.open(Configuration.of(policies.BlockedPolicy()), **order)
    write(db, KEYS)
    assert db.get_many([key.upper() for key in KEYS]) == [b"value"] * len(KEYS)
    assert counted(db) == {"none": len(KEYS)}
    db = place.open(filters_compare_bytes=True, **order)
    assert db.get_many(KEYS + ABSENT) == [b"value"] * len(KEYS) + [None] * len(ABSENT)
    assert counted(db)["true_positives"] == len(KEYS)
    assert counted(db)["skipped"] > 0.9 * len(ABSENT)


# -- Filters pay ---------------------------------------------------------------------------

RUNS = {5: 8000, 4: 4000, 3: 2000, 2: 1000, 1: 500}
"""How many keys each level gets, the deepest one first."""

KINDS = [
    (family.name, layout)
    for family in FAMILIES.values()
    if family.policy
    for layout in sorted(family.layouts, reverse=True)
]


def five_levels(place: Place, filters: LevelPolicies, rng: random.Random) -> Any:
    """A database with one table on each of the levels 1 to 5, all with the same bounds.

    A level holds 20 KiB, the next one twice as much: a run sinks until it is small enough to stay.
    """
    configuration = Configuration.of(
        filters, level_size_base=20 << 10, level_size_ratio=2, compression="none"
    )
    db = place.open(configuration)
    for count in RUNS.values():
        keys = [bytes(8), *(rng.randbytes(8) for _ in range(count - 2)), b"\xff" * 10]
        write(db, keys, b"0123456789")
        db.wait_until_idle()
    assert [len(level.tables) for level in db.filters()] == [0, 1, 1, 1, 1, 1, 0]
    return db


@pytest.mark.parametrize(("name", "layout"), KINDS)
def test_filters_pay(name: str, layout: str, place: Place, rng: random.Random) -> None:
    """As many absent keys are read for as the filters say of themselves, counted, not timed."""
    db = five_levels(place, uniform(name, layout), rng)
    # As many as it takes for some hundreds to pass, where that is not too many.
    passing = 400 / sum(table.expected_fpr for table in place.tables())
    probes = max(50_000, int(passing)) if passing < 400_000 else 50_000
    for _ in range(probes):
        assert db.get(rng.randbytes(9)) is None
    told = counted(db, policy=name)
    assert told == counted(db)
    assert set(told) == {"skipped", "false_positives"}
    assert told["skipped"] + told["false_positives"] == probes * len(RUNS)
    for level, count in RUNS.items():
        (table,) = db.filters()[level].tables
        assert table.num_keys == count
        assert sum(counted(db, level).values()) == probes
    read = told["false_positives"] / probes
    expected = sum(table.expected_fpr for table in place.tables())
    assert read <= 1.15 * expected
    if name in ("classic", "blocked", "leveldb", "rocksdb"):
        assert read <= 0.06
    measured = [level.measured_fpr for level in db.stats().levels[1:6]]
    assert sum(measured) == pytest.approx(read)
