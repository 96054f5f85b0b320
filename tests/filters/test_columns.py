"""Columns in the place of keys: the same filters and answers as lists of their values' bytes."""

from __future__ import annotations

import gc
import struct
import sys
from array import array
from collections.abc import Callable, Iterator
from itertools import pairwise
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import filters
from filters import PackedKeys, arrow_structs, kernels
from filters.answer_column import AnswerColumn
from filters.columns import one_by_one
from tests.effort import examples
from tests.filters.arrow_producer import Producer
from tests.filters.cases import (
    Case,
    every_family_of_both_kinds,
    every_growing_family,
    needs_native,
    outcome,
    twins,
)
from tests.interpreter import fresh

pa = pytest.importorskip("pyarrow")

SEED, SALT = 0x0123_4567_89AB_CDEF, 0xFEDC_BA98_7654_3210
VALUES = ["", "a", "bär", "x" * 12, "y" * 13, "long " * 20, "a\0", "\0", "€"] + [
    f"{i:x}" * (i % 9) for i in range(400)
]
NUMBERS = [0, 1, 2, 127, 100, 5, 7, 3] * 20


def secrets(case: Case) -> dict[str, int]:
    return {"seed": SEED, "salt": SALT} if case.salted else {}


def with_nulls(values: list[Any]) -> list[Any]:
    return [None if i % 7 in (2, 3) else each for i, each in enumerate(values)]


TEXTS = {
    "string": pa.string(),
    "large string": pa.large_string(),
    "string view": pa.string_view(),
    "binary": pa.binary(),
    "large binary": pa.large_binary(),
    "binary view": pa.binary_view(),
    "dictionary": pa.dictionary(pa.int16(), pa.string()),
    "dictionary of views": pa.dictionary(pa.uint32(), pa.large_string()),
}
INTEGERS = [
    *(pa.int8(), pa.uint8(), pa.int16(), pa.uint16()),
    *(pa.int32(), pa.uint32(), pa.int64(), pa.uint64()),
]


def arrow(name: str, values: list[Any]) -> Any:
    """An array of this type: of texts, or of their bytes."""
    if "binary" in name:
        values = [None if each is None else each.encode() for each in values]
    return pa.array(values, TEXTS[name])


def bytes_of(values: list[Any]) -> list[bytes]:
    return [each.encode() for each in values if each is not None]


def slices(column: Any) -> Iterator[tuple[slice, Any]]:
    """Whole, and from places that are no whole byte of a bitmap."""
    for part in (
        slice(None),
        slice(1, None),
        slice(5, 9),
        slice(8, 80),
        slice(13, 13),
        slice(3, 300),
    ):
        yield part, column[part]


@pytest.mark.parametrize("name", TEXTS)
def test_arrow_texts_are_their_bytes(kernel: ModuleType, name: str) -> None:
    cls = kernel.BlockedBloomFilter
    for part, column in slices(arrow(name, VALUES)):
        keys = bytes_of(VALUES[part])
        assert list(one_by_one(column)) == keys
        built = cls.build(column, seed=SEED, salt=SALT)
        assert built == cls.build(keys, seed=SEED, salt=SALT)
        assert built.might_contain_many(column) == [True] * len(keys)
        out = bytearray(len(keys))
        assert cls.build([]).might_contain_many(column, out) is out
        assert not any(out)


@pytest.mark.parametrize("name", TEXTS)
def test_nulls_are_counted_or_skipped(kernel: ModuleType, name: str) -> None:
    cls, values = kernel.BlockedBloomFilter, with_nulls(VALUES)
    for part, column in slices(arrow(name, values)):
        rows = values[part]
        keys, nulls = bytes_of(rows), rows.count(None)
        built = cls.build(column, seed=SEED, salt=SALT, nulls="skip")
        assert built == cls.build(keys, seed=SEED, salt=SALT)
        present = [each is not None for each in rows]
        assert built.might_contain_many(column, nulls="skip") == present
        answers = built.might_contain_many(column, "arrow", nulls="skip")
        assert list(answers) == [True if there else None for there in present]
        if nulls:
            says = f'{nulls} of {len(rows)} values are null, .*nulls="skip"'
            for use in (cls.build, built.might_contain_many, built.add_many):
                with pytest.raises(ValueError, match=says):
                    use(column)


