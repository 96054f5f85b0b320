"""The compiled kernel's memory: vector instructions, buffers, references, re-entrance, threads."""

from __future__ import annotations

import gc
import operator
import os
import random
import struct
import sys
import threading
import time
import weakref
from array import array
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from importlib import import_module
from itertools import accumulate
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

import pytest
from xxhash import xxh3_64_intdigest

from filters import CapacityError, FilterError, PackedKeys, binary_fuse, hashing, xor
from tests.filters.cases import (
    Case,
    every_digested_family,
    every_family,
    every_family_of_both_kinds,
    every_growing_family,
    needs_native,
    outcome,
    random_keys,
    twins,
)
from tests.filters.test_rocksdb import build_legacy
from tests.interpreter import fresh

pytestmark = needs_native

SEED, SALT = 0x0123_4567_89AB_CDEF, 0xFEDC_BA98_7654_3210
KEYS = [b"key%d" % i for i in range(500)]
OTHERS = [b"other%d" % i for i in range(500)]


@pytest.fixture(scope="module", autouse=True)
def cheap_collections() -> Iterator[None]:
    """So that a collection looks at what these tests make, not at all there is."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture
def native() -> ModuleType:
    return twins()[1]


def secrets(case: Case) -> dict[str, int]:
    return {"seed": SEED, "salt": SALT} if case.salted else {}


def packed(keys: list[bytes]) -> PackedKeys:
    return PackedKeys(b"".join(keys), offsets=array("q", accumulate(map(len, keys), initial=0)))


# ---- vector instructions ----


@pytest.fixture
def simd() -> Iterator[Any]:
    """The module that chooses them, which chooses again what it had chosen."""
    module = import_module("filters.kernels.native.simd")
    before = module.in_use()
    yield module
    module.use(before)


def one_key(native: ModuleType, name: str, num_probes: int, key: bytes) -> tuple[Any, bytearray]:
    """The filter of this key alone, in one line, and that line."""
    secrets = {"seed": SEED, "salt": SALT} if name == "BlockedBloomFilter" else {}
    built = getattr(native, name).build([key], num_probes=num_probes, **secrets)
    data = built.to_bytes()
    assert len(data) == (112 if name == "BlockedBloomFilter" else 69)
    return built, bytearray(data[40:104] if name == "BlockedBloomFilter" else data[:64])


def with_line(built: Any, line: bytes | bytearray) -> Any:
    """The filter with another line."""
    data = built.to_bytes()
    if len(data) == 69:
        return type(built).from_bytes(bytes(line) + data[64:])
    body = data[:40] + line
    return type(built).from_bytes(body + struct.pack("<Q", xxh3_64_intdigest(body)))


def bits_of(line: bytearray) -> set[int]:
    return {bit for bit in range(512) if line[bit >> 3] >> (bit & 7) & 1}


def lanes(mixed: int, num_probes: int) -> set[int]:
    """The bits that a probe number asks for, by the definition."""
    numbers = (mixed * pow(0x9E37_79B9, i, 1 << 32) % (1 << 32) for i in range(num_probes))
    return {number >> 23 for number in numbers}


EDGES = {1, 2, 7, 8, 9, 15, 16, 17, 23, 24, 25, 29, 30, 31, 32}


@pytest.mark.parametrize(
    ("name", "num_probes"),
    [("BlockedBloomFilter", k) for k in range(1, 33)]
    + [("RocksDBBloomFilter", k) for k in range(1, 31)],
)
def test_every_level_asks_for_every_bit_and_for_no_other(
    native: ModuleType, simd: Any, name: str, num_probes: int, rng: random.Random
) -> None:
    for level in simd.available():
        simd.use(level)
        for length in (8, 40):
            key = rng.randbytes(length)
            built, line = one_key(native, name, num_probes, key)
            wanted = bits_of(line)
            if name == "BlockedBloomFilter":
                mixed = hashing.mix(hashing.digest(key, SEED), SALT)
                assert wanted == lanes(mixed % 2**32, num_probes)
            assert built.might_contain(key)
            assert built.might_contain_many([key] * 3) == [True] * 3
            asked = range(512) if num_probes in EDGES and length == 8 else wanted
            for bit in asked:
                full = bytearray(b"\xff" * 64)
                full[bit >> 3] ^= 1 << (bit & 7)
                without = with_line(built, full)
                assert without.might_contain(key) is (bit not in wanted), (level, bit)
                assert without.might_contain_many([key]) == [bit not in wanted], (level, bit)
                if bit not in wanted or name != "BlockedBloomFilter":
                    continue
                bare = bytearray(line)
                bare[bit >> 3] ^= 1 << (bit & 7)
                grown = with_line(built, bare)
                assert grown.might_contain(key) is False
                assert grown.might_contain_digest(hashing.digest(key, SEED)) is False
                assert (grown.add(key), grown.add(key)) == (True, False)
                assert grown.to_bytes()[40:104] == line


@pytest.mark.parametrize("num_probes", range(1, 33))
def test_every_level_builds_and_answers_alike(
    native: ModuleType, simd: Any, num_probes: int, rng: random.Random
) -> None:
    """Many lines, half full, so that a wrong bit anywhere shows."""
    python, _ = twins()
    keys = random_keys(rng, 300)
    absent = random_keys(rng, 700, length=9)
    sizes = {"bits_per_key": 1.6 * num_probes, "num_probes": num_probes}
    cases = [
        Case("blocked", sizes),
        Case("rocksdb", sizes),
    ]
    for case in cases[: 2 if num_probes <= 30 else 1]:
        name = case.class_name
        reference = case.build(python, keys, **secrets(case))
        expected = reference.might_contain_many(absent)
        for level in simd.available():
            simd.use(level)
            built = case.build(native, keys, **secrets(case))
            assert built.to_bytes() == reference.to_bytes(), (name, level)
            assert built.num_keys == reference.num_keys
            assert built.might_contain_many(absent) == expected, (name, level)
            assert [built.might_contain(key) for key in absent] == expected, (name, level)
            viewed = case.cls(native).from_bytes(built.to_bytes())
            assert viewed.might_contain_many(keys) == [True] * 300


def test_a_filter_goes_on_as_it_was_made(native: ModuleType, simd: Any) -> None:
    made = []
    for level in simd.available():
        simd.use(level)
        assert simd.in_use() == level
        made.append(native.BlockedBloomFilter.build(KEYS, seed=SEED, salt=SALT))
    simd.use("portable")
    assert all(built == made[0] for built in made)
    assert all(all(built.might_contain_many(KEYS)) for built in made)
    answers = [built.might_contain_many(OTHERS) for built in made]
    assert answers == answers[:1] * len(made)
    # A union and a change go on under what is chosen by then.
    assert all(all(built.union(made[0]).might_contain_many(KEYS)) for built in made)


def test_other_levels_are_refused(simd: Any) -> None:
    assert simd.available()[0] == "portable"
    assert simd.in_use() in simd.available()
    for wrong in ("sse9", "", "AVX2", None, 2):
        with pytest.raises(ValueError, match="cannot be used here: choose auto, portable"):
            simd.use(wrong)
    before = simd.in_use()
    simd.use("portable")
    assert simd.in_use() == "portable"
    simd.use("auto")
    assert simd.in_use() == simd.available()[-1]
    assert before in simd.available()


TELL_LEVEL = """
import filters
from filters.kernels.native import simd
built = filters.BlockedBloomFilter.build([b"key%d" % i for i in range(500)], seed=1, salt=2)
answers = built.might_contain_many([b"other%d" % i for i in range(500)])
print(filters.KERNEL, simd.in_use(), sum(answers), hash(built.to_bytes()))
"""


def test_the_level_is_chosen_by_the_environment(simd: Any) -> None:
    told = set()
    for level in simd.available():
        child = fresh(TELL_LEVEL, LSM_SIMD=level, PYTHONHASHSEED="0")
        kernel, in_use, *rest = child.stdout.split()
        assert (kernel, in_use) == ("native", level), child.stderr
        told.add(tuple(rest))
    assert len(told) == 1
    for auto in ("", "auto"):
        assert fresh(TELL_LEVEL, LSM_SIMD=auto).stdout.split()[1] == simd.available()[-1]


def test_a_level_that_is_none_is_no_silent_choice() -> None:
    tell = "import filters; print(filters.KERNEL, '|', filters.KERNEL_REASON)"
    why = "the native kernel cannot run here: LSM_SIMD: vector instructions 'sse9' cannot be used"
    child = fresh(tell, LSM_SIMD="sse9")
    assert child.stdout.startswith(f"python | {why}"), child.stderr
    child = fresh(tell, LSM_SIMD="sse9", LSM_KERNEL="native")
    assert child.returncode != 0
    assert why in child.stderr


# ---- keys that change while they are read ----


@contextmanager
def when_a_key_is_converted(what: Callable[[], Any], times: int = 1) -> Iterator[None]:
    """Do something amid a batch: keys that are not bytes take a detour through Python."""
    left = [times]

    def watch(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code is hashing.key_bytes.__code__ and left[0]:
            left[0] -= 1
            what()

    sys.setprofile(watch)
    try:
        yield
    finally:
        sys.setprofile(None)
    assert left[0] == 0, "no key was converted"


def readers(native: ModuleType, case: Case) -> dict[str, Callable[[list[Any]], Any]]:
    """All that reads a list of keys."""
    cls = case.cls(native)
    built = case.build(native, KEYS, **secrets(case))
    table = {
        "build": lambda keys: case.build(native, keys),
        "ask": built.might_contain_many,
        "ask into": lambda keys: built.might_contain_many(keys, bytearray(len(keys))),
    }
    if hasattr(cls, "digests"):
        table["digest"] = cls.digests().add_many
    if hasattr(cls, "with_capacity"):
        table["add"] = lambda keys: cls.with_capacity(1000).add_many(keys)
    return table


@every_digested_family
@pytest.mark.parametrize("place", [0, 10, 63, 64, 255, 256, 299])
def test_a_list_that_becomes_shorter_while_it_is_read_is_an_error(
    native: ModuleType, case: Case, place: int
) -> None:
    for name, read in readers(native, case).items():
        for left in {0, 1, place, min(place + 1, 299), 298, 299}:
            keys: list[Any] = [b"a key of some length %d" % i for i in range(300)]
            keys[place] = bytearray(keys[place])

            def shorten(keys: list[Any] = keys, left: int = left) -> None:
                del keys[left:]
                gc.collect(0)

            with (
                when_a_key_is_converted(shorten),
                pytest.raises(RuntimeError, match="the list of keys became shorter"),
            ):
                read(keys)
            assert len(keys) == left, name


@pytest.mark.parametrize("family", ["grafite", "surf"])
@pytest.mark.parametrize("place", [0, 10, 299])
def test_a_list_that_becomes_shorter_while_its_keys_are_asked_for_is_an_error(
    native: ModuleType, family: str, place: int
) -> None:
    built = Case(family, {}).build(native, KEYS)
    for left in {0, place}:
        keys: list[Any] = [b"a key of some length %d" % i for i in range(300)]
        keys[place] = bytearray(keys[place])
        with (
            when_a_key_is_converted(partial(keys.__delitem__, slice(left, None))),
            pytest.raises(RuntimeError, match="the list of keys became shorter"),
        ):
            built.might_contain_many(keys)


@every_family_of_both_kinds
def test_a_list_that_grows_or_changes_while_it_is_read_is_no_crash(
    native: ModuleType, case: Case
) -> None:
    for read in readers(native, case).values():
        keys: list[Any] = [b"%d" % i for i in range(200)]
        keys[70] = bytearray(b"70")
        with when_a_key_is_converted(partial(keys.extend, [b"more"] * 5000)):
            read(keys)
        del keys[200:]
        keys[70] = bytearray(b"70")
        others = [b"%d" % i for i in range(9000, 9300)]
        with when_a_key_is_converted(partial(keys.__setitem__, slice(None), others)):
            read(keys)


def test_a_tuple_cannot_become_shorter_and_an_iterator_ends_where_it_ends(
    native: ModuleType,
) -> None:
    keys: list[Any] = [bytearray(b"%d" % i) for i in range(200)]
    for form, read in ((tuple, 200), (lambda keys: (key for key in keys), 1), (iter, 1)):
        copy = list(keys)
        with when_a_key_is_converted(copy.clear):
            built = native.CuckooFilter.build(form(copy))
        assert all(built.might_contain_many(keys[:read]))
        assert built.num_keys == read


@every_growing_family
def test_a_view_may_be_added_to_while_it_is_asked(native: ModuleType, case: Case) -> None:
    """The answers may be from before or after; the memory of before is still there."""
    data = case.build(native, KEYS, **secrets(case)).to_bytes()
    viewed = case.cls(native).from_bytes(memoryview(bytearray(data)).toreadonly())
    asked: list[Any] = [*KEYS, b"one more", *OTHERS]
    asked[100] = bytearray(asked[100])
    with when_a_key_is_converted(lambda: viewed.add(b"one more")):
        answers = viewed.might_contain_many(asked)
    assert answers[:501] == [True] * 501
    assert viewed.might_contain(b"one more")


def test_digests_may_be_added_to_while_they_are_added_to(native: ModuleType) -> None:
    digests = native.CuckooFilter.digests(seed=SEED)
    keys: list[Any] = [bytearray(b"%d" % i) for i in range(600)]
    added: list[bytes] = []

    def add() -> None:
        for _ in range(50):
            added.append(b"amid%d" % len(added))
            digests.add(added[-1])

    with when_a_key_is_converted(add, times=20):
        digests.add_many(keys)
    assert len(digests) == len(keys) + len(added) == 600 + 1000
    every = [bytes(key) for key in keys] + added
    assert native.CuckooFilter.build(digests, salt=SALT) == native.CuckooFilter.build(
        every, seed=SEED, salt=SALT
    )


PEEK = """
import gc, sys
from filters import hashing, kernels

