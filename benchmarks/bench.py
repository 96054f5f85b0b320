"""What the rows of a benchmark share: keys, subjects once they are proven right, verdicts.

A :class:`Case` knows how to measure one number, or one and a peer's; running it gives a
:class:`Row`. Everything that costs time to make is made when the first row asks for it.
"""

from __future__ import annotations

import gc
import random
from collections.abc import Callable, Iterable, Sequence
from functools import cache, cached_property, partial
from types import ModuleType
from typing import Any

import attrs

from benchmarks import large, peers
from benchmarks.errors import UnavailableError, WrongAnswersError
from benchmarks.subjects import Subject, batches, built_and_checked, builtin_set, ours
from benchmarks.targets import TARGETS, Target
from benchmarks.timing import Sample, fresh_loop, interleaved, processors
from filters import PackedKeys, kernels

KEY_BYTES = 16

MET = "met"
MISSED = "MISSED"
INFORMATION = "information"
FAILED = "failed"
NOT_MEASURED = "not measured"


@attrs.frozen
class Settings:
    """How much is measured; the defaults are what the targets are stated for."""

    keys: int = 1_000_000
    repeats: int = 5
    seed: int = 1
    fuse_keys: int = 30_000_000
    large_bytes: int = 1 << 30
    large_keys: int = 4_000_000
    python_keys: int = 100_000
    thread_passes: int = 20
    at_least_seconds: float = 0.02
    patience: int = 3


FULL = Settings()
QUICK = Settings(
    keys=100_000,
    fuse_keys=3_000_000,
    large_bytes=1 << 26,
    large_keys=1_000_000,
    python_keys=20_000,
    at_least_seconds=0.005,
)


@attrs.frozen
class Figures:
    """Nanoseconds per key in each repeat, ours and where there is one the peer's, and a remark."""

    ours: list[float]
    peer: list[float] | None = None
    note: str = ""


@attrs.frozen
class Group:
    """Rows under one heading, which says what is measured and what a peer's number is.

    With ``columns`` the rows are cells of a table, one number each.
    """

    title: str
    what: str
    columns: tuple[str, ...] = ()


@attrs.frozen
class Case:
    """One row: how it is measured, and the target it is held to, if any."""

    group: Group
    name: str
    measure: Callable[[Bench], Figures]
    target: str | None = None
    column: str = ""

    @property
    def label(self) -> str:
        """The row's full name, which ``--only`` looks into."""
        return ": ".join(filter(None, (self.group.title, self.name, self.column)))


@attrs.frozen
class Row:
    """What became of a case."""

    case: Case
    verdict: str
    figures: Figures | None = None
    reason: str = ""

    @property
    def target(self) -> Target | None:
        """What the ratio is held against."""
        return TARGETS[self.case.target] if self.case.target else None

    @property
    def ours(self) -> float | None:
        """The best of our repeats."""
        return min(self.figures.ours) if self.figures else None

    @property
    def peer(self) -> float | None:
        """The best of the peer's repeats."""
        return min(self.figures.peer) if self.figures and self.figures.peer else None

    @property
    def ratio(self) -> float | None:
        """Ours over the peer's, or as the target wants it."""
        if self.ours is None or self.peer is None:
            return None
        return self.target.ratio(self.ours, self.peer) if self.target else self.ours / self.peer


class Keys:
    """Random keys, as many that will be built of and as many strangers, in every form.

    The bytes objects are made one after the other, so in order they lie one behind the other in
    memory; shuffled, each is a cache miss of its own.
    """

    def __init__(self, count: int, seed: int):
        rng = random.Random(seed)
        self.data = {known: rng.randbytes(KEY_BYTES * count) for known in (True, False)}
        self.in_order = {known: _cut(data) for known, data in self.data.items()}
        self.shuffled = {known: list(keys) for known, keys in self.in_order.items()}
        for keys in self.shuffled.values():
            rng.shuffle(keys)

    def packed(self, known: bool) -> PackedKeys:
        """The keys in one buffer."""
        return PackedKeys(self.data[known], width=KEY_BYTES)


