"""A block-based table of any store: LevelDB's, ours, RocksDB's or Pebble's, and what it says."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from lsm.disk.footer import Handle
from lsm.disk.plain_block import read_block
from lsm.disk.properties import METAINDEX_KEY as OWN_PROPERTIES
from lsm.disk.properties import Properties
from lsm.errors import CorruptionError
from lsm.survey import block_checksums
from lsm.survey.columnar_block import read_names
from lsm.survey.data_blocks import DataBlocks
from lsm.survey.foreign_blocks import plain_form
from lsm.survey.found import FileFound
from lsm.survey.rocksdb_properties import METAINDEX_KEY as ROCKSDB_PROPERTIES
from lsm.survey.rocksdb_properties import RocksDBProperties
from lsm.survey.table_blocks import TableBlocks
from lsm.survey.table_footer import LEVELDB_MAGIC, MAGIC_BYTES, MAGICS, read_footer

if TYPE_CHECKING:
    from lsm.survey.source import Source

_DICTIONARY = b"rocksdb.compression_dict"
_ROCKSDB_INDEX = b"rocksdb.index"
# Pebble's versions from which on these are in columns.
_FIRST_COLUMNAR_DATA = 5
_FIRST_COLUMNAR_METAINDEX = 6
_FIRST_COLUMNAR_PROPERTIES = 7
_YEAR_10000 = 253_402_300_800


def is_one(source: Source) -> bool:
    """Whether a file ends as block-based tables do."""
    return source.end(MAGIC_BYTES) in MAGICS


def found(source: Source) -> FileFound:
    """What is found in a table, and its filters; CorruptionError where its footer is damaged.

    The source stays open as long as anybody asks for keys, or for one of many filters.
    """
    from lsm.survey.table_filters import filters_of  # which reads tables

    table = Table(source)
    return FileFound(
        path=source.path,
        size=source.size,
        store=table.store,
        kind="table",
        facts=table.facts(),
        filters=filters_of(table),
        problems=tuple(table.problems),
    )


class Table:
    """A table that was opened by its footer: its metaindex, its properties, its data blocks.

    What of the metaindex and the properties cannot be read is among the ``problems``, and the rest
    goes on without. ``properties`` are RocksDB's or Pebble's, ``own`` those of this engine.
    """

    def __init__(self, source: Source):
        self.source = source
        self.footer = read_footer(source)
        self.blocks = TableBlocks(source, self.footer)
        self.problems: list[str] = []
        self.metaindex = self._read_metaindex()
        self.properties = self._read_properties()
        self.own = self._read_own()

    @property
    def store(self) -> str:
        """Whose table it is."""
        if self.footer.is_of_pebble or (self.properties and self.properties.is_pebbles):
            return "Pebble"
        if self.is_rocksdbs:
            return "RocksDB"
        return "lsm" if OWN_PROPERTIES in self.metaindex else "LevelDB"

    @property
    def is_rocksdbs(self) -> bool:
        """Whether it is of a form that RocksDB has beside LevelDB's."""
        return self.footer.magic != LEVELDB_MAGIC or ROCKSDB_PROPERTIES in self.metaindex

    @property
    def is_columnar(self) -> bool:
        """Whether its index and its data are in Pebble's columns."""
        return self._is_columnar(_FIRST_COLUMNAR_DATA)

    @cached_property
    def data(self) -> DataBlocks:
        """Its data blocks; CorruptionError where what leads to them cannot be told."""
        index = self.footer.index or self.metaindex.get(_ROCKSDB_INDEX)
        if index is None or (self.is_rocksdbs and self.properties is None):
            problem = "; ".join(self.problems) or "the metaindex lacks an index, or properties"
            raise self.source.damaged(self.footer.metaindex.offset, f"no keys are read: {problem}")
        properties = self.properties or RocksDBProperties()
        if self.is_columnar and not properties.is_of_pebbles_schema:
            raise self.source.damaged(
                0, f"no keys are read: they are in columns of the schema {properties.schema!r}"
            )
        return DataBlocks(
            self.blocks,
            index,
            properties,
            is_columnar=self.is_columnar,
            may_be_bare=self.store == "LevelDB",
        )

    def facts(self) -> dict[str, Any]:
        """What it says of itself, for people."""
        said: dict[str, Any] = {}
        if self.footer.magic != LEVELDB_MAGIC:
            said["format version"] = self.footer.version
        said["checksums"] = block_checksums.name(self.footer.checksum)
        if self.properties is not None:
            said |= _facts_of(self.properties)
        if self.own is not None:
            said |= _facts_of_own(self.own)
        return {name: value for name, value in said.items() if value not in (None, "")}

    def _is_columnar(self, since: int) -> bool:
        return self.footer.is_of_pebble and self.footer.version >= since

    def _read_metaindex(self) -> dict[bytes, Handle]:
        """Where the blocks are that have names, in the order of these."""
        at = self.footer.metaindex
        try:
            named = self._named(at, "metaindex block", _FIRST_COLUMNAR_METAINDEX)
            handles = {
                name: Handle.decode(value, f"the metaindex's entry {name!r}")
                for name, value in named.items()
            }
        except CorruptionError as error:
            self._note(at, "metaindex", error)
            return {}
        self.blocks.is_leveldbs &= ROCKSDB_PROPERTIES not in handles
        self.blocks.has_dictionary = _DICTIONARY in handles
        return handles

    def _read_properties(self) -> RocksDBProperties | None:
        at = self.metaindex.get(ROCKSDB_PROPERTIES)
        if at is None:
            return None
        try:
            named = self._named(at, "properties block", _FIRST_COLUMNAR_PROPERTIES)
            return RocksDBProperties.of(named)
        except CorruptionError as error:
            self._note(at, "properties", error)
            return None

    def _read_own(self) -> Properties | None:
        at = self.metaindex.get(OWN_PROPERTIES)
        if at is None:
            return None
        try:
            return Properties.decode(self.blocks.opened(at, "properties block"))
        except CorruptionError as error:
            self._note(at, "properties", error)
            return None

    def _named(self, handle: Handle, what: str, columnar_since: int) -> Mapping[bytes, bytes]:
        """The entries of a block of names."""
        contents = self.blocks.opened(handle, what)
        if self._is_columnar(columnar_since):
            return read_names(contents)
        return read_block(plain_form(contents))

    def _note(self, handle: Handle, what: str, error: CorruptionError) -> None:
        """Keep a problem, with file and place."""
        problem = str(error)
        if not problem.startswith(self.source.path):
            problem = str(self.source.damaged(handle.offset, f"the {what}: {problem}"))
        self.problems.append(problem)


def _facts_of(properties: RocksDBProperties) -> dict[str, Any]:
    return {
        "entries": properties.num_entries,
        "deletions": properties.num_deletions,
        "data blocks": properties.num_data_blocks,
        "comparator": properties.comparator,
        "compression": properties.compression,
        "filter policy": properties.filter_policy,
        "filter entries": properties.num_filter_entries or None,
        "whole keys": properties.whole_keys,
        "prefix extractor": properties.prefix_extractor,
        "created": _moment(properties.created),
        "written": _moment(properties.written),
    }


def _facts_of_own(own: Properties) -> dict[str, Any]:
    return {
        "level": own.level,
        "entries": own.num_entries,
        "filter policy": own.filter_policy,
        "filter parameters": own.params or None,
        "filter state": own.filter_state,
        "filter entries": own.num_filter_keys,
        "prefixes": own.prefixes or None,
        "placement": own.placed or None,
        "written by": own.reason,
    }


def _moment(seconds: int | None) -> str | None:
    """A time as people read it; None for 0, with which RocksDB says that it knows none."""
    if not seconds:
        return None
    if seconds >= _YEAR_10000:
        return f"{seconds} seconds after 1970"
    return datetime.fromtimestamp(seconds, UTC).isoformat()
