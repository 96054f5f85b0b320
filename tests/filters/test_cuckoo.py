"""The cuckoo filter: every load, copies, removal, refusal, and its size."""

from __future__ import annotations

import random
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from filters import CapacityError, cuckoo, kernels
from filters.header import OVERHEAD
from tests.effort import examples, once
from tests.filters.cases import positives, random_keys


@once
@pytest.mark.parametrize("load", [0.5, 0.75, 0.9, 0.95])
@pytest.mark.parametrize("bits", [6, 8, 12, 13, 16, 31, 32])
def test_no_key_is_lost_at_any_load(
    kernel: ModuleType, load: float, bits: int, rng: random.Random
) -> None:
    table = kernel.CuckooFilter.with_capacity(5003, fingerprint_bits=bits)
    keys = random_keys(rng, int(load * 4 * table.num_buckets))
    for key in keys:
        table.add(key)
    assert table.fill == pytest.approx(load, abs=0.001)
    assert table.num_keys == len(keys)
    assert all(table.might_contain_many(keys))
    again = kernel.CuckooFilter.from_bytes(table.to_bytes())
    assert all(again.might_contain_many(keys))


def test_removing_a_twin_leaves_the_other(kernel: ModuleType, rng: random.Random) -> None:
    """Two keys of one fingerprint in one bucket: either copy serves the one that is left."""
    table = kernel.CuckooFilter.with_capacity(2000, fingerprint_bits=6)
    keys = random_keys(rng, 1800)
    for key in keys:
        table.add(key)
    gone = set(rng.sample(keys, 900))
    for key in gone:
        assert table.remove(key)
    left = [key for key in keys if key not in gone]
    assert all(table.might_contain_many(left))
    assert table.num_keys == 900
    for key in left:
        assert table.remove(key)
    assert table.num_keys == 0
    assert positives(table, keys) == 0
    assert set(table.to_bytes()[40:-8]) == {0}


def test_a_key_known_to_be_absent_is_not_removed(kernel: ModuleType, rng: random.Random) -> None:
    table = kernel.CuckooFilter.build(random_keys(rng, 500), fingerprint_bits=16)
    before = table.to_bytes()
    absent = [key for key in random_keys(rng, 500, length=9) if not table.might_contain(key)]
    assert len(absent) > 480
    assert not any(table.remove(key) for key in absent)
    assert table.to_bytes() == before


def test_eight_copies_fit_and_the_ninth_is_refused(kernel: ModuleType) -> None:
    table = kernel.CuckooFilter.with_capacity(1000, seed=1, salt=2)
    for _ in range(8):
        table.add(b"key")
    before = table.to_bytes()
    with pytest.raises(CapacityError, match="8 of 1056 slots.*8 times.*larger"):
        table.add(b"key")
    assert table.to_bytes() == before
    for other in (b"other%d" % i for i in range(900)):
        table.add(other)
    for _ in range(8):
        assert table.remove(b"key")
    assert table.might_contain(b"other1")
    assert table.num_keys == 900


def test_a_full_table_refuses_and_stays_as_it_was(kernel: ModuleType, rng: random.Random) -> None:
    table = kernel.CuckooFilter.with_capacity(300, seed=rng.getrandbits(64))
    stored, before = [], table.to_bytes()
    refused = None
    for key in random_keys(rng, 400):
        try:
            table.add(key)
        except CapacityError:
            refused = key
            break
        stored.append(key)
        before = table.to_bytes()
    assert refused is not None
    assert table.to_bytes() == before
    assert len(stored) > 300
    assert all(table.might_contain_many(stored))
    assert all(table.remove(key) for key in stored)
    table.add(refused)
    assert table.might_contain(refused)


@once
@pytest.mark.parametrize("bits", [6, 7, 8, 11, 16, 24, 31, 32])
@pytest.mark.parametrize("count", [1000, 1001, 2500, 20_000])
def test_the_payload_stays_within_five_percent(
    kernel: ModuleType, bits: int, count: int, rng: random.Random
) -> None:
    built = kernel.CuckooFilter.build(random_keys(rng, count), fingerprint_bits=bits)
    payload = built.size_in_bytes - OVERHEAD
    assert OVERHEAD <= 64
    assert payload * 8 / count <= 1.05 * bits / 0.95
    assert built.fill <= 0.9501


