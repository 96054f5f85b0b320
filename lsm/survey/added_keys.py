"""Which keys of a table its filters were built of: whole ones, prefixes of them, or both."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import gt, lt
from typing import TYPE_CHECKING, TypeAlias

import attrs

from lsm.survey.rocksdb_properties import BYTEWISE, REVERSED

if TYPE_CHECKING:
    from lsm.survey.data_blocks import IsAfter
    from lsm.survey.table import Table

Prefix: TypeAlias = Callable[[bytes], bytes | None]

_TIMESTAMPED = ".u64ts"


@attrs.frozen
class AddedKeys:
    """What of each user key is in a filter: itself with ``whole_keys``, and its prefix if any.

    What cannot be known makes it ``unknown``, and then there are no keys. ``note`` says in words
    what is not just all whole keys.
    """

    note: str = ""
    whole_keys: bool = True
    prefix: Prefix | None = None
    unknown: bool = False

    def of(self, keys: Iterator[bytes]) -> Iterator[bytes]:
        """What was added of these user keys."""
        last = None
        for key in keys:
            prefix = None if self.prefix is None else self.prefix(key)
            if prefix is not None and prefix != last:
                yield prefix
                last = prefix
            if self.whole_keys:
                yield key


def added_to(table: Table) -> AddedKeys:
    """What the filters of a table have of its keys, as it says itself."""
    properties = table.properties
    if properties is None:
        return AddedKeys("keys unknown", unknown=True) if table.is_rocksdbs else AddedKeys()
    if table.is_columnar and not properties.is_of_pebbles_schema:
        return AddedKeys(f"of keys in columns of the schema {properties.schema!r}", unknown=True)
    comparator, extractor = properties.comparator, properties.prefix_extractor
    if table.store == "Pebble" and comparator not in BYTEWISE:
        return AddedKeys(f"of what {comparator} takes of keys", unknown=True)
    if comparator.endswith(_TIMESTAMPED):
        return AddedKeys("of keys without their timestamps", unknown=True)
    if not properties.prefixes:
        if properties.whole_keys:
            return AddedKeys()
        return AddedKeys("of neither whole keys nor prefixes", unknown=True)
    known = properties.extractor
    if properties.whole_keys:
        if known is None:
            return AddedKeys(f"of whole keys, and of prefixes unknown here ({extractor})")
        return AddedKeys(f"of whole keys and prefixes ({extractor})", prefix=known.of)
    note = f"of prefixes alone ({extractor})"
    if known is None:
        return AddedKeys(note, whole_keys=False, unknown=True)
    return AddedKeys(note, whole_keys=False, prefix=known.of)


def order_of(table: Table) -> IsAfter | None:
    """How a table's keys are ordered; None where only its comparator knows."""
    comparator = table.properties.comparator if table.properties is not None else BYTEWISE[0]
    if comparator in BYTEWISE:
        return gt
    return lt if comparator in REVERSED else None
