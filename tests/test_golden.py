"""What was written once opens for ever, and the same keys still give the same bytes."""

from __future__ import annotations

import json
from types import ModuleType
from typing import Any

import pytest

import policies
from filters.families import FAMILIES
from tests.filters.cases import class_of
from tests.golden import write

RECORDS = {path.stem: json.loads(path.read_text()) for path in write.HERE.glob("*.json")}
FILES = [(writer, family) for writer, known in RECORDS.items() for family in known]
every_file = pytest.mark.parametrize(("writer", "family"), FILES)
every_block = pytest.mark.parametrize(
    ("writer", "family"), [each for each in FILES if FAMILIES[each[1]].policy]
)


def golden(writer: str, name: str) -> bytes:
    return (write.HERE / writer / name).read_bytes()


@every_file
def test_filters_still_open_and_answer(kernel: ModuleType, writer: str, family: str) -> None:
    data = golden(writer, f"{family}.filter")
    read: Any = class_of(kernel, family).from_bytes(data)
    assert all(read.might_contain_many(write.PRESENT))
    assert write.answers(read) == RECORDS[writer][family]["filter"]
    assert read.to_bytes() == data


@every_file
def test_the_same_bytes_are_written_today(kernel: ModuleType, writer: str, family: str) -> None:
    name = kernel.__name__.rpartition(".")[2]
    assert write.build(name, family).to_bytes() == golden(writer, f"{family}.filter")


@every_block
def test_blocks_still_open_and_answer(writer: str, family: str) -> None:
    block = golden(writer, f"{family}.block")
    reader = policies.open_block(block)
    assert all(reader.might_contain_many(write.PRESENT))
    assert write.answers(reader) == RECORDS[writer][family]["block"]
    described = policies.describe_block(block)
    assert described.policy == family
    assert described.num_keys == len(write.PRESENT)
    size = RECORDS[writer][family]["size"]
    assert {name: described.params[name] for name in size} == size


def test_every_family_has_golden_files() -> None:
    assert "python" in RECORDS
    for known in RECORDS.values():
        assert set(known) == set(FAMILIES) == set(write.SIZING_PARAMETERS)
