"""Every hash a filter family uses: what a key is, how it becomes numbers.

The families of our own start from one :func:`digest` per key, computed once per lookup under the
database's secret seed, and fold their own salt into it with :func:`mix`.
"""

from __future__ import annotations

import os
from operator import index
from typing import TYPE_CHECKING

from xxhash import xxh3_64_intdigest

if TYPE_CHECKING:
    from typing import TypeAlias

    from typing_extensions import Buffer

    Key: TypeAlias = Buffer | str

MASK64 = 0xFFFF_FFFF_FFFF_FFFF

# 2^64 divided by the golden ratio, rounded to odd: the multiplier of Fibonacci hashing.
GOLDEN64 = 0x9E37_79B9_7F4A_7C15


def key_bytes(key: Key) -> bytes:
    """The key as bytes, a text's in UTF-8; TypeError with advice for whatever is neither."""
    if type(key) is bytes:
        return key
    if isinstance(key, str):
        return _text_bytes(key)
    try:
        return memoryview(key).tobytes()
    except TypeError:
        advice = {
            int: "pass bytes, and a single key in a list",
            type(None): 'leave nulls out, or have them skipped with nulls="skip"',
        }.get(type(key), "pass bytes or text")
        raise TypeError(f"a key is bytes-like or str, not {type(key).__name__}: {advice}") from None


def _text_bytes(key: str) -> bytes:
    """A text in UTF-8, whatever a subclass makes of ``encode``."""
    try:
        return str.encode(key)
    except UnicodeEncodeError as error:
        why = (
            f"the key {key[:40]!r} has a lone surrogate, which UTF-8 has no bytes for: pass bytes, "
            "e.g. os.fsencode(key) for a file name, or key.encode(errors='surrogatepass')"
        )
        raise UnicodeEncodeError("utf-8", key, error.start, error.end, why) from None


def digest(key: Key, seed: int) -> int:
    """XXH3-64 of the key, bytes or a text in UTF-8, under a 64-bit seed."""
    return xxh3_64_intdigest(key if type(key) is bytes else key_bytes(key), seed)


def mix(digest: int, salt: int) -> int:
    """Fold a filter's salt into a digest: both halves of a 128-bit product, xored.

    The low half of a product alone keeps what keys share in their low digest bits, whatever the
    salt; with the high half xored in, digests that agree in 24 bits fill a filter like any others.
    """
    product = (digest ^ salt) * GOLDEN64
    return (product & MASK64) ^ (product >> 64)


def next_salt(salt: int) -> int:
    """The salt that comes after this one, where a filter needs several."""
    return mix((salt + 1) & MASK64, 0)


def random64() -> int:
    """A secret 64-bit number, for a seed or a salt nobody chose."""
    return int.from_bytes(os.urandom(8), "little")


def checked64(name: str, value: int | None) -> int:
    """A given seed or salt, checked, or a random one where none was given."""
    if value is None:
        return random64()
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} is an int, not {type(value).__name__}")
    if not 0 <= value <= MASK64:
        raise ValueError(f"{name} is out of range: allowed are 0 to 2**64 - 1")
    return value


def checked_digest(digest: int, words: int = 1) -> int:
    """A digest that a caller gives, if it is a whole number of so many 64-bit words."""
    number = index(digest)
    if not 0 <= number < 1 << 64 * words:
        raise OverflowError(f"a digest lies between 0 and 2**{64 * words} - 1")
    return number
