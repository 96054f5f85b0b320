"""Merging runs of entries: as if all were sorted at once, in windows of whole keys."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lsm
from lsm.disk.keys import Entry
from lsm.kernels.python import merge
from tests.effort import by_effort, examples
from tests.lsm.simulated import SimulatedStorage

Run = list[list[Entry]]


@st.composite
def run_lists(draw: st.DrawFn) -> list[Run]:
    """Runs in chunks that may be empty, and may end within the versions of a key."""
    few_keys = st.integers(0, draw(st.sampled_from((1, 4, 12))))
    places = draw(st.lists(st.tuples(few_keys, st.integers(1, 40)), unique=True, max_size=60))
    runs: list[list[Entry]] = [[] for _ in range(draw(st.integers(0, 5)))]
    for key, rank in sorted((b"%02d" % key, -rank) for key, rank in places):
        if runs:
            runs[draw(st.integers(0, len(runs) - 1))].append((key, rank, b"%d" % rank))
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


class Touched(list[Entry]):
    """A chunk that counts how many entries are copied out of it and out of sums it is part of."""

    copied = 0

    def __add__(self, other: list[Entry]) -> Touched:  # type: ignore[override]
        Touched.copied += len(self) + len(other)
        return Touched(super().__add__(other))

    def __radd__(self, other: list[Entry]) -> Touched:
        Touched.copied += len(self) + len(other)
        return Touched(other + list(self))

    def __iter__(self) -> Iterator[Entry]:
        Touched.copied += len(self)
        return super().__iter__()

    def __getitem__(self, index: Any) -> Any:
        found = super().__getitem__(index)
        if isinstance(index, slice):
            Touched.copied += len(found)
            found = Touched(found)
        return found


def touched(chunks: Iterator[list[Entry]]) -> Iterator[list[Entry]]:
    return map(Touched, chunks)


VERSIONS = by_effort(4000, 10_000, 200_000)


@BOTH
@pytest.mark.parametrize("runs", [1, 2, 3])
def test_each_version_of_a_key_is_copied_a_few_times(
    merged: Callable[..., Any], runs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Touched, "copied", 0)
    hot = [(b"hot", -version, b"") for version in range(VERSIONS, 0, -1)]
    step = 1 if merged is merge.ascending else -1
    chunked = []
    for number in range(runs):
        mine = hot[number::runs]
        run = [[(b"a", -number - 1, b"")], *(mine[at : at + 40] for at in range(0, len(mine), 40))]
        chunked.append([*run, [(b"z", -number - 1, b"")]][::step])
    windows = list(merged([touched(iter(run)) for run in chunked]))
    assert [len(window) for window in windows][::step] == [runs, VERSIONS, runs]
    assert Touched.copied < 4 * VERSIONS


@pytest.mark.parametrize("where", ["memory", "tables"])
def test_a_walk_over_a_hot_key_is_linear(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever walks: iterators both ways, and a compaction, which keeps what a snapshot sees."""
    for name in ("ascending", "descending"):
        plain = getattr(merge, name)
        monkeypatch.setattr(merge, name, lambda runs, plain=plain: plain(map(touched, runs)))
    with lsm.DB(
        "db",
        create_if_missing=True,
        storage=SimulatedStorage(),
        block_size=512,
        max_file_size="64 MiB",
        write_buffer_size="64 MiB",
    ) as db:
        snapshots = []
        for _ in range(2):
            with db.write_batch() as batch:
                batch.put(b"a", b"")
                for version in range(VERSIONS // 2):
                    batch.put(b"hot", b"%d" % version)
                batch.put(b"z", b"")
            if where == "tables":
                db.flush()
            snapshots.append(db.snapshot())
        newest = b"%d" % (VERSIONS // 2 - 1)
        expected = [(b"a", b""), (b"hot", newest), (b"z", b"")]
        for use in (
            lambda: list(db),
            lambda: list(db.iterator(reverse=True))[::-1],
            lambda: (db.compact_range(), list(db))[1],
        ):
            monkeypatch.setattr(Touched, "copied", 0)
            assert use() == expected
            assert Touched.copied < 8 * VERSIONS
        assert [list(snapshot) for snapshot in snapshots] == [expected] * 2
