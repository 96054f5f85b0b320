"""Who is measured, and the proof of right answers that comes before any timing."""

from __future__ import annotations

import math
import pickle
from array import array
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import attrs

from benchmarks.errors import WrongAnswersError
from benchmarks.timing import fresh_answers
from filters import PackedKeys, kernels
from filters.families import every
from filters.family import Family

BATCH = 4096
LIVE = "-live"


@attrs.frozen
class Storage:
    """How something that was built is kept in a file, and opened again.

    ``save`` writes a new file; ``load`` gives what is asked. Where ``held`` tells how many bytes
    it takes in memory, that is its size, and not the file's.
    """

    save: Callable[[Any, Path], object]
    load: Callable[[Path], Any]
    held: Callable[[Any], int] | None = None
    note: str = ""

    def size(self, built: Any, path: Path) -> int:
        """How many bytes it takes."""
        return self.held(built) if self.held else path.stat().st_size


def _pickled(built: Any, path: Path) -> None:
    path.write_bytes(pickle.dumps(built))


def _unpickled(path: Path) -> Any:
    return pickle.loads(path.read_bytes())


PICKLED = Storage(_pickled, _unpickled)


@attrs.frozen
class Subject:
    """Something that is built of keys and asked for keys.

    ``ask`` is the expression that asks ``subject`` for one ``key``; ``ask_batch`` asks it for a
    list of keys, which is called ``key``, too. ``expected_fpr`` is None where nobody says what to
    expect; its own error, as a share, is ``expected_error``, and ``requested`` says that it is
    only what was asked for. Where somebody ``keeps_order`` of keys, it is the most that is expected
    of random ones. ``build_note`` tells what a build is, where that is not plain. Who is ``slow``,
    as what is written in Python, is measured over few keys only, and nobody over more than its
    ``most_keys``.
    """

    name: str
    build: Callable[[list[bytes]], Any]
    ask: str = "subject.might_contain(key)"
    ask_batch: str | None = None
    takes_packed: bool = False
    expected_fpr: Callable[[Any], float | None] = lambda built: 0.0
    expected_error: Callable[[float], float] = lambda expected: 0.0
    requested: bool = False
    keeps_order: bool = False
    storage: Storage = PICKLED
    build_note: str = ""
    slow: bool = False
    most_keys: int | None = None


def as_programs_have_it(family: Family) -> str:
    """What a family is called in a program, where its tables store something else."""
    stores_another = family.policy and not family.in_tables and not family.answers_ranges
    return family.name + LIVE if stores_another else family.name


def ours(kernel: str, family: str) -> Subject:
    """A family of this project's at its defaults; KernelUnavailableError without its kernel."""
    kernels.load(kernel)
    cls: Any = every()[family].filter_class(kernel)
    return Subject(
        family,
        cls.build,
        ask_batch="subject.might_contain_many(key)",
        takes_packed=True,
        expected_fpr=lambda built: float(built.expected_fpr),
        keeps_order=every()[family].answers_ranges,
        storage=Storage(
            lambda built, path: path.write_bytes(built.to_bytes()),
            lambda path: cls.from_bytes(path.read_bytes()),
        ),
    )


def builtin_set() -> Subject:
    """Python's set, which is never wrong and keeps the keys themselves."""
    return Subject("set", set, ask="key in subject")


def built_and_checked(subject: Subject, present: list[bytes], absent: list[bytes]) -> Any:
    """What the subject builds of the keys that are present, once its answers are found right."""
    built = subject.build(present)
    check_keys(subject, built, present)
    rate = check_forms(subject, built, absent) / len(absent)
    expected = subject.expected_fpr(built) or 0.0
    if not (subject.keeps_order and rate < expected):
        check_rate(subject.name, rate, expected, len(absent))
    return built


def check_keys(subject: Subject, built: Any, keys: list[bytes]) -> None:
    """Refuse a subject that denies a key it was built of, asked in whatever form."""
    for form, answers in all_answers(subject, built, keys):
        missed = len(keys) - sum(answers)
        if missed:
            raise WrongAnswersError(
                f"{subject.name} denies {missed} of its {len(keys)} keys, {form}"
            )


def check_forms(subject: Subject, built: Any, keys: list[bytes]) -> int:
    """Refuse a subject whose answers depend on the form of the question; how many it let pass."""
    answers = dict(all_answers(subject, built, keys))
    if len(set(map(bytes, answers.values()))) > 1:
        raise WrongAnswersError(f"{subject.name} answers otherwise {', '.join(answers)}")
    return sum(answers["one by one"])


def all_answers(
    subject: Subject, built: Any, keys: list[bytes]
) -> Iterator[tuple[str, Sequence[int]]]:
    """The answers for these keys in every form the subject can be asked in."""
    yield "one by one", list(map(bool, fresh_answers(subject.ask)(keys, built)))
    if subject.ask_batch:
        some = fresh_answers(subject.ask_batch)(batches(keys), built)
        yield "in batches", [bool(answer) for batch in some for answer in batch]
    if subject.takes_packed:
        yield "by buffer", built.might_contain_many(packed(keys), out=bytearray(len(keys)))


def check_rate(name: str, rate: float, expected: float, absent: int) -> None:
    """Refuse a rate below half or above twice what is expected, and beyond chance, too."""
    chance = 4 * math.sqrt(expected / absent)
    if not expected / 2 - chance <= rate <= expected * 2 + chance:
        raise WrongAnswersError(
            f"{name} lets {rate:.3%} of {absent} absent keys pass where {expected:.3%} is expected"
        )


def batches(keys: list[bytes]) -> list[list[bytes]]:
    """The keys cut into batches."""
    return [keys[start : start + BATCH] for start in range(0, len(keys), BATCH)]


def packed(keys: Sequence[bytes]) -> PackedKeys:
    """The keys in one buffer, by their width where all have the same."""
    data, widths = b"".join(keys), set(map(len, keys))
    if len(widths) == 1 and 0 not in widths:
        return PackedKeys(data, width=widths.pop())
    return PackedKeys(data, offsets=array("q", accumulate(map(len, keys), initial=0)))
