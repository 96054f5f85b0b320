"""What the rows on the kernels share: keys, subjects once they are proven right, how it is timed.

A :class:`Case` knows how to measure one number, or one and a peer's. Everything that costs time to
make is made when the first case asks for it.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from functools import cache, cached_property, partial
from types import ModuleType
from typing import Any

import attrs

from benchmarks import peers
from benchmarks.errors import UnavailableError
from benchmarks.kernels import large
from benchmarks.kernels.targets import TARGETS
from benchmarks.keys import Keys, random_packed
from benchmarks.rows import Row, timed
from benchmarks.subjects import Subject, batches, built_and_checked, builtin_set, ours
from benchmarks.timing import Sample, by_buffer, interleaved, loop, processors
from filters import PackedKeys, kernels
from filters.errors import KernelUnavailableError
from filters.families import every

PART = "kernels"


@attrs.frozen
class Settings:
    """How much is measured; the defaults are what the targets are stated for, and judged at."""

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
    judged: bool = True


@attrs.frozen
class Figures:
    """Nanoseconds per key in each repeat, ours and where there is one the peer's, and a remark."""

    ours: Sequence[float]
    peer: Sequence[float] = ()
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
    """One row: how it is measured, beside whom, and the target it is held to, if any."""

    group: Group
    name: str
    measure: Callable[[Bench], Figures]
    target: str | None = None
    peer: str = ""
    column: str = ""

    @property
    def row(self) -> Row:
        """The row before it is measured."""
        return Row(
            part=PART,
            group=self.group.title,
            name=self.name,
            subject="native",
            at={"column": self.column} if self.column else {},
            unit="ns",
            peer=self.peer,
            target=TARGETS[self.target] if self.target else None,
        )

    def rows(self, bench: Bench) -> list[Row]:
        """The row with its figures, and its verdict where it has a target."""
        figures = self.measure(bench)
        row = attrs.evolve(self.row, note=figures.note)
        return [timed(row, figures.ours, figures.peer)]


class Bench:
    """One run: its settings, keys and subjects."""

    def __init__(self, settings: Settings, kernel: str = "native"):
        self.settings = settings
        self.processors = processors()
        self.makers: dict[str, Callable[[], Subject]] = {**peers.BY_NAME, "set": builtin_set}
        for family in every():
            self.makers[family] = partial(self._ours, family)
        self.built = cache(self._built)
        self._kernel_name = kernel

    @cached_property
    def kernel(self) -> ModuleType:
        """The kernel that is measured; UnavailableError where it cannot run."""
        try:
            return kernels.load(self._kernel_name)
        except KernelUnavailableError as error:
            raise UnavailableError(str(error)) from error

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

    def _ours(self, family: str) -> Subject:
        kernel = self.kernel.__name__.rpartition(".")[2]  # found to run
        return ours(kernel, family)

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
        return Figures(taken[0], taken[1] if peer else (), note)
