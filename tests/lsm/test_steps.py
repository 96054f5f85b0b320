"""Steps: all of them are taken or none, wherever an interruption comes, and each once."""

from __future__ import annotations

import pytest

from lsm.steps import run_steps
from tests.lsm.interrupting import INSTRUCTIONS, SIGNALS, Kind, interrupted_at, points

STEPS = 20


@pytest.mark.parametrize("kind", [SIGNALS, INSTRUCTIONS])
def test_an_interruption_anywhere_finds_all_steps_taken_or_none(kind: Kind) -> None:
    taken: list[int] = []
    total = points(lambda: run_steps((taken.append, each) for each in range(STEPS)), kind)
    assert total > 0
    for number in range(total):
        taken.clear()
        steps = iter([(taken.append, each) for each in range(STEPS)])
        interrupted_at(number, lambda steps=steps: run_steps(steps), kind=kind)
        assert taken in ([], list(range(STEPS))), number
        run_steps(steps)  # as whoever comes next does
        assert taken == list(range(STEPS)), number


@pytest.mark.parametrize("kind", [SIGNALS, INSTRUCTIONS])
def test_more_steps_are_no_more_moments_to_interrupt(kind: Kind) -> None:
    counts = {
        points(lambda count=count: run_steps(iter([(int,)] * count)), kind)
        for count in (0, 1, STEPS)
    }
    assert len(counts) == 1
