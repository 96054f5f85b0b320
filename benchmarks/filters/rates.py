"""The rows on rates and sizes: how many absent keys pass, and what bits it costs."""

from __future__ import annotations

import math
from collections.abc import Iterator

import attrs

from benchmarks.filters import keysets
from benchmarks.filters.bench import Built
from benchmarks.filters.settings import Settings
from benchmarks.rows import AS_EXPECTED, INFORMATION, NEITHER, UNEXPECTED, Row
from benchmarks.statistics import MARKED, sigmas, wilson
from benchmarks.subjects import BATCH, batches, check_forms
from benchmarks.timing import fresh_answers
from filters.sizing import lower_bound

GROUP = "Rates and sizes"

# Every form must give the same answers to so many absent keys.
COMPARED = 20_000

# Below this rate a million absent keys are few, and more are asked where a buffer makes it cheap.
RARE = 1e-3

# Who answers slowly is asked for about so many seconds, and by so many absent keys at least.
PATIENCE, LEAST_ABSENT = 1.0, 10_000

FEW = 10


def rates_and_sizes(built: Built, settings: Settings) -> Iterator[Row]:
    """All rows of the group; false negatives were looked for before."""
    count = len(built.keys.keys)
    none = built.row(GROUP, "false negatives", "keys")
    yield attrs.evolve(
        none, value=0, expected=0, verdict=AS_EXPECTED, note=f"all {count:,} keys were asked"
    )
    hits, trials = absent_let_through(built, settings)
    rate = hits / trials
    yield rate_row(built, hits, trials)
    bits = built.size * 8 / count
    yield attrs.evolve(
        built.row(GROUP, "bits per key", "bits"), value=bits, note=built.subject.storage.note
    )
    if hits and rate < 1:
        note = "of few false positives" if hits < FEW else ""
        bound = built.row(GROUP, "times the lower bound", "x")
        yield attrs.evolve(bound, value=bits / lower_bound(rate), note=note)


def rate_row(built: Built, hits: int, trials: int) -> Row:
    """The measured rate beside the one that was to be expected."""
    subject = built.subject
    row = attrs.evolve(
        built.row(GROUP, "false-positive rate", "share"),
        value=hits / trials,
        interval=wilson(hits, trials),
        note=f"{hits:,} of {trials:,} absent keys",
    )
    expected = subject.expected_fpr(built.reader)
    if subject.keeps_order and built.kind != keysets.RANDOM:
        note = f"{row.note}; it keeps the order of keys, so that this depends on where they lie"
        return attrs.evolve(row, better=NEITHER, verdict=INFORMATION, note=note)
    if expected is None:
        return attrs.evolve(row, better=NEITHER, verdict=INFORMATION)
    own_error = subject.expected_error(expected)
    errors = errors_from(hits, trials, expected, own_error)
    is_less = subject.keeps_order and errors < 0
    verdict = UNEXPECTED if abs(errors) > MARKED and not is_less else AS_EXPECTED
    note = row.note
    if verdict == UNEXPECTED:
        note += f"; {_in_words(hits / trials, expected, errors, subject.requested)}"
    if own_error:
        note += f"; what is expected is itself measured, within {own_error:.0%}"
    return attrs.evolve(row, expected=expected, sigmas=errors, verdict=verdict, note=note)


def errors_from(hits: int, trials: int, expected: float, relative: float = 0.0) -> float:
    """How many standard errors hits lie from what is expected, which may have an error itself."""
    errors = sigmas(hits, trials, expected)
    if not errors or not relative:
        return errors
    chance = (hits - expected * trials) / errors
    return (hits - expected * trials) / math.hypot(chance, relative * expected * trials)


def absent_let_through(built: Built, settings: Settings) -> tuple[int, int]:
    """How many absent keys pass, and how many were asked, in the fastest form there is."""
    subject, reader, keys = built.subject, built.reader, built.keys
    absent = keys.absent
    asked = max(LEAST_ABSENT, int(PATIENCE / built.pace))
    check_forms(subject, reader, absent[: min(asked, COMPARED)])
    if subject.takes_packed:
        expected = subject.expected_fpr(reader)
        rare = expected is None or expected < RARE
        packed = keys.many_absent if rare else keys.packed_absent
        return sum(reader.might_contain_many(packed, out=bytearray(len(packed)))), len(packed)
    some = absent[:: max(1, len(absent) // asked)]
    if subject.ask_batch and len(some) > BATCH:
        answers = fresh_answers(subject.ask_batch)(batches(some), reader)
        return sum(map(sum, answers)), len(some)
    return sum(map(bool, fresh_answers(subject.ask)(some, reader))), len(some)


def _in_words(rate: float, expected: float, errors: float, requested: bool) -> str:
    """How far a rate is off, and whether that is the better or the worse side."""
    what = "what it was asked for" if requested else "what it predicts"
    times = f"{rate / expected:.3g} x {what}" if expected else f"none was expected ({what})"
    side = "more" if errors > 0 else "fewer"
    return f"{times}: {abs(errors):.1f} standard errors {side} false positives"
