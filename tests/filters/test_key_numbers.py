"""Keys as numbers: in their order, and never outside the bounds of a range that they lie in."""

from __future__ import annotations

import random
from types import ModuleType

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from filters.kernels.python.key_numbers import KeyNumbers
from filters.key_numbers import MAX_WIDTH, Numbering
from tests.effort import by_effort, examples

ALPHABET = [b"\x00", b"\x01", b"a", b"\xfe", b"\xff"]
SEED, SALT = 0x0123_4567_89AB_CDEF, 0xFEDC_BA98_7654_3210

short_keys = st.lists(st.sampled_from(ALPHABET), max_size=5).map(b"".join)
key_sets = st.builds(
    lambda prefix, tails: [prefix + tail for tail in tails],
    st.sampled_from([b"", b"\x00", b"\xff" * 3, b"a long prefix of all keys", b"a\x00\xff"]),
    st.lists(st.one_of(short_keys, st.binary(max_size=14)), min_size=1, max_size=12),
)


def numbering_of(keys: list[bytes]) -> Numbering:
    collected = KeyNumbers(SEED)
    collected.add_many(keys)
    return collected.numbering()


@examples(200)
@given(key_sets)
@example([b""])
@example([b"", b"\x00"])
@example([b"prefix", b"prefix\x00", b"prefix of more than eight bytes"])
def test_what_is_kept_of_keys_is_what_all_of_them_tell(keys: list[bytes]) -> None:
    collected = KeyNumbers(SEED)
    collected.add_many(keys)
    numbering = collected.numbering()
    shared = [end for end in range(len(keys[0]) + 1) if len({key[:end] for key in keys}) == 1]
    assert numbering.prefix == keys[0][: shared[-1]]
    assert numbering.width == min(MAX_WIDTH, max(map(len, keys)) - len(numbering.prefix))
    assert collected.numbers() == [numbering.number(key) for key in keys]


@examples(200)
@given(key_sets)
def test_numbers_rise_with_keys_or_stay(keys: list[bytes]) -> None:
    numbering = numbering_of(keys)
    numbers = [numbering.number(key) for key in sorted(keys)]
    assert all(number is not None and 0 <= number <= numbering.last for number in numbers)
    assert numbers == sorted(numbers, key=lambda number: -1 if number is None else number)
    short = [key for key in set(keys) if len(key) <= len(numbering.prefix) + numbering.width]
    distinct = {key.rstrip(b"\x00") for key in short}
    assert len({numbering.number(key) for key in short}) >= len(distinct) - 1


def test_a_key_of_another_prefix_has_no_number() -> None:
    numbering = Numbering(b"user:", 2)
    assert numbering.number(b"user:") == 0
    assert numbering.number(b"user:a") == 0x6100
    assert numbering.number(b"user:abc") == numbering.number(b"user:ab") == 0x6162
    assert [numbering.number(key) for key in (b"", b"user", b"user;", b"uses:")] == [None] * 4
    assert numbering.number(numbering.key(0x6162)) == 0x6162


EVERY_NUMBERING = [
    Numbering(prefix, width)
    for prefix in (b"", b"\x00", b"a", b"\xff", b"\xff\xff", b"a\x00", b"a\xff")
    for width in (0, 1, 2, 8)
]


def bounds_around(prefix: bytes, rng: random.Random) -> list[bytes | None]:
    """Bounds before, at, within and behind the keys of a prefix, and none."""
    found: list[bytes | None] = [None, b"", prefix, prefix[:-1], prefix + b"\x00", b"\xff" * 9]
    found += [prefix[:-1] + b"\xff" * 3, prefix[:-1] + b"\x00\x01", b"\x01", b"b"]
    for _ in range(by_effort(25, 50, 100)):
        found.append(prefix + b"".join(rng.choices(ALPHABET, k=rng.randrange(12))))
    return found


