"""Beginnings of keys that filters know beside whole keys, or in their place.

Where a filter has the prefixes of a table's keys, it can tell that the table has no key of a range
whose keys all begin with one prefix. A prefix is the first bytes of a key, so many of them or up to
a delimiter, and that inclusive; keys that are shorter, or lack the delimiter, have none.

In a table a frame around the filter's block says which prefixes it has, little-endian::

    4  magic "LSMP"                        u8  length, or length of the delimiter
    u8 version                                 the delimiter
    u8 kind (1 so many bytes, 2 delimiter) u64 XXH3-64 of all before
    u8 flags (bit 0: whole keys, too)          the block
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import attrs
from xxhash import xxh3_64_intdigest

from filters import kernels
from filters.errors import UnsupportedVersionError
from filters.fields import Fields
from filters.key_prefixes import prefix_of
from filters.sizing_parameters import checked_int
from policies.contract import FilterReader
from policies.errors import CorruptBlockError
from policies.parameters import PREFIX_KEYS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from filters.kernels.python.prefixes import PrefixScan

MAGIC = b"LSMP"
VERSION = 1
LONGEST = 255
LONGEST_DELIMITER = 16

_OF_LENGTH, _UP_TO = 1, 2
_WHOLE_KEYS = 0b1
_CHECKSUM_BYTES = 8


class _Fields(Fields):
    """A cursor over a frame."""

    __slots__ = ()
    error = CorruptBlockError


@attrs.frozen(kw_only=True)
class Prefixes:
    """Which prefixes a filter has: of one ``length``, or up to the delimiter ``until``.

    With ``whole_keys`` it has the keys as well, and a lookup asks it for its key; without, a lookup
    asks for the prefix of its key.
    """

    length: int | None = None
    until: bytes | None = None
    whole_keys: bool = True

    def __attrs_post_init__(self) -> None:
        """Refuse what is neither of the two, and both."""
        if (self.length is None) == (self.until is None):
            raise ValueError("a prefix is of so many bytes (prefix) or ends with (prefix_until)")
        if self.length is not None:
            checked_int("prefix", self.length, 1, LONGEST)
        else:
            _check_delimiter(self.until)
        if not isinstance(self.whole_keys, bool):
            raise TypeError(f"whole_keys is True or False, not {self.whole_keys!r}")

    @classmethod
    def of_entries(cls, entries: Mapping[str, Any]) -> Self | None:
        """Those that the keys of a configuration ask for; None where they ask for none."""
        given = {key: entries[key] for key in PREFIX_KEYS if entries.get(key) is not None}
        until = given.get("prefix_until")
        if "prefix" in given and until is not None:
            raise ValueError("prefix and prefix_until are two ways to say it: leave out one")
        if until is not None and not isinstance(until, str):
            raise TypeError(f'prefix_until is text, like ":", not {until!r:.60}')
        if until is None and "prefix" not in given:
            if "whole_keys" in given:
                raise ValueError(
                    "whole_keys goes with prefixes: add prefix = 8, say, or prefix_until"
                )
            return None
        return cls(
            length=given.get("prefix"),
            until=None if until is None else until.encode(),
            whole_keys=given.get("whole_keys", True),
        )

    def entries(self) -> dict[str, Any]:
        """What a configuration says of them, from which equal ones are read."""
        said: dict[str, Any] = {"prefix": self.length}
        if self.until is not None:
            said = {"prefix_until": self.until.decode()}
        return {**said, "whole_keys": self.whole_keys}

    def __str__(self) -> str:
        what = f"{self.length} bytes" if self.until is None else f"up to {self.until!r}"
        return what if self.whole_keys else f"{what}, no whole keys"

    def of(self, key: bytes) -> bytes | None:
        """The prefix of a key; None for one that has none."""
        return prefix_of(key, self.length or 0, self.until or b"")

    def shared_by(self, low: bytes | None, high: bytes | None) -> bytes | None:
        """The prefix of all keys from ``low`` up to ``high``; None where there is no such one."""
        prefix = None if low is None else self.of(low)
        if prefix is None:
            return None
        head = prefix.rstrip(b"\xff")
        if not head:  # nothing comes behind all keys with this prefix
            return prefix
        end = head[:-1] + bytes((head[-1] + 1,))
        return prefix if high is not None and high <= end else None

    def encode(self) -> bytes:
        """What comes before a block in its frame."""
        if self.until is None:
            assert self.length is not None
            said = bytes((_OF_LENGTH, self.whole_keys * _WHOLE_KEYS, self.length))
        else:
            said = bytes((_UP_TO, self.whole_keys * _WHOLE_KEYS, len(self.until))) + self.until
        head = MAGIC + bytes((VERSION,)) + said
        return head + xxh3_64_intdigest(head).to_bytes(_CHECKSUM_BYTES, "little")

    @classmethod
    def decode(cls, frame: bytes | memoryview) -> tuple[Self, memoryview]:
        """The prefixes that a frame tells of, and the block in it.

        CorruptBlockError for what is none, UnsupportedVersionError for what is newer than this.
        """
        fields = _Fields(frame, "the frame of a filter with prefixes")
        magic = bytes(fields.view(len(MAGIC), "magic"))
        if magic != MAGIC:
            raise CorruptBlockError(
                f"not a filter with prefixes: bytes 0 to 3 are {magic!r}, expected {MAGIC!r}"
            )
        version, kind, flags, length = (
            fields.number(1, what) for what in ("version", "kind", "flags", "length")
        )
        if version != VERSION or kind not in (_OF_LENGTH, _UP_TO) or flags > _WHOLE_KEYS:
            raise UnsupportedVersionError(
                f"a filter has prefixes of version {version}, kind {kind} and flags {flags:#04x}; "
                f"this release reads version {VERSION}: upgrade lsm-filters"
            )
        until = bytes(fields.view(length, "delimiter")) if kind == _UP_TO else None
        head = memoryview(frame)[: fields.at]
        if xxh3_64_intdigest(head) != fields.number(_CHECKSUM_BYTES, "checksum"):
            raise CorruptBlockError(
                "the frame of a filter with prefixes is damaged: its XXH3-64 checksum does not "
                "match"
            )
        try:
            found = cls(
                length=length if until is None else None,
                until=until,
                whole_keys=bool(flags & _WHOLE_KEYS),
            )
        except ValueError as error:
            raise CorruptBlockError(f"the frame of a filter with prefixes: {error}") from error
        return found, fields.view(fields.remaining, "block")


def _check_delimiter(until: object) -> None:
    """Refuse what is none, and what could not be written into a configuration."""
    if not isinstance(until, bytes) or not 1 <= len(until) <= LONGEST_DELIMITER:
        raise ValueError(
            f"prefix_until is out of range: {until!r:.60}, allowed are 1 to {LONGEST_DELIMITER} "
            "bytes of UTF-8"
        )
    try:
        until.decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"prefix_until is {until!r}, which is not UTF-8") from error


class PrefixFeed:
    """Makes of a filter's keys, as they come in order, what the filter is to have."""

    __slots__ = ("_prefixes", "_scan")

    def __init__(self, prefixes: Prefixes):
        self._prefixes = prefixes
        scan = kernels.module("prefixes").PrefixScan
        self._scan: PrefixScan = scan(prefixes.length or 0, prefixes.until or b"")

    def __call__(self, keys: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
        """These keys as they are, unless these are left out, and the prefixes that come anew."""
        if self._prefixes.whole_keys:
            yield keys
        yield self._scan.add_many(keys)


class PrefixReader:
    """A filter that has prefixes: asked for ranges within one, and for keys by theirs.

    Where it has whole keys as well it is itself asked for those, and this for ranges alone.
    """

    __slots__ = ("prefixes", "reader")

    def __init__(self, reader: FilterReader, prefixes: Prefixes):
        self.reader = reader
        self.prefixes = prefixes

    def might_contain(self, key: bytes) -> bool:
        """False: no key with this one's prefix was among those it was built of."""
        prefix = self.prefixes.of(key)
        return True if prefix is None else self.reader.might_contain(prefix)

    def might_contain_many(self, keys: Iterable[bytes]) -> list[bool]:
        """The answers for many keys, in order."""
        return [self.might_contain(key) for key in keys]

    def told(self, low: bytes | None, high: bytes | None) -> bool | None:
        """The answer for a range; None where its keys need not all have one prefix."""
        prefix = self.prefixes.shared_by(low, high)
        return None if prefix is None else self.reader.might_contain(prefix) is not False

    def may_contain_range(self, low: bytes | None, high: bytes | None) -> bool:
        """False: it has no key from ``low`` up to ``high``."""
        return self.told(low, high) is not False

    @property
    def expected_fpr(self) -> float | None:
        """The share of absent prefixes, or keys, that it is expected to let through."""
        found: float | None = getattr(self.reader, "expected_fpr", None)
        return found
