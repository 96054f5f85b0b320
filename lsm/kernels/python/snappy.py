"""Snappy's raw form, by a library: the bytes that the compiled kernel's own C writes as well."""

from __future__ import annotations

from lsm.disk import compression


def compress(data: bytes | memoryview) -> bytes:
    """The bytes in Snappy's raw form; ValueError for more than a block that is compressed has."""
    # Not at the top: importing the engine loads no library that it may not need.
    import cramjam

    if len(data) > compression.LIMIT:
        raise ValueError(f"Snappy is asked for {len(data)} bytes, allowed are {compression.LIMIT}")
    return bytes(cramjam.snappy.compress_raw(data))


def decompress(data: bytes | memoryview) -> bytes:
    """The bytes that were compressed so; CorruptionError for what no Snappy has written."""
    return compression.open_snappy(data)
