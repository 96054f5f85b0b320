"""Databases in other programs' orders: read in them, and never written."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from functools import cmp_to_key
from pathlib import Path
from typing import Any

import pytest

import lsm
from lsm.comparators import KNOWN, idb_cmp1
from lsm.errors import ComparatorError, ReadOnlyError
from tests.effort import by_effort
from tests.lsm.indexeddb_model import Key, UserKey

READING: dict[str, Any] = {
    "comparator": idb_cmp1,
    "comparator_name": b"idb_cmp1",
    "read_only": True,
}
STORE = Key((1, 1, 1), None, ()).encoded()

# -- Reading -----------------------------------------------------------------------------------


def some_keys(rng: random.Random, count: int) -> list[Key]:
    """Keys of two stores and an index, as a web page makes them."""

    def user_key(depth: int = 0) -> UserKey:
        kind = rng.choice(("number", "number", "date", "string", "string", "binary", "array"))
        if kind == "array":
            return UserKey("array", tuple(user_key(depth + 1) for _ in range(rng.randrange(3))))
        value: Any = float(rng.randrange(-300, 300)) / 2
        if kind == "string":
            value = tuple(b"user %d" % rng.randrange(300))
        if kind == "binary":
            value = rng.randbytes(rng.randrange(4))
        return UserKey(kind, value)

    found = [Key((0, 0, 0), kind, ()) for kind in range(3)]
    found += [Key((1, 0, 0), 50, (store, bytes((kind,)))) for store in (1, 2) for kind in range(8)]
    while len(found) < count:
        store = rng.choice((1, 2))
        if rng.random() < 0.3:
            found.append(Key((1, store, 30), None, (user_key(), 0, user_key())))
        else:
            found.append(Key((1, store, rng.choice((1, 2))), None, (user_key(),)))
    return found


def in_order(keys: list[Key]) -> list[bytes]:
    """By the model, each once, as it was written first."""
    ordered = sorted(keys, key=cmp_to_key(lambda one, other: one.against(other)))
    return [
        key.encoded() for at, key in enumerate(ordered) if not at or ordered[at - 1].against(key)
    ]


def by_plyvel(path: Path, keys: list[bytes]) -> None:
    """Half of the keys in tables, half in the log."""
    plyvel = pytest.importorskip("plyvel")
    order = {"comparator": idb_cmp1, "comparator_name": b"idb_cmp1"}
    # With a comparator plyvel may hang when it is closed while LevelDB compacts: nothing makes it.
    order["write_buffer_size"] = 1 << 26
    db = plyvel.DB(str(path), create_if_missing=True, bloom_filter_bits=10, **order)
    half = len(keys) // 2
    for key in keys[:half]:
        db.put(key, b"of a table: " + key)
    db.compact_range(start=b"", stop=b"\xff" * 20)
    for key in keys[half:]:
        db.put(key, b"of the log: " + key)
    db.close()


def by_us(path: Path, keys: list[bytes]) -> None:
    """The same in many small tables, in an order that is not known to be anybody's."""
    small: dict[str, Any] = {
        "write_buffer_size": 3000,
        "max_file_size": 2000,
        "block_size": 200,
        "level_size_base": 4000,
        "compression": None,
        "comparator": lambda one, other: idb_cmp1(one, other),
        "comparator_name": b"idb_cmp1",
    }
    with lsm.DB(path, create_if_missing=True, **small) as db:
        for key in keys:
            db.put(key, b"of a table: " + key)
        db.wait_until_idle()


WRITERS = pytest.mark.parametrize("write", [by_plyvel, by_us])
Writer = Callable[[Path, list[bytes]], None]


@WRITERS
def test_a_database_of_chromes_is_read_in_its_order(
    tmp_path: Path, write: Writer, rng: random.Random
) -> None:
    keys = some_keys(rng, by_effort(400, 1500, 6000))
    ordered = in_order(keys)
    shuffled = rng.sample(ordered, len(ordered))
    write(tmp_path / "db", shuffled)
    before = {each.name: each.read_bytes() for each in (tmp_path / "db").iterdir()}
    assert any(name.endswith(".ldb") for name in before)
    with lsm.DB(tmp_path / "db", **READING) as db:
        assert [key for key, _ in db] == ordered
        assert [key for key, _ in db.iterator(reverse=True)] == ordered[::-1]
        assert all(value.endswith(b": " + key) for key, value in db)
        for at in rng.sample(range(len(ordered)), 60):
            check_around(db, ordered, at, rng)
        with pytest.raises(ReadOnlyError):
            db.put(ordered[0], b"")
    assert {each.name: each.read_bytes() for each in (tmp_path / "db").iterdir()} == before


