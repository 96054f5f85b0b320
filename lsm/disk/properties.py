"""The properties of a table, in a block that LevelDB ignores.

A block of the usual form, not compressed, under ``lsm.properties`` in the metaindex. Nothing in it
is needed to read the table.
"""

from __future__ import annotations

import json
from typing import Any

import attrs

from lsm.disk.coding import Fields, varint
from lsm.disk.plain_block import read_block, write_block
from lsm.errors import CorruptionError

METAINDEX_KEY = b"lsm.properties"

_DEEPEST = 32
_OPTIONAL = ("reason", "placement", "filter_partition_blocks", "filter_prefixes")
_NUMBERS = ("level", "num_entries", "num_filter_keys", "filter_partition_blocks")


@attrs.frozen(kw_only=True)
class Properties:
    """A table's level when it was written, its entries, and what became of its filter."""

    level: int
    num_entries: int
    num_filter_keys: int
    filter_policy: str
    filter_params: str
    """Canonical JSON."""
    filter_state: str
    """``built``, ``none``, ``declined`` or ``failed``."""
    reason: str = ""
    """``bulk`` if only a manifest tells whether its entries count: no log has ever had them."""
    placement: str = ""
    """Canonical JSON: by which budget the filter was chosen, at which price of a bit, for whom."""
    filter_partition_blocks: int = 0
    """How many data blocks each filter is of, where there is one for each so many."""
    filter_prefixes: str = ""
    """Canonical JSON: which prefixes filters have, as a configuration says it; empty for none."""

    @property
    def params(self) -> dict[str, Any]:
        """The parameters of the filter policy; empty where they are no flat JSON object."""
        return _object_in(self.filter_params)

    @property
    def placed(self) -> dict[str, Any]:
        """What the placement says; empty where no budget has placed the filter."""
        return _object_in(self.placement) if self.placement else {}

    @property
    def prefixes(self) -> dict[str, Any]:
        """Which prefixes filters have, as a configuration says it; empty where they have none."""
        return _object_in(self.filter_prefixes) if self.filter_prefixes else {}

    def encode(self) -> bytes:
        """The contents of the properties block."""
        return write_block(
            sorted(
                (_key(name), varint(value) if isinstance(value, int) else value.encode())
                for name, value in attrs.asdict(self).items()
                if value or name not in _OPTIONAL
            )
        )

    @classmethod
    def decode(cls, data: bytes) -> Properties:
        """The properties in a block; CorruptionError for any other bytes."""
        found = read_block(data)
        values: dict[str, Any] = {}
        for field in attrs.fields(cls):
            raw = found.get(_key(field.name))
            if raw is None and field.default is not attrs.NOTHING:
                continue
            if raw is None:
                raise CorruptionError(f"a table's properties lack {_key(field.name).decode()}")
            values[field.name] = _value(field.name, raw)
        return cls(**values)


def _object_in(text: str) -> dict[str, Any]:
    """The JSON object that a text is; empty for any other text, and for what is nested deep."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) and _is_flat(found) else {}


def _is_flat(params: dict[str, Any]) -> bool:
    """Whether the parameters are nested no deeper than whoever compares or shows them can go."""
    level: list[Any] = [params]
    for _ in range(_DEEPEST):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return True
    return False


def _key(name: str) -> bytes:
    return b"lsm." + name.replace("_", ".").encode()


def _value(name: str, raw: bytes) -> int | str:
    if name in _NUMBERS:
        fields = Fields(raw, f"property {_key(name).decode()}")
        number = fields.varint64("number")
        fields.end()
        return number
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise CorruptionError(f"property {_key(name).decode()} is not UTF-8") from error