@pytest.mark.parametrize("kind", INTEGERS, ids=str)
def test_arrow_integers_are_their_little_endian_bytes(kernel: ModuleType, kind: Any) -> None:
    cls, width = kernel.CuckooFilter, kind.bit_width // 8
    column = pa.array(NUMBERS, kind)
    keys = [number.to_bytes(width, "little") for number in NUMBERS]
    assert list(one_by_one(column[3:])) == keys[3:]
    built = cls.build(column, fingerprint_bits=32, seed=SEED, salt=SALT)
    assert built == cls.build(keys, fingerprint_bits=32, seed=SEED, salt=SALT)
    assert list(one_by_one(pa.array([-1], pa.int32()))) == [b"\xff" * 4]


def test_other_arrow_columns(kernel: ModuleType) -> None:
    cases = [
        (pa.array([b"abc", b"def"], pa.binary(3)), [b"abc", b"def"]),
        (pa.array([b"", b""], pa.binary(0)), [b"", b""]),
        (pa.chunked_array([["a", "b"], [], ["c"]]), [b"a", b"b", b"c"]),
        (pa.chunked_array([], pa.string()), []),
        (pa.array([], pa.string_view()), []),
        (pa.table({"key": ["a", "b", "c"]}), [b"a", b"b", b"c"]),
        (pa.table({"key": ["a", "b", "c"]}).slice(1, 1), [b"b"]),
        (pa.record_batch({"key": [b"a", b"b"]})[1:], [b"b"]),
        (pa.array([7, 8, 7]).dictionary_encode(), [n.to_bytes(8, "little") for n in (7, 8, 7)]),
    ]
    for column, keys in cases:
        assert list(one_by_one(column)) == keys
        built = kernel.XorFilter.build(column, seed=SEED, salt=SALT)
        assert built == kernel.XorFilter.build(keys, seed=SEED, salt=SALT)
        assert built.might_contain_many(column) == [True] * len(keys)


def test_nulls_of_a_dictionary_are_nulls(kernel: ModuleType) -> None:
    codes = pa.array([0, 1, None, 2, 1, 0], pa.int8())
    column = pa.DictionaryArray.from_arrays(codes, pa.array(["a", None, "c"]))
    assert list(one_by_one(column, "skip")) == [b"a", b"c", b"a"]
    built = kernel.XorFilter.build(column, nulls="skip")
    assert built.might_contain_many(column, nulls="skip") == [True, False, False, True, False, True]
    with pytest.raises(ValueError, match="3 of 6 values are null"):
        kernel.XorFilter.build(column)
    nothing = pa.nulls(3)
    assert built.might_contain_many(nothing, nulls="skip") == [False] * 3
    with pytest.raises(ValueError, match="3 of 3 values are null"):
        built.might_contain_many(nothing)


@every_family_of_both_kinds
@pytest.mark.parametrize("name", ["string", "string view", "dictionary"])
def test_every_family_takes_columns_in_chunks(kernel: ModuleType, case: Case, name: str) -> None:
    values = with_nulls(VALUES)
    cuts = [0, 1, 1, 130, 131, 300, len(values)]
    column = pa.chunked_array([arrow(name, values[one:two]) for one, two in pairwise(cuts)])
    keys = bytes_of(values)
    built = case.build(kernel, column, nulls="skip", **secrets(case))
    assert built == case.build(kernel, keys, **secrets(case))
    whole = pa.chunked_array([arrow(name, VALUES[:100]), arrow(name, VALUES[100:])])
    assert built.might_contain_many(whole) == built.might_contain_many(VALUES)
    if hasattr(case.cls(kernel), "digests"):
        seed = {"seed": SEED} if case.salted else {}
        salt = {"salt": SALT} if case.salted else {}
        digests = case.cls(kernel).digests(**seed)
        digests.add_many(column, nulls="skip")
        assert len(digests) == len(keys)
        assert case.build(kernel, digests, **salt) == built


