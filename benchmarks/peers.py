"""The filters of others that ours are compared with, each behind a small adapter.

None of them is a dependency: an adapter raises UnavailableError, with the command that installs the
peer, where it is missing. Each is made for a rate; what is measured is the form of it that can be
kept in a file, since a filter of a table must be.
"""

from __future__ import annotations

import os
import tempfile
from array import array
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Self

from xxhash import xxh3_64_intdigest

from benchmarks.errors import UnavailableError, WrongAnswersError
from benchmarks.subjects import Storage, Subject

RATE = 0.01
FINGERPRINT_BITS = 8
EXPANDING_FROM = 1024  # keys in each part of a filter that expands, as our own begins with
MOST_EXPANDED = 10_000  # every part is asked, in Python: with more of them it takes minutes
ONE_BY_ONE = "takes keys only one by one: add() in a loop"


def rbloom(rate: float = RATE) -> Subject:
    """rbloom's Bloom filter in Rust, with the hash function that it needs to be stored."""
    cls = _module("rbloom", "rbloom").Bloom

    def build(keys: list[bytes]) -> Any:
        made = cls(len(keys), rate, xxh3_64_intdigest)
        made.update(keys)
        return made

    return _in_any_container(
        "rbloom",
        build,
        rate,
        Storage(
            lambda built, path: built.save(str(path)),
            lambda path: cls.load(str(path), xxh3_64_intdigest),
        ),
        build_note="update(); hashed by xxh3_64_intdigest, since what uses hash() cannot be stored",
    )


def abloom(rate: float = RATE) -> Subject:
    """abloom's split-block Bloom filter, with the hash it needs to be stored, as ours can be."""
    cls = _module("abloom", "abloom").BloomFilter

    def build(keys: list[bytes]) -> Any:
        made = cls(len(keys), rate, serializable=True)
        made.update(keys)
        return made

    return _in_any_container(
        "abloom",
        build,
        rate,
        Storage(
            lambda built, path: path.write_bytes(built.to_bytes()),
            lambda path: cls.from_bytes(path.read_bytes()),
        ),
        build_note="update(); serializable=True",
    )


def fastbloom(rate: float = RATE) -> Subject:
    """fastbloom_rs, a Bloom filter in Rust: the peer that takes batches."""
    cls = _module("fastbloom_rs", "fastbloom-rs").BloomFilter

    def build(keys: list[bytes]) -> Any:
        made = cls(len(keys), rate)
        made.add_bytes_batch(keys)
        return made

    return Subject(
        "fastbloom_rs",
        build,
        ask="subject.contains_bytes(key)",
        ask_batch="subject.contains_bytes_batch(key)",
        expected_fpr=lambda built: rate,
        requested=True,
        storage=Storage(
            lambda built, path: built.save_to_file_with_hashes(str(path)),
            lambda path: cls.from_file_with_hashes(str(path)),
        ),
        build_note="add_bytes_batch()",
    )


def pybloomfilter(rate: float = RATE) -> Subject:
    """pybloomfiltermmap3, a Bloom filter in C that lies in a file, which is mapped."""
    cls = _module("pybloomfilter", "pybloomfiltermmap3").BloomFilter

    def build(keys: list[bytes]) -> Any:
        # One that is made in memory alone cannot be stored. Nobody needs this file's name again.
        handle, name = tempfile.mkstemp(suffix=".bloom")
        os.close(handle)
        made = cls(len(keys), rate, name)
        os.unlink(name)
        made.update(keys)
        return made

    def save(built: Any, path: Path) -> None:
        stored = built.copy_template(str(path))
        stored |= built
        stored.close()

    return _in_any_container(
        "pybloomfilter",
        build,
        rate,
        Storage(save, lambda path: cls.open(str(path), "r"), note="its file, which is mapped"),
        build_note="update(), into a mapped file",
    )


def pyprobables(rate: float = RATE) -> Subject:
    """pyprobables' Bloom filter, in Python.

    Its cuckoo filter takes no part: read back from a file, release 0.7 denies some of its keys.
    """
    cls = _module("probables", "pyprobables").BloomFilter

    def build(keys: list[bytes]) -> Any:
        made = cls(len(keys), rate)
        for key in keys:
            made.add(key)
        return made

    return Subject(
        "pyprobables",
        build,
        ask="subject.check(key)",
        expected_fpr=lambda built: rate,
        requested=True,
        storage=Storage(
            lambda built, path: built.export(path),
            lambda path: cls.frombytes(path.read_bytes()),
        ),
        build_note=ONE_BY_ONE,
        slow=True,
    )


