"""The part on levels predicts before it looks, fills to shape, and advises by what was measured.

How long anything takes is no business of these tests.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import re
import statistics
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import attrs
import pytest

import lsm
import policies
from benchmarks.filled_levels import fill
from benchmarks.levels import LevelsPart, budget, configurations, outcome, table, unit
from benchmarks.levels.bench import Bench, opened
from benchmarks.levels.budget import ALL, BITS, BYTES, MEMORY, READS, frontier, within
from benchmarks.levels.configurations import Configuration, all_configurations, described
from benchmarks.levels.data import ABSENT, KEYS_PER_BLOCK, PRESENT, Asked, Data, Questions
from benchmarks.levels.prediction import FILE_NAME, Prediction, Rate, predicted
from benchmarks.levels.scatter import scatter
from benchmarks.levels.settings import GROWTH, LEVELS, OF_SIZE, Settings
from benchmarks.levels.surplus import Surplus
from benchmarks.parts import Size, Unit
from benchmarks.rows import AS_EXPECTED, FAILED, INFORMATION, NOT_MEASURED, UNEXPECTED, Row
from benchmarks.statistics import wilson
from filters import ClassicBloomFilter, sizing
from policies import FilterPolicy, LevelPolicies
from policies.builtin import BUILTIN
from tests.effort import spread

TINY = Settings(keys=3000, absent=3000, present=1000, timed=20, repeats=1)
PART = LevelsPart()


@pytest.fixture
def settings(test_seed: int) -> Settings:
    return attrs.evolve(TINY, seed=test_seed)


@pytest.fixture(autouse=True)
def reproducible_databases(test_seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The secrets of databases, too, are the same at every run of a test."""
    monkeypatch.setattr("lsm.opening.secrets.token_bytes", random.Random(test_seed).randbytes)


@pytest.fixture
def bench(settings: Settings, tmp_path: Path) -> Bench:
    return Bench(settings, tmp_path)


@pytest.fixture
def registered() -> Iterator[Callable[[type[FilterPolicy]], None]]:
    """Make a policy known that somebody else could have installed, until the test is over."""
    names: list[str] = []

    def register(cls: type[FilterPolicy]) -> None:
        policies.register(cls)
        names.append(cls.name)

    yield register
    for name in names:
        policies.registry._REGISTRY._registered.pop(name)


@attrs.frozen(kw_only=True)
class Plain(FilterPolicy):
    """Somebody else's filter: a set, written down."""

    name: ClassVar[str] = "acme.plain"

    def create_filter(self, keys: Sequence[bytes]) -> bytes:
        return b"".join(sorted(set(keys)))

    def key_may_match(self, key: bytes, filter: bytes) -> bool:
        return key in {filter[at : at + 16] for at in range(0, len(filter), 16)}


@attrs.frozen(kw_only=True)
class Demanding(Plain):
    name: ClassVar[str] = "acme.demanding"
    size: int


@attrs.frozen(kw_only=True)
class Unable(Plain):
    name: ClassVar[str] = "acme.unable"

    def create_filter(self, keys: Sequence[bytes]) -> bytes:
        raise RuntimeError("out of ideas")


def named(name: str, settings: Settings = TINY) -> Configuration:
    return next(each for each in all_configurations(settings) if each.name == name)


def units_by_name(settings: Settings = TINY) -> dict[str, Unit]:
    """Those of filled levels of the usual shape."""
    return {
        each.row.subject: each
        for each in PART.units(settings)
        if each.row.group == READS and not each.row.at
    }


