"""The shape all families share, and what the salted ones have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeVar, overload

from filters import files, header
from filters.answers import answered, checked_out
from filters.columns import one_by_one
from filters.digest_kinds import XXH3, not_digests
from filters.hashing import checked64, checked_digest, digest, mix
from filters.kernels.python.digests import Digests, digests_of

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from filters.answer_column import AnswerColumn
    from filters.columns import Nulls
    from filters.files import Path
    from filters.hashing import Key
    from filters.packed_keys import NumpyArray

    Out = TypeVar("Out", bound=Buffer | NumpyArray)


class Filter(ABC):
    """A set of keys that answers "maybe" or "no", never a wrong "no".

    Two filters are equal when their bytes are, and pickle carries those bytes. One writer or many
    readers may use a filter at a time; readers need no lock.
    """

    __slots__ = ("__weakref__",)
    family: ClassVar[str]

    @abstractmethod
    def might_contain(self, key: Key) -> bool:
        """False: the key was never added. True: it may have been."""

    @overload
    def might_contain_many(
        self, keys: Iterable[Key], out: None = None, *, nulls: Nulls = "error"
    ) -> list[bool]: ...
    @overload
    def might_contain_many(
        self, keys: Iterable[Key], out: Literal["arrow"], *, nulls: Nulls = "error"
    ) -> AnswerColumn: ...
    @overload
    def might_contain_many(
        self, keys: Iterable[Key], out: Out, *, nulls: Nulls = "error"
    ) -> Out: ...
    def might_contain_many(
        self, keys: Iterable[Key], out: Any = None, *, nulls: Nulls = "error"
    ) -> Any:
        """The answers for many keys, in order; into ``out``, one byte each, where it is given.

        ``out="arrow"`` is for a column of answers. With ``nulls="skip"`` a null is answered False,
        and with a null in a column. After an error, some of the answers may stand in ``out``.
        """
        if nulls != "error" or isinstance(out, str):
            return answered(self, keys, out, nulls)
        might_contain = self.might_contain
        if out is None:
            return [might_contain(key) for key in one_by_one(keys)]
        keys = list(one_by_one(keys))
        answers = checked_out(out, len(keys))
        for index, key in enumerate(keys):
            answers[index] = might_contain(key)
        return out

    def __contains__(self, key: Key) -> bool:
        """What ``might_contain`` answers: False is certain, True means "maybe"."""
        return self.might_contain(key)

    @abstractmethod
    def to_bytes(self) -> bytes:
        """The complete filter; ``from_bytes`` of it gives an equal one in any process."""

    def __bytes__(self) -> bytes:
        """What ``to_bytes()`` gives."""
        return self.to_bytes()

    @classmethod
    @abstractmethod
    def from_bytes(cls, buffer: Buffer) -> Self:
        """The filter in these bytes: a view of an immutable buffer, a copy of a mutable one."""

    def save(self, path: Path) -> None:
        """Write the filter to a file, which readers see as it was before or as it is then.

        It is on the disk when this returns. On an error the file is as it was.
        """
        files.write(path, self.to_bytes())

    @classmethod
    def load(cls, path: Path, *, mmap: bool = True) -> Self:
        """The filter in a file: a view of its pages in memory, which processes share.

        ``mmap=False`` is for a file that somebody may cut short or write over while the filter is
        in use, which would end the process: it is read. :meth:`save` does neither.
        """
        return files.opened(path, cls.from_bytes, mapped=mmap)

    def copy(self) -> Self:
        """This filter itself, as nothing changes it."""
        return self

    def __copy__(self) -> Self:
        return self.copy()

    def __deepcopy__(self, memo: object) -> Self:
        return self.copy()

    @property
    @abstractmethod
    def num_keys(self) -> int | None:
        """How many keys are in; None where foreign bytes do not say."""

    @property
    @abstractmethod
    def size_in_bytes(self) -> int:
        """The length of ``to_bytes()``."""

    @property
    @abstractmethod
    def fill(self) -> float:
        """The share of bits, counters or slots in use."""

    @property
    @abstractmethod
    def expected_fpr(self) -> float:
        """The rate of false positives that the actual fill leads to."""

    @property
    def bits_per_key(self) -> float | None:
        """All stored bits over the number of keys; None where that is 0 or unknown."""
        return self.size_in_bytes * 8 / self.num_keys if self.num_keys else None

    def __eq__(self, other: object) -> bool:
        if not hasattr(other, "family") or not hasattr(other, "to_bytes"):
            return NotImplemented
        return bool(self.family == other.family and self.to_bytes() == other.to_bytes())

    # Equality follows bytes that may change; typeshed has __hash__ as a method only.
    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        from filters.kernels import restore

        return restore, (self.family, self.to_bytes())

    def __repr__(self) -> str:
        keys = "unknown keys" if self.num_keys is None else f"{self.num_keys} keys"
        rate = "" if not self.bits_per_key else f", {self.bits_per_key:.2f} bits/key"
        return f"<{type(self).__name__}: {keys}, {self.size_in_bytes} bytes{rate}>"


class DigestFilter(Filter):
    """A filter of which a key's digest is all it has to know."""

    __slots__ = ()

    def count_missing(self, digests: Digests) -> int:
        """How many of these keys, given by their digests, the filter denies: 0 for its own."""
        if not isinstance(digests, Digests):
            raise TypeError(not_digests(digests))
        numbers, _ = digests_of(digests, *self._digest_kind)
        return sum(not self._might_contain_digest(digest) for digest in numbers)

    @property
    @abstractmethod
    def _digest_kind(self) -> tuple[str, int]:
        """What digests the filter is asked with, and under which seed."""

    @abstractmethod
    def _might_contain_digest(self, digest: int) -> bool:
        """The answer for a key given by its digest."""


