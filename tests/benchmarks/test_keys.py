"""Random keys: as many as are wanted, and the same from every piece of the generator."""

from __future__ import annotations

import random

import pytest

from benchmarks import keys


@pytest.mark.parametrize("size", [0, 1, 16, 17, 32, 53])
def test_pieces_are_what_the_whole_would_be(
    size: int, test_seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keys, "CHUNK", 16)
    expected = random.Random(test_seed).randbytes(size)
    assert keys.random_bytes(random.Random(test_seed), size) == expected


def test_a_piece_is_as_much_as_a_generator_gives_at_once(rng: random.Random) -> None:
    assert keys.CHUNK % 4 == 0
    assert len(rng.randbytes(keys.CHUNK)) == keys.CHUNK


def test_keys_and_absent_keys_come_in_every_form(test_seed: int) -> None:
    made = keys.Keys(100, test_seed)
    for known in (True, False):
        assert list(made.packed(known)) == made.in_order[known]
        assert sorted(made.shuffled[known]) == sorted(made.in_order[known])
        assert {len(key) for key in made.in_order[known]} == {keys.KEY_BYTES}
    assert not set(made.in_order[True]) & set(made.in_order[False])
