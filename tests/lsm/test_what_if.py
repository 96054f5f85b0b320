"""What other filters would cost is what they do cost once tables have them; nothing is written."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import lsm
import policies
from filters import hashing
from lsm.what_if import Candidate, Outcome, compare
from policies import LevelPolicies
from policies.prefixes import Prefixes
from policies.rule import BudgetRule
from tests.lsm.refilterable import files, made

RULE = BudgetRule.of({"budget": "10 bits/key"})
LEVELS = 7


def uniform(name: str, *place: Any, **params: Any) -> LevelPolicies:
    return LevelPolicies.uniform(policies.create(name, **params), LEVELS, *place)


CHOICES = {
    "cuckoo": uniform("cuckoo", fpr=0.001),
    "rocksdb": uniform("rocksdb"),
    "surf": uniform("surf"),
    "windows": uniform("leveldb", "block"),
    "partitioned": uniform("blocked", "partitioned", 2),
    "prefixes": uniform("classic", "table", None, Prefixes(length=3)),
    "none": uniform("none"),
    "budget": LevelPolicies.of_rule(RULE, LEVELS),
}


def outcomes(path: Path, *candidates: Candidate) -> list[Outcome]:
    with lsm.DB(path, read_only=True) as db:
        return compare(db._store, candidates, RULE)


@pytest.fixture
def one_salt(test_seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same seed and the same salt everywhere: under another one a cuckoo filter may grow."""
    drawn = random.Random(test_seed).getrandbits(64)
    monkeypatch.setattr(hashing, "random64", lambda: drawn)
    monkeypatch.setattr(
        "lsm.opening.secrets.token_bytes", lambda size: drawn.to_bytes(size, "little")
    )


@pytest.mark.usefixtures("one_salt")
@pytest.mark.parametrize("name", CHOICES)
def test_what_is_told_is_what_refiltering_writes(tmp_path: Path, name: str) -> None:
    made(tmp_path)
    before = files(tmp_path)
    now, none, told = outcomes(tmp_path, Candidate(name, CHOICES[name]))
    assert files(tmp_path) == before
    assert (none.bits, none.time_ns > now.time_ns) == (0, True)
    with lsm.DB(tmp_path, filter_policy=CHOICES[name]) as db:
        db.refilter()
        tables = [each for level in db.filters() for each in level.tables]
    carried = 8 * sum(each.bytes for each in tables)
    if name == "partitioned":  # the keys in the index of partitions share their beginnings
        assert told.bits == pytest.approx(carried, rel=0.1)
    elif name == "budget":  # tables that are near enough stay as they are
        assert told.bits <= 1.02 * RULE.budget.bits(told.keys)
    else:
        assert told.bits == carried
        assert set(told.policies) == {each.policy for each in tables}
    [anew] = [each for each in outcomes(tmp_path) if each.name == "as it is"]
    assert anew.reads == pytest.approx(told.reads, rel=0.35, abs=1e-4)


def test_a_filter_that_cannot_be_built_is_counted(tmp_path: Path) -> None:
    made(tmp_path)

    class Failing(policies.FilterPolicy):
        name = "test.failing"

        def create_filter(self, keys: Any) -> bytes:
            raise ValueError("no")

        def key_may_match(self, key: Any, filter: Any) -> bool:
            return True

    failing = Candidate("failing", LevelPolicies.uniform(Failing(), LEVELS))
    *_, told = outcomes(tmp_path, failing)
    assert told.failed == 13
    assert told.bits == 0


def test_progress_ends_at_all_tables(tmp_path: Path) -> None:
    made(tmp_path)
    seen: list[Any] = []
    with lsm.DB(tmp_path, read_only=True) as db:
        compare(db._store, [Candidate("c", CHOICES["cuckoo"])], RULE, seen.append)
    assert [each.tables for each in seen] == list(range(1, 14))
    assert seen[-1].bytes == seen[-1].total_bytes
