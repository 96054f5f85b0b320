"""Who is measured, and the proof of right answers that comes before any timing."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import Any

import attrs

from benchmarks.errors import WrongAnswersError
from benchmarks.timing import fresh_answers
from filters import PackedKeys
from filters.kernels import CLASS_NAMES

BATCH = 4096


@attrs.frozen
class Subject:
    """Something that is built of keys and asked for keys.

    ``ask`` is the expression that asks ``subject`` for one ``key``; ``ask_batch`` asks it for a
    list of keys, which is called ``key``, too.
    """

    name: str
    build: Callable[[list[bytes]], Any]
    ask: str = "subject.might_contain(key)"
    ask_batch: str | None = None
    takes_packed: bool = False
    expected_fpr: Callable[[Any], float] = lambda built: 0.0


def ours(kernel: ModuleType, family: str) -> Subject:
    """A family of this project's at its defaults, in one of its kernels."""
    cls = getattr(kernel, CLASS_NAMES[family])
    return Subject(
        family,
        cls.build,
        ask_batch="subject.might_contain_many(key)",
        takes_packed=True,
        expected_fpr=lambda built: float(built.expected_fpr),
    )


def builtin_set() -> Subject:
    """Python's set, which is never wrong and keeps the keys themselves."""
    return Subject("set", set, ask="key in subject")


def built_and_checked(subject: Subject, present: list[bytes], absent: list[bytes]) -> Any:
    """What the subject builds of the keys that are present, once its answers are found right."""
    built = subject.build(present)
    for form, answers in all_answers(subject, built, present):
        missed = len(answers) - sum(answers)
        if missed:
            raise WrongAnswersError(
                f"{subject.name} denies {missed} of its {len(answers)} keys, {form}"
            )
    strangers = dict(all_answers(subject, built, absent))
    if len(set(map(bytes, strangers.values()))) > 1:
        raise WrongAnswersError(f"{subject.name} answers otherwise {', '.join(strangers)}")
    rate = sum(strangers["one by one"]) / len(absent)
    check_rate(subject.name, rate, subject.expected_fpr(built), len(absent))
    return built


def all_answers(
    subject: Subject, built: Any, keys: list[bytes]
) -> Iterator[tuple[str, Sequence[int]]]:
    """The answers for these keys in every form the subject can be asked in."""
    yield "one by one", list(map(bool, fresh_answers(subject.ask)(keys, built)))
    if subject.ask_batch:
        some = fresh_answers(subject.ask_batch)(batches(keys), built)
        yield "in batches", [bool(answer) for batch in some for answer in batch]
    if subject.takes_packed:
        packed = PackedKeys(b"".join(keys), width=len(keys[0]))
        yield "by buffer", built.might_contain_many(packed, out=bytearray(len(keys)))


def check_rate(name: str, rate: float, expected: float, strangers: int) -> None:
    """Refuse a rate below half or above twice what is expected, and beyond chance, too."""
    chance = 4 * math.sqrt(expected / strangers)
    if not expected / 2 - chance <= rate <= expected * 2 + chance:
        raise WrongAnswersError(
            f"{name} lets {rate:.3%} of {strangers} strangers pass where {expected:.3%} is expected"
        )


def batches(keys: list[bytes]) -> list[list[bytes]]:
    """The keys cut into batches."""
    return [keys[start : start + BATCH] for start in range(0, len(keys), BATCH)]
