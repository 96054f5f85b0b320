"""Databases whose files say whatever a test wants, under right checksums.

A file is taken apart, changed where it means something, and put together again: what a checksum
finds has tests of its own.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import attrs
import cramjam
from xxhash import xxh3_64_intdigest

import policies
from lsm.comparator import BYTEWISE
from lsm.disk.edit import Edit, NewFile
from lsm.disk.keys import PUT, pack, rank_of
from lsm.disk.log import LogReader, LogWriter
from lsm.options import LEVELS
from policies import LevelPolicies
from policies.config import Choice
from tests.lsm.independent_table import (
    DEFLATE,
    RAW,
    SNAPPY,
    TRAILER,
    ZSTD,
    Block,
    Pair,
    contents_of,
    deflated,
    footer,
    parse,
    stored,
    varint,
)
from tests.lsm.simulated import SimulatedStorage

DIRECTORY = "db"
CURRENT, OPTIONS = "CURRENT", "lsm-options.toml"

Files = dict[str, bytes]
"""A database's directory: its files by name."""

ODD_NUMBERS = [0, 1, 2, 3, 7, 8, 127, 128, 255, 256, 16383, 16384, 65535, 1 << 20, 1 << 28]
ODD_NUMBERS += [(1 << bits) - less for bits in (31, 32, 56, 62, 63) for less in (0, 1)]
ODD_NUMBERS.append((1 << 64) - 1)


# -- Logs and manifests ------------------------------------------------------------------------


class _Bytes:
    """The part of a file that a log writer needs."""

    def __init__(self) -> None:
        self.data = bytearray()

    def append(self, data: bytes) -> None:
        self.data += data


def log_of(records: Sequence[bytes]) -> bytes:
    """A log of these records."""
    file = _Bytes()
    writer = LogWriter(file)  # type: ignore[arg-type]
    for record in records:
        writer.add(record)
    return bytes(file.data)


def records_of(data: bytes) -> list[bytes]:
    """The records of a log."""
    return list(LogReader(data, "a log").records())


def edits_of(data: bytes) -> list[Edit]:
    """What the records of a manifest say."""
    return [Edit.decode(record, LEVELS) for record in records_of(data)]


def manifest_of(*edits: Edit) -> bytes:
    """A manifest of these records."""
    return log_of([edit.encode() for edit in edits])


def name_of(files: Files, start: str = "", end: str = "") -> str:
    """The first file with such a name."""
    return min(name for name in files if name.startswith(start) and name.endswith(end))


# -- Tables ------------------------------------------------------------------------------------

_SQUEEZE: dict[int, Callable[[bytes], bytes]] = {
    RAW: bytes,
    SNAPPY: lambda data: bytes(cramjam.snappy.compress_raw(data)),
    ZSTD: lambda data: bytes(cramjam.zstd.compress(data, 1)),
    DEFLATE: deflated,
}


@dataclass
class Parts:
    """A table taken apart: index key, contents and compression of each block, and what else it has.

    ``index``, ``metaindex`` and ``end`` take the place of what would follow from the rest.
    """

    blocks: list[tuple[bytes, bytes, int]]
    meta: list[Pair]
    index: Callable[[list[Pair]], bytes] = contents_of
    metaindex: Callable[[list[Pair]], bytes] = contents_of
    end: Callable[[bytes], bytes] = bytes
    squeeze: Callable[[int, bytes], bytes] = field(default=lambda kind, data: _squeezed(kind, data))

    @classmethod
    def of(cls, data: bytes) -> Parts:
        """The parts of a table."""
        table = parse(data)
        pairs = zip(table.index.pairs, table.blocks, strict=True)
        return cls(
            [(key, block.contents, block.kind) for (key, _), block in pairs],
            [(name, block.contents) for name, block in table.meta.items()],
        )

    def assembled(self) -> bytes:
        """The table, with right checksums, and right handles unless others were asked for."""
        data, index, metaindex, handles = b"", [], [], []
        for key, contents, kind in self.blocks:
            block = stored(self.squeeze(kind, contents), kind)
            index.append((key, varint(len(data)) + varint(len(block) - TRAILER)))
            data += block
        for name, contents in self.meta:
            metaindex.append((name, varint(len(data)) + varint(len(contents))))
            data += stored(contents)
        for contents in (self.metaindex(metaindex), self.index(index)):
            handles.append(varint(len(data)) + varint(len(contents)))
            data += stored(contents)
        return data + self.end(footer(*handles))


def _squeezed(kind: int, data: bytes) -> bytes:
    return _SQUEEZE.get(kind, bytes)(data)