@pytest.mark.parametrize("numbering", EVERY_NUMBERING, ids=repr)
def test_no_key_of_a_range_lies_outside_its_bounds(
    numbering: Numbering, rng: random.Random
) -> None:
    """Against all keys of up to four bytes of an alphabet, and some longer ones."""
    tails = [b""]
    for length in range(1, 5):
        tails += [b"".join(rng.choices(ALPHABET, k=length)) for _ in range(40)]
        tails += [each * length for each in ALPHABET]
    tails += [tail + b"\xff" * 9 for tail in tails[:50]] + [tail + bytes(9) for tail in tails[:50]]
    keys = [numbering.prefix + tail for tail in tails]
    bounds = bounds_around(numbering.prefix, rng)
    for low in bounds:
        for high in bounds:
            inside = [key for key in keys if (low or b"") <= key and (high is None or key < high)]
            found = numbering.bounds(low, high)
            if not inside:
                continue
            assert found is not None, (low, high, inside[0])
            first, last = found
            for key in inside:
                number = numbering.number(key)
                assert number is not None
                assert first <= number <= last, (low, high, key)


@pytest.mark.parametrize("prefix", [b"", b"a", b"\xff"])
def test_bounds_of_single_bytes_are_the_narrowest(prefix: bytes) -> None:
    """Of numbers of one byte all keys can be looked at."""
    numbering = Numbering(prefix, 1)
    keys = [prefix] + [prefix + bytes([byte]) for byte in range(256)]
    keys += [key + tail for key in keys[1:] for tail in (b"\x00", b"\xff")]
    few = [prefix + bytes([byte]) for byte in (0, 1, 2, 97, 254, 255)]
    for low in (None, prefix, *few):
        for high in (None, *few):
            numbers = [
                number
                for key in keys
                if (low or b"") <= key and (high is None or key < high)
                if (number := numbering.number(key)) is not None
            ]
            found = numbering.bounds(low, high)
            assert found == ((min(numbers), max(numbers)) if numbers else None), (low, high)


def test_a_range_that_holds_nothing_has_no_bounds() -> None:
    numbering = Numbering(b"user:", 4)
    for low, high in (
        (b"user:a", b"user:a"),
        (b"user:b", b"user:a"),
        (b"", b""),
        (None, b""),
        (None, b"user:"),
        (b"a", b"user"),
        (b"user;", None),
        (b"usf", b"z"),
    ):
        assert numbering.bounds(low, high) is None
    everything = (0, 2**32 - 1)
    for low, high in ((None, None), (b"", b"z"), (b"user", b"user;"), (b"user:", b"usf")):
        assert numbering.bounds(low, high) == everything


@examples(60)
@given(keys=key_sets, order=st.randoms(use_true_random=False))
def test_the_order_in_which_keys_come_means_nothing(
    kernel: ModuleType, keys: list[bytes], order: random.Random
) -> None:
    built = kernel.GrafiteFilter.build(sorted(set(keys)), seed=SEED, salt=SALT)
    collected = kernel.GrafiteFilter.digests(seed=SEED)
    shuffled = order.sample(keys, len(keys)) + keys[:3]
    collected.add_many(shuffled[:2])
    for key in shuffled[2:]:
        collected.add(memoryview(key))
    assert len(collected) == len(shuffled)
    assert collected.numbering() == numbering_of(keys)
    assert kernel.GrafiteFilter.build(collected, salt=SALT) == built
    assert built.count_missing(collected) == 0


def test_a_collection_tells_its_length_and_no_secret(kernel: ModuleType) -> None:
    collected = kernel.GrafiteFilter.digests(seed=SEED)
    assert (len(collected), repr(collected)) == (0, "<KeyNumbers: 0 keys>")
    assert (collected.kind, collected.digest_seed) == ("key-numbers", SEED)
    assert collected.numbering() == Numbering(b"", 0)
    collected.add(b"key")
    assert (len(collected), repr(collected)) == (1, "<KeyNumbers: 1 keys>")
    assert collected.numbering() == Numbering(b"key", 0)
    with pytest.raises(TypeError, match="neither copied nor pickled"):
        collected.__reduce__()