class SeededFilter(DigestFilter):
    """A filter over XXH3-64 digests under a seed.

    ``might_contain_digest`` takes ``filters.digest(key, f.digest_seed)``, so that one lookup over
    many filters of one seed hashes its key once.
    """

    __slots__ = ("_num_keys", "_seed")

    def __init__(self, *, seed: int, num_keys: int):
        self._seed = seed
        self._num_keys = num_keys

    def might_contain(self, key: Key) -> bool:
        """False: the key was never added. True: it may have been."""
        return self._might_contain_digest(digest(key, self._seed))

    @classmethod
    def digests(cls, *, seed: int | None = None) -> Digests:
        """An empty collection of digests for ``build`` and ``count_missing``."""
        return Digests(XXH3, checked64("seed", seed))

    def might_contain_digest(self, digest: int) -> bool:
        """The answer for a key given by its digest under :attr:`digest_seed`."""
        return self._might_contain_digest(checked_digest(digest))

    @property
    def digest_seed(self) -> int:
        """The secret seed that digests for this filter are taken under."""
        return self._seed

    @property
    def num_keys(self) -> int:
        """How many keys are in."""
        return self._num_keys

    @property
    def _digest_kind(self) -> tuple[str, int]:
        return XXH3, self._seed


class SaltedFilter(SeededFilter):
    """A filter over XXH3-64 digests under a seed, with a salt of its own folded in.

    ``might_contain_digest`` takes ``filters.digest(key, f.digest_seed)``, so that one lookup over
    many filters of one seed hashes its key once.
    """

    __slots__ = ("_payload", "_salt")
    _payload: memoryview | bytearray

    def __init__(self, *, seed: int, salt: int, num_keys: int, payload: memoryview | bytearray):
        super().__init__(seed=seed, num_keys=num_keys)
        self._salt = salt
        self._payload = payload

    def might_contain(self, key: Key) -> bool:
        """False: the key was never added. True: it may have been."""
        return self._probe(mix(digest(key, self._seed), self._salt))

    @property
    def size_in_bytes(self) -> int:
        """The length of ``to_bytes()``."""
        return header.OVERHEAD + len(self._payload)

    def _might_contain_digest(self, digest: int) -> bool:
        return self._probe(mix(digest, self._salt))

    @abstractmethod
    def _probe(self, mixed: int) -> bool:
        """The answer for a salted digest."""

    def _own(self) -> bytearray:
        """The payload for writing: a view of foreign bytes is copied first."""
        if not isinstance(self._payload, bytearray):
            self._payload = bytearray(self._payload)
        return self._payload

    def _pack(self, *, parameter: int, size: int) -> bytes:
        head = header.Header(
            self.family, parameter, size, self._num_keys, seed=self._seed, salt=self._salt
        )
        return header.pack(head, self._payload)


def salted(
    keys: Iterable[Key] | Digests, seed: int | None, salt: int | None
) -> tuple[list[int], int, int]:
    """The distinct salted digests of the keys in ascending order, and the seed and salt used."""
    digests, seed = digests_of(keys, XXH3, seed)
    salt = checked64("salt", salt)
    return sorted({mix(each, salt) for each in digests}), seed, salt
