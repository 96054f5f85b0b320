"""All families there are: whatever lists families reads them here, in this order."""

from __future__ import annotations

from filters import (
    binary_fuse,
    blocked,
    bumped_ribbon,
    cassandra,
    classic,
    counting,
    cuckoo,
    grafite,
    header,
    leveldb,
    ribbon,
    rocksdb,
    scalable,
    surf,
    xor,
)
from filters.family import Family

FAMILIES: dict[str, Family] = {}
"""Those that are built of digests and asked with them, as a lookup over many filters is."""

KEY_FAMILIES: dict[str, Family] = {}
"""Those that have to see keys themselves, and are neither built of digests nor asked with them."""


def add(family: Family, known: dict[str, Family] | None = None) -> None:
    """Make a family known; ValueError where its name or number is taken."""
    if family.name in FAMILIES or family.name in KEY_FAMILIES:
        raise ValueError(f"there is a family {family.name!r} already")
    if family.number is not None:
        header.claim(family.number, family.name)
    (FAMILIES if known is None else known)[family.name] = family


def every() -> dict[str, Family]:
    """Both kinds."""
    return {**FAMILIES, **KEY_FAMILIES}


for _page in (
    blocked,
    classic,
    binary_fuse,
    bumped_ribbon,
    xor,
    cuckoo,
    counting,
    scalable,
    leveldb,
    rocksdb,
    ribbon,
    cassandra,
    grafite,
):
    add(_page.RECORD)

add(surf.RECORD, KEY_FAMILIES)