@every_growing_family
def test_columns_are_added(kernel: ModuleType, case: Case) -> None:
    one, two = (case.cls(kernel).with_capacity(1000, seed=SEED, salt=SALT) for _ in range(2))
    values = with_nulls(sorted(set(VALUES)))
    one.add_many(pa.array(values), nulls="skip")
    two.add_many(bytes_of(values))
    assert one == two
    before = one.to_bytes()
    with pytest.raises(ValueError, match="values are null"):
        one.add_many(pa.array(values))
    assert one.to_bytes() == before


@examples(60)
@given(
    rows=st.lists(st.none() | st.text(max_size=20), max_size=40),
    cuts=st.lists(st.integers(0, 40), max_size=3),
    name=st.sampled_from(sorted(TEXTS)),
    start=st.integers(0, 12),
)
def test_any_rows(rows: list[str | None], cuts: list[int], name: str, start: int) -> None:
    ends = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    chunks = [arrow(name, rows[one:two]) for one, two in pairwise(ends)]
    column, wanted = pa.chunked_array(chunks, TEXTS[name])[start:], rows[start:]
    for each in kernels.available():
        cls = kernels.load(each).CuckooFilter
        built = cls.build(column, nulls="skip", seed=1, salt=2)
        assert built == cls.build(bytes_of(wanted), seed=1, salt=2)
        assert built.might_contain_many(column, nulls="skip") == [row is not None for row in wanted]


# ---- arrays of NumPy, and of nobody in particular ----


def buffers() -> dict[str, tuple[Any, list[bytes]]]:
    numbers = [3, 1, 2**15 - 1]
    found: dict[str, tuple[Any, list[bytes]]] = {
        "S": (np.array([b"a", b"", b"bbb", b"a\0b"]), [b"a", b"", b"bbb", b"a\0b"]),
        "S of nothing": (np.array([b"", b""], "S5"), [b"", b""]),
        "U": (np.array(["a", "", "bär", "😀"]), [b"a", b"", "bär".encode(), "😀".encode()]),
        "U big-endian": (np.array(["a", "bär"]).astype(">U3"), [b"a", "bär".encode()]),
        "V": (np.array([b"ab", b"c"], "V2"), [b"ab", b"c\0"]),
        "objects": (np.array(["a", b"b"], object), [b"a", b"b"]),
        "every second": (np.array([b"a", b"b", b"c"])[::2], [b"a", b"c"]),
        "backwards": (np.arange(3, dtype="<i4")[::-1], [bytes((i, 0, 0, 0)) for i in (2, 1, 0)]),
        "a field": (np.array([(1, b"a"), (2, b"b")], "i4,S2")["f1"], [b"a", b"b"]),
        "none at all": (np.array([], "U3"), []),
        "no numbers": (np.array([], "i8"), []),
        "array.array": (array("q", numbers), [n.to_bytes(8, "little") for n in numbers]),
    }
    for kind in ("<i2", ">i2", "<u4", ">u8", "i8"):
        width = np.dtype(kind).itemsize
        found[kind] = (np.array(numbers, kind), [n.to_bytes(width, "little") for n in numbers])
    return found


@pytest.mark.parametrize("name", buffers())
def test_arrays_are_columns(kernel: ModuleType, name: str) -> None:
    column, keys = buffers()[name]
    assert [each.encode() if isinstance(each, str) else each for each in one_by_one(column)] == keys
    for cls in (kernel.BlockedBloomFilter, kernel.SurfFilter):
        built = cls.build(column, seed=SEED, salt=SALT)
        assert built == cls.build(keys, seed=SEED, salt=SALT)
        assert built.might_contain_many(column) == [True] * len(keys)