built = getattr(kernels.load("native"), sys.argv[1]).build([b"key"])
keys = [b"%d" % i for i in range(1999)] + [bytearray(b"key")]
seen = []

def peek(frame, event, _):
    if event == "call" and frame.f_code is hashing.key_bytes.__code__:
        for each in gc.get_objects():
            if type(each) is list and len(each) == 2000 and each is not keys:
                seen.append(repr(each))

sys.setprofile(peek)
answers = built.might_contain_many(keys)
sys.setprofile(None)
assert answers[-1] is True and len(answers) == 2000
print("alive", len(seen))
"""


@every_family_of_both_kinds
def test_nobody_sees_answers_before_they_are_there(case: Case) -> None:
    """A list that is not yet full has holes in it, which no Python code survives to look at."""
    child = fresh(PEEK, case.class_name)
    assert child.stdout == "alive 0\n", child.stderr[-500:]


# ---- buffers ----


@every_family_of_both_kinds
def test_a_view_keeps_its_buffer(native: ModuleType, case: Case) -> None:
    built = case.build(native, KEYS, **secrets(case))
    answers = built.might_contain_many(OTHERS)
    data = bytearray(built.to_bytes())
    view = memoryview(data).toreadonly()
    viewed = case.cls(native).from_bytes(view)
    del view
    gc.collect()
    with pytest.raises(BufferError):
        data.append(0)
    size = len(data)
    del data
    gc.collect()
    junk = [b"\0" * size for _ in range(200)]
    assert viewed.might_contain_many(KEYS) == [True] * 500
    assert viewed.might_contain_many(OTHERS) == answers
    assert viewed == built
    del junk


@every_family_of_both_kinds
def test_a_view_lets_go_of_its_buffer(native: ModuleType, case: Case) -> None:
    data = bytearray(case.build(native, KEYS, **secrets(case)).to_bytes())
    viewed = case.cls(native).from_bytes(memoryview(data).toreadonly())
    assert viewed.might_contain(KEYS[0])
    del viewed
    gc.collect()
    data.append(0)  # BufferError if anything still held it


@every_growing_family
def test_a_change_copies_a_view_and_lets_go_of_its_buffer(native: ModuleType, case: Case) -> None:
    built = case.build(native, KEYS[:300], **secrets(case))
    changes: list[Callable[[Any], Any]] = [
        lambda viewed: viewed.add(b"one more"),
        lambda viewed: viewed.add_many([b"one", b"more"]),
        lambda viewed: viewed.add_many(packed([b"one", b"more"])),
    ]
    if hasattr(built, "remove"):
        changes.append(lambda viewed: viewed.remove(KEYS[0]))
    for change in changes:
        data = bytearray(built.to_bytes())
        kept = bytes(data)
        viewed = case.cls(native).from_bytes(memoryview(data).toreadonly())
        change(viewed)
        assert data == kept
        gc.collect()
        data.clear()  # BufferError if anything still held it
        assert all(viewed.might_contain_many(KEYS[1:300]))
        assert viewed != built
    copied = bytearray(built.to_bytes())
    own = case.cls(native).from_bytes(copied)
    copied[:] = bytes(len(copied))
    own.add(b"one more")
    assert all(own.might_contain_many(KEYS[:300]))


@every_growing_family
def test_a_removal_that_finds_nothing_copies_nothing(native: ModuleType, case: Case) -> None:
    built = case.build(native, KEYS, **secrets(case))
    if not hasattr(built, "remove"):
        return
    data = bytearray(built.to_bytes())
    viewed = case.cls(native).from_bytes(memoryview(data).toreadonly())
    absent = [key for key in OTHERS if not viewed.might_contain(key)][:50]
    assert absent
    assert [viewed.remove(key) for key in absent] == [False] * len(absent)
    with pytest.raises(BufferError):
        data.clear()


@every_family
def test_a_filter_outlives_the_digests_and_keys_it_was_built_from(
    native: ModuleType, case: Case
) -> None:
    buffer = bytearray(b"".join(b"%04d" % i for i in range(300)))
    digests = case.cls(native).digests()
    digests.add_many(PackedKeys(buffer, width=4))
    built = case.build(native, digests)
    del digests
    buffer.clear()
    gc.collect()
    assert all(built.might_contain_many([b"%04d" % i for i in range(300)]))


@pytest.mark.parametrize("width", [8, 16])
@pytest.mark.parametrize(
    ("name", "family"), [("BinaryFuseFilter", binary_fuse), ("XorFilter", xor)]
)
def test_a_filter_that_denies_its_keys_is_not_handed_out(
    native: ModuleType, name: str, family: Any, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What unsound memory does, done by hand: some fingerprints are lost after the build."""
    cls, whole = getattr(native, name), family.payload_of
    for lost in (2, 100):
        monkeypatch.setattr(
            family, "payload_of", lambda shards, lost=lost: whole(shards)[:-lost] + bytes(lost)
        )
        says = r"filter of 500 keys denies \d+ of them after its build.*memory sound"
        with pytest.raises(FilterError, match=f"a {family.FAMILY} {says}"):
            cls.build(KEYS, fingerprint_bits=width, seed=SEED, salt=SALT)
    monkeypatch.undo()
    assert cls.build(KEYS, fingerprint_bits=width).might_contain(KEYS[0])


