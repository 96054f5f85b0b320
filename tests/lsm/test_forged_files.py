"""Files that say what is not so, under right checksums: refused or lived with, never worse.

Only the engine's own errors are raised, each with the file it is about; memory is bounded; a
background that stops says why; and what could be opened can be opened again.
"""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import lsm
from lsm.disk.edit import Edit, NewFile
from lsm.disk.keys import MAX_SEQUENCE, PUT, pack, rank_of
from tests.effort import by_effort
from tests.lsm.forged_life import Life, sound
from tests.lsm.forging import (
    DIRECTORY,
    ODD_NUMBERS,
    Files,
    Parts,
    database_of,
    edits_of,
    manifest_of,
    name_of,
    storage_of,
    with_table,
)
from tests.lsm.independent_table import closed, contents_of, varint

ROOT = Path(__file__).parents[2]


# -- What was found once -----------------------------------------------------------------------


def with_edits(files: Files, *edits: Edit) -> Files:
    """The files with more records in the manifest."""
    name = name_of(files, "MANIFEST")
    return {**files, name: manifest_of(*edits_of(files[name]), *edits)}


def placed(files: Files) -> list[NewFile]:
    """The tables that are live."""
    live: dict[int, NewFile] = {}
    for edit in edits_of(files[name_of(files, "MANIFEST")]):
        for _, number in edit.deleted:
            live.pop(number, None)
        live.update((new.number, new) for new in edit.added)
    return list(live.values())


def moved(files: Files, **changes: object) -> Files:
    """The files with a deep table's record repeated, and something in it changed."""
    new = max(placed(files), key=lambda new: (new.level, new.number))
    values = {
        name: getattr(new, name) for name in ("level", "number", "size", "smallest", "largest")
    }
    again = NewFile(**(values | changes))
    return with_edits(files, Edit(deleted=[(new.level, new.number)], added=[again]))


def in_table(files: Files, change: Callable[[Parts], None]) -> Files:
    """The files with their largest table changed."""
    name = max((name for name in files if name.endswith(".ldb")), key=lambda name: len(files[name]))
    parts = Parts.of(files[name])
    change(parts)
    return with_table(files, name, parts.assembled())


def out_of_order(parts: Parts) -> None:
    parts.blocks[0], parts.blocks[-1] = parts.blocks[-1], parts.blocks[0]


def one_block_everywhere(parts: Parts) -> None:
    parts.blocks = [(key, *parts.blocks[0][1:]) for key, _, _ in parts.blocks]


def deep_properties(parts: Parts) -> None:
    pairs = [(b"lsm." + name, b"[" * 100_000) for name in (b"filter.params", b"filter.policy")]
    pairs += [(b"lsm.filter.state", b"built")]
    pairs += [(b"lsm." + name, b"\1") for name in (b"level", b"num.entries", b"num.filter.keys")]
    contents = contents_of(pairs, interval=1)
    parts.meta = [(n, contents if n == b"lsm.properties" else c) for n, c in parts.meta]


LONG = pack(bytes(100_000), rank_of(5, PUT))
WIDE = {
    "smallest": pack(b"", rank_of(MAX_SEQUENCE, PUT)),
    "largest": pack(b"\xff" * 9, rank_of(0, 0)),
}

FOUND: dict[str, Callable[[Files], Files]] = {
    "next file number at the end": lambda files: with_edits(
        files, Edit(next_file_number=2**64 - 1)
    ),
    "log number at the end": lambda files: with_edits(files, Edit(log_number=2**64 - 1)),
    "previous log number at the end": lambda f: with_edits(f, Edit(previous_log_number=2**64 - 1)),
    "next file number below all": lambda files: with_edits(files, Edit(next_file_number=0)),
    "last file number": lambda files: with_edits(files, Edit(next_file_number=2**62 - 1)),
    "last sequence number": lambda files: with_edits(files, Edit(last_sequence=MAX_SEQUENCE)),
    "a log from the future": lambda files: with_edits(files, Edit(log_number=1 << 40)),
    "a pointer to nowhere": lambda f: with_edits(f, Edit(compact_pointers=[(1, b"\xff" * 8)])),
    "a table at two levels": lambda f: with_edits(f, Edit(added=[_evolve(placed(f)[0], level=6)])),
    "a table twice": lambda files: with_edits(files, Edit(added=placed(files)[:1])),
    "a table around all others": lambda files: moved(files, **WIDE),
    "a table around those above": lambda files: moved(files, **WIDE, level=1),
    "a table upside down": lambda f: moved(f, smallest=WIDE["largest"], largest=WIDE["smallest"]),
    "a table of no bytes": lambda files: moved(files, size=0),
    "a table of 2^64 bytes": lambda files: moved(files, size=2**64 - 1),
    "a table beyond the highest number": lambda files: moved(files, number=2**64 - 1),
    "a file beyond the highest number": lambda files: {**files, f"{2**64 - 1}.ldb": b""},
    "a file at the highest number": lambda files: {**files, f"{2**62 - 1}.ldb": b""},
    "parameters without end": lambda files: in_table(files, deep_properties),
    "one block everywhere": lambda files: in_table(files, one_block_everywhere),
}
"""What a sound database becomes: each has raised once what it may not, or might have."""


