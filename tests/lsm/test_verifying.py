"""Verifying: what is sound is called so, what is wrong is found where it is, nothing changes."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import attrs
import plyvel
import pytest

import lsm
import policies
from lsm.disk.footer import FOOTER_BYTES, Footer
from lsm.disk.properties import METAINDEX_KEY, Properties
from lsm.verifying import VerifyProgress, VerifyReport, verify
from policies.prefixes import Prefixes
from tests.effort import by_effort, spread
from tests.lsm import forging
from tests.lsm.forging import DIRECTORY, Files, Parts, edits_of, manifest_of, name_of

KEYS = [b"key:%05d" % number for number in range(600)]

FILTERS: dict[str, dict[str, Any]] = {
    "blocked": {"filter_policy": policies.create("blocked")},
    "windows": {"bloom_filter_bits": 10},
    "partitioned": {
        "filter_policy": policies.create("cuckoo"),
        "filter_layout": "partitioned",
        "filter_partition_blocks": 2,
    },
    "prefixes": {"filter_policy": policies.create("blocked"), "filter_prefix": 6},
    "prefixes alone": {
        "filter_policy": policies.create("binary-fuse"),
        "filter_prefix": 6,
        "filter_whole_keys": False,
    },
    "surf": {"filter_policy": policies.create("surf")},
    "rocksdb": {"filter_policy": policies.create("rocksdb")},
    "none": {"filter_policy": None},
}


def made(path: Path, keys: list[bytes] = KEYS, **options: Any) -> None:
    """A database with tables on two levels, and a log."""
    with lsm.DB(path, create_if_missing=True, block_size=512, **options) as db:
        for key in keys:
            db.put(key, b"value" * 3)
        db.compact_range()
        for key in keys[::5]:
            db.put(key, b"newer")
        db.delete(keys[1])
        db.flush()
        db.put(keys[2], b"in the log")


def files_in(path: Path) -> Files:
    names = (each for each in path.iterdir() if each.is_file() and each.name not in ("LOCK", "LOG"))
    return {each.name: each.read_bytes() for each in names}


def largest_table(files: Files) -> str:
    return max((name for name in files if name.endswith(".ldb")), key=lambda name: len(files[name]))


def checked(files: Files) -> VerifyReport:
    """The report on these files, which stay as they are."""
    storage = forging.storage_of(files)
    report = verify(DIRECTORY, storage=storage)
    assert forging.files_of(storage) == files
    return report


@pytest.fixture
def files(tmp_path: Path) -> Files:
    made(tmp_path / "db", filter_policy=policies.create("blocked"))
    return files_in(tmp_path / "db")


@pytest.mark.parametrize("name", FILTERS)
def test_what_is_sound_is_called_so(tmp_path: Path, name: str) -> None:
    made(tmp_path / "db", **FILTERS[name])
    seen: list[VerifyProgress] = []
    report = verify(tmp_path / "db", progress=seen.append)
    assert report.problems == ()
    assert report.is_sound
    assert report.tables == 2
    assert report.entries == len(KEYS) + len(KEYS[::5]) + 1
    assert report.log_records == 1
    assert report.filters == (0 if name == "none" else 2)
    assert report.asked_keys == (0 if name == "none" else report.entries)
    assert seen[-1].bytes == seen[-1].total_bytes == 2 * report.bytes
    assert [each.bytes for each in seen] == sorted(each.bytes for each in seen)


def test_what_leveldb_wrote_is_sound(tmp_path: Path) -> None:
    db = plyvel.DB(str(tmp_path), create_if_missing=True, bloom_filter_bits=10, block_size=512)
    for key in KEYS:
        db.put(key, b"value" * 20)
    db.compact_range()
    db.put(b"more", b"")
    db.close()
    report = verify(tmp_path)
    assert report.problems == ()
    assert report.entries + report.log_records >= len(KEYS) + 1
    assert report.asked_keys == len(KEYS)


@pytest.mark.parametrize("name", ["blocked", "windows", "prefixes", "rocksdb"])
def test_a_filter_that_denies_keys_is_found(tmp_path: Path, name: str) -> None:
    """That of other keys stands in its place, under right checksums."""
    made(tmp_path / "db", **FILTERS[name])
    others = [b"other:%05d" % number for number in range(600)]
    made(tmp_path / "other", others, **FILTERS[name])
    files = files_in(tmp_path / "db")
    foreign = files_in(tmp_path / "other")
    table = name_of(files, end=".ldb")
    parts, theirs = Parts.of(files[table]), Parts.of(foreign[name_of(foreign, end=".ldb")])
    parts.meta = [
        (key, dict(theirs.meta)[key] if b"filter" in key else contents)
        for key, contents in parts.meta
    ]
    report = checked(forging.with_table(files, table, parts.assembled()))
    assert report.problems
    for problem in report.problems:
        assert problem.path == f"{DIRECTORY}/{table}"
        assert problem.what.startswith("the filter denies ")
        assert problem.offset is not None


def test_partitions_that_deny_keys_are_found(tmp_path: Path) -> None:
    """Two of them change places in their index, under a right checksum."""
    made(tmp_path / "db", **FILTERS["partitioned"])
    files = files_in(tmp_path / "db")
    table = largest_table(files)
    data = files[table]
    [block] = [each for name, each in forging.parse(data).meta.items() if b"filter" in name]
    one, other = (value for _, value in block.pairs[3:5])
    assert len(one) == len(other)
    swapped = block.contents.replace(one, b"<one>").replace(other, one).replace(b"<one>", other)
    data = data[: block.offset] + forging.stored(swapped) + data[block.end :]
    problems = checked({**files, table: data}).problems
    assert problems
    assert all(each.what.startswith("the filter denies ") for each in problems)


def test_a_filter_that_denies_prefixes_alone_is_found(tmp_path: Path) -> None:
    """It has all keys, and says that it has their prefixes as well."""
    made(tmp_path / "db", **FILTERS["prefixes"])
    files = files_in(tmp_path / "db")
    table = largest_table(files)
    policy = policies.create("blocked")
    block = policies.encode_block(policy, policy.create_filter(KEYS), num_keys=len(KEYS))
    parts = Parts.of(files[table])
    parts.meta = [
        (key, Prefixes(length=6).encode() + block if b"filter" in key else contents)
        for key, contents in parts.meta
    ]
    [problem] = checked(forging.with_table(files, table, parts.assembled())).problems
    assert problem.what.startswith("the filter denies ")


def test_every_flipped_byte_of_a_table_is_found(files: Files, rng: random.Random) -> None:
    for table in (name for name in files if name.endswith(".ldb")):
        data = files[table]
        footer = Footer.decode(data[-FOOTER_BYTES:])
        # Behind both handles the footer has zeros that nobody reads.
        said = len(footer.metaindex.encode() + footer.index.encode())
        unread = range(len(data) - FOOTER_BYTES + said, len(data) - 8)
        places = [at for at in range(len(data)) if at not in unread]
        for at in spread(places, 60, 400):
            damaged = bytearray(data)
            damaged[at] ^= 1 << rng.randrange(8)
            report = checked({**files, table: bytes(damaged)})
            assert report.problems, at
            assert {problem.path for problem in report.problems} == {f"{DIRECTORY}/{table}"}


def test_all_damage_of_a_table_is_found_where_it_is(files: Files) -> None:
    table = largest_table(files)
    data = bytearray(files[table])
    blocks = forging.parse(files[table]).blocks
    places = [blocks[index].offset for index in (0, 3, len(blocks) - 1)]
    for at in places:
        data[at] ^= 0xFF
    report = checked({**files, table: bytes(data)})
    assert [problem.offset for problem in report.problems] == places
    assert report.blocks > 0


def test_every_cut_of_a_file_is_found(files: Files) -> None:
    for name, data in files.items():
        if name.endswith(".ldb"):
            for size in spread(range(len(data)), 12, 100):
                report = checked({**files, name: data[:size]})
                assert [problem.path for problem in report.problems] == [f"{DIRECTORY}/{name}"]


def test_keys_out_of_order_are_found(files: Files) -> None:
    table = largest_table(files)
    parts = Parts.of(files[table])
    parts.blocks[2], parts.blocks[3] = parts.blocks[3], parts.blocks[2]
    what = [
        each.what for each in checked(forging.with_table(files, table, parts.assembled())).problems
    ]
    assert any("do not follow those of the block before" in each for each in what)
    parts = Parts.of(files[table])
    (_, *rest), (other, *_) = parts.blocks[2], parts.blocks[0]
    parts.blocks[2] = (other, *rest)
    what = [
        each.what for each in checked(forging.with_table(files, table, parts.assembled())).problems
    ]
    assert any("the index leads to it for other keys" in each for each in what)


def test_what_the_manifest_says_is_compared(files: Files) -> None:
    manifest, table = name_of(files, "MANIFEST"), name_of(files, end=".ldb")
    missing = {name: data for name, data in files.items() if name != table}
    [problem] = checked(missing).problems
    assert problem.path == f"{DIRECTORY}/{table}"
    assert "it is missing, and the manifest has it on level" in problem.what

    edits = edits_of(files[manifest])
    for edit in edits:
        edit.added = [attrs.evolve(new, largest=b"z" + new.largest) for new in edit.added]
    problems = checked({**files, manifest: manifest_of(*edits)}).problems
    assert {each.what for each in problems} == {
        "its first and last key are not those that the manifest has"
    }


def test_an_older_version_above_a_newer_one_is_found(files: Files) -> None:
    """Where an iterator merges levels, and a lookup ends at the first that has the key."""
    manifest = name_of(files, "MANIFEST")
    edits = edits_of(files[manifest])
    numbers = sorted({new.number for edit in edits for new in edit.added})
    for edit in edits:
        edit.added = [
            attrs.evolve(new, level=5 if new.number == numbers[-1] else 1) for new in edit.added
        ]
    [problem] = checked({**files, manifest: manifest_of(*edits)}).problems
    assert "it has an older version of b'key:00000' above a newer one" in problem.what
    edits = edits_of(files[manifest])
    edits[-1].last_sequence = 3
    log = name_of(files, end=".log")
    [problem] = checked({**files, manifest: manifest_of(*edits), log: b""}).problems
    assert problem.what.startswith("it says that 3 is the last sequence number")


def test_what_a_table_says_of_itself_is_compared(files: Files) -> None:
    table = largest_table(files)
    parts = Parts.of(files[table])
    parts.meta = [
        (key, attrs.evolve(Properties.decode(contents), num_entries=7).encode())
        if key == METAINDEX_KEY
        else (key, contents)
        for key, contents in parts.meta
    ]
    [problem] = checked(forging.with_table(files, table, parts.assembled())).problems
    assert problem.what == f"it has {len(KEYS)} entries, and its properties say 7"


def test_a_damaged_manifest_is_found_and_tables_are_checked_all_the_same(files: Files) -> None:
    manifest = name_of(files, "MANIFEST")
    data = bytearray(files[manifest])
    data[10] ^= 1
    report = checked({**files, manifest: bytes(data)})
    [problem] = report.problems
    assert problem.path == f"{DIRECTORY}/{manifest}"
    assert problem.offset == 0
    assert report.tables == 2
    assert report.notes


def test_a_damaged_log_is_found_with_its_offset(files: Files) -> None:
    log = name_of(files, end=".log")
    data = bytearray(files[log])
    data[9] ^= 1
    [problem] = checked({**files, log: bytes(data)}).problems
    assert (problem.path, problem.offset) == (f"{DIRECTORY}/{log}", 0)
    torn = checked({**files, log: files[log][:-2]})
    assert torn.problems == ()  # as a crash leaves it


def test_options_that_cannot_be_read_are_found(files: Files) -> None:
    [problem] = checked({**files, "lsm-options.toml": b"[engine"}).problems
    assert problem.path == f"{DIRECTORY}/lsm-options.toml"


def test_a_filter_of_nobody_knows_whom_is_noted(files: Files) -> None:
    table = name_of(files, end=".ldb")
    parts = Parts.of(files[table])
    parts.meta = [
        (b"filter.acme.unknown" if b"filter" in key else key, contents)
        for key, contents in parts.meta
    ]
    report = checked(forging.with_table(files, table, parts.assembled()))
    assert report.is_sound
    assert any("acme.unknown is unknown" in note for note in report.notes)


def test_what_is_no_database_is_refused_and_stays(tmp_path: Path) -> None:
    with pytest.raises(lsm.NotADatabaseError):
        verify(tmp_path / "none")
    with pytest.raises(lsm.NotADatabaseError):
        verify(tmp_path)
    (tmp_path / "OPTIONS-000007").write_text("[Version]\n")
    with pytest.raises(lsm.ForeignDatabaseError):
        verify(tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == ["OPTIONS-000007"]


def test_an_open_database_is_refused(tmp_path: Path) -> None:
    with lsm.DB(tmp_path / "db", create_if_missing=True), pytest.raises(lsm.LockedError):
        verify(tmp_path / "db")


def test_nothing_is_created(tmp_path: Path) -> None:
    made(tmp_path / "db")
    (tmp_path / "db" / "LOCK").unlink()
    before = sorted(each.name for each in (tmp_path / "db").iterdir())
    assert verify(tmp_path / "db").is_sound
    assert sorted(each.name for each in (tmp_path / "db").iterdir()) == before


@pytest.mark.no_cover
def test_what_is_called_sound_can_be_read_whatever_was_forged(
    tmp_path: Path, rng: random.Random
) -> None:
    """And nothing but the engine's own errors is raised, whatever files say under checksums."""
    made(tmp_path / "db", filter_policy=policies.create("blocked"))
    files = files_in(tmp_path / "db")
    verdicts = {True: 0, False: 0}
    for _ in range(by_effort(60, 400, 4000)):
        what, lying = forging.forged(rng, files)
        try:
            report = verify(DIRECTORY, storage=forging.storage_of(lying))
        except lsm.Error:
            continue
        verdicts[report.is_sound] += 1
        if report.is_sound:
            with lsm.DB(
                DIRECTORY, storage=forging.storage_of(lying), read_only=True, paranoid_checks=True
            ) as db:
                found = dict(db)
                assert all(db.get(key) == value for key, value in found.items()), what
    assert min(verdicts.values()) > 0