def test_new_strings_of_numpy_are_keys(kernel: ModuleType) -> None:
    dtypes = pytest.importorskip("numpy.dtypes")
    column = np.array(["a", "bär"], dtype=dtypes.StringDType())
    assert kernel.XorFilter.build(column).might_contain_many(["a", "bär"]) == [True, True]


@pytest.mark.parametrize("point", [0xD800, 0xDFFF, 0x110000, 0xFFFFFFFF])
def test_texts_of_an_array_that_have_no_utf_8_are_refused(kernel: ModuleType, point: int) -> None:
    column = np.array([*VALUES, "ab", "cd"])
    column.view(np.uint32).reshape(len(column), -1)[-2, 1] = point
    built = kernel.ClassicBloomFilter.build(["key"])
    for use in (built.build, built.might_contain_many, built.add_many, built.digests().add_many):
        with pytest.raises(UnicodeError, match="lone surrogate|not in range"):
            use(column)


@examples(60)
@given(
    rows=st.lists(st.text(max_size=12), min_size=1, max_size=30),
    order=st.sampled_from("<>"),
    step=st.integers(1, 3),
)
def test_any_texts_of_an_array(rows: list[str], order: str, step: int) -> None:
    column = np.array(rows).astype(np.array(rows).dtype.newbyteorder(order))[::step]
    keys = [row.rstrip("\0").encode() for row in rows[::step]]
    for each in kernels.available():
        cls = kernels.load(each).CuckooFilter
        assert cls.build(column, seed=1, salt=2) == cls.build(keys, seed=1, salt=2)
        assert cls.build(column).might_contain_many(column) == [True] * len(keys)


def test_what_a_mask_hides_is_no_key(kernel: ModuleType) -> None:
    masked = np.ma.array([b"a", b"b", b"c"], mask=[False, True, False])
    built = kernel.CuckooFilter.build(masked, nulls="skip", fingerprint_bits=32)
    assert built.might_contain_many([b"a", b"b", b"c"]) == [True, False, True]
    assert built.might_contain_many(masked, nulls="skip") == [True, False, True]


class Series:
    """As pandas has them where there is no pyarrow."""

    def __init__(self, values: list[Any], dtype: Any = object):
        self._values = np.array(values, dtype)

    def __iter__(self) -> Iterator[Any]:
        raise AssertionError("a column is not asked for one value after the other")

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        raise ImportError("pyarrow is required")

    def to_numpy(self) -> Any:
        return self._values


def test_a_series_turns_into_an_array(kernel: ModuleType) -> None:
    cls = kernel.CuckooFilter
    built = cls.build(Series(["a", None, float("nan"), b"b"]), nulls="skip", fingerprint_bits=32)
    assert built.num_keys == 2
    rows = Series(["a", None, "zz", "b"])
    assert built.might_contain_many(rows, nulls="skip") == [True, False, False, True]
    with pytest.raises(TypeError, match='not NoneType: .*nulls="skip"'):
        built.might_contain_many(rows)
    numbers = cls.build(Series([1, 2], "<i4"))
    assert numbers.might_contain(b"\1\0\0\0")


