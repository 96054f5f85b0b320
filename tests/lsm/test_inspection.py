"""Looking into a database: why a key is found, what tables carry, LevelDB's own properties."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

import lsm
import policies
from lsm import loaded_filter
from lsm.kernels.python.tally import Tally
from lsm.options import LEVELS
from lsm.stats import Counters
from tests.lsm import odd_policies
from tests.lsm.refilterable import AFTER, STILL, made
from tests.lsm.simulated import SimulatedStorage


@pytest.fixture
def db() -> Iterator[lsm.DB]:
    """A database with exact enough filters and nothing in it."""
    policy = policies.BlockedPolicy(bits_per_key=16)
    storage = SimulatedStorage()
    with lsm.DB("db", create_if_missing=True, storage=storage, filter_policy=policy) as db:
        yield db


def steps(db: lsm.DB, key: bytes) -> list[str]:
    return [str(step) for step in db.explain(key).steps]


def test_memory_answers_first(db: lsm.DB) -> None:
    db.put(b"a", b"1")
    assert steps(db, b"a") == ["memtable: value of sequence number 1"]
    db.delete(b"a")
    assert steps(db, b"a") == ["memtable: tombstone of sequence number 2"]
    assert not db.explain(b"a").found
    assert steps(db, b"b") == [
        "memtable: has no version of it",
        "tables: none has the key between its bounds",
    ]
    assert str(db.explain(b"b")).splitlines()[0] == "b'b': not found"


def test_tables_answer_from_the_top_down(db: lsm.DB) -> None:
    for key in (b"a", b"m", b"z"):
        db.put(key, b"old")
    db.compact_range()
    db.put(b"a", b"new")
    db.delete(b"m")
    db.put(b"z", b"new")
    db.flush()
    upper, lower = (table for level in db.filters() for table in level.tables)
    levels = [level.level for level in db.filters() for _ in level.tables]
    found = db.explain(b"m")
    assert not found.found
    assert [str(step) for step in found.steps] == [
        "memtable: has no version of it",
        f"level {levels[0]}, table {upper.file_number}: "
        "filter blocked says maybe, block 0: tombstone of sequence number 5",
    ]
    assert db.explain(b"a").found
    absent = db.explain(b"k")
    assert [step.outcome for step in absent.steps[1:]] == ["filter blocked says no"] * 2
    assert [(step.level, step.file_number) for step in absent.steps[1:]] == [
        (levels[0], upper.file_number),
        (levels[1], lower.file_number),
    ]
    assert not db.might_contain(b"k")
    assert db.might_contain(b"m"), "a filter does not tell a tombstone"


def test_explaining_is_not_counted(db: lsm.DB) -> None:
    db.put(b"a", b"1")
    db.put(b"z", b"1")
    db.flush()
    before = db.stats().filters
    db.explain(b"a")
    db.might_contain(b"b")
    assert db.stats().filters == before


def test_lookups_are_counted(db: lsm.DB) -> None:
    for number in range(0, 200, 2):
        db.put(b"%03d" % number, b"")
    db.flush()
    for number in range(199):
        db.get(b"%03d" % number)
    (counts,) = db.stats().filters
    assert (counts.policy, counts.counters.true_positives) == ("blocked", 100)
    assert counts.counters.skipped + counts.counters.false_positives == 99
    assert counts.counters.skipped > 90
    level = db.stats().levels[counts.level]
    assert (level.tables, level.skipped) == (1, counts.counters.skipped)
    assert level.measured_fpr == counts.counters.measured_fpr
    assert level.bits_per_key == pytest.approx(db.filters()[counts.level].tables[0].bits_per_key)


def test_counters_tell_shares() -> None:
    counters = Counters(skipped=90, false_positives=10, true_positives=5, none=2)
    assert counters.measured_fpr == 0.1
    assert counters.blocks_read == 17
    assert Counters().measured_fpr is None


def test_a_tally_counts_by_state() -> None:
    tally = Tally()
    for state in ("none", "unknown", "corrupt", "failed", "declined", "failed"):
        tally.count(state)
    tally.skipped += 3
    assert Counters.of(tally) == Counters(
        skipped=3, none=1, unknown=1, corrupt=1, failed=2, declined=1
    )


def test_every_level_says_what_it_uses_and_what_it_carries(tmp_path: Path) -> None:
    path, blocked = tmp_path / "db", policies.BlockedPolicy()
    with lsm.DB(path, create_if_missing=True, filter_policy=blocked) as db:
        for number in range(50):
            db.put(b"%02d" % number, b"")
        db.flush()
        found = db.filters()
        assert [level.level for level in found] == list(range(LEVELS))
        assert {(level.configured, level.layout) for level in found} == {("blocked", "table")}
        ((level, table),) = [(level, table) for level in found for table in level.tables]
        assert (table.state, table.policy, table.num_keys, table.num_entries) == (
            ("built", "blocked", 50, 50)
        )
        assert table.params == level.params == blocked.params()
        assert not level.drifted
    with lsm.DB(path, filter_policy=policies.ClassicPolicy()) as db:
        ((level, table),) = [(level, table) for level in db.filters() for table in level.tables]
        assert (level.configured, table.policy) == ("classic", "blocked")
        assert level.drifted == (table,)


def test_statistics_are_shown_and_are_data(db: lsm.DB) -> None:
    for number in range(100):
        db.put(b"%03d" % number, b"x" * 10)
    memory = db.stats()
    assert memory.memtable_bytes > 1300
    assert memory.user_bytes_written == 1300
    assert memory.log_bytes_written > 1300
    assert memory.write_amplification == 0
    db.flush()
    db.compact_range()
    found = db.stats()
    assert found.flushes == 1
    assert found.memtable_bytes == 0
    assert found.table_bytes_written >= sum(level.bytes for level in found.levels) > 0
    assert found.as_dict()["write_amplification"] == found.write_amplification
    assert memory.flush_throughput is None
    assert memory.as_dict()["flush_throughput"] is None
    assert found.flush_throughput is not None
    assert found.flush_throughput.read == memory.memtable_bytes / found.flush_seconds
    assert found.flush_throughput.written == found.table_bytes_written / found.flush_seconds
    assert found.as_dict()["flush_throughput"] == attrs.asdict(found.flush_throughput)
    assert (found.compaction_throughput is None) == (found.compactions == 0)
    assert (found.running_flushes, found.running_compactions) == (0, 0)
    assert (found.slowed_writes, found.stopped_writes) == (0, 0)
    assert json.loads(json.dumps(found.as_dict()))["longest_stopped_seconds"] == 0
    text = str(found)
    assert "0 jobs are running" in text
    assert "0 writes slowed for 0.0 s, the longest for 0.000 s; 0 stopped" in text
    assert text.splitlines()[0] == f"db: 1 tables, {lsm.KERNEL} kernel"
    assert "1 flushes in" in text
    assert "filter cache: " in text
    assert found.background_error is None


def test_what_levels_carry_is_what_their_tables_do(tmp_path: Path) -> None:
    made(tmp_path / "db")
    with lsm.DB(tmp_path / "db", **STILL | {"filter_policy": AFTER}) as db:
        db.refilter(levels=[1], max_bytes=1)
        carried = db.stats().carried
        expected = {
            (level.level, policy): [each for each in level.tables if each.policy == policy]
            for level in db.filters()
            for policy in {table.policy for table in level.tables}
        }
        assert [(each.level, each.policy) for each in carried] == sorted(expected)
        assert len(carried) == 4, "level 1 has both policies"
        for each in carried:
            tables = expected[each.level, each.policy]
            assert each.tables == len(tables)
            assert each.bytes == sum(table.bytes for table in tables)
            assert each.num_keys == sum(table.num_keys or 0 for table in tables)
            rates = [table.expected_fpr or 0 for table in tables]
            assert each.expected_fpr == pytest.approx(sum(rates) / len(rates))


def test_tables_are_looked_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many there are, and however few of them fit into memory."""
    read: list[str] = []
    real = loaded_filter.load

    def load(table: Any, **options: Any) -> Any:
        read.append(table.name)
        return real(table, **options)

    monkeypatch.setattr(loaded_filter, "load", load)
    made(tmp_path / "db")
    little = STILL | {"filter_policy": AFTER, "filter_cache_size": 0, "table_cache_size": 4096}
    with lsm.DB(tmp_path / "db", **little) as db:
        before = db.stats()
        read.clear()
        after = db.stats()
        assert (after.levels, after.carried) == (before.levels, before.carried)
        assert after.table_cache == before.table_cache
        assert not read
        db.put(b"new", b"")
        db.flush()
        assert db.stats().carried != before.carried
        assert len(set(read)) == 1, "the new one"


