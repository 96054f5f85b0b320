"""The filters of tables of every store: what they are, of which keys, and that none is denied."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from filters import RocksDBBloomFilter
from lsm.survey import table
from lsm.survey.found import FileFound, FilterFound
from lsm.survey.source import Source
from tests.effort import spread
from tests.lsm.independent_table import Pair, varint
from tests.lsm.survey.foreign_tables import (
    CHECKSUMS,
    COMPRESSIONS,
    PEBBLE_MAGIC,
    VERSIONS,
    forge,
    keys_of,
    pebble_fuse_of,
    pebble_lines_of,
    signed_window_of,
    windows_of,
    write_leveldbs,
    write_rocksdbs,
)
from tests.lsm.survey.test_table import GOLDEN, GOLDEN_KEYS

KEYS = keys_of(700)
ABSENT = [b"kez%06d" % number for number in range(20_000)]
FULL = b"fullfilter.rocksdb.BuiltinBloomFilter"
SCHEMA = [(b"pebble.colblk.schema", b"DefaultKeySchema(leveldb.BytewiseComparator,16)")]

CASES = list(itertools.product(VERSIONS, CHECKSUMS, COMPRESSIONS, (False, True)))


def look(path: Path, data: bytes | None = None) -> FileFound:
    """What is found in a file, of these bytes if any are given."""
    if data is not None:
        path.write_bytes(data)
    return table.found(Source(path))


def keys_in(found: FilterFound) -> list[bytes]:
    """The keys of a filter, after seeing that it denies none of them."""
    assert found.keys is not None
    assert found.problem == ""
    keys = list(found.keys())
    assert all(found.reader.might_contain_many(keys))
    assert all(map(found.reader.might_contain, keys))
    return keys


def measured(found: FilterFound, keys: Sequence[bytes] = ABSENT) -> float:
    """The share of absent keys that pass."""
    return float(sum(found.reader.might_contain_many(keys)) / len(keys))


@pytest.mark.parametrize(
    ("version", "checksum", "compression", "partitioned"), spread(CASES, quick=40)
)
def test_rocksdbs_filters_deny_no_key(
    version: int, checksum: str, compression: str, partitioned: bool, tmp_path: Path
) -> None:
    options = {"version": version, "checksum": checksum, "compression": compression}
    interval = 1 + 3 * (version // 2 % 2)
    path = write_rocksdbs(
        tmp_path / "t", KEYS, partitioned=partitioned, index_interval=interval, **options
    )
    found = look(path)
    assert len(found.filters) > 3 if partitioned else len(found.filters) == 1
    data = path.read_bytes()
    together = []
    for each in found.filters:
        together += keys_in(each)
        assert (each.family, each.guard.is_there) == ("rocksdb", checksum != "no_checksum")
        assert each.guard.checked == ("right" if each.guard.is_there else "none")
        assert data[each.offset : each.offset + each.size] == each.reader.to_bytes()
        assert each.form == (
            "RocksDB's Bloom filter of format versions up to 4"
            if version < 5
            else "RocksDB's cache-local Bloom filter"
        )
        assert each.parameters["line bytes"] == 64
        assert each.parameters["lines"] == (each.size - 5) // 64
        assert each.fill == each.reader.fill
        assert each.expected_fpr is not None
        assert measured(each) < 3 * each.expected_fpr + 0.002
    assert together == KEYS
    if not partitioned:
        assert found.filters[0].num_keys == len(KEYS)
        assert found.filters[0].bits_per_key == 8 * found.filters[0].size / len(KEYS)


@pytest.mark.parametrize("partitioned", [False, True])
@pytest.mark.parametrize("kind", ["fixed", "noop", "max_len"])
def test_rocksdbs_prefixes_are_among_the_keys(kind: str, partitioned: bool, tmp_path: Path) -> None:
    """Those of its own; of anybody else's it is known that they are there, too."""
    rocksdict = pytest.importorskip("rocksdict")
    made, name = {
        "fixed": (rocksdict.SliceTransform.create_fixed_prefix(7), "rocksdb.FixedPrefix.7"),
        "noop": (rocksdict.SliceTransform.create_noop(), "rocksdb.Noop"),
        "max_len": (rocksdict.SliceTransform.create_max_len_prefix(7), "max_len"),
    }[kind]
    keys = sorted([*KEYS, b"a", b"ab", b"zz"])
    path = write_rocksdbs(tmp_path / "t", keys, prefix=made, partitioned=partitioned)
    found = look(path)
    together = list(itertools.chain.from_iterable(map(keys_in, found.filters)))
    prefixes = {key[:7] for key in keys if len(key) >= 7} if kind == "fixed" else set()
    assert set(together) == {*keys, *prefixes}
    said = "and of prefixes unknown here" if kind == "max_len" else "and prefixes"
    for each in found.filters:
        assert each.form.endswith(f"{said} ({name})")
    if kind == "fixed" and not partitioned:
        assert found.filters[0].num_keys == len(together)


