"""Entries as text: whatever bytes they are, they read back; whatever is none is refused by line."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsm.cli import keys, records
from lsm.cli.records import FORMATS, Format, Forms

_TEXTS = st.text(max_size=12).filter(lambda text: not any("\ud800" <= c <= "\udfff" for c in text))
_DATA = st.one_of(st.binary(max_size=12), _TEXTS.map(str.encode))
_ENTRIES = st.lists(st.tuples(_DATA, _DATA), max_size=6)
_FORMS = st.builds(Forms, st.sampled_from(keys.FORMS), st.sampled_from(keys.FORMS))


@given(_ENTRIES, st.sampled_from(FORMATS), _FORMS)
def test_what_is_written_reads_back(
    entries: list[tuple[bytes, bytes]], format: Format, forms: Forms
) -> None:
    text = "".join(records.write(entries, format, forms)).encode()
    assert text.count(b"\n") == len(entries) + (format == "csv")
    assert list(records.read(text.splitlines(keepends=True), "x", format, forms)) == entries


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("{", "Expecting property name"),
        ('["key"]', "no object"),
        ('{"key": "a"}', "no object"),
        ('{"key": "a", "value": "b", "more": 1}', "no object"),
        ('{"key": 1, "value": "b"}', "a key or a value is a string"),
        ('{"key": {"base64": "=="}, "value": "b"}', "is not base64"),
        ('{"key": {"hex": "00"}, "value": "b"}', "a key or a value is a string"),
        ('{"key": "\\ud800", "value": "b"}', "surrogates not allowed"),
        ("[" * 100_000, ""),
        (b"\xff", ""),
    ],
)
def test_a_line_that_is_no_entry_is_named(line: str | bytes, what: str) -> None:
    good = b'{"key": "a", "value": "b"}\n'
    data = line if isinstance(line, bytes) else line.encode()
    read = records.read([good, b"\n", data], "file.jsonl", "jsonl", Forms())
    assert next(read) == (b"a", b"b")
    with pytest.raises(records.MalformedError, match=rf"file\.jsonl: line 3: .*{what}"):
        next(read)


@pytest.mark.parametrize(
    ("row", "what"),
    [
        ("a", "it has 1 columns, and the first row has 3"),
        ("a,b,both", "the column base64 says key, value or both"),
        ("a,==,value", "is not base64"),
        ('"a,b,', "unexpected end of data"),
        ('"a"b,c,', "expected after"),
    ],
)
def test_a_row_that_is_no_entry_is_named(row: str, what: str) -> None:
    lines = ["key,value,base64\n", "a,b,\n", row]
    read = records.read([line.encode() for line in lines], "file.csv", "csv", Forms())
    assert next(read) == (b"a", b"b")
    with pytest.raises(records.MalformedError, match=rf"file\.csv: line 3: .*{what}"):
        next(read)


def test_csv_of_others_is_read() -> None:
    data = b'\xef\xbb\xbfkey,value\r\na,"two\nlines"\r\n"quoted ""key""",b\r\n'
    found = list(records.read(data.splitlines(keepends=True), "x", "csv", Forms()))
    assert found == [(b"a", b"two\nlines"), (b'quoted "key"', b"b")]
    with pytest.raises(records.MalformedError, match="x: line 1: the first row is key,value"):
        list(records.read([b"a,b\n"], "x", "csv", Forms()))


def test_text_is_text_and_the_rest_is_base64() -> None:
    entry = [("naïve".encode(), b"\xff")]
    assert json.loads("".join(records.write(entry, "jsonl", Forms()))) == {
        "key": "naïve",
        "value": {"base64": "/w=="},
    }
    assert "".join(records.write(entry, "csv", Forms())) == "key,value,base64\nnaïve,/w==,value\n"
