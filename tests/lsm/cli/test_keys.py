"""Bytes as text: what is shown is printable, reads back, and is shown of no other bytes."""

from __future__ import annotations

import os

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsm.cli import keys
from lsm.cli.keys import FORMS, Form


@given(st.binary(max_size=40))
def test_what_is_shown_reads_back(data: bytes) -> None:
    forms: dict[Form, Form] = {"text": "escaped", "escaped": "escaped"}
    for form in FORMS:
        shown = keys.show(data, form)
        assert shown.isprintable()
        assert keys.parse(shown, forms.get(form, form)) == data


@given(st.text(max_size=20))
def test_printable_text_is_shown_as_it_is(text: str) -> None:
    if text.isprintable() and "\\" not in text:
        assert keys.show(text.encode(), "text") == text


def test_a_word_of_the_command_line_is_its_bytes() -> None:
    for data in (b"plain", b"\xff\xfe", b"C:\\x41", "Zoë".encode()):
        assert keys.parse(os.fsdecode(data), "text") == data


@pytest.mark.parametrize(
    ("given", "form"),
    [("0", "hex"), ("0g", "hex"), ("a", "base64"), ("ä", "base64"), ("\\x4", "escaped")],
)
def test_what_is_not_of_the_form_is_refused(given: str, form: Form) -> None:
    with pytest.raises(click.BadParameter, match=f"is not {form}: "):
        keys.parse(given, form)