def with_table(files: Files, name: str, data: bytes) -> Files:
    """The files with another table under a name, whose size the manifest then knows."""
    manifest, number = name_of(files, "MANIFEST"), int(name.partition(".")[0])
    edits = edits_of(files[manifest])
    for edit in edits:
        edit.added = [
            attrs.evolve(new, size=len(data)) if new.number == number else new for new in edit.added
        ]
    return {**files, name: data, manifest: manifest_of(*edits)}


def database_of(data: bytes, low: bytes, high: bytes, *, level: int = 1) -> Files:
    """A database of one table, with keys from one user key to another."""
    new = NewFile(level, 5, len(data), pack(low, rank_of(99, PUT)), pack(high, rank_of(0, 0)))
    edit = Edit(
        comparator=BYTEWISE.name, log_number=0, next_file_number=7, last_sequence=99, added=[new]
    )
    return {CURRENT: b"MANIFEST-000004\n", "MANIFEST-000004": manifest_of(edit), "000005.ldb": data}


# -- A database's files, and back --------------------------------------------------------------


def storage_of(files: Files) -> SimulatedStorage:
    """A file system with a directory of these files."""
    storage = SimulatedStorage()
    storage.make_directory(DIRECTORY)
    for name, data in files.items():
        file = storage.create(f"{DIRECTORY}/{name}")
        file.append(data)
        file.sync()
        file.close()
    storage.sync_directory(DIRECTORY)
    return storage


def files_of(storage: SimulatedStorage) -> Files:
    """What is in the directory, but for its lock."""
    names = (name for name in storage.list(DIRECTORY) if name not in ("LOCK", "lost"))
    return {name: storage.read(f"{DIRECTORY}/{name}") for name in names}


def small_options(rng: random.Random) -> dict[str, Any]:
    """Options under which some hundred writes make many small tables, with all kinds of filters."""
    names = [name for name in sorted(policies.available()) if "." not in name and name != "none"]
    chosen = rng.choices(names, k=LEVELS)
    layouts = ["block" if name == "leveldb" and rng.random() < 0.7 else "table" for name in chosen]
    choices = tuple(
        Choice(policies.create(name), layout) for name, layout in zip(chosen, layouts, strict=True)
    )
    return {
        "write_buffer_size": 3000,
        "max_file_size": 2048,
        "block_size": rng.choice((64, 512)),
        "level_size_base": 4096,
        "level_size_ratio": 2,
        "filter_policy": LevelPolicies(choices),
        "compression": rng.choice(("none", "snappy", "zstd")),
        "block_restart_interval": rng.choice((1, 2, 16)),
    }


# -- Mutations ---------------------------------------------------------------------------------


def mutated(rng: random.Random, data: bytes) -> bytes:
    """Other bytes: some changed, inserted, removed or repeated, mostly where lengths stand."""
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        size = len(changed)
        if not size:
            changed += rng.randbytes(4)
            continue
        near_end = max(0, size - rng.choice((4, 8)))
        at = rng.choice((rng.randrange(size), 0, near_end, rng.randrange(min(size, 16))))
        _MUTATIONS[rng.randrange(len(_MUTATIONS))](rng, changed, at)
    return bytes(changed)


def _set_byte(rng: random.Random, data: bytearray, at: int) -> None:
    data[at] = rng.randrange(256)


def _flip_bit(rng: random.Random, data: bytearray, at: int) -> None:
    data[at] ^= 1 << rng.randrange(8)


def _set_number(rng: random.Random, data: bytearray, at: int) -> None:
    width = rng.choice((4, 8))
    data[at : at + width] = (rng.choice(ODD_NUMBERS) % (1 << 8 * width)).to_bytes(width, "little")


def _set_varint(rng: random.Random, data: bytearray, at: int) -> None:
    data[at : at + rng.randrange(3)] = varint(rng.choice(ODD_NUMBERS))


def _insert(rng: random.Random, data: bytearray, at: int) -> None:
    data[at:at] = rng.randbytes(rng.choice((1, 4, 16)))


def _remove(rng: random.Random, data: bytearray, at: int) -> None:
    del data[at : at + rng.choice((1, 4, 16))]


def _cut(rng: random.Random, data: bytearray, at: int) -> None:
    del data[at:]


def _repeat(rng: random.Random, data: bytearray, at: int) -> None:
    start = rng.randrange(len(data))
    data[at:at] = data[start : start + rng.choice((4, 20, 100))]


_MUTATIONS = [_set_byte, _flip_bit, _set_number, _set_varint, _insert, _remove, _cut, _repeat]


