"""advise and what-if: what they show is what the engine says, and nothing is written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import lsm
from lsm import options as engine_options
from tests.lsm.cli.conftest import Run, snapshot
from tests.lsm.refilterable import made


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    made(tmp_path / "tree")
    return tmp_path / "tree"


def test_advise(run: Run, tree: Path, tmp_path: Path) -> None:
    with lsm.DB(tree, read_only=True) as db:
        told = db.advise(budget="8 bits/key", read_cost="10 ms")
    asked = ("--budget", "8 bits/key", "--read-cost", "10 ms")
    assert run("advise", tree, *asked).stdout == f"{told}\n"
    as_json = json.loads(run("advise", tree, *asked, "--json").stdout)
    assert as_json == json.loads(json.dumps(told.as_dict()))
    file = tmp_path / "lsm.toml"
    file.write_text(run("advise", tree, *asked, "--toml").stdout)
    rule = engine_options.load(file).filters.rule
    assert rule is not None
    assert str(rule.budget) == "8 bits/key"
    refused = run("advise", tree, "--budget", "8 bit/key", status=2).stderr
    assert refused.startswith("lsm: ")
    assert "did you mean 'bits/key'" in refused


def test_what_if_of_every_family(run: Run, tree: Path) -> None:
    told = json.loads(run("what-if", tree, "--json").stdout)
    names = [each["name"] for each in told]
    assert names[:3] == ["as it is", "no filters", "blocked"]
    assert {"cuckoo", "ribbon", "surf"} < set(names)
    assert names[-1].startswith("a budget of ")
    assert all(each["build_seconds"] > 0 for each in told[2:])
    text = run("what-if", tree).stdout
    for name in names:
        assert f"\n{name} " in f"\n{text}"


def test_what_if_of_what_is_named(run: Run, tree: Path, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('[filters]\npolicy = "xor"\n')
    words = ("--policy", "cuckoo:fpr=0.001", "--config", file, "--budget", "12 bits/key")
    told = json.loads(run("what-if", tree, *words, "--json").stdout)
    assert [each["name"] for each in told[2:]] == [
        "cuckoo fpr=0.001",
        str(file),
        "a budget of 12 bits/key",
    ]
    assert told[3]["policies"] == {"xor": 13}
    assert told[2]["reads"] < told[0]["reads"] < told[1]["reads"]


@pytest.mark.parametrize(
    ("policy", "what"),
    [
        ("cukoo", "did you mean 'cuckoo'"),
        ("cuckoo:fpr", "is no KEY=VALUE"),
        ("cuckoo:fpr=often", "fpr"),
        ("cuckoo:fbr=0.1", "fbr"),
    ],
)
def test_a_policy_that_is_none_is_refused(run: Run, tree: Path, policy: str, what: str) -> None:
    refused = run("what-if", tree, "--policy", policy, status=2).stderr
    assert what in refused
    assert "Traceback" not in refused


def test_nothing_is_written(run: Run, tree: Path) -> None:
    before = snapshot(tree)
    run("advise", tree)
    run("what-if", tree, "--policy", "cuckoo")
    assert snapshot(tree) == before
