"""The examples work as they are: the plug-in as a package of its own, and the configuration."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import pytest

from tests.installed_example import EXAMPLES, ROOT, Environment, counts

EXAMPLE = EXAMPLES / "acme-quotient"


@pytest.fixture
def installed(tmp_path: Path) -> Environment:
    """The example, installed."""
    return Environment.begun(tmp_path, EXAMPLE)


def test_the_plugin_passes_its_own_tests(installed: Environment, tmp_path: Path) -> None:
    """In a copy, away from this project's pytest configuration and conftest."""
    copy = tmp_path / "acme-quotient"
    shutil.copytree(EXAMPLE, copy, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    (copy / "acme_quotient.py").unlink()  # what is installed is tested
    finished = installed.test(copy / "tests")
    assert finished.returncode == 0, finished.stdout + finished.stderr
    passed, skipped = counts(finished.stdout)
    assert passed > 200
    assert skipped < 10


def test_its_own_tests_notice_a_policy_that_loses_keys(
    installed: Environment, tmp_path: Path
) -> None:
    module = installed.path / "acme_quotient.py"
    source = module.read_text()
    broken = source.replace("for key in keys}", "for key in keys[1:]}")
    assert broken != source
    module.write_text(broken)
    finished = installed.run("-m", "pytest", "-q", "-p", "no:cacheprovider", EXAMPLE / "tests")
    assert finished.returncode == 1, finished.stdout
    assert "test_every_key_is_found" in finished.stdout


def test_the_plugin_is_found_by_its_name(installed: Environment) -> None:
    code = """
import sys, policies
print("acme.quotient" in policies.available(), "acme_quotient" in sys.modules)
policy = policies.create("acme.quotient", slot_bits=16)
print(type(policy).__module__, policy.params())
"""
    assert installed.python(code) == ["True False", "acme_quotient {'slot_bits': 16}"]


WRITE = """
from pathlib import Path
import policies
levels = policies.load("lsm.toml")
builder = policies.VerifiedBuilder(levels[3], policies.BuildContext(level=3))
for number in range(1000):
    builder.add(b"key%d" % number)
result = builder.finish()
assert result.state == "built", result.reason
block = policies.encode_block(levels[3], result.filter, num_keys=result.num_keys)
Path("table.filter").write_bytes(block)
print(levels[0].name, levels[3].name, levels[3].params())
"""

READ = """
from pathlib import Path
import policies
block = Path("table.filter").read_bytes()
described = policies.describe_block(block)
print(described.policy, described.params, described.num_keys)
try:
    reader = policies.open_block(block)
except policies.UnknownPolicyError as error:
    print(str(error).partition(";")[0])
else:
    print(all(reader.might_contain_many([b"key%d" % number for number in range(1000)])))
    print(sum(reader.might_contain_many([b"absent%d" % number for number in range(1000)])) < 20)
"""


def test_a_configuration_and_a_block_use_it(installed: Environment) -> None:
    (installed.path / "lsm.toml").write_text(
        '[filters.level."3+"]\npolicy = "acme.quotient"\nslot_bits = 16\n'
    )
    assert installed.python(WRITE) == ["blocked acme.quotient {'slot_bits': 16}"]
    facts = "acme.quotient {'slot_bits': 16} 1000"
    assert installed.python(READ) == [facts, "True", "True"]

    disabled = installed.python(READ, LSM_DISABLE_PLUGINS="1")
    assert disabled == [facts, "unknown filter policy 'acme.quotient'"]
    installed.uninstall()
    assert installed.python(READ) == [facts, "unknown filter policy 'acme.quotient'"]


def test_the_example_configuration_loads_everywhere(installed: Environment) -> None:
    code = f"""
import policies
print(*(policy.name for policy in policies.load({str(ROOT / "examples" / "lsm.toml")!r})))
"""
    assert installed.python(code) == ["rocksdb blocked classic cuckoo leveldb counting binary-fuse"]


def test_the_package_is_complete(installed: Environment) -> None:
    """Every module is packaged, and every import is the standard library's or declared."""
    modules = installed.project["tool"]["setuptools"]["py-modules"]
    assert sorted(path.stem for path in EXAMPLE.glob("*.py")) == sorted(modules)
    assert installed.project["project"]["dependencies"] == ["lsm-filters"]
    imported = re.findall(
        r"^(?:from|import) (\w+)", (EXAMPLE / "acme_quotient.py").read_text(), flags=re.MULTILINE
    )
    foreign = set(imported) - set(sys.stdlib_module_names)
    assert foreign == {"attrs", "filters", "policies"}  # attrs comes with lsm-filters
