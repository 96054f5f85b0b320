"""Merging runs of entries: as if all were sorted at once, in windows of whole keys."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsm.disk.keys import Entry
from lsm.kernels.python import merge
from tests.effort import examples

Run = list[list[Entry]]


@st.composite
def run_lists(draw: st.DrawFn) -> list[Run]:
    """Runs in chunks that may be empty, and may end within the versions of a key."""
    few_keys = st.integers(0, draw(st.sampled_from((1, 4, 12))))
    places = draw(st.lists(st.tuples(few_keys, st.integers(1, 40)), unique=True, max_size=60))
    runs: list[list[Entry]] = [[] for _ in range(draw(st.integers(0, 5)))]
    for key, version in sorted((b"%02d" % key, -version) for key, version in places):
        if runs:
            runs[draw(st.integers(0, len(runs) - 1))].append((key, version, b"%d" % version))
    return [cut(run, draw(st.lists(st.integers(0, max(1, len(run))), max_size=8))) for run in runs]


def cut(run: list[Entry], places: list[int]) -> Run:
    bounds = [0, *sorted(places), len(run)]
    return [run[start:end] for start, end in itertools.pairwise(bounds)]


def check_windows(windows: list[list[Entry]], runs: list[Run]) -> None:
    everything = sorted(entry for run in runs for chunk in run for entry in chunk)
    assert [entry for window in windows for entry in window] == everything
    assert all(windows), "an empty window"
    for before, after in itertools.pairwise(windows):
        assert before[-1][0] < after[0][0], "the versions of a key are in two windows"


@examples(300)
@given(run_lists())
def test_windows_ascend_and_hold_all_versions_of_their_keys(runs: list[Run]) -> None:
    check_windows(list(merge.ascending(iter(run) for run in runs)), runs)


@examples(300)
@given(run_lists())
def test_windows_descend_and_hold_all_versions_of_their_keys(runs: list[Run]) -> None:
    windows = list(merge.descending(iter(run[::-1]) for run in runs))
    check_windows(windows[::-1], runs)


BOTH = pytest.mark.parametrize("merged", [merge.ascending, merge.descending])


@BOTH
def test_nothing_is_merged_of_nothing(merged: Callable[..., Any]) -> None:
    assert list(merged([])) == []
    assert list(merged([iter([]), iter([[], []])])) == []


@BOTH
def test_no_more_is_read_than_the_first_window_needs(merged: Callable[..., Any]) -> None:
    read = []

    def chunks(run: int) -> Iterator[list[Entry]]:
        numbers = range(5) if merged is merge.ascending else range(4, -1, -1)
        for number in numbers:
            read.append(run)
            yield [(b"%d%d" % (number, each), -1, b"") for each in range(3)]

    windows = merged([chunks(0), chunks(1)])
    assert len(next(windows)) >= 3
    assert len(read) <= 4


@BOTH
def test_a_single_run_passes_as_it_is(merged: Callable[..., Any]) -> None:
    chunks = [[(b"a", -3, b"")], [(b"b", -2, b""), (b"c", -1, b"")]]
    if merged is merge.descending:
        chunks.reverse()
    found = [entry for window in merged([iter(chunks)]) for entry in window]
    assert sorted(found) == sorted(entry for chunk in chunks for entry in chunk)
