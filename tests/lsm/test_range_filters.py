"""Filters that are asked for ranges: tables are spared, and no entry is."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import pytest

import lsm
import policies
from lsm import kernels, opening, range_filters
from lsm.disk.partitioned_filters import PartitionIndex
from lsm.options import TIB
from lsm.range_filters import KeyRange
from policies import FilterPolicy, LevelPolicies
from policies.config import Choice
from policies.prefixes import Prefixes
from tests.effort import by_effort
from tests.lsm import odd_policies
from tests.lsm.forging import Parts
from tests.lsm.odd_policies import RangesLosePolicy, RangesRaisePolicy, SetPolicy
from tests.lsm.refilterable import Data
from tests.lsm.simulated import SimulatedStorage

STILL: dict[str, Any] = {
    "level_size_base": TIB,
    "compression": None,
    "block_size": 128,
    "max_file_size": 1024,
    "level0_compact_files": 1000,
    "level0_slow_files": 1000,
    "level0_stop_files": 1000,
    "max_background_jobs": 1,
}

# Two bytes of a key may be anything in a range that is asked for here.
WIDE = policies.GrafitePolicy(fpr=0.01, range_length=1 << 16)

CHOICES: dict[str, Choice] = {
    "grafite": Choice(WIDE),
    "surf": Choice(policies.SurfPolicy()),
    "first byte": Choice(policies.ClassicPolicy(), prefixes=Prefixes(length=1)),
    "two bytes, partitioned": Choice(
        policies.BlockedPolicy(), "partitioned", 2, Prefixes(length=2)
    ),
    "prefixes alone": Choice(
        policies.BinaryFusePolicy(), prefixes=Prefixes(until=b":", whole_keys=False)
    ),
    "grafite, partitioned": Choice(WIDE, "partitioned", 2),
    "surf, partitioned": Choice(policies.SurfPolicy(), "partitioned", 1),
    "leveldb's, of prefixes": Choice(policies.LevelDBPolicy(), prefixes=Prefixes(length=3)),
    "a plug-in's": Choice(SetPolicy(), prefixes=Prefixes(until=b":")),
}


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    with odd_policies.registered():
        yield


def opened(storage: Any, choice: Choice, **options: Any) -> lsm.DB:
    filters = LevelPolicies((choice,) * 7)
    return lsm.DB("db", storage=storage, filter_policy=filters, **STILL | options)


def some_key(rng: random.Random) -> bytes:
    """Few beginnings, some without a delimiter, and some that others begin with."""
    head = rng.choice((b"a", b"b:", b"bb:", b"c\xff", b"\xff\xff", b"d:d:", b""))
    return head + b"%d" % rng.randrange(100) * rng.randrange(2)


def fill(db: lsm.DB, rng: random.Random) -> dict[bytes, bytes]:
    """Entries on several levels, one over the other, some deleted and some still in memory."""
    expected: dict[bytes, bytes] = {}
    for turn in range(5):
        heads = rng.sample((b"a", b"b:", b"bb:", b"c\xff", b"d:d:", b"\xff\xff"), 3)
        for _ in range(60):
            key = some_key(rng)
            if not key.startswith(tuple(heads)):
                continue
            if rng.random() < 0.2:
                db.delete(key)
                expected.pop(key, None)
            else:
                db.put(key, b"%d of " % turn + key)
                expected[key] = b"%d of " % turn + key
        if turn < 4:
            db.flush()
        if turn == 1:
            db.compact_range()
    return expected


def some_bounds(rng: random.Random) -> dict[str, Any]:
    if rng.random() < 0.4:
        return {"prefix": some_key(rng)[: rng.randrange(5)]}
    bounds: dict[str, Any] = {}
    if rng.random() < 0.9:
        bounds |= {"start": some_key(rng), "include_start": rng.random() < 0.5}
    if rng.random() < 0.9:
        stop = some_key(rng)
        if "start" in bounds and rng.random() < 0.7:
            stop = bounds["start"] + rng.choice((b"", b"\0", b"3", b"\xff"))
        bounds |= {"stop": stop, "include_stop": rng.random() < 0.5}
    return bounds


def within(key: bytes, bounds: dict[str, Any]) -> bool:
    if "prefix" in bounds:
        return key.startswith(bounds["prefix"])
    start, stop = bounds.get("start"), bounds.get("stop")
    return (start is None or key > start or (key == start and bounds["include_start"])) and (
        stop is None or key < stop or (key == stop and bounds["include_stop"])
    )


@pytest.mark.parametrize("choice", CHOICES.values(), ids=CHOICES)
def test_whatever_is_asked_the_entries_are_those_that_are_there(
    choice: Choice, chosen: ModuleType, rng: random.Random
) -> None:
    skipped = 0
    for _ in range(by_effort(3, 10, 100)):
        storage = SimulatedStorage()
        with opened(storage, choice, create_if_missing=True) as db:
            expected = fill(db, rng)
            snapshot, then = db.snapshot(), dict(expected)
            db.put(b"b:new", b"new")
            expected[b"b:new"] = b"new"
            for _ in range(150):
                bounds, reverse = some_bounds(rng), rng.random() < 0.4
                reader, known = rng.choice(((db, expected), (snapshot, then)))
                found = sorted((k, v) for k, v in known.items() if within(k, bounds))
                iterator = reader.iterator(reverse=reverse, **bounds)
                assert list(iterator) == (found[::-1] if reverse else found), bounds
                check_walk(reader.iterator(**bounds), found, rng)
                part = some_key(rng)[: rng.randrange(4)]
                assert list(db.prefixed_db(part)) == sorted(
                    (k[len(part) :], v) for k, v in expected.items() if k.startswith(part)
                )
            skipped += sum(each.skipped for each in db.stats().ranges)
            assert {key: db.get(key) for key in expected} == expected
            snapshot.close()
    assert skipped > 20


def check_walk(iterator: Any, found: list[tuple[bytes, bytes]], rng: random.Random) -> None:
    """Seek in it, and step both ways."""
    target = some_key(rng)
    iterator.seek(target)
    at = sum(key < target for key, _ in found)
    for _ in range(6):
        if rng.random() < 0.5:
            assert next(iterator, None) == (found[at] if at < len(found) else None)
            at = min(at + 1, len(found))
        else:
            assert next(iter([iterator.prev()]) if at else iter(()), None) == (
                found[at - 1] if at else None
            )
            at = max(at - 1, 0)


def tree(choice: Choice, **options: Any) -> SimulatedStorage:
    """A database with a table on level 0, and others below, of keys with ten beginnings."""
    storage = SimulatedStorage()
    with opened(storage, choice, create_if_missing=True, **options) as db:
        for turn in range(3):
            for head in range(0, 20, 2):
                for number in range(0, 40, 4):
                    db.put(b"%02d:%02d" % (head, number), b"%d" % turn * 20)
            db.flush()
        assert sum(level.tables for level in db.stats().levels) > 2
    return storage


@pytest.mark.parametrize("choice", CHOICES.values(), ids=CHOICES)
def test_for_what_is_not_there_no_block_is_read(choice: Choice, chosen: ModuleType) -> None:
    with opened(tree(choice), choice) as db:
        for head in range(1, 19, 2):
            assert list(db.iterator(prefix=b"%02d:" % head)) == []
            assert list(db.iterator(start=b"%02d:11" % head, stop=b"%02d:13" % head)) == []
        counted = db.stats().ranges
        untold = sum(each.untold for each in counted)
        passed = sum(each.passed for each in counted)
        skipped = sum(each.skipped for each in counted)
        assert untold == 0 or choice is CHOICES["first byte"]
        if choice is not CHOICES["first byte"]:
            assert skipped > 20
            assert passed < 0.15 * skipped
            assert db.stats().block_cache.misses <= passed
        assert len(list(db.iterator(prefix=b"04:"))) == 10


@pytest.mark.parametrize("choice", CHOICES.values(), ids=CHOICES)
def test_stores_tell_of_their_ranges(choice: Choice) -> None:
    with opened(tree(choice), choice) as db:
        assert db.stats().ranges == ()
        assert "ranges:" not in str(db.stats())
        list(db.iterator(prefix=b"05:"))
        told = db.stats()
        assert told.ranges
        assert {each.policy for each in told.ranges} == {choice.policy.name}
        assert sum(each.skipped + each.passed for each in told.ranges) > 0
        assert "ranges: " in str(told)
        assert told.as_dict()["ranges"][0]["policy"] == choice.policy.name


def test_other_prefixes_than_those_asked_for_are_never_wrong_and_counted(
    chosen: ModuleType,
) -> None:
    """Tables say which they have. What is asked for reaches them by refiltering."""
    two = Choice(policies.ClassicPolicy(), prefixes=Prefixes(length=2))
    three = Choice(policies.ClassicPolicy(), prefixes=Prefixes(length=5))
    storage = tree(three)
    with opened(storage, two) as db:
        [found] = {tuple(each.prefixes.items()) for level in db.filters() for each in level.tables}
        assert dict(found) == {"prefix": 5, "whole_keys": True}
        assert list(db.iterator(prefix=b"03")) == []
        assert len(list(db.iterator(prefix=b"04"))) == 10
        assert all(each.untold and not each.skipped for each in db.stats().ranges)
        drifted = [each for level in db.filters() for each in level.drifted]
        assert drifted
        report = db.refilter(dry_run=True)
        assert {each.reason for each in report.tables} == {
            f"level {each.level} is configured to have other prefixes" for each in report.tables
        }
        db.refilter()
        assert not [each for level in db.filters() for each in level.drifted]
        before = sum(each.untold for each in db.stats().ranges)
        assert list(db.iterator(prefix=b"03")) == []
        assert sum(each.untold for each in db.stats().ranges) == before
        assert sum(each.skipped for each in db.stats().ranges) > 0


def test_filters_of_prefixes_alone_are_asked_by_lookups(chosen: ModuleType) -> None:
    choice = CHOICES["prefixes alone"]
    with opened(tree(choice), choice) as db:
        for number in range(40):
            value = b"2" * 20 if number % 4 == 0 else None
            assert db.get(b"06:%02d" % number) == value
            assert db.get_many([b"07:%02d" % number, b"06:%02d" % number]) == [None, value]
        assert sum(each.counters.skipped for each in db.stats().filters) > 40
        assert db.get(b"no delimiter") is None


ALONE = {
    "two bytes": Choice(policies.BlockedPolicy(), prefixes=Prefixes(length=2, whole_keys=False)),
    "a colon": CHOICES["prefixes alone"],
    "two bytes, partitioned": Choice(
        policies.XorPolicy(), "partitioned", 1, Prefixes(length=2, whole_keys=False)
    ),
    "two colons, in LevelDB's": Choice(
        policies.LevelDBPolicy(), prefixes=Prefixes(until=b"::", whole_keys=False)
    ),
    "a colon, in Cassandra's": Choice(
        policies.CassandraPolicy(), prefixes=Prefixes(until=b":", whole_keys=False)
    ),
}


@pytest.mark.parametrize("choice", ALONE.values(), ids=ALONE)
def test_filters_of_prefixes_alone_deny_no_key_of_any_length(
    choice: Choice, chosen: ModuleType, rng: random.Random
) -> None:
    storage = SimulatedStorage()
    known = {some_key(rng): b"value" for _ in range(200)} | {b"": b"", b":": b"1", b"::": b"2"}
    with opened(storage, choice, create_if_missing=True) as db:
        for key, value in known.items():
            db.put(key, value)
        db.flush()
        asked = [*known, *(some_key(rng) for _ in range(300)), b"~~~", b"~~:~::"]
        answers = [known.get(key) for key in asked]
        assert [db.get(key) for key in asked] == answers
        assert db.get_many(asked) == answers
        (counted,) = [each.counters for each in db.stats().filters]
        assert counted.skipped > 0


# -- What does not go well -----------------------------------------------------------------


def test_a_plug_in_that_raises_costs_its_reads(
    chosen: ModuleType, caplog: pytest.LogCaptureFixture
) -> None:
    choice = Choice(RangesRaisePolicy())
    with opened(tree(choice), choice) as db:
        assert len(list(db.iterator(prefix=b"04:"))) == 10
        assert list(db.iterator(prefix=b"05:")) == []
        assert sum(each.skipped for each in db.stats().ranges) == 0
        assert "ZeroDivisionError: the range is broken" in caplog.text


def test_a_plug_in_that_denies_its_own_ranges_has_no_filter(chosen: ModuleType) -> None:
    choice = Choice(RangesLosePolicy())
    with opened(tree(choice), choice) as db:
        assert {each.state for level in db.filters() for each in level.tables} == {"failed"}
        assert len(list(db.iterator(prefix=b"04:"))) == 10


@pytest.mark.parametrize("name", ["grafite", "two bytes, partitioned"])
def test_damage_costs_reads_and_no_entry(name: str, chosen: ModuleType, rng: random.Random) -> None:
    choice = CHOICES[name]
    storage = tree(choice)
    tables = [each for each in storage.list("db") if each.endswith(".ldb")]
    for _ in range(by_effort(60, 600, 6000)):
        path = f"db/{rng.choice(tables)}"
        data = storage.read(path)
        at = rng.randrange(len(data) // 2, len(data) - 48)
        damaged = bytearray(data)
        damaged[at] ^= 1 << rng.randrange(8)
        put(storage, path, bytes(damaged))
        with opened(storage, choice, read_only=True) as db:
            for head in rng.sample(range(20), 5):
                try:
                    found = list(db.iterator(prefix=b"%02d:" % head))
                except lsm.CorruptionError:
                    continue  # of a block of data
                assert len(found) == (0 if head % 2 else 10)
        put(storage, path, data)


@pytest.mark.parametrize("name", ["first byte", "prefixes alone"])
def test_a_frame_under_a_right_checksum_is_not_believed_either(
    name: str, chosen: ModuleType
) -> None:
    """Whoever mended the checksum of a table's block has not mended those within it."""
    choice = CHOICES[name]
    storage = SimulatedStorage()
    keys = [b"%02d:%02d" % (head, number) for head in range(0, 20, 2) for number in range(10)]
    with opened(storage, choice, create_if_missing=True) as db:
        for key in keys:
            db.put(key, key)
        db.flush()
    [path] = [f"db/{each}" for each in storage.list("db") if each.endswith(".ldb")]
    data = storage.read(path)
    [(at, (key, frame))] = [
        (at, each)
        for at, each in enumerate(Parts.of(data).meta)
        if each[0].startswith(b"prefixfilter.lsm.")
    ]
    head = len(choice.prefixes.encode() if choice.prefixes else b"")
    forged = [flipped(frame, bit) for bit in range(0, 8 * head, by_effort(5, 1, 1))]
    forged += [frame[:size] for size in range(0, len(frame), by_effort(17, 3, 1))]
    forged += [frame[head:], frame[: head // 2] + frame[head:]]
    for contents in forged:
        parts = Parts.of(data)
        parts.meta[at] = key, contents
        put(storage, path, padded(parts, len(data)))
        with opened(storage, choice, read_only=True) as db:
            assert db.get_many(keys[::7]) == keys[::7]
            assert db.get(b"05:00") is None
            for number in (4, 5):
                found = list(db.iterator(prefix=b"%02d:" % number))
                assert len(found) == (0 if number % 2 else 10)
            [filters] = [each.tables for each in db.filters() if each.tables]
            assert [each.state in ("corrupt", "unknown") for each in filters] == [True]


def padded(parts: Parts, size: int) -> bytes:
    """The table, with something unknown in it that makes it as long as the manifest says."""
    for name in (b"something unknown", b"something unknown!"):
        parts.meta.append((name, b""))
        for missing in range(size - len(parts.assembled()), 0, -1):
            parts.meta[-1] = name, bytes(missing)
            if len(data := parts.assembled()) == size:
                return data
        parts.meta.pop()
    raise AssertionError("a handle of one byte more keeps it from that size")


def flipped(data: bytes, bit: int) -> bytes:
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def put(storage: SimulatedStorage, path: str, data: bytes) -> None:
    file = storage.create(path)
    file.append(data)
    file.sync()
    file.close()


def test_a_table_that_is_not_there_is_told_of_where_it_is_read(chosen: ModuleType) -> None:
    choice = CHOICES["grafite"]
    storage = tree(choice)
    with opened(storage, choice) as db:
        for name in storage.list("db"):
            if name.endswith(".ldb"):
                storage.remove(f"db/{name}")
        iterator = db.iterator(prefix=b"04:")
        with pytest.raises(lsm.CorruptionError, match="missing"):
            next(iterator)


# -- Who asks, and when --------------------------------------------------------------------


def test_nobody_is_asked_where_no_filter_could_answer(
    chosen: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = Choice(policies.BlockedPolicy())
    asked: list[KeyRange] = []
    may_have = range_filters._may_have

    def noted(tables: Any, placed: Any, about: KeyRange) -> bool:
        asked.append(about)
        return may_have(tables, placed, about)

    monkeypatch.setattr(range_filters, "_may_have", noted)
    with opened(tree(plain), plain) as db:
        assert list(db.iterator(prefix=b"05:")) == []
        assert asked == []
    storage = tree(CHOICES["grafite"])
    with opened(storage, plain) as db:  # which was configured otherwise before
        assert list(db.iterator(prefix=b"05:")) == []
        assert asked == []
        db.get(b"05:17")
        assert list(db.iterator(prefix=b"05:")) == []
        assert asked
        asked.clear()
        list(db.iterator(start=b"05:"))
        list(db.iterator(stop=b"05:"))
        list(db.iterator(start=b"05:", stop=b"04:"))
        assert asked == []
        list(db.iterator(start=b"05:1", stop=b"05:2", include_start=False, include_stop=True))
        assert set(asked) == {KeyRange(b"05:1\0", b"05:2\0")}


def test_under_another_order_of_keys_nobody_is_asked(chosen: ModuleType) -> None:
    """Ranges are of bytes."""

    def backwards(one: bytes, other: bytes) -> int:
        return (one < other) - (other < one)

    choice = CHOICES["two bytes, partitioned"]
    given: dict[str, Any] = {"comparator": backwards, "comparator_name": b"backwards"}
    storage = tree(choice, **given)
    with opened(storage, choice, filters_compare_bytes=True, **given) as db:
        assert list(db.iterator(start=b"05;", stop=b"05:")) == []
        assert len(list(db.iterator(start=b"04;", stop=b"04:"))) == 10
        assert db.stats().ranges == ()


def test_who_reads_some_tables_keeps_the_files_of_all(chosen: ModuleType) -> None:
    choice = CHOICES["grafite"]
    with opened(tree(choice), choice) as db:
        for number in range(10):
            db.put(b"05:%d" % number, b"of one table")
        db.flush()
        iterator = db.iterator(prefix=b"05:")
        view = db._store.opened_view()
        narrow = db._store.tables.narrowed(view, (b"05:", True), (b"05;", False))
        assert 0 < len(list(narrow.version.tables())) < len(list(view.version.tables()))
        assert narrow.version.whole is view.version
        live = db._store.manifest.live_files()
        del view
        db.compact_range()
        db.wait_until_idle()
        assert live < db._store.manifest.live_files()
        assert len(list(iterator)) == 10
        del narrow, iterator
        db.compact_range(force=True)
        assert not live & db._store.manifest.live_files()


def test_who_reads_no_table_keeps_no_files(chosen: ModuleType) -> None:
    choice = CHOICES["grafite"]
    with opened(tree(choice), choice) as db:
        db.put(b"05:", b"in memory")
        iterator = db.iterator(prefix=b"05:")
        live = db._store.manifest.live_files()
        db.compact_range(force=True)
        assert not live & db._store.manifest.live_files()
        assert list(iterator) == [(b"05:", b"in memory")]


@pytest.mark.parametrize("name", ["grafite, partitioned", "two bytes, partitioned"])
def test_behind_the_last_partition_nobody_can_tell(name: str, chosen: ModuleType) -> None:
    """No table of ours has keys there; one whose index was cut short has."""
    choice, decode = CHOICES[name], PartitionIndex.decode

    def cut(contents: bytes, file_size: int) -> PartitionIndex:
        whole = decode(contents, file_size)
        return PartitionIndex(whole.lasts[:1], whole.handles[:1], whole.size)

    storage = tree(choice)
    with (
        mock.patch.object(PartitionIndex, "decode", cut),
        opened(storage, choice) as db,
    ):
        for head in range(20):
            assert len(list(db.iterator(prefix=b"%02d:" % head))) == (0 if head % 2 else 10)
            numbers = range(40) if head % 2 == 0 else range(0)
            for number in range(40):
                key = b"%02d:%02d" % (head, number)
                found = list(db.iterator(start=key, stop=key, include_stop=True))
                assert len(found) == (number in numbers and number % 4 == 0)
        assert sum(each.untold for each in db.stats().ranges) > 20


def test_wide_ranges_are_not_asked_for(chosen: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(range_filters, "_MOST_ASKED", 3)
    choice = CHOICES["grafite"]
    storage = tree(choice)
    with opened(storage, choice) as db:
        db.compact_range(force=True)
        assert max(level.tables for level in db.stats().levels) > range_filters._MOST_ASKED
        assert len(list(db.iterator(start=b"0", stop=b"3"))) == 100
        assert db.stats().ranges == ()


@pytest.mark.parametrize("choice", CHOICES.values(), ids=CHOICES)
def test_a_copy_with_another_filter_has_the_same_prefixes(choice: Choice, tmp_path: Path) -> None:
    plain = Choice(policies.BlockedPolicy())
    filters = LevelPolicies((plain,) * 7)
    with lsm.DB(tmp_path / "db", create_if_missing=True, filter_policy=filters, **STILL) as db:
        for number in range(300):
            db.put(b"%03d:" % number, b"value" * 3)
        db.flush()
        data = Data.of(tmp_path / "db", db)
    wanted = LevelPolicies((choice,) * 7)
    with lsm.DB(tmp_path / "db", filter_policy=wanted, **STILL) as db:
        db.refilter()
        assert Data.of(tmp_path / "db", db) == data
        expected = {} if choice.prefixes is None else choice.prefixes.entries()
        for level in db.filters():
            assert all(each.prefixes == expected for each in level.tables)
            assert not level.drifted
        assert len(list(db.iterator(prefix=b"1"))) == 100
        assert list(db.iterator(prefix=b"300:")) == []


@pytest.mark.skipif(lsm.KERNEL != "native", reason="what both share is the chosen kernel's")
def test_both_kernels_write_the_same_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    from filters import hashing

    monkeypatch.setattr(hashing, "random64", lambda: 7)
    monkeypatch.setattr(opening.secrets, "token_bytes", bytes)
    for name, choice in CHOICES.items():
        made = set()
        for kernel in kernels.available():
            monkeypatch.setattr(kernels, "_chosen", kernels.load(kernel))
            storage = tree(choice)
            tables = [each for each in storage.list("db") if each.endswith(".ldb")]
            made.add(tuple(storage.read(f"db/{each}") for each in sorted(tables)))
        assert len(made) == 1, name


# -- Keywords ------------------------------------------------------------------------------


def test_prefixes_by_keyword(tmp_path: Path) -> None:
    policy: FilterPolicy = policies.ClassicPolicy()
    with lsm.DB(
        tmp_path / "db", create_if_missing=True, filter_policy=policy, filter_prefix_until=":"
    ) as db:
        assert db._store.options.filters.prefixes(3) == Prefixes(until=b":")
    with lsm.DB(tmp_path / "db") as db:  # kept with the database
        assert db._store.options.filters.prefixes(3) == Prefixes(until=b":")
    with lsm.DB(
        tmp_path / "db", filter_policy=policy, filter_prefix=8, filter_whole_keys=False
    ) as db:
        assert db._store.options.filters.prefixes(3) == Prefixes(length=8, whole_keys=False)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"filter_prefix": 8}, "go with a filter_policy that is one policy"),
        (
            {"filter_prefix": 0, "filter_policy": policies.ClassicPolicy()},
            "filter_prefix is out of",
        ),
        (
            {"filter_prefix": 8, "filter_prefix_until": ":", "filter_policy": SetPolicy()},
            "leave out one",
        ),
        ({"filter_whole_keys": False, "filter_policy": SetPolicy()}, "filter_whole_keys goes with"),
        ({"filter_prefix": 8, "bloom_filter_bits": 10}, "leave out filter_policy"),
        ({"filter_prefix": 8, "filter_budget": "10 bits/key"}, "leave out filter_prefix"),
    ],
)
def test_mistakes_in_keywords_are_told(given: dict[str, Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=words):
        lsm.DB(tmp_path / "db", create_if_missing=True, **given)
    assert not (tmp_path / "db").exists()


def test_a_range_is_half_open() -> None:
    assert KeyRange.between((b"a", True), (b"b", False)) == KeyRange(b"a", b"b")
    assert KeyRange.between((b"a", False), (b"b", True)) == KeyRange(b"a\0", b"b\0")
