"""A Golomb-coded set: the numbers of its keys, in order, as the gaps between them."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence

from filters import CorruptFilterError
from golomb_coded_set import compact_size, rice_codes
from golomb_coded_set.parameters import BIP158, MOST_KEYS, Parameters
from golomb_coded_set.siphash import SipKey, siphash, siphash_all

# A lookup decodes up to so many gaps; an opened set takes 128 bits of memory for each so many keys.
STRIDE = 64


def encode(keys: Iterable[bytes], key: SipKey, parameters: Parameters = BIP158) -> bytes:
    """The set of these keys, repeats left out, as BIP 158 has it."""
    return encode_hashes(siphash_all(key, list(set(keys))), parameters)


def encode_hashes(hashes: Collection[int], parameters: Parameters) -> bytes:
    """The set of keys with these 64-bit hashes, one of each key."""
    count = len(hashes)
    if count > MOST_KEYS:
        raise ValueError(f"a set has at most 2**32 - 1 keys, not {count}: split it")
    size = count * parameters.m
    numbers = sorted(each * size >> 64 for each in hashes)
    return compact_size.write(count) + rice_codes.write(_gaps(numbers), parameters.p)


def _gaps(numbers: Sequence[int]) -> Iterator[int]:
    last = 0
    for number in numbers:
        yield number - last
        last = number


class GolombCodedSet:
    """An opened set, under the key and the parameters it was written with.

    It is checked to its end when it is opened, in one pass that remembers every 64th number and
    where its code ends. A lookup decodes what follows the nearest one; many lookups are sorted
    first, so that nothing is decoded twice. The bytes are not copied: they must not change.
    """

    __slots__ = ("_data", "_ends", "_key", "_numbers", "_occupied", "num_keys", "parameters")

    def __init__(self, data: memoryview, key: SipKey, parameters: Parameters):
        self._data = data
        self._key = key
        self.parameters = parameters
        self.num_keys, start = compact_size.read(data)
        # Each code has p + 1 bits at least, so that no count makes anybody allocate or loop.
        if self.num_keys * (parameters.p + 1) > 8 * (len(data) - start):
            raise CorruptFilterError(
                f"a Golomb-coded set claims {self.num_keys} keys of {parameters.p + 1} bits or "
                f"more each, and has {len(data) - start} bytes for them"
            )
        self._numbers, self._ends = array("Q"), array("Q")
        self._occupied = self._survey(8 * start)

    @classmethod
    def from_bytes(
        cls, data: bytes | memoryview, key: SipKey, parameters: Parameters = BIP158
    ) -> GolombCodedSet:
        """The set in these bytes; CorruptFilterError where they are none."""
        return cls(memoryview(data).cast("B"), key, parameters)

    @property
    def expected_fpr(self) -> float:
        """The share of all numbers that are taken: exactly that of absent keys that pass."""
        return self._occupied / self._size if self.num_keys else 0.0

    @property
    def size_in_bytes(self) -> int:
        """The length of the set."""
        return len(self._data)

    def might_contain(self, key: bytes) -> bool:
        """False: the key was not among those the set was made of."""
        number = self._number(siphash(self._key, key))
        stretch = bisect_right(self._numbers, number) - 1
        return stretch >= 0 and number in self._stretch(stretch)

    def might_contain_many(self, keys: Sequence[bytes]) -> list[bool]:
        """The answers for many keys, in order."""
        numbers = [self._number(each) for each in siphash_all(self._key, keys)]
        answers = [False] * len(numbers)
        opened, members = -1, frozenset[int]()
        for index in sorted(range(len(numbers)), key=numbers.__getitem__):
            stretch = bisect_right(self._numbers, numbers[index], max(opened, 0)) - 1
            if stretch > opened:
                opened, members = stretch, frozenset(self._stretch(stretch))
            answers[index] = numbers[index] in members
        return answers

    def __repr__(self) -> str:
        return f"<GolombCodedSet: {self.num_keys} keys, {len(self._data)} bytes, {self.parameters}>"

    @property
    def _size(self) -> int:
        """How many numbers there are for keys to have, N * M."""
        return self.num_keys * self.parameters.m

    def _number(self, hash: int) -> int:
        return hash * self._size >> 64

    def _survey(self, at: int) -> int:
        """Check all codes, and note every 64th of their numbers; how many different ones there are.

        A number stands where a stretch begins, its own code before it.
        """
        number, occupied = 0, 0
        codes = rice_codes.read(self._data, at, self.num_keys, self.parameters.p)
        for index, (gap, at) in enumerate(codes):
            number += gap
            if number >= self._size:
                raise CorruptFilterError(
                    f"key {index + 1} of {self.num_keys} of a Golomb-coded set has the number "
                    f"{number}, and all are below {self._size}"
                )
            occupied += gap > 0 or index == 0
            if index % STRIDE == 0:
                self._numbers.append(number)
                self._ends.append(at)
        rice_codes.check_end(self._data, at)
        return occupied

    def _stretch(self, index: int) -> Iterator[int]:
        """The numbers from a noted one up to the next."""
        number = self._numbers[index]
        yield number
        count = min(STRIDE, self.num_keys - index * STRIDE) - 1
        for gap, _ in rice_codes.read(self._data, self._ends[index], count, self.parameters.p):
            number += gap
            yield number
