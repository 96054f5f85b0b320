"""The part on filters: who takes part, what is asked before anything is timed, what rows say."""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import attrs
import pytest

import policies
from benchmarks import peers
from benchmarks.errors import UnavailableError
from benchmarks.filters import FiltersPart, contenders, memory, rates, settings, speed
from benchmarks.filters.bench import Bench, Built
from benchmarks.filters.contenders import Contender
from benchmarks.filters.settings import Settings
from benchmarks.parts import Size, Unit
from benchmarks.rows import AS_EXPECTED, FAILED, INFORMATION, NOT_MEASURED, UNEXPECTED, Row
from benchmarks.statistics import MARKED
from benchmarks.subjects import PICKLED, Subject
from benchmarks.timing import Sample, loop
from policies import FilterPolicy, FilterReader
from policies.registry import Registry

PART = FiltersPart()
COUNT = 1500
OPTIONS = {"keys_file": None, "keys": None, "keys_count": None, "policy": None, "seed": 1}
SPEED = {
    "build",
    *(
        f"one key, {kind}, {order}"
        for kind in ("hit", "miss")
        for order in ("in order", "shuffled")
    ),
}
LISTS = {"list of 4096, hit", "list of 4096, miss"}
BUFFERS = {"buffer, hit", "buffer, miss"}
RATES = {"false negatives", "false-positive rate", "bits per key"}
BOUND, COLD = "times the lower bound", "first wave after a cold open"


@pytest.fixture
def tiny(test_seed: int) -> Settings:
    return Settings(
        seed=test_seed,
        counts={"random": (COUNT,)},
        absent=20_000,
        many_absent=40_000,
        timed_keys=600,
        repeats=2,
        at_least_seconds=0,
        slow_keys=2 * COUNT,
        memory_from=10**9,
    )


@pytest.fixture
def bench(tiny: Settings, tmp_path: Path) -> Iterator[Bench]:
    with PART.bench(tiny, tmp_path) as made:
        yield made


def options(**given: Any) -> argparse.Namespace:
    return argparse.Namespace(**{**OPTIONS, **given})


def unit(tiny: Settings, subject: str) -> Unit:
    [found] = [each for each in PART.units(tiny) if each.row.subject == subject]
    return found


def by_name(rows: Sequence[Row]) -> dict[str, Row]:
    found = {row.name: row for row in rows}
    assert len(found) == len(rows)
    return found


def take_part(monkeypatch: pytest.MonkeyPatch, *who: Contender) -> None:
    monkeypatch.setattr(contenders, "measured", lambda settings: list(who))


def of(subject: Subject) -> Contender:
    return Contender(subject.name, lambda: subject)


def liar(share: float) -> Subject:
    """Answers right for its keys, and "maybe" to a share of all others that it does not tell."""

    class Reader:
        def __init__(self, keys: list[bytes]):
            self.keys = set(keys)

        def might_contain(self, key: bytes) -> bool:
            return key in self.keys or random.Random(key).random() < share

    return Subject(
        "liar",
        lambda keys: keys,
        expected_fpr=lambda reader: 0.1,
        storage=attrs.evolve(PICKLED, load=lambda path: Reader(PICKLED.load(path))),
    )


def test_every_builtin_policy_every_peer_and_the_baselines_take_part(tiny: Settings) -> None:
    families = {each.family for each in contenders.measured(tiny)}
    assert {*policies.available()} - {"none"} <= families
    assert {*peers.BY_NAME, "counting-live", "scalable", "set", "sorted", "no"} <= families
    units = [each.key for each in PART.units(attrs.evolve(tiny, sweep_keys=COUNT))]
    assert len(set(units)) == len(units)