def forged(rng: random.Random, files: Files) -> tuple[str, Files]:
    """The files with one of them changed, and what was changed."""
    victim = rng.choices(("table", "manifest", "log", "current", "options"), (10, 6, 3, 1, 2))[0]
    if victim == "table":
        name = rng.choice(sorted(name for name in files if name.endswith(".ldb")))
        part, data = _forged_table(rng, files[name])
        return f"{part} of {name}", with_table(files, name, data)
    if victim == "current":
        return CURRENT, {**files, CURRENT: _forged_current(rng, files[CURRENT])}
    if victim == "options":
        return OPTIONS, {**files, OPTIONS: _forged_options(rng, files[OPTIONS])}
    name = name_of(files, "MANIFEST") if victim == "manifest" else name_of(files, end=".log")
    forge = _forged_manifest if victim == "manifest" and rng.random() < 0.7 else _forged_log
    return name, {**files, name: forge(rng, files[name])}


def _forged_log(rng: random.Random, data: bytes) -> bytes:
    records = records_of(data)
    for _ in range(rng.choice((1, 1, 2))):
        at = rng.randrange(len(records))
        records[at] = mutated(rng, records[at])
    if rng.random() < 0.1:
        rng.shuffle(records)
    if rng.random() < 0.1:
        records.insert(rng.randrange(len(records)), rng.choice(records))
    return mutated(rng, log_of(records)) if rng.random() < 0.1 else log_of(records)


def _forged_manifest(rng: random.Random, data: bytes) -> bytes:
    """Records that can be decoded, and say what is not so."""
    edits = edits_of(data)
    for edit in rng.sample(edits, min(len(edits), rng.choice((1, 1, 3)))):
        chosen = rng.random()
        if chosen < 0.5 and edit.added:
            at = rng.randrange(len(edit.added))
            _FILE_LIES[rng.randrange(len(_FILE_LIES))](rng, edit, at)
        elif chosen < 0.7:
            names = ("log_number", "next_file_number", "last_sequence", "previous_log_number")
            setattr(edits[-1], rng.choice(names), rng.choice(ODD_NUMBERS))  # which has the say
        elif chosen < 0.85:
            key = rng.randbytes(rng.randrange(8, 20))
            edit.compact_pointers.append((rng.randrange(LEVELS), key))
        else:
            every = [(new.level, new.number) for each in edits for new in each.added]
            edit.deleted.append(rng.choice([*every, (rng.randrange(LEVELS), 3)]))
    return manifest_of(*edits)


def _evolved(**how: Callable[[random.Random, NewFile], object]) -> Any:
    def lie(rng: random.Random, edit: Edit, at: int) -> None:
        changes: dict[str, Any] = {name: make(rng, edit.added[at]) for name, make in how.items()}
        edit.added[at] = attrs.evolve(edit.added[at], **changes)

    return lie


def _other_key(rng: random.Random, key: bytes) -> bytes:
    return mutated(rng, key).rjust(8, b"x")


def _add_twice(rng: random.Random, edit: Edit, at: int) -> None:
    edit.added.append(attrs.evolve(edit.added[at], level=rng.randrange(LEVELS)))


_FILE_LIES: list[Callable[[random.Random, Edit, int], None]] = [
    _evolved(level=lambda rng, new: rng.randrange(LEVELS)),
    _evolved(number=lambda rng, new: rng.choice([*ODD_NUMBERS, new.number + 1])),
    _evolved(size=lambda rng, new: rng.choice(ODD_NUMBERS)),
    _evolved(smallest=lambda rng, new: _other_key(rng, new.smallest)),
    _evolved(largest=lambda rng, new: _other_key(rng, new.largest)),
    _evolved(smallest=lambda rng, new: new.largest),
    _evolved(largest=lambda rng, new: new.smallest),
    _evolved(smallest=lambda rng, new: new.largest, largest=lambda rng, new: new.smallest),
    _evolved(smallest=lambda rng, new: b"\0" * 8, largest=lambda rng, new: b"\xff" * 12),
    _add_twice,
]


def _forged_current(rng: random.Random, data: bytes) -> bytes:
    odd = [b"", b"\n", b"MANIFEST-\n", b"MANIFEST-000099\n", b"../CURRENT\n", b"lsm-seed\n"]
    odd += [b"MANIFEST-%d\n" % number for number in ODD_NUMBERS]
    return rng.choice(odd) if rng.random() < 0.6 else mutated(rng, data)


def _forged_options(rng: random.Random, data: bytes) -> bytes:
    if rng.random() < 0.6:
        return mutated(rng, data)
    lines = data.splitlines()
    at, depth = rng.randrange(len(lines)), rng.choice((5, 300, 900, 100_000))
    value = rng.choice((b"[", b"{a=", b"9", b'"x', b"1979-05-")) * depth
    lines[at] = (lines[at].partition(b"=")[0] or b"x ") + b"= " + value
    return b"\n".join(lines)


