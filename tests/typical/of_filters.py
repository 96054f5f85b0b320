"""What programs do with filters, as type checkers see it: ``test_typical.py`` does both."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import assert_type

import numpy as np
from numpy.typing import NDArray

import filters
from filters import (
    BlockedBloomFilter,
    BumpedRibbonFilter,
    ClassicBloomFilter,
    CountingBloomFilter,
    CuckooFilter,
    GrafiteFilter,
    LevelDBBloomFilter,
    PackedKeys,
    ScalableBloomFilter,
    SurfFilter,
    XorFilter,
    sizing,
)


def building(urls: list[str], rows: list[bytes], numbers: NDArray[np.int64]) -> None:
    """Filters of keys in every form."""
    assert_type(BlockedBloomFilter.build(urls, bits_per_key=10), BlockedBloomFilter)
    assert_type(BlockedBloomFilter.build(rows, fpr=0.01, seed=1, salt=2), BlockedBloomFilter)
    assert_type(CuckooFilter.build(numbers, fpr=0.001), CuckooFilter)
    assert_type(XorFilter.build(np.array(urls)), XorFilter)
    assert_type(BumpedRibbonFilter.build(map(str.encode, urls), fpr=0.01), BumpedRibbonFilter)
    assert_type(LevelDBBloomFilter.build({*rows}, bits_per_key=10), LevelDBBloomFilter)
    packed = PackedKeys(b"".join(row[:3] for row in rows), width=3)
    assert_type(packed[0], bytes)
    assert_type(packed[:1], list[bytes])
    assert_type(ClassicBloomFilter.build(packed), ClassicBloomFilter)
    ends = np.arange(len(rows) + 1, dtype=np.int32)
    assert_type(len(PackedKeys(bytes(len(rows)), offsets=ends)), int)
    digests = XorFilter.digests(seed=7)
    digests.add_many(rows)
    assert_type(XorFilter.build(digests), XorFilter)


def asking(f: BlockedBloomFilter | CuckooFilter, keys: list[str], into: NDArray[np.bool_]) -> int:
    """Questions for one key and for many, with their answers in a list, memory or a column."""
    assert_type(f.might_contain("key"), bool)
    assert_type(f.might_contain(memoryview(b"key")), bool)
    assert_type(f.might_contain_digest(filters.digest(b"key", f.digest_seed)), bool)
    assert_type(f.might_contain_many(keys), list[bool])
    assert_type(f.might_contain_many([b"key", "text", bytearray(b"other")]), list[bool])
    assert_type(f.might_contain_many(np.array(keys), nulls="skip"), list[bool])
    assert_type(f.might_contain_many(keys, bytearray(len(keys))), bytearray)
    assert_type(f.might_contain_many(keys, into), NDArray[np.bool_])
    assert_type(f.might_contain_many(keys, out=into), NDArray[np.bool_])
    answers = f.might_contain_many(keys, out="arrow")
    assert_type(answers[0], bool | None)
    assert_type(answers[:2], list[bool | None])
    assert_type(list(answers), list[bool | None])
    return sum(f.might_contain_many(keys))


def growing(keys: Iterator[str]) -> list[str]:
    """Filters that keys are added to, removed from, united."""
    seen = ScalableBloomFilter.with_capacity(100, fpr=0.01)
    assert_type(seen, ScalableBloomFilter)
    new = [key for key in keys if seen.add(key)]
    first, second = (ClassicBloomFilter.with_capacity(100, seed=1, salt=1) for _ in range(2))
    first.add_many(new)
    assert_type(first.union(second), ClassicBloomFilter)
    counting = CountingBloomFilter.build(new, fpr=0.01)
    assert_type(counting.remove(new[0]), bool)
    assert_type(counting.collapse(), ClassicBloomFilter)
    return new


def storing(f: CuckooFilter) -> bytes:
    """Bytes, and what they open to."""
    data = f.to_bytes()
    assert_type(data, bytes)
    assert_type(CuckooFilter.from_bytes(memoryview(data)), CuckooFilter)
    assert pickle.loads(pickle.dumps(f)) == f
    assert_type(f.num_keys, int)
    assert_type(f.bits_per_key, float | None)
    assert_type(f.expected_fpr, float)
    assert_type(LevelDBBloomFilter.from_bytes(b"\x00\x01").num_keys, int | None)
    try:
        CuckooFilter.from_bytes(data[:-1])
    except filters.CorruptFilterError as error:
        assert_type(error, filters.CorruptFilterError)
    return data


def as_sets(first: ClassicBloomFilter, second: ClassicBloomFilter) -> ClassicBloomFilter:
    """What Python has for sets."""
    assert_type("key" in first, bool)
    assert_type(b"key" not in first, bool)
    assert_type(bytes(first), bytes)
    assert_type(first.copy(), ClassicBloomFilter)
    first.update(["a", "b"], [b"c"], {"d": 1})
    assert_type(first | second, ClassicBloomFilter)
    first |= second
    assert_type(first, ClassicBloomFilter)
    assert_type(first.union(second, second.copy()), ClassicBloomFilter)
    second.clear()
    return first


def saving(f: CuckooFilter, path: Path) -> None:
    """Files, mapped and read."""
    f.save(path)
    assert_type(CuckooFilter.load(path), CuckooFilter)
    assert_type(CuckooFilter.load(str(path), mmap=False), CuckooFilter)
    opened = filters.load(path)
    assert_type(opened.family, str)
    assert_type(opened.might_contain_many(["key", b"key"]), list[bool])
    assert_type(opened.num_keys, int | None)
    assert_type(filters.load(f.to_bytes()).expected_fpr, float)
    if isinstance(opened, CuckooFilter):
        assert_type(opened.remove("key"), bool)


def ranges(keys: list[bytes]) -> None:
    """Filters that answer for ranges."""
    for f in (SurfFilter.build(keys), GrafiteFilter.build([key[:8] for key in keys])):
        assert_type(f.may_contain_range(b"a", None), bool)
        assert_type(f.may_contain_range("a", "b"), bool)


def sized(filter: ClassicBloomFilter) -> None:
    """Sizes and rates, without a filter and of one."""
    assert_type(sizing.bits_per_key("blocked", n=1_000_000, fpr=0.01), float)
    assert_type(sizing.fpr("cuckoo", fingerprint_bits=8), float)
    assert_type(sizing.lower_bound(0.01), float)
    assert_type(sizing.estimate_num_keys(filter), float)


def use(path: Path) -> int:
    """All of it."""
    urls = [f"https://example.org/{number}" for number in range(100)]
    rows = [url.encode() for url in urls]
    building(urls, rows, np.arange(100))
    blocked = BlockedBloomFilter.build(urls)
    cuckoo = CuckooFilter.build(rows)
    into = np.zeros(len(urls), dtype=np.bool_)
    found = asking(blocked, urls, into) + asking(cuckoo, urls, into)
    growing(iter(urls))
    storing(cuckoo)
    saving(cuckoo, path)
    empty = ClassicBloomFilter.with_capacity(100)
    as_sets(empty.copy(), empty)
    ranges(rows)
    sized(ClassicBloomFilter.build(rows))
    return found
