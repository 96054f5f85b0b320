"""Fixtures that several modules of the engine's tests ask for."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import lsm
from lsm import kernels, state
from tests.lsm.history import configured


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A configuration under which a few dozen batches are flushed and compacted some times."""
    return configured(tmp_path)


@pytest.fixture(params=kernels.available())
def chosen(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Each kernel; what all share is the chosen one's, and only the compiled one's serves both."""
    if request.param == "native" and lsm.KERNEL != "native":
        pytest.skip(f"the native kernel is not the chosen one: {lsm.KERNEL_REASON}")
    kernel = kernels.load(request.param)
    monkeypatch.setattr(kernels, "_chosen", kernel)
    return kernel


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
