"""RocksDB itself reads the engine's directories, and asks the filters that are in its own form."""

from __future__ import annotations

import gc
import random
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest

import lsm
import policies
from lsm.stats import Counters
from tests.effort import effort
from tests.lsm.independent_table import parse

rocksdict = pytest.importorskip("rocksdict")

Contents = dict[bytes, bytes]

# Several tables on several levels of little data. (On one level of up to three tables, RocksDB asks
# the filters of those whose keys are all smaller or larger, too.)
SMALL = """
[engine]
write_buffer_size = "16 KiB"
max_file_size = "8 KiB"
level_size_base = "16 KiB"
level_size_ratio = 3
block_size = 1024
"""
FULL_FILTER = b"fullfilter.rocksdb.BuiltinBloomFilter"


@attrs.frozen
class Rocks:
    """A database that RocksDB has open for reading, and what it counts."""

    db: Any
    options: Any

    def count(self, ticker: str) -> int:
        """One of its statistics."""
        text = self.options.get_statistics()
        found = re.search(rf"^rocksdb\.{re.escape(ticker)} COUNT : (\d+)$", text, re.MULTILINE)
        assert found, ticker
        return int(found[1])

    def get(self, key: bytes) -> bytes | None:
        """A key's value."""
        value = self.db.get(key)
        assert value is None or isinstance(value, bytes)
        return value


@contextmanager
def rocksdb(path: Path, bits_per_key: float | None = 10) -> Iterator[Rocks]:
    """Open a directory with RocksDB, for reading, and with a filter policy of its own or none."""
    blocks = rocksdict.BlockBasedOptions()
    if bits_per_key is not None:
        blocks.set_bloom_filter(bits_per_key, False)
    options = rocksdict.Options(raw_mode=True)
    options.set_block_based_table_factory(blocks)
    options.enable_statistics()
    access = rocksdict.AccessType.read_only(False)
    db = rocksdict.Rdict(str(path), options, access_type=access)
    try:
        yield Rocks(db, options)
    finally:
        db.close()
        del db
        gc.collect()


def fill(path: Path, rng: random.Random, policy: str | None = "rocksdb", **more: Any) -> Contents:
    """A database of several levels, with overwritten keys, deleted ones, and an unflushed log."""
    (path.parent / "lsm.toml").write_text(SMALL)
    params = more.pop("params", {})
    options = {"config": path.parent / "lsm.toml", "compression": None, **more}
    if policy is not None:
        options["filter_policy"] = policies.create(policy, **params)
    contents: Contents = {}
    with lsm.DB(path, create_if_missing=True, **options) as db:
        for number in range(3000):
            key = b"key%06d" % (2 * rng.randrange(2000))
            if rng.random() < 0.1:
                db.delete(key)
                contents.pop(key, None)
            else:
                contents[key] = rng.randbytes(rng.randrange(60))
                db.put(key, contents[key])
            if number % 500 == 499:
                db.wait_until_idle()
        for number in range(10):
            db.put(b"late%d" % number, b"in the log")
            contents[b"late%d" % number] = b"in the log"
        levels = [level.tables for level in db.stats().levels]
        assert sum(1 for tables in levels if tables) > 1
        assert sum(levels) > 5
    return contents


def absent_keys(rng: random.Random, count: int) -> list[bytes]:
    """Between those that are there, and some before and behind them all."""
    between = [b"key%06d" % (2 * rng.randrange(2000) + 1) for _ in range(count)]
    return [*between, b"", b"kex", b"key", b"keyz", b"zzz"]


def counted(path: Path, keys: Iterable[bytes]) -> Counters:
    """What our own engine counts when it looks up these keys."""
    with lsm.DB(path, read_only=True) as db:
        for key in keys:
            db.get(key)
        total = [attrs.astuple(each.counters) for each in db.stats().filters]
    return Counters(*(sum(column) for column in zip(*total, strict=True)))


@pytest.mark.parametrize("compression", [pytest.param(None, marks=effort("full")), "snappy"])
@pytest.mark.parametrize(
    ("policy", "layout"),
    [
        ("rocksdb", "table"),
        ("ribbon", "table"),
        ("blocked", "table"),
        ("binary-fuse", "table"),
        ("leveldb", "table"),
        ("leveldb", "block"),
        ("none", "table"),
        ("rocksdb", "partitioned"),
        ("classic", "partitioned"),
        ("rocksdb", "prefixes"),
    ],
)
def test_rocksdb_reads_whatever_filters_there_are(
    policy: str, layout: str, compression: str | None, tmp_path: Path, rng: random.Random
) -> None:
    """In order, backwards and by key; what is in the log as well as what is in tables."""
    path = tmp_path / "db"
    place: dict[str, Any] = {"filter_layout": layout}
    if layout == "prefixes":  # whole keys are not among them, and RocksDB knows no such filter
        place = {"filter_prefix": 5, "filter_whole_keys": False}
    contents = fill(path, rng, policy, compression=compression, **place)
    before = {file.name: file.read_bytes() for file in path.iterdir()}
    with rocksdb(path) as rocks:
        assert list(rocks.db.items()) == sorted(contents.items())
        assert list(rocks.db.items(backwards=True)) == sorted(contents.items(), reverse=True)
        assert all(rocks.get(key) == value for key, value in contents.items())
        assert [key for key in absent_keys(rng, 300) if rocks.get(key) is not None] == []
        assert rocks.db.latest_sequence_number() == 3010
        useful = rocks.count("bloom.filter.useful")
        passed = rocks.count("bloom.filter.full.positive")
        asked = policy in ("rocksdb", "ribbon") and layout == "table"
        assert (useful > 300 and passed > 1000) if asked else useful == passed == 0
    # It has changed nothing, and its wrapper's own notes do no harm.
    assert before.items() <= {file.name: file.read_bytes() for file in path.iterdir()}.items()
    with lsm.DB(path) as db:
        assert dict(db) == contents


