"""Building a filter so that no policy, however wrong, can lose a key or stop an engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import attrs

from policies.block import encode_identity
from policies.builtin import BUILTIN, FamilyBuilder
from policies.contract import BuildContext, FilterBuilder, FilterPolicy
from policies.errors import cause

if TYPE_CHECKING:
    from filters import Digests


@attrs.frozen
class BuildResult:
    """What became of one table's filter.

    ``built`` has a filter that answered "maybe" to every key. ``declined`` and ``failed`` have
    none, count no keys, and say why.
    """

    state: Literal["built", "declined", "failed"]
    filter: bytes | None = attrs.field(default=None, repr=False)
    num_keys: int = 0
    reason: str = ""


class VerifiedBuilder:
    """A policy's builder behind which nothing goes wrong unnoticed.

    The finished filter is opened from its bytes and probed with every key. A miss, an exception of
    the policy or a value of the wrong type drops the filter; none of them reaches the caller. For
    a built-in policy the digests that its builder keeps anyway are what the filter is probed with,
    about a nanosecond each in the compiled kernel; for any other policy it keeps the keys.
    """

    __slots__ = ("_builder", "_digests", "_failure", "_finished", "_keys", "_policy")

    def __init__(self, policy: FilterPolicy, context: BuildContext):
        self._policy = policy
        self._keys: list[bytes] = []
        self._digests: Digests | None = None
        self._builder: FilterBuilder | None = None
        self._failure: BuildResult | None = None
        self._finished = False
        try:
            self._builder = policy.new_builder(context)
        except Exception as error:
            self._fail(f"raised in new_builder(): {cause(error)}")
        if type(policy) in BUILTIN and isinstance(self._builder, FamilyBuilder):
            self._digests = self._builder.digests

    def add(self, key: bytes) -> None:
        """Take the next key."""
        if self._finished:
            raise ValueError("this builder has finished: take a new one for the next filter")
        if self._builder is None:
            return
        try:
            self._builder.add(key)
        except Exception as error:
            self._fail(f"raised in add(): {cause(error)}")
        else:
            if self._digests is None:
                self._keys.append(key)

    def add_many(self, keys: Sequence[bytes]) -> None:
        """Take the next keys; for a built-in policy without a line of Python for each."""
        if self._digests is None or self._finished:
            for key in keys:
                self.add(key)
            return
        try:
            self._digests.add_many(keys)
        except Exception as error:
            self._fail(f"raised in add(): {cause(error)}")

    def finish(self) -> BuildResult:
        """The verified filter, or why there is none; once only."""
        if self._finished:
            raise ValueError("this builder has finished: take a new one for the next filter")
        self._finished = True
        if self._builder is None:
            assert self._failure is not None
            return self._failure
        try:
            filter = self._builder.finish()
        except Exception as error:
            return self._fail(f"raised in finish(): {cause(error)}")
        if filter is None:
            keys = self._num_added
            return BuildResult("declined", reason=f"policy {self._name} declined {keys} keys")
        return self._verify(self._builder, filter)

    def _verify(self, builder: FilterBuilder, filter: bytes) -> BuildResult:
        if not isinstance(filter, bytes):
            return self._fail(f"finished with {type(filter).__name__}, not with bytes or None")
        if self._num_added and not filter:
            return self._fail(f"finished with no bytes for {self._num_added} keys")
        try:
            encode_identity(self._policy)
            reader: Any = self._policy.open(filter)
            if self._digests is not None:
                fault = _missed(reader.count_missing(self._digests), self._num_added)
                num_keys = getattr(builder, "num_keys", 0)
            else:
                fault = _fault(reader.might_contain_many(list(self._keys)), self._keys)
                num_keys = _count(self._keys, builder, reader)
        except Exception as error:
            return self._fail(f"raised while its filter was verified: {cause(error)}")
        if fault:
            return self._fail(fault)
        return BuildResult("built", filter, num_keys)

    @property
    def _num_added(self) -> int:
        return len(self._keys if self._digests is None else self._digests)

    def _fail(self, what: str) -> BuildResult:
        self._builder = None
        self._keys, self._digests = [], None
        self._failure = BuildResult("failed", reason=f"policy {self._name} {what}")
        return self._failure

    @property
    def _name(self) -> str:
        return repr(self._policy.name)


def _fault(answers: Any, keys: list[bytes]) -> str:
    """What is wrong with the answers to a filter's own keys; nothing if all are "maybe"."""
    if not isinstance(answers, list):
        return f"answered many keys with {type(answers).__name__}, not with a list"
    if len(answers) != len(keys):
        return f"gave {len(answers)} answers for {len(keys)} keys"
    return _missed(sum(not answer for answer in answers), len(keys))


def _missed(missed: int, count: int) -> str:
    return f"built a filter that misses {missed} of its {count} keys" if missed else ""


def _count(keys: list[bytes], *counted_by: object) -> int:
    """The number of keys as the family counts them, where it does and the number can be right."""
    if not keys:
        return 0
    for each in counted_by:
        count = getattr(each, "num_keys", None)
        if isinstance(count, int) and not isinstance(count, bool) and 0 < count <= len(keys):
            return count
    return len(set(keys))