@pytest.mark.parametrize(
    ("column", "error", "says"),
    [
        (np.zeros(3), TypeError, "values of format 'd' are no keys.*PackedKeys"),
        (np.zeros(3, bool), TypeError, r"format '\?' are no keys"),
        (np.zeros(3, "M8[s]"), TypeError, r"format '<M8\[s\]' are no keys.*view\('i8'\)"),
        (np.zeros(3, "i4,i4"), TypeError, "are no keys"),
        (np.zeros(3, "u1"), TypeError, "not as one ndarray: pass a single key in a list"),
        (np.zeros((2, 2), "i8"), TypeError, "one row of keys, and this array has 2 dimensions"),
        (np.int64(7), TypeError, "this array has 0 dimensions"),
        (array("d", [1]), TypeError, "format 'd' are no keys"),
        (np.array([1, 2], object), TypeError, "a key is bytes-like or str, not int"),
        (pa.array([1.5]), TypeError, "format 'g' has no keys.*cast"),
        (pa.array([True]), TypeError, "format 'b' has no keys"),
        (pa.array([[1]]), TypeError, r"format '\+l' has no keys"),
        (pa.array([1], pa.timestamp("s")), TypeError, "format 'tss:' has no keys"),
        (pa.array([1.5]).dictionary_encode(), TypeError, "format 'g' has no keys"),
        (pa.table({"a": [1], "b": ["x"]}), TypeError, r"table of 2 columns \['a', 'b'\]: pass one"),
    ],
    ids=lambda each: repr(each)[:30],
)
def test_columns_that_have_no_keys_are_refused_with_advice(
    kernel: ModuleType, column: Any, error: type[Exception], says: str
) -> None:
    built = kernel.ClassicBloomFilter.build([b"key"])
    for use in (built.build, built.might_contain_many, built.add_many, built.digests().add_many):
        with pytest.raises(error, match=says):
            use(column)


def test_nulls_are_errors_or_skipped_and_nothing_else(kernel: ModuleType) -> None:
    built = kernel.ClassicBloomFilter.build(["a", None], nulls="skip")
    assert built.might_contain_many(["a", None, "zz"], nulls="skip") == [True, False, False]
    assert built.might_contain_many(iter(["a", None]), nulls="skip") == [True, False]
    for use in (built.build, built.might_contain_many, built.add_many, built.digests().add_many):
        with pytest.raises(ValueError, match='nulls=\'drop\': allowed are "error" and "skip"'):
            use(["a"], nulls="drop")
        with pytest.raises(TypeError, match='not NoneType: .*nulls="skip"'):
            use(["a", None])


# ---- answers as a column ----


def test_answers_are_an_arrow_array(kernel: ModuleType) -> None:
    built = kernel.CuckooFilter.build(VALUES, fingerprint_bits=32)
    for count in (0, 1, 7, 8, 9, 63, 64, 65, 300):
        asked = [each if i % 3 else each + "?" for i, each in enumerate(VALUES[:count])]
        answers = built.might_contain_many(pa.array(asked, pa.string()), "arrow")
        wanted = built.might_contain_many(asked)
        taken = pa.array(answers)
        assert (taken.type, taken.null_count) == (pa.bool_(), 0)
        taken.validate(full=True)
        assert taken.to_pylist() == list(answers) == wanted
        assert np.asarray(answers).tolist() == wanted
        assert np.asarray(answers).dtype == bool
        assert len(answers) == count
        assert answers[1:] == wanted[1:]
    assert repr(answers) == f"<AnswerColumn: {sum(wanted)} of 300 maybe>"


def test_answers_have_nulls_where_keys_have(kernel: ModuleType) -> None:
    built = kernel.CuckooFilter.build(VALUES, fingerprint_bits=32)
    asked = with_nulls([each + "?" * (i % 2) for i, each in enumerate(VALUES)])
    answers = built.might_contain_many(pa.array(asked), "arrow", nulls="skip")
    taken = pa.array(answers)
    taken.validate(full=True)
    assert taken.null_count == asked.count(None)
    assert taken.to_pylist() == [
        None if each is None else built.might_contain(each) for each in asked
    ]
    assert np.asarray(answers).tolist() == [bool(each) for each in taken.to_pylist()]


def test_answers_live_as_long_as_somebody_has_them(kernel: ModuleType) -> None:
    answers = kernel.XorFilter.build(["a"]).might_contain_many(["a"] * 1000, "arrow")
    unread = answers.__arrow_c_array__()
    taken = pa.array(answers)
    del answers
    gc.collect()
    assert taken.to_pylist() == [True] * 1000
    assert arrow_structs._ANSWERED
    del taken, unread
    gc.collect()
    assert not arrow_structs._ANSWERED
    assert not arrow_structs._IN_CAPSULES


# ---- arrays that lie ----

LISTED = struct.pack("<4i", 0, 3, 3, 8)
GOOD = b"onethree"


