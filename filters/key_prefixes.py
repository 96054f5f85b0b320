"""What a prefix of a key is: its first bytes, so many of them, or up to a delimiter."""

from __future__ import annotations


def prefix_of(key: bytes, length: int, until: bytes) -> bytes | None:
    """The first ``length`` bytes of a key, or if that is 0 those up to the first ``until``.

    The delimiter is part of the prefix. None for a key that is shorter, or lacks the delimiter.
    """
    if length:
        return key[:length] if len(key) >= length else None
    at = key.find(until)
    return None if at < 0 else key[: at + len(until)]
