"""The arguments of an iterator that say which entries it gives, for type checkers."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from typing_extensions import Buffer


class RangeOptions(TypedDict, total=False):
    """All of them but those that say what of an entry is given."""

    reverse: bool | None
    start: Buffer | None
    stop: Buffer | None
    include_start: bool | None
    include_stop: bool | None
    prefix: Buffer | None
    verify_checksums: bool | None
    fill_cache: bool | None