def said(**properties: bytes | int) -> list[Pair]:
    """RocksDB's properties of these names."""
    return [
        (b"rocksdb." + name.replace("__", ".").encode(), varint(v) if isinstance(v, int) else v)
        for name, v in properties.items()
    ]


PREFIXED: dict[str, bytes] = {
    "prefix__extractor__name": b"rocksdb.FixedPrefix.6",
    "block__based__table__prefix__filtering": b"1",
    "block__based__table__whole__key__filtering": b"0",
}


@pytest.mark.parametrize(
    ("properties", "note", "is_known"),
    [
        (PREFIXED, "of prefixes alone (rocksdb.FixedPrefix.6)", True),
        (
            {**PREFIXED, "prefix__extractor__name": b"rocksdb.CappedPrefix.6"},
            "of prefixes alone (rocksdb.CappedPrefix.6)",
            True,
        ),
        ({**PREFIXED, "prefix__extractor__name": b"mine"}, "of prefixes alone (mine)", False),
        (
            {"block__based__table__whole__key__filtering": b"0"},
            "of neither whole keys nor prefixes",
            False,
        ),
        ({"comparator": b"mine.u64ts"}, "of keys without their timestamps", False),
    ],
)
def test_filters_of_prefixes_alone_have_no_whole_keys(
    properties: dict[str, Any], note: str, is_known: bool, tmp_path: Path
) -> None:
    """And where nobody can tell what was added, there are no keys."""
    keys = [b"a", *KEYS]
    prefixes = sorted({key[:6] for key in keys})
    named = [(FULL, RocksDBBloomFilter.build(prefixes, bits_per_key=20).to_bytes())]
    properties = {"comparator": b"leveldb.BytewiseComparator", **properties}
    [found] = look(tmp_path / "t", forge(keys, named, properties=said(**properties))).filters
    assert found.form.endswith(f", {note}")
    if is_known:
        assert keys_in(found) == (prefixes if "Capped" in note else prefixes[1:])
    else:
        assert found.keys is None
        assert found.reader is not None


def test_whole_keys_are_told_where_prefixes_are_anybodys(tmp_path: Path) -> None:
    properties = {**PREFIXED, "prefix__extractor__name": b"mine"}
    properties["block__based__table__whole__key__filtering"] = b"1"
    named = [(FULL, RocksDBBloomFilter.build(KEYS, bits_per_key=20).to_bytes())]
    [found] = look(tmp_path / "t", forge(KEYS, named, properties=said(**properties))).filters
    assert found.form.endswith(", of whole keys, and of prefixes unknown here (mine)")
    assert keys_in(found) == KEYS


