"""Packed keys as somebody hostile hands them over: offsets that lie, and memory that changes."""

from __future__ import annotations

import random
import sys
from array import array
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest

from filters import PackedKeys
from tests.effort import by_effort
from tests.filters.cases import (
    Case,
    every_digested_family,
    every_family,
    needs_native,
    outcome,
    twins,
)
from tests.filters.test_native_changes import meanwhile

pytestmark = needs_native

SEED, SALT = 0x0123_4567_89AB_CDEF, 0xFEDC_BA98_7654_3210
KNOWN = [b"known%d" % i for i in range(300)]

# Every integer that offsets may be, with its width and whether it has a sign.
FORMATS = {"i": (4, True), "I": (4, False), "l": (8, True), "L": (8, False)}
FORMATS |= {"q": (8, True), "Q": (8, False), "n": (8, True), "N": (8, False)}


def secrets(case: Case) -> dict[str, int]:
    return {"seed": SEED, "salt": SALT} if case.salted else {}


def uses(kernel: ModuleType, case: Case, built: Any) -> Iterator[Callable[[Any], Any]]:
    """All that reads many keys, each of which tells all there is to see of what came of it."""
    cls = case.cls(kernel)
    yield lambda keys: case.build(kernel, keys, **secrets(case)).to_bytes()
    yield built.might_contain_many
    yield lambda keys: bytes(built.might_contain_many(keys, bytearray(len(keys))))
    digests = cls.digests(**({"seed": SEED} if case.salted else {}))
    yield lambda keys: (outcome(digests.add_many, keys), built.count_missing(digests))
    if hasattr(cls, "with_capacity"):
        grown = cls.with_capacity(2000, seed=SEED, salt=SALT)
        yield lambda keys: (outcome(grown.add_many, keys), grown.num_keys, grown.to_bytes())


# ---- offsets that lie ----


