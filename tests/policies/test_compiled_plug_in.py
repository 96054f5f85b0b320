"""The compiled plug-in of ``docs/plugins.md``: compiled as the page says, run, and asked in C."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from filters import kernels
from tests.worked_examples import sections

ROOT = Path(__file__).parents[2]
SECTION = sections(ROOT / "docs" / "plugins.md")["Compiled, with a hash of its own"]

CONTRACT = """
import policies
from acme_policy import FnvPolicy
from policies.testing import FilterPolicyContract

policies.register(FnvPolicy)


class TestFnvPolicy(FilterPolicyContract):
    policies = (FnvPolicy(), FnvPolicy(bits_per_key=5))
"""

# What follows the page's program, which leaves a database whose filters are verified: nobody may
# ask them in Python from here on.
ASKED_IN_C = """
import acme_policy

def refuse(self, key):
    raise AssertionError("asked in Python")

acme_policy.FnvReader.might_contain = refuse
with lsm.DB("fnv.db", filter_policy=FnvPolicy()) as db:
    assert all(db.get(b"user:%06dx" % number) is None for number in range(1000))
    assert all(db.get(b"user:%06d" % number) == b"Ada" for number in range(1000))
    counted = db.stats().levels
    assert sum(level.skipped for level in counted) > 900, counted
"""


def blocks(language: str) -> list[str]:
    """The section's blocks in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", SECTION, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the module, compiled by the page's command, and the page's program."""
    header = Path(sysconfig.get_path("include")) / "Python.h"
    missing = [what for what, there in (
        ("a C compiler called cc", shutil.which("cc")), ("Python.h", header.exists()),
        ("a system that links as Linux does", sys.platform == "linux"),
    ) if not there]  # fmt: skip
    if missing:
        if os.environ.get("LSM_REQUIRE_NATIVE", "") not in ("", "0"):
            pytest.fail(f"there is no {missing[0]}")
        pytest.skip(f"there is no {missing[0]}")
    directory = tmp_path_factory.mktemp("acme")
    [source], [command], [policy, program] = map(blocks, ("c", "sh", "py"))
    (directory / "acme_fnv.c").write_text(source)
    (directory / "acme_policy.py").write_text(policy)
    (directory / "program.py").write_text(program)
    (directory / "test_contract.py").write_text(CONTRACT)
    assert command.startswith("cc ")
    run(directory, "bash", "-c", f"cc -std=c11 -Wall -Wextra -Werror {command[3:]}")
    return directory


def run(directory: Path, *command: str) -> str:
    """What a command prints, which has to succeed; not with what a sanitizer loads everywhere."""
    paths = (str(directory), str(ROOT))
    environment = {
        **{name: value for name, value in os.environ.items() if name != "LD_PRELOAD"},
        "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])),
        "PYTHONPATH": os.pathsep.join(paths),
        "PYTEST_ADDOPTS": "",
    }
    done = subprocess.run(
        command, cwd=directory, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_it_keeps_the_contract(built: Path) -> None:
    options = ("-q", "-p", "no:cacheprovider")
    told = run(built, sys.executable, "-m", "pytest", *options, "test_contract.py")
    passed = re.search(r"^(\d+) passed", told.splitlines()[-1])
    assert passed, told
    assert int(passed[1]) > 200


@pytest.mark.parametrize("kernel", kernels.available())
def test_lookups_ask_it_and_the_compiled_engine_in_c(kernel: str, built: Path) -> None:
    shutil.rmtree(built / "fnv.db", ignore_errors=True)
    asked = (built / "program.py").read_text() + ASKED_IN_C * (kernel == "native")
    (built / "asked.py").write_text(asked)
    run(built, "env", f"LSM_KERNEL={kernel}", sys.executable, "asked.py")
