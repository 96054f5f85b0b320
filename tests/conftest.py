"""Fixtures and strategies every test shares."""

from __future__ import annotations

import gc
import os
import random
import zlib
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import HealthCheck, settings

import filters
import lsm
from filters import hashing, kernels
from tests.effort import EFFORT, LEFT_OUT, examples, is_left_out

# How long an example takes depends on the machine, and no test may fail for that.
settings.register_profile(
    EFFORT,
    deadline=None,
    max_examples=examples(100).max_examples,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile(EFFORT)


# They go through the same lines again and again, which others cover, and some in children that they
# fork, where the tracer's own lock may be held for ever.
UNCOVERED = {
    "test_no_false_negatives.py",
    "test_rates.py",
    "test_twins.py",
    "test_crash.py",
    "test_exits.py",
    "test_flaky.py",
    "test_forged_files.py",
    "test_forks.py",
    "test_growth.py",
    "test_interrupted_iterators.py",
    "test_interruptions.py",
    "test_lives.py",
    "test_metamorphic.py",
    "test_power_loss.py",
    "test_threads.py",
}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what belongs to a greater effort, and beside coverage what covers nothing new."""
    covers = bool(config.getoption("cov_source", None))
    left_out = [item for item in items if is_left_out(item) or (covers and is_uncovered(item))]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        gone = set(map(id, left_out))
        items[:] = [item for item in items if id(item) not in gone]


def is_uncovered(item: pytest.Item) -> bool:
    """Whether only volume is left to see in a test once all others have run."""
    marks = (item.get_closest_marker(name) for name in ("once", "no_cover"))
    return item.path.name in UNCOVERED or any(marks)


def pytest_collection_finish() -> None:
    """Spare every later collection of garbage the tests themselves, tens of thousands of them."""
    gc.collect()
    gc.freeze()


def pytest_sessionstart() -> None:
    """Test what was installed to be tested, where that is said, and not what else can be found."""
    wanted = os.environ.get("LSM_TESTED_AT")
    for package in (filters, lsm) if wanted else ():
        if not Path(str(package.__file__)).resolve().is_relative_to(Path(str(wanted)).resolve()):
            pytest.exit(f"{package.__file__} is not at LSM_TESTED_AT={wanted}", returncode=3)


def pytest_report_header() -> list[str]:
    seed = "of each test's own name" if "LSM_TEST_SEED" not in os.environ else "from LSM_TEST_SEED"
    where = Path(filters.__file__).parent
    return [
        f"kernels: filters {filters.KERNEL} ({filters.KERNEL_REASON}), engine {lsm.KERNEL} "
        f"({lsm.KERNEL_REASON}), in {where}; seeds: {seed}",
        f"effort: {LEFT_OUT}",
    ]


@pytest.fixture(scope="session", params=kernels.available())
def kernel(request: pytest.FixtureRequest) -> ModuleType:
    """Each kernel that can run here, in turn."""
    return kernels.load(request.param)


@pytest.fixture
def test_seed(request: pytest.FixtureRequest) -> int:
    """A number from the test's name, or LSM_TEST_SEED; pytest shows it when the test fails."""
    seed = int(os.environ.get("LSM_TEST_SEED") or zlib.crc32(request.node.nodeid.encode()))
    print(f"LSM_TEST_SEED={seed}")
    return seed


@pytest.fixture
def rng(test_seed: int) -> random.Random:
    """A generator for the test's own data."""
    return random.Random(test_seed)


@pytest.fixture(autouse=True)
def reproducible_secrets(test_seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seeds and salts nobody gave: random to the code, the same at every run of a test."""
    secrets = random.Random(~test_seed)
    monkeypatch.setattr(hashing, "random64", lambda: secrets.getrandbits(64))
