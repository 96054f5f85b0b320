"""Policies of other distributions: found on need, loaded one at a time, and never trusted."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import policies
from filters.errors import FilterError
from policies import DuplicatePolicyError, PluginError, UnknownPolicyError, plugins
from policies.builtin import BUILTIN
from policies.registry import Registry
from tests.policies.conftest import INSTALLED, POLICY_SOURCE, Site

ROOT = Path(__file__).parents[2]


def run(code: str) -> str:
    """What a fresh interpreter prints."""
    finished = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": f"{ROOT}:{INSTALLED}"},
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    return finished.stdout.strip()


class TestDiscovery:
    def test_an_installed_plugin_is_found_by_its_name(self, fresh_policies: None) -> None:
        assert "test.bitmap" in policies.available()
        policy = policies.create("test.bitmap")
        assert type(policy).__module__ == "lsm_test_plugin"
        block = policies.encode_block(policy, policy.create_filter([b"a"]) or b"", num_keys=1)
        assert policies.open_block(block).might_contain(b"a")

    def test_available_imports_nothing(self, site: Site, registry: Registry) -> None:
        module = site.plugin("acme-lazy", "acme.lazy")
        assert "acme.lazy" in registry.available()
        assert module not in sys.modules
        registry.lookup("acme.lazy")
        assert module in sys.modules

    def test_only_the_one_that_is_named_is_imported(self, site: Site, registry: Registry) -> None:
        wanted = site.plugin("acme-wanted", "acme.wanted")
        other = site.plugin("acme-other", "acme.other")
        cls = registry.lookup("acme.wanted")
        assert cls is registry.lookup("acme.wanted")
        assert wanted in sys.modules
        assert other not in sys.modules

    def test_what_is_installed_later_is_found_after_refresh(
        self, site: Site, registry: Registry
    ) -> None:
        assert "acme.later" not in registry.available()
        site.plugin("acme-later", "acme.later")
        with pytest.raises(UnknownPolicyError):
            registry.lookup("acme.later")
        registry.refresh()
        assert registry.lookup("acme.later").name == "acme.later"

    def test_what_was_uninstalled_is_gone_after_refresh(
        self, site: Site, registry: Registry
    ) -> None:
        site.plugin("acme-brief", "acme.brief")
        registry.lookup("acme.brief")
        (site.path / "acme_brief-1.0.dist-info" / "entry_points.txt").unlink()
        assert registry.lookup("acme.brief").name == "acme.brief"
        registry.refresh()
        with pytest.raises(UnknownPolicyError):
            registry.lookup("acme.brief")

    def test_what_the_program_registers_comes_first(self, site: Site, registry: Registry) -> None:
        module = site.plugin("acme-shadowed", "acme.shadowed")
        own = type("Own", (policies.NoFilterPolicy,), {"name": "acme.shadowed"})
        registry.register(own)
        assert registry.lookup("acme.shadowed") is own
        assert module not in sys.modules

    def test_registering_over_a_loaded_plugin_must_be_meant(
        self, site: Site, registry: Registry
    ) -> None:
        site.plugin("acme-loaded", "acme.loaded")
        loaded = registry.lookup("acme.loaded")
        registry.register(loaded)
        own = type("Own", (policies.NoFilterPolicy,), {"name": "acme.loaded"})
        with pytest.raises(DuplicatePolicyError, match=r"is acme_loaded\.Policy already"):
            registry.register(own)
        registry.register(own, replace=True)
        assert registry.lookup("acme.loaded") is own

    def test_a_plugin_may_register_while_it_is_imported(
        self, site: Site, fresh_policies: None
    ) -> None:
        source = POLICY_SOURCE.format(name="acme.both")
        site.module("acme_both", f"{source}\nimport policies\npolicies.register(Policy)\n")
        site.install("acme-both", {"acme.both": "acme_both:Policy"})
        assert policies.lookup("acme.both").name == "acme.both"
        policies.registry._REGISTRY._registered.pop("acme.both")

    def test_many_threads_get_one_class(self, site: Site) -> None:
        site.plugin("acme-threads", "acme.threads")
        searches = []

        def scan() -> dict[str, tuple[plugins.Plugin, ...]]:
            searches.append(1)
            return plugins.scan()

        registry, found = Registry(BUILTIN, scan), []
        barrier = threading.Barrier(8)

        def look() -> None:
            barrier.wait()
            found.append(registry.lookup("acme.threads"))

        threads = [threading.Thread(target=look) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(found) == 8
        assert len(set(found)) == 1
        assert len(searches) == 1


class TestDuplicates:
    def test_two_distributions_with_one_name(self, site: Site, registry: Registry) -> None:
        site.plugin("acme-first", "acme.twice", "1.0")
        site.plugin("acme-second", "acme.twice", "2.5")
        site.plugin("acme-third", "acme.once")
        assert registry.lookup("acme.once").name == "acme.once"
        assert "acme.twice" in registry.available()
        with pytest.raises(DuplicatePolicyError) as info:
            registry.lookup("acme.twice")
        message = str(info.value)
        for fact in (
            "'acme.twice'",
            "acme-first 1.0 (acme_first:Policy)",
            "acme-second 2.5 (acme_second:Policy)",
            "uninstall one",
            "policies.register(cls, replace=True)",
        ):
            assert fact in message
        assert isinstance(info.value, FilterError)

    def test_one_distribution_that_says_it_twice(self, site: Site, registry: Registry) -> None:
        site.plugin("acme-stutter", "acme.stutter")
        entries = site.path / "acme_stutter-1.0.dist-info" / "entry_points.txt"
        entries.write_text(entries.read_text() + "acme.stutter = acme_stutter:Policy\n")
        assert registry.lookup("acme.stutter").name == "acme.stutter"

    def test_the_program_says_which_is_meant(self, site: Site, registry: Registry) -> None:
        site.plugin("acme-first", "acme.twice")
        module = site.plugin("acme-second", "acme.twice")
        cls = __import__(module).Policy
        registry.register(cls, replace=True)
        assert registry.lookup("acme.twice") is cls


class TestBroken:
    @pytest.mark.parametrize(
        ("source", "target", "facts"),
        [
            (None, "acme_gone:Policy", ["cannot be imported", "ModuleNotFoundError", "acme_gone"]),
            ("", "acme_broken:Policy", ["cannot be imported", "AttributeError", "Policy"]),
            ("1 / 0", "acme_broken:Policy", ["cannot be imported", "ZeroDivisionError: division"]),
            ("import no_such_thing", "acme_broken:Policy", ["No module named 'no_such_thing'"]),
            ("", "acme_broken", ["is refused", "is a class, not a module"]),
            ("Policy = 3", "acme_broken:Policy", ["is refused", "is a class, not a int"]),
            ("class Policy: name = 'acme.broken'", "acme_broken:Policy", ["not a subclass"]),
            (
                "import policies\nclass Policy(policies.FilterPolicy): name = 'acme.broken'",
                "acme_broken:Policy",
                ["is abstract: it lacks create_filter"],
            ),
            (
                POLICY_SOURCE.format(name="acme.other"),
                "acme_broken:Policy",
                ["acme_broken.Policy calls itself 'acme.other'"],
            ),
            (
                POLICY_SOURCE.format(name="acme.broken") + "    layouts = None\n",
                "acme_broken:Policy",
                ["is refused"],
            ),
        ],
    )
    def test_the_error_names_the_culprit_and_the_others_work(
        self, site: Site, registry: Registry, source: str | None, target: str, facts: list[str]
    ) -> None:
        site.plugin("acme-good", "acme.good")
        if source is not None:
            site.module("acme_broken", source)
        site.install("acme-broken", {"acme.broken": target}, version="0.3")
        assert "acme.broken" in registry.available()
        with pytest.raises(PluginError) as info:
            registry.lookup("acme.broken")
        for fact in ["'acme.broken'", f"acme-broken 0.3 ({target})", *facts]:
            assert fact in str(info.value)
        assert info.value.__cause__ is not None
        assert isinstance(info.value, FilterError)
        assert registry.lookup("acme.good").name == "acme.good"
        assert registry.lookup("blocked") is policies.BlockedPolicy

    def test_a_reserved_name_is_refused_when_it_is_used(
        self, site: Site, registry: Registry
    ) -> None:
        module = site.plugin("acme-golomb", "golomb")
        assert "golomb" not in registry.available()
        with pytest.raises(PluginError, match=r"acme-golomb 1\.0 .*'golomb' is reserved"):
            registry.lookup("golomb")
        assert module not in sys.modules

    def test_a_built_in_name_is_never_anything_else(self, site: Site, registry: Registry) -> None:
        module = site.plugin("acme-blocked", "blocked")
        assert registry.lookup("blocked") is policies.BlockedPolicy
        assert module not in sys.modules

    def test_a_name_that_breaks_the_grammar(self, site: Site, registry: Registry) -> None:
        site.plugin("acme-odd", "Acme.Odd!")
        assert "Acme.Odd!" not in registry.available()
        with pytest.raises(PluginError, match=r"'Acme.Odd!' is reserved"):
            registry.lookup("Acme.Odd!")

    def test_a_distribution_whose_metadata_are_lost(self, site: Site, registry: Registry) -> None:
        site.module("acme_bare", POLICY_SOURCE.format(name="acme.bare"))
        site.install("acme-bare", {"acme.bare": "acme_bare:Policy"}, metadata=False)
        assert registry.lookup("acme.bare").name == "acme.bare"
        [plugin] = plugins.scan()["acme.bare"]
        assert str(plugin) == "a distribution without metadata (acme_bare:Policy)"

    def test_a_distribution_whose_metadata_cannot_be_read(
        self, site: Site, registry: Registry, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def unreadable(_self: object) -> str:
            raise OSError("no")

        site.plugin("acme-dark", "acme.dark")
        # The class that is found: once its backport is imported, as by dask, that is another one.
        found = type(importlib.metadata.distribution("acme-dark"))
        monkeypatch.setattr(found, "version", property(unreadable))
        assert registry.lookup("acme.dark").name == "acme.dark"
        [plugin] = plugins.scan()["acme.dark"]
        assert str(plugin) == "a distribution without metadata (acme_dark:Policy)"

    def test_an_exception_that_cannot_even_be_shown(self, site: Site, registry: Registry) -> None:
        site.module(
            "acme_mute",
            "class Mute(Exception):\n    def __str__(self): return 1 / 0\nraise Mute\n",
        )
        site.install("acme-mute", {"acme.mute": "acme_mute:Policy"})
        with pytest.raises(PluginError, match="cannot be imported: Mute: repair"):
            registry.lookup("acme.mute")


class TestSwitch:
    @pytest.mark.parametrize("value", ["1", "yes"])
    def test_plugins_can_be_switched_off(
        self, site: Site, registry: Registry, monkeypatch: pytest.MonkeyPatch, value: str
    ) -> None:
        site.plugin("acme-off", "acme.off")
        monkeypatch.setenv("LSM_DISABLE_PLUGINS", value)
        assert registry.available() == tuple(sorted(cls.name for cls in BUILTIN))
        with pytest.raises(UnknownPolicyError, match="because LSM_DISABLE_PLUGINS is set"):
            registry.lookup("acme.off")

    @pytest.mark.parametrize("value", ["", "0"])
    def test_and_are_on_otherwise(
        self, site: Site, registry: Registry, monkeypatch: pytest.MonkeyPatch, value: str
    ) -> None:
        site.plugin("acme-on", "acme.on")
        monkeypatch.setenv("LSM_DISABLE_PLUGINS", value)
        assert "acme.on" in registry.available()


class TestStartUp:
    def test_importing_and_using_what_is_built_in_loads_no_plugin_machinery(self) -> None:
        loaded = run(
            "import sys, policies\n"
            "policy = policies.create('blocked')\n"
            "block = policies.encode_block(policy, policy.create_filter([b'a']), num_keys=1)\n"
            "policies.open_block(block)\n"
            "policies.LevelPolicies.from_config({'filters': {'policy': 'cuckoo'}})\n"
            "print(*sys.modules)"
        ).split()
        unwanted = {"numpy", "importlib.metadata", "pytest", "hypothesis", "difflib", "lsm"}
        assert unwanted.isdisjoint(loaded)
        assert "lsm_test_plugin" not in loaded
        assert "policies.testing" not in loaded

    def test_a_plugin_reads_a_block_in_a_process_that_knows_nothing_else(self) -> None:
        policy = policies.create("test.bitmap")
        block = policies.encode_block(policy, policy.create_filter([b"a"]) or b"", num_keys=1)
        answers = run(
            "import policies\n"
            f"reader = policies.open_block(bytes.fromhex('{block.hex()}'))\n"
            "print(reader.might_contain_many([b'a', b'b']))"
        )
        assert answers == "[True, False]"