def view(length: int, *rest: int) -> bytes:
    return struct.pack("<i4s2i", length, b"long", *rest)


def lies(made: Producer) -> dict[str, tuple[Any, str]]:
    """Columns that cannot be right, and what is said about each."""
    schema, array_of = made.schema, made.array
    text = schema("u")
    views = schema("vu")
    coded = schema("c", dictionary="u")
    values = array_of(3, None, LISTED, GOOD)
    long = b"a value of more than twelve bytes"
    sizes = struct.pack("<q", len(long))
    at_fault = "its producer is at fault"
    return {
        "length": (made.column(text, array_of(-1, None, LISTED, GOOD)), "claims -1 values"),
        "offset": (made.column(text, array_of(3, None, LISTED, GOOD, offset=-1)), "from -1 on"),
        "huge": (made.column(text, array_of(2**62, None, LISTED, GOOD)), at_fault),
        "both huge": (
            made.column(text, array_of(2**62, None, LISTED, GOOD, offset=2**62)),
            at_fault,
        ),
        "buffers": (made.column(text, array_of(3, None, LISTED)), "has 2 buffers, expected are 3"),
        "no buffers": (made.column(text, array_of(3)), "has 0 buffers, expected are 3"),
        "no offsets": (made.column(text, array_of(3, None, None, GOOD)), "buffer 1 of .* is null"),
        "no data": (made.column(text, array_of(3, None, LISTED, None)), "buffer 2 of .* is null"),
        "offsets fall": (
            made.column(text, array_of(3, None, struct.pack("<4i", 0, 5, 3, 8), GOOD)),
            "packed key 1 claims bytes 5 to 3",
        ),
        "offsets leap": (
            made.column(text, array_of(3, None, struct.pack("<4i", 0, 3, 99, 8), GOOD)),
            "packed key 1 claims bytes 3 to 99",
        ),
        "negative": (
            made.column(text, array_of(3, None, struct.pack("<4i", -5, 3, 3, 8), GOOD)),
            "claims bytes -5 to 8",
        ),
        "negative end": (
            made.column(text, array_of(3, None, struct.pack("<4i", 0, 3, 3, -8), GOOD)),
            "claims bytes 0 to -8",
        ),
        "negative within": (
            made.column(text, array_of(3, None, struct.pack("<4i", 0, -3, 3, 8), GOOD)),
            "packed key 0 claims bytes 0 to -3",
        ),
        "nulls nowhere": (
            made.column(text, array_of(3, None, LISTED, GOOD, null_count=2)),
            "claims 2 nulls, and does not say which",
        ),
        "view length": (
            made.column(views, array_of(1, None, view(-1, 0, 0), long, sizes)),
            "view at 0 claims -1 bytes",
        ),
        "view buffer": (
            made.column(views, array_of(1, None, view(20, 1, 0), long, sizes)),
            "in buffer 1, and the buffers have",
        ),
        "view before": (
            made.column(views, array_of(1, None, view(20, 0, -1), long, sizes)),
            "20 bytes from -1 on",
        ),
        "view beyond": (
            made.column(views, array_of(1, None, view(20, 0, len(long) - 19), long, sizes)),
            "claims 20 bytes from",
        ),
        "view without buffers": (
            made.column(views, array_of(1, None, view(20, 0, 0), None)),
            "the buffers have",
        ),
        "views without sizes": (made.column(views, array_of(1, None)), "has 1 buffers"),
        "view sizes": (
            made.column(views, array_of(1, None, view(20, 0, 0), long, struct.pack("<q", -1))),
            r"claims buffers of \[-1\] bytes",
        ),
        "code": (
            made.column(coded, array_of(2, None, b"\0\3", dictionary=values)),
            "key 1 claims to be value 3 of 3",
        ),
        "negative code": (
            made.column(coded, array_of(2, None, b"\0\xff", dictionary=values)),
            "key 1 claims to be value -1 of 3",
        ),
        "no dictionary": (made.column(coded, array_of(2, None, b"\0\0")), "has no dictionary"),
        "huge code": (
            made.column(
                schema("L", dictionary="u"), array_of(1, None, b"\xff" * 8, dictionary=values)
            ),
            f"key 0 claims to be value {2**64 - 1} of 3",
        ),
        "table": (
            made.column(schema("+s", children=["u"]), array_of(4, None, children=[values])),
            "claims rows up to 4, and its column has 3",
        ),
        "table of none": (
            made.column(schema("+s", children=["u"]), array_of(3, None)),
            "table has 0 columns",
        ),
        "null rows": (
            made.column(
                schema("+s", children=["u"]),
                array_of(3, b"\5", children=[values], null_count=1),
            ),
            "rows that are null as a whole",
        ),
    }


