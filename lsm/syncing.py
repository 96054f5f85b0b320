"""Syncs, whose failure is unlike any other."""

from __future__ import annotations

from collections.abc import Callable

from lsm.errors import IOError, SyncError


def surely(sync: Callable[[], None]) -> None:
    """Sync; raise a SyncError if that fails, since trying again would say nothing."""
    try:
        sync()
    except SyncError:
        raise
    except IOError as error:
        raise SyncError(error.errno, error.strerror, error.filename) from None
