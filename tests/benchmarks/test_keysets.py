"""Keys of every kind: as many as wanted, distinct, none of them absent, the same every time."""

from __future__ import annotations

import random
from itertools import islice
from pathlib import Path

import pytest

from benchmarks.filters import keysets
from benchmarks.filters.keysets import KINDS, Asked, Wanted, distinct, lines_of, made
from benchmarks.subjects import packed


@pytest.mark.parametrize("kind", KINDS)
def test_keys_and_absent_keys_are_distinct_disjoint_and_reproducible(
    kind: str, test_seed: int
) -> None:
    wanted = Wanted(kind, 3000, test_seed)
    found = made(wanted, absent=2000, many=5000, timed=500)
    assert len(found.keys) == len(set(found.keys)) == 3000
    many = set(found.many_absent)
    assert len(found.many_absent) == len(many) == 5000
    assert len(found.absent) == len(found.packed_absent) == 2000
    assert set(found.absent) == set(found.packed_absent) <= many
    assert many.isdisjoint(found.keys)
    again = made(wanted, absent=2000, many=5000, timed=500)
    assert (again.keys, again.absent, again.asked) == (found.keys, found.absent, found.asked)
    if kind != "integers":
        assert Wanted(kind, 3000, test_seed + 1).keys() != found.keys
    assert wanted.keys() == found.keys


def test_kinds_look_as_they_are_said_to() -> None:
    shapes = {kind: Wanted(kind, 200, 1).keys() for kind in KINDS}
    assert set(map(len, shapes["random"])) == {16}
    assert shapes["composite"] == sorted(shapes["composite"])
    assert all(key.count(b"/") == 2 for key in shapes["composite"])
    assert all(key.startswith(b"https://www.") for key in shapes["urls"])
    assert len(set(map(len, shapes["urls"]))) > 5
    numbers = [int.from_bytes(key, "little") for key in shapes["integers"]]
    assert numbers == list(range(0, 400, 2))
    assert set(map(len, shapes["integers"])) == {8}


def test_what_is_drawn_twice_or_is_a_key_is_left_out() -> None:
    chunks = iter([[b"a", b"b", b"a"], [b"b", b"c", b"d"], [b"e"]])
    assert distinct(chunks, 3, without=[b"c"]) == [b"a", b"b", b"d"]


def test_absent_keys_that_are_keys_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Wanted, "absent", lambda self, keys, number: keys[:number])
    with pytest.raises(AssertionError, match="among its absent keys"):
        made(Wanted("random", 100, 1), 50, 50, 50)


def test_what_is_asked_comes_from_everywhere(rng: random.Random) -> None:
    keys = [b"%06d" % number for number in range(10_000)]
    asked = Asked.of(keys, 1000, rng)
    assert len(set(asked.in_order)) == 1000
    assert asked.in_order == sorted(asked.shuffled) != asked.shuffled
    few = asked.thinned(50)
    assert 40 <= len(few.in_order) <= 50
    assert len(few.shuffled) == len(few.in_order)
    for some in (asked, few):
        assert int(some.in_order[0]) < 1000
        assert int(some.in_order[-1]) > 9000
    assert asked.thinned(1000) is asked
    # Copies: a set that is asked must compare, as it must for the keys of a lookup.
    assert not {id(key) for key in asked.in_order} & {id(key) for key in keys}


def test_keys_of_any_length_lie_in_one_buffer() -> None:
    for keys in ([b"abc", b"def"], [b"a", b"", b"bcd"], [b"", b""]):
        assert list(packed(keys)) == keys


def test_lines_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    lines = [b"%d" % number for number in range(keysets.LEAST_LINES)]
    path.write_bytes(b"\r\n".join(lines) + b"\n\n0\n7")
    found, digest = lines_of(path)
    assert found == lines
    path.write_bytes(b"\n".join(lines))
    assert lines_of(path) == (lines, lines_of(path)[1])
    assert lines_of(path)[1] != digest


def test_files_that_will_not_do(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_bytes(b"\n".join([b"%d" % number for number in range(1999)] * 2))
    with pytest.raises(ValueError, match=r"keys has 1999 distinct lines, and it takes 2000"):
        lines_of(path)
    with pytest.raises(ValueError, match="cannot be read"):
        lines_of(tmp_path)
    with pytest.raises(ValueError, match="cannot be read"):
        lines_of(tmp_path / "none")


def test_a_file_is_halved_by_the_seed(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    lines = [b"%d" % number for number in range(2001)]
    path.write_bytes(b"\n".join(lines))
    halves = []
    for seed in (1, 2):
        wanted = Wanted(keysets.FILE, 1000, seed, path)
        keys = wanted.keys()
        absent = wanted.absent(keys, 10**6)
        assert (len(keys), len(absent)) == (1000, 1001)
        assert sorted(keys + absent) == sorted(lines)
        halves.append(keys)
    assert halves[0] != halves[1]


@pytest.mark.parametrize("kind", KINDS)
def test_no_kind_runs_dry(kind: str, rng: random.Random) -> None:
    chunks = keysets.CHUNKS[kind](rng, random.Random(1), False)
    found = [key for chunk in islice(chunks, 2) for key in chunk]
    assert len(set(found)) > 0.99 * len(found)