@pytest.mark.parametrize("name", lies(Producer()))
def test_arrays_that_lie_are_refused_and_released(kernel: ModuleType, name: str) -> None:
    built = kernel.ClassicBloomFilter.build([b"key"])
    for use in (built.build, built.might_contain_many, built.add_many, built.digests().add_many):
        made = Producer()
        table = lies(made)
        column, says = table[name]
        with pytest.raises(ValueError, match=says):
            use(column)
        gc.collect()
        position = 2 * list(table).index(name)
        assert sorted(made.released) == [position, position + 1]


@pytest.mark.parametrize("form", ["", "q", "w:", "w:-1", "w:x", "w:9999999999", "+m", "tdD", "é"])
def test_formats_that_are_none_of_keys_are_refused_and_released(form: str) -> None:
    made = Producer()
    with pytest.raises(TypeError, match="has no keys"):
        one_by_one(made.column(made.schema(form), made.array(3, None, LISTED, GOOD)))
    gc.collect()
    assert made.is_even


def test_arrays_that_do_not_lie_are_read_and_released_once(kernel: ModuleType) -> None:
    made = Producer()
    text = made.schema("u")
    rows = made.array(3, b"\5", LISTED, GOOD, null_count=-1)
    built = kernel.CuckooFilter.build(made.column(text, rows), nulls="skip", fingerprint_bits=32)
    assert built.num_keys == 2
    assert built.might_contain_many([b"one", b"three", b""]) == [True, True, False]
    gc.collect()
    assert made.is_even


def test_an_array_that_was_read_has_nothing_any_more() -> None:
    made = Producer()
    column = made.column(made.schema("u"), made.array(3, None, LISTED, GOOD))
    keys = one_by_one(column)
    with pytest.raises(ValueError, match="'arrow_schema' was read before"):
        one_by_one(column)
    assert list(keys) == [b"one", b"", b"three"]
    del keys
    gc.collect()
    assert made.is_even


def test_streams_are_released_once_however_they_end(kernel: ModuleType) -> None:
    made = Producer()
    arrays = [made.array(3, None, LISTED, GOOD) for _ in range(3)]
    built = kernel.XorFilter.build(made.stream(made.schema("u"), arrays))
    assert built.num_keys == 3
    gc.collect()
    assert (made.made, made.is_even) == (5, True)

    made = Producer()
    failing = made.stream(made.schema("u"), [made.array(3, None, LISTED, GOOD)], 5, b"no more")
    with pytest.raises(OSError, match="stream of keys failed: no more"):
        built.might_contain_many(failing)
    gc.collect()
    assert (made.made, made.is_even) == (3, True)

    made = Producer()
    bad = made.array(3, None, LISTED)
    with pytest.raises(ValueError, match="has 2 buffers"):
        built.might_contain_many(made.stream(made.schema("u"), [bad]))
    gc.collect()
    assert (made.made, made.is_even) == (3, True)


@needs_native
@pytest.mark.parametrize("name", lies(Producer()))
def test_kernels_say_the_same_of_lies(name: str) -> None:
    told = []
    for kernel in twins():
        built = kernel.BlockedBloomFilter.build([b"key"])
        told.append(outcome(built.might_contain_many, lies(Producer())[name][0]))
    assert told[0] == told[1]


