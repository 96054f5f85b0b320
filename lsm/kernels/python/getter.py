"""Getting values: the lookups of databases, of their parts and of snapshots."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from lsm.arguments import flag, key_bytes

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from lsm.kernels.python.view import View
    from lsm.store import Store


class Getter:
    """A base that looks keys up: under a prefix, at a read rank or as of now.

    ``_store`` is None when this was closed, and ``_closed_error()`` tells so then.
    """

    __slots__ = ("_prefix", "_read_rank", "_store")

    _prefix: bytes
    _read_rank: int | None
    _store: Store | None

    def _closed_error(self) -> Exception:
        raise NotImplementedError

    def _opened(self) -> tuple[Store, View]:
        store = self._store
        view = None if store is None else store.view
        if store is None or view is None:
            raise self._closed_error()
        return store, view

    def get(
        self,
        key: Buffer,
        default: Any = None,
        *,
        verify_checksums: bool | None = False,
        fill_cache: bool | None = True,
    ) -> Any:
        """The key's value, or the default if it has none.

        Blocks are always checked when they enter memory, with ``verify_checksums`` or without. With
        ``fill_cache=False`` what has to be read for this does not push other things out.
        """
        if type(key) is not bytes:
            key = key_bytes("key", key)
        if fill_cache is not True or verify_checksums is not False:
            fill_cache = flag("fill_cache", fill_cache)
            flag("verify_checksums", verify_checksums)
        # The view before the read rank: what a compaction drops may be visible to older ones.
        store, view = self._opened()
        whole = self._prefix + key
        rank = store.visible if self._read_rank is None else self._read_rank
        wrap = store.comparator.wrap
        ordered = whole if wrap is None else wrap(whole)
        value = store.kernel.find(view, store.tables, whole, ordered, rank, fill_cache)
        return default if value is None else value

    def get_many(self, keys: Iterable[Buffer], default: Any = None) -> list[Any]:
        """The values of many keys as of one moment, in order; the default for those without."""
        store, view = self._opened()
        rank = store.visible if self._read_rank is None else self._read_rank
        wrap, tables, find = store.comparator.wrap, store.tables, store.kernel.find
        values = []
        for key in keys:
            whole = self._prefix + key_bytes("key", key)
            value = find(view, tables, whole, whole if wrap is None else wrap(whole), rank, True)
            values.append(default if value is None else value)
        return values

    def __contains__(self, key: Buffer) -> bool:
        return self.get(key) is not None
