"""The engine's benchmark measures what it says, believes no wrong answer, and records it all.

How long anything takes is no business of these tests.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from benchmarks import __main__ as command
from benchmarks import engine
from benchmarks.bench import FAILED, INFORMATION, MET, MISSED, NOT_MEASURED, Group
from benchmarks.engine import engines, latency, memory, reads, report
from benchmarks.engine.bench import FIRST, Bench
from benchmarks.engine.cases import all_cases
from benchmarks.engine.engines import OURS, PLYVEL
from benchmarks.engine.rows import Case, Figures, Row, run
from benchmarks.engine.settings import FULL, QUICK, Settings
from benchmarks.engine.steps import Step
from benchmarks.engine.targets import TARGETS
from benchmarks.errors import UnavailableError, WrongAnswersError

ROOT = Path(__file__).parents[1]
TINY = Settings(
    keys=1000, repeats=1, batch=100, probes=50, ranges=5, replays=1, puts=20, sync_puts=2
)
GROUP = Group("A heading", "what is measured")
needs_plyvel = pytest.mark.skipif(PLYVEL not in engines.all_engines()[0], reason="needs plyvel")


@pytest.fixture
def bench(tmp_path: Path, test_seed: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    def elsewhere(*_: object) -> None:
        raise UnavailableError("other processes take their time")

    monkeypatch.setattr("benchmarks.engine.bench.memory.taken", elsewhere)
    with Bench(attrs.evolve(TINY, seed=test_seed), tmp_path) as made:
        yield made
    assert not list(tmp_path.iterdir())


def fake(ours: list[float], peer: list[float], target: str | None) -> Case:
    taken = {"lsm, blocked": ours, "plyvel": peer}
    return Case(
        GROUP, "a row", "us", lambda bench: Figures(taken), "lsm, blocked", "plyvel", target
    )


def without_answers(name: str) -> Callable[..., Any]:
    """A getter that finds nothing, for one engine; the others' own."""
    own = engines.Engine.getter

    def getter(self: engines.Engine, db: Any) -> Callable[[bytes], bytes | None]:
        return (lambda key: None) if self.name == name else own(self, db)

    return getter


@pytest.mark.parametrize(
    ("target", "ours", "peer", "verdict"),
    [
        ("absent", [9, 4, 5], [1, 2], MET),
        ("absent", [9, 5, 4.01], [1, 2], MISSED),
        ("replay", [7, 5], [0.1], MET),
        ("replay", [7, 5.01], [100], MISSED),
        (None, [7], [1], INFORMATION),
    ],
)
def test_the_best_is_held_against_the_target(
    target: str | None, ours: list[float], peer: list[float], verdict: str, bench: Bench
) -> None:
    row = run(fake(ours, peer, target), bench)
    assert row.verdict == verdict
    assert row.ratio == min(ours) / min(peer)


def test_without_a_peer_only_absolute_targets_are_judged(bench: Bench) -> None:
    bench.missing = "peer plyvel is not installed"
    row = run(fake([1], [], "absent"), bench)
    assert (row.verdict, row.reason, row.ours) == (NOT_MEASURED, bench.missing, 1)
    assert run(fake([1], [], "replay"), bench).verdict == MET
    assert run(fake([1], [], None), bench).verdict == INFORMATION


def test_an_error_in_one_row_leaves_the_others(bench: Bench) -> None:
    row = run(Case(GROUP, "a row", "us", lambda bench: 1 / 0, OURS[0]), bench)  # type: ignore
    assert (row.verdict, row.reason) == (FAILED, "ZeroDivisionError: division by zero")

    def unavailable(bench: Bench) -> Figures:
        raise UnavailableError("not here")

    row = run(Case(GROUP, "a row", "us", unavailable, OURS[0]), bench)
    assert (row.verdict, row.reason) == (NOT_MEASURED, "not here")


def test_every_target_has_a_row_and_every_row_a_name_of_its_own() -> None:
    cases = all_cases()
    assert {case.target for case in cases} - {None} == set(TARGETS)
    labels = [case.label for case in cases]
    assert len(set(labels)) == len(labels)
    for target in ("absent", "present", "load"):
        assert [case.ours for case in cases if case.target == target] == list(OURS)


def test_a_step_is_taken_once_and_fails_again_at_once() -> None:
    class Steps:
        taken = 0

        @Step
        def good(self) -> int:
            self.taken += 1
            return 7

        @Step
        def bad(self) -> int:
            self.taken += 1
            raise WrongAnswersError("no")

    steps = Steps()
    assert steps.good == steps.good == 7
    for _ in range(2):
        with pytest.raises(WrongAnswersError, match="no"):
            _ = steps.bad
    assert steps.taken == 2


