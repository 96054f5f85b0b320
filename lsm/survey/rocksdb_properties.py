"""What a table of RocksDB's or Pebble's says about itself, in the block ``rocksdb.properties``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import attrs

from lsm.disk.coding import Fields

METAINDEX_KEY = b"rocksdb.properties"

BINARY_SEARCH, HASH_SEARCH, TWO_LEVELS, WITH_FIRST_KEYS = range(4)
"""The kinds of indexes."""

BYTEWISE = ("leveldb.BytewiseComparator",)
REVERSED = ("rocksdb.ReverseBytewiseComparator",)

_PREFIX = b"rocksdb."
_SCHEMA = b"pebble.colblk.schema"
_PEBBLES_OWN = "DefaultKeySchema("
_NONE = ("", "nullptr")
_WHOLE = "rocksdb.Noop"  # to which keys are their own prefixes
_LONGER_THAN_ANY = 1 << 32
_EXTRACTOR = re.compile(r"rocksdb\.(Fixed|Capped)Prefix\.([0-9]{1,9})")


@attrs.frozen
class PrefixExtractor:
    """RocksDB's prefixes of ``length`` bytes; shorter keys have none, or are their own."""

    length: int
    is_capped: bool

    @classmethod
    def named(cls, name: str) -> PrefixExtractor | None:
        """The one that RocksDB calls so; None for one of its users' own."""
        if name == _WHOLE:
            return cls(_LONGER_THAN_ANY, True)
        found = _EXTRACTOR.fullmatch(name)
        return None if found is None else cls(int(found[2]), found[1] == "Capped")

    def of(self, key: bytes) -> bytes | None:
        """The prefix of a key; None for one that has none."""
        return key[: self.length] if self.is_capped or len(key) >= self.length else None


@attrs.frozen(kw_only=True)
class RocksDBProperties:
    """The properties of a table that reading depends on, or that people ask for."""

    comparator: str = BYTEWISE[0]
    num_entries: int | None = None
    num_deletions: int | None = None
    num_filter_entries: int | None = None
    num_data_blocks: int | None = None
    filter_policy: str = ""
    prefix_extractor: str = ""
    """Empty for none."""
    whole_keys: bool = True
    """Whether filters have whole keys."""
    prefixes: bool = False
    """Whether filters have prefixes."""
    compression: str = ""
    created: int | None = None
    """Seconds since 1970 of the oldest data in it, as RocksDB keeps them."""
    written: int | None = None
    """Seconds since 1970 of the file."""
    index_type: int = BINARY_SEARCH
    has_delta_handles: bool = False
    """Whether entries of indexes have no length, and a handle may be told by the one before."""
    has_user_keys: bool = False
    """Whether keys of indexes are user keys."""
    is_pebbles: bool = False
    schema: str = ""
    """Pebble's name for the columns of its data."""

    @classmethod
    def of(cls, found: Mapping[bytes, bytes]) -> RocksDBProperties:
        """Those of a block's names and values; CorruptionError where a number is none."""
        said: dict[str, Any] = {
            "comparator": _text(found, "comparator") or BYTEWISE[0],
            "num_entries": _number(found, "num.entries"),
            "num_deletions": _number(found, "deleted.keys"),
            "num_filter_entries": _number(found, "num.filter_entries"),
            "num_data_blocks": _number(found, "num.data.blocks"),
            "filter_policy": _text(found, "filter.policy"),
            "prefix_extractor": _text(found, "prefix.extractor.name"),
            "whole_keys": _flag(found, "whole.key.filtering", True),
            "prefixes": _flag(found, "prefix.filtering", False),
            "compression": _text(found, "compression"),
            "created": _number(found, "creation.time"),
            "written": _number(found, "file.creation.time"),
            "index_type": _index_type(found),
            "has_delta_handles": bool(_number(found, "index.value.is.delta.encoded")),
            "has_user_keys": bool(_number(found, "index.key.is.user.key")),
            "schema": found.get(_SCHEMA, b"").decode("utf-8", "replace"),
            "is_pebbles": any(key.startswith(b"pebble.") for key in found),
        }
        return cls(**said)

    @property
    def is_of_pebbles_schema(self) -> bool:
        """Whether columns are those that Pebble has for keys of anybody's."""
        return self.schema.startswith(_PEBBLES_OWN)

    @property
    def extractor(self) -> PrefixExtractor | None:
        """What makes the prefixes that filters have; None if unknown, or if there are none."""
        return PrefixExtractor.named(self.prefix_extractor) if self.prefixes else None


def _text(found: Mapping[bytes, bytes], name: str) -> str:
    text = found.get(_PREFIX + name.encode(), b"").decode("utf-8", "replace")
    return "" if text in _NONE else text


def _number(found: Mapping[bytes, bytes], name: str) -> int | None:
    raw = found.get(_PREFIX + name.encode())
    if raw is None:
        return None
    fields = Fields(raw, f"property rocksdb.{name}")
    number = fields.varint64("number")
    fields.end()
    return number


def _flag(found: Mapping[bytes, bytes], name: str, default: bool) -> bool:
    raw = found.get(_PREFIX + b"block.based.table." + name.encode())
    return default if raw is None else raw == b"1"


def _index_type(found: Mapping[bytes, bytes]) -> int:
    name = "block.based.table.index.type"
    raw = found.get(_PREFIX + name.encode())
    if raw is None:
        return BINARY_SEARCH
    fields = Fields(raw, f"property rocksdb.{name}")
    kind = fields.number(4, "number")
    fields.end()
    return kind
