"""Heat: which tables absent keys are looked for in."""

from __future__ import annotations

from types import ModuleType

import pytest

import lsm
from lsm import kernels
from policies import BlockedPolicy, FilterPolicy, LevelPolicies
from tests.lsm.simulated import SimulatedStorage

FILTERS: list[FilterPolicy | None] = [None, BlockedPolicy(bits_per_key=2)]


@pytest.fixture(params=kernels.available())
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Each kernel, for a while the one that databases are on."""
    kernel: ModuleType = kernels.load(request.param)
    monkeypatch.setattr(kernels, "_chosen", kernel)
    return kernel


def missed(db: lsm.DB) -> dict[int, int]:
    """By table, how many lookups have not found their key there."""
    return {each.number: each.file.missed for each in db._store.opened_view().version.tables()}


def two_runs(filters: FilterPolicy | None) -> lsm.DB:
    """Two tables that overlap from key 100 to key 199, of even keys."""
    db = lsm.DB("db", create_if_missing=True, storage=SimulatedStorage(), filter_policy=filters)
    for first, last in ((0, 200), (100, 300)):
        for number in range(first, last, 2):
            db.put(b"%03d" % number, b"%d" % first)
        db.flush()
    return db


@pytest.mark.parametrize("filters", FILTERS, ids=["no filter", "filter"])
@pytest.mark.parametrize("way", ["get", "get_many", "snapshot"])
def test_a_table_counts_the_lookups_that_come_by_and_do_not_find_their_key(
    engine: ModuleType, filters: FilterPolicy | None, way: str
) -> None:
    with two_runs(filters) as db:
        reader = db.snapshot() if way == "snapshot" else db

        def ask(first: int, last: int) -> tuple[int, int]:
            before = missed(db)
            keys = [b"%03d" % number for number in range(first, last, 2)]
            for _ in range(2):
                if way == "get_many":
                    reader.get_many(keys)
                else:
                    for key in keys:
                        reader.get(key)
            deeper, newer = (after - before[number] for number, after in sorted(missed(db).items()))
            return deeper, newer

        assert [len(level) for level in db._store.opened_view().version.levels[:3]] == [0, 1, 1]
        assert ask(101, 199) == (98, 98), "absent, and both tables have the range"
        assert ask(1, 99) == (98, 0), "the newer begins behind it"
        assert ask(199, 299) == (0, 100), "the deeper ends before it"
        assert ask(301, 399) == (0, 0), "no table has the range"
        assert ask(100, 200) == (0, 0), "found in the newer"
        assert ask(0, 100) == (0, 0), "found in the deeper, which alone has the range"


@pytest.mark.parametrize("filters", FILTERS, ids=["no filter", "filter"])
def test_whoever_looks_only_at_where_a_lookup_goes_counts_nothing(
    engine: ModuleType, filters: FilterPolicy | None
) -> None:
    with two_runs(filters) as db:
        for number in range(101, 199, 2):
            db.explain(b"%03d" % number)
            db.might_contain(b"%03d" % number)
        assert set(missed(db).values()) == {0}


def test_a_key_that_is_too_new_for_a_snapshot_is_in_the_table_all_the_same(
    engine: ModuleType,
) -> None:
    levels = LevelPolicies.uniform(BlockedPolicy(bits_per_key=10))
    with lsm.DB(
        "db", create_if_missing=True, storage=SimulatedStorage(), filter_policy=levels
    ) as db:
        snapshot = db.snapshot()
        for number in range(100):
            db.put(b"%03d" % number, b"")
        db.flush()
        assert [snapshot.get(b"%03d" % number) for number in range(100)] == [None] * 100
        assert set(missed(db).values()) == {0}


def test_the_count_is_a_number_to_read_and_to_set(engine: ModuleType) -> None:
    file = engine.TableFile(7, 100)
    assert file.missed == 0
    file.missed = 1 << 40
    file.missed >>= 1
    assert file.missed == 1 << 39
