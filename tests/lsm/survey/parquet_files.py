"""Parquet files of footers and filters alone, written from the format and apart from the code."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import attrs
from xxhash import xxh64_intdigest

I32, I64, BINARY, LIST, STRUCT = 5, 6, 8, 9, 12
Value = tuple[int, Any]
Struct = dict[int, Value]

SALTS = bytes.fromhex("47b6137b 44974d91 8824ad5b a2b7289d 705495c7 2df1424b 9efc4947 5c6bfb31")


def varint(number: int) -> bytes:
    encoded = b""
    while number > 127:
        encoded += bytes((number % 128 + 128,))
        number //= 128
    return encoded + bytes((number,))


def value(kind: int, what: Any) -> bytes:
    """A value of Thrift's compact protocol."""
    if kind in (I32, I64):
        return varint(2 * what if what >= 0 else -2 * what - 1)
    if kind == BINARY:
        return varint(len(what)) + what
    if kind == LIST:
        element, items = what
        if len(items) < 15:
            head = bytes((len(items) * 16 + element,))
        else:
            head = bytes((0xF0 + element,)) + varint(len(items))
        return head + b"".join(value(element, each) for each in items)
    assert kind == STRUCT
    encoded, last = b"", 0
    for number, (type_, content) in what.items():
        step = number - last
        encoded += bytes(((step if 0 < step < 16 else 0) * 16 + type_,))
        encoded += b"" if 0 < step < 16 else varint(2 * number)
        encoded += value(type_, content)
        last = number
    return encoded + b"\0"


def bloom_header(num_bytes: int, **unions: int) -> bytes:
    """A filter's header; ``algorithm=2`` and the like choose another member of a union."""
    fields: Struct = {1: (I32, num_bytes)}
    for number, name in ((2, "algorithm"), (3, "hash"), (4, "compression")):
        fields[number] = STRUCT, {unions.get(name, 1): (STRUCT, {})}
    return value(STRUCT, fields)


def answer(blocks: bytes, key: bytes) -> bool:
    """Whether all bits are set that the key would set."""
    wanted = inserted(len(blocks), [key])
    return all(have & want == want for have, want in zip(blocks, wanted, strict=True))


def inserted(num_bytes: int, keys: Iterable[bytes]) -> bytes:
    """The blocks of a filter of these keys."""
    blocks = bytearray(num_bytes)
    for key in keys:
        hashed = xxh64_intdigest(key)
        block = (hashed // 2**32) * (num_bytes // 32) // 2**32
        for word in range(8):
            salt = int.from_bytes(SALTS[4 * word : 4 * word + 4], "big")
            bit = (hashed % 2**32) * salt % 2**32 // 2**27
            blocks[32 * block + 4 * word + bit // 8] |= 2 ** (bit % 8)
    return bytes(blocks)


@attrs.define
class Column:
    """A column of a row group: its filter's bytes, and what the footer says of it."""

    name: bytes
    filter: bytes = b""
    type: int = 6
    num_values: int = 10
    with_length: bool = True
    metadata: Struct = attrs.field(factory=dict)
    chunk: Struct = attrs.field(factory=dict)


def file_of(row_groups: list[list[Column]], end: bytes = b"PAR1") -> bytes:
    """A file of filters and a footer, without any pages."""
    data, groups = b"PAR1", []
    for row_group in row_groups:
        chunks = []
        for column in row_group:
            said: Struct = {
                1: (I32, column.type),
                2: (LIST, (I32, [0, 3])),
                3: (LIST, (BINARY, column.name.split(b"."))),
                4: (I32, 1),
                5: (I64, column.num_values),
                12: (STRUCT, {3: (I64, 0), 5: (BINARY, b"z" * 200)}),
            }
            if column.filter:
                said[14] = I64, len(data)
                if column.with_length:
                    said[15] = I32, len(column.filter)
            chunks.append(
                {2: (I64, 4), 3: (STRUCT, dict(sorted((said | column.metadata).items())))}
                | column.chunk
            )
            chunks[-1] = dict(sorted(chunks[-1].items()))
            data += column.filter
        groups.append({1: (LIST, (STRUCT, chunks)), 2: (I64, 100), 3: (I64, 10)})
    footer = value(
        STRUCT,
        {
            1: (I32, 2),
            2: (LIST, (STRUCT, [{4: (BINARY, b"schema"), 5: (I32, 1)}])),
            3: (I64, 10 * len(row_groups)),
            4: (LIST, (STRUCT, groups)),
            6: (BINARY, b"a test"),
        },
    )
    return data + footer + len(footer).to_bytes(4, "little") + end