# ---- objects among objects ----


@every_family_of_both_kinds
def test_filters_are_weakly_referenced_and_collected(native: ModuleType, case: Case) -> None:
    built = case.build(native, KEYS)
    reference = weakref.ref(built)
    assert reference() is built
    del built
    gc.collect()
    assert reference() is None


@every_family_of_both_kinds
def test_filters_have_subclasses(native: ModuleType, case: Case) -> None:
    class Named(case.cls(native)):  # type: ignore[misc]
        asked = 0

        def might_contain(self, key: bytes) -> bool:
            self.asked += 1
            return bool(super().might_contain(key))

    built = Named.build(KEYS, **secrets(case))
    assert type(built) is Named
    assert isinstance(built, case.cls(native))
    assert type(Named.from_bytes(built.to_bytes())) is Named
    assert built == case.build(native, KEYS, **secrets(case))
    assert (built.might_contain(KEYS[0]), built.asked) == (True, 1)
    assert all(built.might_contain_many(KEYS))
    assert repr(built).startswith("<Named: 500 keys")
    with pytest.raises(TypeError, match=r"a Named is made by build\(\)"):
        Named()
    if hasattr(built, "union"):
        assert type(built.union(built)) is Named
        assert type(Named.with_capacity(like=built)) is Named
    built.itself = built  # a cycle, for the collector to find
    reference = weakref.ref(built)
    del built
    gc.collect()
    assert reference() is None


