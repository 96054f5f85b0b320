"""The part on kernels measures what it says and refuses what is wrong.

How long anything takes is no business of these tests.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import attrs
import pytest

from benchmarks import kernels, peers
from benchmarks.errors import UnavailableError, WrongAnswersError
from benchmarks.kernels import bench as benches
from benchmarks.kernels import large, shown
from benchmarks.kernels.bench import Bench, Case, Figures, Group, Settings
from benchmarks.kernels.targets import TARGETS
from benchmarks.parts import Size, Unit
from benchmarks.record import Record
from benchmarks.rows import FAILED, INFORMATION, MET, MISSED, NOT_MEASURED, Row
from benchmarks.subjects import Subject, built_and_checked, check_rate, ours
from filters import kernels as filter_kernels
from filters.errors import KernelUnavailableError
from tests.effort import by_effort

ROOT = Path(__file__).parents[2]
TINY = Settings(
    keys=2000,
    repeats=2,
    fuse_keys=3000,
    large_bytes=1 << 16,
    large_keys=2000,
    python_keys=1000,
    thread_passes=1,
    at_least_seconds=0,
    patience=1,
)
needs_native = pytest.mark.skipif(
    "native" not in filter_kernels.available(), reason="the native kernel cannot run here"
)
GROUP = Group("A heading", "what is measured")
PART = kernels.KernelsPart()


@pytest.fixture
def settings(test_seed: int) -> Settings:
    return attrs.evolve(TINY, seed=test_seed)


@pytest.fixture
def python_bench(settings: Settings) -> Bench:
    return Bench(settings, "python")


def forgetful(bench: Bench, family: str) -> Subject:
    """A family whose filters are built of all keys but one."""
    subject = ours("python", family)
    return attrs.evolve(subject, build=lambda keys: subject.build(keys[1:]))


def measured(case: Case, bench: Any) -> Row:
    [row] = kernels.unit(case, TINY).run(bench)
    return row


def fake(ours: list[float], peer: list[float], target: str) -> Case:
    return Case(GROUP, "a row", lambda bench: Figures(ours, peer, "a note"), target, "a peer")


def find(settings: Settings, text: str) -> Unit:
    return next(unit for unit in PART.units(settings) if text in unit.key)


def test_the_best_repeats_are_compared() -> None:
    assert TARGETS["large"].limit == 1.6
    row = measured(fake([99, 16, 30], [10, 40], "large"), None)
    assert (row.value, row.ratio, row.verdict, row.note) == (16, 1.6, MET, "a note")
    row = measured(fake([17, 30], [10, 40], "large"), None)
    assert (row.ratio, row.verdict) == (1.7, MISSED)


def test_two_threads_are_held_to_how_many_times_as_fast_they_are() -> None:
    row = measured(fake([5.0], [10.0], "threads"), None)
    assert (row.ratio, row.verdict) == (2.0, MET)
    row = measured(fake([10.0], [10.0], "threads"), None)
    assert (row.ratio, row.verdict) == (1.0, MISSED)


def test_every_target_has_a_row_and_every_row_a_name_of_its_own() -> None:
    cases = kernels.all_cases(TINY)
    assert {case.target for case in cases} - {None} == set(TARGETS)
    assert all(case.column in case.group.columns for case in cases if case.group.columns)
    units = PART.units(TINY)
    assert len({unit.key for unit in units}) == len(units) == len(cases)
    assert all(bool(case.target) <= bool(case.peer) for case in cases)


def test_what_is_quick_is_held_to_nothing() -> None:
    options = argparse.Namespace(seed=7)
    quick, full = (PART.settings(size, options) for size in (Size.QUICK, Size.FULL))
    assert quick.seed == full.seed == 7
    assert PART.settings(Size.DEFAULT, options) == full
    assert not any(unit.row.target for unit in PART.units(quick))
    assert sum(unit.row.target is not None for unit in PART.units(full)) > 20
    seconds = [sum(unit.seconds for unit in PART.units(each)) for each in (quick, full)]
    assert 5 * seconds[0] < seconds[1]


def test_a_filter_that_denies_a_key_is_refused(python_bench: Bench) -> None:
    keys = python_bench.keys.in_order
    subject = forgetful(python_bench, "blocked")
    with pytest.raises(WrongAnswersError, match="blocked denies 1 of its 2000 keys, one by one"):
        built_and_checked(subject, keys[True], keys[False])


def test_a_batch_that_answers_otherwise_is_refused(python_bench: Bench) -> None:
    keys = python_bench.keys.in_order
    always = attrs.evolve(
        ours("python", "blocked"), ask_batch="[True] * len(key)", takes_packed=False
    )
    with pytest.raises(WrongAnswersError, match="blocked answers otherwise one by one, in batches"):
        built_and_checked(always, keys[True], keys[False])


@pytest.mark.parametrize("rate", [0.0001, 0.04])
def test_a_rate_beyond_reason_is_refused(rate: float) -> None:
    check_rate("some", 0.012, 0.01, 1_000_000)
    with pytest.raises(WrongAnswersError, match="where 1.000% is expected"):
        check_rate("some", rate, 0.01, 1_000_000)


def test_a_row_of_a_wrong_subject_is_not_timed(
    python_bench: Bench, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*samples: object) -> None:
        raise AssertionError("timed")

    monkeypatch.setattr(benches, "interleaved", never)
    python_bench.makers["blocked"] = lambda: forgetful(python_bench, "blocked")
    [row] = find(settings, "in order/blocked, miss").run(python_bench)
    assert (row.verdict, row.value, row.repeats) == (FAILED, None, ())
    assert "denies 1" in row.reason


@pytest.mark.parametrize("name", ["abloom", "fastbloom_rs", "pyfusefilter"])
def test_a_peer_gives_right_answers(name: str, python_bench: Bench) -> None:
    try:
        built = python_bench.built(name)
    except UnavailableError as error:
        pytest.skip(str(error))
    assert built is python_bench.built(name)


def test_a_large_filter_is_valid_and_half_full(test_seed: int, kernel: ModuleType) -> None:
    data = large.half_full(1 << 16, test_seed)
    made = kernel.BlockedBloomFilter.from_bytes(data)
    assert made.fill == pytest.approx(0.5, abs=0.01)
    for huge in (False, True):
        view = large.on_cache_lines(data, huge=huge)
        assert view.readonly
        assert bytes(view) == data


def test_a_share_that_cannot_be_is_refused() -> None:
    assert large.check_share(bytearray([1] + [0] * 63)) == 1 / 64
    with pytest.raises(WrongAnswersError, match="half-full"):
        large.check_share(bytearray(100_000))


@needs_native
def test_every_row_runs_and_is_shown(settings: Settings, tmp_path: Path) -> None:
    units = PART.units(settings)
    of_each_group = list({unit.row.group: unit for unit in units}.values())
    units = by_effort(of_each_group, units, units)
    with PART.bench(settings, tmp_path) as bench:
        rows = [row for unit in units for row in unit.run(bench)]
    assert [row.id for row in rows] == [unit.key for unit in units]
    for row in rows:
        assert row.verdict != FAILED, row.reason
        if row.verdict == NOT_MEASURED:
            assert re.search("pip install|C compiler|processor", row.reason)
            continue
        assert (row.verdict == INFORMATION) is (row.target is None), row.id
        assert len(row.repeats) >= settings.repeats
        assert bool(row.peer) is bool(row.peer_repeats) is (row.ratio is not None)
    shown = "\n".join(PART.text(rows))
    for row in rows:
        assert row.group in shown
        assert row.name[:46] in shown
        assert row.at.get("column", "") in shown


@needs_native
def test_a_missing_peer_leaves_the_other_rows(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "abloom", None)
    bench = Bench(settings)
    [row] = find(settings, "Building from a list/blocked").run(bench)
    assert row.verdict == NOT_MEASURED
    assert "abloom is not installed: pip install abloom" in row.reason
    [row] = find(settings, "Building binary fuse/from a list").run(bench)
    assert row.verdict in (MET, MISSED)


def test_without_the_native_kernel_every_row_says_why(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refuse(name: str) -> None:
        raise KernelUnavailableError(f"the {name} kernel cannot run here: no compiler")

    monkeypatch.setattr(filter_kernels, "load", refuse)
    with PART.bench(settings, tmp_path) as bench:
        [row] = find(settings, "in order/rocksdb, hit").run(bench)
    assert row.verdict == NOT_MEASURED
    assert row.reason == "the native kernel cannot run here: no compiler"


def test_the_peers_of_the_rows_are_known() -> None:
    assert {"abloom", "fastbloom_rs", "pyfusefilter"} <= set(peers.BY_NAME)


def test_the_page_has_every_row_beside_a_peer_and_no_target() -> None:
    record = Record.read(ROOT / "docs/results")
    rows = [row for row in record.of("kernels") if row.target]
    head, _, *lines = shown.documented(record.of("kernels"))
    assert head == "| what | ours, ns | peer | its, ns | ratio |"
    assert len(lines) == len(rows) > 20
    for line, row in zip(lines, rows, strict=True):
        assert line.startswith(f"| {row.group[0].lower()}{row.group[1:]}: {row.name} | ")
        assert line.endswith(f" | {row.value / min(row.peer_repeats):.2f} |")
    section = (ROOT / "docs/kernels.md").read_text().partition("## What it comes to\n")[2]
    assert str(record.head["date"])[:10] in section
