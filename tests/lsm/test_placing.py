"""Databases that place their filters by a budget: what is in the files, and what is told of it."""

from __future__ import annotations

import logging
import math
import random
from pathlib import Path
from typing import Any, ClassVar

import attrs
import pytest

import lsm
import policies
from lsm.disk.properties import Properties
from lsm.disk.table_tail import TableTail
from lsm.inspection import LevelFilters
from policies.cost_models import Option
from tests.lsm.patience import patient

SMALL: dict[str, Any] = {
    "write_buffer_size": "256 KiB",
    "max_file_size": "64 KiB",
    "level_size_base": "64 KiB",
    "level_size_ratio": 4,
}
KEYS = 40_000


def backwards(one: bytes, other: bytes) -> int:
    return (one < other) - (one > other)


def filled(path: Path, rng: random.Random, count: int = KEYS, **options: Any) -> lsm.DB:
    """A database of random keys, idle."""
    db = lsm.DB(path, create_if_missing=True, **(SMALL | options))
    for begin in range(0, count, 1000):
        with db.write_batch() as batch:
            for _ in range(begin, min(count, begin + 1000)):
                batch.put(rng.randbytes(12), b"value" * 4)
    db.wait_until_idle()
    return db


def bits_per_key(levels: tuple[LevelFilters, ...]) -> float:
    tables = [table for level in levels for table in level.tables]
    return 8 * sum(table.bytes for table in tables) / sum(each.num_entries or 0 for each in tables)


def reads(db: lsm.DB, rng: random.Random, count: int = 20_000) -> float:
    """The blocks that a lookup of an absent key reads, as the engine counts them."""

    def counted() -> int:
        return sum(each.counters.blocks_read for each in db.stats().filters)

    before = counted()
    for _ in range(count):
        assert db.get(rng.randbytes(11)) is None
    return (counted() - before) / count


@patient
def test_a_budget_is_kept_and_spent_where_it_saves_most(tmp_path: Path, rng: random.Random) -> None:
    with filled(tmp_path / "db", rng, filter_budget="10 bits/key") as db:
        assert 9.0 <= bits_per_key(db.filters()) <= 10.3
        placed = reads(db, rng)
        asked = [table for level in db.filters() for table in level.tables if table.missed]
        assert len(asked) > 3
    with filled(tmp_path / "uniform", rng) as db:
        assert placed < reads(db, rng) / 2


@patient
def test_filters_say_why_they_are_what_they_are(tmp_path: Path, rng: random.Random) -> None:
    with filled(tmp_path / "db", rng, filter_budget="8 bits/key") as db:
        levels = db.filters()
        assert {level.budget for level in levels} == {"8 bits/key"}
        assert {level.configured for level in levels} == {None}
        for table in (table for level in levels for table in level.tables):
            told = table.placement
            assert told["budget"] == "8 bits/key"
            assert told["price"] > 0
            assert 0 <= told["missed"] <= told["asked"] <= 1
    with filled(tmp_path / "uniform", rng, 3000) as db:
        assert all(
            not t.placement and t.policy == "blocked" for lv in db.filters() for t in lv.tables
        )


@patient
@pytest.mark.parametrize(
    ("budget", "low", "high"),
    [
        ("0 bits/key", 0, 0),
        ("3 bits/key", 2.4, 3.4),
        ("16 bits/key", 13, 17.6),
        ("20 KiB", 2.5, 4.8),
    ],
)
def test_budgets_of_all_kinds(
    budget: str, low: float, high: float, tmp_path: Path, rng: random.Random
) -> None:
    with filled(tmp_path / "db", rng, filter_budget=budget) as db:
        assert low <= bits_per_key(db.filters()) <= high
        db.refilter()
        assert low <= bits_per_key(db.filters()) <= high * 1.02
        found = list(db.iterator(include_value=False))
        assert all(db.get(key) is not None for key in found[::7])


@patient
def test_a_share_of_the_data(tmp_path: Path, rng: random.Random) -> None:
    with filled(tmp_path / "db", rng, filter_budget="2 %") as db:
        taken = sum(table.bytes for level in db.filters() for table in level.tables)
        data = sum(level.bytes for level in db.stats().levels)
        assert 0.01 <= taken / data <= 0.022


@patient
def test_it_goes_on_after_reopening_and_repair(tmp_path: Path, rng: random.Random) -> None:
    path = tmp_path / "db"
    filled(path, rng, filter_budget="6 bits/key").close()
    with lsm.DB(path) as db:  # it is kept
        assert db.filters()[0].budget == "6 bits/key"
        for number in range(20_000):
            db.put(b"more %06d" % number, b"value")
        db.wait_until_idle()
        assert 5 <= bits_per_key(db.filters()) <= 6.4
        expected = dict(db)
    lsm.repair_db(path)
    with lsm.DB(path) as db:
        assert dict(db) == expected
        assert db.filters()[0].budget == "6 bits/key"


