"""Single flipped bits: those that hide a key are found, all of them, and with keys no others."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest

import filters
from filters import (
    CassandraBloomFilter,
    LevelDBBloomFilter,
    RocksDBBloomFilter,
    RocksDBRibbonFilter,
)
from lsm.errors import CorruptionError
from lsm.survey import damage as damaging
from lsm.survey.damage import Damage, damage
from lsm.survey.found import FilterFound, Guard
from lsm.survey.look import look
from lsm.survey.measure import measure
from lsm.survey.split_block import SplitBlockFilter
from tests.effort import by_effort, spread
from tests.filters import independent_cassandra
from tests.filters.test_rocksdb import THREE_LEGACY
from tests.lsm.survey.parquet_files import Column, bloom_header, file_of, inserted

Answer = Callable[[bytes, bytes], bool | None]
"""What a filter of some bytes says to a key; None where they are refused."""


def keys_of(rng: random.Random, count: int) -> list[bytes]:
    """Keys of all lengths, some of them twice."""
    keys = [rng.randbytes(rng.randrange(1, 30)) for _ in range(count)]
    return sorted(keys + keys[:2])


def found(reader: Any, keys: Sequence[bytes] | None, size: int = 0, **known: Any) -> FilterFound:
    return FilterFound(
        where="filter block",
        offset=100,
        size=size,
        family=getattr(reader, "family", None),
        form="of a test",
        guard=Guard(),
        reader=reader,
        keys=None if keys is None else lambda: iter(keys),
        **known,
    )


def by_force(data: bytes, keys: Sequence[bytes], answer: Answer) -> set[int]:
    """Each bit by whose flip a key is denied: by flipping each, and asking for each key."""
    hiding = set()
    for bit in range(8 * len(data)):
        changed = bytearray(data)
        changed[bit >> 3] ^= 1 << (bit & 7)
        if any(answer(bytes(changed), key) is False for key in keys):
            hiding.add(bit)
    return hiding


def hidden_by(found: Damage) -> set[int]:
    hiding = {bit for bit in range(found.bits) if found.hides(bit)}
    assert found.count == len(hiding)
    return hiding


def reads_as_cassandra(version: str) -> Answer:
    """A reader of the page's rules that believes any header, as Cassandra does."""

    def answer(data: bytes, key: bytes) -> bool | None:
        probes = int.from_bytes(data[:4], "big", signed=True)
        words = int.from_bytes(data[4:8], "big", signed=True)
        if words < 1 or 8 + 8 * words > len(data):
            return None
        reader = independent_cassandra.Reader(b"", version)
        reader.data, reader.words, reader.probes = data, words, min(probes, 1000)
        return reader.answer(key)

    return answer


SIZES = [1, 5, 40]


@pytest.mark.parametrize("version", ["ka", "me", "nb"])
@pytest.mark.parametrize("count", SIZES)
def test_every_hiding_bit_of_cassandras_filter_is_found(
    version: str, count: int, rng: random.Random, tmp_path: Path
) -> None:
    keys = keys_of(rng, count)
    data = bytearray(CassandraBloomFilter.build(keys, fp_chance=0.05).to_bytes())
    if version == "ka":
        data[8:] = of_the_old_order(bytes(data[:8]), keys)
    elif version == "me":
        data = bytearray(
            CassandraBloomFilter.from_bytes(bytes(data)).to_bytes(sstable_version="me")
        )
    path = tmp_path / f"x-y-{version}-1-Filter.db"
    path.write_bytes(data)
    (each,) = look(path).filters
    truth = by_force(bytes(data), keys, reads_as_cassandra(version))
    exact = damage(attrs.evolve(each, keys=lambda: iter(keys)))
    assert hidden_by(exact) == truth
    assert exact.is_exact
    without = damage(each)
    assert hidden_by(without) >= truth
    assert {bit for bit in hidden_by(without) if bit >= 64} == {bit for bit in truth if bit >= 64}
    assert (without.is_exact, without.is_guarded, without.offset) == (False, False, 0)
    assert path.read_bytes() == data


