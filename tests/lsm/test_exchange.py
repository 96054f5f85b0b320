"""Directories that pass to and fro between the engine and LevelDB itself: none can tell whose."""

from __future__ import annotations

import random
import shutil
import struct
from bisect import bisect_left
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import lsm
import policies
from tests.effort import by_effort
from tests.lsm import independent_table as independent
from tests.lsm.independent_table import (
    LEVELDB_FILTER,
    RAW,
    SNAPPY,
    WINDOW,
    ZSTD,
    Table,
    forge,
    masked_crc,
    parse,
    varint,
)
from tests.lsm.test_table_bytes import EVERY_KIND
from tests.policies import independent_block

plyvel = pytest.importorskip("plyvel")
BOTH = pytest.mark.parametrize("api", [lsm, plyvel], ids=["lsm", "plyvel"])

Contents = dict[bytes, bytes]
Operation = tuple[Any, ...]


def reversed_order(one: bytes, other: bytes) -> int:
    return (one < other) - (one > other)


def by_length(one: bytes, other: bytes) -> int:
    pair, against = (len(one), one), (len(other), other)
    return (pair > against) - (pair < against)


REVERSED = {"comparator": reversed_order, "comparator_name": b"reversed"}
BY_LENGTH = {"comparator": by_length, "comparator_name": b"by length, then by bytes"}

# ---- the same operations on both, and then in each other's directory ----

SMALL = {"write_buffer_size": 1 << 16}
EXCHANGES = by_effort(1, 4, 60)
# With a comparator plyvel may hang at its closing while LevelDB compacts: the compaction waits for
# the GIL. So nothing is to give it a reason to.
CALM = {"write_buffer_size": 1 << 26}
FORMS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    # what both are opened with, and what only lsm is
    "snappy": ({}, {"write_buffer_size": 1 << 13}),
    "no compression": ({"compression": None}, {"write_buffer_size": 1 << 14}),
    "LevelDB's filters": ({"bloom_filter_bits": 10, "compression": None}, {}),
    "filters of each kind": ({}, {"filter_policy": policies.create("blocked")}),
    "tiny blocks": ({"block_size": 1024, "block_restart_interval": 1}, {"block_size": 64}),
    "small tables": ({"max_file_size": 1 << 20}, {"max_file_size": 1 << 13}),
    "reversed": (REVERSED | CALM, {"write_buffer_size": 1 << 14}),
    "reversed, with filters": (REVERSED | CALM | {"bloom_filter_bits": 7}, {}),
    "by length": (BY_LENGTH | CALM | {"compression": None}, {"write_buffer_size": 1 << 14}),
}


def some_key(rng: random.Random) -> bytes:
    return rng.choice(
        (
            b"key%d" % rng.randrange(300),
            b"key%d" % rng.randrange(300),
            rng.randbytes(rng.randrange(3)),
            b"\xff" * rng.randrange(5),
            b"long" * rng.randrange(100),
        )
    )


def some_value(rng: random.Random) -> bytes:
    kind = rng.random()
    if kind < 0.7:
        return rng.randbytes(rng.randrange(200))
    if kind < 0.97:
        return b"text " * rng.randrange(800)
    return rng.randbytes(rng.randrange(100_000))


def some_operations(rng: random.Random, count: int) -> list[Operation]:
    found: list[Operation] = []
    for _ in range(count):
        kind = rng.random()
        if kind < 0.6:
            found.append(("put", some_key(rng), some_value(rng)))
        elif kind < 0.8:
            found.append(("delete", some_key(rng)))
        elif kind < 0.97:
            pairs = [(some_key(rng), rng.choice((None, some_value(rng)))) for _ in range(9)]
            found.append(("batch", pairs))
        elif kind < 0.985:
            found.append(("compact", *rng.choice((EVERYTHING, (b"key1", b"key2")))))
        else:
            found.append(("reopen",))
    return found


# To plyvel no bounds mean the one key b"".
EVERYTHING = (b"", b"\xff" * 500)


def applied(contents: Contents, operations: Iterable[Operation]) -> None:
    """The same on a dict."""
    for name, *arguments in operations:
        pairs = arguments[0] if name == "batch" else [(*arguments, None)[:2]]
        for key, value in pairs if name in ("put", "delete", "batch") else ():
            contents.pop(key, None)
            if value is not None:
                contents[key] = value


