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
from benchmarks.levels.live_rows import LiveBench
from benchmarks.levels.prediction import FILE_NAME, Prediction, predicted
from benchmarks.levels.settings import USUAL, Settings, Shape
from benchmarks.timing import interleaved, loop
from lsm.options import GIB
from policies import LevelPolicies

# Blocks of one size, and everything in memory that was read once.
OPTIONS: Mapping[str, Any] = {
    **STILL,
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

    ``filter_bytes`` are by level, and so are the policies that tables ``carried``; ``blocks`` were
    read for all questions of a name, by level; ``microseconds`` are per lookup, one number for each
    repeat.
    """

    configuration: Configuration
    prediction: Prediction
    chosen: LevelPolicies
    carried: Mapping[int, str]
    filter_bytes: Mapping[int, int]
    blocks: Mapping[str, Mapping[int, int]]
    microseconds: Mapping[str, Sequence[float]]


class Bench:
    """The data and the questions, made once, and a directory for a database at a time."""

    def __init__(self, settings: Settings, directory: Path):
        self.settings = settings
        self.directory = directory
        self.live = LiveBench(settings, directory)
        self._other: Data | None = None

    @cached_property
    def data(self) -> Data:
        """What lies on the levels of most configurations."""
        return Data(self.settings)

    def data_of(self, shape: Shape) -> Data:
        """What lies on levels of a shape; made anew where the last one was another."""
        if shape == USUAL:
            return self.data
        if self._other is None or self._other.shape != shape:
            self._other = Data(self.settings, shape)
        return self._other

    def measured(self, configuration: Configuration) -> Measured:
        """Predict, write that down, and only then fill a database and look keys up.

        WrongAnswersError if a value is lost or wrong; UnavailableError if a filter cannot be made.
        """
        data = self.data_of(configuration.shape)
        questions = list(data.questions.values())
        chosen = configuration.choose(data.counts)
        prediction = predicted(configuration, chosen, data.counts)
        prediction.write(self.directory / FILE_NAME, questions)
        path = self.directory / "database"
        try:
            with opened(path, chosen, configuration.table_bytes) as db:
                fill(db, data.runs)
                if configuration.is_refiltered:
                    db.refilter()
                return Measured(
                    configuration=configuration,
                    prediction=prediction,
                    chosen=chosen,
                    carried=carried(db),
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


def opened(path: Path, chosen: LevelPolicies, table_bytes: int = GIB) -> lsm.DB:
    """A new database for levels that are filled with tables of this size."""
    return lsm.DB(
        path, create_if_missing=True, filter_policy=chosen, max_file_size=table_bytes, **OPTIONS
    )


def carried(db: lsm.DB) -> dict[int, str]:
    """The policies that the tables of each level were given; of one table, its parameters too."""
    found = {}
    for level in db.filters():
        names = Counter(table.policy for table in level.tables)
        told = [f"{count} {name}" for name, count in sorted(names.items())]
        if len(level.tables) == 1:
            (table,) = level.tables
            told = [_said(table.policy, table.params)]
        found[level.level] = ", ".join(told)
    return found


def _said(policy: str, params: Mapping[str, Any]) -> str:
    values = {
        name: f"{value:.4g}" if isinstance(value, int | float) else value
        for name, value in params.items()
    }
    return " ".join([policy, *(f"{name}={value}" for name, value in values.items())])


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