def _evolve(new: NewFile, level: int) -> NewFile:
    return NewFile(level, new.number, new.size, new.smallest, new.largest)


@pytest.mark.parametrize("what", FOUND)
def test_what_was_found_once_is_found_no_more(what: str, rng: random.Random) -> None:
    for seed in range(by_effort(1, 2, 30)):
        files = FOUND[what](sound(seed))
        for _ in range(by_effort(2, 4, 30)):
            assert Life(files, rng).live() == []


@pytest.mark.parametrize("number", ODD_NUMBERS)
def test_odd_numbers_in_current_are_refused_with_its_name(number: int) -> None:
    files = sound(0)
    files["CURRENT"] = b"MANIFEST-%d\n" % number
    if f"MANIFEST-{number:06}" in files:
        return
    for options in ({}, {"read_only": True}):
        with pytest.raises(lsm.CorruptionError, match=r"db/(CURRENT|MANIFEST).*repair_db"):
            lsm.DB(DIRECTORY, storage=storage_of(files), **options)


def test_versions_of_a_long_key_by_the_thousand_are_read_and_compacted(
    rng: random.Random,
) -> None:
    """A data block of 350 KB that stands for gigabytes: it is legal."""
    first = varint(0) + varint(len(LONG)) + b"\0" + LONG
    block = first + (varint(len(LONG) - 8) + b"\x08\0" + LONG[-8:]) * 20_000
    parts = Parts([(LONG, closed(block, [0]), 0)], [])
    files = database_of(parts.assembled(), b"", b"\xff")
    (found,) = in_child(
        f"files = {files!r}; print(forged_life.Life(files, random.Random(1)).live())"
    )
    assert found == "[]"


def test_long_keys_by_the_thousand_are_walked_and_compacted() -> None:
    """1.2 GB of keys in 300 KB, in a process that may take one."""
    count, prefix = 12_000, LONG[:-8]
    keys = [pack(prefix + number.to_bytes(4, "big"), -257) for number in range(count)]
    first = varint(0) + varint(len(keys[0])) + b"\0" + keys[0]
    rest = (varint(len(prefix)) + b"\x0c\0" + key[-12:] for key in keys[1:])
    parts = Parts([(keys[-1], closed(first + b"".join(rest), [0]), 0)], [])
    files = database_of(parts.assembled(), b"", b"\xff", level=0)
    program = f"""
import lsm
from tests.lsm.forging import storage_of
with lsm.DB("db", storage=storage_of({files!r})) as db:
    print(sum(1 for _ in db), sum(1 for _ in db.iterator(reverse=True)))
    if {by_effort(False, True, True)}:
        db.compact_range()
        print(sum(1 for _ in db))
"""
    assert in_child(program)[0] == f"{count} {count}"


# -- The hunt ----------------------------------------------------------------------------------


def in_child(program: str) -> list[str]:
    """What a program prints that knows forged_life, in bounded memory."""
    start = "import logging, random\nfrom tests.lsm import forged_life\n"
    start += "logging.disable(logging.CRITICAL)\nforged_life.bound_memory()\n"
    done = subprocess.run(
        [sys.executable, "-c", "import sys; exec(sys.stdin.read())"],
        input=start + program,
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 0, f"it ended with {done.returncode}: {done.stderr[-3000:]}"
    return done.stdout.splitlines()


def test_whatever_files_say_only_the_engines_own_errors_are_raised(test_seed: int) -> None:
    """Twenty lives in a second; each finding names its number: forged_life lives it again."""
    count = by_effort(50, 400, 500_000)
    at_once = by_effort(50, 200, 1000)
    for first in range(0, count, at_once):
        seed = test_seed + first
        found = in_child(f"for line in forged_life.lives({seed}, 0, {at_once}): print(line)")
        assert found == [], f"python -m tests.lsm.forged_life {seed} 0 {at_once}"


def test_a_life_finds_what_may_not_be(monkeypatch: pytest.MonkeyPatch, rng: random.Random) -> None:
    """Errors of other kinds, damage without a place, a background that stops with any other."""
    files = sound(1)
    errors = {"ValueError: odd": ValueError("odd"), "no file": lsm.CorruptionError("x")}
    for said, error in errors.items():

        def fail(*_: object, error: Exception = error) -> None:
            raise error

        monkeypatch.setattr(lsm.table_factory.TableFactory, "write", fail)
        findings: list[str] = []
        while not findings:
            findings = Life(files, rng).live()
        assert any(said in finding for finding in findings), findings


def test_what_takes_too_much_memory_is_found() -> None:
    with pytest.raises(AssertionError, match="MemoryError"):
        in_child("bytearray(2 * forged_life.MEMORY)")