def play(api: ModuleType, path: Path, options: dict[str, Any], doing: Iterable[Operation]) -> None:
    """Open the database, do all that, and close it."""
    db = api.DB(str(path), create_if_missing=True, **options)
    for name, *arguments in doing:
        if name == "reopen":
            db.close()
            db = api.DB(str(path), **options)
        elif name == "compact":
            start, stop = arguments
            if options.get("comparator") is reversed_order:
                start, stop = stop, start
            db.compact_range(start=start, stop=stop)
        elif name == "batch":
            with db.write_batch() as batch:
                for key, value in arguments[0]:
                    batch.delete(key) if value is None else batch.put(key, value)
        else:
            getattr(db, name)(*arguments)
    db.close()


def check(api: ModuleType, path: Path, options: dict[str, Any], expected: Contents) -> None:
    """All that is in the database, in order, and backwards, and by key."""
    keys = sorted(expected)
    if options.get("comparator") is reversed_order:
        keys.reverse()
    if options.get("comparator") is by_length:
        keys.sort(key=len)
    pairs = [(key, expected[key]) for key in keys]
    with api.DB(str(path), **options) as db:
        assert list(db) == pairs
        assert list(db.iterator(reverse=True)) == pairs[::-1]
        # Not more: LevelDB compacts a table that is asked in vain a hundred times.
        for key, value in pairs[::9]:
            assert db.get(key) == value
            absent = key + b"?"
            assert db.get(absent) == expected.get(absent)


@pytest.mark.parametrize("form", FORMS)
def test_databases_change_hands(form: str, tmp_path: Path, rng: random.Random) -> None:
    """Both do the same in a directory each, then each goes on in the other's."""
    common, ours = FORMS[form]
    options = {plyvel: {**SMALL, **common}, lsm: {**SMALL, **common, **ours}}
    paths = [tmp_path / "one", tmp_path / "other"]
    contents: Contents = {}
    for _ in range(EXCHANGES):
        doing = some_operations(rng, 60)
        if "comparator" in common:
            doing = [each for each in doing if each[0] != "reopen"] + [("compact", *EVERYTHING)]
        for api, path in zip((lsm, plyvel), paths, strict=True):
            play(api, path, options[api], doing)
        applied(contents, doing)
        paths.reverse()
        for api, path in zip((lsm, plyvel), paths, strict=True):
            check(api, path, options[api], contents)
    assert any(path.suffix == ".ldb" for path in paths[0].iterdir())


@BOTH
@pytest.mark.parametrize("form", FORMS)
def test_a_database_in_use_is_copied_and_opened_by_the_other(
    form: str, api: ModuleType, tmp_path: Path, rng: random.Random
) -> None:
    """As after a crash: what was written is in the log, and nobody has closed it."""
    common, ours = FORMS[form]
    if "comparator" in common:
        ours = {}
    options = {plyvel: {**SMALL, **common}, lsm: {**SMALL, **common, **ours}}
    other = plyvel if api is lsm else lsm
    doing = [each for each in some_operations(rng, 40) if each[0] in ("put", "delete")]
    contents: Contents = {}
    play(api, tmp_path / "db", options[api], doing)
    applied(contents, doing)
    with api.DB(str(tmp_path / "db"), **options[api]) as db:
        for number in range(20):
            db.put(b"late%d" % number, b"%d" % number)
            contents[b"late%d" % number] = b"%d" % number
        shutil.copytree(tmp_path / "db", tmp_path / "copy")
    check(other, tmp_path / "copy", options[other], contents)
    check(api, tmp_path / "copy", options[api], contents)


@BOTH
def test_a_database_of_another_comparator_is_refused_by_both(
    api: ModuleType, tmp_path: Path
) -> None:
    for maker in (lsm, plyvel):
        path = tmp_path / maker.__name__
        play(maker, path, REVERSED, [("put", b"a", b"1"), ("put", b"b", b"2")])
        for options in ({}, BY_LENGTH):
            with pytest.raises(api.Error, match="comparator"):
                api.DB(str(path), **options)
        check(api, path, REVERSED, {b"a": b"1", b"b": b"2"})


