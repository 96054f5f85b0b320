"""Tables that were cut short, or with flipped bits: an answer, or an error with a place."""

from __future__ import annotations

import os
import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest

import lsm
import policies
from lsm.errors import CorruptionError
from lsm.survey import table
from lsm.survey.found import FileFound
from lsm.survey.source import Source
from tests.effort import by_effort, spread
from tests.lsm.survey.foreign_tables import (
    PEBBLE_MAGIC,
    forge,
    keys_of,
    pebble_fuse_of,
    pebble_lines_of,
    signed_window_of,
    windows_of,
    write_leveldbs,
    write_rocksdbs,
)

GOLDEN = Path(__file__).parents[2] / "golden" / "foreign"
KEYS = keys_of(40)
FULL = b"fullfilter.rocksdb.BuiltinBloomFilter"


def own(path: Path, policy: str, **more: object) -> bytes:
    """A small table of ours."""
    options = {"filter_policy": policies.create(policy), "block_size": 300, **more}
    with lsm.DB(path / "db", create_if_missing=True, **options) as db:
        for key in KEYS:
            db.put(key, b"value" * 3)
        db.flush()
    [found] = (path / "db").glob("*.ldb")
    return found.read_bytes()


def rocksdbs(path: Path, **more: object) -> bytes:
    """A small table of RocksDB's."""
    return write_rocksdbs(path / "t.sst", KEYS, **more).read_bytes()  # type: ignore[arg-type]


def pebbles(version: int, name: bytes, filter: bytes) -> bytes:
    """A small table of Pebble's."""
    schema = [(b"pebble.colblk.schema", b"DefaultKeySchema(leveldb.BytewiseComparator,16)")]
    return forge(KEYS, [(name, filter)], magic=PEBBLE_MAGIC, version=version, properties=schema)


WINDOWS = windows_of([signed_window_of(KEYS[:20]), b"", signed_window_of(KEYS[20:])])

TABLES: dict[str, Callable[[Path], bytes]] = {
    "leveldb golden": lambda _: (GOLDEN / "leveldb_raw_3keys.ldb").read_bytes(),
    "leveldb": lambda path: write_leveldbs(path / "db", KEYS).read_bytes(),
    "rocksdb 4": lambda _: (GOLDEN / "rocksdb_fv4_crc32c_3keys.sst").read_bytes(),
    "rocksdb 5": lambda path: rocksdbs(path, version=5, hashed=True, compression="zlib"),
    "rocksdb 6": lambda _: (GOLDEN / "rocksdb_fv6_crc32c_3keys.sst").read_bytes(),
    "rocksdb 7": lambda path: rocksdbs(path, version=7, partitioned=True, compression="zstd"),
    "rocksdb 3": lambda path: rocksdbs(path, version=3, partitioned=True, checksum="xxhash"),
    "rocksdb windows": lambda _: forge(KEYS, [(b"filter.rocksdb.BuiltinBloomFilter", WINDOWS)]),
    "unguarded": lambda path: rocksdbs(path, checksum="no_checksum", partitioned=True),
    "lsm": lambda path: own(path, "blocked", compression="zstd"),
    "lsm windows": lambda path: own(path, "leveldb", filter_layout="block"),
    "lsm partitions": lambda path: own(
        path, "classic", filter_layout="partitioned", filter_partition_blocks=1, filter_prefix=5
    ),
    "pebble 4": lambda _: pebbles(4, b"fullfilter.binaryfuse", pebble_fuse_of(KEYS, 8)),
    "pebble 8": lambda _: pebbles(8, FULL, pebble_lines_of(KEYS, 1)),
}


def answers(path: Path) -> list[object]:
    """All that a survey says of a file, with its keys and what filters say of them.

    Instead of what could not be read there is an error, that names the file and a place in it.
    """
    said: list[object] = []
    try:
        with Source(path) as source:
            said += _answers_of(table.found(source))
    except CorruptionError as error:
        said.append(error)
    for each in said:
        if isinstance(each, CorruptionError):
            assert re.match(rf"{re.escape(str(path))}: at byte [0-9]+: ", str(each)), each
    return said


