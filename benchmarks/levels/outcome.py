"""The rows of one configuration: memory, blocks read beside what was predicted, time."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from benchmarks.levels.bench import Measured
from benchmarks.levels.budget import ALL, BITS, BYTES, FLOOR, MEMORY, PART, READS, TIME
from benchmarks.levels.configurations import described, policy_text
from benchmarks.levels.data import ABSENT, Data, Questions
from benchmarks.levels.prediction import Rate
from benchmarks.levels.settings import ENOUGH_LOOKUPS, STEEP, USUAL
from benchmarks.levels.surplus import Surplus
from benchmarks.rows import UNEXPECTED, Row, Target, judged
from benchmarks.statistics import wilson
from policies import placement

STORAGES = {"memory": 0.0, "flash, 100 us a block": 100.0, "disk, 10 ms a block": 10_000.0}
"""Microseconds for a block, by the storage it is read from."""

# How near to the floor a budget is to come, where so many lookups were counted.
NEAR_THE_FLOOR = {USUAL: 1.10, STEEP: 1.15}


def rows_of(measured: Measured, data: Data) -> Iterator[Row]:
    """All rows of a configuration."""
    yield from _memory(measured, data.counts)
    for questions in data.questions.values():
        yield from _reads(measured, questions)
    yield _beside_the_floor(measured, data)
    for questions in data.questions.values():
        yield from _times(measured, questions)


def _memory(measured: Measured, counts: Mapping[int, int]) -> Iterator[Row]:
    sizes, chosen = measured.filter_bytes, measured.chosen
    carried = measured.carried
    if chosen.rule is None:
        carried = {at: policy_text(chosen, at) for at in counts}
        whole = described(chosen, counts)
    else:
        whole = "; ".join(f"{at} {carried[at]}" for at in counts)
    told = [(str(at), sizes[at], counts[at], carried[at]) for at in counts]
    told.append((ALL, sum(sizes.values()), sum(counts.values()), whole))
    for level, size, keys, note in told:
        row = attrs.evolve(_row(measured, MEMORY, level=level), note=note)
        yield attrs.evolve(row, name=BYTES, unit="bytes", value=size)
        yield attrs.evolve(row, name=BITS, unit="bits", value=8 * size / keys)


def _reads(measured: Measured, questions: Questions) -> Iterator[Row]:
    prediction, blocks = measured.prediction, measured.blocks[questions.name]
    count = len(questions.keys)
    intervals, surpluses = [], []
    for level, asked in questions.asked.items():
        value = blocks[level] / count
        surplus = _surplus(blocks[level] - asked.hits, asked.misses, prediction.rates[level])
        interval = _interval(blocks[level], asked.hits, asked.misses, count)
        intervals.append((value, interval))
        surpluses.append(surplus)
        row = _row(measured, READS, level=str(level))
        row = attrs.evolve(row, name=questions.name, unit="blocks", value=value, interval=interval)
        yield _beside(row, prediction.reads(questions, level), surplus)
    row = _row(measured, READS, level=ALL)
    row = attrs.evolve(
        row,
        name=questions.name,
        unit="blocks",
        value=sum(blocks.values()) / count,
        interval=_of_sum(intervals),
    )
    known = [each for each in surpluses if each is not None]
    total = Surplus(
        sum(each.counted for each in known),
        sum(each.predicted for each in known),
        sum(each.variance for each in known),
    )
    yield _beside(row, prediction.all_reads(questions), total)


def _beside_the_floor(measured: Measured, data: Data) -> Row:
    """How many times the fewest reads that any filters allow, in the budget or what is taken."""
    counts, rule = data.counts, measured.chosen.rule
    taken = 8 * sum(measured.filter_bytes.values())
    bits = rule.budget.bits(sum(counts.values())) if rule else taken
    lookups = len(data.questions[ABSENT].keys)
    reads = sum(measured.blocks[ABSENT].values()) / lookups
    floor = placement.floor(counts.values(), bits)
    row = attrs.evolve(_row(measured, READS, level=ALL), name=FLOOR, unit="x", value=reads / floor)
    if rule and measured.configuration.is_refiltered and lookups >= ENOUGH_LOOKUPS:
        limit = NEAR_THE_FLOOR[data.shape]
        row = attrs.evolve(
            row, target=Target(limit, f"at most {limit:g} x the floor {floor:.5f}", absolute=True)
        )
    return judged(attrs.evolve(row, note=f"the floor is {floor:.6g} blocks"))


def _surplus(counted: int, misses: int, rate: Rate | None) -> Surplus | None:
    if rate is None:
        return None
    expected = misses * rate.fpr
    variance = expected * (1 - rate.fpr) + (expected * rate.scatter) ** 2
    return Surplus(counted, expected, variance)


def _beside(row: Row, expected: float | None, surplus: Surplus | None) -> Row:
    """The row beside its prediction, if there is one."""
    if expected is None or surplus is None:
        return attrs.evolve(row, note="its policy says nothing of its rate beforehand")
    verdict = surplus.verdict
    return attrs.evolve(
        row,
        expected=expected,
        sigmas=surplus.sigmas,
        verdict=verdict,
        note=surplus.note if verdict == UNEXPECTED else "",
    )


def _interval(blocks: int, hits: int, misses: int, count: int) -> tuple[float, float]:
    """Wilson's, around the share of lookups in vain that read a block; the others read one."""
    low, high = wilson(blocks - hits, misses)
    return (hits + low * misses) / count, (hits + high * misses) / count


def _of_sum(parts: list[tuple[float, tuple[float, float]]]) -> tuple[float, float]:
    """An interval around a sum, of those around its parts: their arms add up as squares do.

    That is MOVER (Zou and Donner, 2008): right for parts that are independent, also where their
    intervals are lopsided because little was counted.
    """
    total = sum(value for value, _ in parts)
    below = math.hypot(*(value - low for value, (low, _) in parts))
    above = math.hypot(*(high - value for value, (_, high) in parts))
    return total - below, total + above


def _times(measured: Measured, questions: Questions) -> Iterator[Row]:
    taken = measured.microseconds[questions.name]
    blocks = sum(measured.blocks[questions.name].values()) / len(questions.keys)
    for storage, latency in STORAGES.items():
        row = _row(measured, TIME, storage=storage)
        row = attrs.evolve(row, name=questions.name, unit="us")
        if latency:
            yield attrs.evolve(row, value=min(taken) + blocks * latency)
        else:
            yield attrs.evolve(row, value=min(taken), repeats=taken)


def _row(measured: Measured, group: str, **at: Any) -> Row:
    configuration = measured.configuration
    at = {**at, **configuration.at}
    return Row(part=PART, group=group, name="", subject=configuration.name, at=at)
