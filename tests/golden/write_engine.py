"""Write the golden files of the engine: ``python -m tests.golden.write engine``.

``engine/database`` is a database with a table on each of four levels, whose filters are of all
forms, and with a log. Beside it are a table that LevelDB 1.22 cannot read, one of a bulk load, one
with a filter in partitions, and two whose filters have prefixes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal
from unittest import mock

import attrs

import policies
from filters import hashing
from lsm.comparator import BYTEWISE
from lsm.disk import heat_file
from lsm.disk.compression import RAW, SNAPPY, ZSTD
from lsm.disk.edit import Edit, NewFile
from lsm.disk.filter_blocks import FilterPlan
from lsm.disk.keys import DELETE, PUT, Entry, rank_of
from lsm.disk.log import LogWriter
from lsm.disk.table_builder import TableBuilder, TableFormat, WrittenTable
from lsm.kernels.python.batch import encode_batch
from lsm.kernels.python.table_body import TableBody
from lsm.options import LEVELS, Options
from lsm.storage import FileSystem
from policies import LevelPolicies
from policies.prefixes import Prefixes

HERE = Path(__file__).parent / "engine"
SEED, SALT = 0x5EED_5EED_5EED_5EED, 0x5A17_5A17_5A17_5A17

# A version of a key: its sequence number, and its value or None where it was deleted.
Versions = dict[bytes, list[tuple[int, bytes | None]]]


@attrs.frozen
class GoldenTable:
    """A table that is kept, and how it was made."""

    name: str
    level: int
    policy: str
    layout: str
    compression: int
    versions: Versions
    reason: Literal["flush", "compaction", "bulk"] = "compaction"
    partition_blocks: int = 128
    prefixes: Prefixes | None = None

    @property
    def entries(self) -> list[Entry]:
        """What is in it, in order."""
        return [
            (key, rank_of(sequence, DELETE if value is None else PUT), value or b"")
            for key in sorted(self.versions)
            for sequence, value in sorted(self.versions[key], reverse=True)
        ]


def value(number: int) -> bytes:
    """Some bytes, of a length that differs."""
    return b"value %d, " % number * (number % 9)


def some_versions(first: int, count: int, step: int) -> Versions:
    """Keys with one or two versions each, of which some say that the key was deleted."""
    versions: Versions = {b"": [(first, b"of the empty key")]}
    for number in range(count):
        sequence = first + 1 + 2 * number
        key = b"golden-%03d" % (number * step)
        versions[key] = [(sequence, None if number % 7 == 3 else value(number * step))]
        if number % 3 == 0:
            versions[key].append((sequence + 1, value(number)))
    return versions


TABLES = [
    GoldenTable("database/000003.ldb", 3, "classic", "table", SNAPPY, some_versions(1, 60, 1)),
    GoldenTable("database/000004.ldb", 2, "blocked", "table", RAW, some_versions(201, 40, 2)),
    GoldenTable("database/000005.ldb", 1, "leveldb", "block", RAW, some_versions(401, 80, 3)),
    GoldenTable(
        "database/000006.ldb", 0, "rocksdb", "table", RAW, some_versions(601, 30, 5), "flush"
    ),
    GoldenTable("zstd.ldb", 4, "binary-fuse", "table", ZSTD, some_versions(801, 60, 1)),
    GoldenTable(
        "bulk.ldb",
        6,
        "blocked",
        "table",
        SNAPPY,
        {b"%03d" % n: [(7, b"v")] for n in range(99)},
        "bulk",
    ),
    GoldenTable(
        "partitioned.ldb",
        5,
        "blocked",
        "partitioned",
        RAW,
        some_versions(1, 150, 1),
        partition_blocks=2,
    ),
    GoldenTable(
        "prefixes.ldb",
        5,
        "classic",
        "table",
        RAW,
        some_versions(1, 90, 1),
        prefixes=Prefixes(length=9, whole_keys=False),
    ),
    GoldenTable(
        "prefixes-partitioned.ldb",
        5,
        "rocksdb",
        "partitioned",
        RAW,
        some_versions(1, 90, 1),
        partition_blocks=2,
        prefixes=Prefixes(until=b"-"),
    ),
]
LAST_SEQUENCE = 999
LOG: list[list[tuple[bytes, bytes | None]]] = [
    [(b"golden-001", b"from the log")],
    [(b"golden-002", None), (b"golden-log", b"v" * 200), (b"", None)],
    [(b"k" * 300, b"")],
]
LOG_NUMBER, MANIFEST_NUMBER = 7, 8
# By table, how many lookups have asked it in vain, and how many not. The last one has gone.
ASKED = {3: (1_000_000, 80_000), 4: (300_000, 5), 5: (70, 0), 6: (0, 0), 1000: (7, 1)}
ABSENT = [b"absent-%d" % number for number in range(500)]
ABSENT += [b"golden-%03d?" % number for number in range(500)]

OPTIONS = Options(
    compression="zstd",
    table_cache_size="64 MiB",
    write_buffer_size="8 MiB",
    block_size=1000,
    paranoid_checks=True,
    filters=LevelPolicies.from_config(
        {
            "filters": {
                "policy": "blocked",
                "bits_per_key": 12,
                "optimize_filters_for_hits": True,
                "level": {
                    "0-1": {"policy": "leveldb", "bits_per_key": 10, "layout": "block"},
                    "6": {"policy": "none"},
                },
            }
        },
        LEVELS,
    ),
)


def main() -> None:
    """Write what is missing."""
    for name in write(HERE):
        print(f"wrote engine/{name}")


def write(folder: Path) -> list[str]:
    """Write the files that are not there; their names."""
    (folder / "database").mkdir(parents=True, exist_ok=True)
    made: dict[str, Callable[[Path], object]] = {
        each.name: lambda path, each=each: write_table(path, each) for each in TABLES
    }
    made |= {
        f"database/MANIFEST-{MANIFEST_NUMBER:06}": lambda path: write_log(path, manifest(folder)),
        f"database/{LOG_NUMBER:06}.log": lambda path: write_log(path, batches()),
        "database/CURRENT": lambda path: path.write_bytes(b"MANIFEST-%06d\n" % MANIFEST_NUMBER),
        "database/lsm-seed": lambda path: path.write_bytes(SEED.to_bytes(8, "little")),
        "database/lsm-options.toml": lambda path: path.write_bytes(OPTIONS.to_toml().encode()),
        "database/lsm-heat": lambda path: path.write_bytes(heat_file.encode(ASKED)),
    }
    missing = [name for name in made if not (folder / name).exists()]
    for name in missing:
        made[name](folder / name)
    return missing


def write_table(path: Path, table: GoldenTable) -> WrittenTable:
    """Write a table, with filters under a known seed and salt."""
    plan = FilterPlan(
        level=table.level,
        policy=policies.create(table.policy).with_seed(SEED),
        layout=table.layout,
        partition_blocks=table.partition_blocks,
        prefixes=table.prefixes,
        reason=table.reason,
        none_below=lambda first, last: False,
    )
    form = TableFormat(
        comparator=BYTEWISE,
        block_size=300,
        block_restart_interval=4,
        compression=table.compression,
        table_body=TableBody,
    )
    with mock.patch.object(hashing, "random64", return_value=SALT):
        builder = TableBuilder(FileSystem().create(str(path)), form, plan)
        builder.add(table.entries)
        return builder.finish()


def write_log(path: Path, records: Sequence[bytes]) -> None:
    """Write a log of these records."""
    file = FileSystem().create(str(path))
    writer = LogWriter(file)
    for record in records:
        writer.add(record)
    file.close()


def batches() -> list[bytes]:
    """The records of the write-ahead log."""
    records, sequence = [], LAST_SEQUENCE + 1
    for operations in LOG:
        records.append(encode_batch(sequence, operations))
        sequence += len(operations)
    return records


def manifest(folder: Path) -> list[bytes]:
    """The records of the manifest: a snapshot, and two edits that lead to what there is."""
    files = [
        new_file(folder / table.name, table, int(Path(table.name).stem))
        for table in TABLES
        if table.name.startswith("database/")
    ]
    moved = attrs.evolve(files[2], level=0)
    edits = [
        Edit(comparator=BYTEWISE.name, compact_pointers=[(1, files[0].largest)], added=files[:2]),
        Edit(
            log_number=5,
            previous_log_number=0,
            next_file_number=6,
            last_sequence=600,
            added=[moved],
        ),
        Edit(
            log_number=LOG_NUMBER,
            previous_log_number=0,
            next_file_number=MANIFEST_NUMBER + 1,
            last_sequence=LAST_SEQUENCE,
            compact_pointers=[(0, moved.largest)],
            deleted=[(0, moved.number)],
            added=files[2:],
        ),
    ]
    return [edit.encode() for edit in edits]


def new_file(path: Path, table: GoldenTable, number: int) -> NewFile:
    """How the manifest names a table."""
    entries = table.entries
    smallest, largest = (
        key + (-rank).to_bytes(8, "little") for key, rank, _ in (entries[0], entries[-1])
    )
    return NewFile(table.level, number, path.stat().st_size, smallest, largest)


def contents() -> dict[bytes, bytes]:
    """What the database holds: the newest version of each key, where that is a value."""
    newest: dict[bytes, tuple[int, bytes | None]] = {}
    found: list[tuple[bytes, int, bytes | None]] = [
        (key, *version)
        for table in TABLES
        if table.name.startswith("database/")
        for key, versions in table.versions.items()
        for version in versions
    ]
    operations = [operation for batch in LOG for operation in batch]
    for place, (key, written) in enumerate(operations):
        found.append((key, LAST_SEQUENCE + 1 + place, written))
    for key, sequence, written in found:
        newest[key] = max(newest.get(key, (-1, None)), (sequence, written))
    return {key: written for key, (_, written) in newest.items() if written is not None}
