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
    xor,
)
from filters.family import Family

FAMILIES: dict[str, Family] = {}


def add(family: Family) -> None:
    """Make a family known; ValueError where its name or number is taken."""
    if family.name in FAMILIES:
        raise ValueError(f"there is a family {family.name!r} already")
    if family.number is not None:
        header.claim(family.number, family.name)
    FAMILIES[family.name] = family


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
