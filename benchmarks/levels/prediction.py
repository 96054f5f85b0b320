"""What a configuration will read, from what it says and how many keys are planned, beforehand."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import attrs

from benchmarks.levels import by_budget
from benchmarks.levels.configurations import Configuration
from benchmarks.levels.data import KEYS_PER_BLOCK, Questions
from benchmarks.levels.scatter import scatter
from filters import sizing
from filters.families import every
from policies import LevelPolicies

FILE_NAME = "predictions.jsonl"


@attrs.frozen
class Rate:
    """How often a level's filter lets an absent key through, and how much filters scatter there.

    ``scatter`` is one standard deviation among such filters, as a share of the rate.
    """

    fpr: float
    scatter: float = 0.0


Rates = Mapping[int, Rate | None]
"""By level; None where the policy says nothing beforehand."""


@attrs.frozen
class Prediction:
    """What lookups will read, by level, for one configuration."""

    subject: str
    rates: Rates

    def reads(self, questions: Questions, level: int) -> float | None:
        """Blocks read on a level per lookup: for keys it has, and for absent keys let in."""
        rate, asked = self.rates[level], questions.asked[level]
        if rate is None:
            return None
        return (asked.hits + asked.misses * rate.fpr) / len(questions.keys)

    def all_reads(self, questions: Questions) -> float | None:
        """Blocks read per lookup on all levels."""
        found = [self.reads(questions, level) for level in self.rates]
        return None if None in found else math.fsum(filter(None, found))

    def write(self, path: Path, questions: Iterable[Questions]) -> None:
        """Add a line to a file that says all of it, and wait until it is there."""
        told = {
            "subject": self.subject,
            "rates": {level: rate and attrs.asdict(rate) for level, rate in self.rates.items()},
            "blocks read per lookup": {
                each.name: {
                    **{str(level): self.reads(each, level) for level in self.rates},
                    "all": self.all_reads(each),
                }
                for each in questions
            },
        }
        with path.open("a") as file:
            file.write(json.dumps(told) + "\n")


def predicted(
    configuration: Configuration, chosen: LevelPolicies, counts: Mapping[int, int]
) -> Prediction:
    """The prediction for levels that will have so many keys each."""
    subject = configuration.name
    if chosen.rule is not None:
        expected = by_budget.expected(
            chosen.rule,
            counts,
            configuration.table_bytes,
            is_refiltered=configuration.is_refiltered,
        )
        return Prediction(subject, {at: Rate(e.fpr, e.scatter) for at, e in expected.items()})
    rates = {level: rate_of(chosen, level, count) for level, count in counts.items()}
    if chosen.optimize_filters_for_hits:
        rates[max(counts)] = Rate(1.0)
    return Prediction(subject, rates)


def rate_of(chosen: LevelPolicies, level: int, count: int) -> Rate | None:
    """The rate that a level's policy and its layout lead to, for so many keys in one table.

    In block layout a filter covers one data block, whose size is what counts.
    """
    policy = chosen[level]
    if policy.name == "none":
        return Rate(1.0)
    if policy.name not in every():
        return None
    params: dict[str, Any] = policy.params()
    each = min(count, KEYS_PER_BLOCK) if chosen.layout(level) == "block" else count
    rate = sizing.fpr(policy.name, n=each, **params)
    return Rate(rate, scatter(policy.name, each, **params) / math.sqrt(count / each))