@patient
def test_where_nothing_is_known_a_table_has_the_budget_to_itself(
    tmp_path: Path, rng: random.Random
) -> None:
    path = tmp_path / "db"
    filled(path, rng, 5000, filter_budget="6 bits/key").close()
    for file in [*path.glob("MANIFEST-*"), path / "CURRENT"]:
        file.unlink()
    victim = max(path.glob("*.ldb"), key=lambda file: file.stat().st_size)
    data = bytearray(victim.read_bytes())
    data[50] ^= 1
    victim.write_bytes(data)
    lsm.repair_db(path)  # writes the victim anew
    with lsm.DB(path) as db:
        assert all(
            t.bits_per_key is None or t.bits_per_key < 8 for f in db.filters() for t in f.tables
        )


@patient
def test_sorted_keys_and_bulk_loads_are_one_run(tmp_path: Path) -> None:
    pairs = [(b"%08d" % number, b"value" * 4) for number in range(KEYS)]
    with lsm.DB(
        tmp_path / "put", create_if_missing=True, filter_budget="9 bits/key", **SMALL
    ) as db:
        for key, value in pairs:
            db.put(key, value)
        db.flush()
        db.wait_until_idle()
        assert 8.4 <= bits_per_key(db.filters()) <= 9.3
    with lsm.DB(
        tmp_path / "load", create_if_missing=True, filter_budget="9 bits/key", **SMALL
    ) as db:
        lsm.bulk.load(db, pairs)
        tables = [table for level in db.filters() for table in level.tables]
        assert len(tables) > 3
        assert max(t.expected_fpr or 1 for t in tables) < 1.3 * min(
            t.expected_fpr or 1 for t in tables
        )
        assert 8.5 <= bits_per_key(db.filters()) <= 9.1


@patient
def test_no_filter_helps_who_finds_his_key_in_the_last_run(
    tmp_path: Path, rng: random.Random
) -> None:
    options = {"filter_budget": "10 bits/key", "filter_absent_share": 0.0}
    with filled(tmp_path / "db", rng, **options) as db:
        db.compact_range()
        db.refilter()
        (last,) = [level for level in db.filters() if level.tables]
        assert {table.policy for table in last.tables} == {"none"}
        assert {table.state for table in last.tables} == {"none"}


@patient
@pytest.mark.parametrize(
    "families", [["leveldb"], ["rocksdb", "blocked"], ["cuckoo"], ["bumped-ribbon"]], ids=str
)
def test_families_of_all_digests(families: list[str], tmp_path: Path, rng: random.Random) -> None:
    options = {"filter_budget": "10 bits/key", "filter_families": families}
    with filled(tmp_path / "db", rng, 10_000, **options) as db:
        found = {table.policy for level in db.filters() for table in level.tables}
        assert found <= {*families, "none"}
        assert found - {"none"}
        assert all(db.get(key) is not None for key in list(db.iterator(include_value=False))[::3])


@patient
def test_with_a_comparator_of_its_own(tmp_path: Path, rng: random.Random) -> None:
    order = {
        "comparator": backwards,
        "comparator_name": b"backwards",
        "filters_compare_bytes": True,
    }
    with filled(tmp_path / "db", rng, 6000, filter_budget="8 bits/key", **order) as db:
        assert 6.5 <= bits_per_key(db.filters()) <= 8.6
        assert reads(db, rng, 2000) < 0.2


# -- Plug-ins ------------------------------------------------------------------------------


class Knows:
    """A cost model that can be broken later."""

    fails: ClassVar[bool] = False
    policy = "test.modelled"

    def option(self, num_keys: int, fpr: float) -> Option | None:
        if Knows.fails:
            raise RuntimeError("no idea")
        return Option(self.policy, {"bits": math.ceil(-math.log2(fpr))}, 8.0, fpr, 10.0)


@attrs.frozen
class ModelledPolicy(policies.FilterPolicy):
    """Keeps all keys, and says that this takes 8 bits each."""

    name: ClassVar[str] = "test.modelled"
    bits: int = 8

    @classmethod
    def cost_model(cls) -> Knows:
        return Knows()

    def create_filter(self, keys: Any) -> bytes:
        return b"\n".join(key.hex().encode() for key in keys) or b"\n"

    def key_may_match(self, key: bytes, filter: bytes) -> bool:
        return key.hex().encode() in filter.split(b"\n")


