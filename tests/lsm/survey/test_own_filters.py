"""Our own tables, with filters of every family in every layout: no key is denied."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import lsm
import policies
from filters.families import every
from lsm.survey import table
from lsm.survey.found import FileFound, FilterFound
from lsm.survey.source import Source
from tests.lsm import odd_policies
from tests.lsm.independent_table import parse
from tests.lsm.survey.foreign_tables import forge, keys_of

KEYS = keys_of(600)
ABSENT = [b"kez%06d" % number for number in range(2000)]
FAMILIES = [family.name for family in every().values() if family.policy]


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    with odd_policies.registered():
        yield


def written(path: Path, policy: Any, **more: Any) -> Path:
    """The one table of a database with some keys overwritten and some deleted."""
    with lsm.DB(
        path, create_if_missing=True, block_size=512, filter_policy=policy, compression=None, **more
    ) as db:
        for key in KEYS:
            db.put(key, b"value" * 5)
        snapshot = db.snapshot()
        for key in KEYS[::5]:
            db.put(key, b"other" * 20)
        for key in KEYS[::9]:
            db.delete(key)
        db.flush()
        snapshot.close()
    [found] = path.glob("*.ldb")
    return found


def look(path: Path) -> FileFound:
    """What is found in a table of ours, which has no problems."""
    found = table.found(Source(path))
    assert (found.store, found.kind, found.problems) == ("lsm", "table", ())
    return found


def keys_in(found: FilterFound) -> list[bytes]:
    """The keys of a filter, after seeing that it denies none of them."""
    assert (found.problem, found.guard.kind, found.guard.checked) == ("", "crc32c", "right")
    assert found.keys is not None
    keys = list(found.keys())
    assert all(found.reader.might_contain_many(keys))
    return keys


@pytest.mark.parametrize("name", FAMILIES)
def test_the_one_filter_of_a_table_has_all_keys(name: str, tmp_path: Path) -> None:
    found = look(written(tmp_path / "db", policies.create(name)))
    [each] = found.filters
    assert keys_in(each) == KEYS
    is_rocksdbs = name in ("rocksdb", "ribbon")
    assert each.family == name
    assert is_rocksdbs or each.form == f"a block that describes itself, of policy {name}"
    versions = len(user_keys(Path(found.path)))
    assert each.num_keys == (versions if name == "leveldb" else len(KEYS))
    assert found.facts["filter policy"] == name
    if each.expected_fpr is not None:
        passed = sum(each.reader.might_contain_many(ABSENT)) / len(ABSENT)
        assert passed <= 4 * each.expected_fpr + 0.01


def test_windows_have_the_keys_of_their_blocks(tmp_path: Path) -> None:
    found = look(written(tmp_path / "db", policies.create("leveldb"), filter_layout="block"))
    assert len(found.filters) > 5
    together = list(itertools.chain.from_iterable(map(keys_in, found.filters)))
    assert [key for key, _ in itertools.groupby(together)] == KEYS
    assert {each.family for each in found.filters} == {"leveldb"}
    assert found.facts["filter entries"] >= len(KEYS)


@pytest.mark.parametrize("order", ["bytes", "reversed", "any"])
@pytest.mark.parametrize("name", ["classic", "rocksdb", "binary-fuse"])
def test_partitions_have_the_keys_of_theirs(name: str, order: str, tmp_path: Path) -> None:
    """Whatever order they are in, which the table does not say."""
    shuffled = {key: hash_of(key) for key in KEYS}
    orders: dict[str, Any] = {
        "bytes": {},
        "reversed": {"comparator": lambda a, b: (a < b) - (a > b)},
        "any": {"comparator": lambda a, b: _compared((shuffled[a], a), (shuffled[b], b))},
    }
    more = orders[order] | ({} if order == "bytes" else {"comparator_name": b"mine"})
    policy = policies.create(name)
    path = written(
        tmp_path / "db", policy, filter_layout="partitioned", filter_partition_blocks=4, **more
    )
    found = look(path)
    in_order = [key for key, _ in itertools.groupby(user_keys(path))]
    assert sorted(in_order) == KEYS
    assert len(found.filters) > 1
    together = list(itertools.chain.from_iterable(map(keys_in, found.filters)))
    assert [key for key, _ in itertools.groupby(together)] == in_order
    assert {each.family for each in found.filters} == {name}
    numbers = [each.num_keys for each in found.filters]
    assert sum(number or 0 for number in numbers) == found.facts["filter entries"]


def hash_of(key: bytes) -> int:
    """A number that has nothing to do with the key's place."""
    return int.from_bytes(key[::-1], "big") * 0x9E37_79B9 % 1009


