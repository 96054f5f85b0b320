"""A database as a mapping, with keys and values as the program has them."""

from __future__ import annotations

from collections.abc import (
    ItemsView,
    Iterable,
    Iterator,
    KeysView,
    Mapping,
    MutableMapping,
    ValuesView,
)
from typing import Any, Literal, NoReturn, TypeAlias, TypeVar, overload

from lsm.codecs import Codec, Codecs, codecs_of
from lsm.db import DB
from lsm.errors import CodecError
from lsm.prefixed_db import PrefixedDB
from lsm.refusals import no_pickle
from lsm.snapshot import Snapshot

_K = TypeVar("_K")
_V = TypeVar("_V")
_Database: TypeAlias = DB | PrefixedDB

# What update() and clear() write at once: so many operations, or so many bytes.
_BATCH_OPERATIONS = 1000
_BATCH_BYTES = 1 << 20


class ReadOnlyMapping(Mapping[_K, _V]):
    """The entries of a snapshot, or of whatever else is read, in the order of their keys' bytes.

    It reads when it is asked and keeps nothing. ``keys()``, ``values()`` and ``items()`` are as of
    when each is iterated over. ``len()`` reads all keys, and ``list()`` of a mapping or a view asks
    for it first, as Python does; a ``for`` loop does not.
    """

    def __init__(self, db: DB | PrefixedDB | Snapshot, codecs: Codecs):
        self._source = db
        self._codecs = codecs

    def __getitem__(self, key: _K) -> _V:
        data = self._source.get(self._key_bytes(key))
        if data is None:
            raise KeyError(key)
        return self._value(key, data)

    def __contains__(self, key: object) -> bool:
        return self._key_bytes(key) in self._source

    def __iter__(self) -> Iterator[_K]:
        return self._keys(reverse=False)

    def __reversed__(self) -> Iterator[_K]:
        return self._keys(reverse=True)

    def __len__(self) -> int:
        with self._source.iterator(include_value=False, fill_cache=False) as keys:
            return sum(1 for _ in keys)

    def __bool__(self) -> bool:
        with self._source.iterator(include_value=False) as keys:
            return next(keys, None) is not None

    def items(self) -> ItemsView[_K, _V]:
        """The pairs, read together as they are iterated over."""
        return _Items(self)

    def values(self) -> ValuesView[_V]:
        """The values, in the order of the keys."""
        return _Values(self)

    def keys(self) -> KeysView[_K]:
        """The keys, in the order of their bytes."""
        return _Keys(self)

    def _keys(self, reverse: bool) -> Iterator[_K]:
        with self._source.iterator(include_value=False, reverse=reverse) as keys:
            for key in keys:
                yield self._key(key)

    def _pairs(self, reverse: bool) -> Iterator[tuple[_K, _V]]:
        with self._source.iterator(reverse=reverse) as pairs:
            for key_data, data in pairs:
                key = self._key(key_data)
                yield key, self._value(key, data)

    def _key_bytes(self, key: object) -> bytes:
        return self._encode(self._codecs.keys, key, "the key %.80r", key)

    def _value_bytes(self, key: object, value: object) -> bytes:
        return self._encode(self._codecs.values, value, "the value of the key %.80r", key)

    def _key(self, data: bytes) -> _K:
        key: _K = self._decode(self._codecs.keys, data, "the key of the bytes %.80r", data)
        return key

    def _value(self, key: _K, data: bytes) -> _V:
        value: _V = self._decode(self._codecs.values, data, "the value of the key %.80r", key)
        return value

    def _encode(self, codec: Codec[Any], thing: object, what: str, key: object) -> bytes:
        """The bytes of a key or value; a TypeError or CodecError that names the key."""
        try:
            data: object = codec.encode(thing)
            if not isinstance(data, bytes):
                raise TypeError(f"encode() returns bytes, not {type(data).__name__}")
        except (MemoryError, RecursionError):
            raise
        except Exception as error:
            kind = TypeError if isinstance(error, TypeError) else CodecError
            raise kind(self._said(f"{what % (key,)} cannot be encoded", error)) from error
        return data

    def _decode(self, codec: Codec[Any], data: bytes, what: str, key: object) -> Any:
        """The key or value of some bytes; a CodecError that names the key."""
        try:
            return codec.decode(data)
        except (MemoryError, RecursionError):
            raise
        except Exception as error:
            text = f"{what % (key,)} cannot be decoded, as where another codec has written it"
            raise CodecError(self._said(text, error)) from error

    def _said(self, what: str, error: Exception) -> str:
        return f"codec {self._codecs.name}: {what}: {str(error) or type(error).__name__}"

    def __reduce__(self) -> NoReturn:
        raise no_pickle(self)

    def __repr__(self) -> str:
        return f"<lsm.{type(self).__name__} by {self._codecs.name} of {self._source!r}>"


