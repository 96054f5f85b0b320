"""What a filter does: whether it denies any of its keys, and how many absent ones it lets pass."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Literal

import attrs

from lsm.survey.absent_keys import Sample, ways
from lsm.survey.found import FilterFound

Verdict = Literal["as promised", "higher", "lower", "nothing promised"]

CHUNK = 4096
"""So many keys are asked for at once."""

_MOST_ABSENT_BYTES = 1 << 26
_SHOWN = 5
_Z = 1.96  # 95 %
_Z_BEYOND_CHANCE = 3.29  # one in a thousand of filters that keep their promise
_PROMISE_ERROR = 0.1
"""How far a promise itself may be off: some rates are measured on the filter, within 5 %."""


@attrs.frozen(kw_only=True)
class Measured:
    """What came of asking a filter: for all keys that are in, and for keys that are not."""

    where: str
    keys: int | None
    """How many keys are in, with repeats; None where they are not at hand."""
    denied: int
    """How many of them it denies: any is one that the store does not find."""
    denied_keys: tuple[bytes, ...]
    """The first few of these."""
    absent: int
    """How many keys it was asked for that are not in."""
    passed: int
    """How many of those it let pass."""
    shape: str
    """How these keys were made, in words."""
    promised: float | None

    @property
    def rate(self) -> float | None:
        """The share of absent keys that pass."""
        return self.passed / self.absent if self.absent else None

    @property
    def interval(self) -> tuple[float, float]:
        """Where the rate lies, by 95 %, after Wilson (1927)."""
        return wilson(self.passed, self.absent, _Z)

    @property
    def verdict(self) -> Verdict:
        """Whether the rate differs from the promised one by more than chance makes it."""
        if self.promised is None or not self.absent:
            return "nothing promised"
        low, high = wilson(self.passed, self.absent, _Z_BEYOND_CHANCE)
        if self.promised * (1 + _PROMISE_ERROR) < low:
            return "higher"
        if self.promised * (1 - _PROMISE_ERROR) > high:
            return "lower"
        return "as promised"


def together(parts: Sequence[Measured]) -> Measured:
    """What came of several filters, such as the partitions of one, by how often each was asked."""
    keys = [part.keys for part in parts]
    promised = [part.promised for part in parts]
    asked = sum(part.absent for part in parts)
    return Measured(
        where=parts[0].where if len(parts) == 1 else f"{len(parts)} filters",
        keys=None if None in keys else sum(count or 0 for count in keys),
        denied=sum(part.denied for part in parts),
        denied_keys=tuple(islice((key for part in parts for key in part.denied_keys), _SHOWN)),
        absent=asked,
        passed=sum(part.passed for part in parts),
        shape="; ".join(dict.fromkeys(part.shape for part in parts)),
        promised=None
        if None in promised or not asked
        else sum((part.promised or 0) * part.absent for part in parts) / asked,
    )


def wilson(hits: int, count: int, z: float) -> tuple[float, float]:
    """The interval of the share that so many hits of so many suggest, ``z`` deviations wide."""
    if not count:
        return 0.0, 1.0
    share, extra = hits / count, z * z / count
    middle = (share + extra / 2) / (1 + extra)
    half = z / (1 + extra) * math.sqrt(share * (1 - share) / count + extra / (4 * count))
    # Exactly so where they are none or all, which the difference is by rounding alone.
    low = middle - half if hits else 0.0
    high = middle + half if hits < count else 1.0
    return max(0.0, low), min(1.0, high)


def measure(
    filter: FilterFound,
    absent: int,
    seed: int,
    *,
    watch: Callable[[int], None] = lambda count: None,
) -> Measured:
    """Ask a filter for all of its keys, and for so many absent ones, which the seed draws.

    Absent keys are made of a sample of those that are in, and compared with all of them: the keys
    are read two to four times, and never kept. ``watch`` is told of every some thousand that were
    read. ValueError for a filter that cannot be asked.
    """
    if filter.reader is None:
        raise ValueError(
            f"{filter.where} cannot be asked: {filter.problem or 'nobody here reads it'}"
        )
    rng = random.Random(seed)
    asked, denied, sample = 0, 0, Sample(rng)
    denied_keys: list[bytes] = []
    for chunk in _chunks(filter, watch):
        asked += len(chunk)
        sample.add(chunk)
        answers = filter.reader.might_contain_many(chunk)
        missing = [key for key, answer in zip(chunk, answers, strict=True) if not answer]
        denied += len(missing)
        denied_keys += missing[: _SHOWN - len(denied_keys)]
    shape, keys = _absent(filter, sample.keys, absent, rng, watch)
    passed = sum(
        sum(filter.reader.might_contain_many(keys[start : start + CHUNK]))
        for start in range(0, len(keys), CHUNK)
    )
    return Measured(
        where=filter.where,
        keys=None if filter.keys is None else asked,
        denied=denied,
        denied_keys=tuple(denied_keys),
        absent=len(keys),
        passed=passed,
        shape=shape,
        promised=filter.expected_fpr,
    )


def _chunks(filter: FilterFound, watch: Callable[[int], None]) -> Iterator[list[bytes]]:
    """The keys that are in, some thousand at a time; none where they are not at hand."""
    keys = iter(()) if filter.keys is None else filter.keys()
    while chunk := list(islice(keys, CHUNK)):
        yield chunk
        watch(len(chunk))


def _absent(
    filter: FilterFound,
    sample: list[bytes],
    count: int,
    rng: random.Random,
    watch: Callable[[int], None],
) -> tuple[str, list[bytes]]:
    """How the absent keys were made, and up to so many of them, each once."""
    longest = max(map(len, sample), default=0) + 64
    count = min(count, max(1, _MOST_ABSENT_BYTES // longest))
    shapes, absent = [], dict[bytes, None]()
    for shape, make in ways(sample, rng):
        wanted = count - len(absent)
        if wanted <= 0:
            break
        made = dict.fromkeys(make(2 * wanted))
        for chunk in _chunks(filter, watch):
            for key in made.keys() & set(chunk):
                del made[key]
        new = [key for key in made if key not in absent][:wanted]
        if new:
            shapes.append(shape)
            absent.update(dict.fromkeys(new))
    return "; ".join(shapes), list(absent)