def test_a_filter_that_fails_is_told_of_though_it_was_known(tmp_path: Path) -> None:
    policy = odd_policies.ProbingRaisesPolicy()
    with (
        odd_policies.registered(),
        lsm.DB(tmp_path / "db", create_if_missing=True, filter_policy=policy) as db,
    ):
        for number in range(100):
            db.put(b"%03d" % number, b"")
        db.flush()
        (built,) = db.stats().carried
        assert built.bytes
        db.get(b"050x")
        (failed,) = db.stats().carried
        assert (failed.tables, failed.bytes) == (1, 0)


def test_snapshots_and_iterators_are_counted_while_they_are_there(db: lsm.DB) -> None:
    def counted() -> tuple[int, int]:
        stats = db.stats()
        return stats.snapshots, stats.iterators

    assert counted() == (0, 0)
    with db.snapshot():
        walk = db.iterator()
        assert counted() == (1, 1)
    del walk
    assert counted() == (0, 0)


PROPERTIES = [
    (b"leveldb.num-files-at-level0", b"0"),
    (b"leveldb.num-files-at-level6", b"0"),
    (b"leveldb.num-files-at-level7", None),
    (b"leveldb.num-files-at-level", None),
    (b"leveldb.num-files-at-level-1", None),
    (b"leveldb.num-files-at-level00", b"0"),
    (b"leveldb.nonsense", None),
    (b"leveldb.", None),
    (b"", None),
    (b"rocksdb.stats", None),
    (b"leveldb.stats ", None),
]


