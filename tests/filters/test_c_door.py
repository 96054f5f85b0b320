"""The C door: what compiled code finds behind ``__lsm_probe__()``, and for how long."""

from __future__ import annotations

import ctypes
import gc
import os
import random
import shutil
import subprocess
import sys
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from pathlib import Path
from types import ModuleType
from typing import Any

import attrs
import pytest
from xxhash import xxh3_64_intdigest

from filters.compat_hashing import cassandra_hash, leveldb_hash, rocksdb_hash, xxph3_64
from filters.families import every
from tests.filters.cases import (
    Case,
    class_of,
    every_case_of_both_kinds,
    every_family_of_both_kinds,
    every_growing_family,
    needs_native,
    random_keys,
    twins,
)
from tests.filters.test_rocksdb import TRAILERS, build_legacy

pytestmark = needs_native

SEED, SALT = 0x0123_4567_89AB_CDEF, 0xFEDC_BA98_7654_3210
NAME = b"lsm.probe.v1"
KEYS = [b"key%d" % i for i in range(300)]
OTHERS = [b"other%d" % i for i in range(300)]
XXH3, XXPH3, LEVELDB, ROCKSDB, CASSANDRA, NONE = range(6)

KINDS = {
    "grafite": NONE,
    "surf": NONE,
    "leveldb": LEVELDB,
    "rocksdb": XXPH3,
    "ribbon": XXPH3,
    "cassandra": CASSANDRA,
}

PROBE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t)
PROBE_DIGEST = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_uint64)


class Probe(ctypes.Structure):
    """``lsm_probe_v1``."""

    _fields_ = (
        ("struct_size", ctypes.c_uint32),
        ("digest_kind", ctypes.c_uint32),
        ("digest_seed", ctypes.c_uint64),
        ("self", ctypes.c_void_p),
        ("probe", PROBE),
        ("probe_digest", PROBE_DIGEST),
    )


