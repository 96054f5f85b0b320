"""The rows on speed: building, and asking in every form, beside what the machine itself takes."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from contextlib import ExitStack

import attrs

from benchmarks import floor
from benchmarks.errors import UnavailableError
from benchmarks.filters.bench import Built
from benchmarks.filters.keysets import Asked
from benchmarks.filters.settings import Settings
from benchmarks.rows import Row, timed
from benchmarks.subjects import BATCH, batches, packed
from benchmarks.timing import Sample, by_buffer, interleaved, loop

GROUP = "Speed"
EMPTY_CALL, LINE = "an empty compiled call", "a random cache line"
KINDS = {"hit": True, "miss": False}
PREFETCH_DISTANCE = 128

# A loop over the keys that are asked one by one takes about so many seconds at most.
LOOP_SECONDS, LEAST_ASKED = 0.02, 500

# A build that takes longer is timed once.
LONG_BUILD = 2.0


@attrs.frozen
class Question:
    """A row to be, how to time it, and the sample of the floor beside it."""

    row: Row
    sample: Sample
    floor: Sample | None


def timings(built: Built, settings: Settings) -> Iterator[Row]:
    """All rows of the group; the questions take turns, and so do the floors."""
    once, build = _build(built, settings)
    if once is not None:
        yield once
    with ExitStack() as stack:
        lines, why = _memory(built, stack)
        questions = [*build, *_one_by_one(built), *_many(built, lines)]
        floors = {id(each.floor): each.floor for each in questions if each.floor}
        samples = [each.sample for each in questions] + list(floors.values())
        taken = interleaved(samples, settings.repeats, at_least=settings.at_least_seconds)
        beside = dict(zip(floors, taken[len(questions) :], strict=True))
        for question, repeats in zip(questions, taken, strict=False):
            row = question.row
            if question.floor is None and row.peer:
                row = attrs.evolve(row, peer="", note="; ".join(filter(None, (row.note, why))))
            yield timed(row, repeats, beside.get(id(question.floor), ()))


def _build(built: Built, settings: Settings) -> tuple[Row | None, list[Question]]:
    """Building: as a question among others, or as a row at once where it takes very long."""
    build, keys = built.subject.build, built.keys.keys
    row = attrs.evolve(_row(built, "build"), note=built.subject.build_note)
    start = time.thread_time()
    build(keys)
    seconds = time.thread_time() - start
    if seconds > LONG_BUILD:
        note = f"{row.note}; timed once, since it took {seconds:.1f} s"
        return timed(attrs.evolve(row, note=note), [seconds / len(keys) * 1e9]), []
    return None, [Question(row, Sample(lambda: build(keys), len(keys)), None)]


def _one_by_one(built: Built) -> Iterator[Question]:
    """One key at a time, in both orders, beside a compiled call that does nothing."""
    for order in ("in order", "shuffled"):
        for kind, known in KINDS.items():
            asked = _asked(built, known)
            keys = asked.shuffled if order == "shuffled" else asked.in_order
            row = attrs.evolve(_row(built, f"one key, {kind}, {order}"), peer=EMPTY_CALL)
            nothing = loop("subject(key)", keys, gc.is_tracked)
            yield Question(row, loop(built.subject.ask, keys, built.reader), nothing)


def _many(built: Built, lines: floor.Memory | None) -> Iterator[Question]:
    """Lists and buffers, where they are offered, beside random lines of as much memory."""
    subject, reader = built.subject, built.reader
    for kind, known in KINDS.items():
        keys = _asked(built, known).in_order
        beside = _random_lines(lines, len(keys)) if lines else None
        if subject.ask_batch:
            sample = loop(subject.ask_batch, batches(keys), reader)
            row = attrs.evolve(_row(built, f"list of {BATCH}, {kind}"), peer=LINE)
            yield Question(row, attrs.evolve(sample, keys=len(keys)), beside)
        if subject.takes_packed:
            row = attrs.evolve(_row(built, f"buffer, {kind}"), peer=LINE)
            yield Question(row, by_buffer(reader, packed(keys)), beside)


def _random_lines(memory: floor.Memory, count: int) -> Sample:
    return Sample(lambda: memory.touch(count, PREFETCH_DISTANCE), count)


def _memory(built: Built, stack: ExitStack) -> tuple[floor.Memory | None, str]:
    """As much memory as the filter takes, or why there is none."""
    try:
        size = max(built.size, floor.LINE_BYTES)
        return stack.enter_context(floor.Memory(size, huge=False)), ""
    except UnavailableError as error:
        return None, f"without its floor: {error}"


def _asked(built: Built, known: bool) -> Asked:
    most = max(LEAST_ASKED, int(LOOP_SECONDS / built.pace))
    return built.keys.asked[known].thinned(most)


def _row(built: Built, name: str) -> Row:
    return built.row(GROUP, name, "ns")
