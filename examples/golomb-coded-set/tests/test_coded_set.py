"""Sets against the plainest way to write one down, and all ways of asking against each other."""

from __future__ import annotations

import math

import pytest
from golomb_coded_set import GolombCodedSet, Parameters, SipKey, compact_size, encode, siphash
from golomb_coded_set.coded_set import STRIDE
from hypothesis import given
from hypothesis import strategies as st

SIP_KEY = SipKey(bytes(range(16)))
KEYS = st.lists(st.binary(max_size=40), max_size=4 * STRIDE)


@st.composite
def parameters(draw: st.DrawFn) -> Parameters:
    m = draw(st.integers(2, 2**32 - 1) | st.integers(2, 2000))
    lowest = next(p for p in range(1, 33) if m < 8 << p)
    return Parameters(m, draw(st.integers(lowest, 32)))


def plainly(keys: list[bytes], parameters: Parameters) -> bytes:
    """Bit after bit, as BIP 158 tells it."""
    count = len(set(keys))
    size = count * parameters.m
    numbers = sorted((siphash.siphash(SIP_KEY, key) * size) >> 64 for key in set(keys))
    bits, last = [], 0
    for number in numbers:
        quotient, low = divmod(number - last, 2**parameters.p)
        bits += [1] * quotient + [0]
        bits += [low >> bit & 1 for bit in reversed(range(parameters.p))]
        last = number
    bits += [0] * (-len(bits) % 8)
    octets = [bits[at : at + 8] for at in range(0, len(bits), 8)]
    return compact_size.write(count) + bytes(
        sum(bit << 7 - index for index, bit in enumerate(octet)) for octet in octets
    )


@given(KEYS, parameters())
def test_sets_are_written_as_told(keys: list[bytes], parameters: Parameters) -> None:
    assert encode(keys, SIP_KEY, parameters) == plainly(keys, parameters)


@given(KEYS, KEYS, parameters())
def test_all_ways_of_asking_give_the_answers_of_the_set(
    keys: list[bytes], others: list[bytes], parameters: Parameters
) -> None:
    opened = GolombCodedSet.from_bytes(encode(keys, SIP_KEY, parameters), SIP_KEY, parameters)
    size = len(set(keys)) * parameters.m
    numbers = {siphash.siphash(SIP_KEY, key) * size >> 64 for key in keys}
    asked = others + keys[::-1] + others[:3]
    expected = [
        bool(keys) and siphash.siphash(SIP_KEY, key) * size >> 64 in numbers for key in asked
    ]
    assert opened.might_contain_many(asked) == expected
    assert [opened.might_contain(key) for key in asked] == expected
    assert all(opened.might_contain_many(keys))
    assert opened.num_keys == len(set(keys))
    assert opened.expected_fpr == (len(numbers) / size if keys else 0)


@given(st.lists(st.binary(max_size=20), min_size=24, max_size=200))
def test_keys_side_by_side_are_hashed_as_one_by_one(keys: list[bytes]) -> None:
    assert siphash.LANES is not None, "this needs NumPy: pip install -e .[test]"
    one_by_one = [siphash.siphash(SIP_KEY, key) for key in keys]
    assert siphash.siphash_all(SIP_KEY, keys) == one_by_one


def test_without_numpy_the_hashes_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = [b"key%d" % number for number in range(500)]
    with_it = siphash.siphash_all(SIP_KEY, keys)
    monkeypatch.setattr(siphash, "LANES", None)
    assert siphash.siphash_all(SIP_KEY, keys) == with_it


@pytest.mark.parametrize("m", [2, 20, 100, 1000, 784_931, 2**32 - 1])
def test_a_key_takes_what_theory_says(m: int) -> None:
    """One and a half bits more than log2(M), the least for a rate of one in M."""
    sizing, count = Parameters(m), 5000
    written = encode((b"key%d" % number for number in range(count)), SIP_KEY, sizing)
    measured = 8 * len(written) / count
    assert measured == pytest.approx(sizing.bits_per_key, rel=0.02)
    assert 1.4 < sizing.bits_per_key - math.log2(m) < (1.65 if m > 2 else 1.8)
    better = [Parameters(m, p) for p in range(1, 33) if m < 8 << p]
    assert sizing.bits_per_key == min(each.bits_per_key for each in better)


@pytest.mark.parametrize("m", [20, 100])
def test_absent_keys_pass_as_often_as_expected(m: int) -> None:
    keys = [b"key%d" % number for number in range(3000)]
    sizing = Parameters(m)
    opened = GolombCodedSet.from_bytes(encode(keys, SIP_KEY, sizing), SIP_KEY, sizing)
    asked = 20_000
    passed = sum(opened.might_contain_many([b"absent%d" % number for number in range(asked)]))
    expected = asked * opened.expected_fpr
    assert abs(passed - expected) < 5 * math.sqrt(expected)
    assert 0.95 / m < opened.expected_fpr <= 1 / m


@pytest.mark.parametrize(
    ("m", "p", "told"),
    [
        (1, 1, "m is 1: allowed are 2 to"),
        (2**32, 32, "m is 4294967296"),
        (1000, 0, "p is 0: .* for m=1000 the smallest filters have p=9"),
        (1000, 33, "p is 33"),
        (1000, 6, "m below 8"),
    ],
)
def test_parameters_that_no_set_has_are_refused(m: int, p: int, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        Parameters(m, p)


@pytest.mark.parametrize("m", [True, 10.5, "10", None])
def test_parameters_are_whole_numbers(m: int) -> None:
    with pytest.raises(TypeError, match="m is an int, not"):
        Parameters(m)


@pytest.mark.parametrize("data", [b"", bytes(15), bytes(17), bytearray(16)])
def test_a_key_of_another_length_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="16 of them"):
        SipKey(data)
