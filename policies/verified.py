"""Building a filter so that no policy, however wrong, can lose a key or stop an engine."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

import attrs

from filters.columns import one_by_one
from filters.hashing import key_bytes
from filters.header import immutable_view
from policies.block import Identity, open_payload
from policies.builtin import FamilyBuilder, FamilyPolicy, is_built_in
from policies.containment import is_attended, let_pass
from policies.contract import BuildContext, FilterBuilder, FilterPolicy, FilterReader
from policies.errors import cause

if TYPE_CHECKING:
    from filters import Digests
    from filters.hashing import Key


@attrs.frozen
class BuildResult:
    """What became of one table's filter.

    ``built`` has a filter that answered "maybe" to every key, and what a block is to name its
    policy by, unless another one reads it. ``declined`` and ``failed`` have no filter, count no
    keys, and say why.
    """

    state: Literal["built", "declined", "failed"]
    filter: bytes | None = attrs.field(default=None, repr=False)
    num_keys: int = 0
    reason: str = ""
    identity: Identity | None = attrs.field(default=None, eq=False, repr=False)


class VerifiedBuilder:
    """A policy's builder behind which nothing goes wrong unnoticed.

    The finished filter is opened from its bytes, as a lookup will open it, and asked for every key,
    as a lookup will ask. A miss, an exception of the policy or a value of the wrong type drops the
    filter; none of them reaches the caller, unless it interrupts him.

    For a policy that is built in the digests that its builder keeps anyway are what the filter is
    asked for, about a nanosecond each in the compiled kernel: its readers answer for a digest what
    they answer for a key. For any other policy it keeps the keys, and asks in each way that lookups
    have; in one way where it is built in. Where another policy will read the filter, that is
    ``read_by``. What was collected before its policy was known are ``digests``, which are for
    policies that are built in.
    """

    __slots__ = (
        "_builder",
        "_digests",
        "_failure",
        "_finished",
        "_keys",
        "_name",
        "_policy",
        "_read_by",
    )

    def __init__(
        self,
        policy: FilterPolicy,
        context: BuildContext,
        read_by: FilterPolicy | None = None,
        digests: Digests | None = None,
    ):
        self._policy = policy
        self._read_by = read_by
        self._name = repr(type(policy).__qualname__)
        self._keys: list[bytes] = []
        self._digests: Digests | None = None
        self._builder: FilterBuilder | None = None
        self._failure: BuildResult | None = None
        self._finished = False
        try:
            self._name = repr(policy.name)
            if digests is not None and isinstance(policy, FamilyPolicy):
                self._builder = FamilyBuilder(policy, digests)
            else:
                self._builder = policy.new_builder(context)
        except BaseException as error:
            self._raised("in new_builder()", error)
        if is_built_in(policy) and isinstance(self._builder, FamilyBuilder):
            self._digests = self._builder.digests

    def add(self, key: Key) -> None:
        """Take the next key; the builder of a policy that is not built in gets its bytes."""
        if self._finished:
            raise ValueError("this builder has finished: take a new one for the next filter")
        if self._builder is None:
            return
        try:
            if self._digests is None:
                data = key_bytes(key)
                self._builder.add(data)
                self._keys.append(data)
            else:
                self._digests.add(key)
        except BaseException as error:
            self._raised("in add()", error)

    def add_many(self, keys: Iterable[Key]) -> None:
        """Take the next keys; for a built-in policy without a line of Python for each."""
        if self._digests is None or self._finished:
            for key in one_by_one(keys):
                self.add(key)
            return
        try:
            self._digests.add_many(keys)
        except BaseException as error:
            self._raised("in add()", error)

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
        except BaseException as error:
            return self._raised("in finish()", error)
        if filter is None:
            keys = self._num_added
            return BuildResult("declined", reason=f"policy {self._name} declined {keys} keys")
        return self._verify(self._builder, filter)

    def _verify(self, builder: FilterBuilder, filter: bytes) -> BuildResult:
        if type(filter) is not bytes:
            return self._fail(f"finished with {type(filter).__name__}, not with bytes or None")
        if self._num_added and not filter:
            return self._fail(f"finished with no bytes for {self._num_added} keys")
        try:
            identity = Identity.of(self._policy) if self._read_by is None else None
            if self._digests is not None:
                reader: Any = self._policy.open(filter)
                fault = _missed(reader.count_missing(self._digests), self._num_added)
                num_keys = getattr(builder, "num_keys", 0)
            else:
                reader = self._opened(identity, filter)
                ask = _fault_at_once if is_built_in(self._policy) else _fault
                fault = ask(reader, self._keys)
                num_keys = _count(self._keys, builder, reader)
        except BaseException as error:
            return self._raised("while its filter was verified", error)
        if fault:
            return self._fail(fault)
        return BuildResult("built", filter, num_keys, identity=identity)

    def _opened(self, identity: Identity | None, filter: bytes) -> FilterReader:
        """The reader that a lookup would ask, another instance's than the one that built."""
        if identity is None:
            assert self._read_by is not None
            return self._read_by.open(filter)
        cls, payload = type(self._policy), immutable_view(filter)
        return open_payload(identity.name, cls, identity.decoded(), payload, False)

    @property
    def _num_added(self) -> int:
        return len(self._keys if self._digests is None else self._digests)

    def _raised(self, where: str, error: BaseException) -> BuildResult:
        let_pass(error, attended=is_attended())
        return self._fail(f"raised {where}: {cause(error)}")

    def _fail(self, what: str) -> BuildResult:
        self._builder = None
        self._keys, self._digests = [], None
        self._failure = BuildResult("failed", reason=f"policy {self._name} {what}")
        return self._failure


