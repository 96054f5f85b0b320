"""What was written once opens for ever, and the same keys still give the same bytes."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

import policies
from filters.families import every
from tests.filters.cases import class_of
from tests.golden import write

KNOWN = write.KNOWN
every_filter = pytest.mark.parametrize("family", KNOWN)
every_block = pytest.mark.parametrize(
    ("family", "name"), [(family, name) for family in KNOWN for name in KNOWN[family]["blocks"]]
)


def golden(name: str) -> bytes:
    return (write.FILES / name).read_bytes()


def reader_of(kernel: ModuleType, family: str, data: bytes) -> Any:
    return class_of(kernel, family).from_bytes(data)


@every_filter
def test_filters_still_open_and_answer(kernel: ModuleType, family: str) -> None:
    data = golden(f"{family}.filter")
    read = reader_of(kernel, family, data)
    assert all(read.might_contain_many(write.PRESENT))
    assert write.answers(read) == KNOWN[family]["filter"]
    assert read.to_bytes() == data


@every_filter
def test_the_same_bytes_are_written_today(kernel: ModuleType, family: str) -> None:
    assert write.build(kernel, family).to_bytes() == golden(f"{family}.filter")


@every_block
def test_blocks_still_open_and_answer(family: str, name: str) -> None:
    block = golden(name)
    reader = policies.open_block(block)
    assert all(reader.might_contain_many(write.PRESENT))
    assert write.answers(reader) == KNOWN[family]["blocks"][name]
    described = policies.describe_block(block)
    assert described.policy == family
    assert described.num_keys == len(write.PRESENT)
    size = KNOWN[family]["size"]
    assert {name: described.params[name] for name in size} == size


@every_block
def test_both_kernels_read_the_filter_in_a_block(
    kernel: ModuleType, family: str, name: str
) -> None:
    opened: Any = policies.open_block(golden(name))  # of a counting policy a classic filter
    read = reader_of(kernel, opened.family, opened.to_bytes())
    assert all(read.might_contain_many(write.PRESENT))
    assert write.answers(read) == KNOWN[family]["blocks"][name]


def test_every_family_has_golden_files() -> None:
    assert set(KNOWN) == set(every())
    assert {family for family in KNOWN if not KNOWN[family]["blocks"]} == {
        family.name for family in every().values() if not family.policy
    }
    names = {f"{family}.filter" for family in KNOWN}
    names |= {name for family in KNOWN for name in KNOWN[family]["blocks"]}
    assert {path.name for path in write.FILES.iterdir()} == names