def test_building_keeps_one_copy_of_each_key(kernel: ModuleType, rng: random.Random) -> None:
    keys = random_keys(rng, 700)
    built = kernel.CuckooFilter.build(keys * 20)
    assert built.num_keys == 700
    assert all(built.remove(key) for key in keys)
    assert positives(built, keys) == 0


def test_a_build_that_fails_grows_and_salts_anew(
    kernel: ModuleType, rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At a load of 99 % no table of this size can be filled; nothing partly filled comes back."""
    monkeypatch.setattr(cuckoo, "TARGET_LOAD", 0.995)
    keys = random_keys(rng, 2000)
    planned = cuckoo.plan(2000, cuckoo.check()).buckets
    built = kernel.CuckooFilter.build(keys, seed=5, salt=7)
    assert built.num_buckets > planned
    assert built.num_keys == 2000
    assert all(built.might_contain_many(keys))
    assert built == kernel.CuckooFilter.build(keys[::-1], seed=5, salt=7)
    assert built.to_bytes()[32:40] != (7).to_bytes(8, "little")


@given(buckets=st.integers(1, 2**36), fingerprint=st.integers(1, 2**32 - 1), data=st.data())
def test_the_alternate_bucket_leads_back_for_any_number_of_buckets(
    kernel: ModuleType, buckets: int, fingerprint: int, data: st.DataObject
) -> None:
    bucket = data.draw(st.integers(0, buckets - 1))
    salt = data.draw(st.integers(0, 2**64 - 1))
    other = kernel.cuckoo.alternate(bucket, fingerprint, buckets, salt)
    assert 0 <= other < buckets
    assert kernel.cuckoo.alternate(other, fingerprint, buckets, salt) == bucket


def test_fewer_fingerprint_bits_never_have_a_lower_rate() -> None:
    rates = [cuckoo.rate(0.95, bits) for bits in range(6, 33)]
    assert rates == sorted(rates, reverse=True)
    for wanted in (0.5, 0.1, 0.01, 1e-4, 2e-9):
        bits = cuckoo.fingerprint_bits_for(cuckoo.check(fpr=wanted))
        assert cuckoo.rate(0.95, bits) <= wanted
        assert bits == 6 or cuckoo.rate(0.95, bits - 1) > wanted


@pytest.mark.parametrize("wrong", [5, 33, 12.0, True, "12"])
def test_fingerprint_bits_outside_the_range_are_refused(kernel: ModuleType, wrong: Any) -> None:
    with pytest.raises((ValueError, TypeError), match="fingerprint_bits of a cuckoo filter is"):
        kernel.CuckooFilter.build([], fingerprint_bits=wrong)


class CuckooAgainstACounter(RuleBasedStateMachine):
    """Any sequence of adds and removes agrees with a dictionary of copies."""

    kernel_name = "python"

    def __init__(self) -> None:
        super().__init__()
        self.table = kernels.load(self.kernel_name).CuckooFilter.with_capacity(
            40, fingerprint_bits=32, seed=1, salt=1
        )
        self.copies: dict[bytes, int] = {}

    @rule(key=st.integers(0, 30).map(lambda number: b"key%d" % number))
    def add(self, key: bytes) -> None:
        before = self.table.to_bytes()
        try:
            self.table.add(key)
        except CapacityError:
            assert self.table.to_bytes() == before
            # The 31 keys fit once each. Copies can fill all buckets that a few keys lead to, at any
            # load of the whole table.
            assert max(self.copies.values()) >= 2
        else:
            self.copies[key] = self.copies.get(key, 0) + 1

    @precondition(lambda self: self.copies)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.copies)))
        assert self.table.remove(key) == (self.copies[key] > 0)
        self.copies[key] = max(0, self.copies[key] - 1)

    @invariant()
    def everything_is_there(self) -> None:
        assert self.table.num_keys == sum(self.copies.values())
        for key, copies in self.copies.items():
            assert self.table.might_contain(key) or not copies


@pytest.mark.parametrize("name", kernels.available())
def test_copies_agree_with_a_dictionary(name: str) -> None:
    machine = type("Machine", (CuckooAgainstACounter,), {"kernel_name": name})
    run_state_machine_as_test(machine, settings=settings(examples(40), stateful_step_count=60))
