"""Looking at one filter of a table: its bytes, their checksum, and what they open to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, overload

import attrs

from filters.errors import FilterError
from lsm.errors import CorruptionError
from lsm.survey.found import FilterFound, Guard
from policies import claims

if TYPE_CHECKING:
    from lsm.disk.footer import Handle
    from lsm.survey.table import Table

Keys: TypeAlias = Callable[[], Iterator[bytes]]


@attrs.frozen(kw_only=True)
class Opened:
    """What a filter's bytes are: the fields of a FilterFound that follow from them."""

    family: str | None
    form: str
    parameters: dict[str, Any] = attrs.field(factory=dict)
    num_keys: int | None = None
    problem: str = ""
    reader: Any = None
    keys: Keys | None = None


class Filters(Sequence[FilterFound]):
    """Filters of a file: parts of so many each, looked at when they are asked for, and not kept."""

    def __init__(self, parts: Sequence[tuple[int, Callable[[int], FilterFound]]]):
        self._parts = parts

    def __repr__(self) -> str:
        return f"<{len(self)} filters>"

    def __len__(self) -> int:
        return sum(count for count, _ in self._parts)

    @overload
    def __getitem__(self, index: int) -> FilterFound: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[FilterFound]: ...
    def __getitem__(self, index: int | slice) -> FilterFound | Sequence[FilterFound]:
        if isinstance(index, slice):
            return tuple(self[number] for number in range(*index.indices(len(self))))
        number = index + len(self) if index < 0 else index
        for count, look in self._parts:
            if 0 <= number < count:
                return look(number)
            number -= count
        raise IndexError(f"there are {len(self)} filters, and none of number {index}")


def look(
    table: Table, handle: Handle, where: str, open: Callable[[bytes, Guard], Opened]
) -> FilterFound:
    """The filter in a block; one that cannot be read, or that is none, has a problem."""
    guard = Guard()
    try:
        stored = table.blocks.stored(handle, where)
        guard = stored.guard
        if guard.checked == "wrong":
            raise table.blocks.mismatch(handle, where)
        opened = open(table.blocks.contents(handle, where, stored), guard)
    except (CorruptionError, FilterError) as error:
        opened = Opened(family=None, form="unreadable", problem=placed(table, handle, where, error))
    return found(opened, where, handle.offset, handle.size, guard)


def found(opened: Opened, where: str, offset: int, size: int, guard: Guard) -> FilterFound:
    """What was found there, with what its reader says of itself."""
    reader = opened.reader
    fill: float | None = claims.claimed(reader, "fill", lambda: getattr(reader, "fill", None))
    return FilterFound(
        where=where,
        offset=offset,
        size=size,
        guard=guard,
        family=opened.family,
        form=opened.form,
        parameters=opened.parameters,
        num_keys=opened.num_keys,
        fill=fill,
        expected_fpr=None if reader is None else partial(claims.expected_fpr, reader),
        problem=opened.problem,
        reader=reader,
        keys=opened.keys,
    )


def placed(table: Table, handle: Handle, where: str, error: Exception) -> str:
    """What an error says, with file and place."""
    if str(error).startswith(table.source.path):
        return str(error)
    return str(table.source.damaged(handle.offset, f"the {where}: {error}"))
