"""Detecting directories of other stores, of which no byte may change.

RocksDB, Pebble and Badger use LevelDB's file names. What only they write gives them away, whatever
else is there. Other stores have names of their own, and are recognised where no file is one that
LevelDB has: beside a database anybody may keep what they like.

Detection creates, locks and writes nothing, and reads no more than some kilobytes.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import attrs

from lsm.disk import filenames
from lsm.disk.edit import Edit
from lsm.disk.filenames import Files, Kind
from lsm.disk.footer import FOOTER_BYTES, MAGIC, Footer
from lsm.disk.log import LogReader
from lsm.disk.rocksdb_manifest import rocksdb_tag
from lsm.errors import CorruptionError, ForeignDatabaseError, IOError
from lsm.options import LEVELS

if TYPE_CHECKING:
    from lsm.storage import Storage

_ROCKSDB, _PEBBLE, _BADGER = "RocksDB", "Pebble", "Badger"

_REMEDIES = {
    _ROCKSDB: "open it with RocksDB, in Python with the package rocksdict, and copy its keys over "
    "into a database in a directory of its own",
    _PEBBLE: "open it with Pebble, as the program that wrote it does, and copy its keys over into "
    "a database in a directory of its own",
}
_REMEDY = "choose another directory, or make one in there"

# The last eight bytes of a table. Pebble writes RocksDB's form, too, and tells itself otherwise.
_TABLE_ENDS = {
    bytes.fromhex("f7cff485b741e288"): (_ROCKSDB, "a block-based table"),
    bytes.fromhex("6495bf6396224282"): (_ROCKSDB, "a plain table"),
    bytes.fromhex("b8138f7aeb18344f"): (_ROCKSDB, "a plain table"),
    bytes.fromhex("7378f1c5d0896792"): (_ROCKSDB, "a cuckoo table"),
    bytes.fromhex("f09faab3f09faab3"): (_PEBBLE, "a table"),
}
_BLOB_BEGIN = (0x248F37).to_bytes(4, "little")
_UUID = re.compile(rb"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\s*")
_OPTIONS = re.compile(r"OPTIONS-[0-9]{6,20}")
_MARKER = re.compile(r"marker\.[a-z-]+\.[0-9]{6}\..+")
_BLOB = re.compile(r"[0-9]{6,20}\.blob")

# Newer tables have higher numbers: whoever writes here now has written those.
_TABLES_LOOKED_AT = 16
_LARGEST_METAINDEX = 1 << 20
_MANIFEST_LOOKED_AT = 4096  # RocksDB's first record says whose it is


@attrs.frozen
class Owner:
    """Another store, and the file by which it was detected."""

    store: str
    file: str
    what: str

    def refusal(self, directory: str) -> ForeignDatabaseError:
        """The error that says whose the directory is, by which file, and what to do."""
        remedy = _REMEDIES.get(self.store, _REMEDY)
        return ForeignDatabaseError(
            f"{directory}: this directory is {self.store}'s: it has {self.file}, {self.what}. It "
            f"was left as it is: {remedy}. If this file has nothing to do with what else is there, "
            "move it away"
        )


def check(storage: Storage, directory: str) -> Sighting:
    """What was seen of the directory; ForeignDatabaseError if it belongs to another store.

    A file that cannot be read is no sign of anybody; who needs it reports the error.
    """
    seen, owner = look(storage, directory)
    if owner is not None:
        raise owner.refusal(directory)
    return seen


def look(storage: Storage, directory: str) -> tuple[Sighting, Owner | None]:
    """What was seen of the directory, and which other store it belongs to, if to any."""
    try:
        names = frozenset(storage.list(directory))
    except IOError:
        names = frozenset()
    seen = Sighting(names, filenames.database_files(names))
    return seen, next(_Directory(storage, directory, seen).owners(), None)


@attrs.frozen
class Sighting:
    """What was seen of a directory before it was locked; others may have changed it since."""

    names: frozenset[str]
    files: Files
    edits: dict[bytes, Edit] = attrs.field(factory=dict)
    """LevelDB's edits in its manifest's first records, each by the record."""

    @property
    def is_like_leveldbs(self) -> bool:
        """Whether any file is one that only a database of LevelDB's form has."""
        kinds = (Kind.CURRENT, Kind.MANIFEST, Kind.TABLE)
        return any(self.files[kind] for kind in kinds) or self.is_ours

    @property
    def is_ours(self) -> bool:
        """Whether any file is one that only this engine keeps beside LevelDB's."""
        return any(name.startswith("lsm-") for name in self.names)

    def files_among(self, names: frozenset[str]) -> Files:
        """The files of a database among the names that are there now."""
        return self.files if names == self.names else filenames.database_files(names)


