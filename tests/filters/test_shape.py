"""What every family's object can do, and how it says no."""

from __future__ import annotations

import array
import mmap
import pickle
import random
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import filters
from filters import FilterError
from tests.filters.cases import (
    OF_A_RATE_ONLY,
    OF_ANY_CAPACITY,
    Case,
    every_case,
    every_family,
    every_growing_family,
    every_salted_case,
    every_salted_digested_family,
    every_salted_family,
    positives,
    random_keys,
)

KEYS = [b"key%d" % i for i in range(500)]
OTHERS = [b"other%d" % i for i in range(500)]
SEED, SALT = 0x0123_4567_89AB_CDEF, 0xFEDC_BA98_7654_3210


@every_case
def test_bytes_round_trip_to_an_equal_filter(kernel: ModuleType, case: Case) -> None:
    built = case.build(kernel, KEYS)
    again = case.cls(kernel).from_bytes(built.to_bytes())
    assert again == built
    assert again.to_bytes() == built.to_bytes()
    assert len(built.to_bytes()) == built.size_in_bytes == again.size_in_bytes
    assert again.might_contain_many(OTHERS) == built.might_contain_many(OTHERS)
    assert again.expected_fpr == pytest.approx(built.expected_fpr)
    assert again.fill == pytest.approx(built.fill)


@every_family
def test_pickle_carries_the_bytes(kernel: ModuleType, case: Case) -> None:
    built = case.build(kernel, KEYS)
    again = pickle.loads(pickle.dumps(built))
    assert again == built
    assert built.to_bytes() in pickle.dumps(built)


@every_family
def test_filters_of_other_keys_or_other_things_are_not_equal(
    kernel: ModuleType, case: Case
) -> None:
    built = case.build(kernel, KEYS)
    assert built != case.build(kernel, OTHERS)
    assert built != built.to_bytes()
    assert built is not None
    with pytest.raises(TypeError, match="unhashable"):
        hash(built)


@every_case
def test_single_and_many_agree(kernel: ModuleType, case: Case) -> None:
    built = case.build(kernel, KEYS)
    answers = built.might_contain_many(iter(KEYS + OTHERS))
    assert answers == [built.might_contain(key) for key in KEYS + OTHERS]
    assert all(type(answer) is bool for answer in answers)
    assert built.might_contain_many([]) == []


@every_family
def test_keys_may_be_any_bytes_like(kernel: ModuleType, case: Case) -> None:
    numbers = array.array("Q", [1, 2, 3])
    sliced = memoryview(b"a.b.c.d.")[::2]
    built = case.build(kernel, [bytearray(b"one"), memoryview(b"two"), numbers, sliced])
    for same in (b"one", bytearray(b"two"), numbers.tobytes(), b"abcd"):
        assert built.might_contain(same)
    assert built.might_contain_many([memoryview(b"one"), numbers]) == [True, True]


@every_family
@pytest.mark.parametrize("wrong", [7, None, 1.5, ["list"]])
def test_other_keys_are_type_errors_that_help(
    kernel: ModuleType, case: Case, wrong: object
) -> None:
    advice = "a key is bytes-like or str, not"
    built = case.build(kernel, KEYS)
    with pytest.raises(TypeError, match=advice):
        case.build(kernel, [b"fine", wrong])
    with pytest.raises(TypeError, match=advice):
        built.might_contain(wrong)
    with pytest.raises(TypeError, match=advice):
        built.might_contain_many([b"fine", wrong])
    with pytest.raises(TypeError):
        wrong in built  # noqa: B015


@every_family
def test_one_key_where_many_belong_is_a_type_error_that_helps(
    kernel: ModuleType, case: Case
) -> None:
    with pytest.raises(TypeError, match="a single key in a list"):
        case.cls(kernel).build(b"key")
    with pytest.raises(TypeError, match="not as one str: pass a single key in a list"):
        case.cls(kernel).build("key")


@every_family
def test_foreign_types_as_filter_bytes_are_type_errors(kernel: ModuleType, case: Case) -> None:
    with pytest.raises(TypeError, match="filter bytes"):
        case.cls(kernel).from_bytes("text")


@every_case
def test_repr_tells_the_size_and_no_secret(kernel: ModuleType, case: Case) -> None:
    secrets = {"seed": SEED, "salt": SALT} if case.salted else {}
    built = case.build(kernel, KEYS, **secrets)
    text = repr(built)
    assert case.class_name in text
    assert "500 keys" in text
    assert f"{built.size_in_bytes} bytes" in text
    for secret in (SEED, SALT):
        assert str(secret) not in text
        assert f"{secret:x}" not in text.lower()