class Bench:
    """One run: its settings, keys and subjects."""

    def __init__(self, settings: Settings, kernel: ModuleType):
        self.settings = settings
        self.kernel = kernel
        self.processors = processors()
        self.makers: dict[str, Callable[[], Subject]] = {**peers.BY_NAME, "set": builtin_set}
        for family in kernels.CLASS_NAMES:
            self.makers[family] = partial(ours, kernel, family)
        self.built = cache(self._built)

    @cached_property
    def keys(self) -> Keys:
        """The keys of nearly every row."""
        return Keys(self.settings.keys, self.settings.seed)

    @cached_property
    def python_keys(self) -> Keys:
        """Fewer keys, for the kernel that takes its time."""
        return Keys(self.settings.python_keys, self.settings.seed)

    @cached_property
    def large_filter(self) -> bytes:
        """The bytes of the large, half-full filter."""
        return large.half_full(self.settings.large_bytes, self.settings.seed)

    @cached_property
    def large_keys(self) -> PackedKeys:
        """The keys it is asked for."""
        return random_packed(self.settings.large_keys, self.settings.seed + 1)

    @cached_property
    def empty_calls(self) -> list[float]:
        """The empty compiled call, measured on its own: one number for the whole run."""
        return [taken for _ in range(3) for taken in self.measure(self.empty_call()).ours]

    def empty_call(self) -> Sample:
        """A compiled call that does as good as nothing, in a loop of its own."""
        return loop("subject(key)", self.keys.in_order[True], gc.is_tracked)

    def subject(self, name: str) -> Subject:
        """A subject by its name; UnavailableError where it is not installed."""
        return self.makers[name]()

    def _built(self, name: str) -> Any:
        """What the subject builds of the keys; WrongAnswersError unless it is found right."""
        subject = self.subject(name)
        return built_and_checked(subject, self.keys.in_order[True], self.keys.in_order[False])

    def build(self, name: str) -> Sample:
        """Building from a list, once that has been found to give right answers."""
        self.built(name)
        build, keys = self.subject(name).build, self.keys.in_order[True]
        return Sample(lambda: build(keys), len(keys))

    def ask(self, name: str, known: bool, *, shuffled: bool = False) -> Sample:
        """Asking for one key after the other in a loop of its own."""
        keys = (self.keys.shuffled if shuffled else self.keys.in_order)[known]
        return loop(self.subject(name).ask, keys, self.built(name))

    def ask_list(self, name: str, known: bool, *, shuffled: bool = False) -> Sample:
        """Asking for batches of a list, which are cut before the clock starts."""
        keys = (self.keys.shuffled if shuffled else self.keys.in_order)[known]
        body = self.subject(name).ask_batch
        if body is None:
            raise UnavailableError(f"{name} takes no batches")
        sample = loop(body, batches(keys), self.built(name))
        return attrs.evolve(sample, keys=len(keys))

    def ask_buffer(self, name: str, known: bool) -> Sample:
        """Asking for all keys of a buffer at once, the answers into a bytearray."""
        built = self.built(name)
        return by_buffer(built, self.keys.packed(known))

    def measure(self, sample: Sample, peer: Sample | None = None, note: str = "") -> Figures:
        """Time a sample, in turn with its peer."""
        both = [sample] if peer is None else [sample, peer]
        settings = self.settings
        taken = interleaved(
            both,
            settings.repeats,
            at_most=settings.patience * settings.repeats,
            at_least=settings.at_least_seconds,
        )
        return Figures(taken[0], taken[1] if peer else None, note)


def loop(body: str, keys: Sequence[Any], subject: Any) -> Sample:
    """``body`` for each key, in a function that nothing else has run through."""
    run = fresh_loop(body)
    return Sample(lambda: run(keys, subject), len(keys))


def by_buffer(built: Any, keys: PackedKeys) -> Sample:
    """One call for all keys of a buffer, the answers into a bytearray that is there already."""
    out = bytearray(len(keys))
    return Sample(lambda: built.might_contain_many(keys, out=out), len(keys))


def random_packed(count: int, seed: int) -> PackedKeys:
    """So many random keys in one buffer."""
    rng = random.Random(seed)
    left, pieces = count * KEY_BYTES, []
    while left:
        pieces.append(rng.randbytes(min(left, large.CHUNK)))
        left -= len(pieces[-1])
    return PackedKeys(b"".join(pieces), width=KEY_BYTES)


def run(case: Case, bench: Bench) -> Row:
    """Measure a case, or say why it cannot be; no error costs the rows that others have."""
    try:
        figures = case.measure(bench)
    except UnavailableError as error:
        return Row(case, NOT_MEASURED, reason=str(error))
    except WrongAnswersError as error:
        return Row(case, FAILED, reason=str(error))
    except Exception as error:
        return Row(case, FAILED, reason=f"{type(error).__name__}: {error}")
    row = Row(case, INFORMATION, figures)
    if row.target and row.ratio is not None:
        row = attrs.evolve(row, verdict=MET if row.target.is_met(row.ratio) else MISSED)
    return row


def chosen(cases: Iterable[Case], only: str | None) -> list[Case]:
    """The cases whose label contains ``only``, in any case; ValueError names them if none does."""
    everything = list(cases)
    wanted = [case for case in everything if (only or "").lower() in case.label.lower()]
    if not wanted:
        labels = "\n".join(f"  {case.label}" for case in everything)
        raise ValueError(f"no row's name contains {only!r}; there are\n{labels}")
    return wanted


def _cut(data: bytes) -> list[bytes]:
    return [data[start : start + KEY_BYTES] for start in range(0, len(data), KEY_BYTES)]