def pyprobables_expanding(rate: float = RATE) -> Subject:
    """pyprobables' Bloom filter that expands, in Python.

    Every part has the same size and the whole rate, so that its rate grows with its keys.
    """
    cls = _module("probables", "pyprobables").ExpandingBloomFilter

    def build(keys: list[bytes]) -> Any:
        made = cls(EXPANDING_FROM, rate)
        for key in keys:
            made.add(key)
        return made

    return Subject(
        "pyprobables-expanding",
        build,
        ask="subject.check(key)",
        expected_fpr=lambda built: 1 - (1 - rate) ** (built.expansions + 1),
        storage=Storage(
            lambda built, path: built.export(path),
            lambda path: cls.frombytes(path.read_bytes()),
        ),
        build_note=f"from {EXPANDING_FROM:,} keys on; {ONE_BY_ONE}",
        slow=True,
        most_keys=MOST_EXPANDED,
    )


def pyfusefilter(bits: int = FINGERPRINT_BITS) -> Subject:
    """The C library under pyfusefilter, whose own classes hash ``str(key)`` and fail today."""
    low = _module("pyfusefilter._xorfilter", "pyfusefilter")
    return Subject(
        "pyfusefilter",
        partial(LowFuse.build, low, bits=bits),
        expected_fpr=lambda built: 2.0**-bits,
        storage=Storage(
            lambda built, path: path.write_bytes(built.to_bytes()),
            lambda path: LowFuse.from_bytes(low, path.read_bytes(), bits=bits),
        ),
        build_note="takes 64-bit numbers: the keys are hashed by xxh3_64_intdigest before",
    )


class LowFuse:
    """A binary fuse filter of 8 or 16 bits, made by the library's functions; keys are distinct.

    Failure is a WrongAnswersError: the library says False where it has built nothing of use.
    """

    def __init__(self, low: ModuleType, bits: int):
        self._lib, self._ffi = low.lib, low.ffi
        self._kind = f"binary_fuse{bits}"
        self._filter = low.ffi.gc(low.ffi.new(f"{self._kind}_t *"), self._function("free"))
        self._contain = self._function("contain")

    @classmethod
    def build(cls, low: ModuleType, keys: list[bytes], bits: int = FINGERPRINT_BITS) -> Self:
        """The filter of these keys."""
        made = cls(low, bits)
        hashes = array("Q", map(xxh3_64_intdigest, keys))
        buffer = low.ffi.from_buffer("uint64_t[]", hashes)
        if not made._function("allocate")(len(hashes), made._filter):
            raise WrongAnswersError(f"pyfusefilter has no memory for {len(hashes)} keys")
        if not made._function("populate")(buffer, len(hashes), made._filter):
            raise WrongAnswersError(f"pyfusefilter cannot build a filter of {len(hashes)} keys")
        return made

    @classmethod
    def from_bytes(cls, low: ModuleType, data: bytes, bits: int = FINGERPRINT_BITS) -> Self:
        """The filter in bytes that the library wrote; it checks nothing."""
        made = cls(low, bits)
        if not made._function("deserialize")(made._filter, low.ffi.from_buffer("char[]", data)):
            raise WrongAnswersError(f"pyfusefilter cannot read a filter of {len(data)} bytes")
        return made

    def to_bytes(self) -> bytes:
        """The filter as the library writes it."""
        data = bytearray(self._function("serialization_bytes")(self._filter))
        self._function("serialize")(self._filter, self._ffi.from_buffer("char[]", data))
        return bytes(data)

    def might_contain(self, key: bytes) -> bool:
        """False: the key was never added."""
        return bool(self._contain(xxh3_64_intdigest(key), self._filter))

    def _function(self, name: str) -> Callable[..., Any]:
        found: Callable[..., Any] = getattr(self._lib, f"{self._kind}_{name}")
        return found


BY_NAME: dict[str, Callable[[], Subject]] = {
    "abloom": abloom,
    "rbloom": rbloom,
    "fastbloom_rs": fastbloom,
    "pybloomfilter": pybloomfilter,
    "pyfusefilter": pyfusefilter,
    "pyprobables": pyprobables,
    "pyprobables-expanding": pyprobables_expanding,
}

# Whose sizing parameter is a number of bits.
BY_FINGERPRINT = ("pyfusefilter",)

# Those whose rate can be chosen, and that are made of as many keys as are known before.
BY_RATE: dict[str, Callable[[float], Subject]] = {
    "abloom": abloom,
    "rbloom": rbloom,
    "fastbloom_rs": fastbloom,
    "pybloomfilter": pybloomfilter,
    "pyprobables": pyprobables,
}


def _in_any_container(
    name: str, build: Callable[[list[bytes]], Any], rate: float, storage: Storage, build_note: str
) -> Subject:
    """A peer that is asked by ``in``, one key at a time."""
    return Subject(
        name,
        build,
        ask="key in subject",
        expected_fpr=lambda built: rate,
        requested=True,
        storage=storage,
        build_note=build_note,
    )


def _module(name: str, distribution: str) -> ModuleType:
    try:
        return import_module(name)
    except ImportError as error:
        raise UnavailableError(
            f"peer {distribution} is not installed: pip install {distribution} ({error})"
        ) from error