@needs_native
@every_family_of_both_kinds
def test_kernels_say_the_same_of_columns(case: Case) -> None:
    columns: list[Callable[[], Any]] = [
        lambda: arrow("string view", with_nulls(VALUES)),
        lambda: np.zeros(3),
        lambda: pa.table({"a": [1], "b": [2]}),
        lambda: np.array(["a", None], object),
    ]
    for column in columns:
        told = []
        for kernel in twins():
            built = case.build(kernel, [b"key"], **secrets(case))
            told.append([outcome(use, column()) for use in (built.build, built.might_contain_many)])
        assert told[0] == told[1]


# ---- libraries that may not be there, and whose absence matters to nobody ----


def test_no_library_is_imported_for_a_column() -> None:
    code = """
import sys
from array import array
from filters import BlockedBloomFilter
f = BlockedBloomFilter.build(["a", None], nulls="skip")
f.might_contain_many(array("q", [1]))
print(sorted({"numpy", "pyarrow", "pandas", "polars"} & set(sys.modules)))
"""
    child = fresh(code)
    assert child.stdout == "[]\n", child.stderr


def test_polars_series_are_columns(kernel: ModuleType) -> None:
    pl = pytest.importorskip("polars")
    built = kernel.CuckooFilter.build(pl.Series(VALUES), seed=SEED, salt=SALT)
    assert built == kernel.CuckooFilter.build(VALUES, seed=SEED, salt=SALT)
    numbers = pl.Series([1, 2], dtype=pl.Int16)
    assert list(one_by_one(numbers)) == [b"\1\0", b"\2\0"]
    answers = pl.Series(built.might_contain_many(pl.Series(VALUES), "arrow"))
    assert answers.to_list() == [True] * len(VALUES)


def test_polars_takes_answers_as_a_column(monkeypatch: pytest.MonkeyPatch) -> None:
    pl = pytest.importorskip("polars")
    built = filters.BlockedBloomFilter.build(["a"])
    answers = built.might_contain_many(["a", None], "arrow", nulls="skip")
    monkeypatch.delattr(AnswerColumn, "__iter__")
    monkeypatch.delattr(AnswerColumn, "__getitem__")
    taken = pl.Series(answers)
    assert (taken.dtype, taken.to_list()) == (pl.Boolean, [True, None])


def test_pandas_series_are_columns(kernel: ModuleType) -> None:
    pd = pytest.importorskip("pandas")
    built = kernel.CuckooFilter.build(pd.Series(VALUES), seed=SEED, salt=SALT)
    assert built == kernel.CuckooFilter.build(VALUES, seed=SEED, salt=SALT)
    rows = pd.Series(["a", None, "zz"])
    assert built.might_contain_many(rows, nulls="skip")[:2] == [True, False]


def test_duckdb_relations_are_columns(kernel: ModuleType) -> None:
    duckdb = pytest.importorskip("duckdb")
    relation = duckdb.sql("select 'key' || i as key from range(100) t(i)")
    built = kernel.CuckooFilter.build(relation, seed=SEED, salt=SALT)
    assert built == kernel.CuckooFilter.build([f"key{i}" for i in range(100)], seed=SEED, salt=SALT)


def test_a_packed_buffer_has_no_nulls(kernel: ModuleType) -> None:
    built = kernel.XorFilter.build(PackedKeys(b"onetwo", width=3), nulls="skip")
    asked = PackedKeys(b"onetwo", width=3)
    assert built.might_contain_many(asked, nulls="skip") == [True, True]
    assert list(built.might_contain_many(asked, "arrow")) == [True, True]


@pytest.mark.skipif(sys.byteorder == "big", reason="its arrays are big-endian")
def test_nothing_is_copied() -> None:
    data = array("q", [1, 2])
    keys = one_by_one(data)
    data[0] = 5
    assert list(keys) == [b"\5" + bytes(7), b"\2" + bytes(7)]
