"""What may be added to the families, and what may not."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from filters import families, header
from filters.families import FAMILIES


@pytest.fixture(autouse=True)
def _as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(families, "FAMILIES", dict(FAMILIES))
    monkeypatch.setattr(header, "FAMILY_IDS", dict(header.FAMILY_IDS))


def test_a_family_is_known_by_its_name_and_its_number() -> None:
    families.add(attrs.evolve(FAMILIES["blocked"], name="other", number=255))
    assert families.FAMILIES["other"].class_name == "BlockedBloomFilter"
    assert header.FAMILY_IDS["other"] == 255


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"number": 99}, "there is a family 'blocked' already"),
        ({"name": "other"}, "the number of family 'other' is 4, that of 'blocked'"),
        ({"name": "other", "number": 0}, "is 0, allowed are 1 to 255"),
        ({"name": "other", "number": 256}, "is 256, allowed are 1 to 255"),
    ],
)
def test_what_is_taken_or_out_of_range_is_refused_and_changes_nothing(
    changes: dict[str, Any], says: str
) -> None:
    known, numbers = dict(families.FAMILIES), dict(header.FAMILY_IDS)
    with pytest.raises(ValueError, match=says):
        families.add(attrs.evolve(FAMILIES["blocked"], **changes))
    assert known == families.FAMILIES
    assert numbers == header.FAMILY_IDS