@pytest.mark.parametrize("version", [2, 5])
@pytest.mark.parametrize("order", ["leveldb.Bytewise", "rocksdb.ReverseBytewise", "mine"])
def test_partitions_have_the_keys_that_are_looked_for_in_them(
    order: str, version: int, tmp_path: Path
) -> None:
    """Up to the last key of each, and the last one all behind it; in an order that is known."""
    keys = KEYS[::-1] if "Reverse" in order else KEYS
    shares = [keys[:100], keys[100:101], keys[101:400], keys[400:]]
    lasts = [share[-1] for share in shares[:3]] + [keys[500]]
    filters = [RocksDBBloomFilter.build(share, bits_per_key=12).to_bytes() for share in shares]
    data = forge(
        keys,
        properties=said(comparator=order.encode() + b"Comparator"),
        partitions=list(zip(lasts, filters, strict=True)),
        version=version,
    )
    found = look(tmp_path / "t", data)
    assert [each.where for each in found.filters] == [f"partition {n} of 4" for n in (1, 2, 3, 4)]
    if order == "mine":
        assert [each.keys for each in found.filters] == [None] * 4
        assert found.filters[0].form.endswith(", of ranges in the order of mineComparator")
    else:
        assert [keys_in(each) for each in found.filters] == shares


def test_leveldbs_windows_have_the_keys_of_their_blocks(tmp_path: Path) -> None:
    path = write_leveldbs(tmp_path / "db", KEYS, compression=None)
    found = look(path)
    assert (found.store, found.problems) == ("LevelDB", ())
    assert len(found.filters) > 10
    data = path.read_bytes()
    together = []
    for each in found.filters:
        together += keys_in(each)
        assert (each.family, each.guard.kind, each.guard.checked) == ("leveldb", "crc32c", "right")
        assert data[each.offset : each.offset + each.size] == each.reader.to_bytes()
        assert each.parameters == {"probes": 6, "bits": 8 * each.size - 8}
        assert each.where.startswith("window ")
    assert together == KEYS
    assert 0 < sum(map(measured, found.filters)) / len(found.filters) < 0.02


@pytest.mark.parametrize("name", GOLDEN_KEYS)
def test_golden_filters_deny_no_key(name: str) -> None:
    found = look(GOLDEN / name)
    together = list(itertools.chain.from_iterable(map(keys_in, found.filters)))
    assert together == GOLDEN_KEYS[name]
    assert {each.family for each in found.filters} == {found.store.lower()}