@pytest.fixture(scope="module", autouse=True)
def cheap_collections() -> Iterator[None]:
    """So that a collection looks at what these tests make, not at all there is."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


def from_capi(name: str, result: Any, *arguments: Any) -> Callable[..., Any]:
    return ctypes.PYFUNCTYPE(result, *arguments)((name, ctypes.pythonapi))


pointer_in = from_capi("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
is_valid = from_capi("PyCapsule_IsValid", ctypes.c_int, ctypes.py_object, ctypes.c_char_p)
name_of = from_capi("PyCapsule_GetName", ctypes.c_char_p, ctypes.py_object)


@attrs.frozen
class Door:
    """An open capsule."""

    capsule: Any

    @property
    def struct(self) -> Probe:
        return Probe.from_address(pointer_in(self.capsule, NAME))

    def ask(self, key: bytes) -> int:
        return int(self.struct.probe(self.struct.self, key, len(key)))

    def ask_digest(self, digest: int) -> int:
        return int(self.struct.probe_digest(self.struct.self, digest))

    def digest(self, key: bytes) -> int:
        """The digest of a key, as the struct demands it; of a wide one what fits."""
        if self.struct.digest_kind == XXH3:
            return xxh3_64_intdigest(key, self.struct.digest_seed)
        if self.struct.digest_kind == CASSANDRA:
            return cassandra_hash(key) & 2**64 - 1
        if self.struct.digest_kind == NONE:
            return len(key)
        hashes = {XXPH3: xxph3_64, LEVELDB: leveldb_hash, ROCKSDB: rocksdb_hash}
        return hashes[self.struct.digest_kind](key)


def opened(built: Any) -> Door:
    return Door(built.__lsm_probe__())


def secrets(case: Case) -> dict[str, int]:
    return {"seed": SEED, "salt": SALT} if case.salted else {}


def assert_answers_alike(built: Any, keys: list[bytes]) -> None:
    """Through the door and by its method, by key and by digest: 0 or 1, the same.

    Half a digest tells nothing, and is answered 1; so is whatever stands where there are none.
    """
    door = opened(built)
    answers = [int(built.might_contain(key)) for key in keys]
    assert [door.ask(key) for key in keys] == answers
    if door.struct.digest_kind in (CASSANDRA, NONE):
        answers = [1] * len(keys)
    assert [door.ask_digest(door.digest(key)) for key in keys] == answers


@every_family_of_both_kinds
def test_the_capsule_is_as_the_header_says(case: Case) -> None:
    built = case.build(twins()[1], KEYS, **secrets(case))
    capsule = built.__lsm_probe__()
    assert type(capsule).__name__ == "PyCapsule"
    assert name_of(capsule) == NAME
    assert is_valid(capsule, NAME) == 1
    for wrong in (b"lsm.probe.v2", b"lsm.probe", b"", None):
        assert is_valid(capsule, wrong) == 0
        with pytest.raises(ValueError, match="incorrect name"):
            pointer_in(capsule, wrong)
    struct = opened(built).struct
    assert struct.struct_size == ctypes.sizeof(Probe)
    assert struct.digest_kind == KINDS.get(case.family, XXH3)
    assert struct.digest_seed == (SEED if struct.digest_kind == XXH3 else 0)
    assert struct.self


def test_a_legacy_filter_tells_its_own_kind_of_digest() -> None:
    read = twins()[1].RocksDBBloomFilter.from_bytes(build_legacy(KEYS, 10))
    assert (opened(read).struct.digest_kind, opened(read).struct.digest_seed) == (ROCKSDB, 0)
    assert_answers_alike(read, KEYS + OTHERS)


@every_case_of_both_kinds
def test_the_door_answers_like_the_method(case: Case) -> None:
    built = case.build(twins()[1], KEYS, **secrets(case))
    assert_answers_alike(built, KEYS + OTHERS)
    door = opened(built)
    assert {door.ask(key) for key in KEYS} == {1}
    viewed = case.cls(twins()[1]).from_bytes(built.to_bytes())
    assert_answers_alike(viewed, KEYS + OTHERS)
    python = case.build(twins()[0], KEYS, **secrets(case))
    assert [door.ask(key) for key in OTHERS] == python.might_contain_many(OTHERS)


@every_family_of_both_kinds
def test_keys_of_every_length_pass_the_door(case: Case, rng: random.Random) -> None:
    """Zeros within a key end nothing."""
    keys = [rng.randbytes(length) for length in range(301)]
    keys += [bytes(length) for length in range(301)]
    absent = [rng.randbytes(length) for length in range(301)] + [b"\xff" * 77]
    built = case.build(twins()[1], keys, **secrets(case))
    door = opened(built)
    assert [door.ask(key) for key in keys] == [1] * len(keys)
    assert_answers_alike(built, keys + absent)
    memory = ctypes.create_string_buffer(b"before" + keys[250] + b"behind")
    at = ctypes.cast(ctypes.addressof(memory) + 6, ctypes.c_char_p)
    assert door.struct.probe(door.struct.self, at, 250) == 1
    assert door.struct.probe(door.struct.self, None, 0) == 1  # nothing is read where there is none


@every_family_of_both_kinds
def test_an_empty_filter_answers_no(case: Case) -> None:
    empty = case.build(twins()[1], [], **secrets(case))
    for built in (empty, case.cls(twins()[1]).from_bytes(empty.to_bytes())):
        assert [opened(built).ask(key) for key in (b"", b"key", b"k" * 300)] == [0, 0, 0]
        assert_answers_alike(built, KEYS[:20])


@pytest.mark.parametrize(("payload", "trailer", "form"), TRAILERS)
def test_all_that_rocksdb_reads_has_a_door(payload: bytes, trailer: bytes, form: str) -> None:
    for body in (payload, b"\xff" * len(payload)):
        read = twins()[1].RocksDBBloomFilter.from_bytes(body + trailer)
        assert opened(read).struct.digest_kind == (ROCKSDB if form == "legacy" else XXPH3)
        assert_answers_alike(read, [b"", b"key", b"k" * 300])
        assert form.startswith("always-maybe") <= opened(read).ask(b"key")


@pytest.mark.parametrize("data", [b"", b"\x06", b"\0\x06", b"\xff\x06", bytes(9), b"\0\xff"])
def test_all_that_leveldb_reads_has_a_door(data: bytes) -> None:
    read = twins()[1].LevelDBBloomFilter.from_bytes(data)
    assert opened(read).struct.digest_kind == LEVELDB
    assert_answers_alike(read, [b"", b"key", b"k" * 300])


@every_family_of_both_kinds
def test_what_was_never_built_says_maybe_through_its_door(case: Case) -> None:
    cls = case.cls(twins()[1])
    door = opened(cls.__new__(cls))
    assert (door.ask(b""), door.ask(b"key"), door.ask_digest(2**64 - 1)) == (1, 1, 1)


@every_family_of_both_kinds
def test_the_capsule_keeps_the_filter(case: Case) -> None:
    built = case.build(twins()[1], KEYS, **secrets(case))
    expected = [int(built.might_contain(key)) for key in OTHERS]
    reference = weakref.ref(built)
    before = sys.getrefcount(built)
    one, two = opened(built), opened(built)
    assert sys.getrefcount(built) == before + 2
    del built, one
    gc.collect()
    junk = [case.build(twins()[1], OTHERS) for _ in range(20)]
    assert reference() is not None
    assert [two.ask(key) for key in KEYS] == [1] * len(KEYS)
    assert [two.ask(key) for key in OTHERS] == expected
    del two
    gc.collect()
    assert reference() is None
    assert len(junk) == 20


@every_family_of_both_kinds
def test_the_capsule_keeps_the_buffer_of_a_view(case: Case) -> None:
    data = bytearray(case.build(twins()[1], KEYS, **secrets(case)).to_bytes())
    door = opened(case.cls(twins()[1]).from_bytes(memoryview(data).toreadonly()))
    gc.collect()
    with pytest.raises(BufferError):
        data.append(0)
    assert [door.ask(key) for key in KEYS] == [1] * len(KEYS)
    del door
    gc.collect()
    data.append(0)


@every_growing_family
def test_the_same_struct_answers_for_what_is_added(case: Case) -> None:
    """Also where the filter was a view, whose first change moves its bytes."""
    native = twins()[1]
    data = bytearray(case.build(native, KEYS, **secrets(case)).to_bytes())
    viewed = case.cls(native).from_bytes(memoryview(data).toreadonly())
    door = opened(viewed)
    address = pointer_in(door.capsule, NAME)
    new = [key for key in OTHERS if not door.ask(key)][:10]
    assert len(new) == 10
    viewed.add_many(new)
    gc.collect()
    data[:] = bytes(len(data))
    data.clear()  # BufferError if anything still held it
    assert pointer_in(door.capsule, NAME) == pointer_in(viewed.__lsm_probe__(), NAME) == address
    assert [door.ask(key) for key in new] == [1] * 10
    assert [door.ask_digest(door.digest(key)) for key in new] == [1] * 10
    assert [door.ask(key) for key in KEYS] == [1] * len(KEYS)
    assert door.struct.digest_seed == SEED
    assert_answers_alike(viewed, KEYS + OTHERS)
    if hasattr(viewed, "remove"):
        assert all(viewed.remove(key) for key in new)
        assert sum(door.ask(key) for key in new) < 10


@every_family_of_both_kinds
def test_threads_pass_the_door_at_once(case: Case, rng: random.Random) -> None:
    """ctypes gives up the GIL for every call."""
    keys = random_keys(rng, 400)
    built = case.build(twins()[1], keys, **secrets(case))
    door, asked = opened(built), random_keys(rng, 400, length=30) + keys
    expected = [int(built.might_contain(key)) for key in asked]

    def ask(_: int) -> bool:
        struct = door.struct
        return [struct.probe(struct.self, key, len(key)) for key in asked] == expected

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(ask, range(8))) == [True] * 8


def test_a_subclass_has_the_same_door() -> None:
    class Mine(twins()[1].BlockedBloomFilter):  # type: ignore[misc]
        def might_contain(self, key: bytes) -> bool:
            return False

    door = opened(Mine.build(KEYS))
    assert [door.ask(key) for key in KEYS] == [1] * len(KEYS)


def test_the_readable_kernel_has_no_door() -> None:
    python, native = twins()
    for family in every():
        assert not hasattr(class_of(python, family), "__lsm_probe__")
        assert hasattr(class_of(native, family), "__lsm_probe__")
    assert not hasattr(native.Digests, "__lsm_probe__")


# ---- from C ----

COMPILER = shutil.which(os.environ.get("CC") or "cc") or shutil.which("gcc")
PROGRAM = """
#include "lsm_probe.h"