def test_engines_take_turns(bench: Bench) -> None:
    names = [engine.name for _, engine in bench.in_turn(2)]
    assert names == [*bench.engines, *reversed(list(bench.engines))]
    assert [engine.name for _, engine in bench.in_turn(1, (OURS[1],))] == [OURS[1]]


def test_percentiles_are_those_of_what_was_taken() -> None:
    taken = latency.Latencies(range(1000), 1.0)
    assert [taken.percentile(each) for each in (50, 99, 99.9, 100)] == [500, 990, 999, 999]


def test_lookups_go_on_until_the_work_is_done_and_are_compared() -> None:
    values = {b"a": b"1", b"b": b"2"}
    asked: list[bytes] = []

    def get(key: bytes) -> bytes:
        asked.append(key)
        return values[key]

    def work() -> None:
        while len(asked) < 200:
            pass

    def until_asked() -> None:
        while not asked:
            pass

    taken = latency.during(work, get, values, list(values))
    assert len(taken.nanoseconds) == len(asked) >= 200
    assert list(taken.nanoseconds) == sorted(taken.nanoseconds)
    asked.clear()
    with pytest.raises(WrongAnswersError, match="b'a' is wrong"):
        latency.during(until_asked, lambda key: get(key) and b"2", values, list(values))


def test_an_error_of_the_work_is_not_lost() -> None:
    with pytest.raises(ZeroDivisionError):
        latency.during(lambda: 1 / 0, lambda key: b"1", {b"a": b"1"}, [b"a"])


