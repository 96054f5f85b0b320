"""The Grafite range filter, built and probed in Python."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Self

from filters import grafite, header
from filters.columns import one_by_one
from filters.digest_kinds import KEY_NUMBERS, not_digests
from filters.elias_fano import Layout
from filters.hashing import checked64, key_bytes
from filters.kernels.python.base import Filter
from filters.kernels.python.elias_fano import EliasFano, encode
from filters.kernels.python.key_numbers import KeyNumbers, key_numbers_of
from filters.key_numbers import Numbering
from filters.sizing_parameters import checked_int

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from filters.columns import Nulls
    from filters.hashing import Key
    from filters.kernels.python.digests import Digests


class Codes:
    """How numbers become codes: each block of them is laid over all codes, shifted at random."""

    __slots__ = ("_factor", "_summand", "universe")

    def __init__(self, universe: int, seed: int, salt: int):
        first, second, third, fourth = grafite.multipliers(seed, salt)
        self._factor = first << 64 | second
        self._summand = third << 64 | fourth
        self.universe = universe

    def of(self, number: int) -> int:
        """A number's code."""
        block, place = divmod(number, self.universe)
        return (self._shift(block) + place) % self.universe

    def _shift(self, block: int) -> int:
        """A random number below the universe, to which that of any other block says nothing."""
        drawn = (self._factor * block + self._summand) >> 64 & (1 << 64) - 1
        return drawn * self.universe >> 64

    def intervals(self, first: int, last: int) -> list[tuple[int, int]]:
        """The codes of consecutive numbers, fewer than or as many as there are codes."""
        if first // self.universe != last // self.universe:
            start = last - last % self.universe
            return self._within(first, start - 1) + self._within(start, last)
        return self._within(first, last)

    def _within(self, first: int, last: int) -> list[tuple[int, int]]:
        """The codes of numbers that lie in one block."""
        low, high = self.of(first), self.of(last)
        return [(low, high)] if low <= high else [(low, self.universe - 1), (0, high)]


class GrafiteFilter(Filter):
    """A static filter of ranges; sized by ``bits_per_key``, or by ``fpr`` and ``range_length``."""

    __slots__ = (
        "_codes",
        "_layout",
        "_num_keys",
        "_numbering",
        "_payload",
        "_salt",
        "_seed",
        "_set",
    )
    family = grafite.FAMILY

    def __init__(
        self, head: header.Header, layout: Layout, numbering: Numbering, payload: memoryview
    ):
        """For kernels; users call ``build`` or ``from_bytes``."""
        self._num_keys, self._seed, self._salt = head.num_keys, head.seed, head.salt
        self._layout, self._numbering, self._payload = layout, numbering, payload
        self._codes = Codes(layout.universe, head.seed, head.salt)
        start = grafite.FIXED_BYTES + len(numbering.prefix)
        self._set = EliasFano(self.family, layout, payload[start:])

    @classmethod
    def build(
        cls,
        keys: Iterable[Key] | KeyNumbers,
        *,
        bits_per_key: float | None = None,
        fpr: float | None = None,
        range_length: int = 1,
        seed: int | None = None,
        salt: int | None = None,
        nulls: Nulls = "error",
    ) -> Self:
        """A filter of exactly these keys.

        ``fpr`` is the rate of empty ranges of ``range_length`` keys in a row, or of absent keys.
        """
        sizing = grafite.check(bits_per_key=bits_per_key, fpr=fpr, range_length=range_length)
        collected = key_numbers_of(one_by_one(keys, nulls), seed)
        seed, salt = collected.digest_seed, checked64("salt", salt)
        numbers = set(collected.numbers())
        universe = grafite.plan(len(numbers), sizing).universe
        codes = Codes(universe, seed, salt)
        distinct = sorted(set(map(codes.of, numbers)))
        layout = Layout.of(universe, len(distinct))
        head = header.Header(cls.family, layout.low_bits, universe, len(numbers), seed, salt)
        payload = grafite.head_of(collected.numbering(), len(distinct)) + encode(distinct, layout)
        return cls.from_bytes(header.pack(head, payload))

    @classmethod
    def from_bytes(cls, buffer: Buffer) -> Self:
        """The filter in these bytes: a view of an immutable buffer, a copy of a mutable one."""
        return cls(*grafite.decode(buffer))

    @classmethod
    def digests(cls, *, seed: int | None = None) -> KeyNumbers:
        """An empty collection of what ``build`` and ``count_missing`` have to know of keys."""
        return KeyNumbers(checked64("seed", seed))

    def might_contain(self, key: Key) -> bool:
        """False: the key was never added. True: it may have been."""
        number = self._numbering.number(key_bytes(key))
        return number is not None and self._might_contain_digest(number)

    def may_contain_range(self, low: Key | None, high: Key | None) -> bool:
        """False: no key was added that is at least ``low`` and below ``high``; None is no bound."""
        bounds = self._numbering.bounds(
            None if low is None else key_bytes(low), None if high is None else key_bytes(high)
        )
        if bounds is None:
            return False
        first, last = bounds
        if last - first >= self._layout.universe:
            return self._num_keys > 0
        return any(self._set.any_between(*each) for each in self._codes.intervals(first, last))

    def count_missing(self, digests: KeyNumbers | Digests) -> int:
        """How many of the keys that were collected here the filter denies: 0 for its own."""
        if not isinstance(digests, KeyNumbers):
            raise TypeError(not_digests(digests))
        numbering = digests.numbering()
        if numbering == self._numbering:
            return sum(not self._might_contain_digest(each) for each in digests.numbers())
        keys = (numbering.key(each) for each in digests.numbers())
        return sum(not self.might_contain(key) for key in keys)

    def to_bytes(self) -> bytes:
        """The complete filter, as ``docs/family-formats.md`` lays it out."""
        layout = self._layout
        head = header.Header(
            self.family, layout.low_bits, layout.universe, self._num_keys, self._seed, self._salt
        )
        return header.pack(head, self._payload)

    @property
    def num_keys(self) -> int:
        """How many different numbers the keys have."""
        return self._num_keys

    @property
    def num_codes(self) -> int:
        """How many different codes these numbers have."""
        return self._layout.count

    @property
    def size_in_bytes(self) -> int:
        """The length of ``to_bytes()``."""
        return header.OVERHEAD + len(self._payload)

    @property
    def fill(self) -> float:
        """The share of all codes that are some key's."""
        return self._layout.count / self._layout.universe

    @property
    def expected_fpr(self) -> float:
        """The rate of absent keys."""
        return self.fill

    def expected_range_fpr(self, length: int) -> float:
        """The rate of empty ranges of so many keys in a row; less where keys are near."""
        checked = checked_int("length", length, 1, 1 << 64)
        return grafite.range_fpr(self._layout.count, self._layout.universe, checked)

    @property
    def _digest_kind(self) -> tuple[str, int]:
        return KEY_NUMBERS, self._seed

    def _might_contain_digest(self, digest: int) -> bool:
        """The answer for a key given by its number."""
        code = self._codes.of(digest)
        return self._set.any_between(code, code)