def check_around(db: lsm.DB, ordered: list[bytes], at: int, rng: random.Random) -> None:
    """Lookups, bounds and seeks at a key that is there, and at one that is not."""
    key = ordered[at]
    value = db.get(key)
    assert value is not None
    assert value.endswith(b": " + key)
    absent = key + b"\4\1\7" if key[3] == 30 else key[:4] + b"\xfe" + rng.randbytes(3)
    assert db.get(absent) is None or idb_cmp1(absent, key) == 0
    stop = ordered[min(at + 20, len(ordered) - 1)]
    assert [key for key, _ in db.iterator(start=key, stop=stop)] == ordered[at : at + 20][
        : len(ordered) - 1 - at
    ]
    below = db.iterator(stop=key, reverse=True, include_stop=True, include_value=False)
    assert next(below) == key
    raw = db.raw_iterator()
    for target in (key, absent):
        raw.seek(target)
        expected = next((each for each in ordered if idb_cmp1(each, target) >= 0), None)
        assert (raw.key() if raw.valid() else None) == expected


@WRITERS
def test_malformed_keys_are_walked_over(tmp_path: Path, write: Writer, rng: random.Random) -> None:
    keys: dict[bytes, bytes] = {}
    for key in some_keys(rng, 150):
        data = key.encoded()
        for each in (data, data[: rng.randrange(len(data) + 1)], rng.randbytes(rng.randrange(9))):
            keys.setdefault(idb_cmp1.rank(each), each)
    ordered = [keys[rank] for rank in sorted(keys)]
    write(tmp_path / "db", rng.sample(ordered, len(ordered)))
    with lsm.DB(tmp_path / "db", **READING) as db:
        assert [key for key, _ in db] == ordered
        assert [key for key, _ in db.iterator(reverse=True)] == ordered[::-1]
        assert None not in db.get_many(ordered)


@WRITERS
def test_equal_keys_are_one(tmp_path: Path, write: Writer) -> None:
    zero, negative = (STORE + b"\3" + struct.pack("<d", number) for number in (0.0, -0.0))
    others = [STORE + b"\3" + struct.pack("<d", float(number)) for number in (1, 2, 3)]
    write(tmp_path / "db", [zero, *others, negative, others[0]])
    with lsm.DB(tmp_path / "db", **READING) as db:
        assert [key for key, _ in db] == [negative, *others]
        assert db.get(zero) == db.get(negative)


# -- Being opened ------------------------------------------------------------------------------


@pytest.fixture
def path(tmp_path: Path) -> Path:
    by_us(tmp_path / "db", [b"\0\0\0\0\0", STORE + b"\1\0"])
    return tmp_path / "db"


def test_the_order_has_its_name() -> None:
    assert idb_cmp1.name == b"idb_cmp1"
    assert dict(KNOWN) == {"idb_cmp1": idb_cmp1}
    assert lsm.comparators.idb_cmp1 is idb_cmp1


def test_who_gives_no_comparator_is_told_of_it(path: Path) -> None:
    for call in (lsm.DB, lsm.repair_db):
        with pytest.raises(
            ComparatorError,
            match=r"'idb_cmp1'.*Chrome's IndexedDB.*comparator=lsm\.comparators\.idb_cmp1, "
            r"comparator_name=b'idb_cmp1' and read_only=True",
        ):
            call(path)


def test_nothing_is_written_in_it(path: Path, tmp_path: Path) -> None:
    order = {name: READING[name] for name in ("comparator", "comparator_name")}
    before = {each.name: each.read_bytes() for each in path.iterdir()}
    refused = pytest.raises(ValueError, match="'idb_cmp1' is that of Chrome's.*read_only=True")
    with refused:
        lsm.DB(path, **order)
    with refused:
        lsm.repair_db(path, **order)
    with refused:
        lsm.DB(tmp_path / "new", create_if_missing=True, **order)
    assert not (tmp_path / "new").exists()
    assert {each.name: each.read_bytes() for each in path.iterdir()} == before


def test_a_dry_run_tells_what_of_it_can_be_read(path: Path) -> None:
    report = lsm.repair_db(path, comparator=idb_cmp1, comparator_name=b"idb_cmp1", dry_run=True)
    assert report is not None
    assert report.losses == ()


def test_another_database_is_not_in_this_order(tmp_path: Path) -> None:
    lsm.DB(tmp_path / "db", create_if_missing=True).close()
    with pytest.raises(ComparatorError, match=r"BytewiseComparator.*'idb_cmp1' was given: give"):
        lsm.DB(tmp_path / "db", **READING)
