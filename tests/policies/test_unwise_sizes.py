"""Who chooses an unwise size is told so, once and at that line; who reads or builds is not."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import lsm
import policies
from filters import blocked
from policies import BuildContext, VerifiedBuilder
from tests.lsm.interrupting import INSTRUCTIONS, SIGNALS, Kind, interrupted_at, points

KEYS = [b"key%d" % number for number in range(100)]
CONFIGURATION = """
[filters]
policy = "blocked"
bits_per_key = 24
"""

CHOOSING: dict[str, Callable[[Path], object]] = {
    "class": lambda path: policies.BlockedPolicy(bits_per_key=24),
    "rate": lambda path: policies.BlockedPolicy(fpr=1e-6),
    "create": lambda path: policies.create("blocked", bits_per_key=24),
    "load": lambda path: policies.load(path),
}


@pytest.mark.parametrize("way", CHOOSING)
def test_who_chooses_is_told_once_and_where(way: str, tmp_path: Path) -> None:
    (tmp_path / "lsm.toml").write_text(CONFIGURATION)
    choose = CHOOSING[way]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        choose(tmp_path / "lsm.toml")
    line = choose.__code__.co_firstlineno
    assert [(each.filename, each.lineno) for each in caught] == [(__file__, line)]


@pytest.fixture
def unwise() -> Iterator[policies.BlockedPolicy]:
    """A policy whose chooser was told, and from then on any warning is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        policy = policies.BlockedPolicy(bits_per_key=24)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield policy


def test_nobody_is_told_again_when_filters_are_built_and_read(
    unwise: policies.BlockedPolicy,
) -> None:
    filter = unwise.create_filter(KEYS)
    assert filter is not None
    block = policies.encode_block(unwise, filter, num_keys=len(KEYS))
    assert all(policies.open_block(block).might_contain_many(KEYS))
    for policy in (unwise, unwise.with_seed(7)):
        builder = VerifiedBuilder(policy, BuildContext())
        builder.add_many(KEYS)
        assert builder.finish().reason == ""
    with pytest.raises(UserWarning, match="above 16"):  # who chooses anew is
        policies.BlockedPolicy(bits_per_key=24)


@pytest.mark.parametrize("kind", [SIGNALS, INSTRUCTIONS])
def test_who_chooses_is_told_also_after_any_interruption(
    unwise: policies.BlockedPolicy, kind: Kind
) -> None:
    def build() -> object:
        return unwise.create_filter(KEYS[:3])

    for number in range(points(build, kind)):
        where = interrupted_at(number, build, kind=kind).where
        with pytest.raises(UserWarning, match="above 16"):
            policies.BlockedPolicy(bits_per_key=24 if where else 25)


def test_an_engine_writes_filters_of_such_a_size_also_where_warnings_are_errors(
    unwise: policies.BlockedPolicy, tmp_path: Path
) -> None:
    with lsm.DB(str(tmp_path / "db"), create_if_missing=True, filter_policy=unwise) as db:
        for key in KEYS:
            db.put(key, b"v")
        db.compact_range()
        assert [table.state for level in db.filters() for table in level.tables] == ["built"]


def test_a_policy_without_parameters_plans_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(blocked, "plan")
    monkeypatch.delattr(blocked, "predicted_fpr")
    assert policies.BlockedPolicy().params() == {"bits_per_key": 10}
