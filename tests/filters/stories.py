"""All there is to be seen of a filter in some bytes: its answers, what it tells, how it goes on.

A story is a list of facts, in order, which are equal for both kernels; what no filter may do,
whatever its bytes are, fails while it is told.
"""

from __future__ import annotations

import copy
import pickle
import random
from array import array
from collections.abc import Callable, Iterator
from itertools import accumulate
from types import ModuleType
from typing import Any

from filters import CapacityError, FilterError, PackedKeys
from filters.header import FAMILY_IDS
from tests.filters import independent_cassandra, independent_reader
from tests.filters.cases import class_of, twins
from tests.filters.independent_reader import RefusedError
from tests.filters.test_c_door import opened

Fact = tuple[str, Any]

# Lengths at which hashes take another way, and some of each in between.
_LENGTHS = [0, 1, 3, 4, 8, 9, 16, 17, 32, 33, 128, 129, 240, 241, 1000, *range(2, 40, 2)]
_RNG = random.Random("keys")
KEYS = [_RNG.randbytes(length) for length in _LENGTHS]
ADDED = [_RNG.randbytes(12) for _ in range(24)]
DIGESTS = [0, 1, 2**32 - 1, 2**32, 2**63 - 1, 2**63, 2**64 - 1]
DIGESTS += [_RNG.getrandbits(64) for _ in range(20)]

# Cassandra's filters mean what the version of their SSTable says.
VERSIONS = {"cassandra": ("la", "ma", "na")}

# Of these the rate is measured on the filter itself, which takes the readable kernel seconds.
MEASURED = {"leveldb", "rocksdb", "ribbon", "cassandra"}

# These have a page of their own, and a reader that was written from it, which takes its time.
SPECIFIED = {*FAMILY_IDS, "cassandra"}
JUDGED = 3

# No filter takes more times its bytes when it goes on growing, beside this.
MOST_TIMES_LARGER = 9
A_LITTLE = 4096


def packed(keys: list[bytes]) -> PackedKeys:
    return PackedKeys(b"".join(keys), offsets=array("q", accumulate(map(len, keys), initial=0)))


def story(kernel: ModuleType, family: str, data: bytes) -> list[Fact]:
    """What this kernel makes of these bytes, under every version there is."""
    cls = class_of(kernel, family)
    facts: list[Fact] = []
    for version in VERSIONS.get(family, ("",)):
        how = {"sstable_version": version} if version else {}
        facts += _read(cls, family, data, how)
    return facts


def _read(cls: Any, family: str, data: bytes, how: dict[str, str]) -> Iterator[Fact]:
    judge = judged(family, data, **how)
    built = opened_or_refused(cls, data, how)
    if isinstance(built, FilterError):
        yield "refused", (type(built).__name__, str(built))
        assert judge is None, "the page reads what is refused"
        return
    assert judge is not None or family not in SPECIFIED, "the page refuses what is read"
    answers = list(asked(built))
    yield "answers", answers
    if judge is not None:
        some = [judge.answer(key) for key in KEYS[::JUDGED]]
        assert some == answers[::JUDGED], "the page answers otherwise"
    yield "digests", digested(built)
    yield "ranges", ranges(built, judge)
    yield from told(built, family)
    written = built.to_bytes(**how)
    assert bytes(written) == data, "other bytes are written than were read"
    for again in (cls.from_bytes(bytearray(data), **how), copied(built)):
        assert again == built
        assert again.might_contain_many(KEYS) == answers
    if hasattr(built, "add"):
        yield from grown(built, len(data))


def opened_or_refused(cls: Any, data: bytes, how: dict[str, str]) -> Any:
    """The filter in these bytes, or the error that says why there is none: no other error may."""
    try:
        return cls.from_bytes(data, **how)
    except FilterError as refusal:
        return refusal


def judged(family: str, data: bytes, sstable_version: str = "na") -> Any:
    """A reader written from the page that specifies these bytes; None where it refuses them."""
    if family not in SPECIFIED:
        return None
    try:
        if family == "cassandra":
            return independent_cassandra.Reader(data, sstable_version)
        reader = independent_reader.read(data)
        return reader if reader.frame.family == family else None
    except RefusedError:
        return None


