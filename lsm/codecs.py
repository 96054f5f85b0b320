"""What keys and values of a mapping are to the program, and their bytes: by name, or of your own.

A codec has ``encode(value)``, which makes bytes of a value, and ``decode(data)``, which makes an
equal value of them again. None here runs code that it finds in the data, as pickle would.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import import_module
from typing import Any, Protocol, TypeVar

import attrs

from lsm.arguments import key_bytes

_T = TypeVar("_T")


class Codec(Protocol[_T]):
    """Both ways between values and bytes."""

    def encode(self, value: _T, /) -> bytes:
        """The bytes of a value; a TypeError or ValueError for what has none."""

    def decode(self, data: bytes, /) -> _T:
        """The value that has these bytes; a ValueError for what no value has."""


class Raw:
    """Bytes as they are, of any bytes-like object."""

    def encode(self, value: Any, /) -> bytes:
        """A copy as bytes, if it is not bytes already."""
        return key_bytes("it", value)

    def decode(self, data: bytes, /) -> bytes:
        """The bytes."""
        return data


class Text:
    """Text in UTF-8, which has the order of its code points."""

    def encode(self, value: Any, /) -> bytes:
        """The text's bytes; a ValueError for half a surrogate pair."""
        if not isinstance(value, str):
            raise TypeError(f"it is str, not {type(value).__name__}")
        return value.encode()

    def decode(self, data: bytes, /) -> str:
        """The text."""
        return data.decode()


class Json:
    """JSON in UTF-8, canonical: keys are sorted and nothing is spaced.

    What comes back is what JSON has: lists for tuples, and text for the keys of dictionaries. NaN
    and infinities, which it has not, are refused.
    """

    def encode(self, value: Any, /) -> bytes:
        """The text of the value."""
        text = json.dumps(
            value, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":")
        )
        return text.encode()

    def decode(self, data: bytes, /) -> Any:
        """The value of the text."""
        return json.loads(data)


class MessagePack:
    """MessagePack, by the package ``msgpack``; no type of anybody's own."""

    def __init__(self) -> None:
        try:
            self._msgpack = import_module("msgpack")
        except ImportError as error:
            raise ImportError(
                f"the codec 'msgpack' needs msgpack, which cannot be imported here ({error}): "
                "install lsm-filters with its extra [msgpack], as by: "
                "pip install 'lsm-filters[msgpack]'",
                name=error.name,
            ) from error

    def encode(self, value: Any, /) -> bytes:
        """The value, packed."""
        packed: bytes = self._msgpack.packb(value, use_bin_type=True)
        return packed

    def decode(self, data: bytes, /) -> Any:
        """The value, unpacked."""
        return self._msgpack.unpackb(data, raw=False, strict_map_key=False)


@attrs.frozen
class Codecs:
    """The codec of the keys, that of the values, and what they are called in errors."""

    name: str
    keys: Codec[Any]
    values: Codec[Any]


_NAMED: dict[str, tuple[Callable[[], Codec[Any]], Callable[[], Codec[Any]]]] = {
    "raw": (Raw, Raw),
    "str": (Text, Text),
    "json": (Text, Json),
    "msgpack": (Text, MessagePack),
}


def codecs_of(codec: object) -> Codecs:
    """The codecs that ``codec=`` means: a name, or a pair for keys and values."""
    if isinstance(codec, str):
        if codec not in _NAMED:
            names = ", ".join(map(repr, _NAMED))
            raise ValueError(f"there is no codec {codec!r}: choose {names}, or give a pair")
        keys, values = _NAMED[codec]
        return Codecs(repr(codec), keys(), values())
    if isinstance(codec, tuple) and len(codec) == 2 and all(map(_is_codec, codec)):
        return Codecs(" and ".join(type(each).__name__ for each in codec), *codec)
    raise TypeError(
        "codec is a name, as 'json', or a pair of objects with encode() and decode(), for keys "
        f"and for values, not {codec!r:.60}"
    )


def _is_codec(each: object) -> bool:
    return all(callable(getattr(each, name, None)) for name in ("encode", "decode"))