def test_digests_are_made_by_their_class_alone(native: ModuleType) -> None:
    class Named(native.Digests):  # type: ignore[misc, name-defined]
        pass

    with pytest.raises(TypeError, match="come from its class"):
        Named()
    hollow = native.Digests.__new__(native.Digests)
    hollow.add(b"key")
    assert len(hollow) == 1


# ---- nothing is lost ----

ROUNDS = 10_000


def asks(native: ModuleType, case: Case) -> dict[str, Callable[[], Any]]:
    """Cheap calls of every kind, those that fail included."""
    cls = case.cls(native)
    keys = KEYS[:20]
    built = case.build(native, keys, **secrets(case))
    data = built.to_bytes()
    wide = PackedKeys(b"".join(b"%04d" % i for i in range(20)), width=4)
    offsets = packed(keys)
    bad = PackedKeys(b"onetwo", offsets=array("i", [0, 3, 99]))
    out = bytearray(20)
    table: dict[str, Callable[[], Any]] = {
        "one": lambda: built.might_contain(keys[3]),
        "one of another type": lambda: built.might_contain(bytearray(keys[3])),
        "no key": lambda: built.might_contain("\ud800"),
        "text": lambda: built.might_contain("text"),
        "more text": lambda: built.might_contain_many(["te\u00ed", "\u20ac" * 2000]),
        "many": lambda: built.might_contain_many(keys),
        "many of an iterator": lambda: built.might_contain_many(iter(keys)),
        "many of another type": lambda: built.might_contain_many([bytearray(b"key")]),
        "many into": lambda: built.might_contain_many(keys, out),
        "many into too little": lambda: built.might_contain_many(keys[:3], out),
        "many packed": lambda: built.might_contain_many(wide, out),
        "many packed with offsets": lambda: built.might_contain_many(offsets),
        "many with bad offsets": lambda: built.might_contain_many(bad),
        "many with no key": lambda: built.might_contain_many([*keys, None]),
        "capsule": lambda: built.__lsm_probe__(),
        "view": lambda: cls.from_bytes(data),
        "copy": lambda: cls.from_bytes(bytearray(data)),
        "damaged": lambda: cls.from_bytes(data[:-1]),
        "bytes": lambda: built.to_bytes(),
        "equal": lambda: built == built,
        "repr": lambda: repr(built),
        "properties": lambda: (built.num_keys, built.fill, built.size_in_bytes, built.bits_per_key),
        "build": lambda: cls.build(keys),
        "build of packed": lambda: cls.build(wide),
        "build of bad": lambda: cls.build(bad),
        "build of no key": lambda: cls.build([*keys, 7]),
        "made by calling": lambda: cls(keys),
        "hollow": lambda: cls.__new__(cls).might_contain(b"key"),
        "in": lambda: (keys[0] in built, "text" in built),
        "in of no key": lambda: 7 in built,
        "copy of its own": lambda: built.copy(),
    }
    if hasattr(cls, "digests"):
        digests = cls.digests(**({"seed": SEED} if case.salted else {}))
        digests.add_many(keys)
        table["missing"] = lambda: built.count_missing(digests)
        table["digests"] = lambda: cls.digests().add_many(keys)
        table["digests of packed"] = lambda: cls.digests().add_many(offsets)
        table["digests of bad"] = lambda: cls.digests().add_many(bad)
        table["digests of no key"] = lambda: cls.digests().add_many([*keys, 7])
        table["build of digests"] = lambda: cls.build(digests)
    if case.salted:
        table["digest"] = lambda: built.might_contain_digest(2**63 + 1)
        table["no digest"] = lambda: built.might_contain_digest(2**64)
    if hasattr(cls, "with_capacity"):
        grown = cls.with_capacity(50, seed=SEED, salt=SALT)
        table["capacity"] = lambda: cls.with_capacity(50)
        table["like"] = lambda: cls.with_capacity(like=built)
        table["add"] = lambda: grown.add(keys[0])
        table["add many"] = lambda: cls.with_capacity(50).add_many(keys)
        table["add to a view"] = lambda: cls.from_bytes(data).add(b"one more")
        table["clear"] = lambda: cls.from_bytes(data).clear()
        table["update"] = lambda: cls.with_capacity(50).update(keys, iter(keys))
        table["clear and go on"] = lambda: (grown.clear(), grown.add_many(keys))
        table["add no key"] = lambda: grown.add("\ud800")
        table["add bad"] = lambda: grown.add_many(bad)
        full = cls.with_capacity(2, seed=SEED, salt=SALT)
        table["add to a full one"] = lambda: full.add_many(keys)
    if hasattr(cls, "remove"):
        table["remove"] = lambda: (grown.add(keys[1]), grown.remove(keys[1]))
    if hasattr(cls, "union"):
        table["union"] = lambda: built.union(built, built)
        table["in place"] = lambda: operator.ior(cls.from_bytes(data), built)
        table["unlike"] = lambda: built.union(grown)
    if hasattr(cls, "collapse"):
        table["collapse"] = lambda: built.collapse()
    return table


