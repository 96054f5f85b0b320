"""Compactions, sizes and properties: what a database says of itself."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from tests.lsm.manners.outcomes import compact, only_plyvel

Open = Callable[..., Any]


@pytest.fixture
def thousand(open_db: Open) -> Any:
    """A database of a thousand entries in several tables, and none in memory."""
    db = open_db(write_buffer_size=64 << 10, max_file_size=64 << 10, compression=None)
    for number in range(1000):
        db.put(b"%03d" % number, b"%d" % number * 100)
    db.compact_range()
    return db


def tables(db: Any) -> list[int]:
    """How many tables each level has."""
    return [int(db.get_property(b"leveldb.num-files-at-level%d" % level)) for level in range(7)]


@pytest.mark.parametrize(
    "bounds",
    [
        {},
        {"start": None, "stop": None},
        {"start": b"200"},
        {"stop": b"200"},
        {"start": b"200", "stop": b"300"},
        {"start": b"300", "stop": b"200"},
        {"start": b"", "stop": b""},
        {"start": b"\xff"},
    ],
    ids=str,
)
def test_compacting_changes_no_entry(
    open_db: Open, rng: random.Random, bounds: dict[str, Any]
) -> None:
    db = open_db(write_buffer_size=32 << 10)
    model: dict[bytes, bytes] = {}
    for _ in range(1500):
        key = b"%03d" % rng.randrange(500)
        if rng.random() < 0.3:
            db.delete(key)
            model.pop(key, None)
        else:
            model[key] = rng.randbytes(60)
            db.put(key, model[key])
    for _ in range(2):
        assert db.compact_range(**bounds) is None
        assert list(db) == sorted(model.items())
        assert list(db.iterator(reverse=True)) == sorted(model.items(), reverse=True)
    assert all(db.get(b"%03d" % n) == model.get(b"%03d" % n) for n in range(500))


def test_compacting_an_empty_database_does_nothing(db: Any) -> None:
    for _ in range(2):
        assert db.compact_range() is None
    assert list(db) == []
    assert tables(db) == [0] * 7


def test_compacting_moves_what_is_in_memory_to_tables(digits: Any) -> None:
    assert sum(tables(digits)) == 0
    digits.compact_range()
    assert sum(tables(digits)) == 1


def test_compacting_drops_what_was_deleted(thousand: Any) -> None:
    assert sum(tables(thousand)) > 1
    for number in range(1000):
        thousand.delete(b"%03d" % number)
    compact(thousand)
    assert list(thousand) == []
    assert thousand.approximate_size(b"", b"\xff") == 0
    assert sum(tables(thousand)) == 0


@pytest.mark.parametrize("bound", ["start", "stop"])
@pytest.mark.parametrize("value", ["text", 1, [], True], ids=repr)
def test_a_compaction_is_bounded_by_bytes(digits: Any, bound: str, value: Any) -> None:
    with pytest.raises(TypeError):
        digits.compact_range(**{bound: value})


def test_the_bounds_of_a_compaction_go_by_keyword_only(digits: Any) -> None:
    with pytest.raises(TypeError):
        digits.compact_range(b"1", b"2")


def test_an_empty_database_has_no_size(db: Any) -> None:
    assert db.approximate_size(b"", b"\xff") == 0
    assert db.approximate_sizes((b"", b"\xff"), (b"a", b"b")) == [0, 0]
    assert db.approximate_sizes() == []


def test_a_size_is_that_of_the_tables_and_not_of_the_memory(digits: Any) -> None:
    assert digits.approximate_size(b"1", b"6") == 0
    for digit in b"12345":
        digits.put(b"%c" % digit, b"value" * 1000)
    assert digits.approximate_size(b"1", b"6") == 0
    digits.compact_range()
    assert digits.approximate_size(b"1", b"6") > 0


def test_a_size_is_about_that_of_the_entries(thousand: Any) -> None:
    whole = sum(len(key) + len(value) for key, value in thousand)
    size = thousand.approximate_size(b"", b"\xff")
    assert type(size) is int
    assert 0.9 * whole < size < 1.2 * whole
    assert thousand.approximate_size(start=b"", stop=b"\xff") == size


def test_a_wider_range_is_not_smaller(thousand: Any) -> None:
    stops = [b"%03d" % stop for stop in range(100, 1000, 50)]
    sizes = thousand.approximate_sizes(*((b"100", stop) for stop in stops))
    assert len(sizes) == len(stops)
    assert all(narrow <= wide for narrow, wide in pairwise(sizes))
    assert sizes[0] == 0 < sizes[-1]
    starts = [b"%03d" % start for start in range(0, 900, 50)]
    sizes = thousand.approximate_sizes(*((start, b"900") for start in starts))
    assert all(wide >= narrow for wide, narrow in pairwise(sizes))


def test_ranges_side_by_side_make_the_whole(thousand: Any) -> None:
    left, right, whole = thousand.approximate_sizes(
        (b"000", b"500"), (b"500", b"999"), (b"000", b"999")
    )
    assert left + right == whole
    assert left > 0 < right


def test_sizes_come_in_the_order_of_the_ranges(thousand: Any, rng: random.Random) -> None:
    ranges = [
        (b"%03d" % start, b"%03d" % (start + rng.randrange(100, 400)))
        for start in rng.sample(range(600), 12)
    ]
    sizes = thousand.approximate_sizes(*ranges)
    assert type(sizes) is list
    assert sizes == [thousand.approximate_size(start, stop) for start, stop in ranges]
    assert thousand.approximate_sizes(*map(list, ranges)) == sizes


def test_a_range_without_keys_or_backwards_has_no_size(thousand: Any) -> None:
    ranges = [(b"", b""), (b"500", b"500"), (b"600", b"300"), (b"a", b"z"), (b"", b"000")]
    assert thousand.approximate_sizes(*ranges) == [0] * 5


def test_more_data_is_not_smaller(open_db: Open, rng: random.Random) -> None:
    db = open_db()
    sizes = []
    for step in range(5):
        for number in range(100):
            db.put(b"%d %03d" % (step, number), rng.randbytes(100))
        db.compact_range()
        sizes.append(db.approximate_size(b"", b"\xff"))
    assert sizes == sorted(set(sizes))


@pytest.mark.parametrize("bound", [None, "text", 1, True, [b"a"]], ids=repr)
def test_a_size_is_bounded_by_bytes(db: Any, bound: Any) -> None:
    for bounds in ((bound, b"z"), (b"a", bound), (bound, bound)):
        with pytest.raises(TypeError):
            db.approximate_size(*bounds)
        with pytest.raises(TypeError):
            db.approximate_sizes(bounds)
        with pytest.raises(TypeError):
            db.approximate_sizes((b"a", b"b"), bounds)


@only_plyvel
def test_a_size_is_bounded_by_no_buffers(db: Any) -> None:
    with pytest.raises(TypeError):
        db.approximate_size(bytearray(b"a"), b"b")
    with pytest.raises(TypeError):
        db.approximate_sizes((b"a", memoryview(b"b")))


@pytest.mark.parametrize("wrong", [(), (b"a",), (b"a", b"b", b"c")], ids=repr)
def test_a_range_is_a_pair(db: Any, wrong: Any) -> None:
    with pytest.raises(ValueError, match="unpack"):
        db.approximate_sizes(wrong)
    if len(wrong) != 2:
        with pytest.raises(TypeError):
            db.approximate_size(*wrong)


@pytest.mark.parametrize("wrong", [None, 1, b"ab"], ids=repr)
def test_a_range_is_no_single_thing(db: Any, wrong: Any) -> None:
    with pytest.raises(TypeError):
        db.approximate_sizes(wrong)


def test_the_levels_say_how_many_tables_they_have(thousand: Any) -> None:
    for level in range(7):
        count = thousand.get_property(b"leveldb.num-files-at-level%d" % level)
        assert type(count) is bytes
        assert count == b"%d" % int(count)
    assert sum(tables(thousand)) > 1
    assert tables(thousand)[0] == 0


@pytest.mark.parametrize(
    "name",
    [
        b"",
        b"unknown",
        b"leveldb.",
        b"leveldb.unknown",
        b"leveldb.stats ",
        b" leveldb.stats",
        b"leveldb.stats\0",
        b"stats",
        b"LEVELDB.STATS",
        b"rocksdb.stats",
        b"leveldb.num-files-at-level",
        b"leveldb.num-files-at-level7",
        b"leveldb.num-files-at-level10",
        b"leveldb.num-files-at-level-1",
        b"leveldb.num-files-at-levelx",
        b"leveldb.num-files-at-level0x",
        b"leveldb.num-files-at-level 0",
        b"leveldb.num-files-at-level+0",
        b"leveldb.num-files-at-level18446744073709551616",
    ],
    ids=repr,
)
def test_an_unknown_property_is_none(digits: Any, name: bytes) -> None:
    assert digits.get_property(name) is None


def test_a_level_may_be_written_with_leading_zeros(thousand: Any) -> None:
    for level in range(7):
        plain = thousand.get_property(b"leveldb.num-files-at-level%d" % level)
        assert thousand.get_property(b"leveldb.num-files-at-level00%d" % level) == plain


@pytest.mark.parametrize("name", [None, "leveldb.stats", 1, True, []], ids=repr)
def test_the_name_of_a_property_is_bytes(digits: Any, name: Any) -> None:
    with pytest.raises(TypeError):
        digits.get_property(name)


@only_plyvel
def test_the_name_of_a_property_is_no_buffer(digits: Any) -> None:
    with pytest.raises(TypeError):
        digits.get_property(bytearray(b"leveldb.stats"))


def test_the_statistics_list_the_levels_that_have_tables(thousand: Any) -> None:
    stats = thousand.get_property(name=b"leveldb.stats")
    assert type(stats) is bytes
    assert re.search(rb"Level\s+Files\s+Size\(MB\)", stats)
    rows = [line.split() for line in stats.splitlines() if re.match(rb"\s*\d", line)]
    listed = {int(row[0]): int(row[1]) for row in rows}
    assert {level: count for level, count in enumerate(tables(thousand)) if count} == {
        level: count for level, count in listed.items() if count
    }
    assert all(len(row) == 6 for row in rows)


def test_the_statistics_of_an_empty_database_are_a_heading(db: Any) -> None:
    stats = db.get_property(b"leveldb.stats")
    assert re.search(rb"Level\s+Files\s+Size\(MB\)", stats)
    assert not re.search(rb"(?m)^\s*\d", stats)


def test_the_tables_are_listed_level_by_level(thousand: Any) -> None:
    listing = thousand.get_property(b"leveldb.sstables")
    assert type(listing) is bytes
    assert re.findall(rb"(?m)^--- level (\d) ---$", listing) == [b"%d" % n for n in range(7)]
    levels = re.split(rb"--- level \d ---\n", listing)[1:]
    assert [level.count(b"\n") for level in levels] == tables(thousand)
    # Number, size, and the first and last entry: key, sequence number, kind (1 is a value).
    line = re.compile(rb" (\d+):(\d+)\['(\d+)' @ (\d+) : 1 \.\. '(\d+)' @ (\d+) : 1\]")
    found = [line.fullmatch(row) for level in levels for row in level.splitlines()]
    assert all(found)
    bounds = [(match[3], match[5]) for match in found if match]
    assert bounds[0][0] == b"000"
    assert bounds[-1][1] == b"999"
    assert all(last < first for (_, last), (first, _) in pairwise(bounds))
    size = sum(int(match[2]) for match in found if match)
    assert size >= thousand.approximate_size(b"", b"\xff") > 0.9 * size


def test_the_tables_of_an_empty_database_are_none(db: Any) -> None:
    assert db.get_property(b"leveldb.sstables") == b"".join(
        b"--- level %d ---\n" % level for level in range(7)
    )


def test_the_memory_grows_with_what_is_put(db: Any) -> None:
    def memory() -> int:
        used = db.get_property(b"leveldb.approximate-memory-usage")
        assert re.fullmatch(rb"\d+", used)
        return int(used)

    empty = memory()
    for number in range(1000):
        db.put(b"%d" % number, b"value" * 100)
    full = memory()
    assert full >= empty + 500_000
    db.compact_range()
    assert memory() < full - 400_000