@attrs.frozen
class _Directory:
    """A directory, and the ways of detecting whose it is."""

    storage: Storage
    directory: str
    seen: Sighting

    def owners(self) -> Iterator[Owner]:
        """Each sign of another store, the cheapest to look for first."""
        yield from self.by_names()
        yield from self.by_manifest()
        yield from self.by_tables()
        if not self.seen.is_like_leveldbs:
            yield from self.by_signatures()

    def by_names(self) -> Iterator[Owner]:
        """Files that RocksDB, Pebble and Badger have beside their tables."""
        names, files = self.seen.names, self.seen.files
        for name in sorted(names.difference(*files.values())):
            if _MARKER.fullmatch(name):
                yield Owner(_PEBBLE, name, "a marker of its format or manifest")
            elif _OPTIONS.fullmatch(name):
                is_pebbles = b"pebble_version" in self._part(name, 0, 4096)
                yield Owner(_PEBBLE if is_pebbles else _ROCKSDB, name, "its options")
            elif _BLOB.fullmatch(name) and self._part(name, 0, 4) == _BLOB_BEGIN:
                yield Owner(_ROCKSDB, name, "a blob file")
            elif name == "KEYREGISTRY" or (
                name == "MANIFEST" and self._part(name, 0, 4) == b"Bdgr"
            ):
                yield Owner(_BADGER, name, "which nobody else has")
        if not self.seen.is_ours and _UUID.fullmatch(self._part("IDENTITY", 0, 64)):
            yield Owner(_ROCKSDB, "IDENTITY", "the number of a database")

    def by_manifest(self) -> Iterator[Owner]:
        """Tags that LevelDB's manifests do not have, in the one in use or else the newest."""
        manifests = self._numbered(Kind.MANIFEST, "")
        if manifests:
            name = manifests[-1]
            if len(manifests) > 1:
                current = self._part(filenames.CURRENT, 0, 64).decode("ascii", "replace")
                name = current.rstrip("\n") if current.rstrip("\n") in manifests else name
            reader = LogReader(self._part(name, 0, _MANIFEST_LOOKED_AT), name)
            for record in reader.records_until_loss():
                try:
                    self.seen.edits[record] = Edit.decode(record, LEVELS)
                except CorruptionError:
                    if (tag := rocksdb_tag(record)) is not None:
                        yield Owner(_ROCKSDB, name, f"a manifest with its tag {tag}")

    def by_tables(self) -> Iterator[Owner]:
        """Magic numbers of tables named ``.sst``; only LevelDB names them ``.ldb``."""
        for name in reversed(self._numbered(Kind.TABLE, ".sst")[-_TABLES_LOOKED_AT:]):
            footer = self._part(name, -FOOTER_BYTES, None)
            if footer[-len(MAGIC) :] in _TABLE_ENDS:
                store, what = _TABLE_ENDS[footer[-len(MAGIC) :]]
                yield Owner(store, name, what)
            elif footer.endswith(MAGIC) and b"rocksdb.properties" in self._metaindex(name, footer):
                yield Owner(_ROCKSDB, name, "a table with its properties")

    def by_signatures(self) -> Iterator[Owner]:
        """Files of stores whose formats have nothing in common with LevelDB's."""
        for signature in _SIGNATURES:
            for name in sorted(self.seen.names):
                if signature.name.fullmatch(name) and self._has(name, signature):
                    yield Owner(signature.store, name, signature.what)

    def _has(self, name: str, signature: _Signature) -> bool:
        end = signature.at + len(signature.magic)
        return self._part(name, signature.at, end) == signature.magic

    def _metaindex(self, name: str, footer: bytes) -> bytes:
        with contextlib.suppress(CorruptionError):
            handle = Footer.decode(footer).metaindex
            if handle.size <= _LARGEST_METAINDEX:
                return self._part(name, handle.offset, handle.offset + handle.size)
        return b""

    def _numbered(self, kind: Kind, suffix: str) -> list[str]:
        """The names of this kind, the highest number last."""
        numbers = self.seen.files[kind]
        names = (name for name in numbers if name.endswith(suffix))
        return sorted(names, key=lambda name: (numbers[name], name))

    def _part(self, name: str, start: int, end: int | None) -> bytes:
        """Some of a file's bytes, or none where they cannot be read."""
        if name not in self.seen.names or start == end:
            return b""
        try:
            mapped = self.storage.map(f"{self.directory}/{name}")
        except IOError:
            return b""
        try:
            return bytes(mapped.data[start:end])
        finally:
            mapped.close()


@attrs.frozen
class _Signature:
    """How a file of a store is called, and which magic bytes it has where."""

    store: str
    what: str
    name: re.Pattern[str]
    at: int = 0
    magic: bytes = b""


_SIGNATURES = (
    _Signature("LMDB", "its data", re.compile(r"data\.mdb")),
    _Signature(
        "Cassandra",
        "a component of its tables",
        re.compile(
            r"(.+-)?[a-z]{2}-[0-9a-z_]+(-[a-z]+)?-"
            r"(Data|Index|Filter|Summary|Statistics|CompressionInfo|Partitions|Rows|TOC)\.(db|txt)"
        ),
    ),
    _Signature(
        "SQLite",
        "a database",
        re.compile(r".+\.(db|db3|sqlite|sqlite3)"),
        magic=b"SQLite format 3\0",
    ),
    _Signature(
        "bbolt",
        "a database",
        re.compile(r".+\.(db|bolt)"),
        at=16,
        magic=bytes.fromhex("edda0ced"),
    ),
    _Signature(
        "MongoDB", "a file of WiredTiger's", re.compile(r"WiredTiger(\.lock|\.wt|\.turtle)?")
    ),
    _Signature("PostgreSQL", "the version of its cluster", re.compile(r"PG_VERSION")),
    _Signature("MySQL", "a tablespace of InnoDB", re.compile(r"ibdata[0-9]")),
    _Signature("Berkeley DB", "a region of its environment", re.compile(r"__db\.[0-9]{3}")),
)