SHARED: list[Any] = [True, False, b"", KEYS[3], KEYS, KEYS[0], KEYS[1]]


@every_family_of_both_kinds
def test_calls_leave_no_reference_and_no_object_behind(native: ModuleType, case: Case) -> None:
    for name, ask in asks(native, case).items():
        rounds = ROUNDS if name in ("one", "many", "many packed", "digest") else 400
        for _ in range(50):
            outcome(ask)
        gc.collect()
        counts = [sys.getrefcount(each) for each in SHARED]
        blocks = sys.getallocatedblocks()
        for _ in range(rounds):
            with suppress(Exception):
                ask()
        gc.collect()
        grown = sys.getallocatedblocks() - blocks
        assert grown < rounds // 4, f"{name} leaves {grown} objects behind in {rounds} calls"
        for each, before in zip(SHARED, counts, strict=True):
            after = sys.getrefcount(each)
            assert abs(after - before) < rounds // 4, f"{name}: {before} to {after} of {each!r:.20}"


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="None counts no references any more")
def test_bytes_leave_no_reference_to_none_behind(native: ModuleType) -> None:
    built = native.ClassicBloomFilter.build(KEYS)
    before = sys.getrefcount(None)
    for _ in range(1000):
        built.to_bytes()
    assert sys.getrefcount(None) - before < 250


