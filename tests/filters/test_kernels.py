"""Which kernel runs is a choice that is made once, said aloud and never silently another one."""

from __future__ import annotations

import subprocess
import sys

import pytest

import filters
from filters import KernelUnavailableError, kernels


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A fresh interpreter, so that the choice is made anew."""
    path = ":".join(filter(None, sys.path))
    return subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


TELL = "import filters; print(filters.KERNEL, '|', filters.KERNEL_REASON)"


def test_the_choice_is_told() -> None:
    assert filters.KERNEL in kernels.available()
    assert filters.KERNEL_REASON
    assert filters.BlockedBloomFilter is kernels.filter_class("blocked")
    assert filters.BlockedBloomFilter is kernels.load(filters.KERNEL).BlockedBloomFilter


def test_python_can_be_asked_for() -> None:
    told = run(TELL, LSM_KERNEL="python")
    assert told.stdout.strip() == "python | LSM_KERNEL=python", told.stderr


@pytest.mark.parametrize("value", ["auto", ""])
def test_auto_takes_native_where_it_runs_and_says_why_not_where_it_does_not(value: str) -> None:
    told = run(TELL, LSM_KERNEL=value).stdout
    if "native" in kernels.available():
        assert told.startswith("native")
    else:
        assert told.startswith("python | the native kernel cannot run here: ")
        assert "filters.kernels.native" in told


@pytest.mark.skipif("native" in kernels.available(), reason="the native kernel runs here")
def test_native_is_an_error_with_its_reason_where_it_cannot_run() -> None:
    told = run(TELL, LSM_KERNEL="native")
    assert told.returncode != 0
    why = "this installation has no filters.kernels.native"
    assert f"KernelUnavailableError: the native kernel cannot run here: {why}" in told.stderr
    with pytest.raises(KernelUnavailableError):
        kernels.load("native")
    with pytest.raises(ImportError):
        kernels.load("native")


def test_a_misspelt_choice_is_an_error() -> None:
    told = run(TELL, LSM_KERNEL="nativ")
    assert "LSM_KERNEL='nativ' is not allowed: choose auto, native, python" in told.stderr
    with pytest.raises(ValueError, match="no kernel 'c': choose python or native"):
        kernels.load("c")


def test_every_kernel_has_every_family() -> None:
    for name in kernels.available():
        kernel = kernels.load(name)
        for family, class_name in kernels.CLASS_NAMES.items():
            assert getattr(kernel, class_name).family == family
            assert getattr(filters, class_name).family == family
