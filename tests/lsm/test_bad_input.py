"""What cannot be opened, read or done: the right error, the file it is about, and what helps."""

from __future__ import annotations

import os
import shutil
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import lsm
import policies
from lsm.errors import (
    ComparatorError,
    CorruptionError,
    Error,
    IOError,
    LockedError,
    NotADatabaseError,
    ReadOnlyError,
)
from lsm.options import LEVELS
from lsm.storage import FileSystem
from policies.errors import PolicyConfigError
from tests.lsm.independent_table import masked_crc
from tests.lsm.simulated import SimulatedStorage

BATCHES = [{b"%d%d" % (batch, key): b"v" * batch for key in range(3)} for batch in range(1, 8)]


def make(path: Path, *, flushed: bool = True, **options: Any) -> Path:
    """A database of ten entries, in a table or in its log."""
    with lsm.DB(path, create_if_missing=True, **options) as db:
        for number in range(10):
            db.put(b"key%d" % number, b"value%d" % number * 20)
        if flushed:
            db.flush()
    return path


CONTENTS = [(b"key%d" % number, b"value%d" % number * 20) for number in range(10)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return make(tmp_path / "db")


def manifest_of(path: Path) -> Path:
    return path / (path / "CURRENT").read_text().strip()


def only(path: Path, ending: str) -> Path:
    (found,) = path.glob(f"*{ending}")
    return found


def opened(path: Path, **options: Any) -> list[tuple[bytes, bytes]]:
    """What there is, once opened."""
    with lsm.DB(path, **options) as db:
        return list(db)


READ_ONLY = pytest.mark.parametrize("options", [{}, {"read_only": True}], ids=["write", "read"])

# -- No database -----------------------------------------------------------------------------


@READ_ONLY
def test_a_missing_directory_is_named(tmp_path: Path, options: dict[str, Any]) -> None:
    with pytest.raises(NotADatabaseError, match="nowhere: does not exist.*create_if_missing"):
        lsm.DB(tmp_path / "nowhere", **options)
    assert os.listdir(tmp_path) == []


@READ_ONLY
def test_a_directory_of_other_things_is_no_database(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "000001.jpg").write_text("mine, too")
    with pytest.raises(NotADatabaseError, match=f"{tmp_path}: does not exist.*create_if_missing"):
        lsm.DB(tmp_path, **options)
    if not options:
        lsm.DB(tmp_path, create_if_missing=True).close()
        assert (tmp_path / "notes.txt").read_text() == "mine"
        assert (tmp_path / "000001.jpg").read_text() == "mine, too"


@pytest.mark.parametrize("options", [{}, {"create_if_missing": True}, {"read_only": True}])
def test_a_file_is_no_database(tmp_path: Path, options: dict[str, Any]) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(Error, match="file"):
        lsm.DB(tmp_path / "file", **options)
    assert (tmp_path / "file").read_text() == "mine"


def test_without_its_current_file_a_database_is_not_created_over(path: Path) -> None:
    (path / "CURRENT").unlink()
    for options in ({}, {"create_if_missing": True}, {"read_only": True}):
        with pytest.raises(NotADatabaseError, match="CURRENT does not exist.*repair_db"):
            lsm.DB(path, **options)
    lsm.repair_db(path)
    assert opened(path) == CONTENTS


def test_a_database_where_none_was_expected(path: Path) -> None:
    with pytest.raises(NotADatabaseError, match="error_if_exists"):
        lsm.DB(path, create_if_missing=True, error_if_exists=True)
    assert opened(path) == CONTENTS


def test_what_is_open_cannot_be_opened(path: Path) -> None:
    with lsm.DB(path):
        for options in ({}, {"read_only": True}):
            with pytest.raises(LockedError, match="this process.*close it there.*LOCK"):
                lsm.DB(path, **options)
    assert opened(path) == CONTENTS


def test_the_comparator_is_part_of_a_database(tmp_path: Path, path: Path) -> None:
    order = {"comparator": lambda one, other: 0, "comparator_name": b"mine"}
    with pytest.raises(ComparatorError, match="MANIFEST.*BytewiseComparator.*'mine' was given"):
        lsm.DB(path, **order)
    lsm.DB(tmp_path / "mine", create_if_missing=True, **order).close()
    with pytest.raises(ComparatorError, match="'mine'.*comparator_name"):
        lsm.DB(tmp_path / "mine")


# -- Damage ----------------------------------------------------------------------------------


CURRENTS = [b"", b"\n", b"MANIFEST-000001", b"MANIFEST-999999\n", b"000003.log\n", b"\xff\xfe\n"]
CURRENTS += [b"../MANIFEST-000001\n", b"MANIFEST-\n", b"MANIFEST-000001\n\n", b"x" * 5000]
CURRENTS += [b"MANIFEST-000001\0\n"]


@pytest.mark.parametrize("text", CURRENTS)
@READ_ONLY
def test_a_damaged_current_is_corruption(text: bytes, options: dict[str, Any], path: Path) -> None:
    (path / "CURRENT").write_bytes(text)
    with pytest.raises(CorruptionError, match="(CURRENT|MANIFEST).*repair_db"):
        lsm.DB(path, **options)
    lsm.repair_db(path)
    assert opened(path) == CONTENTS


def test_no_damage_to_the_manifest_goes_unseen(path: Path) -> None:
    """But for a length that makes a record look torn: nothing tells that from a loss of power."""
    manifest = manifest_of(path)
    whole = manifest.read_bytes()
    lengths, at = set(), 0
    while at < len(whole):
        lengths |= {at + 4, at + 5}
        at += 7 + int.from_bytes(whole[at + 4 : at + 6], "little")
    refused = 0
    for at in range(len(whole)):
        for flipped in (0x01, 0x80, 0xFF):
            manifest.write_bytes(whole[:at] + bytes((whole[at] ^ flipped,)) + whole[at + 1 :])
            try:
                found = opened(path, read_only=True)
            except CorruptionError as error:
                refused += 1
                said = str(error)
            else:
                assert at in lengths, f"byte {at} ^ {flipped}: {found}"
                continue
            assert manifest.name in said, (at, flipped)
            assert "repair_db" in said, (at, flipped)
    assert refused >= 3 * (len(whole) - len(lengths))


def test_a_manifest_that_is_cut_is_an_error_or_an_earlier_state(path: Path) -> None:
    manifest = manifest_of(path)
    whole = manifest.read_bytes()
    errors: list[str] = []
    for length in range(len(whole)):
        manifest.write_bytes(whole[:length])
        try:
            assert opened(path, read_only=True) in ([], CONTENTS)
        except CorruptionError as error:
            errors.append(str(error))
    assert len(errors) > 10
    assert all(manifest.name in said and "repair_db" in said for said in errors)
    manifest.write_bytes(whole[: len(whole) // 3])
    lsm.repair_db(path)
    assert opened(path) == CONTENTS


@READ_ONLY
def test_a_missing_table_is_named(path: Path, options: dict[str, Any]) -> None:
    table = only(path, ".ldb")
    table.unlink()
    with pytest.raises(CorruptionError, match=f"{table.name}: this table is missing.*repair_db"):
        lsm.DB(path, **options)


@pytest.mark.parametrize("length", [0, 1, 47, 48, -1, None])
def test_a_table_of_another_length_is_named(length: int | None, path: Path) -> None:
    table = only(path, ".ldb")
    whole = table.read_bytes()
    table.write_bytes(whole + b"x" if length is None else whole[:length])
    with lsm.DB(path) as db:
        for read in (lambda: db.get(b"key1"), lambda: list(db), lambda: db.explain(b"key1")):
            with pytest.raises(CorruptionError, match=f"{table.name}: has .* the manifest says"):
                read()
        assert db.get(b"a") is None, "outside of its bounds it is not asked"


@pytest.mark.parametrize("kind", [2, 3, 0x80, 255])
def test_an_unknown_compression_is_refused(kind: int, tmp_path: Path) -> None:
    path = make(tmp_path / "db", compression=None)
    table = only(path, ".ldb")
    data = bytearray(table.read_bytes())
    end = data.index(b"value9" * 20) + 120 + 8  # one restart, and their number
    assert data[end] == 0
    data[end] = kind
    data[end + 1 : end + 5] = struct.pack("<I", masked_crc(bytes(data[: end + 1])))
    table.write_bytes(data)
    with lsm.DB(path) as db:
        for read in (lambda: db.get(b"key1"), lambda: list(db)):
            with pytest.raises(CorruptionError, match=f"{table.name}: the data block at byte 0"):
                read()
    if kind != 2:
        with lsm.DB(path) as db, pytest.raises(CorruptionError, match=f"{kind}"):
            db.get(b"key1")


# -- Logs ------------------------------------------------------------------------------------


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """The log of a database of some batches and no table."""
    with lsm.DB(tmp_path / "db", create_if_missing=True) as db:
        for batch in BATCHES:
            with db.write_batch() as written:
                for key, value in batch.items():
                    written.put(key, value)
    return only(tmp_path / "db", ".log")


def prefixes() -> list[list[tuple[bytes, bytes]]]:
    """The contents after none, one, and so on of the batches."""
    found: list[list[tuple[bytes, bytes]]] = [[]]
    for batch in BATCHES:
        found.append([*found[-1], *batch.items()])
    return found


@pytest.mark.parametrize("paranoid", [False, True])
def test_a_torn_log_holds_the_batches_before_the_tear(paranoid: bool, log: Path) -> None:
    whole, expected, lengths = log.read_bytes(), prefixes(), []
    for length in range(len(whole) + 1):
        log.write_bytes(whole[:length])
        found = opened(log.parent, read_only=True, paranoid_checks=paranoid)
        assert found in expected
        lengths.append(len(found))
    assert lengths == sorted(lengths)
    assert lengths[-1] == len(expected[-1])


def test_a_damaged_log_is_read_up_to_there_and_paranoia_refuses_it(log: Path) -> None:
    whole, expected = log.read_bytes(), prefixes()
    refused = 0
    for at in range(0, len(whole), 3):
        log.write_bytes(whole[:at] + bytes((whole[at] ^ 0x11,)) + whole[at + 1 :])
        with lsm.DB(log.parent, read_only=True) as db:
            assert list(db) in expected[:-1]
            losses = db.stats().log_losses
        if losses:
            assert log.name in losses[0]
            refused += 1
            with pytest.raises(CorruptionError, match=f"{log.name}.*paranoid_checks.*repair_db"):
                lsm.DB(log.parent, read_only=True, paranoid_checks=True)
    assert refused > len(whole) // 3 * 0.8


def test_a_record_that_is_no_batch_is_named_with_its_place(log: Path) -> None:
    """Under a right checksum; what stands behind it is not read, and told of as well."""
    whole = log.read_bytes()
    first = 7 + int.from_bytes(whole[4:6], "little")
    length = int.from_bytes(whole[first + 4 : first + 6], "little")
    payload = bytearray(whole[first + 7 : first + 7 + length])
    payload[12] = 9  # the type of the first operation
    crc = struct.pack("<I", masked_crc(b"\1" + payload))
    log.write_bytes(
        whole[:first] + crc + whole[first + 4 : first + 7] + payload + whole[first + 7 + length :]
    )
    with lsm.DB(log.parent, read_only=True) as db:
        assert list(db) == prefixes()[1]
        (loss,) = db.stats().log_losses
    said = f"{len(whole) - first} bytes from byte {first} on: .*unknown type 9"
    with pytest.raises(CorruptionError, match=f"{log.name}: {said}.*repair_db"):
        lsm.DB(log.parent, read_only=True, paranoid_checks=True)
    assert f"{len(whole) - first} bytes from byte {first} on" in loss


@pytest.mark.parametrize("name", [f"{2**62}.log", f"{2**63 - 1}.ldb", f"MANIFEST-{2**62}"])
@READ_ONLY
def test_a_file_with_an_absurd_number_is_named(
    path: Path, name: str, options: dict[str, Any]
) -> None:
    """Counting on from it would end soon; what is beyond what is ever counted to is ignored."""
    (path / name).write_bytes(b"")
    with pytest.raises(CorruptionError, match=f"{name}: its number.*highest.*{2**62 - 1}.*move"):
        lsm.DB(path, **options)
    (path / name).rename(path / f"{2**63}.ldb")
    assert opened(path, **options) == CONTENTS
    assert (path / f"{2**63}.ldb").exists()


def test_opening_after_a_loss_goes_on_with_what_there_is(log: Path) -> None:
    data = bytearray(log.read_bytes())
    data[len(data) // 2] ^= 1
    log.write_bytes(data)
    with lsm.DB(log.parent) as db:
        kept = list(db)
        assert 0 < len(kept) < len(prefixes()[-1])
        assert len(db.stats().log_losses) == 1
        db.put(b"z", b"new")
    with lsm.DB(log.parent, paranoid_checks=True) as db:
        assert list(db) == [*kept, (b"z", b"new")]
        assert db.stats().log_losses == ()


# -- Arguments -------------------------------------------------------------------------------


@pytest.fixture
def db() -> Iterator[lsm.DB]:
    with lsm.DB("db", create_if_missing=True, storage=SimulatedStorage()) as db:
        yield db


WRONG: dict[str, tuple[Callable[[lsm.DB], Any], str]] = {
    "get": (lambda db: db.get("key"), r"key is bytes, not str.*key\.encode\(\)"),
    "put": (lambda db: db.put("key", b""), "key is bytes, not str"),
    "put value": (lambda db: db.put(b"key", "value"), "value is bytes, not str"),
    "delete": (lambda db: db.delete("key"), "key is bytes, not str"),
    "get_many": (lambda db: db.get_many(["key"]), "key is bytes, not str"),
    "get_many of a number": (lambda db: db.get_many([1]), "key is bytes.*not int"),
    "get_many of bytes": (lambda db: db.get_many(b"key"), "key is bytes.*not int"),
    "get_many of nothing": (lambda db: db.get_many(None), "not iterable"),
    "might_contain": (lambda db: db.might_contain("key"), "key is bytes, not str"),
    "might_contain of None": (lambda db: db.might_contain(None), "not NoneType"),
    "explain": (lambda db: db.explain("key"), "key is bytes, not str"),
    "explain of a number": (lambda db: db.explain(5), "key is bytes.*not int"),
    "snapshot.get_many": (lambda db: db.snapshot().get_many(["k"]), "key is bytes, not str"),
    "prefixed.get_many": (lambda db: db.prefixed_db(b"p").get_many(["k"]), "key is bytes, not str"),
    "seek": (lambda db: db.iterator().seek("k"), "target is bytes, not str"),
    "start": (lambda db: db.iterator(start="k"), "start is bytes, not str"),
    "prefix": (lambda db: db.prefixed_db("k"), "prefix is bytes, not str"),
    "compact_range": (lambda db: db.compact_range(start="k"), "start is bytes, not str"),
    "sync": (lambda db: db.put(b"k", b"", sync=1), "sync is True or False, not int"),
    "property": (lambda db: db.get_property("leveldb.stats"), "name is bytes, not str"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_argument_is_a_type_error_that_names_it(what: str, db: lsm.DB) -> None:
    call, said = WRONG[what]
    with pytest.raises(TypeError, match=said):
        call(db)
    assert list(db) == []


OPENING: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "read_only": ({"read_only": 1}, TypeError, "read_only is True or False, not int"),
    "creating read_only": (
        {"read_only": True, "create_if_missing": True},
        ValueError,
        "read_only=True cannot be created",
    ),
    "filter_policy by name": ({"filter_policy": "blocked"}, TypeError, "policies.create"),
    "filter_policy class": (
        {"filter_policy": policies.BlockedPolicy},
        TypeError,
        "policies.create",
    ),
    "budget without a unit": ({"filter_budget": "10"}, ValueError, "filter_budget is a number"),
    "budget and policy": (
        {"filter_budget": "10 bits/key", "filter_policy": policies.BlockedPolicy()},
        ValueError,
        "leave out filter_policy, or the budget",
    ),
    "read cost alone": ({"filter_read_cost": "1 ms"}, ValueError, "filter_read_cost goes with a"),
    "layout alone": ({"filter_layout": "block"}, ValueError, "filter_layout.*filter_policy"),
    "unknown layout": (
        {"filter_policy": policies.BlockedPolicy(), "filter_layout": "round"},
        Exception,
        "round",
    ),
    "two filters": (
        {"filter_policy": policies.BlockedPolicy(), "bloom_filter_bits": 10},
        ValueError,
        "bloom_filter_bits",
    ),
    "filters_compare_bytes": (
        {"filters_compare_bytes": "yes"},
        TypeError,
        "filters_compare_bytes is a bool, not str",
    ),
    "filter_cache_size": ({"filter_cache_size": -1}, ValueError, "filter_cache_size is out of"),
    "table_cache_size": ({"table_cache_size": "big"}, ValueError, "table_cache_size is a whole"),
    "compression": ({"compression": "zlib"}, ValueError, "compression is 'zlib'.*snappy, zstd"),
    "config": ({"config": 5}, TypeError, "int"),
}


@pytest.mark.parametrize("what", OPENING)
def test_a_wrong_option_leaves_nothing_behind(what: str, tmp_path: Path) -> None:
    options, kind, said = OPENING[what]
    with pytest.raises(kind, match=said):
        lsm.DB(tmp_path / "db", **{"create_if_missing": True} | options)
    assert os.listdir(tmp_path) == []


CONFIGURATIONS = {
    "[engine]\nwrite_bufer_size = 5\n": r"\[engine\].*'write_bufer_size'.*write_buffer_size",
    "[engine]\nblock_size = 1\n": r"\[engine\].*block_size is out of range: 1 byte",
    "[engine]\nblock_size = true\n": r"\[engine\].*block_size",
    "engine = 3\n": r"'engine' is a table, written \[engine\]",
    "[filters]\npolicy = 'bloomed'\n": "bloomed",
    "[motor]\n": "motor",
    "[engine\n": "not valid TOML",
}


@pytest.mark.parametrize("text", CONFIGURATIONS)
def test_a_wrong_configuration_says_file_table_and_key(text: str, tmp_path: Path) -> None:
    file = tmp_path / "lsm.toml"
    file.write_text(text)
    with pytest.raises(PolicyConfigError, match=f"{file}.*{CONFIGURATIONS[text]}"):
        lsm.DB(tmp_path / "db", create_if_missing=True, config=file)
    assert not (tmp_path / "db").exists()


def test_damaged_options_that_were_kept_say_what_overrides_them(path: Path) -> None:
    (path / "lsm-options.toml").write_text("[engine]\nblock_size = 'large'\n")
    with pytest.raises(PolicyConfigError, match="lsm-options.toml.*config= takes the place"):
        lsm.DB(path)
    file = path.parent / "lsm.toml"
    file.write_text("")
    assert opened(path, config=file) == CONTENTS
    assert opened(path) == CONTENTS


# -- Reading only ----------------------------------------------------------------------------


def everything(path: Path) -> dict[str, tuple[bytes, int]]:
    return {each.name: (each.read_bytes(), each.stat().st_mtime_ns) for each in path.iterdir()}


@pytest.fixture(params=["table and log", "log", "long log", "table"])
def at_rest(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A database in a state that reading must leave as it is."""
    path = make(tmp_path / "db", flushed="table" in request.param)
    if request.param == "table and log":
        with lsm.DB(path) as db:
            db.delete(b"key0")
            db.put(b"key0", CONTENTS[0][1])
    if request.param == "long log":
        with lsm.DB(path, write_buffer_size=1 << 30) as db:
            for number in range(2000):
                db.put(b"key%d" % (number % 10), CONTENTS[number % 10][1])
        with lsm.DB(path, read_only=True, write_buffer_size=1) as db:
            assert list(db) == CONTENTS
    return path


def test_reading_writes_nothing(at_rest: Path) -> None:
    before = everything(at_rest)
    with lsm.DB(at_rest, read_only=True) as db:
        assert list(db) == CONTENTS
        assert list(db.iterator(reverse=True)) == CONTENTS[::-1]
        assert db.get_many([key for key, _ in CONTENTS]) == [value for _, value in CONTENTS]
        assert db.snapshot().get(b"key1") == CONTENTS[1][1]
        assert db.might_contain(b"key3")
        assert db.explain(b"key3").found
        assert "tables" in str(db.stats())
        assert len(db.filters()) == LEVELS
        db.wait_until_idle()
        batch = db.write_batch()
        batch.put(b"a", b"b")
        for write in (
            lambda: db.put(b"a", b"b"),
            lambda: db.delete(b"key1"),
            lambda: db.prefixed_db(b"k").put(b"a", b"b"),
            batch.write,
            db.flush,
            db.compact_range,
        ):
            with pytest.raises(ReadOnlyError, match="was opened with read_only=True"):
                write()
        assert list(db) == CONTENTS
    assert everything(at_rest) == before


def test_readers_join_each_other_and_keep_out_a_writer(at_rest: Path) -> None:
    with lsm.DB(at_rest, read_only=True) as one, lsm.DB(at_rest, read_only=True) as other:
        assert list(one) == list(other) == CONTENTS
        one.close()
        with pytest.raises(LockedError, match="is reading the database.*read_only=True"):
            lsm.DB(at_rest)
        assert list(other) == CONTENTS
    with lsm.DB(at_rest) as db:
        with pytest.raises(LockedError):
            lsm.DB(at_rest, read_only=True)
        db.put(b"key0", CONTENTS[0][1])
    assert opened(at_rest, read_only=True) == CONTENTS


def test_reading_needs_no_lock_file_and_none_of_our_own(at_rest: Path) -> None:
    for name in ("LOCK", "lsm-options.toml", "lsm-seed"):
        (at_rest / name).unlink()
    before = everything(at_rest)
    assert opened(at_rest, read_only=True) == CONTENTS
    assert everything(at_rest) == before


def test_leveldbs_own_database_is_read_without_a_trace(tmp_path: Path) -> None:
    plyvel = pytest.importorskip("plyvel")
    path = tmp_path / "db"
    with plyvel.DB(str(path), create_if_missing=True) as db:
        for key, value in CONTENTS:
            db.put(key, value)
    before = everything(path)
    assert opened(path, read_only=True) == CONTENTS
    assert everything(path) == before


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may do all")
def test_what_may_not_be_read_or_written_is_an_error_of_the_system(path: Path) -> None:
    path.chmod(0o555)
    try:
        with pytest.raises(IOError, match="Permission denied"):
            lsm.DB(path)
        assert opened(path, read_only=True) == CONTENTS
        path.chmod(0)
        with pytest.raises(IOError, match="Permission denied"):
            lsm.DB(path, read_only=True)
    finally:
        path.chmod(0o755)


class Refusing(FileSystem):
    """A file system that may be read and not written."""

    def create(self, path: str, *, small_appends: bool = False) -> Any:
        raise IOError(30, "cannot create the file: Read-only file system", path)


def test_a_medium_that_cannot_be_written_is_read(path: Path) -> None:
    assert opened(path, read_only=True, storage=Refusing()) == CONTENTS
    with pytest.raises(IOError, match="Read-only file system"):
        lsm.DB(path, storage=Refusing())
    shutil.copytree(path, path.parent / "copy")
    assert opened(path.parent / "copy") == CONTENTS
