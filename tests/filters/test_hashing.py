"""Keys, digests and salts."""

from __future__ import annotations

import random

import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from filters import hashing

U64 = st.integers(0, 2**64 - 1)


@given(st.binary(max_size=300), U64)
def test_a_digest_is_xxh3_of_the_bytes(key: bytes, seed: int) -> None:
    wanted = xxhash.xxh3_64_intdigest(key, seed)
    assert hashing.digest(key, seed) == wanted
    assert hashing.digest(bytearray(key), seed) == wanted
    assert hashing.digest(memoryview(key), seed) == wanted


def test_known_digests() -> None:
    """From xxHash's own documentation and tools: what is on disk depends on these."""
    assert hashing.digest(b"", 0) == 0x2D06800538D394C2
    assert hashing.digest(b"abc", 0) == 0x78AF5F94892F3950


@given(U64, U64)
def test_mixing_is_a_folded_product(digest: int, salt: int) -> None:
    product = (digest ^ salt) * 0x9E3779B97F4A7C15
    assert hashing.mix(digest, salt) == (product % 2**64) ^ (product // 2**64)


def test_mixing_under_two_salts_is_independent(rng: random.Random) -> None:
    """Equal in the top bits under one salt says nothing about another."""
    one, two = rng.getrandbits(64), rng.getrandbits(64)
    together = [
        d for d in (rng.getrandbits(64) for _ in range(60_000)) if not hashing.mix(d, one) >> 58
    ]
    assert 700 < len(together) < 1200
    again = sum(not hashing.mix(d, two) >> 58 for d in together)
    assert again < 45


REALLY_RANDOM64 = hashing.random64


def test_random_numbers_are_64_bits_and_differ() -> None:
    numbers = {REALLY_RANDOM64() for _ in range(100)}
    assert len(numbers) == 100
    assert max(numbers) >> 60
    assert hashing.checked64("seed", None) != hashing.checked64("seed", None)
    assert hashing.checked64("seed", 5) == 5


@given(st.text(), U64)
def test_a_text_is_its_utf_8(key: str, seed: int) -> None:
    assert hashing.key_bytes(key) == key.encode()
    assert hashing.digest(key, seed) == hashing.digest(key.encode(), seed)


def test_a_text_that_has_no_utf_8_is_named() -> None:
    with pytest.raises(
        UnicodeEncodeError, match=r"position 1: the key 'a\\udc80' has a lone"
    ) as no:
        hashing.key_bytes("a\udc80")
    assert (no.value.object, no.value.start, no.value.end) == ("a\udc80", 1, 2)
    assert "os.fsencode(key)" in str(no.value)


@pytest.mark.parametrize("wrong", [["text"], 5, None, object()])
def test_what_is_neither_bytes_like_nor_text_is_no_key(wrong: object) -> None:
    with pytest.raises(TypeError, match=f"a key is bytes-like or str, not {type(wrong).__name__}"):
        hashing.key_bytes(wrong)  # type: ignore[arg-type]
