"""Filter policies as third parties might write them: a good one, and all ways to be wrong."""

from __future__ import annotations

import contextlib
import json
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


class ProbingRaisesPolicy(FilterPolicy):
    """Answers for many keys, so that its filters pass for good ones, and raises for one."""

    name: ClassVar[str] = "test.raises-while-probing"

    def create_filter(self, keys: Sequence[bytes]) -> bytes:
        return b"!"

    def open(self, filter: bytes) -> Any:
        return RaisingReader()


class RaisingReader:
    def might_contain(self, key: bytes) -> bool:
        raise ZeroDivisionError("the probe is broken")

    def might_contain_many(self, keys: Sequence[bytes]) -> list[bool]:
        return [True] * len(keys)


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
class WrongTypesPolicy(FilterPolicy):
    """Returns what is not of the type that was asked for: its filter, answers, or both readers'."""

    name: ClassVar[str] = "test.wrong-types"
    what: str = "truth"

    def create_filter(self, keys: Sequence[bytes]) -> Any:
        return "text" if self.what == "filter" else b"x"

    def open(self, filter: bytes) -> Any:
        return None if self.what == "reader" else WrongTypesReader(self.what)


class WrongTypesReader:
    def __init__(self, what: str):
        self._what = what

    def might_contain(self, key: bytes) -> Any:
        return ["maybe"]

    def might_contain_many(self, keys: Sequence[bytes]) -> Any:
        return "yes" * len(keys) if self._what == "answers" else [1] * len(keys)


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