def options(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    PART.add_arguments(parser)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args(words)


def of(rows: Sequence[Row], group: str, name: str, at: str = ALL) -> Row:
    (found,) = (
        row
        for row in rows
        if (row.group, row.name) == (group, name) and list(row.at.values()) == [at]
    )
    return found


# -- The data ------------------------------------------------------------------------------


def test_every_run_reaches_over_all_questions_and_no_key_is_twice(settings: Settings) -> None:
    data = Data(settings)
    keys = [key for run in data.runs.values() for key, _ in run]
    assert len(set(keys)) == len(keys) == settings.keys == sum(data.counts.values())
    for above, below in zip(list(data.counts)[:-1], list(data.counts)[1:], strict=True):
        assert data.counts[below] == pytest.approx(GROWTH * data.counts[above], abs=10)
    absent = data.questions[ABSENT].keys
    assert not set(absent) & set(keys)
    for level, run in data.runs.items():
        deeper = [key for at in data.runs if at >= level for key, _ in data.runs[at]]
        assert min(run)[0] <= min(*deeper, *absent)
        assert max(run)[0] >= max(*deeper, *absent)


def test_questions_know_where_they_come_to(settings: Settings) -> None:
    data = Data(settings)
    place = {key: level for level, run in data.runs.items() for key, _ in run}
    values = {key: value for run in data.runs.values() for key, value in run}
    present, absent = data.questions[PRESENT], data.questions[ABSENT]
    assert len(present.keys) == settings.present
    assert [values[key] for key in present.keys] == present.answers
    for level in data.runs:
        levels = [place[key] for key in present.keys]
        below = sum(each > level for each in levels)
        assert present.asked[level] == Asked(levels.count(level), below)
        assert absent.asked[level] == Asked(0, settings.absent)


def test_the_seed_decides_the_data(settings: Settings) -> None:
    one, again = Data(settings), Data(settings)
    other = Data(attrs.evolve(settings, seed=settings.seed + 1))
    assert one.runs == again.runs
    assert one.questions == again.questions
    assert one.runs != other.runs


# -- The prediction ------------------------------------------------------------------------


def test_a_prediction_adds_up_what_absent_keys_and_present_keys_read() -> None:
    rates = {1: Rate(0.5), 2: Rate(0.1), 3: Rate(1.0)}
    prediction = Prediction("three levels", rates)
    absent = Questions(ABSENT, [b""] * 10, [], dict.fromkeys(rates, Asked(0, 10)))
    asked = {1: Asked(1, 9), 2: Asked(3, 6), 3: Asked(6, 0)}
    present = Questions(PRESENT, [b""] * 10, [], asked)
    assert prediction.all_reads(absent) == pytest.approx(0.5 + 0.1 + 1)
    assert prediction.reads(present, 1) == pytest.approx((1 + 9 * 0.5) / 10)
    assert prediction.all_reads(present) == pytest.approx(1 + (9 * 0.5 + 6 * 0.1) / 10)


def test_what_one_level_does_not_say_the_sum_does_not() -> None:
    asked = dict.fromkeys((1, 2), Asked(0, 10))
    prediction = Prediction("half known", {1: Rate(0.5), 2: None})
    questions = Questions(ABSENT, [b""] * 10, [], asked)
    assert prediction.reads(questions, 1) == 0.5
    assert prediction.reads(questions, 2) is None
    assert prediction.all_reads(questions) is None


def test_a_prediction_is_of_planned_numbers_and_the_configuration() -> None:
    counts = {1: 100_000, 2: 160, 3: 100_000}
    levels = {1: {"policy": "leveldb", "layout": "block"}, 2: {"policy": "none"}}
    document: dict[str, Any] = {
        "filters": {"policy": "cuckoo", "level": {str(at): levels[at] for at in levels}}
    }
    mine = Configuration("mine", LevelPolicies.from_config)
    rates = predicted(mine, LevelPolicies.from_config(document), counts).rates
    assert rates[2] == Rate(1.0)
    assert rates[3] == Rate(sizing.fpr("cuckoo", n=100_000, fingerprint_bits=12))
    block = rates[1]
    assert block
    assert block.fpr == sizing.fpr("leveldb", n=KEYS_PER_BLOCK, bits_per_key=10)
    assert 0 < block.scatter < scatter("leveldb", KEYS_PER_BLOCK, bits_per_key=10) / 40
    document["filters"]["optimize_filters_for_hits"] = True
    rates = predicted(mine, LevelPolicies.from_config(document), counts).rates
    assert rates[3] == Rate(1.0)


def test_the_prediction_is_written_before_a_key_is_looked_up(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    configuration = named("blocked 10")
    seen = []

    def get(self: lsm.DB, key: bytes) -> None:
        seen.append((bench.directory / FILE_NAME).read_text())
        raise RuntimeError("no lookups today")

    monkeypatch.setattr(lsm.DB, "get", get)
    (row,) = unit(configuration, bench.settings).run(bench)
    assert row.verdict == FAILED
    assert "no lookups today" in row.reason
    (written,) = map(json.loads, seen[0].splitlines())
    questions = bench.data.questions
    prediction = predicted(configuration, configuration.choose({}), bench.data.counts)
    assert written["subject"] == "blocked 10"
    for name in (ABSENT, PRESENT):
        reads = written["blocks read per lookup"][name]
        assert reads[ALL] == prediction.all_reads(questions[name])
        assert [reads[str(level)] for level in prediction.rates] == [
            prediction.reads(questions[name], level) for level in prediction.rates
        ]
    assert not (bench.directory / "database").exists()


def test_the_prediction_is_written_before_there_is_a_database(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise RuntimeError("no databases today")

    monkeypatch.setattr("benchmarks.levels.bench.lsm.DB", refuse)
    unit(named("classic 10"), bench.settings).run(bench)
    assert json.loads((bench.directory / FILE_NAME).read_text())["subject"] == "classic 10"


def test_rows_expect_what_was_written(bench: Bench) -> None:
    rows = unit(named("mixed"), bench.settings).run(bench)
    written = json.loads((bench.directory / FILE_NAME).read_text())["blocks read per lookup"]
    for name in (ABSENT, PRESENT):
        for level in (*map(str, bench.data.counts), ALL):
            assert of(rows, READS, name, level).expected == written[name][level]


def test_a_data_block_has_as_many_entries_as_predictions_think(
    bench: Bench, tmp_path: Path
) -> None:
    with opened(tmp_path / "db", named("none").choose({})) as db:
        fill(db, bench.data.runs)
        assert db.get(bench.data.runs[5][0][0])
        view: Any = db._store.view
        (placed,) = view.version.levels[5]
        blocks = len(placed.file.opened.handles)
    assert bench.data.counts[5] / blocks == pytest.approx(KEYS_PER_BLOCK, rel=0.03)


# -- The scatter ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("family", "params"),
    [
        ("blocked", {"bits_per_key": 10}),
        ("blocked", {"bits_per_key": 14}),
        ("rocksdb", {"bits_per_key": 10}),
        ("classic", {"bits_per_key": 10}),
        ("counting", {"counters_per_key": 10}),
        ("cuckoo", {"fingerprint_bits": 12}),
    ],
)
def test_filters_scatter_as_told(family: str, params: dict[str, Any], rng: random.Random) -> None:
    policy: Any = policies.create(family, **params)
    rates = []
    for _ in range(250):
        keys = [rng.randbytes(16) for _ in range(600)]
        rates.append(policy.build(keys).expected_fpr)
    mean = math.fsum(rates) / len(rates)
    deviation = math.sqrt(math.fsum((rate - mean) ** 2 for rate in rates) / len(rates)) / mean
    told = scatter(family, 600, **params)
    assert deviation == pytest.approx(told, rel=0.2, abs=0.002)
    assert mean == pytest.approx(sizing.fpr(family, n=600, **params), rel=0.02 + told / 4)


# -- The memory ----------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["classic", "blocked"])
@pytest.mark.parametrize("bits", [6, 10])
def test_more_above_takes_the_memory_of_a_uniform_configuration(family: str, bits: int) -> None:
    counts = {level: round(880 * GROWTH ** (level - 1)) for level in range(1, LEVELS + 1)}
    chosen = configurations._more_above(family, bits).choose(counts)
    taken = given = 0.0
    rates = []
    for level, count in counts.items():
        params = chosen[level].params()
        taken += count * sizing.stored_bits_per_key(family, n=count, **params)
        given += count * sizing.stored_bits_per_key(family, n=count, bits_per_key=bits)
        rates.append(params["fpr"])
    assert 0.98 * given < taken <= 1.005 * given
    assert rates == sorted(rates)
    assert rates[-1] > 2 * rates[0]


# -- Measuring -----------------------------------------------------------------------------


def test_every_configuration_is_filled_asked_and_as_predicted(bench: Bench) -> None:
    seen: set[str] = set()
    marked: list[Row] = []
    for name, each in spread(list(units_by_name(bench.settings).items()), 6):
        rows = each.run(bench)
        assert {row.verdict for row in rows} <= {INFORMATION, AS_EXPECTED, UNEXPECTED}, name
        marked += [row for row in rows if row.verdict == UNEXPECTED]
        assert {row.subject for row in rows} == {name}
        ids = [row.id for row in rows]
        assert len(set(ids)) == len(ids)
        assert not seen & set(ids)
        seen |= set(ids)
        levels = [str(level) for level in bench.data.counts]
        for question in (ABSENT, PRESENT):
            reads = [of(rows, READS, question, level) for level in levels]
            total = of(rows, READS, question)
            assert total.value == pytest.approx(math.fsum(row.value or 0 for row in reads))
            predicted = [row.expected for row in reads if row.expected is not None]
            if len(predicted) == len(reads):
                assert total.expected == pytest.approx(math.fsum(predicted))
            else:  # a plug-in, which other tests may have registered
                assert total.expected is None
            for row in (*reads, total):
                assert row.interval
                assert row.interval[0] <= (row.value or 0) <= row.interval[1]
        sizes = [of(rows, MEMORY, BYTES, level).value or 0 for level in levels]
        assert of(rows, MEMORY, BYTES).value == sum(sizes)
        assert of(rows, MEMORY, BITS).value == pytest.approx(8 * sum(sizes) / bench.settings.keys)
        assert not (bench.directory / "database").exists()
    assert len(marked) <= 4  # in levels of ten keys chance is coarse


def test_without_filters_an_absent_key_reads_a_block_on_every_level(bench: Bench) -> None:
    rows = unit(named("none"), bench.settings).run(bench)
    assert of(rows, READS, ABSENT).value == LEVELS
    assert of(rows, READS, ABSENT).interval == pytest.approx((LEVELS, LEVELS), abs=0.01)
    asked = bench.data.questions[PRESENT].asked
    wanted = sum(each.hits + each.misses for each in asked.values()) / bench.settings.present
    assert of(rows, READS, PRESENT).value == pytest.approx(wanted)
    assert of(rows, READS, PRESENT).sigmas == 0
    assert of(rows, MEMORY, BYTES).value == 0


def test_what_the_filters_take_and_do_is_counted_and_not_guessed(bench: Bench) -> None:
    """A whole level whose filter is of another kind than the others shows in its rows only."""
    rows = unit(named("none above"), bench.settings).run(bench)
    assert [of(rows, MEMORY, BYTES, level).value for level in "123"] == [0, 0, 0]
    assert [of(rows, READS, ABSENT, level).value for level in "123"] == [1, 1, 1]
    assert all((of(rows, MEMORY, BITS, level).value or 0) > 9.9 for level in "45")
    assert all((of(rows, READS, ABSENT, level).value or 0) < 0.05 for level in "45")
    hits = unit(named("hits-only"), bench.settings).run(bench)
    assert of(hits, READS, ABSENT, "5").value == of(hits, READS, ABSENT, "5").expected == 1
    assert of(hits, MEMORY, BYTES, "5").value == 0


@pytest.mark.parametrize("name", ["mixed", "more above: blocked 10", "binary-fuse 8"])
def test_every_level_carries_one_table_with_its_own_filter(
    name: str, bench: Bench, tmp_path: Path
) -> None:
    data = bench.data
    chosen = named(name).choose(data.counts)
    with opened(tmp_path / "db", chosen) as db:
        fill(db, data.runs)
        for level in db.filters():
            assert not level.drifted
            wanted = [(level.level, data.counts[level.level])] if level.level in data.counts else []
            assert [(each.written_for_level, each.num_keys) for each in level.tables] == wanted


def test_time_on_flash_and_disk_is_that_in_memory_and_a_latency_for_each_block(
    bench: Bench,
) -> None:
    rows = unit(named("classic 6"), bench.settings).run(bench)
    for name in (ABSENT, PRESENT):
        blocks = of(rows, READS, name).value or 0
        memory = of(rows, outcome.TIME, name, "memory")
        flash, disk = (of(rows, outcome.TIME, name, at) for at in list(outcome.STORAGES)[1:])
        assert memory.value == min(memory.repeats)
        assert memory.value
        assert flash.value == pytest.approx(memory.value + 100 * blocks)
        assert disk.value == pytest.approx(memory.value + 10_000 * blocks)


@pytest.mark.parametrize("lost", [ABSENT, PRESENT])
def test_a_wrong_answer_costs_the_configuration_its_rows(
    lost: str, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = bench.data.questions[lost].keys[7]
    own = lsm.DB.get

    def get(self: lsm.DB, asked: bytes) -> Any:
        return b"another value" if asked == key else own(self, asked)

    monkeypatch.setattr(lsm.DB, "get", get)
    (row,) = unit(named("blocked 10"), bench.settings).run(bench)
    assert row.verdict == FAILED
    assert "wrong answer" in row.reason
    assert row.value is None


def test_filters_that_let_through_too_much_are_marked(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Filters of four bits where ten were configured."""
    poor = ClassicBloomFilter.build

    def build(keys: Any, **_: Any) -> Any:
        return poor(keys, bits_per_key=4)

    monkeypatch.setattr("policies.builtin.ClassicPolicy.filter_class", BuiltBy(build))
    rows = unit(named("classic 10"), bench.settings).run(bench)
    assert {of(rows, READS, ABSENT, level).verdict for level in "12345"} == {UNEXPECTED}
    total = of(rows, READS, ABSENT)
    assert total.verdict == of(rows, READS, PRESENT).verdict == UNEXPECTED
    assert "standard errors" in total.note
    assert total.sigmas
    assert total.sigmas > 4


@attrs.frozen
class BuiltBy:
    """A filter class that builds in another way."""

    build: Callable[..., Any]

    def __getattr__(self, name: str) -> Any:
        return getattr(ClassicBloomFilter, name)


# -- Verdicts and intervals ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("counted", "expected", "variance", "verdict"),
    [
        (1000, 1000, 1000, AS_EXPECTED),
        (1100, 1000, 400, AS_EXPECTED),  # five errors, but 10 % away
        (1200, 1000, 400, UNEXPECTED),
        (800, 1000, 400, UNEXPECTED),
        (1200, 1000, 3600, AS_EXPECTED),  # 20 % away, but 3.3 errors
        (10, 3, 3, AS_EXPECTED),  # once in a thousand times, as likely as 3.1 errors
        (2, 0.01, 0.01, AS_EXPECTED),
        (3, 0.01, 0.01, UNEXPECTED),
        (0, 8, 8, AS_EXPECTED),
        (0, 12, 12, UNEXPECTED),
        (0, 0, 0, AS_EXPECTED),
        (1, 0, 0, UNEXPECTED),
    ],
)
def test_unexpected_is_what_is_far_in_errors_and_in_share(
    counted: float, expected: float, variance: float, verdict: str
) -> None:
    assert Surplus(counted, expected, variance).verdict == verdict


@pytest.mark.parametrize("expected", [0.2, 3.0, 50.0])
def test_sigmas_are_as_likely_as_errors_of_a_normal_distribution(expected: float) -> None:
    term, tail, counted = math.exp(-expected), 1.0, 0
    while tail > 1e-5:
        tail -= term
        counted += 1
        term *= expected / counted
        if 1e-5 < tail < 0.1:
            wanted = statistics.NormalDist().inv_cdf(1 - tail)
            assert Surplus(counted, expected, expected).sigmas == pytest.approx(wanted, abs=0.3)


def test_the_scatter_of_filters_counts_as_chance() -> None:
    alone = outcome._surplus(1300, 100_000, Rate(0.01))
    scattered = outcome._surplus(1300, 100_000, Rate(0.01, 0.2))
    assert alone
    assert alone.verdict == UNEXPECTED
    assert scattered
    assert scattered.verdict == AS_EXPECTED


def test_an_interval_of_a_sum_holds_the_sum_as_often_as_it_says(rng: random.Random) -> None:
    rates, count = (0.001, 0.01, 0.2), 400
    held = 0
    for _ in range(300):
        parts = []
        for rate in rates:
            hits = sum(rng.random() < rate for _ in range(count))
            parts.append((hits / count, wilson(hits, count)))
        low, high = outcome._of_sum(parts)
        held += low <= sum(rates) <= high
    assert held / 300 > 0.91


def test_intervals_of_one_part_and_of_two_alike() -> None:
    interval = wilson(3, 100)
    assert outcome._of_sum([(0.03, interval)]) == pytest.approx(interval)
    doubled = outcome._of_sum([(0.03, interval)] * 2)
    assert [end - 0.06 for end in doubled] == pytest.approx(
        [math.sqrt(2) * (end - 0.03) for end in interval]
    )
    assert outcome._interval(13, 10, 100, 110) == pytest.approx(
        tuple((10 + 100 * end) / 110 for end in interval)
    )
    assert outcome._interval(10, 10, 0, 20) == (0.5, 0.5)


# -- What to use for a memory --------------------------------------------------------------


def choice_rows(subject: str, size: float, blocks: float, width: float = 0.0) -> list[Row]:
    common = Row(part=budget.PART, group=MEMORY, name="", subject=subject, at={"level": ALL})
    interval = (blocks - width, blocks + width)
    return [
        attrs.evolve(common, name=BYTES, value=size),
        attrs.evolve(common, name=BITS, value=size / 100),
        attrs.evolve(common, group=READS, name=ABSENT, value=blocks, interval=interval),
        attrs.evolve(common, group=READS, name=PRESENT, value=1.0),
        attrs.evolve(common, group=READS, name=ABSENT, at={"level": "1"}, value=0.0),
    ]


def test_the_frontier_has_what_nothing_beats(rng: random.Random) -> None:
    for _ in range(50):
        given = {f"c{at}": (rng.randrange(1, 30), rng.randrange(1, 30)) for at in range(12)}
        rows = [row for name, of in given.items() for row in choice_rows(name, *of)]
        rng.shuffle(rows)
        found = frontier(rows)
        kept = [(each.bytes, each.blocks) for each in found]
        assert kept == sorted(kept)
        assert [blocks for _, blocks in kept] == sorted({blocks for _, blocks in kept})[::-1]
        for size, blocks in given.values():
            assert any(small <= size and few <= blocks for small, few in kept)


def test_what_chance_explains_is_not_worth_memory() -> None:
    rows = [
        *choice_rows("none", 0, 5.0),
        *choice_rows("ten", 1000, 0.041, 0.002),
        *choice_rows("ten and a little", 1001, 0.040, 0.002),
        *choice_rows("twelve", 1200, 0.03, 0.002),
    ]
    found = frontier(rows)
    assert [each.subject for each in found] == ["none", "ten", "twelve"]
    for bits, subject in ((0, "none"), (9.99, "none"), (10, "ten"), (11.9, "ten"), (99, "twelve")):
        used = within(found, bits)
        assert used
        assert used.subject == subject
    assert within(found[1:], 9) is None
    assert found[1].reads.id in [row.id for row in rows]


def test_the_frontier_passes_over_what_was_not_measured() -> None:
    failed = [attrs.evolve(row, verdict=FAILED) for row in choice_rows("broken", 1, 0.001)]
    half = choice_rows("half", 2, 0.002)[:2]
    other = [attrs.evolve(row, part="filters") for row in choice_rows("other", 3, 0.003)]
    found = frontier([*failed, *half, *other, *choice_rows("good", 4, 0.4)])
    assert [each.subject for each in found] == ["good"]
    assert frontier([]) == []


# -- Options, plug-ins, units --------------------------------------------------------------


def test_sizes_and_options_lead_to_settings(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('[filters]\npolicy = "cuckoo"\nfpr = 0.001\n')
    for size in Size:
        assert PART.settings(size, options()) == OF_SIZE[size]
    given = options("--levels-keys", "20000", "--configuration", str(file), "--seed", "3")
    settings = PART.settings(Size.QUICK, given)
    assert settings == attrs.evolve(OF_SIZE[Size.QUICK], keys=20_000, files=(str(file),), seed=3)
    assert list(units_by_name(settings))[-1] == str(file)
    assert len(units_by_name(OF_SIZE[Size.QUICK])) < len(units_by_name(TINY))


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--levels-keys", "9999"), "--levels-keys is 9999: .* 10000 to 10000000 keys"),
        (("--levels-keys", "10000001"), "--levels-keys is 10000001"),
        (("--configuration", "nowhere.toml"), "nowhere.toml cannot be read .*No such file"),
        (("--configuration", "bad.toml"), "bad.toml: .*did you mean 'cuckoo'"),
        (("--configuration", "ok.toml", "--configuration", "ok.toml"), "ok.toml is given twice"),
    ],
)
def test_a_wrong_option_says_what_is_wrong(
    words: tuple[str, ...], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bad.toml").write_text('[filters]\npolicy = "cukoo"\n')
    (tmp_path / "ok.toml").write_text("")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=told):
        PART.settings(Size.DEFAULT, options(*words))


def test_a_configuration_of_ones_own_is_measured_like_the_others(
    settings: Settings, tmp_path: Path
) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(
        '[filters]\npolicy = "cuckoo"\nfpr = 0.01\n[filters.level.5]\npolicy = "none"\n'
        "[engine]\nblock_size = 64\n"
    )
    settings = attrs.evolve(settings, files=(str(file),))
    rows = units_by_name(settings)[str(file)].run(Bench(settings, tmp_path))
    assert of(rows, MEMORY, BYTES).note == "1-4 cuckoo fpr=0.01; 5 none"
    assert of(rows, READS, ABSENT, "5").value == 1
    assert of(rows, READS, ABSENT).verdict == AS_EXPECTED


def test_a_plug_in_is_measured_and_nothing_is_predicted_of_it(
    bench: Bench, registered: Callable[[type[FilterPolicy]], None]
) -> None:
    registered(Plain)
    rows = units_by_name()["acme.plain"].run(bench)
    total = of(rows, READS, ABSENT)
    assert (total.value, total.expected, total.verdict) == (0, None, INFORMATION)
    assert "says nothing" in total.note
    assert (of(rows, MEMORY, BITS).value or 0) > 128
    assert any("acme.plain" in line for line in PART.text(rows))


@pytest.mark.parametrize(
    ("policy", "told"),
    [
        (Demanding, "cannot be made without parameters.*size"),
        (Unable, r"level 1 \(failed\); the log"),
    ],
)
def test_a_plug_in_that_cannot_be_used_says_why(
    policy: type[FilterPolicy],
    told: str,
    bench: Bench,
    registered: Callable[[type[FilterPolicy]], None],
) -> None:
    registered(policy)
    (row,) = units_by_name()[policy.name].run(bench)
    assert row.verdict == NOT_MEASURED
    assert re.search(told, row.reason)


def test_units_are_told_apart_and_cost_nothing_to_list() -> None:
    keys = [each.key for each in PART.units(TINY)]
    assert len(set(keys)) == len(keys)
    for policy in BUILTIN:
        assert any(f"/{policy.name} " in f"{key} " for key in keys), policy.name
    assert all(each.seconds < 30 for size in Size for each in units_by_name(OF_SIZE[size]).values())


def test_what_levels_carry_is_told_in_a_line() -> None:
    counts = dict.fromkeys(range(1, LEVELS + 1), 1)
    assert described(named("mixed").choose(counts), counts) == (
        "1-3 blocked bits_per_key=14; 4-5 binary-fuse fingerprint_bits=8"
    )
    assert "4 leveldb bits_per_key=10 layout=block" in described(
        named("examples/lsm.toml").choose(counts), counts
    )
    assert described(named("hits-only").choose(counts), counts).endswith(
        "optimize_filters_for_hits"
    )


# -- The text ------------------------------------------------------------------------------


def test_the_text_shows_all_configurations_and_marks_what_to_look_at(bench: Bench) -> None:
    units = units_by_name(bench.settings)
    rows = [row for name in ("none", "classic 10") for row in units[name].run(bench)]
    marked = [
        attrs.evolve(row, verdict=UNEXPECTED) if row.id.endswith("absent key/none/level=2") else row
        for row in rows
    ]
    broken = attrs.evolve(units["mixed"].row, verdict=FAILED, reason="three answers were wrong")
    lines = list(PART.text([*marked, broken]))
    whole = "\n".join(lines)
    absent = of(rows[len(rows) // 2 :], READS, ABSENT)
    assert f"{absent.value:.3g}" in whole
    assert f"{absent.expected:.3g}" in whole
    assert any(line.split()[:3] == ["none", "1", "1!"] for line in lines)
    assert table.MARK not in "\n".join(PART.text(rows))
    assert "  mixed: failed: three answers were wrong" in lines
    assert any("bits a key" in line and "classic 10" in line for line in lines)
    assert max(map(len, lines)) < 180


def test_the_text_of_nothing_is_nothing_and_of_failures_says_why() -> None:
    assert list(PART.text([])) == []
    missing = attrs.evolve(PART.units(TINY)[0].row, verdict=NOT_MEASURED, reason="not here")
    assert list(PART.text([missing])) == ["  none: not measured: not here"]
