"""Parquet's split-block filters, read out of footers that are checked field by field."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from lsm.errors import CorruptionError
from lsm.survey import column_values
from lsm.survey.found import FileFound
from lsm.survey.look import look
from lsm.survey.measure import measure
from lsm.survey.split_block import SplitBlockFilter
from tests.lsm.survey.hostile import damaged, looked_at
from tests.lsm.survey.parquet_files import (
    BINARY,
    I32,
    I64,
    LIST,
    STRUCT,
    Column,
    answer,
    bloom_header,
    file_of,
    inserted,
)

BYTE_ARRAY = 6


def filter_of(keys: list[bytes], num_bytes: int = 256) -> bytes:
    return bloom_header(num_bytes) + inserted(num_bytes, keys)


def found_in(path: Path, data: bytes) -> FileFound:
    path.write_bytes(data)
    return look(path)


def problems_in(found: FileFound) -> list[str]:
    return [*found.problems, *(each.problem for each in found.filters if each.problem)]


def only_problem(path: Path, data: bytes) -> str:
    (problem,) = problems_in(found_in(path, data))
    assert problem.startswith(f"{path}: ")
    return problem


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "file.parquet"


# ---- What is found -----------------------------------------------------------------------------


def test_each_filter_is_found_where_the_footer_says(path: Path, rng: random.Random) -> None:
    keys = [[rng.randbytes(8) for _ in range(20)] for _ in range(3)]
    filters = [filter_of(each, size) for each, size in zip(keys, (32, 256, 96), strict=True)]
    data = file_of(
        [
            [Column(b"plain"), Column(b"one", filters[0], num_values=7)],
            [Column(b"two.list.element", filters[1], type=2), Column(b"one", filters[2])],
        ]
    )
    found = found_in(path, data)
    assert not problems_in(found)
    assert (found.store, found.kind) == ("Parquet", "column chunks")
    assert found.facts == {
        "created by": "a test",
        "rows": 20,
        "row groups": 2,
        "column chunks": 4,
        "with a filter": 3,
        "values in these": 27,
    }
    for each, stored, of in zip(found.filters, filters, keys, strict=True):
        assert data[each.offset : each.offset + each.size] == stored
        assert each.family is None
        assert each.form.startswith("split-block Bloom filter of Parquet, ")
        assert not each.guard.is_there
        assert each.reader.to_bytes() == stored
        assert all(each.reader.might_contain_many(of))
    one, two, three = found.filters
    assert one.where == "column one of row group 0"
    assert two.where == "column two.list.element of row group 1"
    assert two.parameters["type"] == "INT64"
    assert [each.parameters["blocks"] for each in found.filters] == [1, 8, 3]
    assert three.where == "column one of row group 1"


def test_answers_are_the_specifications(rng: random.Random) -> None:
    keys = [rng.randbytes(rng.randrange(20)) for _ in range(200)]
    for num_bytes in (32, 64, 96, 1024, 4096):
        filter = SplitBlockFilter.from_bytes(filter_of(keys, num_bytes) + b"behind it")
        blocks = inserted(num_bytes, keys)
        assert filter.to_bytes() == bloom_header(num_bytes) + blocks
        for key in keys + [rng.randbytes(8) for _ in range(500)]:
            assert filter.might_contain(key) == answer(blocks, key)


def test_fill_and_rate_follow_from_the_bits(rng: random.Random) -> None:
    keys = [rng.randbytes(8) for _ in range(6000)]
    filter = SplitBlockFilter.from_bytes(filter_of(keys, 8192))
    set_bits = sum(byte.bit_count() for byte in inserted(8192, keys))
    assert filter.fill == set_bits / 65536
    asked = [rng.randbytes(9) for _ in range(40_000)]
    rate = sum(map(filter.might_contain, asked)) / len(asked)
    assert filter.expected_fpr == pytest.approx(rate, rel=0.1)
    assert filter.estimated_keys == pytest.approx(len(keys), rel=0.05)
    empty = SplitBlockFilter.from_bytes(filter_of([], 32))
    assert (empty.fill, empty.expected_fpr, empty.estimated_keys) == (0, 0, 0)
    full = SplitBlockFilter.from_bytes(bloom_header(32) + b"\xff" * 32)
    assert (full.fill, full.expected_fpr) == (1, 1)


def test_without_its_length_a_filter_is_as_long_as_its_header_says(path: Path) -> None:
    stored = filter_of([b"a"])
    found = found_in(path, file_of([[Column(b"c", stored, with_length=False)]]))
    (each,) = found.filters
    assert (each.size, each.problem) == (len(stored), "")


def test_filters_in_other_files_are_counted_and_not_looked_for(path: Path) -> None:
    elsewhere = Column(b"c", filter_of([b"a"]), chunk={1: (BINARY, b"part-0.parquet")})
    found = found_in(path, file_of([[elsewhere]]))
    assert (len(found.filters), found.problems) == (0, ())
    assert found.facts["with a filter in other files"] == 1


# ---- What is unknown, and what is wrong --------------------------------------------------------


def test_an_encrypted_footer_is_named(path: Path) -> None:
    data = file_of([[Column(b"c", filter_of([b"a"]))]], end=b"PARE")
    assert "footer is encrypted" in only_problem(path, data)
    assert "footer is encrypted" in only_problem(path, b"PARE" + data[4:])


def test_an_encrypted_column_is_named(path: Path) -> None:
    column = Column(b"c", filter_of([b"a"]), chunk={8: (STRUCT, {1: (STRUCT, {})})})
    found = found_in(path, file_of([[column]]))
    (each,) = found.filters
    assert "encrypted" in each.form
    assert (each.reader, found.problems) == (None, ())


@pytest.mark.parametrize("union", ["algorithm", "hash", "compression"])
def test_an_unknown_form_is_named(union: str, path: Path) -> None:
    stored = bloom_header(32, **{union: 2}) + bytes(32)
    found = found_in(path, file_of([[Column(b"c", stored)]]))
    (each,) = found.filters
    assert f"its form is unknown here: {union} 2" in each.problem
    assert each.reader is None


@pytest.mark.parametrize("num_bytes", [0, -32, 31, 33])
def test_a_header_of_no_whole_blocks_is_refused(num_bytes: int, path: Path) -> None:
    stored = bloom_header(num_bytes) + bytes(64)
    problem = only_problem(path, file_of([[Column(b"c", stored)]]))
    assert f"says {num_bytes} bytes follow: allowed are one or more whole blocks of 32" in problem


def test_a_filter_ends_before_the_footer(path: Path) -> None:
    stored = bloom_header(1 << 30) + bytes(64)
    problem = only_problem(path, file_of([[Column(b"c", stored)]]))
    assert "and the footer begins at byte" in problem


@pytest.mark.parametrize("offset", [-1, 0, 3, 1 << 40])
def test_a_filter_lies_in_the_file(offset: int, path: Path) -> None:
    column = Column(b"c", filter_of([b"a"]), metadata={14: (I64, offset)})
    assert f"its offset is {offset}, allowed are 4 to " in only_problem(path, file_of([[column]]))


def test_both_lengths_have_to_agree(path: Path) -> None:
    column = Column(b"c", filter_of([b"a"]), metadata={15: (I32, 32)})
    assert "takes 32 bytes, its header 27" in only_problem(path, file_of([[column]]))


def test_one_bad_filter_does_not_hide_the_others(path: Path) -> None:
    bad, good = Column(b"bad", bytes(64)), Column(b"good", filter_of([b"a"]))
    found = found_in(path, file_of([[bad, good]]))
    assert problems_in(found) == [found.filters[0].problem]
    assert found.filters[0].reader is None
    assert found.filters[1].reader.might_contain(b"a")


@pytest.mark.parametrize(
    ("metadata", "says"),
    [
        ({14: (I32, 8)}, "offset of a Bloom filter at byte"),
        ({3: (LIST, (I32, [1]))}, "parts of a column's path at byte"),
        ({3: (LIST, (BINARY, [b"x"] * 65))}, "more than 64 parts"),
        ({1: (I64, 6)}, "type of a column at byte"),
    ],
)
def test_fields_of_other_types_are_refused(metadata: Any, says: str, path: Path) -> None:
    column = Column(b"c", filter_of([b"a"]), metadata=metadata)
    found = found_in(path, file_of([[Column(b"first", filter_of([b"b"])), column]]))
    assert any(says in problem for problem in found.problems), found.problems
    assert found.filters[0].reader.might_contain(b"b")


def test_an_unknown_type_is_named(path: Path) -> None:
    column = Column(b"c", filter_of([b"a"]), type=8)
    assert "its column is of type 8, which there is not" in only_problem(path, file_of([[column]]))


def test_a_footer_is_no_longer_than_the_file(path: Path) -> None:
    data = file_of([[Column(b"c", filter_of([b"a"]))]])
    longer = data[:-8] + (len(data) - 11).to_bytes(4, "little") + b"PAR1"
    assert f"footer takes {len(data) - 11} bytes: allowed are up to {len(data) - 12}" in (
        only_problem(path, longer)
    )


NESTED = b"\x1c" * 40  # a struct in a struct in a struct
HUGE_LIST = b"\x19\xfc\xff\xff\xff\xff\x07"
HUGE_MAP = b"\x1b\xff\xff\xff\xff\x07\x88"
NO_TYPE = b"\x1e"
FAR_FIELD = b"\x05\xfe\xff\xff\xff\x0f"


@pytest.mark.parametrize(
    ("footer", "says"),
    [
        (NESTED, "nest deeper than 16"),
        (HUGE_LIST, "would be 2147483647, in 0 bytes"),
        (b"\x19\x52" + bytes(4), "would be 5, in 4 bytes"),
        (HUGE_MAP, "would be 4294967294, in 0 bytes"),
        (NO_TYPE, "a value of type 14"),
        (FAR_FIELD, "allowed are 1 to 32767"),
    ],
)
def test_hostile_footers_are_refused_before_anything_is_made_of_them(
    footer: bytes, says: str, path: Path
) -> None:
    data = b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1"
    assert says in only_problem(path, data)


def test_every_damage_gives_an_answer_or_file_and_place(path: Path) -> None:
    data = file_of([[Column(b"one", filter_of([b"a"], 32)), Column(b"two", filter_of([b"b"], 64))]])
    for bytes_ in damaged(data):
        looked_at(path, bytes_)


def test_a_filter_that_is_cut_short_is_refused() -> None:
    stored = filter_of([b"a"], 64)
    for size in range(len(stored)):
        with pytest.raises(CorruptionError):
            SplitBlockFilter.from_bytes(stored[:size])


# ---- What pyarrow writes -----------------------------------------------------------------------


@pytest.fixture
def arrow() -> Any:
    """pyarrow, of a release that writes filters."""
    found = pytest.importorskip("pyarrow", minversion="24")
    pytest.importorskip("pyarrow.parquet")
    return found


def written(arrow: Any, path: Path, columns: dict[str, Any], **options: Any) -> FileFound:
    filters = {name: {"ndv": 300, "fpp": 0.01} for name in columns}
    options.setdefault("bloom_filter_options", filters)
    arrow.parquet.write_table(arrow.table(columns), path, row_group_size=500, **options)
    return look(path)


def columns(arrow: Any, rng: random.Random) -> dict[str, Any]:
    count = 1000
    numbers = [rng.randrange(-(2**31), 2**31) for _ in range(count)]
    half = [number if index % 2 else None for index, number in enumerate(numbers)]
    return {
        "text": arrow.array([f"name {number}" for number in numbers]),
        "bytes": arrow.array([rng.randbytes(12) for _ in numbers], arrow.binary()),
        "fixed": arrow.array([rng.randbytes(16) for _ in numbers], arrow.binary(16)),
        "int32": arrow.array(numbers, arrow.int32()),
        "int64": arrow.array(half, arrow.int64()),
        "small": arrow.array([number % 251 - 125 for number in numbers], arrow.int8()),
        "unsigned": arrow.array([number + 2**31 for number in numbers], arrow.uint32()),
        "large": arrow.array([number % 2**64 for number in numbers], arrow.uint64()),
        "float": arrow.array([number / 7 for number in numbers], arrow.float32()),
        "double": arrow.array([number / 7 for number in numbers], arrow.float64()),
        "day": arrow.array([abs(number) % 40_000 for number in numbers], arrow.date32()),
        "moment": arrow.array(numbers, arrow.timestamp("us")),
        "second": arrow.array(numbers, arrow.timestamp("s")),
        "instant": arrow.array([1000 * number for number in numbers], arrow.timestamp("ns")),
        "hour": arrow.array([abs(number) % 24 * 3600 for number in numbers], arrow.time32("s")),
        "seconds": arrow.array(
            [abs(number) % 86_400_000 for number in numbers], arrow.time32("ms")
        ),
        "span": arrow.array(numbers, arrow.duration("ms")),
        "with.dot": arrow.array(numbers, arrow.int64()),
        "half": arrow.array([number % 100 / 4 for number in numbers], arrow.float16()),
        "word": arrow.array([f"w{number % 50}" for number in numbers]).dictionary_encode(),
    }


@pytest.mark.parametrize("version", ["1.0", "2.4", "2.6"])
def test_filters_that_pyarrow_writes_deny_no_value(
    version: str, arrow: Any, path: Path, rng: random.Random
) -> None:
    made = columns(arrow, rng)
    found = written(arrow, path, made, version=version)
    assert not problems_in(found)
    assert len(found.filters) == 2 * len(made)
    metadata = arrow.parquet.read_metadata(path)
    for number, each in enumerate(found.filters):
        row_group, index = divmod(number, len(made))
        assert each.parameters["column"] == list(made)[index]
        said = metadata.row_group(row_group).column(index)
        assert (each.offset, each.size) == (said.bloom_filter_offset, said.bloom_filter_length)
        assert each.parameters["type"] == said.physical_type
        measured = measure(each, 2000, seed=1)
        values = made[each.parameters["column"]].slice(500 * row_group, 500)
        assert measured.keys == 500 - values.null_count
        assert measured.denied == 0
        assert measured.verdict == "as promised", (each.where, measured)


def test_values_in_lists_and_structs_are_found(arrow: Any, path: Path) -> None:
    nested = {
        "list": arrow.array([[1, 2], None, [3, None]] * 50, arrow.list_(arrow.int64())),
        "struct": arrow.array([{"a": "x", "b": 1}, {"a": None, "b": 2}] * 75),
    }
    names = {"list.list.element": {}, "struct.a": {}, "struct.b": {}}
    options = {name: {"ndv": 100, "fpp": 0.01} for name in names}
    found = written(arrow, path, nested, bloom_filter_options=options)
    assert [each.parameters["column"] for each in found.filters] == list(names)
    assert [len(list(each.keys())) for each in found.filters if each.keys] == [150, 75, 150]
    for each in found.filters:
        assert measure(each, 500, seed=1).denied == 0


def test_values_are_those_of_a_part_of_an_array(arrow: Any) -> None:
    part = arrow.array([1, None, 2, 3, 4, 5], arrow.int64()).slice(2, 3)
    assert list(column_values._plain(part, "INT64", "here")) == [
        number.to_bytes(8, "little") for number in (2, 3, 4)
    ]


def test_values_of_unknown_encoding_are_refused_by_name(arrow: Any, path: Path) -> None:
    decimals = arrow.array([1, 2, 3]).cast(arrow.decimal128(20))
    found = written(arrow, path, {"sum": decimals})
    (each,) = found.filters
    with pytest.raises(ValueError, match="column 0 of row group 0 has values of decimal128"):
        measure(each, 10, seed=1)


def test_pages_that_cannot_be_read_are_an_error_of_the_file(
    arrow: Any, path: Path, rng: random.Random
) -> None:
    (each,) = written(arrow, path, {"a": [str(number) for number in range(400)]}).filters
    data = bytearray(path.read_bytes())
    data[4 : each.offset] = rng.randbytes(each.offset - 4)
    path.write_bytes(data)
    with pytest.raises(CorruptionError, match=r"file.parquet: column 0 of row group 0 cannot be"):
        measure(each, 10, seed=1)


def test_without_pyarrow_values_are_not_at_hand(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(column_values, "find_spec", lambda name: None)
    (each,) = found_in(path, file_of([[Column(b"c", filter_of([b"a"]))]])).filters
    assert each.keys is None
    assert each.reader.might_contain(b"a")