@pytest.mark.parametrize("name", engines.all_engines()[0])
def test_an_engine_that_finds_nothing_is_not_timed(
    name: str, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert bench.stores
    monkeypatch.setattr(engines.Engine, "getter", without_answers(name))
    with pytest.raises(WrongAnswersError, match=f"{name} answers wrongly 50 of 50 times"):
        bench.read(reads.PRESENT)
    assert bench.read(reads.ABSENT)


@needs_plyvel
def test_lost_values_are_noticed_after_puts_and_replay(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines.Engine, "getter", without_answers(PLYVEL))
    with pytest.raises(WrongAnswersError, match="plyvel has lost"):
        bench.single_puts(bench.data.pairs[:3], sync=False)
    with pytest.raises(WrongAnswersError, match="plyvel has lost"):
        _ = bench.replayed


def test_databases_are_merged_into_one_level(bench: Bench) -> None:
    """Or else plyvel would not have been asked in the way it understands."""
    assert bench.loaded
    for found in bench.merged.values():
        assert found.amplification >= 0
        assert found.disk_bytes > 50 * TINY.keys
    for name, store in bench.stores.items():
        levels = [
            int(store.db.get_property(b"leveldb.num-files-at-level%d" % level))
            for level in range(7)
        ]
        assert levels[0] == 0, name
        assert sum(map(bool, levels)) == 1, name


@needs_plyvel
def test_what_leveldb_wrote_is_the_sum_of_all_levels() -> None:
    stats = (
        b"                               Compactions\n"
        b"Level  Files Size(MB) Time(sec) Read(MB) Write(MB)\n"
        b"--------------------------------------------------\n"
        b"  0        1        2         0        0        26\n"
        b"  2        9       17         1       34        31\n"
    )

    class Database:
        def get_property(self, name: bytes) -> bytes:
            assert name == b"leveldb.stats"
            return stats

    assert engines.Plyvel().table_bytes_written(Database()) == 57 << 20


def test_memory_is_told_where_the_system_tells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    status = tmp_path / "status"
    monkeypatch.setattr(memory, "STATUS", status)
    assert memory.resident() is None
    status.write_text("Name:\tpython\nRssAnon:\t     108 kB\nRssFile:\t    1640 kB\n")
    assert memory.resident() == memory.Memory(108 << 10, 1640 << 10)
    status.write_text("Name:\tpython\n")
    assert memory.resident() is None
    with pytest.raises(UnavailableError, match="does not tell"):
        memory.taken(OURS[0], tmp_path, [b"a"])


@needs_plyvel
def test_the_command_measures_every_row_and_writes_the_documented_record(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, directory = tmp_path / "record.json", tmp_path / "databases"
    directory.mkdir()
    options = ["--json", str(path), "--date", "2026-01-02", "--directory", str(directory)]
    assert command.main(["engine", "--quick", *options]) == 0
    captured = capsys.readouterr()
    assert not list(directory.iterdir())
    record, documented = json.loads(path.read_text()), engine.__doc__ or ""
    assert set(record) == set(re.findall(r"^``(\w+)``  ", documented, re.MULTILINE))
    assert record["date"] == "2026-01-02"
    for member in ("kernel", "settings"):
        for name in record[member]:
            assert f"``{name}``" in documented, name
    cases = all_cases()
    assert [(row["group"], row["name"]) for row in record["rows"]] == [
        (case.group.title, case.name) for case in cases
    ]
    for row, case in zip(record["rows"], cases, strict=True):
        assert_documented(row, case, documented)
        assert case.name in captured.out
    assert record["summary"][FAILED] == 0
    assert f"[{len(cases)}/{len(cases)}]" in captured.err
    assert "\r" not in captured.err


def assert_documented(row: dict[str, Any], case: Case, documented: str) -> None:
    members = ("group", "name", "unit", "verdict", "reason", "note", "ours", "peer", "ratio")
    assert set(row) == {*members, "target"}
    for name in (*members, *(row["target"] or ())):
        assert f"``{name}``" in documented, name
    assert (row["verdict"] == INFORMATION) == (row["target"] is None), row
    assert row["verdict"] in (MET, MISSED, INFORMATION), row["reason"]
    for side, name in (("ours", case.ours), ("peer", case.peer)):
        assert row[side]["engine"] == name
        assert row[side]["best"] == min(row[side]["repeats"])
    assert row["ratio"] == row["ours"]["best"] / row["peer"]["best"]


def test_without_plyvel_ours_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "plyvel", None)
    monkeypatch.setattr(engine, "QUICK", TINY)
    assert command.main(["engine", "--quick", "--directory", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert "peer plyvel is not installed: pip install plyvel" in shown
    assert "leveldb not installed" in shown
    assert ", 0 failed, " in shown


def test_a_wrong_engine_fails_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(engine, "QUICK", TINY)
    monkeypatch.setattr(engine, "all_cases", lambda: [c for c in all_cases() if "put" in c.name])
    monkeypatch.setattr(engines.Engine, "getter", without_answers(OURS[0]))
    assert command.main(["engine", "--quick", "--directory", str(tmp_path)]) == 1
    assert "failed: lsm, blocked has lost the value of" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--keys", "999"], "--keys must lie between 1000 and"),
        (["--repeats", "0"], "--repeats must lie between 1 and 100"),
        (["--directory", "/no/such/directory"], "is no directory"),
    ],
)
def test_options_out_of_range_are_refused(
    options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        command.main(["engine", *options])
    assert message in capsys.readouterr().err


def test_the_settings_are_those_that_were_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Settings] = []

    class StopError(Exception):
        pass

    def stop(settings: Settings, directory: Path | None) -> Bench:
        seen.append(settings)
        raise StopError

    monkeypatch.setattr(engine, "Bench", stop)
    for options in ([], ["--quick"], ["--keys", "5000", "--repeats", "3", "--seed", "9"]):
        with pytest.raises(StopError):
            command.main(["engine", *options])
    assert seen == [FULL, QUICK, attrs.evolve(FULL, keys=5000, repeats=3, seed=9)]


def test_a_missed_target_is_said_in_words() -> None:
    row = Row(fake([50], [10], "absent"), MISSED, Figures({OURS[0]: [50], PLYVEL: [10]}))
    shown = report.text(
        report.about(TINY, "today", quick=True), [row], {**report.counts([row]), "seconds": 1}
    )
    assert "MISSED: A heading: a row, lsm, blocked: 5.00; a get of an absent key" in shown
    assert f"1 {MISSED}" in shown


def test_the_page_has_the_rows_of_the_record() -> None:
    """Every row stands in docs/engine-speed.md as docs/results/engine.json has it."""
    record = json.loads((ROOT / "docs/results/engine.json").read_text())
    page = (ROOT / "docs/engine-speed.md").read_text()
    stated = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in page.partition("## What it comes to\n")[2].partition("\n## ")[0].splitlines()
        if line.startswith("| ")
    ][1:]
    assert stated == [cells(row) for row in record["rows"]]
    assert len(stated) == len(all_cases())
    assert record["date"][:10] in page
    assert f"{record['settings']['keys']:,} random keys" in page
    assert record["settings"] == {**attrs.asdict(FULL), "quick": False}
    assert not record["summary"][FAILED]


def cells(row: dict[str, Any]) -> list[str]:
    """A row as the page has it."""
    target = row["target"]
    limit = f"<= {target['limit']:g}" if target else ""
    return [
        f"{row['group'].lower()}: {row['name']}",
        row["ours"]["engine"].partition(", ")[2],
        f"{report.number(row['ours']['best'])} {row['unit']}",
        f"{report.number(row['peer']['best'])} {row['unit']}",
        f"{row['ratio']:.2f}",
        f"{limit} {row['unit']}" if target and target["absolute"] else limit,
        "" if row["verdict"] == INFORMATION else row["verdict"].lower(),
    ]


def test_the_first_load_is_gone_when_all_is_measured(bench: Bench) -> None:
    assert bench.disturbed
    assert not bench.path(FIRST, bench.engines[OURS[0]]).exists()