def test_rocksdbs_windows_are_asked_with_its_own_hash(tmp_path: Path) -> None:
    """LevelDB's hash would deny some: those that end in bytes above 127."""
    plain = table.Table(Source(_write(tmp_path / "a", forge(KEYS)))).data
    windows: list[list[bytes]] = [[] for _ in range(plain.offsets[-1] // 2048 + 1)]
    for number, offset in enumerate(plain.offsets):
        windows[offset // 2048] += plain.keys(number, number + 1)
    block = windows_of([signed_window_of(keys) for keys in windows])
    named = [(b"filter.rocksdb.BuiltinBloomFilter", block)]
    found = look(tmp_path / "t", forge(KEYS, named))
    assert [keys_in(each) for each in found.filters] == windows
    assert {each.family for each in found.filters} == {"leveldb"}
    assert found.filters[0].form.endswith(", with RocksDB's hash")
    assert found.filters[0].expected_fpr == pytest.approx(0.01, abs=0.01)
    assert 0 < sum(map(measured, found.filters)) / len(found.filters) < 0.02
    leveldbs = look(tmp_path / "l", forge(KEYS, [(b"filter.leveldb.BuiltinBloomFilter2", block)]))
    denied = [
        key
        for each, keys in zip(leveldbs.filters, windows, strict=True)
        for key in keys
        if not each.reader.might_contain(key)
    ]
    assert denied
    assert all(key[-1] > 127 for key in denied)


def _write(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def test_windows_of_odd_forms_are_what_they_are_to_rocksdb(tmp_path: Path) -> None:
    """Too many probes for any that were there: everything passes. One byte: nothing does."""
    block = windows_of([b"\0" * 8 + b"\x1f", b"\x06"])
    named = [(b"filter.rocksdb.BuiltinBloomFilter", block)]
    first, second = look(tmp_path / "t", forge(KEYS, named)).filters
    assert first.reader.might_contain_many(ABSENT[:3]) == [True] * 3
    assert second.reader.might_contain_many(KEYS[:3]) == [False] * 3


@pytest.mark.parametrize("version", [1, 4, 5, 6, 7])
def test_pebbles_lines_are_read(version: int, tmp_path: Path) -> None:
    named = [(FULL, pebble_lines_of(KEYS, 15))]
    found = look(
        tmp_path / "t", forge(KEYS, named, magic=PEBBLE_MAGIC, version=version, properties=SCHEMA)
    )
    [each] = found.filters
    assert (found.store, each.family) == ("Pebble", "rocksdb")
    assert each.form.startswith("Pebble's Bloom filter of 64-byte lines")
    assert each.parameters == {"probes": 6, "lines": 15, "line bytes": 64}
    assert keys_in(each) == KEYS
    assert 0 < measured(each) < 0.03
    if version >= 5:
        [other] = look(
            tmp_path / "o", forge(KEYS, named, magic=PEBBLE_MAGIC, version=version)
        ).filters
        assert other.keys is None
        assert other.form.endswith(", of keys in columns of the schema ''")


@pytest.mark.parametrize("version", [4, 8])
@pytest.mark.parametrize("bits", [4, 8, 10, 12, 16])
def test_pebbles_binary_fuse_is_read(bits: int, version: int, tmp_path: Path) -> None:
    named = [(b"fullfilter.binaryfuse", pebble_fuse_of(KEYS, bits))]
    found = look(
        tmp_path / "t", forge(KEYS, named, magic=PEBBLE_MAGIC, version=version, properties=SCHEMA)
    )
    [each] = found.filters
    assert (each.family, each.form) == ("binary-fuse", "Pebble's binary fuse filter")
    assert each.parameters["fingerprint bits"] == bits
    assert keys_in(each) == KEYS
    assert each.expected_fpr == 2**-bits
    assert measured(each) == pytest.approx(2**-bits, rel=0.2, abs=0.001)


@pytest.mark.parametrize("comparator", [b"cockroach_comparator", b"leveldb.BytewiseComparator"])
def test_what_pebble_takes_of_keys_is_known_for_bytes_alone(
    comparator: bytes, tmp_path: Path
) -> None:
    named = [(FULL, pebble_lines_of(KEYS, 15))]
    data = forge(KEYS, named, magic=PEBBLE_MAGIC, version=3, properties=said(comparator=comparator))
    [each] = look(tmp_path / "t", data).filters
    assert (each.keys is None) == (comparator == b"cockroach_comparator")


def test_unknown_filters_are_named_unknown(tmp_path: Path) -> None:
    names = [b"fullfilter.mine", b"filter.leveldb.BuiltinBloomFilter", b"fixedsizefilter.rocksdb.X"]
    found = look(tmp_path / "t", forge(KEYS, [(name, b"bytes") for name in names]))
    assert sorted(each.form for each in found.filters) == sorted(
        f"unknown: {name.decode()}" for name in names
    )
    for each in found.filters:
        assert (each.family, each.reader, each.keys, each.problem) == (None, None, None, "")
        assert (each.size, each.guard.checked) == (5, "right")


def test_a_filter_under_a_wrong_checksum_is_not_asked(tmp_path: Path) -> None:
    path = write_rocksdbs(tmp_path / "t", KEYS, version=6)
    [sound] = look(path).filters
    data = bytearray(path.read_bytes())
    data[sound.offset + 3] ^= 1
    [found] = look(tmp_path / "d", bytes(data)).filters
    assert (found.guard.kind, found.guard.checked) == ("xxh3", "wrong")
    assert (found.family, found.form, found.reader, found.keys) == (None, "unreadable", None, None)
    assert found.problem == (
        f"{tmp_path / 'd'}: at byte {sound.offset}: the filter block of {sound.size} bytes does "
        "not match its xxh3 checksum"
    )


@pytest.mark.parametrize(
    ("name", "contents", "problem"),
    [
        ("filter.leveldb.BuiltinBloomFilter2", b"abc", "takes 5 bytes at least"),
        ("filter.rocksdb.BuiltinBloomFilter", windows_of([b"ab"], 60), "windows of 2^60 bytes"),
        ("partitionedfilter.rocksdb.BuiltinBloomFilter", b"abc", "no room for"),
        ("fullfilter.binaryfuse", b"abc", "cut short"),
        ("fullfilter.binaryfuse", b"abc" + bytes(14), "has 0 segments of"),
        ("partitionedfilter.lsm.blocked", b"abc", "no room for"),
        ("prefixfilter.lsm.blocked", b"abcdefghijklmn", "not a filter block"),
        ("prefixfilter.lsm.blocked", b"LSMPabcdefghijkl", "prefixes of version 97"),
    ],
)
def test_a_filter_that_is_none_has_a_problem_with_its_place(
    name: str, contents: bytes, problem: str, tmp_path: Path
) -> None:
    path = tmp_path / "t"
    [found] = look(path, forge(KEYS, [(name.encode(), contents)])).filters
    assert (found.family, found.reader) == (None, None)
    assert found.form.startswith("unreadable")
    assert found.problem.startswith(f"{path}: at byte {found.offset}: ")
    assert problem in found.problem


def test_many_filters_are_looked_at_when_they_are_asked_for(tmp_path: Path) -> None:
    found = look(write_rocksdbs(tmp_path / "t", KEYS, partitioned=True))
    filters, count = found.filters, len(found.filters)
    assert repr(filters) == f"<{count} filters>"
    assert filters[-1].where == f"partition {count} of {count}"
    assert [each.where for each in filters[1:3]] == [f"partition {n} of {count}" for n in (2, 3)]
    for index in (count, -count - 1):
        with pytest.raises(IndexError, match=f"there are {count} filters"):
            filters[index]


@pytest.mark.parametrize("partitioned", [False, True])
def test_a_databases_table_has_each_key_once(partitioned: bool, tmp_path: Path) -> None:
    """Flushed with several versions of keys, deletions of others, and a deleted range."""
    rocksdict = pytest.importorskip("rocksdict")
    blocks = rocksdict.BlockBasedOptions()
    blocks.set_bloom_filter(10, False)
    blocks.set_block_size(256)
    if partitioned:
        blocks.set_partition_filters(True)
        blocks.set_index_type(rocksdict.BlockBasedIndexType.two_level_index_search())
        blocks.set_metadata_block_size(128)
    options = rocksdict.Options(raw_mode=True)
    options.create_if_missing(True)
    options.set_block_based_table_factory(blocks)
    db = rocksdict.Rdict(str(tmp_path / "db"), options)
    snapshots = []
    for value in (b"first", b"second" * 9, b"third" * 20):
        for key in KEYS[::2]:
            db[key] = value
        snapshots.append(db.snapshot())  # keeps what is overwritten
    for key in KEYS[::3]:
        del db[key]
    db.delete_range(KEYS[50], KEYS[90])
    db.flush()
    [path] = (tmp_path / "db").glob("*.sst")
    found = look(path)
    assert (found.store, found.problems) == ("RocksDB", ())
    assert found.facts["entries"] > 3 * len(KEYS) // 2
    together = list(itertools.chain.from_iterable(map(keys_in, found.filters)))
    deleted = {key for key in KEYS[::3] if not KEYS[50] <= key < KEYS[90]}  # the range has those
    assert together == sorted({*KEYS[::2], *deleted})
    assert len(found.filters) > 3 if partitioned else len(found.filters) == 1
    snapshots.clear()
    db.close()