def resident() -> int:
    """Bytes of memory that this process has."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE")


needs_resident = pytest.mark.skipif(
    not Path("/proc/self/statm").exists() or "ASAN_OPTIONS" in os.environ,
    reason="there is no /proc here, or freed memory is kept to be watched",
)


@needs_resident
@every_family_of_both_kinds
def test_calls_leave_no_memory_behind(native: ModuleType, case: Case) -> None:
    """60 times 100 kB or more would be 6 MB or more."""
    cls = case.cls(native)
    keys = random_keys(random.Random(5), 13_000, length=12)
    wide = PackedKeys(b"".join(keys), width=12)
    ends = array("q", range(0, 12 * 13_001, 12))
    ends[-1] += 1
    bad = PackedKeys(b"".join(keys), offsets=ends)
    built = case.build(native, wide, **secrets(case))
    asked = bytearray(len(keys))
    big: dict[str, Any] = {
        "classic": {"bits_per_key": 64},
        "counting": {"counters_per_key": 20},
        "cuckoo": {"fingerprint_bits": 32},
        "leveldb": {"bits_per_key": 64},
        "rocksdb": {"bits_per_key": 64},
        "ribbon": {"bits_per_key": 64},
        "binary-fuse": {"fingerprint_bits": 16},
        "xor": {"fingerprint_bits": 16},
        "bumped-ribbon": {"fpr": 2**-32},
    }.get(case.family, {})
    calls: dict[str, Callable[[], Any]] = {
        "build": lambda: cls.build(wide, **big),
        "build of a list": lambda: cls.build(keys, **big),
        "build of bad": lambda: cls.build(bad, **big),
        "build of no key": lambda: cls.build([*keys, "\ud800"], **big),
        "many": lambda: built.might_contain_many(keys),
        "many into": lambda: built.might_contain_many(wide, asked),
        "many of bad": lambda: built.might_contain_many(bad, asked),
    }
    if hasattr(cls, "digests"):
        digests = cls.digests(**({"seed": SEED} if case.salted else {}))
        digests.add_many(wide)
        calls["build of digests"] = lambda: cls.build(digests, **big)
        calls["digests"] = lambda: cls.digests().add_many(wide)
        calls["digests of bad"] = lambda: cls.digests().add_many(bad)
        calls["digests one by one"] = lambda: deque(map(cls.digests().add, keys), 0)
        calls["missing"] = lambda: built.count_missing(digests)
    if hasattr(cls, "with_capacity"):
        calls["capacity"] = lambda: cls.with_capacity(200_000)
        calls["add many"] = lambda: cls.with_capacity(200_000).add_many(keys[:100])
        large = cls.with_capacity(200_000).to_bytes()
        calls["add to a view"] = lambda: cls.from_bytes(large).add(b"one more")
        calls["copy"] = lambda: cls.from_bytes(large).copy()
        calls["clear a view"] = lambda: cls.from_bytes(large).clear()
        again = cls.with_capacity(2000)
        calls["clear"] = lambda: (again.clear(), again.add_many(wide))
    if hasattr(cls, "union"):
        empty = cls.with_capacity(200_000)
        calls["union"] = lambda: empty.union(empty)
        calls["in place"] = lambda: operator.ior(cls.from_bytes(large), empty)
    for name, call in calls.items():
        for _ in range(8):
            outcome(call)
        gc.collect()
        before = resident()
        for _ in range(60):
            with suppress(ValueError, TypeError, CapacityError):
                call()
        gc.collect()
        assert resident() - before < 3 << 20, name


@needs_resident
def test_the_shards_of_a_view_are_given_back(
    native: ModuleType, rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(binary_fuse, "KEYS_PER_SHARD", 4)
    data = native.BinaryFuseFilter.build(random_keys(rng, 8000)).to_bytes()
    for _ in range(5):
        assert native.BinaryFuseFilter.from_bytes(data).num_shards == 2048
    before = resident()
    for _ in range(200):  # of 64 KiB each
        native.BinaryFuseFilter.from_bytes(data)
    assert resident() - before < 3 << 20


# ---- threads ----


@contextmanager
def switching_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


@every_family_of_both_kinds
def test_threads_ask_one_filter_while_another_builds(
    native: ModuleType, case: Case, rng: random.Random
) -> None:
    keys = random_keys(rng, 3000, length=12)
    asked = random_keys(rng, 3000, length=12) + keys
    rng.shuffle(asked)
    built = case.build(native, keys, **secrets(case))
    expected = [built.might_contain(key) for key in asked]
    wide = PackedKeys(b"".join(asked), width=12)
    with_offsets = packed(asked)
    mixed: list[Any] = [bytearray(key) if i % 7 == 0 else key for i, key in enumerate(asked)]

    def ask(how: Callable[[], Any], wanted: Any) -> int:
        start.wait()
        return sum(how() != wanted for _ in range(12))

    def into(given_keys: Any) -> Callable[[], list[bool]]:
        out = bytearray(len(asked))
        return lambda: list(map(bool, built.might_contain_many(given_keys, out)))

    jobs: list[tuple[Callable[[], Any], Any]] = [
        (lambda: built.might_contain_many(mixed), expected),
        (into(wide), expected),
        (into(with_offsets), expected),
        (lambda: [built.might_contain(key) for key in asked[:600]], expected[:600]),
        (lambda: case.build(native, wide).might_contain_many(wide), [True] * len(asked)),
    ]
    if hasattr(built, "digests"):
        digests = built.digests(**({"seed": SEED} if case.salted else {}))
        digests.add_many(wide)
        jobs.append((lambda: built.count_missing(digests), expected.count(False)))
    start = threading.Barrier(len(jobs))
    with switching_often(), ThreadPoolExecutor(len(jobs)) as pool:
        wrong = list(pool.map(lambda job: ask(*job), jobs))
    assert wrong == [0] * len(jobs)


def test_threads_that_add_to_one_collection_are_refused_or_right(native: ModuleType) -> None:
    digests = native.CuckooFilter.digests(seed=SEED)
    rng = random.Random(3)
    batches = [[rng.randbytes(2000) for _ in range(500)] for _ in range(4)]
    shared = [PackedKeys(b"".join(keys), width=2000) for keys in batches]
    kept: list[bytes] = []
    refused = []
    start = threading.Barrier(3)

    def add(units: list[tuple[Callable[[], Any], list[bytes]]]) -> list[bytes]:
        start.wait()
        mine: list[bytes] = []
        for call, keys in units:
            try:
                call()
            except RuntimeError as error:
                refused.append(str(error))
            else:
                mine += keys
        return mine

    many = [(partial(digests.add_many, shared[i % 4]), batches[i % 4]) for i in range(48)]
    single = [b"single%d" % i for i in range(8000)]
    ones = [(partial(digests.add, key), [key]) for key in single]
    pairs = [[b"list%d" % i, b"l%d" % i] for i in range(4000)]
    lists = [(partial(digests.add_many, [bytearray(a), b]), [a, b]) for a, b in pairs]
    with switching_often(), ThreadPoolExecutor(3) as pool:
        for mine in pool.map(add, [many, ones, lists]):
            kept += mine
    assert set(refused) <= {"two threads add to one collection of digests at a time"}
    assert len(digests) == len(kept)
    assert native.CuckooFilter.build(digests, salt=SALT) == native.CuckooFilter.build(
        kept, seed=SEED, salt=SALT
    )
    assert native.CuckooFilter.build(digests, salt=SALT).count_missing(digests) == 0
    digests.add(b"and on")
    assert len(digests) == len(kept) + 1


MEDDLED = """
import random, sys, threading, time
from array import array
from filters import PackedKeys, hashing, kernels

