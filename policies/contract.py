"""The contract between an engine and a filter family: what a policy is, reads and builds."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, Self

import attrs

from filters.columns import one_by_one
from filters.hashing import key_bytes
from policies.parameters import parameter_fields

if TYPE_CHECKING:
    from filters.hashing import Key

NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")

# Integers up to here are exact as floats, so that 10.0 and 10 are one parameter value.
_EXACT = 2**53


@attrs.frozen(kw_only=True)
class BuildContext:
    """What is known about a table before its first key comes; a builder may use it or not.

    ``expected_keys`` is an upper bound where there is one: a merge may drop what it was promised.
    """

    level: int | None = None
    is_bottommost: bool = False
    reason: Literal["flush", "compaction", "bulk"] = "flush"
    expected_keys: int | None = None


class FilterReader(Protocol):
    """A filter opened for probing. False is certain, True means "maybe", and so does all else.

    A reader may also have ``might_contain_digest(digest)`` with the ``digest_seed`` that digests
    for it are taken under, ``num_keys``, ``expected_fpr`` and ``__lsm_probe__``: every filter class
    of ``filters`` is a reader. One that answers for ranges, too, is a :class:`RangeReader`.
    """

    def might_contain(self, key: bytes, /) -> bool:
        """False: the key was not among those the filter was built of."""

    def might_contain_many(self, keys: Sequence[bytes], /) -> list[bool]:
        """The answers for many keys, in order."""


class RangeReader(FilterReader, Protocol):
    """A filter that also answers for ranges of keys, which iterators ask before they read.

    Keys are in the order of their bytes. Ranges have the bounds of iterators: ``low`` belongs to
    the range, ``high`` does not, and None is no bound on that side. A range whose low bound is not
    below its high one holds no key, so that either answer is right.
    """

    def may_contain_range(self, low: bytes | None, high: bytes | None, /) -> bool:
        """False: none of the keys that the filter was built of lies from ``low`` to ``high``."""


def may_contain_range(reader: FilterReader, low: bytes | None, high: bytes | None) -> bool:
    """The answer of a reader for a range; "maybe" of one that answers for keys alone."""
    ask = getattr(reader, "may_contain_range", None)
    return ask is None or ask(low, high) is not False


class FilterBuilder(Protocol):
    """Takes the keys of one table and makes its filter, once.

    After ``finish`` a builder may have ``num_keys``: how many keys its family counts in the filter.
    """

    def add(self, key: bytes, /) -> None:
        """Take the next key; keys come in order, tombstones and repeats included."""

    def finish(self) -> bytes | None:
        """The filter's bytes, or None for "better no filter here"."""


class FilterPolicy(ABC):
    """How to make and read one kind of filter; LevelDB's contract, with parameters.

    A working policy has three members: ``name``, ``create_filter``, and one of ``key_may_match``
    and ``open``, each of which defaults to the other. Subclasses are ``attrs.frozen``; the fields
    that take part in equality are the parameters, and
    ``policies.create(p.name, **p.params()) == p``. A field that is none, like a seed, is declared
    with ``attrs.field(eq=False, repr=False)``.

    Any instance of a policy answers for any bytes of its name: what reading needs is in the bytes.
    """

    __slots__ = ()

    name: ClassVar[str]
    """The id in configurations, in blocks and in the registry; third parties prefix theirs."""

    layouts: ClassVar[frozenset[str]] = frozenset({"table"})
    """Where its filters can sit: one per ``"table"``, or one per 2 KiB ``"block"`` window too.

    Windows have LevelDB's form: whoever makes them, LevelDB's reader is what reads them.
    """

    takes_views: ClassVar[bool] = False
    """``open`` takes any bytes-like object: blocks then hand it a view instead of a copy."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Refuse a class that can create filters and has no way to read them."""
        super().__init_subclass__(**kwargs)
        creates = not getattr(cls.create_filter, "__isabstractmethod__", False)
        reads = (
            cls.open is not FilterPolicy.open or cls.key_may_match is not FilterPolicy.key_may_match
        )
        if creates and not reads:
            raise TypeError(
                f"{cls.__qualname__} must override key_may_match() or open(): each defaults to the "
                "other (a base class that leaves this to its subclasses declares one abstract)"
            )

    def __eq__(self, other: object) -> bool:
        """Whether both are of one class with equal parameters; attrs classes say it themselves."""
        if type(other) is not type(self):
            return NotImplemented
        return self.params() == other.params()

    def __hash__(self) -> int:
        return hash(type(self))

    @abstractmethod
    def create_filter(self, keys: Sequence[bytes]) -> bytes | None:
        """The filter of these keys, repeats included, or None for "better no filter here"."""

    def key_may_match(self, key: bytes, filter: bytes) -> bool:
        """The answer of one filter for one key; must be True if the key was among its keys."""
        return self.open(filter).might_contain(key)

    def open(self, filter: bytes) -> FilterReader:
        """The filter in these bytes, parsed once to be probed often."""
        return OneByOneReader(self, filter)

    def new_builder(self, context: BuildContext) -> FilterBuilder:
        """A builder for one table; by default it collects the keys and creates the filter."""
        return CollectingBuilder(self)

    def params(self) -> dict[str, Any]:
        """The parameters that are set, as JSON has them; ``{}`` for a class without fields."""
        if not attrs.has(type(self)):
            return {}
        given = {
            field.alias or field.name: getattr(self, field.name)
            for field in parameter_fields(type(self))
        }
        return {name: _plain(value) for name, value in given.items() if value is not None}

    def with_seed(self, seed: int) -> Self:
        """This policy, with the database's secret seed for the filters it will create."""
        return self


class OneByOneReader:
    """A filter that is asked through its policy's ``key_may_match``, one key at a time.

    The policy gets bytes, in whichever form keys come.
    """

    __slots__ = ("_filter", "_policy")

    def __init__(self, policy: FilterPolicy, filter: bytes):
        self._policy = policy
        self._filter = filter

    def might_contain(self, key: Key) -> bool:
        """False: the key was not among those the filter was built of."""
        return self._policy.key_may_match(key_bytes(key), self._filter)

    def might_contain_many(self, keys: Iterable[Key]) -> list[bool]:
        """The answers for many keys, in order."""
        return [self.might_contain(key) for key in one_by_one(keys)]


class CollectingBuilder:
    """Collects keys, as bytes, and creates the filter of all of them at the end."""

    __slots__ = ("_keys", "_policy")

    def __init__(self, policy: FilterPolicy):
        self._policy = policy
        self._keys: list[bytes] | None = []

    def add(self, key: Key) -> None:
        """Take the next key."""
        if self._keys is None:
            raise finished()
        self._keys.append(key_bytes(key))

    def finish(self) -> bytes | None:
        """The filter of all keys, or None where the policy declines; once only."""
        if self._keys is None:
            raise finished()
        keys, self._keys = self._keys, None
        return self._policy.create_filter(keys)


def _plain(value: Any) -> Any:
    """A parameter's one spelling: a whole float as an int, as equality has it."""
    if isinstance(value, float) and value.is_integer() and abs(value) <= _EXACT:
        return int(value)
    return value


def finished() -> ValueError:
    """What a builder raises that is used again."""
    return ValueError(
        "this builder has finished: take a new one from new_builder() for the next filter"
    )