def _forged_table(rng: random.Random, data: bytes) -> tuple[str, bytes]:
    parts, part = Parts.of(data), rng.choice(sorted(_TABLE_LIES))
    _TABLE_LIES[part](rng, parts)
    return part, parts.assembled()


def _lie_in_data(rng: random.Random, parts: Parts) -> None:
    at = rng.randrange(len(parts.blocks))
    key, contents, _ = parts.blocks[at]
    parts.blocks[at] = key, mutated(rng, contents), rng.choice((RAW, RAW, SNAPPY, ZSTD))


def _lie_in_compressed_data(rng: random.Random, parts: Parts) -> None:
    at, kind = rng.randrange(len(parts.blocks)), rng.choice((SNAPPY, SNAPPY, ZSTD, ZSTD, 3, 255))
    key, contents, _ = parts.blocks[at]
    squeezed = mutated(rng, _squeezed(kind, contents))
    parts.blocks[at] = key, squeezed, kind
    parts.squeeze = lambda kind, data: data if data is squeezed else _squeezed(kind, data)


def _lie_in_order(rng: random.Random, parts: Parts) -> None:
    one, other = rng.choices(range(len(parts.blocks)), k=2)
    blocks = parts.blocks
    if rng.random() < 0.5:
        blocks[one], blocks[other] = blocks[other], blocks[one]
    else:
        blocks[one] = (blocks[one][0], *blocks[other][1:])


def _lie_in_index(rng: random.Random, parts: Parts) -> None:
    parts.index = lambda pairs: mutated(rng, contents_of(pairs))


def _lie_in_metaindex(rng: random.Random, parts: Parts) -> None:
    parts.metaindex = lambda pairs: mutated(rng, contents_of(pairs))


def _lie_in_handles(rng: random.Random, parts: Parts) -> None:
    def lie(pairs: list[Pair]) -> bytes:
        at = rng.randrange(len(pairs))
        place = varint(rng.choice(ODD_NUMBERS)) + varint(rng.choice(ODD_NUMBERS))
        other = rng.choice((place, rng.choice(pairs)[1], mutated(rng, pairs[at][1])))
        return contents_of([*pairs[:at], (pairs[at][0], other), *pairs[at + 1 :]])

    if rng.random() < 0.5:
        parts.index = lie
    else:
        parts.metaindex = lie


def _lie_in_footer(rng: random.Random, parts: Parts) -> None:
    parts.end = lambda end: mutated(rng, end[:-8]).ljust(40, b"\0")[:40] + end[-8:]


def _lie_in_properties(rng: random.Random, parts: Parts) -> None:
    for at, (name, contents) in enumerate(parts.meta):
        if name != b"lsm.properties":
            continue
        if rng.random() < 0.5:
            contents = mutated(rng, contents)
        else:
            pairs = _pairs_of(contents)
            which = rng.randrange(len(pairs))
            deep = rng.choice((b"[", b'{"a":')) * rng.choice((30, 900, 100_000))
            value = rng.choice((deep, mutated(rng, pairs[which][1])))
            pairs[which] = pairs[which][0], value
            contents = contents_of(pairs, interval=1)
        parts.meta[at] = name, contents


def _pairs_of(contents: bytes) -> list[Pair]:
    return Block(0, len(contents), RAW, contents).pairs


def _lie_in_filter(rng: random.Random, parts: Parts) -> None:
    for at, (name, contents) in enumerate(parts.meta):
        if b"filter" in name:
            if rng.random() < 0.1:
                name = mutated(rng, name)
            parts.meta[at] = name, forged_filter(rng, contents)


_BLOCK, _FRAME, _SEAL = b"LSMF", b"LSFB", 8


def forged_filter(rng: random.Random, contents: bytes) -> bytes:
    """Another filter block; if it describes itself, with right checksums within and without."""
    if not contents.startswith(_BLOCK):
        return mutated(rng, contents)
    start = contents.find(_FRAME)
    if start < 0 or rng.random() < 0.3:
        return _sealed(mutated(rng, contents[:-_SEAL]))
    payload = _sealed(mutated(rng, contents[start : -2 * _SEAL]))
    # The length of the payload stands before it.
    return _sealed(contents[: start - 8] + len(payload).to_bytes(8, "little") + payload)


def _sealed(body: bytes) -> bytes:
    return body + xxh3_64_intdigest(body).to_bytes(_SEAL, "little")


_TABLE_LIES: dict[str, Callable[[random.Random, Parts], None]] = {
    "a data block": _lie_in_data,
    "a compressed block": _lie_in_compressed_data,
    "the order of blocks": _lie_in_order,
    "the index": _lie_in_index,
    "the metaindex": _lie_in_metaindex,
    "a handle": _lie_in_handles,
    "the footer": _lie_in_footer,
    "the properties": _lie_in_properties,
    "the filter": _lie_in_filter,
}