native = kernels.load("native")
rng = random.Random(int(sys.argv[2]))
hashing.random64 = lambda: rng.getrandbits(64)
sys.setswitchinterval(1e-5)
cls = getattr(native, sys.argv[1])
keys = [b"%08d" % i for i in range(2000)]
built = cls.build(keys)
ends = array("q", range(0, 8 * 2001, 8))
packed = PackedKeys(b"".join(keys), offsets=ends)
changing = [bytearray(key) if i % 3 else key for i, key in enumerate(keys)]
stop = threading.Event()

def meddle():
    good = list(changing)
    while not stop.is_set():
        for bad in (2**40, -1, 0, 2**62):
            ends[1000] = bad
            for _ in range(200):
                pass
            ends[1000] = 8000
            for _ in range(200):
                pass
        del changing[100:]
        for _ in range(200):
            pass
        changing.extend(good[100:])

thread = threading.Thread(target=meddle)
thread.start()
out = bytearray(2000)
outcomes = {}
deadline = time.monotonic() + 0.4
while time.monotonic() < deadline:
    for use in (
        lambda: built.might_contain_many(packed, out),
        lambda: cls.digests().add_many(packed),
        lambda: cls.build(packed),
        lambda: built.might_contain_many(changing),
        lambda: cls.build(changing),
    ):
        try:
            use()
            how = "fine"
        except (ValueError, RuntimeError) as error:
            how = type(error).__name__
        outcomes[how] = outcomes.get(how, 0) + 1
