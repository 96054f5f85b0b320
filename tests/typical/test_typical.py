"""Typical programs run, and type checkers know every type in them: no error, and no ``Any``."""

from __future__ import annotations

from pathlib import Path

import pytest

import policies
from tests.effort import by_effort, effort
from tests.lsm.manners import typical_use
from tests.typical import checkers, of_filters, of_policies

VERSIONS = by_effort(("3.11",), ("3.11", "3.12"), ("3.11", "3.12", "3.13", "3.14"))
PROGRAMS = (of_filters, of_policies)

# Keys that are none, one key in the place of many, memory that cannot be written, a policy that
# lacks what it must have, a name that is none: each on a line of its own.
WRONG = """
import filters, policies
def f(one: filters.BlockedBloomFilter, reader: policies.FilterReader) -> None:
    one.might_contain(7)
    one.might_contain_many([1, 2])
    one.might_contain_many([b"key"], 4).upper()
    filters.CuckooFilter.build([b"key"], bits_per_key="10")
    one.might_contain_many([b"key"], out="arrow").append(True)
    reader.might_contain_many("key")
    policies.create("blocked").bits_per_key
    policies.encode_block(policies.BlockedPolicy(), None, num_keys=1)
    filters.ClassicBloomFilter.build([b"key"]) | one
    filters.load(b"LSMF").add(b"key")
class Lacking(policies.FilterPolicy):
    name = "typical.lacking"
Lacking()
"""
LINES = [4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 16]


def test_typical_use_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policies.registry._REGISTRY, "_registered", {})
    assert of_filters.use(tmp_path / "of.filter") == 200
    assert of_policies.use(tmp_path / "lsm.toml") == 400


@pytest.mark.no_cover
@pytest.mark.parametrize("version", VERSIONS)
def test_mypy_has_nothing_to_say_of_it(tmp_path: Path, version: str) -> None:
    """Every ``assert_type`` in it is an error where anything else, as Any, is found."""
    pytest.importorskip("mypy")
    assert checkers.mypy(*checkers.copied(PROGRAMS, tmp_path), version=version) == ""
    wrong = tmp_path / "wrong.py"
    wrong.write_text(WRONG)
    told = checkers.mypy(wrong, version=version)
    assert sorted(set(checkers.mypy_lines(told))) == LINES, told


@effort("full")
@pytest.mark.no_cover
@pytest.mark.parametrize("version", VERSIONS)
def test_pyright_has_nothing_to_say_of_it(tmp_path: Path, version: str) -> None:
    """In its strict mode, in which an unknown type is an error, too."""
    pytest.importorskip("pyright")
    (tmp_path / "wrong.py").write_text(WRONG)
    checkers.copied((*PROGRAMS, typical_use), tmp_path)
    found = checkers.pyright(tmp_path, version)
    assert {file for file, _ in found} == {"wrong.py"}
    assert sorted({line for _, line in found}) == LINES
