"""Blocks and filters of ours in files by themselves."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import filters
import policies
from filters import kernels
from filters.families import every
from lsm.survey.found import Guard
from lsm.survey.look import look
from tests.lsm.survey.hostile import damaged, looked_at

OWN = [name for name, family in every().items() if family.is_salted]
NAMED = [name for name, family in every().items() if family.policy]


@pytest.fixture
def keys(rng: random.Random) -> list[bytes]:
    return sorted({rng.randbytes(12) for _ in range(200)})


@pytest.mark.parametrize("family", NAMED)
def test_a_block_says_what_it_is(family: str, tmp_path: Path, keys: list[bytes]) -> None:
    policy = policies.create(family)
    data = policies.encode_block(policy, policy.create_filter(keys), num_keys=len(keys))
    path = tmp_path / "some.block"
    path.write_bytes(data)
    found = look(path)
    (each,) = found.filters
    assert (found.store, found.kind, found.problems) == ("lsm", "block", ())
    assert (each.family, each.num_keys, each.size) == (family, len(keys), len(data))
    assert each.parameters == {"policy": family, **policy.params()}
    assert each.guard == Guard(kind="XXH3-64", checked="right")
    assert all(each.reader.might_contain_many(keys))
    assert each.fill == each.reader.fill
    assert each.expected_fpr == each.reader.expected_fpr


def test_the_block_of_no_keys_denies_all(tmp_path: Path) -> None:
    path = tmp_path / "none.block"
    policy = policies.create("blocked")
    path.write_bytes(policies.encode_block(policy, b"", num_keys=0))
    (each,) = look(path).filters
    assert (each.num_keys, each.fill, each.expected_fpr) == (0, None, None)
    assert not each.reader.might_contain(b"a")


@pytest.mark.parametrize("family", OWN)
def test_a_filter_says_what_it_is(family: str, tmp_path: Path, keys: list[bytes]) -> None:
    built = kernels.filter_class(family).build(keys)  # type: ignore[attr-defined]
    path = tmp_path / "some.filter"
    path.write_bytes(built.to_bytes())
    found = look(path)
    (each,) = found.filters
    assert (found.store, found.kind, found.problems) == ("lsm", "filter", ())
    assert (each.family, each.num_keys) == (family, built.num_keys)
    assert each.guard == Guard(kind="XXH3-64", checked="right")
    assert (each.fill, each.expected_fpr) == (built.fill, built.expected_fpr)
    assert each.reader == built


def test_a_policy_that_is_not_here_is_named(tmp_path: Path, keys: list[bytes]) -> None:
    class Elsewhere(policies.BlockedPolicy):
        name = "acme.elsewhere"

    policy = Elsewhere()
    path = tmp_path / "foreign.block"
    data = policies.encode_block(policy, policy.create_filter(keys), num_keys=len(keys))
    path.write_bytes(data)
    found = look(path)
    (each,) = found.filters
    assert (each.family, each.reader) == (None, None)
    assert each.form == "block of policy 'acme.elsewhere'"
    assert each.num_keys == len(keys)
    assert each.guard.checked == "right"
    assert "acme.elsewhere" in each.problem
    assert found.problems == ()


def test_a_family_that_is_not_here_is_named(tmp_path: Path) -> None:
    path = tmp_path / "later.filter"
    data = bytearray(filters.BlockedBloomFilter.build([b"a"]).to_bytes())
    data[4] = 200
    path.write_bytes(data)
    (each,) = look(path).filters
    assert (each.family, each.reader, each.guard.checked) == (None, None, "wrong")
    assert "no family that is known here" in each.problem


@pytest.mark.parametrize("form", ["block", "filter"])
def test_every_damage_gives_an_answer_or_file_and_place(form: str, tmp_path: Path) -> None:
    data = filters.BlockedBloomFilter.build([b"a", b"b"]).to_bytes()
    if form == "block":
        data = policies.encode_block(policies.create("blocked"), data, num_keys=2)
    for bytes_ in damaged(data):
        found = looked_at(tmp_path / "file", bytes_)
        assert found is not None
        for each in found.filters:
            assert each.problem
            assert each.guard.checked == "wrong"
        assert found.filters or found.problems
