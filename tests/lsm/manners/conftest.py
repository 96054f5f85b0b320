"""Databases of both implementations: plyvel, which says what is right, and lsm beside it."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest


@pytest.fixture(scope="session", params=["plyvel", "lsm"])
def api(request: pytest.FixtureRequest) -> ModuleType:
    """Each implementation in turn."""
    if request.param == "plyvel":
        pytest.importorskip("plyvel")
    module = importlib.import_module(request.param)
    if not hasattr(module, "DB"):
        pytest.skip(f"{request.param} holds no engine yet")
    return module


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Where a database may be made: nothing is there yet, and its parent directory is."""
    return str(tmp_path / "db")


@pytest.fixture
def open_db(api: ModuleType, path: str) -> Iterator[Callable[..., Any]]:
    """Opens a database, at ``path`` unless told otherwise, and closes it after the test."""
    opened = []

    def open_db(at: str = path, *, create_if_missing: bool = True, **options: Any) -> Any:
        db = api.DB(at, create_if_missing=create_if_missing, **options)
        opened.append(db)
        return db

    yield open_db
    for db in opened:
        db.close()


@pytest.fixture
def db(open_db: Callable[..., Any]) -> Any:
    """An empty database."""
    return open_db()


@pytest.fixture
def digits(db: Any) -> Any:
    """A database of the keys 1 to 5."""
    for digit in b"12345":
        db.put(b"%c" % digit, b"value %c" % digit)
    return db
