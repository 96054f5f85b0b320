"""The benchmark command measures what it says, refuses what is wrong, and records it all.

How long anything takes is no business of these tests.
"""

from __future__ import annotations

import json
import re
import sys
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import attrs
import pytest

from benchmarks import __main__ as command
from benchmarks import bench as benches
from benchmarks import floor, kernels, large, peers, timing
from benchmarks.bench import (
    FAILED,
    INFORMATION,
    MET,
    MISSED,
    NOT_MEASURED,
    Bench,
    Case,
    Figures,
    Group,
    Settings,
    run,
)
from benchmarks.errors import UnavailableError, WrongAnswersError
from benchmarks.subjects import Subject, built_and_checked, check_rate, ours
from benchmarks.targets import TARGETS, Target
from filters import kernels as filter_kernels
from filters.errors import KernelUnavailableError

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


@pytest.fixture
def settings(test_seed: int, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Tiny sizes, which the command uses, too."""
    tiny = attrs.evolve(TINY, seed=test_seed)
    monkeypatch.setattr(kernels, "FULL", tiny)
    monkeypatch.setattr(kernels, "QUICK", tiny)
    return tiny


@pytest.fixture
def python_bench(settings: Settings) -> Bench:
    return Bench(settings, filter_kernels.load("python"))


def forgetful(kernel: ModuleType, family: str) -> Subject:
    """A family whose filters are built of all keys but one."""
    subject = ours(kernel, family)
    return attrs.evolve(subject, build=lambda keys: subject.build(keys[1:]))


def fake(ours: list[float], peer: list[float], target: str) -> Case:
    return Case(GROUP, "a row", lambda bench: Figures(ours, peer), target)


@pytest.mark.parametrize(
    ("target", "ratio", "met"),
    [
        (Target(0.95, "at most"), 0.9499, True),
        (Target(0.95, "at most"), 0.95, True),
        (Target(0.95, "at most"), 0.9501, False),
        (Target(1.7, "at least", at_least=True), 1.7, True),
        (Target(1.7, "at least", at_least=True), 1.69, False),
        (Target(1.7, "at least", at_least=True), 1.9, True),
    ],
)
def test_a_target_is_met_up_to_its_limit(target: Target, ratio: float, met: bool) -> None:
    assert target.is_met(ratio) is met


def test_the_best_repeats_are_compared(python_bench: Bench) -> None:
    assert TARGETS["large"].limit == 1.6
    row = run(fake([99, 16, 30], [10, 40], "large"), python_bench)
    assert (row.ours, row.peer, row.ratio, row.verdict) == (16, 10, 1.6, MET)
    row = run(fake([17, 30], [10, 40], "large"), python_bench)
    assert (row.ratio, row.verdict) == (1.7, MISSED)


def test_two_threads_are_held_to_how_many_times_as_fast_they_are(python_bench: Bench) -> None:
    row = run(fake([5.0], [10.0], "threads"), python_bench)
    assert (row.ratio, row.verdict) == (2.0, MET)
    row = run(fake([10.0], [10.0], "threads"), python_bench)
    assert (row.ratio, row.verdict) == (1.0, MISSED)


def test_every_target_has_a_row_and_every_row_a_name_of_its_own() -> None:
    for settings in (benches.FULL, benches.QUICK):
        cases = kernels.all_cases(settings)
        assert {case.target for case in cases} - {None} == set(TARGETS)
        labels = [case.label for case in cases]
        assert len(set(labels)) == len(labels)
        assert all(case.column in case.group.columns for case in cases if case.group.columns)


def test_a_filter_that_denies_a_key_is_refused(python_bench: Bench) -> None:
    keys = python_bench.keys.in_order
    subject = forgetful(python_bench.kernel, "blocked")
    with pytest.raises(WrongAnswersError, match="blocked denies 1 of its 2000 keys, one by one"):
        built_and_checked(subject, keys[True], keys[False])


def test_a_batch_that_answers_otherwise_is_refused(python_bench: Bench) -> None:
    keys = python_bench.keys.in_order
    always = attrs.evolve(
        ours(python_bench.kernel, "blocked"), ask_batch="[True] * len(key)", takes_packed=False
    )
    with pytest.raises(WrongAnswersError, match="blocked answers otherwise one by one, in batches"):
        built_and_checked(always, keys[True], keys[False])


@pytest.mark.parametrize("rate", [0.0001, 0.04])
def test_a_rate_beyond_reason_is_refused(rate: float) -> None:
    check_rate("some", 0.012, 0.01, 1_000_000)
    with pytest.raises(WrongAnswersError, match="where 1.000% is expected"):
        check_rate("some", rate, 0.01, 1_000_000)


def test_a_row_of_a_wrong_subject_is_not_timed(
    python_bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*samples: object) -> None:
        raise AssertionError("timed")

    monkeypatch.setattr(benches, "interleaved", never)
    python_bench.makers["blocked"] = lambda: forgetful(python_bench.kernel, "blocked")
    [case] = benches.chosen(kernels.all_cases(TINY), "in order: blocked, miss")[:1]
    row = run(case, python_bench)
    assert (row.verdict, row.figures) == (FAILED, None)
    assert "denies 1" in row.reason


def test_an_error_in_one_row_leaves_the_others(python_bench: Bench) -> None:
    row = run(Case(GROUP, "a row", lambda bench: Figures([1 / 0])), python_bench)
    assert (row.verdict, row.reason) == (FAILED, "ZeroDivisionError: division by zero")


@pytest.mark.parametrize("name", peers.BY_NAME)
def test_a_missing_peer_says_how_to_install_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("abloom", "fastbloom_rs", "pyfusefilter", "pyfusefilter._xorfilter"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(UnavailableError, match=r"is not installed: pip install \w+"):
        peers.BY_NAME[name]()


@pytest.mark.parametrize("name", peers.BY_NAME)
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


@needs_native
def test_every_row_runs(settings: Settings, capsys: pytest.CaptureFixture[str]) -> None:
    cases = kernels.all_cases(settings)
    rows = kernels.run_all(cases, Bench(settings, filter_kernels.load("native")))
    assert [row.case for row in rows] == cases
    for row in rows:
        assert row.verdict != FAILED, row.reason
        assert (row.verdict == INFORMATION) <= (row.target is None), row.case.label
        if row.verdict == NOT_MEASURED:
            assert re.search("pip install|C compiler|processor", row.reason)
        else:
            assert row.figures is not None
            assert len(row.figures.ours) >= settings.repeats
    assert f"[{len(cases)}/{len(cases)}]" in capsys.readouterr().err


@needs_native
def test_the_command_prints_a_table_and_writes_the_documented_record(
    settings: Settings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "record.json"
    options = ["--json", str(path), "--date", "2026-01-02", "--only", "CUCKOO BESIDE"]
    assert command.main(["kernels", "--seed", str(settings.seed), *options]) == 0
    shown = capsys.readouterr().out
    for part in ("Cuckoo beside blocked", "<= 5", "<= 1.5", "3 targets among 3 rows"):
        assert part in shown
    record = json.loads(path.read_text())
    documented = kernels.__doc__ or ""
    assert set(record) == set(re.findall(r"^``(\w+)``  ", documented, re.MULTILINE))
    assert record["date"] == "2026-01-02"
    for member in ("machine", "kernel", "settings"):
        for name in record[member]:
            assert f"``{name}``" in documented, name
    assert [row["name"] for row in record["rows"]] == ["build", "hit", "miss"]
    for row in record["rows"]:
        assert_documented(row, documented)


def assert_documented(row: dict[str, Any], documented: str) -> None:
    members = ("group", "name", "column", "verdict", "reason", "note", "ours", "peer", "ratio")
    assert set(row) == {*members, "target"}
    assert set(row["target"]) == {"limit", "at_least", "wording"}
    for name in (*members, *row["target"]):
        assert f"``{name}``" in documented, name
    for side in ("ours", "peer"):
        assert row[side]["best"] == min(row[side]["repeats"])
        assert len(row[side]["repeats"]) == TINY.repeats
    assert row["ratio"] == row["ours"]["best"] / row["peer"]["best"]


@needs_native
def test_a_missing_peer_leaves_the_other_rows(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "abloom", None)
    assert command.main(["kernels", "--quick", "--repeats", "1", "--only", "build"]) == 0
    shown = capsys.readouterr().out
    assert "not measured: peer abloom is not installed: pip install abloom" in shown
    assert re.search(r"binary-fuse +\d+", shown)
    assert "2 not measured" in shown


@needs_native
def test_a_wrong_filter_fails_the_command(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(benches, "ours", forgetful)
    assert command.main(["kernels", "--only", "default: cuckoo: hit"]) == 1
    shown = capsys.readouterr().out
    assert "failed: cuckoo denies 1 of its 2000 keys, one by one" in shown


@needs_native
def test_an_unknown_row_is_told_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        command.main(["kernels", "--only", "no such row"])
    told = capsys.readouterr().err
    assert "no row's name contains 'no such row'" in told
    assert "One key at a time, in order: blocked, hit" in told


def test_without_the_native_kernel_the_reason_is_given(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(name: str) -> None:
        raise KernelUnavailableError(f"the {name} kernel cannot run here: no compiler")

    monkeypatch.setattr(filter_kernels, "load", refuse)
    assert command.main(["kernels"]) == 2
    assert "the native kernel cannot run here: no compiler" in capsys.readouterr().err