const char *capsule_name(void) { return LSM_PROBE_CAPSULE; }
size_t struct_size(void) { return sizeof(lsm_probe_v1); }

int is_current(const lsm_probe_v1 *door) {
    return door->struct_size >= sizeof(lsm_probe_v1) && door->digest_kind <= LSM_DIGEST_NONE;
}

size_t count_maybe(const lsm_probe_v1 *door, const char *keys, size_t width, size_t count) {
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        found += (size_t)door->probe(door->self, keys + i * width, width);
    }
    return found;
}

int ask_digest(const lsm_probe_v1 *door, uint64_t digest) {
    return door->probe_digest(door->self, digest);
}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Plain C that knows a filter only by its header."""
    if COMPILER is None or sys.platform == "win32":
        pytest.skip("there is no C compiler")
    folder = tmp_path_factory.mktemp("door")
    source, output = folder / "door.c", folder / "door.so"
    source.write_text(PROGRAM)
    strict = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O1"]
    header = Path(str(files("filters.kernels.native") / "lsm_probe.h"))
    # Not with what a sanitizer loads into every program.
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    compiled = subprocess.run(
        [COMPILER, *strict, f"-I{header.parent}", "-shared", "-fPIC", "-o", output, source],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert compiled.returncode == 0, compiled.stderr
    loaded = ctypes.CDLL(str(output))
    loaded.capsule_name.restype = ctypes.c_char_p
    loaded.struct_size.restype = loaded.count_maybe.restype = ctypes.c_size_t
    loaded.is_current.argtypes = [ctypes.c_void_p]
    loaded.ask_digest.argtypes = [ctypes.c_void_p, ctypes.c_uint64]
    loaded.count_maybe.argtypes = [
        ctypes.c_void_p,
        ctypes.c_char_p,
        ctypes.c_size_t,
        ctypes.c_size_t,
    ]
    return loaded


def test_the_header_agrees_with_this_test(library: Any) -> None:
    assert library.capsule_name() == NAME
    assert library.struct_size() == ctypes.sizeof(Probe)


@every_family_of_both_kinds
def test_plain_c_asks_through_the_pointer(case: Case, library: Any, rng: random.Random) -> None:
    native: ModuleType = twins()[1]
    keys, absent = random_keys(rng, 500, length=11), random_keys(rng, 500, length=11)
    built = case.build(native, keys, **secrets(case))
    capsule = built.__lsm_probe__()
    door = pointer_in(capsule, NAME)
    assert library.is_current(door) == 1
    assert library.count_maybe(door, b"".join(keys), 11, 500) == 500
    expected = sum(built.might_contain_many(absent))
    assert library.count_maybe(door, b"".join(absent), 11, 500) == expected
    digests = [Door(capsule).digest(key) for key in keys + absent]
    passed = 1000 if KINDS.get(case.family) in (CASSANDRA, NONE) else 500 + expected
    assert sum(library.ask_digest(door, digest) for digest in digests) == passed
    assert library.count_maybe(door, b"", 0, 3) == 3 * built.might_contain(b"")