def _fault(reader: Any, keys: list[bytes]) -> str:
    """What is wrong with a reader's answers to its own keys, in each way that it may be asked."""
    fault = _fault_one_by_one([reader.might_contain(key) for key in keys])
    fault = fault or _fault_at_once(reader, keys)
    fault = fault or _fault_in_ranges(reader, keys)
    if fault or not hasattr(reader, "__lsm_probe__"):
        return fault
    from policies.door import ways_in  # ctypes, which few plug-ins need

    for name, ask in ways_in(reader):
        if missed := _missed(sum(not ask(key) for key in keys), len(keys)):
            return f"{missed} when asked by {name}() of its capsule"
    return ""


def _fault_one_by_one(answers: list[Any]) -> str:
    for answer in answers:
        if answer is not True and answer is not False:
            return f"answered a key with {type(answer).__name__}, not with True or False"
    return _missed(answers.count(False), len(answers))


def _fault_at_once(reader: Any, keys: list[bytes]) -> str:
    """What is wrong with a reader's answers where it is asked for all keys in one call."""
    answers = reader.might_contain_many(list(keys))
    if not isinstance(answers, list):
        return f"answered many keys with {type(answers).__name__}, not with a list"
    if len(answers) != len(keys):
        return f"gave {len(answers)} answers for {len(keys)} keys"
    return _missed(sum(not answer for answer in answers), len(keys))


def _fault_in_ranges(reader: Any, keys: list[bytes]) -> str:
    """What is wrong with the answers for ranges: those that hold one key, and up to the next."""
    ask = getattr(reader, "may_contain_range", None)
    if ask is None or not keys:
        return ""
    ordered = sorted(set(keys))
    asked: list[tuple[bytes | None, bytes | None]] = [(None, None), (ordered[-1], None)]
    asked += [(key, key + b"\x00") for key in ordered]
    asked += pairwise(ordered)
    for answer in (ask(low, high) for low, high in asked):
        if answer is False:
            return "built a filter that denies a range which holds one of its keys"
        if answer is not True:
            return f"answered a range with {type(answer).__name__}, not with True or False"
    return ""


def _missed(missed: int, count: int) -> str:
    return f"built a filter that misses {missed} of its {count} keys" if missed else ""


def _count(keys: list[bytes], *counted_by: object) -> int:
    """The number of keys as the family counts them, where it does and the number can be right."""
    if not keys:
        return 0
    for each in counted_by:
        count = getattr(each, "num_keys", None)
        if type(count) is int and 0 < count <= len(keys):
            return count
    return len(set(keys))