@pytest.mark.parametrize("name", [b"\xff\xfe", "größer".encode(), b"", b"a" * 300, b"%s\n"])
def test_a_comparator_may_have_any_name(name: bytes, tmp_path: Path) -> None:
    options = {"comparator": reversed_order, "comparator_name": name}
    for maker, other in ((lsm, plyvel), (plyvel, lsm)):
        path = tmp_path / maker.__name__
        play(maker, path, options, [("put", b"a", b"1"), ("put", b"b", b"2")])
        for api in (other, maker):
            check(api, path, options, {b"a": b"1", b"b": b"2"})


@BOTH
def test_tables_may_have_their_old_names(
    api: ModuleType, tmp_path: Path, rng: random.Random
) -> None:
    path = tmp_path / "db"
    contents: Contents = {}
    doing = [each for each in some_operations(rng, 100) if each[0] != "compact"]
    play(plyvel, path, SMALL, doing)
    applied(contents, doing)
    for options in ({}, {"paranoid_checks": True}):
        for table in path.glob("*.ldb"):
            table.rename(table.with_suffix(".sst"))
        check(api, path, options, contents)
        assert list(path.glob("*.sst"))
    # Rewritten, they have new names, and the old files go.
    play(api, path, {}, [("put", key, b"new") for key in contents])
    play(api, path, {}, [("compact", *EVERYTHING)])
    assert not list(path.glob("*.sst"))
    for each in (lsm, plyvel):
        check(each, path, {}, dict.fromkeys(contents, b"new"))


# ---- logs ----


def log_record(sequence: int, pairs: list[tuple[bytes, bytes | None]]) -> bytes:
    """A batch of operations as one whole fragment of a log."""
    batch = struct.pack("<QI", sequence, len(pairs))
    for key, value in pairs:
        batch += bytes((value is not None,)) + varint(len(key)) + key
        if value is not None:
            batch += varint(len(value)) + value
    payload = b"\x01" + batch
    return struct.pack("<IH", masked_crc(payload), len(batch)) + payload


@pytest.mark.parametrize("options", [{}, {"paranoid_checks": True}], ids=["lenient", "paranoid"])
@BOTH
def test_all_logs_that_no_table_has_are_read_in_order(
    api: ModuleType, options: dict[str, Any], tmp_path: Path
) -> None:
    """LevelDB leaves two when it stops while a memtable is being written to a table."""
    for maker in (lsm, plyvel):
        path = tmp_path / maker.__name__
        play(maker, path, {}, [("put", b"in a table", b"1")])
        with maker.DB(str(path)) as db:
            db.put(b"first", b"of its log")
            db.put(b"changed", b"old")
            shutil.copytree(path, tmp_path / "copy")
        shutil.rmtree(path)
        (tmp_path / "copy").rename(path)
        [log] = path.glob("*.log")
        number = int(log.stem)
        later = {
            number + 7: log_record(60, [(b"changed", b"newest"), (b"third", b"3")]),
            number + 1: log_record(50, [(b"changed", b"newer"), (b"second", b"2")]),
            number + 3: log_record(54, [(b"first", None)]) + log_record(55, [(b"", b"4")]),
            number - 1: log_record(70, [(b"of old", b"an earlier log is not read")]),
        }
        for each, data in later.items():
            (path / f"{each:06}.log").write_bytes(data)
        expected = {
            b"": b"4",
            b"changed": b"newest",
            b"in a table": b"1",
            b"second": b"2",
            b"third": b"3",
        }
        check(api, path, options, expected)
        assert not [each for each in later if (path / f"{each:06}.log").exists()]
        for each in (lsm, plyvel):
            play(each, path, {}, [("put", b"second", each.__name__.encode())])
            expected[b"second"] = each.__name__.encode()
            check(each, path, {}, expected)