def asked(built: Any) -> Iterator[bool]:
    """The answers to all keys, which are the same however they are asked for."""
    answers = [built.might_contain(key) for key in KEYS]
    for form in (KEYS, tuple(KEYS), iter(KEYS), packed(KEYS)):
        assert built.might_contain_many(form) == answers
    out = bytearray(len(KEYS))
    assert built.might_contain_many(packed(KEYS), out) is out
    assert list(map(bool, out)) == answers
    if hasattr(built, "__lsm_probe__"):
        door = opened(built)
        assert [bool(door.ask(key)) for key in KEYS] == answers
    return iter(answers)


def ranges(built: Any, judge: Any) -> list[Any]:
    """The answers for ranges between keys, without bounds, and of one key; how many are missed."""
    if not hasattr(built, "may_contain_range"):
        return []
    bounds = [None, *KEYS[:40:3], *sorted(KEYS)[:40:3]]
    asked = [(low, high) for low in bounds for high in bounds]
    asked += [(key, key + b"\x00") for key in KEYS]
    digests = type(built).digests()
    digests.add_many(KEYS)
    answers = [built.may_contain_range(low, high) for low, high in asked]
    for (low, high), answer in list(zip(asked, answers, strict=True))[::JUDGED]:
        if low is not None and high is not None:
            assert judge.answer_range(low, high) == answer, "the page answers otherwise"
    return [*answers, built.count_missing(digests)]


def digested(built: Any) -> list[Any]:
    """The same by digests: of all keys at once, and of numbers that no key may have."""
    if not hasattr(built, "digest_seed"):
        return []
    digests = type(built).digests(seed=built.digest_seed)
    digests.add_many(KEYS)
    for digest in DIGESTS:
        digests.add_digest(digest)
    answers = [built.might_contain_digest(digest) for digest in DIGESTS]
    missing = built.count_missing(digests)
    assert missing == (answers + built.might_contain_many(KEYS)).count(False)
    return answers


def told(built: Any, family: str) -> Iterator[Fact]:
    """What a filter tells about itself."""
    yield "repr", repr(built)
    for name in dir(type(built)):
        if name.startswith("_") or (name == "expected_fpr" and family in MEASURED):
            continue
        value = getattr(built, name)
        if callable(value):
            continue
        if name in ("expected_fpr", "fill"):
            assert value >= 0
        if name == "expected_fpr":
            assert value <= 1
        yield name, value


def copied(built: Any) -> Any:
    return copy.deepcopy(copy.copy(pickle.loads(pickle.dumps(built))))


def grown(built: Any, size: int) -> Iterator[Fact]:
    """Keys are added until they find no room, and are then all there; nothing gets out of hand."""
    known: list[bytes] = []
    yield "add", taken(lambda: known.extend(key for key in ADDED if _add(built, key)), built)
    assert all(built.might_contain_many(known))
    yield "add many", taken(lambda: built.add_many(KEYS), built)
    yield "add packed", taken(lambda: built.add_many(packed(ADDED)), built)
    assert all(built.might_contain_many(known))
    yield "bytes", built.to_bytes()
    yield "answers", list(asked(built))
    others = [type(built).with_capacity(like=built)]
    yield "add to another", taken(lambda: others[0].add(b"x"), others[0])
    if hasattr(built, "union"):
        others.append(built.union(others[0]))
        assert others[1].might_contain_many(known) == [True] * len(known)
    if hasattr(built, "remove"):
        yield "remove", [built.remove(key) for key in ADDED + KEYS]
    if hasattr(built, "collapse"):
        others.append(built.collapse())
        yield "answers once collapsed", list(asked(others[-1]))
    for each in (built, *others):
        written = each.to_bytes()
        yield "bytes", written
        assert type(each).from_bytes(written) == each
        assert each.size_in_bytes == len(written) <= MOST_TIMES_LARGER * size + A_LITTLE


def _add(built: Any, key: bytes) -> bool:
    built.add(key)
    return True


def taken(add: Callable[[], Any], built: Any) -> Any:
    """What comes of adding, where a full filter says so, and how many keys there are then."""
    try:
        outcome = add()
    except CapacityError as full:
        outcome = str(full)
    return outcome, built.num_keys


def assert_alike(family: str, data: bytes) -> None:
    """Both kernels tell the same story of these bytes; else they belong into the corpus."""
    try:
        one, two = (story(kernel, family, data) for kernel in twins())
        for python, native in zip(one, two, strict=True):
            assert python == native
    except Exception as error:
        error.add_note(f"tests/filters/corpus/{family}.hex is to keep:\n{data.hex()}")
        raise
