"""How things are timed."""

from __future__ import annotations

from functools import partial

import pytest

from benchmarks import floor, timing
from benchmarks.errors import UnavailableError


def test_samples_take_turns_and_every_loop_is_a_function_of_its_own() -> None:
    order: list[str] = []
    samples = [timing.Sample(partial(order.append, name), 1) for name in "ab"]
    taken = timing.interleaved(samples, 3)
    assert "".join(order) == "abbaab"
    assert [len(repeats) for repeats in taken] == [3, 3]
    one, other = timing.fresh_loop("key in subject"), timing.fresh_loop("key in subject")
    assert one.__code__ is not other.__code__
    assert timing.fresh_answers("key in subject")([1, 2], {2}) == [False, True]


def test_a_short_sample_runs_again_until_it_counts() -> None:
    clock = iter(range(100))
    runs: list[int] = []
    sample = timing.Sample(lambda: runs.append(1), 4, lambda: next(clock))
    [[taken]] = timing.interleaved([sample], 1, at_least=3)
    assert len(runs) == 3
    assert taken == 1 / 4 * 1e9


@pytest.mark.parametrize(
    ("seconds", "repeats"), [([5, 9, 4, 4], 4), ([4, 4, 9, 9], 2), ([9, 8, 7, 6, 5, 4, 4], 6)]
)
def test_repeats_are_added_until_the_two_best_agree(
    seconds: list[int], repeats: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = iter(seconds)
    monkeypatch.setattr(timing, "_seconds", lambda sample, at_least: next(left))
    [taken] = timing.interleaved([timing.Sample(list, 1)], 2, at_most=6)
    assert len(taken) == repeats


def test_without_a_compiler_the_floor_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(UnavailableError, match="no C compiler"):
        floor.library.__wrapped__()