@every_family
def test_an_immutable_buffer_is_viewed_and_a_mutable_one_copied(
    kernel: ModuleType, case: Case, tmp_path: Path
) -> None:
    built = case.build(kernel, KEYS)
    data = bytearray(built.to_bytes())
    copied = case.cls(kernel).from_bytes(data)
    data[:] = bytes(len(data))
    assert copied == built
    path = tmp_path / "filter"
    path.write_bytes(b"before" + built.to_bytes() + b"behind")
    with path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    viewed = case.cls(kernel).from_bytes(memoryview(mapped)[6:-6])
    assert viewed == built
    assert all(viewed.might_contain_many(KEYS))
    with pytest.raises(BufferError):
        mapped.close()


@every_salted_digested_family
def test_a_digest_asks_the_same_as_its_key(kernel: ModuleType, case: Case) -> None:
    built = case.build(kernel, KEYS, seed=SEED)
    assert built.digest_seed == SEED
    for key in KEYS + OTHERS:
        assert built.might_contain_digest(filters.digest(key, SEED)) == built.might_contain(key)
    for wrong in (-1, 2**64):
        with pytest.raises(OverflowError):
            built.might_contain_digest(wrong)


@every_salted_family
def test_seed_and_salt_are_random_unless_given(kernel: ModuleType, case: Case) -> None:
    one, two = case.build(kernel, KEYS), case.build(kernel, KEYS)
    assert one != two
    if not case.record.answers_ranges:
        assert one.digest_seed != two.digest_seed
    given = {"seed": SEED, "salt": SALT}
    assert case.build(kernel, KEYS, **given) == case.build(kernel, KEYS[::-1] * 2, **given)


@every_salted_family
@pytest.mark.parametrize("name", ["seed", "salt"])
def test_bad_seeds_and_salts_are_refused(kernel: ModuleType, case: Case, name: str) -> None:
    for wrong in (-1, 2**64):
        with pytest.raises(ValueError, match=rf"{name} is out of range.*2\*\*64"):
            case.build(kernel, KEYS, **{name: wrong})
    for wrong_type in ("1", 1.0, True):
        with pytest.raises(TypeError, match=f"{name} is an int"):
            case.build(kernel, KEYS, **{name: wrong_type})


@every_salted_case
def test_num_keys_counts_distinct_keys(kernel: ModuleType, case: Case) -> None:
    built = case.build(kernel, KEYS + KEYS[:100])
    assert built.num_keys == len(KEYS)
    assert built.bits_per_key == pytest.approx(built.size_in_bytes * 8 / len(KEYS))
    assert case.cls(kernel).from_bytes(built.to_bytes()).num_keys == len(KEYS)
    empty = case.build(kernel, [])
    assert empty.num_keys == 0
    assert empty.bits_per_key is None


@every_case
def test_empty_sets_contain_nothing(kernel: ModuleType, case: Case) -> None:
    empty = case.build(kernel, [])
    assert positives(empty, KEYS) == 0
    assert empty.expected_fpr == 0
    assert positives(case.cls(kernel).from_bytes(empty.to_bytes()), KEYS) == 0


@every_family
def test_two_sizes_are_one_too_many(kernel: ModuleType, case: Case) -> None:
    if case.family in OF_A_RATE_ONLY:
        return
    if case.family == "cassandra":
        pytest.skip("it has one sizing parameter only")
    other = "counters_per_key" if case.family == "counting" else "bits_per_key"
    with pytest.raises(ValueError, match=rf"{case.family}.*one sizing parameter.*{other} and fpr"):
        case.cls(kernel).build(KEYS, fpr=0.01, **{other: 10})


BAD_SIZES = [
    (name, value)
    for name in (
        "bits_per_key",
        "counters_per_key",
        "fingerprint_bits",
        "fpr",
        "num_probes",
        "fp_chance",
    )
    for value in (-1, 0, 1000, float("nan"), float("inf"), "10", True)
]


@every_family
@pytest.mark.parametrize(("name", "value"), BAD_SIZES)
def test_absurd_sizes_are_refused_before_any_key_is_read(
    kernel: ModuleType, case: Case, name: str, value: Any
) -> None:
    def keys() -> Any:
        pytest.fail("a key was read")
        yield b""

    with pytest.raises((ValueError, TypeError)) as refused:
        case.cls(kernel).build(keys(), **{name: value})
    if "unexpected keyword" not in str(refused.value):
        assert name in str(refused.value)
        assert case.family in str(refused.value)


@every_growing_family
def test_growing_key_by_key(kernel: ModuleType, case: Case, rng: random.Random) -> None:
    keys, others = random_keys(rng, 2000), random_keys(rng, 4000, length=15)
    grown = case.cls(kernel).with_capacity(2000)
    assert grown.num_keys == 0
    assert positives(grown, keys) == 0
    for key in keys[:500]:
        grown.add(key)
    grown.add_many(keys[500:])
    assert all(grown.might_contain_many(keys))
    assert grown.num_keys == pytest.approx(len(keys), rel=0.02)
    rate = grown.expected_fpr
    assert positives(grown, others) <= 4000 * rate + 6 * (4000 * rate) ** 0.5


