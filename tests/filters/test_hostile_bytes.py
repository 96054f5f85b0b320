"""Bytes that somebody hostile wrote, under right checksums: refused, or read alike by both kernels.

What is read is asked in every form, told about, written, copied and added to, see ``stories.py``;
each family's corpus comes first, and then what the generators of ``hostile.py`` draw.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType
from typing import Any

import pytest

from filters.families import FAMILIES
from filters.header import FAMILY_IDS
from tests.effort import by_effort
from tests.filters.cases import needs_native
from tests.filters.hostile import Attack, corpus
from tests.filters.stories import assert_alike, story

INPUTS = by_effort(50, 300, 500_000)
MOST_MEMORY = 1 << 30

every_family = pytest.mark.parametrize("family", FAMILIES)


@pytest.fixture
def levels() -> Iterator[Any]:
    """The module of vector instructions, which chooses again what it had chosen."""
    module = import_module("filters.kernels.native.simd")
    before = module.in_use()
    yield module
    module.use(before)


@every_family
def test_whatever_once_found_something_is_read_or_refused(kernel: ModuleType, family: str) -> None:
    for data in corpus(family):
        assert story(kernel, family, data)


@needs_native
@every_family
def test_native_and_readable_agree_on_the_corpus(family: str, levels: Any) -> None:
    for level in levels.available():
        levels.use(level)
        for data in corpus(family):
            assert_alike(family, data)


@needs_native
@every_family
def test_native_and_readable_agree_on_hostile_bytes(
    family: str, levels: Any, rng: random.Random
) -> None:
    attack = Attack(rng)
    for index in range(INPUTS):
        levels.use(levels.available()[index % len(levels.available())])
        assert_alike(family, attack.bytes_of(family))


@every_family
def test_a_claim_takes_no_memory(kernel: ModuleType, family: str, rng: random.Random) -> None:
    """No count in a few kilobytes leads to gigabytes, whether they are refused or not."""
    resource = pytest.importorskip("resource")
    unit = 1 if sys.platform == "darwin" else 1024
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    attack = Attack(rng)
    for _ in range(INPUTS // 5):
        story(kernel, family, attack.bytes_of(family))
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert (after - before) * unit < MOST_MEMORY


@every_family
def test_the_corpus_has_what_is_read_and_what_is_refused(kernel: ModuleType, family: str) -> None:
    kinds = {story(kernel, family, data)[0][0] for data in corpus(family)}
    refuses = family in FAMILY_IDS or family == "cassandra"
    assert kinds == ({"answers", "refused"} if refuses else {"answers"})
    assert max(map(len, corpus(family))) < 2000
