"""Colours and marks of families: none is like another's, and all stand out from the paper."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks.report import families
from filters.families import FAMILIES

STYLE = (Path(families.__file__).with_name("style.css")).read_text()
MARK, TEXT = 3.0, 4.5


def palettes() -> list[dict[str, str]]:
    """The colours by their names, in light and in dark."""
    blocks = re.findall(r":root \{\n(.*?)\n *\}", STYLE, re.DOTALL)
    return [dict(re.findall(r"--([\w-]+): (#\w{6});", block)) for block in blocks]


def luminance(colour: str) -> float:
    """As the Web Content Accessibility Guidelines count it."""
    parts = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    red, green, blue = (
        part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("colours", palettes(), ids=["light", "dark"])
def test_every_colour_of_a_family_stands_out(colours: dict[str, str]) -> None:
    for place in range(1, families.PALETTE + 1):
        mark, text = (colours[f"family-{place}{kind}"] for kind in ("", "-text"))
        assert contrast(mark, colours["paper"]) >= MARK, place
        assert contrast(text, colours["paper"]) >= TEXT, place
    assert len({colours[f"family-{place}"] for place in range(1, families.PALETTE + 1)}) == (
        families.PALETTE
    )


def test_the_style_sheet_has_just_the_colours_of_the_palette() -> None:
    assert [int(place) for place in re.findall(r"^\.f-(\d+) ", STYLE, re.MULTILINE)] == [
        *range(1, families.PALETTE + 1)
    ]
    for colours in palettes():
        assert f"family-{families.PALETTE + 1}" not in colours


def test_every_family_looks_like_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also with so many that colours begin anew."""
    record = FAMILIES["classic"]
    for number in range(40):
        monkeypatch.setitem(FAMILIES, f"of-tomorrow-{number}", record)
    looks = {name: (families.colour(name), families.mark_of(name)) for name in FAMILIES}
    assert len(set(looks.values())) == len(looks)
    assert families.colour("counting-live") == families.colour("counting")
    assert families.mark_of("counting-live") != families.mark_of("counting")
    assert families.colour("acme.filter") == "f-other"
    assert families.colour("rbloom") == families.colour("plyvel") == "f-peer"
    assert [*FAMILIES] == sorted(set(FAMILIES), key=families.order)