@pytest.fixture
def modelled(monkeypatch: pytest.MonkeyPatch) -> None:
    if ModelledPolicy.name not in policies.available():
        policies.register(ModelledPolicy)
    monkeypatch.setattr(Knows, "fails", False)


@pytest.mark.usefixtures("modelled")
@patient
def test_a_plug_in_takes_part(tmp_path: Path, rng: random.Random) -> None:
    options = {"filter_budget": "10 bits/key", "filter_families": ["test.modelled"]}
    with filled(tmp_path / "db", rng, 3000, **options) as db:
        db.flush()
        assert {t.policy for level in db.filters() for t in level.tables} == {"test.modelled"}
        assert all(db.get(key) is not None for key in list(db.iterator(include_value=False)))
        assert reads(db, rng, 100) == 0


@pytest.mark.usefixtures("modelled")
@patient
def test_one_that_fails_later_costs_reads_and_stops_nobody(
    tmp_path: Path, rng: random.Random, caplog: pytest.LogCaptureFixture, monkeypatch: Any
) -> None:
    options = {"filter_budget": "10 bits/key", "filter_families": ["test.modelled"]}
    with filled(tmp_path / "db", rng, 3000, **options) as db, caplog.at_level(logging.WARNING):
        monkeypatch.setattr(Knows, "fails", True)
        for number in range(70_000):  # tables of sizes that nobody has asked it about yet
            db.put(b"%08d" % number, b"value" * number) if number < 100 else db.put(
                b"%08d" % number, b"v"
            )
        db.flush()
        db.wait_until_idle()
        assert db.stats().background_error is None
        assert db.get(b"%08d" % 7) == b"value" * 7
    told = [
        record.getMessage() for record in caplog.records if "usual filters" in record.getMessage()
    ]
    assert len(told) == 1
    assert "no idea" in told[0]


# -- What cannot be believed ---------------------------------------------------------------


@pytest.mark.parametrize(
    "lie",
    [
        {"num_entries": 2**60, "placement": "[[["},
        {"num_entries": 0, "placement": "[]"},
        {"num_filter_keys": 2**60, "placement": '{"price": ' + "[" * 2000 + "]" * 2000 + "}"},
    ],
    ids=lambda lie: next(iter(lie)),
)
@patient
def test_tables_that_tell_nonsense_change_no_answer(
    lie: dict[str, Any], tmp_path: Path, rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "db"
    tell = TableTail._properties

    def lying(self: TableTail) -> bytes:
        return attrs.evolve(Properties.decode(tell(self)), **lie).encode()

    with monkeypatch.context() as patched:
        patched.setattr(TableTail, "_properties", lying)
        filled(path, rng, 20_000, filter_budget="8 bits/key").close()
    with lsm.DB(path, read_only=True) as db:
        expected = dict(db)
        db.advise()
        assert all(not table.placement for level in db.filters() for table in level.tables)
    with lsm.DB(path) as db:
        db.put(b"key", b"value")
        db.flush()
        db.refilter()
        db.compact_range()
        assert dict(db) == expected | {b"key": b"value"}
        assert db.stats().background_error is None


@patient
def test_tables_of_leveldb_are_guessed_about(tmp_path: Path, rng: random.Random) -> None:
    plyvel = pytest.importorskip("plyvel")
    path = str(tmp_path / "db")
    with plyvel.DB(path, create_if_missing=True, write_buffer_size=1 << 17) as db:
        for _ in range(20_000):
            db.put(rng.randbytes(12), b"value" * 4)
    with lsm.DB(path, read_only=True) as db:
        advice = db.advise(budget="10 bits/key")
        assert advice.keys == pytest.approx(sum(1 for _ in db), rel=0.35)
        assert all(level.policies_now == {"none": level.tables} for level in advice.levels)


@patient
def test_a_budget_below_what_leveldbs_filters_take_opens_all_the_same(
    tmp_path: Path, rng: random.Random
) -> None:
    plyvel = pytest.importorskip("plyvel")
    path, expected = str(tmp_path / "db"), {rng.randbytes(12): b"value" * 4 for _ in range(20_000)}
    options = {"create_if_missing": True, "write_buffer_size": 1 << 17, "bloom_filter_bits": 20}
    with plyvel.DB(path, **options) as db:
        for key, value in expected.items():
            db.put(key, value)
    with lsm.DB(path, filter_budget="1 bits/key") as db:
        db.wait_until_idle()
        report = db.refilter()
        assert report.filter_bytes_after <= 1.03 * len(expected) / 8
        assert dict(db) == expected
        assert db.advise().bits_now <= 1.03 * db.advise().budget_bits
    with lsm.DB(path, filter_budget="0 bits/key") as db:
        db.refilter()
        assert {t.policy for level in db.filters() for t in level.tables} == {"none"}
        assert dict(db) == expected
