"""The blocked filter: one line per key, and the table of probe counts."""

from __future__ import annotations

import math
import random
import warnings
from collections.abc import Callable
from types import ModuleType

import pytest

from filters import blocked, blocked_probes, occupancy, sizing
from filters.sizing_parameters import SizingParameter
from tests.filters.cases import random_keys


def test_a_key_touches_one_line_only(kernel: ModuleType, rng: random.Random) -> None:
    for _ in range(200):
        built = kernel.BlockedBloomFilter.with_capacity(2000)
        built.add(rng.randbytes(9))
        payload = built.to_bytes()[40:-8]
        lines = {index // blocked.LINE_BYTES for index, byte in enumerate(payload) if byte}
        assert len(lines) == 1
        bits = int.from_bytes(payload, "little").bit_count()
        assert built.num_probes - 3 <= bits <= built.num_probes


def test_keys_spread_over_all_lines(kernel: ModuleType, rng: random.Random) -> None:
    built = kernel.BlockedBloomFilter.build(random_keys(rng, 20_000))
    payload = built.to_bytes()[40:-8]
    fills = [
        int.from_bytes(payload[start : start + 64], "little").bit_count()
        for start in range(0, len(payload), 64)
    ]
    assert min(fills) > 100
    assert max(fills) < 400


@pytest.mark.parametrize(("bits_per_key", "many"), [(16, False), (16.2, True), (24, True)])
def test_sizes_where_another_family_is_better_warn(bits_per_key: float, many: bool) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        blocked.check(bits_per_key=bits_per_key)
    assert [("classic or a binary-fuse" in str(each.message)) for each in caught] == [True] * many


def test_a_rate_that_takes_such_a_size_warns_too() -> None:
    with pytest.warns(UserWarning, match=r"fpr=1e-06 takes .* bits per key"):
        blocked.check(fpr=1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        blocked.check(fpr=0.01)


@pytest.mark.parametrize("fpr", [0.1, 1e-3, 3e-4, 2.5e-4, 2.4e-4, 1e-4, 1e-6])
@pytest.mark.parametrize("num_probes", [None, 3, 6, 12])
def test_the_largest_advised_size_tells_what_a_plan_would(
    fpr: float, num_probes: int | None
) -> None:
    asked = SizingParameter("fpr", fpr)
    planned = blocked.plan(1 << 20, asked, num_probes).lines * blocked.LINE_BITS / (1 << 20)
    assert blocked._is_advised(asked, num_probes) == (planned <= 16 * 1.001)


def test_the_warning_points_at_the_line_that_chooses_the_size(kernel: ModuleType) -> None:
    cls, with_size = kernel.BlockedBloomFilter, {"bits_per_key": 24}
    choosing: list[Callable[[], object]] = [
        lambda: cls.build([b"a"], **with_size),
        lambda: cls.with_capacity(9, **with_size),
        lambda: blocked.check(bits_per_key=24),
        lambda: sizing.fpr("blocked", bits_per_key=24),
    ]
    for choose in choosing:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            choose()
        line = choose.__code__.co_firstlineno  # type: ignore[attr-defined]
        assert [(each.filename, each.lineno) for each in caught] == [(__file__, line)]


def test_a_size_that_nobody_asked_for_is_not_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    def planned(*_args: object) -> object:
        raise AssertionError("a filter for nobody was planned")

    monkeypatch.setattr(blocked, "plan", planned)
    monkeypatch.setattr(blocked, "_is_advised", planned)
    assert blocked.check() == blocked.check(num_probes=3) == SizingParameter("bits_per_key", 10)


def test_probes_follow_the_table_and_the_size_after_rounding() -> None:
    assert blocked.best_probes(1) == 1
    assert blocked.best_probes(10) == 6
    assert blocked.best_probes(1000) == blocked_probes.PROBES_UP_TO[-1][1]
    counts = [blocked.best_probes(size / 8) for size in range(8, 600)]
    assert counts == sorted(counts)
    # One key gets a whole line, and as many probes as serve a filter that large.
    assert blocked.plan(1, SizingParameter("bits_per_key", 10)).num_probes == blocked.best_probes(
        512
    )


@pytest.mark.parametrize("bits_per_key", sorted(blocked_probes.SIMULATED))
def test_theory_agrees_with_the_simulated_table(bits_per_key: int) -> None:
    probes, simulated = blocked_probes.SIMULATED[bits_per_key]
    keys, lines = 1 << 19, round((1 << 19) * bits_per_key / 512)
    predicted = blocked.predicted_fpr(keys, blocked.Geometry(lines, probes))
    # The rate is a mean over lines, and at many bits per key a few overfull ones make it.
    square = occupancy.line_moment(keys, lines, probes, 2 * probes)
    error = math.sqrt((square - predicted**2) / lines)
    assert simulated == pytest.approx(predicted, abs=4 * error + 0.006 * predicted)


@pytest.mark.parametrize("bits_per_key", [2, 5, 10, 15.75, 24])
def test_the_committed_table_is_what_the_simulation_gives(bits_per_key: float) -> None:
    """Another seed and fewer keys: the chosen count is as good as any to one percent and noise."""
    np = pytest.importorskip("numpy")
    from benchmarks.blocked_probes import rates

    series = rates(bits_per_key, np.random.default_rng(7), keys=1 << 17)
    seen = [next(series) for _ in range(blocked.best_probes(bits_per_key) + 4)]
    assert seen[blocked.best_probes(bits_per_key) - 1] <= min(seen) * 1.025


def test_the_committed_table_has_the_generators_form() -> None:
    """The file is what the script writes, not what somebody typed."""
    pytest.importorskip("numpy")
    from benchmarks.blocked_probes import TARGET, module

    text = TARGET.read_text()
    limits = blocked_probes.PROBES_UP_TO
    rows, size, step = [], 1.0, 0.25
    for limit, probes in limits:
        while size <= limit:
            rows.append((size, probes, blocked_probes.SIMULATED.get(int(size), (0, 0.0))[1]))
            size += step
    assert module(rows) == text