def _compared(one: Any, other: Any) -> int:
    return (one > other) - (one < other)


def user_keys(path: Path) -> list[bytes]:
    """The user keys of all entries, by a reader of the tests' own."""
    return [key[:-8] for key, _ in parse(path.read_bytes()).pairs]


def test_partitions_are_told_by_their_last_keys_where_nobody_says_how_many_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(
        tmp_path / "db",
        policies.create("classic"),
        filter_layout="partitioned",
        filter_partition_blocks=4,
    )
    by_blocks = list(map(keys_in, look(path).filters))
    opened = table.Table(Source(path))
    assert opened.own is not None
    assert opened.own.filter_partition_blocks > 0
    monkeypatch.setattr(table.Table, "_read_own", lambda self: None)
    by_lasts = list(map(keys_in, table.found(Source(path)).filters))
    # A key whose versions are on both sides of a border is asked for on the first of them.
    assert list(itertools.chain.from_iterable(by_lasts)) == KEYS
    for mine, theirs, before in zip(by_lasts, by_blocks, [[], *by_lasts], strict=False):
        assert mine == [key for key in theirs if key not in before[-1:]]


@pytest.mark.parametrize("layout", ["table", "partitioned"])
@pytest.mark.parametrize("whole_keys", [True, False])
def test_prefixes_are_among_the_keys(whole_keys: bool, layout: str, tmp_path: Path) -> None:
    more = {"filter_layout": layout, "filter_prefix": 6, "filter_whole_keys": whole_keys}
    found = look(written(tmp_path / "db", policies.create("classic"), **more))
    together = set(itertools.chain.from_iterable(map(keys_in, found.filters)))
    assert together == {*(KEYS if whole_keys else ()), *(key[:6] for key in KEYS)}
    what = (
        "whole keys and prefixes (6 bytes)" if whole_keys else "prefixes (6 bytes, no whole keys)"
    )
    for each in found.filters:
        assert each.form.endswith(f", of {what}")
    assert found.facts["prefixes"]["prefix"] == 6


def test_a_plug_in_is_asked_if_it_is_there_and_described_if_not(tmp_path: Path) -> None:
    path = written(tmp_path / "db", odd_policies.SetPolicy())
    [found] = look(path).filters
    assert keys_in(found) == KEYS
    assert (found.family, found.fill, found.expected_fpr) == (None, None, 0.0)
    block = policies.encode_block(policies.create("classic"), b"payload", num_keys=7)
    named = [(b"fullfilter.classic", block), (b"fullfilter.gone", block)]
    path = tmp_path / "t"
    path.write_bytes(forge(KEYS, named))
    damaged, also = table.found(Source(path)).filters
    assert damaged.problem == also.problem.replace(str(also.offset), str(damaged.offset))
    assert "checksum is right, its filter is not" in damaged.problem


def test_a_policy_that_nobody_knows_leaves_its_filter_described(tmp_path: Path) -> None:
    path = written(tmp_path / "db", odd_policies.SetPolicy())
    odd_policies.unregister(odd_policies.SetPolicy)
    [found] = look(path).filters
    assert (found.family, found.reader) == (None, None)
    assert found.form == "a block that describes itself, of policy test.set"
    assert found.num_keys is not None
    assert "test.set" in found.problem


@pytest.mark.parametrize("policy", [None, odd_policies.DecliningPolicy()])
def test_a_table_without_a_filter_says_so(policy: Any, tmp_path: Path) -> None:
    found = look(written(tmp_path / "db", policy or policies.create("none")))
    assert len(found.filters) == 0
    assert found.facts["filter state"] == ("none" if policy is None else "declined")
