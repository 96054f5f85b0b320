"""Installed plug-ins to test with: one that is committed, and any number made up on the spot."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

pytest.register_assert_rewrite("policies.testing")

import policies  # noqa: E402 - after the line above, so that policies.testing is rewritten
from policies.builtin import BUILTIN  # noqa: E402
from policies.registry import Registry  # noqa: E402
from policies.testing import KEY_SETS  # noqa: E402
from tests.effort import effort  # noqa: E402

INSTALLED = Path(__file__).parent / "installed"
sys.path.append(str(INSTALLED))

POLICY_SOURCE = """
from policies import FilterPolicy

class Policy(FilterPolicy):
    name = {name!r}

    def create_filter(self, keys):
        return b"made by {name}"

    def key_may_match(self, key, filter):
        return True
"""


COMMON = ("no keys", "every length to 70", "unsorted repeats", "3000 sorted")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Have a full run, and no quick one, prove the contract for every policy with all keys.

    A quick run takes all keys for the first policy of a class, and the common ones for the others.
    """
    for item in items:
        suite = getattr(item, "cls", None)
        if not hasattr(suite, "policies") or not hasattr(item, "callspec"):
            continue
        given = item.callspec.params
        of_another = given.get("policy") is not suite.policies[0]
        if of_another and given.get("keys") not in [*map(KEY_SETS.get, COMMON), None]:
            item.add_marker(effort("full"))


class Site:
    """A directory of installed distributions, on the import path."""

    def __init__(self, path: Path):
        self.path = path
        self.modules: list[str] = []

    def install(
        self,
        distribution: str,
        entries: Mapping[str, str],
        version: str = "1.0",
        metadata: bool = True,
    ) -> None:
        """Put the metadata of a distribution with these entry points there."""
        info = self.path / f"{distribution.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        lines = "\n".join(f"{name} = {target}" for name, target in entries.items())
        (info / "entry_points.txt").write_text(f"[lsm.filter_policies]\n{lines}\n")
        if metadata:
            (info / "METADATA").write_text(f"Name: {distribution}\nVersion: {version}\n")

    def module(self, name: str, source: str) -> None:
        """Put a module there."""
        (self.path / f"{name}.py").write_text(source)
        self.modules.append(name)

    def plugin(self, distribution: str, policy: str, version: str = "1.0") -> str:
        """Install a working plug-in of one policy; returns the name of its module."""
        module = distribution.replace("-", "_")
        self.module(module, POLICY_SOURCE.format(name=policy))
        self.install(distribution, {policy: f"{module}:Policy"}, version)
        return module


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """An empty directory on the import path to install distributions in."""
    site = Site(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    yield site
    for name in site.modules:
        sys.modules.pop(name, None)


@pytest.fixture
def registry() -> Registry:
    """A registry of its own, that has not looked for plug-ins yet."""
    return Registry(BUILTIN)


@pytest.fixture
def fresh_policies() -> Iterator[None]:
    """The registry everybody shares looks for plug-ins anew, before the test and after it."""
    policies.refresh()
    yield
    policies.refresh()
