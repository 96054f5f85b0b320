"""Cassandra's filters in files: their versions, what is said of them, and that none is believed."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from filters import CassandraBloomFilter
from lsm.survey import cassandra
from lsm.survey.found import FileFound, FilterFound, Guard
from lsm.survey.look import look
from tests.filters.independent_cassandra import Reader
from tests.lsm.survey.hostile import damaged, looked_at

# What Cassandra has written of the numbers 1 to 10, in four bytes each.
WRITTEN = {
    "foo-atable-ka-1-Filter.db": "0000000500000002 23664c448214b822 e543142008053950",
    "la-1-big-Filter.db": "0000000500000002 84e228e0800e2836 eb22d24ac8822a00",
}

NAMES = {
    "nb-1-big-Filter.db": "nb",
    "la-1-big-Filter.db": "la",
    "da-12-bti-Filter.db": "da",
    "nb-3g7k_0dxq_4ga0g2v31w3z1xm0vh-big-Filter.db": "nb",
    "foo-atable-ka-1-Filter.db": "ka",
    "key-space-a-table-jb-77-Filter.db": "jb",
    "tmplink-la-3-big-Filter.db": "la",
    "Filter.db": None,
    "nb-1-big-Data.db": None,
    "x-Filter.db": None,
    "NB-1-big-Filter.db": None,
}


@pytest.fixture
def keys(rng: random.Random) -> list[bytes]:
    return [rng.randbytes(rng.randrange(1, 40)) for _ in range(300)]


def the_filter(found: FileFound) -> FilterFound:
    (only,) = found.filters
    return only


@pytest.mark.parametrize("name", NAMES)
def test_the_version_is_in_the_name(name: str) -> None:
    assert cassandra.version_of(f"/some/nb-9-big-Filter.db/{name}") == NAMES[name]
    assert cassandra.is_one(name) == (NAMES[name] is not None or name == "Filter.db")


@pytest.mark.parametrize("version", ["me", "na", "nb", "oa", "da"])
def test_a_file_is_read_as_its_name_says(
    version: str, tmp_path: Path, keys: list[bytes], rng: random.Random
) -> None:
    built = CassandraBloomFilter.build(keys, fp_chance=0.01)
    path = tmp_path / f"{version}-7-big-Filter.db"
    data = built.to_bytes(sstable_version=version)
    path.write_bytes(data)
    found = look(path)
    each = the_filter(found)
    assert (found.store, found.kind, found.problems) == ("Cassandra", "filter", ())
    assert found.facts["version"] == version
    assert (each.family, each.offset, each.size) == ("cassandra", 0, len(data))
    assert each.parameters["probes"] == built.num_probes
    assert each.parameters["bits"] == built.num_bits
    assert each.parameters["sstable version"] == version
    assert each.parameters["estimated keys"] == pytest.approx(len(keys), rel=0.1)
    assert (each.num_keys, each.bits_per_key, each.keys) == (None, None, None)
    assert (each.fill, each.expected_fpr) == (built.fill, built.expected_fpr)
    assert each.guard == Guard()
    assert not each.guard.is_there
    independent = Reader(data, version)
    asked = keys + [rng.randbytes(8) for _ in range(300)]
    assert each.reader.might_contain_many(asked) == [independent.answer(key) for key in asked]


def test_the_version_given_goes_before_the_name(tmp_path: Path) -> None:
    data = bytes.fromhex(WRITTEN["foo-atable-ka-1-Filter.db"])
    keys = [number.to_bytes(4, "big") for number in range(1, 11)]
    path = tmp_path / "nb-1-big-Filter.db"
    path.write_bytes(data)
    right, wrong = look(path, cassandra_version="ka"), look(path)
    assert all(the_filter(right).reader.might_contain_many(keys))
    assert not all(the_filter(wrong).reader.might_contain_many(keys))
    assert the_filter(right).parameters["probes from"] == "h1"
    (tmp_path / "copied").write_bytes(data)
    copied = the_filter(look(tmp_path / "copied", cassandra_version="ka"))
    assert all(copied.reader.might_contain_many(keys))


def test_a_version_that_is_none_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "nb-1-big-Filter.db"
    path.write_bytes(bytes(16))
    with pytest.raises(ValueError, match="sstable_version='zz' is not known"):
        look(path, cassandra_version="zz")


@pytest.mark.parametrize(
    ("name", "says"),
    [("Filter.db", "tell the version"), ("ab-hf-1-Filter.db", "'hf' is not known")],
)
def test_without_a_version_all_is_said_but_the_answers(
    name: str, says: str, tmp_path: Path, keys: list[bytes]
) -> None:
    built = CassandraBloomFilter.build(keys, fp_chance=0.1)
    path = tmp_path / name
    path.write_bytes(built.to_bytes(sstable_version="me"))
    found = look(path)
    each = the_filter(found)
    assert each.reader is None
    assert each.fill == built.fill
    assert each.expected_fpr == pytest.approx(built.expected_fpr, rel=0.2)
    assert each.parameters["probes"] == built.num_probes
    assert says in each.problem
    assert found.problems == ()


@pytest.mark.parametrize("name", ["nb-1-big-Filter.db", "Filter.db"])
def test_an_empty_file_lets_every_key_pass(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(b"")
    found = look(path)
    each = the_filter(found)
    assert not found.problems
    assert (each.fill, each.expected_fpr) == (1.0, 1.0)
    assert "every key is present" in each.form
    assert each.reader.might_contain(b"whatever")


def test_checksums_beside_a_filter_are_said_not_to_cover_it(tmp_path: Path) -> None:
    path = tmp_path / "nb-1-big-Filter.db"
    path.write_bytes(CassandraBloomFilter.build([b"a"], fp_chance=0.5).to_bytes())
    assert look(path).facts["checksum"] == "none"
    (tmp_path / "nb-1-big-Digest.crc32").write_bytes(b"1234567890")
    said = look(path).facts["checksum"]
    assert said == "none: nb-1-big-Digest.crc32 covers Data.db, not this file"
    (tmp_path / "nb-1-big-CRC.db").write_bytes(b"1234567890")
    assert "nb-1-big-Digest.crc32 and nb-1-big-CRC.db cover Data" in look(path).facts["checksum"]
    assert not the_filter(look(path)).guard.is_there


def test_every_damage_gives_an_answer_or_file_and_place(tmp_path: Path) -> None:
    keys = [b"%d" % number for number in range(40)]
    data = CassandraBloomFilter.build(keys, fp_chance=0.5).to_bytes()
    for bytes_ in damaged(data):
        found = looked_at(tmp_path / "nb-1-big-Filter.db", bytes_)
        assert found is not None
        if len(bytes_) not in (0, len(data)):
            assert found.problems or found.filters[0].problem


@pytest.mark.parametrize(
    ("name", "version"), [("foo-atable-ka-1-Filter.db", "ka"), ("la-1-big-Filter.db", "la")]
)
def test_real_files(name: str, version: str, tmp_path: Path) -> None:
    """The sample of ``la`` was written before 3.0 had a letter of its own: it has the new order."""
    (tmp_path / name).write_bytes(bytes.fromhex(WRITTEN[name]))
    assert look(tmp_path / name).facts["version"] == version
    each = the_filter(look(tmp_path / name, cassandra_version="ma" if version == "la" else None))
    keys = [number.to_bytes(4, "big") for number in range(1, 11)]
    assert all(each.reader.might_contain_many(keys))
