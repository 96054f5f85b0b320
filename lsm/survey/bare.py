"""Blocks and filters of our own in files by themselves: both say what they are, under a checksum.

A block names the policy that its filter belongs to, and what that was asked for. A filter by itself
has the frame around its payload, which says its family.
"""

from __future__ import annotations

from typing import Any

from xxhash import xxh3_64_intdigest

from filters import header, kernels, sizing
from filters.errors import FilterError
from filters.families import every
from lsm.survey.found import Checked, FileFound, FilterFound, Guard
from lsm.survey.source import Source
from policies import block

_CHECKSUM_BYTES = 8
_FAMILY_AT = len(header.MAGIC)


def is_one(source: Source) -> bool:
    """Whether a file begins as a block, or a filter, of ours."""
    if source.size < len(block.MAGIC):
        return False
    return source.read(0, len(block.MAGIC), "magic") in (block.MAGIC, header.MAGIC)


def found(source: Source) -> FileFound:
    """The filter of a file; what is wrong with it is its problem."""
    data = source.read(0, source.size, "filter")
    guard = Guard(kind="XXH3-64", checked=_checked(data))
    is_block = data.startswith(block.MAGIC)
    filter = (_of_block if is_block else _of_frame)(source, data, guard)
    return FileFound(
        path=source.path,
        size=source.size,
        store="lsm",
        kind="block" if is_block else "filter",
        facts={"checksum": f"{guard.kind}, {guard.checked}"},
        filters=(filter,),
    )


def _checked(data: bytes) -> Checked:
    """What the last eight bytes are to all before, as both forms have them."""
    stored = int.from_bytes(data[-_CHECKSUM_BYTES:], "little")
    return "right" if xxh3_64_intdigest(data[:-_CHECKSUM_BYTES]) == stored else "wrong"


def _of_block(source: Source, data: bytes, guard: Guard) -> FilterFound:
    try:
        said = block.describe_block(data)
    except FilterError as error:
        return _unread(source, guard, "block of a filter, unknown which", error)
    form = f"block of policy {said.policy!r}"
    family = said.policy if said.policy in every() else None
    known = {"policy": said.policy, **said.params}
    try:
        reader: Any = block.open_block(data)
    except FilterError as error:
        return _unread(source, guard, form, error, family, known, said.num_keys)
    return FilterFound(
        where="whole file",
        offset=0,
        size=source.size,
        family=family,
        form=form,
        guard=guard,
        parameters=known,
        num_keys=said.num_keys,
        fill=getattr(reader, "fill", None),
        expected_fpr=getattr(reader, "expected_fpr", None),
        reader=reader,
    )


def _of_frame(source: Source, data: bytes, guard: Guard) -> FilterFound:
    names = {number: name for name, number in header.FAMILY_IDS.items()}
    family = names.get(data[_FAMILY_AT]) if len(data) > _FAMILY_AT else None
    if family is None:
        error = FilterError("byte 4 says no family that is known here: upgrade lsm-filters")
        return _unread(source, guard, "filter of an unknown family", error)
    try:
        reader = kernels.filter_class(family).from_bytes(data)
    except FilterError as error:
        return _unread(source, guard, f"{family} filter", error, family)
    return FilterFound(
        where="whole file",
        offset=0,
        size=source.size,
        family=family,
        form=f"{family} filter",
        guard=guard,
        parameters={"estimated keys": round(sizing.estimate_num_keys(reader))},
        num_keys=reader.num_keys,
        fill=reader.fill,
        expected_fpr=reader.expected_fpr,
        reader=reader,
    )


def _unread(
    source: Source,
    guard: Guard,
    form: str,
    error: Exception,
    family: str | None = None,
    parameters: dict[str, Any] | None = None,
    num_keys: int | None = None,
) -> FilterFound:
    return FilterFound(
        where="whole file",
        offset=0,
        size=source.size,
        family=family,
        form=form,
        guard=guard,
        parameters=parameters or {},
        num_keys=num_keys,
        problem=f"{source.path}: at byte 0: {error}",
    )
