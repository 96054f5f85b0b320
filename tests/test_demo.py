"""What the first command of the README says."""

from __future__ import annotations

import pytest

import filters
from benchmarks import demo
from filters.kernels import fuse_library


@pytest.mark.parametrize(
    ("kernel", "why_not", "builder"),
    [
        ("native", None, "the native kernel"),
        ("python", None, "pyfusefilter"),
        ("python", "pyfusefilter is not installed", "Python"),
    ],
)
def test_the_demo_names_who_builds_binary_fuse(
    kernel: str, why_not: str | None, builder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filters, "KERNEL", kernel)
    monkeypatch.setattr(fuse_library, "why_not", lambda: why_not)
    assert demo.fuse_builder() == builder