@pytest.mark.parametrize(("name", "value"), PROPERTIES)
def test_properties_are_leveldbs(name: bytes, value: bytes | None, db: lsm.DB) -> None:
    assert db.get_property(name) == value


@pytest.fixture
def twins(tmp_path: Path) -> Iterator[tuple[Any, lsm.DB]]:
    """The same entries in the same tables of LevelDB and of this engine."""
    plyvel = pytest.importorskip("plyvel")
    options = {"create_if_missing": True, "compression": None}
    theirs = plyvel.DB(str(tmp_path / "theirs"), **options)
    ours = lsm.DB(tmp_path / "ours", **options)
    for db in (theirs, ours):
        for number in range(500):
            db.put(b"key%04d" % number, b"%d" % number * 30)
        db.delete(b"zzz")
        db.compact_range(start=b"", stop=b"\xff" * 3)
    yield theirs, ours
    theirs.close()
    ours.close()


def test_the_tables_are_listed_as_leveldb_does(twins: tuple[Any, lsm.DB]) -> None:
    theirs, ours = (db.get_property(b"leveldb.sstables").decode() for db in twins)
    line = re.compile(r"^ \d+:\d+\[(.*)\]$")

    def bare(text: str) -> list[str]:
        """Without numbers and sizes, in which a table of ours has its properties too."""
        lines = [re.sub(r"^ \d+:\d+", " ", each) for each in text.splitlines()]
        return [each for each in lines if not each.startswith("--- ")]

    assert bare(ours) == bare(theirs)
    assert [each for each in ours.splitlines() if each.startswith("--- ")] == [
        f"--- level {level} ---" for level in range(LEVELS)
    ]
    assert all(line.match(each) for each in ours.splitlines() if not each.startswith("---"))


def test_unprintable_keys_are_listed_as_leveldb_does(twins: tuple[Any, lsm.DB]) -> None:
    shown = []
    for db in twins:
        for key in (bytes(range(128)), b"zzzz" + bytes(range(128, 256))):
            db.put(key, b"")
        db.compact_range(start=b"", stop=b"\xff" * 3)
        listed = db.get_property(b"leveldb.sstables").decode()
        shown.append(re.findall(r"\['(.*)' @ .* \.\. '(.*)' @", listed, re.DOTALL))
    assert shown[0] == shown[1] != []


def test_the_statistics_have_leveldbs_form(twins: tuple[Any, lsm.DB]) -> None:
    theirs, ours = (db.get_property(b"leveldb.stats").decode() for db in twins)
    assert ours.splitlines()[:3] == theirs.splitlines()[:3]
    assert ours.endswith("\n")
    for line in ours.splitlines()[3:]:
        assert re.fullmatch(r" {2}\d {8}\d {8}\d {9}\d {8}\d {9}\d", line)
        assert len(line) == len(theirs.splitlines()[3])
        fields = line.split()
        assert int(fields[1]) == len(twins[1].filters()[int(fields[0])].tables)


def test_sizes_are_leveldbs_up_to_a_block(twins: tuple[Any, lsm.DB]) -> None:
    theirs, ours = twins
    bounds = [b"", b"key0000", b"key0123", b"key0250", b"key0400", b"key0499", b"z", b"\xff" * 4]
    ranges = [(low, high) for low in bounds for high in bounds]
    expected, found = theirs.approximate_sizes(*ranges), ours.approximate_sizes(*ranges)
    for (low, high), one, other in zip(ranges, expected, found, strict=True):
        if low >= high:
            assert one == other == 0
        elif high <= b"key0499":
            assert one == other, (low, high)
        else:
            assert abs(one - other) < 3000, "filter and properties lie behind the last key"
    assert ours.approximate_size(b"key0123", b"key0250") == found[bounds.index(b"key0123") * 8 + 3]


def test_memory_use_grows_and_falls(db: lsm.DB) -> None:
    def used() -> int:
        return int(db.get_property(b"leveldb.approximate-memory-usage") or b"-1")

    empty = used()
    db.put(b"a", b"x" * 100_000)
    assert used() >= empty + 100_000
    db.flush()
    assert used() < empty + 10_000
    db.get(b"a")
    assert used() > empty + 10_000, "the block is in the cache"