stop.set()
thread.join()
assert all(built.might_contain_many(keys))
print("alive", outcomes)
"""


@pytest.mark.parametrize("name", ["BlockedBloomFilter", "CuckooFilter", "BinaryFuseFilter"])
def test_keys_that_others_change_meanwhile_are_no_crash(name: str, test_seed: int) -> None:
    """Whoever does that gets an error or nonsense; offsets are read once, so never a crash."""
    child = fresh(MEDDLED, name, str(test_seed))
    assert child.stdout.startswith("alive"), child.stdout + child.stderr[-1000:]


CLEARED = """
import sys, threading
from filters import PackedKeys, kernels

cls = getattr(kernels.load("native"), sys.argv[1])
keys = PackedKeys(b"".join(b"%08d" % i for i in range(40_000)), width=8)
first = cls.with_capacity(50_000, seed=1, salt=2)
if sys.argv[1] == "ScalableBloomFilter":
    first = cls.with_capacity(20, seed=1, salt=2)
empty = first.to_bytes()
sys.setswitchinterval(1e-5)
changing = [first, cls.from_bytes(empty)]
rounds = 0

def ask():
    out = bytearray(len(keys))
    while rounds < 60:
        for each in changing:
            each.might_contain_many(keys, out)

threads = [threading.Thread(target=ask) for _ in range(2)]
for each in threads:
    each.start()
while rounds < 60:
    for each in changing:
        each.add_many(keys)
        each.clear()
        each.copy()
    changing[1] = cls.from_bytes(first.to_bytes())
    rounds += 1
for each in threads:
    each.join()
assert first.to_bytes() == changing[1].to_bytes() == empty
print("alive")
"""


@pytest.mark.parametrize("name", ["BlockedBloomFilter", "CuckooFilter", "ScalableBloomFilter"])
def test_clearing_what_others_ask_meanwhile_is_no_crash(name: str) -> None:
    """Also of a scalable one, which has fewer slices then than they may have begun to look at."""
    child = fresh(CLEARED, name)
    assert child.stdout == "alive\n", child.stdout + child.stderr[-1000:]


@pytest.fixture(scope="module")
def many_keys() -> PackedKeys:
    return PackedKeys(random.Random(9).randbytes(16 * 100_000), width=16)


def lets_others_run(work: Callable[[], Any]) -> bool:
    """Whether this thread ever gets a turn while another works, who has to let go of its own."""
    turns = 0

    def toil() -> None:
        for _ in range(300):
            if turns > 4:
                return
            work()

    before = sys.getswitchinterval()
    sys.setswitchinterval(60)
    try:
        thread = threading.Thread(target=toil)
        thread.start()
        while thread.is_alive():
            turns += 1
            time.sleep(0.0001)
        thread.join()
    finally:
        sys.setswitchinterval(before)
    return turns > 4


@every_digested_family
def test_work_on_packed_keys_lets_other_threads_run(
    native: ModuleType, case: Case, many_keys: PackedKeys
) -> None:
    cls = case.cls(native)
    built = case.build(native, many_keys, **secrets(case))
    digests = cls.digests(**({"seed": SEED} if case.salted else {}))
    digests.add_many(many_keys)
    out = bytearray(len(many_keys))
    if getattr(sys, "_is_gil_enabled", lambda: True)():
        asked = [b"key"] * 20_000  # which Python could change
        assert not lets_others_run(lambda: built.might_contain_many(asked))
    assert lets_others_run(lambda: cls.digests().add_many(many_keys))
    assert lets_others_run(lambda: built.might_contain_many(many_keys, out))
    assert lets_others_run(lambda: built.count_missing(digests))
    assert lets_others_run(lambda: cls.build(many_keys))


def test_legacy_and_foreign_views_keep_their_buffers_too(native: ModuleType) -> None:
    for cls, data in (
        (native.RocksDBBloomFilter, build_legacy(KEYS, 10)),
        (native.LevelDBBloomFilter, native.LevelDBBloomFilter.build(KEYS).to_bytes()),
        (native.RocksDBBloomFilter, native.RocksDBBloomFilter.build(KEYS).to_bytes()),
    ):
        memory = bytearray(data)
        viewed = cls.from_bytes(memoryview(memory).toreadonly())
        del memory
        gc.collect()
        assert all(viewed.might_contain_many(KEYS))
        assert viewed.to_bytes() == data