@BOTH
def test_a_torn_tail_of_a_log_is_lost_to_both_alike(
    api: ModuleType, tmp_path: Path, rng: random.Random
) -> None:
    path = tmp_path / "db"
    sizes, states = [0], [Contents()]
    with api.DB(str(path), create_if_missing=True) as db:
        [log] = path.glob("*.log")
        for _ in range(30):
            key, value = b"key%d" % rng.randrange(20), rng.randbytes(rng.choice((0, 50, 40_000)))
            db.put(key, value)
            sizes.append(log.stat().st_size)
            states.append({**states[-1], key: value})
        shutil.copytree(path, tmp_path / "whole")
    whole = (tmp_path / "whole" / log.name).read_bytes()
    cuts = [0, 6, sizes[1], sizes[1] + 7, 32768, 32770, sizes[-1] - 1, sizes[-1]]
    for cut in [*cuts, *(rng.randrange(len(whole)) for _ in range(3))]:
        expected = states[bisect_left(sizes, cut + 1) - 1]
        for reader in (lsm, plyvel):
            torn = tmp_path / f"{reader.__name__}{cut}"
            shutil.copytree(tmp_path / "whole", torn)
            (torn / log.name).write_bytes(whole[:cut])
            check(reader, torn, {"paranoid_checks": True}, expected)
        shutil.rmtree(torn)


# ---- compression ----


def test_snappy_blocks_are_read_by_the_other(tmp_path: Path) -> None:
    contents = {b"key%04d" % number: b"text%d " % number * 30 for number in range(1000)}
    doing: list[Operation] = [("put", *pair) for pair in contents.items()]
    for api, other in ((lsm, plyvel), (plyvel, lsm)):
        path = tmp_path / api.__name__
        play(api, path, {"compression": "snappy"}, [*doing, ("reopen",)])
        [table] = path.glob("*.ldb")
        assert {block.kind for block in parse(table.read_bytes()).blocks} == {SNAPPY}
        check(other, path, {"compression": None, "paranoid_checks": True}, contents)


def test_zstd_is_read_or_refused_by_leveldb_and_nothing_is_lost(tmp_path: Path) -> None:
    """LevelDB 1.22, which plyvel brings along, knows no zstd: 1.23 does."""
    path = tmp_path / "db"
    contents = {b"key%04d" % number: b"text%d " % number * 30 for number in range(1000)}
    play(lsm, path, {"compression": "zstd"}, [("put", *pair) for pair in contents.items()])
    play(lsm, path, {}, [("reopen",)])
    [table] = path.glob("*.ldb")
    assert {block.kind for block in parse(table.read_bytes()).blocks} == {ZSTD}
    knows_zstd = plyvel.__leveldb_version__ != "1.22"
    with plyvel.DB(str(path)) as db:
        for key, value in list(contents.items())[::100]:
            if knows_zstd:
                assert db.get(key) == value
            else:
                with pytest.raises(plyvel.CorruptionError, match="bad block type"):
                    db.get(key)
        # It fails without a word, and leaves the tables where they are.
        db.put(b"key0000", b"new")
        db.compact_range(start=EVERYTHING[0], stop=EVERYTHING[1])
    contents[b"key0000"] = b"new"
    check(lsm, path, {"paranoid_checks": True}, contents)
    # Rewritten with snappy, the database is LevelDB's again.
    play(lsm, path, {"compression": "snappy"}, [("put", b"zzz", b""), ("compact", *EVERYTHING)])
    check(plyvel, path, {"paranoid_checks": True}, contents | {b"zzz": b""})


@pytest.mark.parametrize(
    ("api", "kinds"),
    [
        (plyvel, EVERY_KIND[1:2]),  # which shows that such tables are right
        (lsm, EVERY_KIND[1:2]),
        (lsm, EVERY_KIND[2:3]),
        (lsm, EVERY_KIND[3:]),
        (lsm, EVERY_KIND),
    ],
)
def test_blocks_that_others_compressed_are_read(
    api: ModuleType, kinds: list[tuple[int, Callable[[bytes], bytes]]], tmp_path: Path
) -> None:
    """Tables of LevelDB's, each block compressed anew in place."""
    path = tmp_path / "db"
    contents = {b"key%04d" % number: b"text%d " % number * 30 for number in range(1000)}
    play(plyvel, path, {"compression": None}, [("put", *pair) for pair in contents.items()])
    play(plyvel, path, {"compression": None}, [])
    [table] = path.glob("*.ldb")
    theirs = parse(table.read_bytes())
    blocks = [
        (key, block.contents)
        for (key, _), block in zip(theirs.index.pairs, theirs.blocks, strict=True)
    ]
    made = forge(blocks, kinds=kinds, size=len(theirs.data))
    assert {block.kind for block in parse(made).blocks} == {kind for kind, _ in kinds}
    table.write_bytes(made)
    check(api, path, {"paranoid_checks": True, "compression": None}, contents)