@pytest.mark.parametrize(
    ("policy", "params", "theirs"),
    [
        ("rocksdb", {}, 10),
        ("rocksdb", {}, 3),
        ("rocksdb", {"bits_per_key": 5}, 10),
        ("rocksdb", {"bits_per_key": 20.5}, 10),
        ("rocksdb", {"bits_per_key": 10, "num_probes": 3}, 10),
        ("rocksdb", {"bits_per_key": 10, "optimize_filters_for_memory": False}, 20),
        ("ribbon", {}, 10),
        ("ribbon", {"bits_per_key": 5}, 3),
    ],
)
def test_rocksdb_is_spared_the_reads_that_we_are(
    policy: str, params: dict[str, Any], theirs: float, tmp_path: Path, rng: random.Random
) -> None:
    """Table by table: the same keys pass the same filters, whatever RocksDB would build itself."""
    path = tmp_path / "db"
    contents = fill(path, rng, policy, params=params)
    files = [parse(file.read_bytes()).meta[FULL_FILTER] for file in path.glob("*.ldb")]
    forms = {policies.create("rocksdb").open(filter.contents).form for filter in files}
    assert "ribbon" in forms if policy == "ribbon" else forms == {"fast-local"}
    absent = absent_keys(rng, 2000)
    keys = [*absent, *contents]
    ours = counted(path, keys)
    with rocksdb(path, theirs) as rocks:
        for key in keys:
            assert rocks.get(key) == contents.get(key)
        assert rocks.count("bloom.filter.useful") == ours.skipped
        passed = rocks.count("bloom.filter.full.positive")
        held = rocks.count("bloom.filter.full.true.positive")
    assert held == ours.true_positives
    assert passed - held == ours.false_positives
    assert ours.skipped > 2000
    assert ours.measured_fpr is not None
    assert ours.measured_fpr < (0.15 if params.get("bits_per_key") == 5 else 0.04)
    assert ours.none == ours.unknown == ours.corrupt == 0


def test_without_a_policy_of_its_own_rocksdb_asks_no_filter(
    tmp_path: Path, rng: random.Random
) -> None:
    contents = fill(tmp_path / "db", rng)
    with rocksdb(tmp_path / "db", None) as rocks:
        assert all(rocks.get(key) == contents.get(key) for key in absent_keys(rng, 200))
        assert rocks.count("bloom.filter.useful") == 0


def one_table(path: Path, policy: str, **more: Any) -> Path:
    """A database of one table, and that table."""
    options = {"filter_policy": policies.create(policy), "compression": None, **more}
    with lsm.DB(path, create_if_missing=True, block_size=512, **options) as db:
        for number in range(0, 1000, 2):
            db.put(b"key%04d" % number, b"value%d" % number)
        db.flush()
    [table] = path.glob("*.ldb")
    return table


def test_rocksdb_needs_no_block_where_the_filter_says_no(tmp_path: Path) -> None:
    """Its data being damaged, the table still answers for keys that the filter denies."""
    file = one_table(tmp_path / "db", "rocksdb")
    table = parse(file.read_bytes())
    filter = policies.create("rocksdb").open(table.meta[FULL_FILTER].contents)
    data = bytearray(table.data)
    for block in table.blocks:
        data[block.offset + block.size // 2] ^= 1
    file.write_bytes(data)
    absent = [b"key%04d" % number for number in range(1, 999, 2)]
    passing = {key for key in absent if filter.might_contain(key)}
    assert 0 < len(passing) < 30
    with rocksdb(tmp_path / "db") as rocks:
        for key in absent:
            if key in passing:
                with pytest.raises(Exception, match="Corruption: block checksum mismatch"):
                    rocks.get(key)
            else:
                assert rocks.get(key) is None
        with pytest.raises(Exception, match="Corruption: block checksum mismatch"):
            rocks.get(b"key0500")
        assert rocks.count("bloom.filter.useful") == len(absent) - len(passing)


def test_rocksdb_refuses_zstd_as_we_store_it(tmp_path: Path) -> None:
    """To it, a block of kind 2 is zlib: an error, not another value."""
    policy = policies.create("rocksdb")
    options = {"compression": "zstd", "filter_policy": policy}
    with lsm.DB(tmp_path / "db", create_if_missing=True, **options) as db:
        for number in range(500):
            db.put(b"key%04d" % number, b"value" * 20)
        db.flush()
    with (
        pytest.raises(Exception, match="Corruption: Corrupted compressed block contents: Zlib"),
        rocksdb(tmp_path / "db") as rocks,
    ):
        rocks.get(b"key0000")


def test_a_database_of_rocksdbs_own_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "db"
    options = rocksdict.Options(raw_mode=True)
    options.create_if_missing(True)
    db = rocksdict.Rdict(str(path), options)
    db[b"key"] = b"value"
    db.flush()
    db.close()
    del db
    gc.collect()
    before = {file.name: file.read_bytes() for file in path.iterdir()}
    for more in ({}, {"create_if_missing": True}, {"read_only": True}, {"paranoid_checks": True}):
        with pytest.raises(lsm.ForeignDatabaseError, match="this directory is RocksDB's"):
            lsm.DB(path, **more)
    assert before == {file.name: file.read_bytes() for file in path.iterdir()}
    with rocksdb(path) as rocks:
        assert rocks.get(b"key") == b"value"