class Recorder(independent_cassandra.Reader):
    """Where a filter is looked at, of which all bits are set."""

    def __init__(self, header: bytes, version: str):
        words = int.from_bytes(header[4:8], "big")
        super().__init__(header + b"\xff" * 8 * words, version)
        self.asked: list[int] = []

    def bit(self, number: int) -> int:
        self.asked.append(number)
        return super().bit(number)


def of_the_old_order(header: bytes, keys: Sequence[bytes]) -> bytes:
    """The words of a filter of these keys before the order was swapped, by the page's rules."""
    reader = Recorder(header, "ka")
    for key in keys:
        assert reader.answer(key)
    bits = bytearray(8 * reader.words)
    for number in reader.asked:
        bits[number // 8 ^ 7] |= 1 << number % 8
    return bytes(bits)


@pytest.mark.parametrize("count", SIZES)
@pytest.mark.parametrize("bits_per_key", [3, 10])
def test_every_hiding_bit_of_leveldbs_filter_is_found(
    count: int, bits_per_key: int, rng: random.Random
) -> None:
    keys = keys_of(rng, count)
    built = LevelDBBloomFilter.build(keys, bits_per_key=bits_per_key)
    read = LevelDBBloomFilter.from_bytes
    truth = by_force(built.to_bytes(), keys, lambda data, key: read(data).might_contain(key))
    exact = damage(found(built, keys, built.size_in_bytes))
    assert hidden_by(exact) == truth
    assert (exact.is_exact, exact.is_guarded) == (True, False)
    assert hidden_by(damage(found(built, None))) >= truth


@pytest.mark.parametrize("count", SIZES)
@pytest.mark.parametrize("optimized", [False, True])
def test_every_hiding_bit_of_rocksdbs_filter_is_found(
    count: int, optimized: bool, rng: random.Random
) -> None:
    keys = keys_of(rng, count)
    built = RocksDBBloomFilter.build(keys, optimize_filters_for_memory=optimized)
    check_rocksdbs(built, keys)


def test_every_hiding_bit_of_rocksdbs_older_filter_is_found() -> None:
    built = RocksDBBloomFilter.from_bytes(THREE_LEGACY)
    assert built.form == "legacy"
    check_rocksdbs(built, [b"bar", b"foo", b"hello"])


def check_rocksdbs(built: RocksDBBloomFilter, keys: Sequence[bytes]) -> None:
    assert all(built.might_contain_many(keys))
    read = RocksDBBloomFilter.from_bytes
    truth = by_force(built.to_bytes(), keys, lambda data, key: read(data).might_contain(key))
    assert hidden_by(damage(found(built, keys))) == truth
    assert hidden_by(damage(found(built, None))) >= truth


def test_every_hiding_bit_of_a_ribbon_filter_is_found(rng: random.Random) -> None:
    """Bits of any value: slots xor to what a key expects."""
    keys = sorted({rng.randbytes(8) for _ in range(800)})
    built = RocksDBRibbonFilter.build(keys, bits_per_key=5)
    assert built.form == "ribbon"
    exact = damage(found(built, keys))
    data = built.to_bytes()
    for bit in spread(range(8 * len(data)), by_effort(100, 1500, None)):
        changed = bytearray(data)
        changed[bit >> 3] ^= 1 << (bit & 7)
        denies = not all(RocksDBRibbonFilter.from_bytes(bytes(changed)).might_contain_many(keys))
        assert exact.hides(bit) == denies, bit
    assert hidden_by(damage(found(built, None))) >= hidden_by(exact)


def test_every_hiding_bit_of_parquets_filter_is_found(rng: random.Random, tmp_path: Path) -> None:
    keys = keys_of(rng, 20)
    stored = bloom_header(96) + inserted(96, keys)
    path = tmp_path / "some.parquet"
    path.write_bytes(file_of([[Column(b"c", stored)]]))
    (each,) = look(path).filters

    def answer(data: bytes, key: bytes) -> bool | None:
        try:
            return SplitBlockFilter.from_bytes(data).might_contain(key)
        except CorruptionError:
            return None

    truth = by_force(stored, keys, answer)
    exact = damage(attrs.evolve(each, keys=lambda: iter(keys)))
    assert hidden_by(exact) == truth
    assert any(bit < 8 * (len(stored) - 96) for bit in truth)  # fewer blocks
    assert exact.offset == each.offset
    at, bit = next(exact.places())
    assert exact.hides(8 * (at - each.offset) + bit)
    without = damage(attrs.evolve(each, keys=None))
    assert hidden_by(without) >= truth
    assert not without.is_guarded


@pytest.mark.parametrize("family", ["blocked", "xor", "cuckoo", "surf"])
def test_no_flip_of_what_has_a_checksum_within_is_believed(family: str, rng: random.Random) -> None:
    keys = sorted({rng.randbytes(8) for _ in range(30)})
    built = filters.kernels.filter_class(family).build(keys)  # type: ignore[attr-defined]
    exact = damage(found(built, keys))
    assert (exact.count, exact.is_exact) == (0, True)
    assert exact.bits == 8 * len(built.to_bytes())


@attrs.frozen
class Xored:
    """A filter of a form that nobody knows: a key is in where its byte is what it should be."""

    data: bytes

    @classmethod
    def from_bytes(cls, data: bytes) -> Xored:
        return cls(data)

    def to_bytes(self) -> bytes:
        return self.data

    def might_contain(self, key: bytes) -> bool:
        return self.data[key[0] % len(self.data)] == key[1] % 4

    def might_contain_many(self, keys: Sequence[bytes]) -> list[bool]:
        return [self.might_contain(key) for key in keys]


def test_of_an_unknown_form_each_flip_is_tried_if_that_is_soon_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    keys = [bytes((place, place % 4)) for place in (1, 5, 6)]
    each = found(Xored(bytes(place % 4 for place in range(16))), keys)
    exact = damage(each)
    assert hidden_by(exact) == {8 * byte + bit for byte in (1, 5, 6) for bit in range(8)}
    assert exact.is_exact
    monkeypatch.setattr(damaging, "_MOST_QUESTIONS", 3 * 128 - 1)
    for either in (damage(each), damage(attrs.evolve(each, keys=None))):
        assert (either.count, either.is_exact) == (128, False)


def test_a_key_that_is_denied_already_is_not_hidden_by_another_flip() -> None:
    built = LevelDBBloomFilter.build([b"in"])
    assert damage(found(built, [b"in", b"not in"])).hiding == damage(found(built, [b"in"])).hiding


def test_what_is_said_to_hide_a_key_does(rng: random.Random) -> None:
    """As measuring the damaged filter shows, of keys enough for several chunks."""
    keys = sorted({rng.randbytes(6) for _ in range(9000)})
    built = LevelDBBloomFilter.build(keys)
    watched: list[int] = []
    exact = damage(found(built, keys), watch=watched.append)
    assert sum(watched) == len(keys)
    hiding = hidden_by(exact)
    for bit in [*rng.sample(range(exact.bits), by_effort(10, 60, 1000)), exact.bits - 8]:
        changed = bytearray(built.to_bytes())
        changed[bit >> 3] ^= 1 << (bit & 7)
        damaged = LevelDBBloomFilter.from_bytes(bytes(changed))
        assert (measure(found(damaged, keys), 1, seed=1).denied > 0) == (bit in hiding)


def test_an_empty_file_has_no_bits_to_flip(tmp_path: Path) -> None:
    path = tmp_path / "nb-1-big-Filter.db"
    path.write_bytes(b"")
    (each,) = look(path).filters
    assert damage(each).bits == damage(attrs.evolve(each, keys=lambda: iter([b"a"]))).bits == 0


def test_a_filter_that_cannot_be_asked_is_refused() -> None:
    with pytest.raises(ValueError, match="filter block cannot be asked: it is encrypted"):
        damage(found(None, None, problem="it is encrypted"))
    with pytest.raises(ValueError, match="filter block: nobody here has the bytes"):
        damage(found(object(), None))