def _answers_of(found: FileFound) -> list[object]:
    said: list[object] = [CorruptionError(problem) for problem in found.problems]
    for each in found.filters:
        if each.problem:
            said.append(CorruptionError(each.problem))
            continue
        said.append((each.family, each.size, each.guard.checked, each.num_keys))
        try:
            keys = [] if each.keys is None else list(each.keys())
            said.append((keys, None if each.reader is None else asked(each.reader, keys)))
        except CorruptionError as error:
            said.append(error)
    return said


def asked(reader: object, keys: list[bytes]) -> list[bool]:
    """What a filter says to its keys, and to others."""
    might_contain: Callable[[bytes], bool] = reader.might_contain  # type: ignore[attr-defined]
    return [might_contain(key) for key in (*keys, b"", b"absent", b"key000001x")]


@pytest.mark.parametrize("name", TABLES)
def test_whatever_is_cut_off_is_missed(name: str, tmp_path: Path) -> None:
    data = TABLES[name](tmp_path)
    path = tmp_path / "file"
    for size in spread(range(len(data)), quick=30, full=1000):
        path.write_bytes(data[:size])
        [error] = answers(path)
        assert isinstance(error, CorruptionError)


@pytest.mark.parametrize("name", TABLES)
def test_a_flipped_bit_changes_nothing_or_is_found(
    name: str, tmp_path: Path, rng: random.Random
) -> None:
    """But where there are no checksums, and for two bytes of early footers, which have none.

    These are the kind of all checksums, and the version, by which Pebble tells its columns.
    """
    data = TABLES[name](tmp_path)
    path = tmp_path / "file"
    path.write_bytes(data)
    sound = answers(path)
    assert not any(isinstance(each, CorruptionError) for each in sound)
    bits = list(range(8 * len(data)))
    rng.shuffle(bits)
    bits = bits[: by_effort(80, 800, len(bits))]
    bits += spread(range(8 * (len(data) - 61), 8 * len(data)), quick=40)
    unguarded = (len(data) - 53, len(data) - 12)
    for bit in bits:
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        said = answers(path)
        if any(isinstance(each, CorruptionError) for each in said):
            continue
        if name != "unguarded" and bit // 8 not in unguarded:
            assert said == sound, bit


@pytest.mark.parametrize("name", TABLES)
def test_a_surveyed_file_is_as_it_was(name: str, tmp_path: Path) -> None:
    data = TABLES[name](tmp_path)
    folder = tmp_path / "folder"
    folder.mkdir()
    path = folder / "file"
    path.write_bytes(data)
    os.utime(path, ns=(1, 1_000_000_000_000_000_000))
    path.chmod(0o400)
    folder.chmod(0o500)
    before, about = os.stat(path), os.stat(folder)
    answers(path)
    assert path.read_bytes() == data
    assert os.listdir(folder) == ["file"]
    after = os.stat(path)
    assert (after.st_mtime_ns, after.st_ctime_ns, after.st_size, after.st_mode) == (
        before.st_mtime_ns,
        before.st_ctime_ns,
        before.st_size,
        before.st_mode,
    )
    assert os.stat(folder).st_mtime_ns == about.st_mtime_ns
    folder.chmod(0o700)


@pytest.mark.parametrize("name", ["rocksdb 4", "rocksdb 6", "pebble 8"])
def test_noise_with_a_footer_is_no_table(name: str, tmp_path: Path, rng: random.Random) -> None:
    data = TABLES[name](tmp_path)
    path = tmp_path / "file"
    for _ in range(by_effort(60, 600, 6000)):
        noise = rng.randbytes(rng.randrange(len(data) - 61))
        path.write_bytes(noise + data[-rng.randrange(8, 62) :])
        assert any(isinstance(each, CorruptionError) for each in answers(path))
