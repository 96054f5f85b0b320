"""The keys beside Cassandra's filters, and what can be said of a filter with them."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filters import CassandraBloomFilter
from lsm.errors import CorruptionError
from lsm.survey import cassandra_index
from lsm.survey.cassandra_index import keys_of
from lsm.survey.damage import damage
from lsm.survey.found import FilterFound
from lsm.survey.look import look
from lsm.survey.measure import measure
from tests.filters.independent_cassandra import Reader
from tests.lsm.survey.hostile import damaged, is_placed
from tests.lsm.survey.test_damage import by_force, hidden_by, reads_as_cassandra


def varint(number: int) -> bytes:
    """A number of one to nine bytes, after Scylla's page: leading ones say how many more follow."""
    for more in range(8):
        if number < 2 ** (7 * more + 7):
            marked = number + sum(2 ** (8 * more + 7 - one) for one in range(more))
            return marked.to_bytes(more + 1, "big")
    return b"\xff" + number.to_bytes(8, "big")


def index_of(entries: list[tuple[bytes, int, bytes]], *, old: bool = False) -> bytes:
    """An ``Index.db`` of keys, where their data is, and what is said of their rows."""
    data = b""
    for key, position, rows in entries:
        data += len(key).to_bytes(2, "big") + key
        if old:
            data += position.to_bytes(8, "big") + len(rows).to_bytes(4, "big")
        else:
            data += varint(position) + varint(len(rows))
        data += rows
    return data


def the_filter(path: Path) -> FilterFound:
    (only,) = look(path).filters
    return only


@pytest.fixture
def keys(rng: random.Random) -> list[bytes]:
    return [rng.randbytes(rng.randrange(1, 20)) for _ in range(30)]


def written(tmp_path: Path, keys: list[bytes], version: str = "nb") -> Path:
    """A filter and the index beside it."""
    path = tmp_path / f"{version}-1-big-Filter.db"
    built = CassandraBloomFilter.build(keys, fp_chance=0.1)
    path.write_bytes(built.to_bytes(sstable_version=version))
    entries = [(key, 70 * number, b"r" * (number % 3)) for number, key in enumerate(keys)]
    (tmp_path / f"{version}-1-big-Index.db").write_bytes(index_of(entries))
    return path


entry = st.tuples(st.binary(max_size=40), st.integers(0, 2**63 - 1), st.binary(max_size=300))


@given(entries=st.lists(entry, max_size=20), old=st.booleans(), window=st.integers(0, 1000))
def test_keys_are_those_of_the_entries(
    tmp_path_factory: pytest.TempPathFactory,
    entries: list[tuple[bytes, int, bytes]],
    old: bool,
    window: int,
) -> None:
    path = tmp_path_factory.mktemp("index") / "nb-1-big-Index.db"
    path.write_bytes(index_of(entries, old=old))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cassandra_index, "_WINDOW_BYTES", 100 + window)
        patch.setattr(cassandra_index, "_ENTRY_BYTES", 60)
        assert list(keys_of(str(path), has_varints=not old)) == [key for key, _, _ in entries]


def test_the_longest_keys_and_rows_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "Index.db"
    entries = [(bytes((number,)) * 65535, 2**62, bytes(3 << 20)) for number in range(5)]
    path.write_bytes(index_of(entries))
    assert list(keys_of(str(path), has_varints=True)) == [key for key, _, _ in entries]


def test_the_entry_of_a_real_table_is_read(tmp_path: Path) -> None:
    """As https://pmcfadin.github.io/cqlite/sstable-format/ch06/ shows one."""
    path = tmp_path / "Index.db"
    key = bytes.fromhex("15291a77d7394e738397b787442f3a1f")
    path.write_bytes(b"\x00\x10" + key + b"\x00\x00")
    assert list(keys_of(str(path), has_varints=True)) == [key]


def test_a_filter_is_measured_with_the_keys_beside_it(tmp_path: Path, keys: list[bytes]) -> None:
    path = written(tmp_path, keys)
    assert look(path).facts["keys"] == "nb-1-big-Index.db"
    measured = measure(the_filter(path), 2000, seed=1)
    assert (measured.keys, measured.denied) == (len(keys), 0)
    assert measured.verdict == "as promised"


def test_measuring_finds_every_flipped_bit_that_hides_a_key(
    tmp_path: Path, keys: list[bytes]
) -> None:
    """Either a key is denied, or what Cassandra would believe is refused here."""
    path = written(tmp_path, keys)
    data = path.read_bytes()
    truth = by_force(data, keys, reads_as_cassandra("nb"))
    exact = damage(the_filter(path))
    assert (hidden_by(exact), exact.is_exact) == (truth, True)
    for bit in range(8 * len(data)):
        changed = bytearray(data)
        changed[bit >> 3] ^= 1 << (bit & 7)
        path.write_bytes(changed)
        found = look(path)
        is_found = bool(found.problems) or measure(found.filters[0], 0, seed=1).denied > 0
        assert is_found or bit not in truth
        if bit >= 64:
            assert is_found == (bit in truth)


def test_a_wrong_version_is_found_out_by_the_keys(tmp_path: Path, keys: list[bytes]) -> None:
    path = written(tmp_path, keys, "me")
    (right,) = look(path).filters
    (wrong,) = look(path, cassandra_version="nb").filters
    assert measure(right, 10, seed=1).denied == 0
    assert measure(wrong, 10, seed=1).denied > 0


def test_older_indexes_have_wide_numbers(tmp_path: Path, keys: list[bytes]) -> None:
    path = tmp_path / "ks-tb-ka-5-Filter.db"
    path.write_bytes(bytes.fromhex("0000000500000002 23664c448214b822 e543142008053950"))
    keys = [number.to_bytes(4, "big") for number in range(1, 11)]
    assert all(Reader(path.read_bytes(), "ka").answer(key) for key in keys)
    entries = [(key, 9, b"rows") for key in keys]
    (tmp_path / "ks-tb-ka-5-Index.db").write_bytes(index_of(entries, old=True))
    measured = measure(the_filter(path), 0, seed=1)
    assert (measured.keys, measured.denied) == (10, 0)


@pytest.mark.parametrize("name", ["da-1-bti-Filter.db", "nb-1-big-Filter.db", "given"])
def test_without_an_index_keys_are_not_at_hand(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(CassandraBloomFilter.build([b"a"], fp_chance=0.5).to_bytes())
    if name.startswith("da"):
        (tmp_path / "da-1-bti-Index.db").write_bytes(index_of([(b"a", 0, b"")]))
    (each,) = look(path, cassandra_version=name[:2] if name != "given" else "nb").filters
    assert each.keys is None


@pytest.mark.parametrize("old", [False, True])
def test_every_damage_of_an_index_gives_keys_or_file_and_place(old: bool, tmp_path: Path) -> None:
    path = tmp_path / "nb-1-big-Index.db"
    data = index_of(
        [(b"key %d" % number, 1 << 9 * number, b"rows") for number in range(6)], old=old
    )
    for bytes_ in damaged(data):
        path.write_bytes(bytes_)
        refusal = ""
        try:
            list(keys_of(str(path), has_varints=not old))
        except CorruptionError as error:
            refusal = str(error)
        assert not refusal or is_placed(refusal, path), refusal
        assert path.read_bytes() == bytes_
