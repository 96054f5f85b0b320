"""The records of RocksDB's manifests, as far as it takes to tell them from LevelDB's."""

from __future__ import annotations

from collections.abc import Callable

from lsm.disk.coding import Fields
from lsm.errors import CorruptionError


def _custom_fields(fields: Fields) -> None:
    """Tags with their values, up to the tag 1."""
    while fields.varint32("tag of a field") != 1:
        fields.slice("field")


# How a value of each kind is read past: a number, a string, fields with tags of their own.
_SHAPES: dict[str, Callable[[Fields], object]] = {
    "n": lambda fields: fields.varint64("number"),
    "s": lambda fields: fields.slice("string"),
    "*": _custom_fields,
}
# The values behind each tag: those of LevelDB first.
_LEVELDB = {1: "s", 2: "n", 3: "n", 4: "n", 5: "ns", 6: "nn", 7: "nnnss", 9: "n"}
# What new tables, a new column family and the number of the database are written with.
_TELLING = {100: "nnnssnn", 102: "nnnnssnn", 103: "nnnssnn*", 201: "s", (1 << 13) + 1: "s"}
# A flipped bit or two make these of LevelDB's: they prove nothing by themselves. A tag with 1 << 13
# set has a string, and is ignored by releases that do not know it.
_SHAPE_OF = (
    dict.fromkeys(range((1 << 13) + 2, (1 << 13) + 64), "s")
    | {10: "n", 200: "n", 202: "", 203: "n", 300: "n"}
    | _TELLING
    | _LEVELDB
)


def rocksdb_tag(record: bytes) -> int | None:
    """The first tag that only RocksDB has, in a manifest record that is RocksDB's throughout."""
    fields, found = Fields(record, "a manifest record"), None
    try:
        while fields.remaining:
            tag = fields.varint32("tag")
            for field in _SHAPE_OF[tag]:
                _SHAPES[field](fields)
            if found is None and tag in _TELLING:
                found = tag
    except (CorruptionError, KeyError):
        return None
    return found