@pytest.mark.parametrize(
    ("subject", "names"),
    [
        ("blocked bits_per_key=10", {*RATES, BOUND, *SPEED, *LISTS, *BUFFERS, COLD}),
        ("leveldb bits_per_key=10", {*RATES, BOUND, *SPEED, *LISTS, *BUFFERS, COLD}),
        ("counting-live counters_per_key=10", {*RATES, BOUND, *SPEED, *LISTS, *BUFFERS, COLD}),
        ("scalable fpr=0.01", {*RATES, BOUND, *SPEED, *LISTS, *BUFFERS, COLD}),
        ("set", {*RATES, *SPEED, COLD}),
        ("sorted array", {*RATES, *SPEED, COLD}),
        ("no filter", {*RATES, *SPEED, *LISTS, COLD}),
    ],
)
def test_a_contender_has_the_rows_that_apply(
    tiny: Settings, bench: Bench, subject: str, names: set[str]
) -> None:
    rows = by_name(unit(tiny, subject).run(bench))
    assert set(rows) == names
    for row in rows.values():
        assert (row.part, row.subject, row.at) == (
            "filters", subject, {"keys": "random", "n": COUNT}
        )  # fmt: skip
        assert row.value is not None
    assert all(len(rows[name].repeats) == 2 for name in names & {*SPEED, *LISTS, *BUFFERS})
    rate = rows["false-positive rate"]
    assert rate.interval
    assert rate.value is not None
    assert rate.interval[0] <= rate.value <= rate.interval[1]
    assert rate.verdict == AS_EXPECTED
    one = rows["one key, hit, shuffled"]
    assert one.peer == "an empty compiled call"
    assert one.ratio == pytest.approx(min(one.repeats) / min(one.peer_repeats))


def test_a_policys_bits_are_those_of_its_block(tiny: Settings, bench: Bench) -> None:
    row = by_name(unit(tiny, "blocked bits_per_key=10").run(bench))["bits per key"]
    policy = policies.create("blocked")
    keys = bench.keys("random", COUNT).keys
    block = policies.encode_block(policy, policy.create_filter(keys) or b"", num_keys=COUNT)
    assert row.value == pytest.approx(len(block) * 8 / COUNT)
    row = by_name(unit(tiny, "rocksdb bits_per_key=10").run(bench))["bits per key"]
    alone = policies.create("rocksdb").create_filter(keys) or b""
    assert row.value == pytest.approx(len(alone) * 8 / COUNT)


@pytest.mark.parametrize("subject", ["set", "sorted array"])
def test_what_keeps_the_keys_is_as_large_as_it_is_in_memory(
    tiny: Settings, bench: Bench, subject: str
) -> None:
    row = by_name(unit(tiny, subject).run(bench))["bits per key"]
    assert row.value is not None
    assert row.value > 8 * sys.getsizeof(bytes(16))
    assert "in memory" in row.note


