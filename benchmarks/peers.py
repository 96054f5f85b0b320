"""The filters of others that ours are compared with, each behind a small adapter.

None of them is a dependency: an adapter raises UnavailableError, with the command that installs the
peer, where it is missing.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Any

from xxhash import xxh3_64_intdigest

from benchmarks.errors import UnavailableError, WrongAnswersError
from benchmarks.subjects import Subject

RATE = 0.01


def abloom() -> Subject:
    """abloom's split-block Bloom filter, with the hash it needs to be stored, as ours can be."""
    cls = _module("abloom", "abloom").BloomFilter

    def build(keys: list[bytes]) -> Any:
        made = cls(len(keys), RATE, serializable=True)
        made.update(keys)
        return made

    return Subject("abloom", build, ask="key in subject", expected_fpr=lambda built: RATE)


def fastbloom() -> Subject:
    """fastbloom_rs, a Bloom filter in Rust: the peer that takes batches."""
    cls = _module("fastbloom_rs", "fastbloom-rs").BloomFilter

    def build(keys: list[bytes]) -> Any:
        made = cls(len(keys), RATE)
        made.add_bytes_batch(keys)
        return made

    return Subject(
        "fastbloom_rs",
        build,
        ask="subject.contains_bytes(key)",
        ask_batch="subject.contains_bytes_batch(key)",
        expected_fpr=lambda built: RATE,
    )


def pyfusefilter() -> Subject:
    """The C library under pyfusefilter, whose own classes hash ``str(key)`` and fail today."""
    low = _module("pyfusefilter._xorfilter", "pyfusefilter")
    return Subject("pyfusefilter", partial(LowFuse, low), expected_fpr=lambda built: 2**-8)


class LowFuse:
    """A binary fuse filter of 8 bits, made by the library's functions; keys must be distinct.

    Failure is a WrongAnswersError: the library says False where it has built nothing of use.
    """

    def __init__(self, low: ModuleType, keys: list[bytes]):
        hashes = array("Q", map(xxh3_64_intdigest, keys))
        self._lib = low.lib
        self._filter = low.ffi.gc(low.ffi.new("binary_fuse8_t *"), low.lib.binary_fuse8_free)
        buffer = low.ffi.from_buffer("uint64_t[]", hashes)
        if not low.lib.binary_fuse8_allocate(len(hashes), self._filter):
            raise WrongAnswersError(f"pyfusefilter has no memory for {len(hashes)} keys")
        if not low.lib.binary_fuse8_populate(buffer, len(hashes), self._filter):
            raise WrongAnswersError(f"pyfusefilter cannot build a filter of {len(hashes)} keys")

    def might_contain(self, key: bytes) -> bool:
        """False: the key was never added."""
        return bool(self._lib.binary_fuse8_contain(xxh3_64_intdigest(key), self._filter))


BY_NAME: dict[str, Callable[[], Subject]] = {
    "abloom": abloom,
    "fastbloom_rs": fastbloom,
    "pyfusefilter": pyfusefilter,
}


def _module(name: str, distribution: str) -> ModuleType:
    try:
        return import_module(name)
    except ImportError as error:
        raise UnavailableError(
            f"peer {distribution} is not installed: pip install {distribution} ({error})"
        ) from error
