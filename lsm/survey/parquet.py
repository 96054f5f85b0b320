"""Parquet files: which column chunks have a Bloom filter, and what each of them is.

The footer says so, in Thrift's compact protocol; the fields that are read are those of
https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift. Nothing in a
Parquet file is under a checksum but the pages of its columns, and those only where a writer chose.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs

from lsm.errors import CorruptionError
from lsm.survey import column_values
from lsm.survey.filter_look import Filters
from lsm.survey.found import FileFound, FilterFound, Guard
from lsm.survey.source import Source
from lsm.survey.split_block import (
    BLOCK_BYTES,
    MOST_HEADER_BYTES,
    Header,
    SplitBlockFilter,
)
from lsm.survey.thrift import BINARY, I32, I64, STRUCT, CompactFields, Field

MAGIC = b"PAR1"
ENCRYPTED_MAGIC = b"PARE"
TYPES = (
    "BOOLEAN",
    "INT32",
    "INT64",
    "INT96",
    "FLOAT",
    "DOUBLE",
    "BYTE_ARRAY",
    "FIXED_LEN_BYTE_ARRAY",
)

_LENGTH_BYTES = 4
_TAIL_BYTES = _LENGTH_BYTES + len(MAGIC)
_LARGEST_FOOTER = 1 << 28
_DEEPEST_PATH = 64


@attrs.define
class Chunk:
    """What the footer says of a column in a row group."""

    row_group: int
    column: int
    path: str = ""
    type: int = -1
    num_values: int = 0
    filter_offset: int | None = None
    filter_length: int | None = None
    file: str = ""
    """Where its data is, and its filter, if not in this file."""
    is_encrypted: bool = False

    @property
    def name(self) -> str:
        """Where its filter is, in words."""
        return f"column {self.path} of row group {self.row_group}"


@attrs.define
class Footer:
    """What a file says of itself, and the chunks that have a filter."""

    created_by: str = ""
    num_rows: int = 0
    row_groups: int = 0
    column_chunks: int = 0
    elsewhere: int = 0
    chunks: list[Chunk] = attrs.field(factory=list)


def is_one(source: Source) -> bool:
    """Whether a file begins as Parquet's do, whole or not."""
    return source.size >= len(MAGIC) and source.read(0, len(MAGIC), "magic") in (
        MAGIC,
        ENCRYPTED_MAGIC,
    )


def found(source: Source) -> FileFound:
    """The filters of a file, each looked at when it is asked for.

    What of the footer cannot be read is among the problems.
    """
    footer, problems, start = Footer(), [], source.size
    try:
        start, data = _footer_bytes(source)
        _read_footer(CompactFields(data, _name(source, start)), footer)
    except CorruptionError as error:
        problems.append(str(error))

    def filter(number: int) -> FilterFound:
        with Source(source.path) as again:
            return _filter(again, footer.chunks[number], start)

    facts: dict[str, Any] = {
        "created by": footer.created_by,
        "rows": footer.num_rows,
        "row groups": footer.row_groups,
        "column chunks": footer.column_chunks,
        "with a filter": len(footer.chunks),
        "values in these": sum(chunk.num_values for chunk in footer.chunks),
    }
    if footer.elsewhere:
        facts["with a filter in other files"] = footer.elsewhere
    return FileFound(
        path=source.path,
        size=source.size,
        store="Parquet",
        kind="column chunks",
        facts=facts,
        filters=Filters([(len(footer.chunks), filter)]),
        problems=tuple(problems),
    )


def _name(source: Source, start: int) -> str:
    return f"{source.path}: the footer, whose byte 0 is byte {start} of the file"


def _footer_bytes(source: Source) -> tuple[int, bytes]:
    """Where the footer begins, and its bytes."""
    path, size = source.path, source.size
    if size < len(MAGIC) + _TAIL_BYTES:
        raise CorruptionError(
            f"{path}: cut short at byte {size}: a Parquet file takes {len(MAGIC) + _TAIL_BYTES} "
            "bytes or more"
        )
    tail = source.end(_TAIL_BYTES)
    magic, length = tail[_LENGTH_BYTES:], int.from_bytes(tail[:_LENGTH_BYTES], "little")
    if magic == ENCRYPTED_MAGIC:
        raise CorruptionError(
            f"{path}: bytes {size - 4} to {size} say that its footer is encrypted: which filters "
            "it has takes its key to know"
        )
    if magic != MAGIC:
        raise CorruptionError(
            f"{path}: bytes {size - 4} to {size} are {magic!r} where a Parquet file ends with "
            f"{MAGIC!r}: it is cut short, or still being written"
        )
    most = min(size - _TAIL_BYTES - len(MAGIC), _LARGEST_FOOTER)
    if length > most:
        raise CorruptionError(
            f"{path}: bytes {size - _TAIL_BYTES} to {size - 4} say that the footer takes {length} "
            f"bytes: allowed are up to {most}"
        )
    start = size - _TAIL_BYTES - length
    return start, source.read(start, length, "footer")


def _read_footer(fields: CompactFields, footer: Footer) -> None:
    """Take what a FileMetaData says into ``footer``, as far as it can be read."""
    for field in fields.fields():
        if field.number == 3:
            footer.num_rows = fields.integer(field, I64, "number of rows")
        elif field.number == 4:
            for _ in fields.elements(field, STRUCT, "row groups"):
                _read_row_group(fields, footer)
                footer.row_groups += 1
        elif field.number == 6:
            footer.created_by = _text(fields, field, "name of the writer")
        else:
            fields.skip(field)


