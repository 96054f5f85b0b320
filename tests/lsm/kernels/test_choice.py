"""Which kernel a database runs on is a choice that is made once, and said aloud."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import lsm
from filters import KernelUnavailableError
from lsm import kernels
from tests.interpreter import fresh
from tests.lsm.simulated import SimulatedStorage

TELL = """
import lsm, filters
with lsm.DB(DIRECTORY, create_if_missing=True) as db:
    db.put(b"key", b"value")
    db.flush()
    assert db.get(b"key") == b"value"
    assert list(db) == [(b"key", b"value")]
    print(lsm.KERNEL, "|", db.stats().kernel, "|", filters.KERNEL, "|", lsm.KERNEL_REASON)
"""
# An installation whose filters are compiled, and its engine is not.
NOT_COMPILED = 'import sys\nsys.modules["lsm.kernels.native.lookup"] = None\n'

needs_native = pytest.mark.skipif(
    "native" not in kernels.available(), reason="the engine's native kernel cannot run here"
)


def told(tmp_path: Path, state: str = "", **environment: str) -> str:
    """What a fresh process tells of its kernels, or how it ends."""
    child = fresh(f"{state}DIRECTORY = {str(tmp_path / 'db')!r}\n{TELL}", **environment)
    return child.stdout.strip() or child.stderr


def test_the_choice_is_told() -> None:
    assert lsm.KERNEL in kernels.available()
    assert kernels.choose() == (lsm.KERNEL, lsm.KERNEL_REASON)
    with lsm.DB("db", create_if_missing=True, storage=SimulatedStorage()) as db:
        assert db.stats().kernel == lsm.KERNEL
        assert f" {lsm.KERNEL} kernel" in str(db.stats()).splitlines()[0]


def test_a_comparator_of_ones_own_takes_the_readable_kernel() -> None:
    with lsm.DB(
        "db",
        create_if_missing=True,
        storage=SimulatedStorage(),
        comparator=lambda one, other: (one > other) - (one < other),
        comparator_name=b"ours",
    ) as db:
        assert db.stats().kernel == "python"
        db.put(b"key", b"value")
        db.flush()
        assert (db.get(b"key"), db.get_many([b"key", b"x"])) == (b"value", [b"value", None])


def test_python_can_be_asked_for(tmp_path: Path) -> None:
    asked = told(tmp_path, LSM_KERNEL="python")
    assert asked == "python | python | python | LSM_KERNEL=python"


@needs_native
def test_native_is_what_runs(tmp_path: Path) -> None:
    assert told(tmp_path, LSM_KERNEL="auto") == "native | native | native | it is compiled"
    assert told(tmp_path, LSM_KERNEL="native").startswith("native | native | native | ")


@needs_native
def test_without_compiled_modules_the_readable_kernel_runs(tmp_path: Path) -> None:
    found = told(tmp_path, NOT_COMPILED, LSM_KERNEL="auto")
    assert found.startswith("python | python | native | the engine's native kernel cannot run here")
    found = told(tmp_path, NOT_COMPILED, LSM_KERNEL="native")
    assert "KernelUnavailableError: the engine's native kernel cannot run here" in found


def test_without_the_global_lock_the_readable_kernel_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: False, raising=False)
    load = kernels.load.__wrapped__
    with pytest.raises(KernelUnavailableError, match="global interpreter lock"):
        load("native")
    assert load("python") is kernels.load("python")


def test_a_misspelt_kernel_is_an_error() -> None:
    with pytest.raises(ValueError, match="no kernel 'c': choose python or native"):
        kernels.load("c")


@needs_native
def test_both_kernels_have_the_same_nouns() -> None:
    python, native = (kernels.load(name) for name in ("python", "native"))
    assert python.__all__ == native.__all__
    for name in python.__all__:
        public = {each for each in dir(getattr(python, name)) if not each.startswith("_")}
        assert public <= set(dir(getattr(native, name))) | ALONE.get(name, set()), name


# What only the readable kernel needs to have: what its own cursors and blocks work with.
ALONE = {
    "Block": {"data", "entries_end", "place", "restart_keys", "restarts", "wrap"},
    "Source": {
        *("ascending", "cut", "descending", "fill_cache", "high", "include_key", "include_value"),
        *("items_of", "low", "read_rank", "unwrap"),
    },
    "Window": {"ascending", "descending", "left", "right"},
}
