"""Refiltering: filters follow the configuration, and nothing else changes."""

from __future__ import annotations

import itertools
import json
import threading
from pathlib import Path
from typing import Any

import plyvel
import pytest

import lsm
import policies
from lsm.options import LEVELS
from lsm.refiltering import RefilterProgress
from policies import FilterPolicy, LevelPolicies
from policies.builtin import BUILTIN
from tests.effort import spread
from tests.lsm import odd_policies
from tests.lsm.configurations import ODD
from tests.lsm.crew import Crew, Gate, Hooked, until
from tests.lsm.independent_table import parse
from tests.lsm.patience import patient
from tests.lsm.refilterable import (
    AFTER,
    BEFORE,
    STILL,
    Data,
    counts,
    files,
    filters_of,
    made,
    numbers,
)

POLICIES = sorted(cls.name for cls in BUILTIN)
CHANGED: dict[str, Any] = STILL | {"filter_policy": AFTER}
BUDGET: dict[str, Any] = STILL | {"filter_budget": "9 bits/key"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "db"


# -- What changes, and what does not -------------------------------------------------------


@pytest.mark.parametrize("options", [CHANGED, BUDGET], ids=["policy", "budget"])
@pytest.mark.parametrize("jobs", [1, 4])
@patient
def test_filters_follow_and_nothing_else_changes(
    path: Path, options: dict[str, Any], jobs: int
) -> None:
    expected = made(path)
    with lsm.DB(path, max_background_jobs=jobs, **options) as db:
        before, shape, old = Data.of(path, db), counts(db), numbers(db)
        snapshot, walk = db.snapshot(), db.iterator()
        begun = list(itertools.islice(walk, 77))
        raw = db.raw_iterator()
        raw.seek(b"0100")
        report = db.refilter()
        assert not report.skipped
        assert not report.left
        assert len(report.tables) == db.stats().refiltered
        if options is CHANGED:
            assert filters_of(db) == {("classic", "built")}
            assert len(report.tables) == 13
        assert Data.of(path, db) == before
        assert counts(db) == shape
        assert begun + list(walk) == sorted(expected.items())
        assert raw.key() == b"0100"
        assert dict(snapshot) == dict(db) == expected
        assert {key: db.get(key) for key in expected} == expected
        assert db.get(b"0007") is None
        assert not any(level.drifted for level in db.filters())
        assert not db.refilter().tables, "once is enough"
        del walk, raw, snapshot
        new = {number for level in numbers(db) for number in level}
        assert len(new & {number for level in old for number in level}) == 13 - len(report.tables)
    with lsm.DB(path, **options) as db:
        assert dict(db) == expected
        assert sorted(each.name for each in path.glob("*.ldb")) == [
            f"{number:06}.ldb" for number in sorted(new)
        ]


@pytest.mark.parametrize(
    ("name", "layout"),
    [
        (name, layout)
        for name in POLICIES
        for layout in (*sorted(policies.create(name).layouts), "partitioned")
    ],
)
def test_every_policy_is_reached_at_once(path: Path, name: str, layout: str) -> None:
    policy = policies.create(name)
    expected = made(path)
    with lsm.DB(path, **STILL, filter_policy=policy, filter_layout=layout) as db:
        assert len(db.refilter().tables) == 13
        state = "none" if name == "none" else "built"
        assert filters_of(db) == {(name, state)}
        assert not db.refilter(dry_run=True).tables
        assert dict(db) == expected
        assert db.get_many(list(expected)) == list(expected.values())


@pytest.mark.parametrize("options", [CHANGED, BUDGET], ids=["policy", "budget"])
def test_a_dry_run_tells_what_a_real_one_does_and_changes_nothing(
    path: Path, options: dict[str, Any]
) -> None:
    made(path)
    with lsm.DB(path, **options) as db:
        before = files(path)
        for asked in ({}, {"levels": [1]}, {"max_bytes": 9000}):
            dry: Any = db.refilter(dry_run=True, **asked)
            assert dry.dry_run
            assert files(path) == before
        dry = db.refilter(dry_run=True)
        done = db.refilter()
        assert not done.dry_run
        assert [each.number for each in dry.tables] == [each.number for each in done.tables]
        assert dry.tables == done.tables
        assert (dry.bytes, dry.left) == (done.bytes, done.left)
        assert dry.filter_bytes_before == done.filter_bytes_before
        assert dry.reads_before == done.reads_before
        assert done.filter_bytes_after == pytest.approx(dry.filter_bytes_after, abs=13 * 64)
        assert done.reads_after == pytest.approx(dry.reads_after, rel=0.5)


def test_its_numbers_are_those_of_the_filters(path: Path) -> None:
    made(path)
    with lsm.DB(path, **CHANGED) as db:

        def filter_bytes() -> int:
            return sum(table.bytes for level in db.filters() for table in level.tables)

        def size() -> int:
            return sum(level.bytes for level in db.stats().levels)

        before, bytes_before = filter_bytes(), size()
        report = db.refilter()
        assert report.filter_bytes_before == before
        assert report.filter_bytes_after == filter_bytes() != before
        assert report.bytes == bytes_before
        assert report.reads_after < report.reads_before
        assert all(each.now.policy == "blocked" for each in report.tables)
        assert all(each.then.policy == "classic" for each in report.tables)
        assert json.loads(json.dumps(report.as_dict()))["bytes"] == report.bytes
        assert "13 tables" in str(report)
        assert "would be" not in str(report)


def test_only_the_levels_that_are_asked_for(path: Path) -> None:
    expected = made(path)
    with lsm.DB(path, **CHANGED) as db:
        old = numbers(db)
        report = db.refilter(levels=[2, 0])
        assert {each.level for each in report.tables} == {0, 2}
        assert report.left == 0
        now = numbers(db)
        assert now[1] == old[1]
        assert not set(now[0] + now[2]) & set(old[0] + old[2])
        assert not db.refilter(levels=[]).tables
        assert dict(db) == expected


def test_no_more_bytes_than_are_asked_for_and_the_most_useful_first(path: Path) -> None:
    made(path)
    with lsm.DB(path, **CHANGED) as db:
        sizes: list[int] = []
        everything = [each.number for each in db.refilter(dry_run=True).tables]
        asked = db.refilter(dry_run=True, max_bytes=20_000).tables
        assert 1 < len(asked) < 13
        assert [each.number for each in asked] == everything[: len(asked)]
        while report := db.refilter(max_bytes=1):
            if not report.tables:
                break
            assert [each.number for each in report.tables] == everything[: len(report.tables)]
            # Those of level 0 go together, and one is always taken.
            assert len(report.tables) == (1 if report.tables[0].level else 5)
            sizes += [each.size for each in report.tables]
            everything = everything[len(report.tables) :]
            assert report.left == len(everything)
        assert not everything
        assert len(sizes) == 13
        assert filters_of(db) == {("classic", "built")}


def test_one_of_level_0_takes_the_others_along(path: Path) -> None:
    """A new number makes a table a newer one."""
    with lsm.DB(path, create_if_missing=True, filter_policy=BEFORE, **STILL) as db:
        for value in (b"0", b"1", b"2"):
            db.put(b"a", value)
            db.put(b"z", value)
            db.flush()
    with lsm.DB(path, **CHANGED) as db:
        db.put(b"a", b"3")
        db.put(b"z", b"3")
        db.flush()
        assert counts(db)[:3] == [2, 1, 1]
        dry = db.refilter(dry_run=True, levels=[0])
        assert [each.reason for each in dry.tables] == [
            "another one of level 0 is given its filter",
            "level 0 is configured to have classic",
        ]
        before = db.stats().levels[0].bytes
        report = db.refilter(levels=[0])
        assert report.tables == dry.tables
        assert report.bytes == dry.bytes == before
        assert db.get(b"a") == b"3"
        assert dict(db) == {b"a": b"3", b"z": b"3"}


# -- How far it has come -------------------------------------------------------------------


@patient
def test_progress_is_told_in_the_calling_thread_until_all_is_done(path: Path) -> None:
    made(path)
    told: list[tuple[int, RefilterProgress]] = []
    with lsm.DB(path, **CHANGED) as db:
        total = sum(level.bytes for level in db.stats().levels)
        db.refilter(progress=lambda it: told.append((threading.get_ident(), it)))
    assert {thread for thread, _ in told} == {threading.get_ident()}
    progress = [each for _, each in told]
    assert {(each.total_tables, each.total_bytes) for each in progress} == {(13, total)}
    done = [(each.tables, each.bytes) for each in progress]
    assert done == sorted(done)
    assert done[0] == (0, 0)
    assert done[-1] == (13, total)
    assert len(set(done)) > 2


@pytest.mark.parametrize("after", [0, 1, 5])
@patient
def test_what_progress_raises_ends_it_and_what_was_done_stays(path: Path, after: int) -> None:
    expected = made(path)

    def stop(progress: RefilterProgress) -> None:
        if progress.tables >= after:
            raise KeyError("enough")

    with lsm.DB(path, max_background_jobs=2, **CHANGED) as db:
        with pytest.raises(KeyError, match="enough"):
            db.refilter(progress=stop)
        db.wait_until_idle()
        found = [each.policy for level in db.filters() for each in level.tables]
        assert after <= found.count("classic")
        assert dict(db) == expected
        assert db.stats().background_error is None
        assert len(list(path.glob("*.ldb"))) == 13
        db.put(b"more", b"")
        assert len(db.refilter().tables) == 13 - found.count("classic")
        assert filters_of(db) == {("classic", "built")}


@patient
def test_who_interrupts_it_need_not_wait_for_the_thread_that_is_at_it(path: Path) -> None:
    expected = made(path)
    gate = Gate("create", ".ldb")
    calls = itertools.count()

    def stop(_: RefilterProgress) -> None:
        if next(calls):
            gate.wait()
            raise KeyboardInterrupt

    with lsm.DB(path, storage=Hooked(gate), max_background_jobs=2, **CHANGED) as db:
        with pytest.raises(KeyboardInterrupt):
            db.refilter(progress=stop)
        assert db.stats().running_compactions == 1
        gate.open()
        db.wait_until_idle()
        assert db.stats().refiltered == 0
        assert db.stats().running_compactions == 0
        assert len(list(path.glob("*.ldb"))) == 13
        assert dict(db) == expected
        assert db.stats().background_error is None


# -- What stays as it is -------------------------------------------------------------------


def damage(path: Path, number: int, what: str) -> bytes:
    """Flip a bit of a table's data, or of what tells whether a load has written it."""
    file = path / f"{number:06}.ldb"
    data = bytearray(file.read_bytes())
    table = parse(bytes(data))
    block = table.blocks[1] if what == "data" else table.meta[b"lsm.properties"]
    data[block.offset + 3] ^= 16
    file.write_bytes(data)
    return bytes(data)


@pytest.mark.parametrize("what", ["data", "properties"])
@pytest.mark.parametrize("level", [0, 1, 2])
@patient
def test_a_damaged_table_is_skipped_and_the_others_are_done(
    path: Path, what: str, level: int
) -> None:
    made(path)
    with lsm.DB(path, read_only=True, **STILL) as db:
        number = numbers(db)[level][1]
    damaged = damage(path, number, what)
    with lsm.DB(path, **CHANGED) as db:
        old = numbers(db)
        stays = old[0] if level == 0 else [number]
        report = db.refilter()
        assert {each.number for each in report.skipped} == set(stays)
        assert all(f"{number:06}.ldb" in each.reason for each in report.skipped)
        assert f"{number:06}.ldb" in str(report)
        assert len(report.tables) == 13 - len(stays)
        now = numbers(db)
        assert {each for level in now for each in level} & {
            each for level in old for each in level
        } == set(stays)
        assert (path / f"{number:06}.ldb").read_bytes() == damaged
        assert db.stats().background_error is None
        db.put(b"more", b"1", sync=True)
        db.flush()
        assert db.get(b"more") == b"1"
        assert len(list(path.glob("*.ldb"))) == sum(counts(db))


@pytest.mark.parametrize(("policy", "layout"), ODD, ids=lambda each: getattr(each, "name", each))
@patient
def test_whatever_a_policy_does_tables_keep_filters_that_work(
    path: Path, policy: FilterPolicy, layout: str
) -> None:
    with odd_policies.registered():
        expected = made(path)
        with lsm.DB(path, **STILL, filter_policy=policy, filter_layout=layout) as db:
            report = db.refilter()
            assert len(report.tables) + len(report.skipped) == 13
            states = filters_of(db)
            assert {state for _, state in states} <= {"built", "declined"}
            if report.skipped:
                assert ("blocked", "built") in states, "the ones they had"
            assert all("no other filter can be built" in each.reason for each in report.skipped)
            assert dict(db) == expected
            assert db.get_many(list(expected)) == list(expected.values())
            assert db.get(b"0007") is None
            assert db.stats().background_error is None
            assert len(list(path.glob("*.ldb"))) == 13


def test_levels_may_have_different_filters(path: Path) -> None:
    made(path)
    names = ["none", "cuckoo", "leveldb", *["blocked"] * (LEVELS - 3)]
    selected = LevelPolicies(tuple(policies.config.Choice(policies.create(name)) for name in names))
    with lsm.DB(path, **STILL, filter_policy=selected) as db:
        db.refilter()
        found = [{each.policy for each in level.tables} for level in db.filters()[:3]]
        assert found == [{"none"}, {"cuckoo"}, {"leveldb"}]
        assert not any(level.drifted for level in db.filters())


# -- Who may ask for it --------------------------------------------------------------------


def test_who_reads_can_only_ask_what_would_be_done(path: Path) -> None:
    made(path)
    before = files(path)
    with lsm.DB(path, read_only=True, **CHANGED) as db:
        assert len(db.refilter(dry_run=True).tables) == 13
        with pytest.raises(lsm.ReadOnlyError, match="read_only"):
            db.refilter()
    assert files(path) == before


def test_a_closed_database_is_refused(path: Path) -> None:
    made(path)
    db = lsm.DB(path, **CHANGED)
    db.close()
    for dry_run in (False, True):
        with pytest.raises(RuntimeError, match="closed"):
            db.refilter(dry_run=dry_run)


@patient
def test_closing_ends_it(path: Path) -> None:
    expected = made(path)
    with lsm.DB(path, **CHANGED) as db, pytest.raises(RuntimeError, match="closed"):
        db.refilter(progress=lambda _: db.close())
    db = lsm.DB(path, **CHANGED)
    with Crew() as crew:

        def refused() -> None:
            with pytest.raises(RuntimeError, match="closed"):
                db.refilter(bytes_per_second=1)

        crew.start(refused)
        until(lambda: db.stats().running_compactions)
        db.close()
    with lsm.DB(path, **CHANGED) as db:
        assert dict(db) == expected
        assert len(list(path.glob("*.ldb"))) == 13


@patient
def test_in_the_middle_of_another_operation_it_is_refused(path: Path) -> None:
    made(path)
    with lsm.DB(path, **CHANGED) as db:

        def pairs() -> Any:
            yield b"x", b"1"
            with pytest.raises(lsm.Error, match=r"refilter\(\) waits for the background"):
                db.refilter()
            assert len(db.refilter(dry_run=True).tables) == 13
            yield b"y", b"2"

        lsm.bulk.load(db, pairs())
        assert db.get(b"y") == b"2"


@pytest.mark.parametrize(
    ("wrong", "error", "match"),
    [
        ({"levels": [7]}, ValueError, "level"),
        ({"levels": [-1]}, ValueError, "level"),
        ({"levels": "12"}, TypeError, "levels are numbers"),
        ({"levels": 1}, TypeError, "levels are numbers"),
        ({"max_bytes": 0}, ValueError, "max_bytes"),
        ({"max_bytes": 1.5}, TypeError, "max_bytes"),
        ({"bytes_per_second": 0}, ValueError, "bytes_per_second"),
        ({"bytes_per_second": "1"}, ValueError, "bytes_per_second"),
        ({"max_bytes": "20 MB"}, ValueError, "max_bytes"),
        ({"dry_run": 1}, TypeError, "dry_run"),
        ({"progress": "often"}, TypeError, "progress is a function"),
    ],
)
def test_what_is_asked_is_checked(
    path: Path, wrong: dict[str, Any], error: type[Exception], match: str
) -> None:
    made(path)
    with lsm.DB(path, **CHANGED) as db:
        before = files(path)
        with pytest.raises(error, match=match):
            db.refilter(**wrong)
        assert files(path) == before


# -- LevelDB -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", spread(["leveldb", *POLICIES], 2, 5))
@pytest.mark.parametrize("bits", [0, 10])
def test_a_directory_of_leveldbs_gets_filters_of_ours_and_stays_its_own(
    path: Path, name: str, bits: int
) -> None:
    expected = {b"%05d" % at: b"v%d" % at * 20 for at in range(3000)}
    with plyvel.DB(
        str(path), create_if_missing=True, write_buffer_size=20_000, bloom_filter_bits=bits
    ) as theirs:
        for at in range(2):
            for key, value in expected.items():
                theirs.put(key, value if at else b"old")
    with lsm.DB(path, filter_policy=policies.create(name)) as db:
        db.wait_until_idle()
        before = Data.of(path, db)
        db.refilter()
        assert Data.of(path, db) == before
        assert {policy for policy, _ in filters_of(db)} == {name}
        assert dict(db) == expected
    with plyvel.DB(str(path), paranoid_checks=True, bloom_filter_bits=bits) as theirs:
        assert dict(theirs.iterator(verify_checksums=True)) == expected
        assert all(theirs.get(key) == value for key, value in expected.items())
        theirs.compact_range()
    with lsm.DB(path, filter_policy=BEFORE) as db:
        db.refilter()
        assert filters_of(db) == {("blocked", "built")}
        assert dict(db) == expected


def test_advice_is_given_for_one_key_too(path: Path) -> None:
    """Whose filter takes more bits than any budget is for."""
    with lsm.DB(path, create_if_missing=True, filter_policy=BEFORE) as db:
        db.put(b"a", b"1")
        db.flush()
        assert db.advise().keys == 1
        assert not db.refilter(dry_run=True).tables