# ---- to the byte ----


def one_table(
    api: ModuleType, path: Path, options: dict[str, Any], doing: list[Operation]
) -> Table:
    """The table that the log becomes when the database is opened again."""
    options = {"write_buffer_size": 1 << 28, **options}
    play(api, path, options, doing)
    play(api, path, options, [])
    [table] = path.glob("*.ldb")
    return parse(table.read_bytes())


def check_equal(ours: Table, theirs: Table) -> None:
    """Equal but for where the blocks behind the data lie, and that ours has more of them."""
    assert ours.data[: ours.blocks[-1].end] == theirs.data[: theirs.blocks[-1].end]
    assert ours.index.contents == theirs.index.contents
    assert set(ours.meta) - set(theirs.meta) == {b"lsm.properties"}
    for key, block in theirs.meta.items():
        assert ours.meta[key].contents == block.contents


def versions_and_tombstones(
    rng: random.Random, lengths: Iterable[int], values: tuple[int, ...]
) -> list[Operation]:
    keys = [rng.randbytes(length) for length in lengths]
    keys += [key[: len(key) // 2] + b"\xff" for key in keys[::2]]
    doing: list[Operation] = [("put", key, rng.randbytes(rng.choice(values))) for key in keys]
    doing += [("put", key, rng.randbytes(rng.choice(values))) for key in rng.sample(keys, 99)]
    doing += [("delete", key) for key in rng.sample(keys, 50)]
    doing += [("put", rng.choice(keys), b"%d" % number) for number in range(100)]
    rng.shuffle(doing)
    return doing


SIZES = [1024, 1500, 2048, 4096, 16384, 100_000]


@pytest.mark.parametrize("interval", [1, 2, 16, 100])
@pytest.mark.parametrize("block_size", SIZES)
def test_tables_equal_leveldbs(
    block_size: int, interval: int, tmp_path: Path, rng: random.Random
) -> None:
    """Several versions of keys of 0 to 200 bytes, tombstones, and values larger than a window."""
    options = {
        "compression": None,
        "bloom_filter_bits": rng.choice((1, 5, 10, 30)),
        "block_size": block_size,
        "block_restart_interval": interval,
    }
    doing = versions_and_tombstones(rng, range(200), (0, 10, 127, 128, 700))
    doing[100:100] = [("put", b"large", rng.randbytes(size)) for size in (3000, 9000, 100_000)]
    ours = one_table(lsm, tmp_path / "lsm", options, doing)
    theirs = one_table(plyvel, tmp_path / "plyvel", options, doing)
    assert len(theirs.pairs) == len(doing)
    check_equal(ours, theirs)
    assert LEVELDB_FILTER in theirs.meta


@pytest.mark.parametrize("value", [0, 1900, 2030, 4050, 5000, 100_000])
def test_windows_equal_leveldbs_however_blocks_fall(
    value: int, tmp_path: Path, rng: random.Random
) -> None:
    """With blocks that end just before, at, and behind the ends of windows, and long beyond."""
    options = {"compression": None, "bloom_filter_bits": 10, "block_size": 1024}
    count = 8 if value > 10_000 else 60
    doing: list[Operation] = [
        ("put", b"%05d" % number, rng.randbytes(value + rng.randrange(20)))
        for number in range(count)
    ]
    ours = one_table(lsm, tmp_path / "lsm", options, doing)
    theirs = one_table(plyvel, tmp_path / "plyvel", options, doing)
    check_equal(ours, theirs)


def test_windows_equal_leveldbs_where_a_block_ends_with_its_window(tmp_path: Path) -> None:
    options = {"compression": None, "bloom_filter_bits": 10, "block_size": 1024}
    ends = set()
    for length in (*range(2000, 2018, 4), *range(2018, 2030)):
        doing: list[Operation] = [
            ("put", b"a", bytes(length)),
            ("put", b"b", bytes(1000)),
            ("put", b"c", bytes(1000)),
        ]
        ours = one_table(lsm, tmp_path / f"lsm{length}", options, doing)
        ends.add(ours.blocks[0].end)
        if 2047 <= ours.blocks[0].end <= 2049:
            check_equal(ours, one_table(plyvel, tmp_path / f"plyvel{length}", options, doing))
    assert {2047, 2048, 2049} <= ends


@pytest.mark.parametrize("order", [REVERSED, BY_LENGTH], ids=["reversed", "by length"])
def test_tables_of_other_orders_equal_leveldbs(
    order: dict[str, Any], tmp_path: Path, rng: random.Random
) -> None:
    options = {**order, "compression": None, "bloom_filter_bits": 10, "block_size": 1024}
    doing = versions_and_tombstones(rng, [length % 40 for length in range(200)], (0, 10, 300))
    ours = one_table(lsm, tmp_path / "lsm", options, doing)
    theirs = one_table(plyvel, tmp_path / "plyvel", options, doing)
    check_equal(ours, theirs)


def test_index_keys_are_shortened_as_leveldb_does(tmp_path: Path, rng: random.Random) -> None:
    """Each entry a block: every pair of neighbours gives an index key, the last one a successor."""
    options = {"compression": None, "bloom_filter_bits": 10, "block_size": 1024}
    letters = (b"\x00", b"\x01", b"a", b"b", b"c", b"\xfe", b"\xff")
    keys = {b"".join(rng.choices(letters, k=rng.randrange(1, 5))) for _ in range(200)}
    for ending in (b"\xff\xff\xff\xff\xff", b"\xff\xff\xff\xff\xff\xfe\x01", b"\xff\xfft"):
        name = ending.hex()
        doing: list[Operation] = [("put", key, bytes(1024)) for key in keys if key < ending]
        doing.append(("put", ending, bytes(1024)))
        ours = one_table(lsm, tmp_path / f"lsm{name}", options, doing)
        theirs = one_table(plyvel, tmp_path / f"plyvel{name}", options, doing)
        check_equal(ours, theirs)
        assert len(theirs.blocks) == len(doing)


def test_the_same_blocks_are_compressed(tmp_path: Path, rng: random.Random) -> None:
    """Those that shrink by more than an eighth; the compressed bytes are each library's own."""
    options = {"compression": "snappy", "block_size": 4096}
    doing: list[Operation] = [
        ("put", b"%05d" % zeros, bytes(zeros) + rng.randbytes(4200 - zeros))
        for zeros in range(0, 1200, 4)
    ]
    ours = one_table(lsm, tmp_path / "lsm", options, doing)
    theirs = one_table(plyvel, tmp_path / "plyvel", options, doing)
    assert [block.contents for block in ours.blocks] == [block.contents for block in theirs.blocks]
    kinds = [block.kind for block in theirs.blocks]
    assert [block.kind for block in ours.blocks] == kinds
    assert set(kinds) == {RAW, SNAPPY}
    assert [key for key, _ in ours.index.pairs] == [key for key, _ in theirs.index.pairs]


def test_compacted_tables_equal_leveldbs(tmp_path: Path, rng: random.Random) -> None:
    """What is left of versions and tombstones, and where one table ends and the next begins."""
    options = {
        "compression": None,
        "bloom_filter_bits": 10,
        "write_buffer_size": 1 << 28,
        "max_file_size": 1 << 20,
    }
    doing = versions_and_tombstones(rng, [20] * 300, (0, 100, 20_000))
    more = versions_and_tombstones(rng, [20] * 100, (0, 100, 20_000))
    found = []
    for api in (lsm, plyvel):
        path = tmp_path / api.__name__
        play(api, path, options, doing)
        play(api, path, options, more)
        play(api, path, options, [("compact", *EVERYTHING)])
        tables = [parse(table.read_bytes()) for table in sorted(path.glob("*.ldb"))]
        found.append(sorted(tables, key=lambda table: table.pairs[0][0]))
    ours, theirs = found
    assert len(theirs) > 2
    for one, other in zip(ours, theirs, strict=True):
        check_equal(one, other)


# ---- the filters are asked ----


def damage_data(path: Path) -> Table:
    """Damage every data block of the one table; filter, indexes and footer stay as they are."""
    [file] = path.glob("*.ldb")
    table = parse(file.read_bytes())
    data = bytearray(table.data)
    for block in table.blocks:
        data[block.offset + block.size // 2] ^= 1
    file.write_bytes(data)
    return table


def denied_keys(table: Table, keys: Iterable[bytes]) -> set[bytes]:
    """Those of which the filter of the block that might have them says no."""
    filters = independent.windows(table.meta[LEVELDB_FILTER])
    index = [(key[:-8], -int.from_bytes(key[-8:], "little")) for key, _ in table.index.pairs]
    denied = set()
    for key in keys:
        number = bisect_left(index, (key, -(2**64)))
        window = filters[table.blocks[number].offset // WINDOW]
        if not independent_block.leveldb_answer(window, key):
            denied.add(key)
    return denied


FILTERED = {"bloom_filter_bits": 10, "compression": None, "block_size": 1024}
PRESENT = {b"key%04d" % number: b"value%d" % number * 9 for number in range(0, 1000, 2)}
ABSENT = [b"key%04d" % number for number in range(1, 999, 2)]


@pytest.mark.parametrize("maker", [lsm, plyvel], ids=["of lsm", "of LevelDB"])
@BOTH
def test_filters_spare_the_reading_of_blocks(
    api: ModuleType, maker: ModuleType, tmp_path: Path
) -> None:
    """In a table whose data cannot be read any more, of each other's and of their own."""
    one_table(maker, tmp_path / "db", FILTERED, [("put", *pair) for pair in PRESENT.items()])
    table = damage_data(tmp_path / "db")
    denied = denied_keys(table, ABSENT)
    assert 0 < len(ABSENT) - len(denied) < 50
    assert not denied_keys(table, PRESENT)
    with api.DB(str(tmp_path / "db"), **FILTERED) as db:
        for key in denied:
            assert db.get(key, verify_checksums=True) is None
        for key in {*ABSENT[:200], *list(PRESENT)[:20]} - denied:
            with pytest.raises(api.CorruptionError):
                db.get(key, verify_checksums=True)
        if api is lsm:
            [counted] = db.stats().filters
            assert (counted.policy, counted.counters.skipped) == ("leveldb", len(denied))
    if api is plyvel:
        with plyvel.DB(str(tmp_path / "db"), **{**FILTERED, "bloom_filter_bits": 0}) as db:
            for key in [*ABSENT[:50], *list(PRESENT)[:50]]:
                with pytest.raises(plyvel.CorruptionError):
                    db.get(key, verify_checksums=True)


PLACES: dict[str, dict[str, Any]] = {
    "table": {},
    "partitioned": {"filter_layout": "partitioned"},
    "prefixes": {"filter_prefix": 5},
    "prefixes alone": {"filter_prefix": 6, "filter_whole_keys": False},
    "prefixes, partitioned": {"filter_prefix_until": "0", "filter_layout": "partitioned"},
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", ["blocked", "classic", "binary-fuse", "rocksdb", "leveldb"])
def test_leveldb_reads_past_filters_that_are_not_its_own(
    name: str, place: str, tmp_path: Path
) -> None:
    path = tmp_path / "db"
    options = {"filter_policy": policies.create(name), **PLACES[place]}
    table = one_table(lsm, path, options, [("put", *pair) for pair in PRESENT.items()])
    assert LEVELDB_FILTER not in table.meta
    assert len(table.meta) == 2
    with plyvel.DB(str(path), bloom_filter_bits=10, paranoid_checks=True) as db:
        assert dict(db) == PRESENT
        assert all(db.get(key) == value for key, value in PRESENT.items())
        assert [key for key in ABSENT if db.get(key) is not None] == []
        db.put(b"key0001", b"new")
        db.compact_range(start=EVERYTHING[0], stop=EVERYTHING[1])
    # LevelDB has written them anew, with its own filter.
    [file] = path.glob("*.ldb")
    assert set(parse(file.read_bytes()).meta) == {LEVELDB_FILTER}
    check(lsm, path, {}, PRESENT | {b"key0001": b"new"})
