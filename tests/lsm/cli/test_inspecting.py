"""inspect: files of any store, alone and in directories, measured and damaged, never touched."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import plyvel
import pytest

import policies
from filters import CassandraBloomFilter
from tests.lsm.cli.conftest import Run, snapshot
from tests.lsm.refilterable import made

KEYS = [b"key:%05d" % number for number in range(500)]


@pytest.fixture
def leveldbs(tmp_path: Path) -> Path:
    """A database that LevelDB wrote."""
    path = tmp_path / "leveldb"
    db = plyvel.DB(str(path), create_if_missing=True, bloom_filter_bits=10)
    for key in KEYS:
        db.put(key, b"value")
    db.compact_range()
    db.close()
    return path


@pytest.fixture
def cassandras(tmp_path: Path) -> Path:
    """A filter as Cassandra writes it, with nothing that would notice a flipped bit."""
    path = tmp_path / "nb-1-big-Filter.db"
    path.write_bytes(CassandraBloomFilter.build(KEYS, fp_chance=0.01).to_bytes())
    return path


def inspected(run: Run, *words: object, status: int = 0) -> Any:
    return json.loads(run("inspect", *words, "--json", status=status).stdout)


def test_a_directory_of_leveldbs_is_measured(run: Run, leveldbs: Path) -> None:
    before = snapshot(leveldbs)
    [file] = inspected(run, leveldbs, "--measure", "--absent", 2000)
    assert (file["store"], file["kind"]) == ("LevelDB", "table")
    assert sum(each["measured"]["keys"] for each in file["filters"]) == len(KEYS)
    for each in file["filters"]:
        assert each["family"] == "leveldb"
        assert each["guard"] == {"kind": "crc32c", "checked": "right"}
        assert each["measured"]["denied"] == 0
        assert each["measured"]["absent"] > 0
    text = run("inspect", leveldbs, "--measure", "--absent", 2000).stdout
    assert "denied keys    none of 500" in text
    assert snapshot(leveldbs) == before


def test_a_directory_of_ours_has_a_line_for_each_table(run: Run, tmp_path: Path) -> None:
    made(tmp_path / "ours")
    text = run("inspect", tmp_path / "ours", "--measure", "--absent", 100, "--damage").stdout
    lines = text.splitlines()
    assert len(lines) == 1 + 13
    assert lines[0].split()[-3:] == ["measured", "hiding", "bits"]
    assert all(" lsm " in line and "blocked bits_per_key=6" in line for line in lines[1:])
    details = run("inspect", tmp_path / "ours", "--details").stdout
    assert details.count("\n    family ") == 13


def test_bits_that_hide_keys_in_cassandras_filters_are_found(run: Run, cassandras: Path) -> None:
    [file] = inspected(run, cassandras, "--damage")
    [filter] = file["filters"]
    damage = filter["damage"]
    assert damage["is_guarded"] is False
    assert damage["count"] > 0
    found = base64.b64decode(damage["map"])
    assert sum(byte.bit_count() for byte in found) == damage["count"]
    text = run("inspect", cassandras, "--damage").stdout
    assert "a flip is noticed by nobody" in text
    assert "none: a flipped bit would be noticed by nobody" in text


def test_a_version_can_be_given(run: Run, cassandras: Path, tmp_path: Path) -> None:
    renamed = tmp_path / "renamed"
    renamed.write_bytes(cassandras.read_bytes())
    assert inspected(run, renamed, status=1)[0]["store"] == "unknown"
    [file] = inspected(run, renamed, "--cassandra-version", "nb")
    assert file["filters"][0]["family"] == "cassandra"
    assert run("inspect", renamed, "--cassandra-version", "zz", status=2).stderr.startswith("lsm: ")


def test_damage_is_a_problem_of_the_file(run: Run, leveldbs: Path, tmp_path: Path) -> None:
    [table] = leveldbs.glob("*.ldb")
    [file] = inspected(run, table)
    at = file["filters"][0]["offset"]
    damaged = tmp_path / "damaged.ldb"
    data = bytearray(table.read_bytes())
    data[at] ^= 1
    damaged.write_bytes(data)
    [file] = inspected(run, damaged, status=1)
    assert "wrong" in {each["guard"]["checked"] for each in file["filters"]}
    cut = tmp_path / "cut.ldb"
    cut.write_bytes(table.read_bytes()[:-60])
    told = run("inspect", cut, table, status=1)
    assert str(cut) in told.stdout
    assert "Traceback" not in told.stderr


def test_what_is_not_there_is_told_on_a_line(run: Run, tmp_path: Path) -> None:
    for path in (tmp_path / "none", tmp_path):
        refused = run("inspect", path, status=2)
        assert refused.stderr.startswith(f"lsm: {path}")
        assert refused.stderr.count("\n") == 1


def test_a_bare_block_says_what_it_is(run: Run, tmp_path: Path) -> None:
    policy = policies.create("cuckoo")
    file = tmp_path / "users.filter"
    block = policies.encode_block(policy, policy.create_filter(KEYS), num_keys=len(KEYS))
    file.write_bytes(block)
    [found] = inspected(run, file, "--measure", "--damage")
    [filter] = found["filters"]
    assert (filter["family"], filter["num_keys"]) == ("cuckoo", len(KEYS))
    assert filter["measured"]["keys"] is None
    assert filter["damage"]["count"] == 0
    assert "its keys are not at hand" in run("inspect", file, "--measure").stdout
