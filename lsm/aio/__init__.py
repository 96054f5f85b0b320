"""Databases for event loops: what may have to wait does so in threads of the database's own.

::

    import lsm.aio

    async with lsm.aio.open("shop.db", create_if_missing=True) as db:
        await db.put(b"user:42", b"Ada")
        async with db.write_batch() as batch:
            batch.put(b"user:43", b"Grace")
        async for key, value in db.iterator(prefix=b"user:"):
            print(key, value)

The event loop itself is never kept waiting. Who is cancelled while he writes goes on when that is
written, or has not begun: nothing of it comes later.
"""

from __future__ import annotations

from lsm.aio.batches import WriteBatch
from lsm.aio.database import DB, Opening, PrefixedDB, Snapshot, open
from lsm.aio.iteration import Iterator

__all__ = ["DB", "Iterator", "Opening", "PrefixedDB", "Snapshot", "WriteBatch", "open"]