def drawn_offsets(rng: random.Random, size: int) -> memoryview:
    """Ascending ones of any format, and mostly some among them that are not."""
    typecode = rng.choice(list(FORMATS))
    width, signed = FORMATS[typecode]
    low, high = (-(256**width // 2), 256**width // 2 - 1) if signed else (0, 256**width - 1)
    count = rng.choice((0, 1, 2, 63, 64, 65, 127, 128, 129, 256, 300))
    ends = sorted(rng.randrange(size + 1) for _ in range(count + 1))
    odd = (low, high, high - 1, -1 if signed else high, 0, size, size + 1, 2**30, 2**31 - 1)
    for _ in range(rng.choice((0, 1, 1, 2, 5))):
        ends[rng.randrange(count + 1)] = rng.choice(odd)
    raw = b"".join(each.to_bytes(width, sys.byteorder, signed=signed) for each in ends)
    return memoryview(raw).cast(typecode)  # type: ignore[call-overload, no-any-return]


@every_family
def test_any_offsets_are_read_or_refused_by_both_kernels_alike(
    case: Case, rng: random.Random
) -> None:
    data = rng.randbytes(1000)
    built = [case.build(kernel, KNOWN, **secrets(case)) for kernel in twins()]
    for _ in range(by_effort(12, 60, 50_000)):
        keys = PackedKeys(data, offsets=drawn_offsets(rng, len(data)))
        readers = (uses(kernel, case, each) for kernel, each in zip(twins(), built, strict=True))
        for readable, native in zip(*readers, strict=True):
            told = outcome(native, keys)
            assert told == outcome(readable, keys)
            assert not (isinstance(told, tuple) and isinstance(told[0], type)) or (
                told[0] is ValueError and "claims bytes" in told[1]
            )


# ---- memory that changes ----


@every_family
@pytest.mark.parametrize("form", ["offsets", "width"])
def test_keys_that_change_while_they_are_read_are_others_or_refused(
    case: Case, form: str, rng: random.Random
) -> None:
    """Read without the GIL, where a filter and a collection must not be taken in by halves."""
    _, native = twins()
    count = 3000
    data = bytearray(rng.randbytes(8 * count))
    ends = array("q", range(0, 8 * count + 1, 8))
    keys = PackedKeys(data, offsets=ends) if form == "offsets" else PackedKeys(data, width=8)
    built = case.build(native, KNOWN, **secrets(case))
    good, bad = array("q", ends), array("q", (2**62, -1, 0, 8 * count + 1, 2**63 - 1, -(2**63)))

    def meddle() -> None:
        at = rng.randrange(count - 10)
        data[8 * at : 8 * at + 80] = rng.randbytes(80)
        ends[at : at + len(bad)] = bad
        ends[at : at + len(bad)] = good[at : at + len(bad)]

    with meanwhile(meddle):
        for _ in range(by_effort(3, 12, 10_000)):
            for use in uses(native, case, built):
                told = outcome(use, keys)
                if isinstance(told, tuple) and isinstance(told[0], type):
                    assert (form, told[0]) == ("offsets", ValueError), told
    assert all(built.might_contain_many(KNOWN))


@every_family
def test_answers_may_go_where_the_keys_are(case: Case, rng: random.Random) -> None:
    """Over the keys, over their offsets, over the very bytes of the filter that is asked."""
    _, native = twins()
    cls = case.cls(native)
    for count in (1, 63, 64, 127, 128, 129, 500) * by_effort(1, 3, 1000):
        memory = bytearray(rng.randbytes(8 * count))
        built = case.build(native, [bytes(memory[:8]), *KNOWN], **secrets(case))
        out = memoryview(memory)[:count]
        assert built.might_contain_many(PackedKeys(memory, width=8), out) is out
        assert set(out) <= {0, 1}

        ends = array("q", range(0, 2 * count + 1, 2))
        over = memoryview(ends).cast("B")[8 : count + 8]
        told = outcome(built.might_contain_many, PackedKeys(bytes(2 * count), offsets=ends), over)
        assert told is over or told[0] is ValueError

        own = bytearray(built.to_bytes())
        viewed = cls.from_bytes(memoryview(own).toreadonly())
        room = memoryview(own)[: min(count, len(own))]
        some = PackedKeys(memory[: 8 * len(room)], width=8)
        assert viewed.might_contain_many(some, room) is room
        assert set(room) <= {0, 1}
        assert len(viewed.might_contain_many(KNOWN)) == len(KNOWN)


# ---- packed keys that are none, or no longer those ----


def becoming(keys: PackedKeys, **others: Any) -> Callable[..., None]:
    """Make the object another one as soon as its first property is asked for."""

    def change(frame: Any, event: str, _: Any) -> None:
        if event == "return" and frame.f_code is type(keys).data.fget.__code__:
            sys.setprofile(None)
            keys.__init__(**others)  # type: ignore[misc]

    return change


@every_digested_family
@pytest.mark.parametrize("first", ["width", "offsets"])
@pytest.mark.parametrize("then", ["width", "offsets"])
def test_packed_keys_that_are_made_anew_while_they_are_read_stay_within_their_memory(
    case: Case, first: str, then: str
) -> None:
    """A few bytes of the one object, and as many keys as the other has."""
    _, native = twins()
    many = {"width": {"width": 1}, "offsets": {"offsets": array("q", range(50_001))}}
    few: dict[str, Any] = {"width": {"width": 8}, "offsets": {"offsets": array("i", [0, 8, 16])}}
    built = case.build(native, KNOWN, **secrets(case))
    for use in uses(native, case, built):
        keys = PackedKeys(bytes(16), **few[first])
        sys.setprofile(becoming(keys, data=bytes(50_000), **many[then]))
        try:
            told = outcome(use, keys)
        finally:
            sys.setprofile(None)
        assert len(keys) == 50_000, "it was not made anew"
        assert not isinstance(told, list) or len(told) <= 16
        if isinstance(told, tuple) and isinstance(told[0], type):
            assert issubclass(told[0], ValueError | RuntimeError), told


@every_family
def test_packed_keys_that_were_never_made_are_an_error(case: Case) -> None:
    hollow = PackedKeys.__new__(PackedKeys)
    halfway = PackedKeys.__new__(PackedKeys)
    with pytest.raises(ValueError, match="width=0 is out of range"):
        halfway.__init__(b"data", width=0)  # type: ignore[misc]
    for kernel in twins():
        built = case.build(kernel, KNOWN, **secrets(case))
        for keys in (hollow, halfway):
            with pytest.raises((AttributeError, RuntimeError)):
                built.might_contain_many(keys)
            with pytest.raises((AttributeError, RuntimeError)):
                case.cls(kernel).digests().add_many(keys)
            with pytest.raises((AttributeError, RuntimeError)):
                case.build(kernel, keys)