def test_keys_are_asked_in_order_and_shuffled(
    tiny: Settings, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    looped: list[tuple[str, list[bytes]]] = []

    def recorded(body: str, keys: list[bytes], subject: Any) -> Sample:
        looped.append((body, keys))
        return loop(body, keys, subject)

    monkeypatch.setattr(speed, "loop", recorded)
    unit(tiny, "set").run(bench)
    asked = bench.keys("random", COUNT).asked
    wanted = [
        some
        for order in ("in_order", "shuffled")
        for some in (getattr(asked[True], order), getattr(asked[False], order))
    ]
    assert [keys for body, keys in looped if body == "key in subject"] == wanted
    assert [keys for body, keys in looped if body == "subject(key)"] == wanted


def test_after_opening_keys_and_absent_keys_are_asked_in_turn(
    tiny: Settings, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[bytes]] = []

    class Recorder(set[bytes]):
        def __init__(self, keys: set[bytes]):
            super().__init__(keys)
            self.asked: list[bytes] = []
            asked.append(self.asked)

        def __contains__(self, key: object) -> bool:
            assert isinstance(key, bytes)
            self.asked.append(key)
            return super().__contains__(key)

    whole = contenders.whole_set()
    storage = attrs.evolve(whole.storage, load=lambda path: Recorder(PICKLED.load(path)))
    take_part(monkeypatch, of(attrs.evolve(whole, name="recorder", storage=storage)))
    row = by_name(unit(tiny, "recorder").run(bench))[COLD]
    assert len(asked) == 1 + len(row.repeats) == 3
    known = set(bench.keys("random", COUNT).keys)
    for opened in asked[1:]:
        assert [key in known for key in opened] == [True, False] * 500


def test_one_denied_key_is_a_failed_row_and_nothing_else(
    tiny: Settings, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = contenders.subject_of(policies.create("blocked"))
    forgetful = attrs.evolve(whole, name="forgetful", build=lambda keys: whole.build(keys[1:]))
    take_part(monkeypatch, of(forgetful))
    [row] = unit(tiny, "forgetful").run(bench)
    assert (row.name, row.verdict) == ("false negatives", FAILED)
    assert row.reason == f"forgetful denies 1 of its {COUNT} keys, one by one"


def test_forms_that_answer_differently_fail(
    tiny: Settings, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = contenders.subject_of(policies.create("blocked"))
    generous = attrs.evolve(whole, name="generous", ask_batch="[True] * len(key)")
    take_part(monkeypatch, of(generous))
    [row] = unit(tiny, "generous").run(bench)
    assert row.verdict == FAILED
    assert "answers otherwise one by one, in batches" in row.reason


@pytest.mark.parametrize(
    ("share", "verdict", "words"),
    [
        (0.1, AS_EXPECTED, ""),
        (0.2, UNEXPECTED, "standard errors more false positives"),
        (0.05, UNEXPECTED, "standard errors fewer false positives"),
    ],
)
def test_a_rate_beyond_chance_is_marked_with_its_side(
    tiny: Settings,
    bench: Bench,
    monkeypatch: pytest.MonkeyPatch,
    share: float,
    verdict: str,
    words: str,
) -> None:
    take_part(monkeypatch, of(liar(share)))
    row = by_name(unit(tiny, "liar").run(bench))["false-positive rate"]
    assert row.verdict == verdict
    assert words in row.note
    assert row.sigmas is not None
    assert (abs(row.sigmas) > MARKED) == (verdict == UNEXPECTED)


@pytest.mark.parametrize(
    ("share", "verdict"), [(0.1, AS_EXPECTED), (0.05, AS_EXPECTED), (0.2, UNEXPECTED)]
)
def test_of_who_keeps_the_order_of_keys_no_more_is_expected(
    tiny: Settings, bench: Bench, monkeypatch: pytest.MonkeyPatch, share: float, verdict: str
) -> None:
    honest = liar(share)
    take_part(monkeypatch, of(attrs.evolve(honest, keeps_order=True)))
    row = by_name(unit(tiny, "liar").run(bench))["false-positive rate"]
    assert row.verdict == verdict


def test_what_keys_make_of_it_that_lie_close_is_not_judged(tiny: Settings, tmp_path: Path) -> None:
    close = attrs.evolve(tiny, counts={"composite": (COUNT,)}, policies=["grafite"])
    with PART.bench(close, tmp_path) as bench:
        [each] = PART.units(close)
        row = by_name(each.run(bench))["false-positive rate"]
    assert (row.verdict, row.expected) == (INFORMATION, None)
    assert "depends on where they lie" in row.note


def test_an_expectation_with_an_error_of_its_own_counts_for_less() -> None:
    alone = rates.errors_from(1200, 10_000, 0.1)
    assert alone == pytest.approx(200 / 30)
    assert rates.errors_from(1200, 10_000, 0.1, 0.05) == pytest.approx(200 / (900 + 2500) ** 0.5)
    assert rates.errors_from(1000, 10_000, 0.1, 0.05) == 0


def test_who_predicts_nothing_has_a_rate_without_a_verdict(
    tiny: Settings, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    silent = attrs.evolve(liar(0.1), name="silent", expected_fpr=lambda reader: None)
    take_part(monkeypatch, of(silent))
    row = by_name(unit(tiny, "silent").run(bench))["false-positive rate"]
    assert (row.expected, row.sigmas, row.verdict) == (None, None, "information")


def test_a_missing_peer_is_a_row_with_what_installs_it(
    tiny: Settings, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "rbloom", None)
    [row] = unit(tiny, "rbloom fpr=0.01").run(bench)
    assert (row.verdict, row.value) == (NOT_MEASURED, None)
    assert "pip install rbloom" in row.reason
    assert "not measured: rbloom fpr=0.01: peer rbloom" in "\n".join(PART.text([row]))


def test_what_is_slow_is_left_out_above_its_limit_and_says_so(
    tiny: Settings, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = attrs.evolve(contenders.whole_set(), name="snail", slow=True)
    take_part(monkeypatch, of(slow))
    assert len(unit(tiny, "snail").run(bench)) > 5
    bench.settings = attrs.evolve(tiny, slow_keys=COUNT - 1)
    [row] = unit(tiny, "snail").run(bench)
    assert row.verdict == NOT_MEASURED
    assert "up to 1,499" in row.reason
    take_part(monkeypatch, of(attrs.evolve(slow, slow=False, most_keys=COUNT - 1)))
    [row] = unit(tiny, "snail").run(bench)
    assert row.verdict == NOT_MEASURED
    assert "up to 1,499" in row.reason


def test_a_build_that_takes_long_is_timed_once(
    tiny: Settings, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmarks.filters.speed.LONG_BUILD", -1.0)
    row = by_name(unit(tiny, "set").run(bench))["build"]
    assert len(row.repeats) == 1
    assert "timed once" in row.note


def test_without_a_compiler_batches_have_no_floor_and_say_so(
    tiny: Settings, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(*_given: object, **_more: object) -> None:
        raise UnavailableError("there is no C compiler at hand")

    monkeypatch.setattr("benchmarks.floor.Memory", none)
    row = by_name(unit(tiny, "blocked bits_per_key=10").run(bench))["buffer, hit"]
    assert (row.peer, row.ratio) == ("", None)
    assert "no C compiler" in row.note


@attrs.frozen(kw_only=True)
class PluginPolicy(FilterPolicy):
    """A set as a plug-in: whatever is asked, one key after the other."""

    name: ClassVar[str] = "acme.exact"
    declines: bool = False

    def create_filter(self, keys: Sequence[bytes]) -> bytes | None:
        return None if self.declines else b"".join(key.hex().encode() + b"\n" for key in keys)

    def open(self, filter: bytes) -> FilterReader:
        return PluginReader(set(filter.split()))


@attrs.frozen
class PluginReader:
    keys: set[bytes]

    def might_contain(self, key: bytes, /) -> bool:
        return key.hex().encode() in self.keys

    def might_contain_many(self, keys: Sequence[bytes], /) -> list[bool]:
        return [self.might_contain(key) for key in keys]


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Registry:
    """A registry of this test's own, which the blocks of its plug-ins are opened by, too."""
    made = Registry(policies.builtin.BUILTIN, scan=dict)
    monkeypatch.setattr(policies, "available", made.available)
    monkeypatch.setattr(policies, "create", made.create)
    monkeypatch.setattr(policies.registry, "lookup", made.lookup)
    return made


def test_a_plugin_takes_part_like_any_other(
    tiny: Settings, bench: Bench, registry: Registry
) -> None:
    registry.register(PluginPolicy)
    rows = by_name(unit(tiny, "acme.exact").run(bench))
    assert set(rows) == {*RATES, *SPEED, *LISTS, COLD}
    assert rows["false-positive rate"].value == 0


def test_a_policy_that_declines_is_not_measured(
    tiny: Settings, bench: Bench, registry: Registry
) -> None:
    registry.register(PluginPolicy)
    named = attrs.evolve(tiny, policies=("acme.exact:declines=true",))
    [row] = unit(named, "acme.exact declines=true").run(bench)
    assert row.verdict == NOT_MEASURED
    assert "makes no filter of 1500" in row.reason


def test_a_broken_plugin_has_a_row_with_what_is_wrong(
    tiny: Settings, bench: Bench, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    @registry.register
    @attrs.frozen(kw_only=True)
    class Broken(PluginPolicy):
        name: ClassVar[str] = "acme.broken"

        def __attrs_post_init__(self) -> None:
            raise RuntimeError("its licence has expired")

    [row] = unit(tiny, "acme.broken").run(bench)
    assert row.verdict == NOT_MEASURED
    assert "its licence has expired" in row.reason
    assert "blocked bits_per_key=10" in {each.row.subject for each in PART.units(tiny)}


def test_the_sweep_has_rates_and_sizes_only_and_nothing_twice(tiny: Settings, bench: Bench) -> None:
    swept = attrs.evolve(tiny, sweep_keys=COUNT)
    names = [each.row.subject for each in PART.units(swept)]
    assert len(set(names)) == len(names)
    for subject in ("blocked bits_per_key=24", "cuckoo fingerprint_bits=6", "abloom fpr=0.1"):
        assert subject in names
    rows = unit(swept, "blocked bits_per_key=24").run(bench)
    assert {row.group for row in rows} == {"Rates and sizes"}
    elsewhere = attrs.evolve(tiny, sweep_keys=2 * COUNT)
    default = [
        each.row.at["n"]
        for each in PART.units(elsewhere)
        if each.row.subject == "blocked bits_per_key=10"
    ]
    assert default == [COUNT, 2 * COUNT]


def test_the_peak_of_a_build_is_measured_in_a_process_of_its_own(
    tiny: Settings, bench: Bench
) -> None:
    if not Path("/proc/self/clear_refs").exists():
        pytest.skip("this system does not tell a process's peak")
    taken = memory.peak(tiny, "set", "random", 50_000)
    least = sys.getsizeof(set(range(50_000)))
    assert least * 0.9 < taken < least * 4


def test_a_peak_that_cannot_be_measured_costs_only_its_own_row(
    tiny: Settings, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    take_part(monkeypatch, of(attrs.evolve(contenders.whole_set(), name="nobody else knows")))
    bench.settings = attrs.evolve(tiny, memory_from=1)
    rows = by_name(unit(tiny, "nobody else knows").run(bench))
    assert rows["peak while building"].verdict == NOT_MEASURED
    assert "cannot be measured" in rows["peak while building"].reason
    assert rows[COLD].value


def test_sizes_of_runs() -> None:
    quick, default, full = (PART.settings(size, options(seed=7)) for size in Size)
    assert quick.seed == default.seed == full.seed == 7
    assert quick.sets == [("random", 10_000), ("random", 100_000)]
    assert max(count for _, count in full.sets) == 10**7
    assert {kind for kind, _ in default.sets} == {"random", "composite", "urls", "integers"}
    seconds = [sum(each.seconds for each in PART.units(one)) for one in (quick, default, full)]
    assert seconds[0] < 30 < seconds[1] < 200 < seconds[2] < 900
    json.dumps(attrs.asdict(default))


def test_options_choose_keys_counts_and_policies() -> None:
    given = options(keys=["urls"], keys_count=[3000, 2000], policy=["cuckoo:fpr=0.001", "blocked"])
    chosen = PART.settings(Size.QUICK, given)
    assert chosen.sets == [("urls", 2000), ("urls", 3000)]
    assert {each.row.subject for each in PART.units(chosen)} == {
        "cuckoo fpr=0.001",
        "blocked bits_per_key=10",
    }


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"keys": ["url"]}, r"no kind 'url' \(did you mean 'urls'\?\)"),
        ({"keys_count": [999]}, "999 is out of range: allowed are 1000 to 100000000"),
        ({"keys_count": [10**8 + 1]}, "out of range"),
        ({"policy": ["blokced"]}, r"--policy 'blokced'.*did you mean 'blocked'"),
        ({"policy": ["cuckoo:fpt=0.1"]}, r"did you mean 'fpr'"),
        ({"policy": ["cuckoo:fpr=2"]}, r"fpr"),
        ({"policy": ["cuckoo:fpr"]}, "write name=value"),
        ({"keys_file": Path("/nowhere/keys")}, "cannot be read"),
        ({"keys_file": Path("/nowhere/keys"), "keys": ["urls"]}, "--keys does not go with"),
        ({"keys_file": Path("/nowhere/keys"), "keys_count": [2000]}, "--keys-count does not go"),
    ],
)
def test_wrong_options_say_what_is_allowed(given: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        PART.settings(Size.QUICK, options(**given))


def test_the_options_of_the_part_are_parsed() -> None:
    parser = argparse.ArgumentParser()
    PART.add_arguments(parser)
    given = parser.parse_args(
        [
            "--keys-file",
            "k",
            "--keys",
            "urls",
            "--keys-count",
            "5",
            "--policy",
            "x",
            "--policy",
            "y",
        ]
    )
    assert (given.keys_file, given.keys, given.keys_count) == (Path("k"), ["urls"], [5])
    assert given.policy == ["x", "y"]
    assert vars(parser.parse_args([])) == dict.fromkeys(
        ("keys_file", "keys", "keys_count", "policy")
    )


def test_a_file_of_keys_is_measured_by_halves(tmp_path: Path, tiny: Settings) -> None:
    path = tmp_path / "keys"
    path.write_bytes(b"".join(b"line %d\n" % number for number in range(2501)) + b"line 7\n\n")
    chosen = PART.settings(Size.QUICK, options(keys_file=path))
    assert chosen.sets == [("file", 1250)]
    small = attrs.evolve(chosen, timed_keys=300, repeats=2, at_least_seconds=0)
    with PART.bench(small, tmp_path) as bench:
        rows = by_name(unit(small, "blocked bits_per_key=10").run(bench))
    assert rows["false-positive rate"].at == {"keys": "file", "n": 1250}
    assert "of 1,251 absent keys" in rows["false-positive rate"].note
    path.write_bytes(path.read_bytes().replace(b"line 7\n", b"line x\n"))
    other = PART.settings(Size.QUICK, options(keys_file=path))
    assert other.counts == chosen.counts
    assert other != chosen


def test_the_tables_show_every_subject_and_mark_what_is_unexpected(
    tiny: Settings, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    take_part(monkeypatch, of(liar(0.3)), of(contenders.whole_set()))
    rows = [row for each in PART.units(tiny) for row in each.run(bench)]
    text = list(PART.text(rows))
    assert "1,500 keys, random" in text
    [line] = [each for each in text if each.startswith("  liar")]
    assert "0.3" in line or "0.29" in line
    assert " !" in line
    assert any(each.startswith("  set") for each in text)
    assert max(map(len, text)) <= 200
    short = list(PART.summary(rows))
    assert short[1].startswith("Filters of 1,500 keys, random")
    assert [line.split()[0] for line in short[3:]] == ["liar", "set"]
    assert max(map(len, short)) <= 120
    assert not list(PART.summary([]))


def test_labels_tell_policies_apart() -> None:
    assert contenders.label(policies.create("rocksdb")) == "rocksdb bits_per_key=10"
    lean = settings.policy_of("rocksdb:optimize_filters_for_memory=false")
    assert contenders.label(lean) == "rocksdb bits_per_key=10 optimize_filters_for_memory=false"


def test_what_is_asked_is_what_came_out_of_the_file(
    tiny: Settings, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A subject that loses its keys on the way to the disk fails, however well it was built."""
    whole = contenders.whole_set()
    lossy = attrs.evolve(
        whole,
        name="lossy",
        storage=attrs.evolve(whole.storage, save=lambda built, path: PICKLED.save(set(), path)),
    )
    take_part(monkeypatch, of(lossy))
    [row] = unit(tiny, "lossy").run(bench)
    assert row.verdict == FAILED


def test_rare_false_positives_are_looked_for_among_more_absent_keys(
    tiny: Settings, bench: Bench
) -> None:
    def asked(name: str) -> int:
        [who] = [each for each in contenders.measured(tiny) if each.name == name]
        built: Built = bench.built(who, "random", COUNT)
        return rates.absent_let_through(built, tiny)[1]

    assert asked("blocked bits_per_key=10") == tiny.absent
    assert asked("binary-fuse fingerprint_bits=16") == tiny.many_absent
