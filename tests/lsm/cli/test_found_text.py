"""What a survey finds, made up here, is shown with all that it says, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import attrs
import pytest

from lsm.cli import found_text, output
from lsm.survey.found import FileFound, FilterFound, Guard


def filter_found(**how: Any) -> FilterFound:
    given: dict[str, Any] = {
        "where": "filter block",
        "offset": 4096,
        "size": 1250,
        "family": "leveldb",
        "form": "LevelDB's Bloom filter",
        "guard": Guard(kind="crc32c", checked="right"),
        "parameters": {"num_probes": 6},
        "num_keys": 1000,
        "fill": 0.48,
        "expected_fpr": 0.0121,
        "reader": object(),
        "keys": lambda: iter((b"a",)),
    }
    return FilterFound(**(given | how))


FILE = FileFound(
    path="db/000005.ldb",
    size=200_000,
    store="LevelDB",
    kind="table",
    facts={"entries": 1000, "first key": b"a\xff", "checksums": ("crc32c",), "more": {"a": 1}},
    filters=(filter_found(),),
    problems=("db/000005.ldb: at byte 17: something",),
)
UNKNOWN = filter_found(
    family=None,
    form="unknown: filter.acme.Cuckoo",
    guard=Guard(),
    parameters={},
    num_keys=None,
    fill=None,
    expected_fpr=None,
    problem="nobody here reads it",
)


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Callable[[], str]:
    return lambda: capsys.readouterr().out


def test_a_file_is_shown_with_its_facts_and_problems(printed: Any) -> None:
    found_text.show_file(FILE)
    assert printed().splitlines() == [
        "db/000005.ldb: LevelDB table, 195.3 KiB",
        "  entries    1,000",
        "  first key  a\\xff",
        "  checksums  crc32c",
        "  more       a=1",
        "  db/000005.ldb: at byte 17: something",
    ]


def test_a_filter_is_shown_with_all_that_is_known(printed: Any) -> None:
    [group] = found_text.alike(FILE.filters)
    found_text.show_filters(group, more=[("denied", "none")])
    assert printed().splitlines() == [
        "  filter block: LevelDB's Bloom filter",
        "    family         leveldb",
        "    parameters     num_probes=6",
        "    place          byte 4096, 1.2 KiB",
        "    keys           1,000",
        "    bits/key       10.00",
        "    fill           48.00%",
        "    expected rate  1.210%",
        "    checksum       crc32c, right",
        "    denied         none",
    ]


def test_what_is_unknown_is_named_so(printed: Any) -> None:
    [group] = found_text.alike([UNKNOWN])
    found_text.show_filters(group)
    assert printed().splitlines() == [
        "  filter block: unknown: filter.acme.Cuckoo",
        "    family    unknown",
        "    place     byte 4096, 1.2 KiB",
        "    keys      unknown",
        "    checksum  none: a flipped bit would be noticed by nobody",
        "    nobody here reads it",
    ]
    unknown = Guard(kind="kind 9", checked="unknown")
    assert found_text.checksum(unknown) == "kind 9, which is not computed here"


def test_partitions_that_are_alike_are_one(printed: Any) -> None:
    parts = [
        filter_found(
            where=f"partition {number} of 3",
            offset=number,
            num_keys=keys,
            size=size,
            parameters={"num_probes": 6, "lines": keys // 100, "words": "as they are"},
        )
        for number, keys, size in ((1, 1000, 1000), (2, 3000, 3000), (3, 2000, 4500))
    ]
    parts[1] = attrs.evolve(parts[1], expected_fpr=0.02, fill=0.5)
    wrong = attrs.evolve(parts[0], guard=Guard(kind="crc32c", checked="wrong"))
    group, other = found_text.alike([*parts, wrong])
    assert (group.where, group.num_keys, group.size) == (
        "partition 1 of 3, and 2 like it",
        6000,
        8500,
    )
    assert group.bits_per_key == pytest.approx(8 * 8500 / 6000)
    assert group.expected_fpr == pytest.approx((0.0121 * 3000 + 0.02 * 3000) / 6000)
    assert group.fill == pytest.approx((0.48 * 5500 + 0.5 * 3000) / 8500)
    assert other.first is wrong
    [row, _] = found_text.rows_of(FILE, [group, other])
    assert row[2] == "3 x leveldb num_probes=6 lines=10..30 words=as they are"
    columns = [attrs.evolve(parts[0], where=f"column {name}") for name in ("a", "b")]
    assert len(found_text.alike(columns)) == 2
    silent = found_text.Alike([parts[0], attrs.evolve(parts[1], num_keys=None, fill=None)])
    assert (silent.num_keys, silent.fill) == (None, None)


def test_many_files_are_lines_of_a_table(printed: Any) -> None:
    none = attrs.evolve(FILE, path="db/000007.ldb", filters=())
    rows = [
        *found_text.rows_of(FILE, found_text.alike([*FILE.filters, UNKNOWN])),
        *found_text.rows_of(none, [], "db"),
    ]
    output.table(found_text.HEADINGS, rows, left=found_text.LEFT)
    lines = [line.split() for line in printed().splitlines()]
    assert " ".join(lines[1]) == (
        "db/000005.ldb LevelDB leveldb num_probes=6 1,000 10.00 1.210% right"
    )
    assert lines[2] == ["db/000005.ldb", "LevelDB", "unknown", "-", "-", "-", "none"]
    assert lines[3] == ["000007.ldb", "LevelDB", "none", "-", "-", "-", "-"]


def test_json_has_every_filter_and_nothing_that_json_has_not() -> None:
    told = found_text.file_as_json(FILE, [found_text.filter_as_json(each) for each in FILE.filters])
    read = json.loads(json.dumps(told, default=output.as_json))
    assert read["filters"] == [
        {
            "where": "filter block",
            "offset": 4096,
            "size": 1250,
            "family": "leveldb",
            "form": "LevelDB's Bloom filter",
            "guard": {"kind": "crc32c", "checked": "right"},
            "parameters": {"num_probes": 6},
            "num_keys": 1000,
            "fill": 0.48,
            "expected_fpr": 0.0121,
            "problem": "",
            "bits_per_key": 10.0,
        }
    ]
    assert read["facts"]["first key"] == "a\\xff"
    assert read["problems"] == list(FILE.problems)


def test_what_is_kept_of_a_filter_holds_no_bytes_of_it() -> None:
    kept = found_text.bare(FILE.filters[0])
    assert (kept.reader, kept.keys) == (None, None)
    assert kept.num_keys == 1000
