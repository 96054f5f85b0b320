"""Syncs, whose failure is final: the system may have dropped the pages it could not write."""

from __future__ import annotations

from collections.abc import Callable

from lsm.errors import IOError, SyncError


def checked_sync(sync: Callable[[], None]) -> None:
    """Sync, or raise SyncError: a second sync could succeed without having written the data."""
    try:
        sync()
    except SyncError:
        raise
    except IOError as error:
        raise SyncError(error.errno, error.strerror, error.filename) from None
