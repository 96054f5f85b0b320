"""Fixtures that several modules of the engine's tests ask for."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest

from lsm import state
from tests.lsm.history import configured


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A configuration under which a few dozen batches are flushed and compacted some times."""
    return configured(tmp_path)


@pytest.fixture
def kept_heat(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has databases keep the heat of their tables."""
    monkeypatch.setattr(state, "is_wanted", lambda options: True)


@pytest.fixture
def no_collector() -> Iterator[None]:
    """Keeps the garbage collector from hiding what a cycle holds on to."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()
