"""One configuration after the other: predicted, filled, asked, timed, removed."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import attrs

import lsm
from benchmarks.errors import UnavailableError, WrongAnswersError
from benchmarks.filled_levels import STILL, fill
from benchmarks.levels.configurations import Configuration
from benchmarks.levels.data import BLOCK_BYTES, Data, Questions
from benchmarks.levels.prediction import FILE_NAME, Prediction, predicted
from benchmarks.levels.settings import Settings
from benchmarks.timing import interleaved, loop
from lsm.options import GIB
from policies import LevelPolicies

# One table on each level, blocks of one size, and everything in memory that was read once.
OPTIONS: Mapping[str, Any] = {
    **STILL,
    "max_file_size": GIB,
    "block_size": BLOCK_BYTES,
    "compression": None,
    "lru_cache_size": 64 * GIB,
    "filter_cache_size": 64 * GIB,
    "table_cache_size": 64 * GIB,
}
NO_FILTER = ("none", "declined")


@attrs.frozen(kw_only=True)
class Measured:
    """What became of a configuration.

    ``filter_bytes`` are by level; ``blocks`` were read for all questions of a name, by level;
    ``microseconds`` are per lookup, one number for each repeat.
    """

    prediction: Prediction
    chosen: LevelPolicies
    filter_bytes: Mapping[int, int]
    blocks: Mapping[str, Mapping[int, int]]
    microseconds: Mapping[str, Sequence[float]]


class Bench:
    """The data and the questions, made once, and a directory for a database at a time."""

    def __init__(self, settings: Settings, directory: Path):
        self.settings = settings
        self.directory = directory

    @cached_property
    def data(self) -> Data:
        """What lies on the levels of every configuration."""
        return Data(self.settings)

    def measured(self, configuration: Configuration) -> Measured:
        """Predict, write that down, and only then fill a database and look keys up.

        WrongAnswersError if a value is lost or wrong; UnavailableError if a filter cannot be made.
        """
        data = self.data
        questions = list(data.questions.values())
        chosen = configuration.choose(data.counts)
        prediction = predicted(configuration.name, chosen, data.counts)
        prediction.write(self.directory / FILE_NAME, questions)
        path = self.directory / "database"
        try:
            with lsm.DB(path, create_if_missing=True, filter_policy=chosen, **OPTIONS) as db:
                fill(db, data.runs)
                return Measured(
                    prediction=prediction,
                    chosen=chosen,
                    filter_bytes=filter_bytes(db),
                    blocks={each.name: blocks_read(db, each) for each in questions},
                    microseconds=self._times(db, questions),
                )
        finally:
            shutil.rmtree(path, ignore_errors=True)

    def _times(self, db: lsm.DB, questions: Sequence[Questions]) -> dict[str, list[float]]:
        """Processor time per lookup of keys that were looked up before, the kinds in turn."""
        timed, repeats = self.settings.timed, self.settings.repeats
        samples = [loop("subject(key)", each.keys[:timed], db.get) for each in questions]
        taken = interleaved(samples, repeats, at_most=3 * repeats)
        return {
            each.name: [nanoseconds / 1000 for nanoseconds in repeats]
            for each, repeats in zip(questions, taken, strict=True)
        }


def filter_bytes(db: lsm.DB) -> dict[int, int]:
    """What the filters of each level take; UnavailableError if one could not be built."""
    found = {}
    for level in db.filters():
        for table in level.tables:
            if table.state not in ("built", *NO_FILTER):
                raise UnavailableError(
                    f"{level.configured} could not build the filter of level {level.level} "
                    f"({table.state}); the log `lsm` says why"
                )
        if level.tables:
            found[level.level] = sum(table.bytes for table in level.tables)
    return found


def blocks_read(db: lsm.DB, questions: Questions) -> dict[int, int]:
    """How many blocks looking up all keys reads on each level, once all answers were right."""
    before = _counted(db)
    answers = list(map(db.get, questions.keys))
    if answers != questions.answers:
        wrong = sum(map(_differ, answers, questions.answers))
        raise WrongAnswersError(
            f"{wrong} of {len(answers)} lookups of an {questions.name} gave a wrong answer"
        )
    after = _counted(db)
    return {level: after[level] - before[level] for level in questions.asked}


def _counted(db: lsm.DB) -> Counter[int]:
    counted: Counter[int] = Counter()
    for each in db.stats().filters:
        counted[each.level] += each.counters.blocks_read
    return counted


def _differ(one: bytes | None, other: bytes | None) -> bool:
    return one != other