@every_growing_family
def test_a_key_that_is_refused_changes_nothing(kernel: ModuleType, case: Case) -> None:
    grown = case.cls(kernel).with_capacity(10)
    grown.add(b"key")
    before = grown.to_bytes()
    for wrong in (1.5, 7, None):
        with pytest.raises(TypeError, match="bytes-like"):
            grown.add(wrong)
        if hasattr(grown, "remove"):
            with pytest.raises(TypeError, match="bytes-like"):
                grown.remove(wrong)
    assert grown.to_bytes() == before


@every_growing_family
def test_a_view_copies_on_the_first_change(kernel: ModuleType, case: Case) -> None:
    data = case.build(kernel, KEYS).to_bytes()
    kept = bytes(data)
    grown = case.cls(kernel).from_bytes(data)
    grown.add(b"one more")
    assert grown.might_contain(b"one more")
    assert data == kept
    assert grown.to_bytes() != data
    again = case.cls(kernel).from_bytes(grown.to_bytes())
    assert again.might_contain(b"one more")
    assert all(again.might_contain_many(KEYS))


@every_growing_family
def test_capacity_like_another_filter(kernel: ModuleType, case: Case) -> None:
    built = case.build(kernel, KEYS)
    twin = case.cls(kernel).with_capacity(like=built)
    assert (twin.num_keys, twin.size_in_bytes) == (0, built.size_in_bytes)
    assert twin.digest_seed == built.digest_seed
    with pytest.raises(ValueError, match="leave out fpr, num_keys"):
        case.cls(kernel).with_capacity(5, like=built, fpr=0.1)
    with pytest.raises(TypeError, match="like="):
        case.cls(kernel).with_capacity(like=kernel.BinaryFuseFilter.build(KEYS))
    if case.family not in OF_ANY_CAPACITY:
        with pytest.raises(TypeError, match="a number of keys"):
            case.cls(kernel).with_capacity()
    for wrong in (-1, 2**60):
        with pytest.raises(ValueError, match="num_keys is out of range"):
            case.cls(kernel).with_capacity(wrong)
    with pytest.raises(ValueError, match="split the keys"):
        case.cls(kernel).with_capacity(1 << 39)


@pytest.mark.parametrize(
    "name", ["ClassicBloomFilter", "BlockedBloomFilter", "CountingBloomFilter"]
)
def test_union_holds_the_keys_of_both(kernel: ModuleType, name: str) -> None:
    cls = getattr(kernel, name)
    one = cls.with_capacity(1000)
    two = cls.with_capacity(like=one)
    one.add_many(KEYS[:300])
    two.add_many(KEYS[200:])
    both = one.union(two)
    assert all(both.might_contain_many(KEYS))
    assert positives(one, KEYS) < 320
    if name == "CountingBloomFilter":
        assert both.num_keys == 600
        assert both.remove(KEYS[250])
        assert both.remove(KEYS[250])
    else:
        assert both.num_keys == pytest.approx(500, rel=0.05)
    direct = cls.with_capacity(like=one)
    direct.add_many(KEYS[:300] + KEYS[200:])
    if name != "CountingBloomFilter":
        assert direct.fill == both.fill


@pytest.mark.parametrize(
    "name", ["ClassicBloomFilter", "BlockedBloomFilter", "CountingBloomFilter"]
)
@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("size", {"num_keys": 9000}),
        ("num_probes", {"num_probes": 3}),
        ("seed", {"seed": 3}),
        ("salt", {"salt": 3}),
    ],
)
def test_union_of_unlike_filters_names_the_field(
    kernel: ModuleType, name: str, field: str, change: dict[str, int]
) -> None:
    cls = getattr(kernel, name)
    same = {"num_keys": 1000, "num_probes": 5, "seed": 1, "salt": 2}
    with pytest.raises(filters.GeometryMismatchError, match=f"equal {field}.*like=first") as error:
        cls.with_capacity(**same).union(cls.with_capacity(**{**same, **change}))
    assert isinstance(error.value, FilterError)
    assert isinstance(error.value, ValueError)


def test_union_of_different_families_is_refused(kernel: ModuleType) -> None:
    one, two = kernel.ClassicBloomFilter.build(KEYS), kernel.CountingBloomFilter.build(KEYS)
    with pytest.raises(filters.GeometryMismatchError, match="equal family"):
        one.union(two)
    with pytest.raises(TypeError, match="union takes"):
        one.union(KEYS)
