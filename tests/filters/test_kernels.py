"""Which kernel runs is a choice that is made once, said aloud and never silently another one."""

from __future__ import annotations

import pickle

import pytest

import filters
from filters import KernelUnavailableError, kernels
from filters.families import every
from tests.interpreter import fresh

TELL = "import filters; print(filters.KERNEL, '|', filters.KERNEL_REASON)"


def test_the_choice_is_told() -> None:
    assert filters.KERNEL in kernels.available()
    assert filters.KERNEL_REASON
    assert filters.BlockedBloomFilter is kernels.filter_class("blocked")
    assert filters.BlockedBloomFilter is kernels.load(filters.KERNEL).BlockedBloomFilter


def test_python_can_be_asked_for() -> None:
    told = fresh(TELL, LSM_KERNEL="python")
    assert told.stdout.strip() == "python | LSM_KERNEL=python", told.stderr


@pytest.mark.parametrize("value", ["auto", ""])
def test_auto_takes_native_where_it_runs_and_says_why_not_where_it_does_not(value: str) -> None:
    told = fresh(TELL, LSM_KERNEL=value).stdout
    if "native" in kernels.available():
        assert told.strip() == "native | it is compiled"
    else:
        assert told.startswith("python | the native kernel cannot run here: it ")


# An installation without compiled modules, with the note that setup.py leaves, or without.
NOT_COMPILED = """
import sys, types
sys.modules["filters.kernels.native.binary_fuse"] = None
note = sys.modules["filters.kernels.native.why_not"] = types.ModuleType("why_not")
note.WHY_NOT = "cc returned non-zero exit status 1"
"""
NO_NOTE = (
    NOT_COMPILED.partition("note =")[0] + 'sys.modules["filters.kernels.native.why_not"] = None'
)


@pytest.mark.parametrize(
    ("state", "why"),
    [(NOT_COMPILED, "cc returned non-zero exit status 1"), (NO_NOTE, "it is not compiled here")],
)
def test_without_compiled_modules_python_runs_and_native_is_an_error(state: str, why: str) -> None:
    told = fresh(f"{state}\n{TELL}")
    assert told.stdout.startswith(f"python | the native kernel cannot run here: {why}"), told.stderr
    told = fresh(f"{state}\n{TELL}", LSM_KERNEL="native")
    assert told.returncode != 0
    assert f"KernelUnavailableError: the native kernel cannot run here: {why}" in told.stderr


def test_a_kernel_that_cannot_run_is_an_import_error() -> None:
    assert issubclass(KernelUnavailableError, ImportError)


def test_a_misspelt_choice_is_an_error() -> None:
    told = fresh(TELL, LSM_KERNEL="nativ")
    assert "LSM_KERNEL='nativ' is not allowed: choose auto, native, python" in told.stderr
    with pytest.raises(ValueError, match="no kernel 'c': choose python or native"):
        kernels.load("c")


def test_every_kernel_has_every_family() -> None:
    for name in kernels.available():
        kernel = kernels.load(name)
        for family in every().values():
            cls = family.filter_class(name)
            assert cls is getattr(kernel, family.class_name)
            assert cls.family == getattr(filters, family.class_name).family == family.name
        assert set(kernel.__all__) == {each.class_name for each in every().values()} | {"Digests"}


def test_a_pickle_of_a_family_that_is_none_is_a_filter_error() -> None:
    """As one that a later release wrote is to this one."""
    pickled = pickle.dumps(filters.XorFilter.build([b"key"])).replace(b"xor", b"xyz")
    with pytest.raises(filters.FilterError, match="no family 'xyz'; this release has blocked, .*"):
        pickle.loads(pickled)