def _read_row_group(fields: CompactFields, footer: Footer) -> None:
    for field in fields.fields():
        if field.number == 1:
            for column in fields.elements(field, STRUCT, "column chunks"):
                chunk = Chunk(footer.row_groups, column)
                _read_chunk(fields, chunk)
                footer.column_chunks += 1
                if chunk.filter_offset is not None:
                    footer.elsewhere += bool(chunk.file)
                    if not chunk.file:
                        footer.chunks.append(chunk)
        else:
            fields.skip(field)


def _read_chunk(fields: CompactFields, chunk: Chunk) -> None:
    for field in fields.fields():
        if field.number == 1:
            chunk.file = _text(fields, field, "name of a file")
        elif field.number == 3:
            fields.expect(field, STRUCT, "metadata of a column chunk")
            _read_metadata(fields, chunk)
        elif field.number == 8:
            chunk.is_encrypted = True
            fields.skip(field)
        else:
            fields.skip(field)


def _read_metadata(fields: CompactFields, chunk: Chunk) -> None:
    for field in fields.fields():
        if field.number == 1:
            chunk.type = fields.integer(field, I32, "type of a column")
        elif field.number == 3:
            chunk.path = ".".join(_path(fields, field))
        elif field.number == 5:
            chunk.num_values = fields.integer(field, I64, "number of values")
        elif field.number == 14:
            chunk.filter_offset = fields.integer(field, I64, "offset of a Bloom filter")
        elif field.number == 15:
            chunk.filter_length = fields.integer(field, I32, "length of a Bloom filter")
        else:
            fields.skip(field)


def _path(fields: CompactFields, field: Field) -> Iterator[str]:
    for depth in fields.elements(field, BINARY, "parts of a column's path"):
        if depth == _DEEPEST_PATH:
            raise fields.refusal(
                f"the path of a column has more than {_DEEPEST_PATH} parts, at byte {fields.at}"
            )
        yield _decoded(fields.slice("part of a column's path"))


def _text(fields: CompactFields, field: Field, what: str) -> str:
    fields.expect(field, BINARY, what)
    return _decoded(fields.slice(what))


def _decoded(text: bytes) -> str:
    return text.decode("utf-8", "backslashreplace")


def _filter(source: Source, chunk: Chunk, footer: int) -> FilterFound:
    """The filter of a column chunk, which ends before the footer."""
    offset = chunk.filter_offset or 0
    try:
        if chunk.is_encrypted:
            raise CorruptionError("it is encrypted")
        header = _header(source, chunk, offset, footer)
        size = header.header_bytes + header.num_bytes
        read = SplitBlockFilter.from_bytes(source.read(offset, size, "filter"))
    except CorruptionError as error:
        problem = f"{source.path}: {chunk.name}: at byte {max(offset, 0)}: {error}"
        return _unread(chunk, offset, problem)
    return FilterFound(
        where=chunk.name,
        offset=offset,
        size=size,
        family=None,
        form=f"split-block Bloom filter of Parquet, {read.num_blocks} blocks of {BLOCK_BYTES} "
        "bytes",
        guard=Guard(),
        parameters=_parameters(chunk) | {"blocks": read.num_blocks},
        fill=read.fill,
        expected_fpr=read.expected_fpr,
        reader=read,
        keys=column_values.of(source.path, chunk.row_group, chunk.column, TYPES[chunk.type]),
    )


def _header(source: Source, chunk: Chunk, offset: int, footer: int) -> Header:
    """The header of a filter, which says what is known here, and no more than is there."""
    if not 0 <= chunk.type < len(TYPES):
        raise CorruptionError(f"its column is of type {chunk.type}, which there is not")
    if not len(MAGIC) <= offset < footer:
        raise CorruptionError(f"its offset is {offset}, allowed are {len(MAGIC)} to {footer - 1}")
    begin = source.read(offset, min(MOST_HEADER_BYTES, footer - offset), "header")
    header = Header.decode(begin, "its header")
    if header.unknown:
        raise CorruptionError(f"its form is unknown here: {header.unknown}")
    size = header.header_bytes + header.num_bytes
    if size > footer - offset:
        raise CorruptionError(
            f"its header says that it ends at byte {offset + size}, and the footer begins at byte "
            f"{footer}"
        )
    if chunk.filter_length not in (None, size):
        raise CorruptionError(
            f"the footer says that it takes {chunk.filter_length} bytes, its header {size}"
        )
    return header


def _unread(chunk: Chunk, offset: int, problem: str) -> FilterFound:
    return FilterFound(
        where=chunk.name,
        offset=max(offset, 0),
        size=max(chunk.filter_length or 0, 0),
        family=None,
        form="Bloom filter of Parquet, encrypted" if chunk.is_encrypted else "unknown",
        guard=Guard(),
        parameters=_parameters(chunk),
        problem=problem,
    )


def _parameters(chunk: Chunk) -> dict[str, Any]:
    known = 0 <= chunk.type < len(TYPES)
    return {
        "column": chunk.path,
        "type": TYPES[chunk.type] if known else f"{chunk.type}, which is unknown",
    }
