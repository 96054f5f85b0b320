"""Filters as Python has it of a set."""

from __future__ import annotations

import inspect
from types import ModuleType
from typing import Any

import pytest

from tests.filters.cases import (
    Case,
    every_case_of_both_kinds,
    every_family_of_both_kinds,
    needs_native,
    outcome,
    twins,
)

KEYS = [b"key%d" % i for i in range(200)]
OTHERS = [b"other%d" % i for i in range(200)]

# ---- in ----


@every_case_of_both_kinds
def test_in_answers_as_might_contain_does(kernel: ModuleType, case: Case) -> None:
    built = case.build(kernel, KEYS)
    forms = [bytes, bytes.decode, bytearray, memoryview]
    for key in KEYS[:40] + OTHERS[:40]:
        for form in forms:
            answer = form(key) in built
            assert answer is built.might_contain(form(key)) is built.might_contain(key)
    assert all(key in built for key in KEYS)
    assert "grüße" * 99 in case.build(kernel, ["grüße" * 99])


@every_family_of_both_kinds
@pytest.mark.parametrize("wrong", [None, 3, 2.5, "\ud800", ["key"], memoryview(b"abcd")[::2]])
def test_in_refuses_what_might_contain_refuses(kernel: ModuleType, case: Case, wrong: Any) -> None:
    built = case.build(kernel, KEYS)
    assert outcome(lambda: wrong in built) == outcome(lambda: built.might_contain(wrong))


@every_family_of_both_kinds
def test_in_says_that_it_means_maybe(kernel: ModuleType, case: Case) -> None:
    assert "maybe" in str(inspect.getdoc(case.cls(kernel).__contains__))


@needs_native
@every_family_of_both_kinds
def test_in_says_maybe_of_what_was_never_built(case: Case) -> None:
    cls = case.cls(twins()[1])
    assert b"key" in cls.__new__(cls)