class DatabaseMapping(ReadOnlyMapping[_K, _V], MutableMapping[_K, _V]):
    """The entries of a database, or of the part with a prefix, to read and to write.

    Each assignment and each deletion is one write, as ``put()`` and ``delete()`` are, and in the
    log when it returns. What reads before it writes, ``del``, ``pop()``, ``popitem()``,
    ``setdefault()``, does so in two steps, between which other threads may write.
    """

    _source: DB | PrefixedDB

    def __setitem__(self, key: _K, value: _V) -> None:
        data = self._key_bytes(key)
        self._source.put(data, self._value_bytes(key, value))

    def __delitem__(self, key: _K) -> None:
        data = self._key_bytes(key)
        if data not in self._source:
            raise KeyError(key)
        self._source.delete(data)

    def popitem(self) -> tuple[_K, _V]:
        """Delete the first entry, in the order of the keys, and return it."""
        for key, value in self.items():
            self._source.delete(self._key_bytes(key))
            return key, value
        raise KeyError("popitem(): the mapping is empty")

    def update(self, other: Any = (), /, **others: Any) -> None:
        """Write all entries of a mapping, of pairs, or of keywords, some at a time.

        They are written in their order, in batches of up to 1000, or 1 MiB: each is there as a
        whole or not at all. An error, as of a codec, leaves what was written in batches before it.
        """
        batches = _Batches(self._source)
        for key, value in _pairs_of(other, others):
            batches.put(self._key_bytes(key), self._value_bytes(key, value))
        batches.end()

    def clear(self) -> None:
        """Delete all entries that are there now, some at a time, as ``update()`` writes."""
        batches = _Batches(self._source)
        with self._source.iterator(include_value=False, fill_cache=False) as keys:
            for key in keys:
                batches.delete(key)
        batches.end()


class _Keys(KeysView[_K]):
    """The keys of a mapping."""

    _mapping: ReadOnlyMapping[_K, Any]

    def __reversed__(self) -> Iterator[_K]:
        return self._mapping._keys(reverse=True)


class _Values(ValuesView[_V]):
    """The values of a mapping, which are read with their keys."""

    _mapping: ReadOnlyMapping[Any, _V]

    def __iter__(self) -> Iterator[_V]:
        return (value for _, value in self._mapping._pairs(reverse=False))

    def __reversed__(self) -> Iterator[_V]:
        return (value for _, value in self._mapping._pairs(reverse=True))

    def __contains__(self, value: object) -> bool:
        return any(each is value or each == value for each in self)


class _Items(ItemsView[_K, _V]):
    """The pairs of a mapping, which are read together."""

    _mapping: ReadOnlyMapping[_K, _V]

    def __iter__(self) -> Iterator[tuple[_K, _V]]:
        return self._mapping._pairs(reverse=False)

    def __reversed__(self) -> Iterator[tuple[_K, _V]]:
        return self._mapping._pairs(reverse=True)


class _Batches:
    """Operations on their way to a database, some at a time."""

    def __init__(self, db: DB | PrefixedDB):
        self._batch = db.write_batch()
        self._count = self._bytes = 0

    def put(self, key: bytes, value: bytes) -> None:
        """Set a key's value, soon."""
        self._batch.put(key, value)
        self._count_one(len(key) + len(value))

    def delete(self, key: bytes) -> None:
        """Delete a key, soon."""
        self._batch.delete(key)
        self._count_one(len(key))

    def end(self) -> None:
        """Write what is left."""
        if self._count:
            self._batch.write()
            self._batch.clear()
            self._count = self._bytes = 0

    def _count_one(self, size: int) -> None:
        self._count += 1
        self._bytes += size
        if self._count >= _BATCH_OPERATIONS or self._bytes >= _BATCH_BYTES:
            self.end()


def _pairs_of(other: Any, others: dict[str, Any]) -> Iterable[tuple[Any, Any]]:
    """What ``dict.update()`` would take from its arguments."""
    if isinstance(other, Mapping):
        yield from other.items()
    elif hasattr(other, "keys"):
        yield from ((key, other[key]) for key in other.keys())  # noqa: SIM118 - no mapping of ABCs
    else:
        yield from other
    yield from others.items()


@overload
def mapping(db: _Database, codec: Literal["raw"] = "raw") -> DatabaseMapping[bytes, bytes]: ...
@overload
def mapping(db: Snapshot, codec: Literal["raw"] = "raw") -> ReadOnlyMapping[bytes, bytes]: ...
@overload
def mapping(db: _Database, codec: Literal["str"]) -> DatabaseMapping[str, str]: ...
@overload
def mapping(db: Snapshot, codec: Literal["str"]) -> ReadOnlyMapping[str, str]: ...
@overload
def mapping(db: _Database, codec: Literal["json", "msgpack"]) -> DatabaseMapping[str, Any]: ...
@overload
def mapping(db: Snapshot, codec: Literal["json", "msgpack"]) -> ReadOnlyMapping[str, Any]: ...
@overload
def mapping(db: _Database, codec: tuple[Codec[_K], Codec[_V]]) -> DatabaseMapping[_K, _V]: ...
@overload
def mapping(db: Snapshot, codec: tuple[Codec[_K], Codec[_V]]) -> ReadOnlyMapping[_K, _V]: ...
def mapping(db: DB | PrefixedDB | Snapshot, codec: object = "raw") -> ReadOnlyMapping[Any, Any]:
    """A database, or the part of it with a prefix, as a MutableMapping; a snapshot as a Mapping.

    ``codec`` says what keys and values are: ``"raw"`` bytes, ``"str"`` text in UTF-8, ``"json"``
    text for keys and whatever JSON has for values, ``"msgpack"`` the same for MessagePack, which
    needs that package; or a pair of objects with ``encode()`` and ``decode()``, for keys and for
    values. The mapping keeps nothing in memory, and does not close the database.
    """
    codecs = codecs_of(codec)
    if isinstance(db, DB | PrefixedDB):
        return DatabaseMapping(db, codecs)
    if isinstance(db, Snapshot):
        return ReadOnlyMapping(db, codecs)
    raise TypeError(
        f"db is a lsm.DB, a part of one by prefixed_db(), or a snapshot, not {type(db).__name__}"
    )
