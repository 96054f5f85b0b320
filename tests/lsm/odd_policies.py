"""Filter policies as third parties might write them: a good one, and all ways to be wrong."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import attrs

import policies
from policies import FilterPolicy


class SetReader:
    """Knows its keys exactly."""

    expected_fpr = 0.0

    def __init__(self, filter: bytes):
        self._keys = {bytes.fromhex(key) for key in json.loads(filter)}
        self.num_keys = len(self._keys)

    def might_contain(self, key: bytes) -> bool:
        return key in self._keys

    def might_contain_many(self, keys: Sequence[bytes]) -> list[bool]:
        return [self.might_contain(key) for key in keys]


class SetPolicy(FilterPolicy):
    """Well-behaved: stores all keys, and so is never wrong."""

    name: ClassVar[str] = "test.set"

    def create_filter(self, keys: Sequence[bytes]) -> bytes:
        return json.dumps(sorted({key.hex() for key in keys})).encode()

    def open(self, filter: bytes) -> Any:
        return SetReader(filter)


class MaybePolicy(FilterPolicy):
    """Says "maybe" to every key."""

    name: ClassVar[str] = "test.maybe"

    def create_filter(self, keys: Sequence[bytes]) -> bytes:
        return b"?"

    def key_may_match(self, key: bytes, filter: bytes) -> bool:
        return True


class _Building(threading.local):
    """Whether this thread has built a filter that it will now open to see whether it is good."""

    now = False


class TurningPolicy(FilterPolicy):
    """Its filter is good until it is verified. Whoever opens it later gets another reader."""

    name: ClassVar[str] = "test.turning"
    building: ClassVar[_Building] = _Building()

    def create_filter(self, keys: Sequence[bytes]) -> Any:
        self.building.now = True
        return b"!"

    def open(self, filter: bytes) -> Any:
        if self.building.now:
            self.building.now = False
            return MaybeReader()
        return self.later(filter)

    def later(self, filter: bytes) -> Any:
        raise NotImplementedError


class MaybeReader:
    """Says "maybe" to every key."""

    def might_contain(self, key: bytes) -> Any:
        return True

    def might_contain_many(self, keys: Sequence[bytes]) -> Any:
        return [self.might_contain(key) for key in keys]


class ProbingRaisesPolicy(TurningPolicy):
    """Raises when it is asked for a key."""

    name: ClassVar[str] = "test.raises-while-probing"

    def later(self, filter: bytes) -> Any:
        return RaisingReader(ZeroDivisionError("the probe is broken"))


class RaisingReader(MaybeReader):
    def __init__(self, error: BaseException):
        self._error = error

    def might_contain(self, key: bytes) -> bool:
        raise self._error


class RangesRaisePolicy(TurningPolicy):
    """Raises when it is asked for a range."""

    name: ClassVar[str] = "test.raises-in-ranges"

    def later(self, filter: bytes) -> Any:
        return RangesRaiseReader()


class RangesRaiseReader(MaybeReader):
    def may_contain_range(self, low: bytes | None, high: bytes | None) -> bool:
        raise ZeroDivisionError("the range is broken")


class RangesLosePolicy(SetPolicy):
    """Denies the ranges of every key."""

    name: ClassVar[str] = "test.loses-ranges"

    def open(self, filter: bytes) -> Any:
        return RangesLoseReader(filter)


class RangesLoseReader(SetReader):
    def may_contain_range(self, low: bytes | None, high: bytes | None) -> bool:
        return False


class BuildingRaisesPolicy(FilterPolicy):
    """Raises when it has the keys."""

    name: ClassVar[str] = "test.raises-while-building"

    def create_filter(self, keys: Sequence[bytes]) -> bytes:
        raise KeyError("the builder is broken")

    def key_may_match(self, key: bytes, filter: bytes) -> bool:
        return True


@attrs.frozen
class OpeningRaisesPolicy(FilterPolicy):
    """Opens its filters while they are built, and not when they are read again."""

    name: ClassVar[str] = "test.raises-while-opening"
    building: bool = False

    def create_filter(self, keys: Sequence[bytes]) -> bytes:
        return b"."

    def open(self, filter: bytes) -> Any:
        if not self.building:
            raise OSError("the library is gone")
        return policies.NoFilterPolicy().open(filter)


class DecliningPolicy(FilterPolicy):
    """Would rather have no filter, always."""

    name: ClassVar[str] = "test.declines"

    def create_filter(self, keys: Sequence[bytes]) -> None:
        return None

    def key_may_match(self, key: bytes, filter: bytes) -> bool:
        return True


@attrs.frozen
class WrongTypesPolicy(TurningPolicy):
    """Returns what is not of the type that was asked for: its filter, answers, or both readers'.

    With ``truth`` it does so only later: what it answers then is "maybe", if it is true at all.
    """

    name: ClassVar[str] = "test.wrong-types"
    what: str = "truth"

    def create_filter(self, keys: Sequence[bytes]) -> Any:
        self.building.now = self.what == "truth"
        return "text" if self.what == "filter" else self.what.encode()

    def later(self, filter: bytes) -> Any:
        return None if filter == b"reader" else WrongTypesReader(filter)


class WrongTypesReader:
    def __init__(self, what: bytes):
        self._what = what

    def might_contain(self, key: bytes) -> Any:
        return ["maybe"] if self._what == b"truth" else True

    def might_contain_many(self, keys: Sequence[bytes]) -> Any:
        return "yes" * len(keys) if self._what == b"answers" else [1] * len(keys)


class Panic(BaseException):
    """What an extension in another language raises, which is no Exception."""


RAISED: dict[str, type[BaseException]] = {
    "error": ZeroDivisionError,
    "panic": Panic,
    "cancelled": asyncio.CancelledError,
    "no memory": MemoryError,
    "no stack": RecursionError,
    "exit": SystemExit,
    "interrupt": KeyboardInterrupt,
    "generator exit": GeneratorExit,
}


@attrs.frozen
class RaisingPolicy(TurningPolicy):
    """Raises something, somewhere: its bytes say to every instance what, and where."""

    name: ClassVar[str] = "test.raises"
    where: str = "finish"
    what: str = "panic"

    def reach(self, step: str) -> None:
        if self.where == step:
            raise RAISED[self.what]("out of order")

    def new_builder(self, context: policies.BuildContext) -> Any:
        self.reach("new_builder")
        return RaisingBuilder(self)

    def create_filter(self, keys: Sequence[bytes]) -> bytes:
        self.reach("finish")
        self.building.now = not self.where.startswith("verifying")
        return f"{self.where}|{self.what}".encode()

    def later(self, filter: bytes) -> Any:
        spoken = type(self)(*filter.decode().split("|"))
        spoken.reach("open")
        spoken.reach("verifying open")
        return StumblingReader(spoken)


class RaisingBuilder:
    def __init__(self, policy: RaisingPolicy):
        self._policy = policy

    def add(self, key: bytes) -> None:
        self._policy.reach("add")

    def finish(self) -> bytes:
        return self._policy.create_filter([])


class StumblingReader(MaybeReader):
    def __init__(self, policy: RaisingPolicy):
        self._policy = policy

    def might_contain(self, key: bytes) -> bool:
        self._policy.reach("verifying probe")
        self._policy.reach("probe")
        return True

    @property
    def expected_fpr(self) -> float:
        self._policy.reach("expected_fpr")
        return 1.0


ANSWERS: dict[str, Any] = {"None": None, "0": 0, "empty": "", "list": []}
try:
    import numpy
except ImportError:
    pass
else:
    ANSWERS["numpy.False_"] = numpy.False_


@attrs.frozen
class FalsyPolicy(TurningPolicy):
    """Answers with what is false and is not False: from the beginning, or only later."""

    name: ClassVar[str] = "test.falsy"
    what: str = "None"
    at_once: bool = False

    def create_filter(self, keys: Sequence[bytes]) -> bytes:
        self.building.now = not self.at_once
        return self.what.encode()

    def later(self, filter: bytes) -> Any:
        return FalsyReader(ANSWERS[filter.decode()])


class FalsyReader(MaybeReader):
    def __init__(self, answer: Any):
        self._answer = answer

    def might_contain(self, key: bytes) -> Any:
        return self._answer

    def might_contain_many(self, keys: Sequence[bytes]) -> list[bool]:
        return [True] * len(keys)


RATES: dict[str, Any] = {
    "nan": float("nan"),
    "infinite": float("inf"),
    "negative": -0.1,
    "above 1": 1.5,
    "text": "0.01",
    "truth": True,
    "list": [0.01],
    "huge": 10**400,
}


@attrs.frozen
class OddRatePolicy(FilterPolicy):
    """Predicts what no rate can be."""

    name: ClassVar[str] = "test.odd-rate"
    rate: str = "nan"

    def create_filter(self, keys: Sequence[bytes]) -> bytes:
        return self.rate.encode()

    def open(self, filter: bytes) -> Any:
        reader = MaybeReader()
        reader.expected_fpr = RATES[filter.decode()]  # type: ignore[attr-defined]
        return reader


class LosingPolicy(SetPolicy):
    """Forgets one key of three, and would hide it."""

    name: ClassVar[str] = "test.loses-keys"

    def create_filter(self, keys: Sequence[bytes]) -> bytes:
        return super().create_filter([key for at, key in enumerate(keys) if at % 3])


class SlowStartPolicy(SetPolicy):
    """Is not ready for its first two tables, and works from then on."""

    name: ClassVar[str] = "test.slow-start"
    attempts: ClassVar[int] = 0

    def create_filter(self, keys: Sequence[bytes]) -> bytes:
        type(self).attempts += 1
        if self.attempts <= 2:
            raise RuntimeError("not ready yet")
        return super().create_filter(keys)


ODD: tuple[type[FilterPolicy], ...] = (
    SetPolicy,
    MaybePolicy,
    ProbingRaisesPolicy,
    BuildingRaisesPolicy,
    OpeningRaisesPolicy,
    DecliningPolicy,
    WrongTypesPolicy,
    LosingPolicy,
    SlowStartPolicy,
    RaisingPolicy,
    FalsyPolicy,
    OddRatePolicy,
    RangesRaisePolicy,
    RangesLosePolicy,
)


@contextlib.contextmanager
def registered() -> Iterator[None]:
    """All of them are known by their names, until the end of the block."""
    SlowStartPolicy.attempts = 0
    for cls in ODD:
        policies.register(cls)
    try:
        yield
    finally:
        for cls in ODD:
            unregister(cls)


def unregister(cls: type[FilterPolicy]) -> None:
    """Forget a policy, as if its distribution had been uninstalled."""
    policies.registry._REGISTRY._registered.pop(cls.name, None)
    policies.refresh()
