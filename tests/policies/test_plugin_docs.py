"""``docs/plugins.md`` is right: its code runs, and users see the errors that it shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

import policies
from benchmarks.levels import by_budget, prediction
from filters.errors import FilterError
from policies import BuildContext, FilterPolicy, LevelPolicies, containment, plugins
from policies import block as block_format
from policies.builtin import BUILTIN
from policies.parameters import RESERVED
from policies.registry import Registry
from tests.filters.test_family_formats import table_rows
from tests.policies.conftest import POLICY_SOURCE, Site
from tests.worked_examples import sections

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "plugins.md"
EXAMPLE = ROOT / "examples" / "acme-quotient"
TEXT = PAGE.read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", TEXT, flags=re.MULTILINE | re.DOTALL)
ENTRY = {"acme.quotient": "acme_quotient:QuotientPolicy"}


def blocks(kind: str) -> list[str]:
    """The bodies of all fenced blocks of one kind, in order."""
    return [body for each, body in BLOCKS if each == kind]


def install_example(site: Site) -> None:
    """What installing the example leaves behind."""
    site.module("acme_quotient", (EXAMPLE / "acme_quotient.py").read_text(encoding="utf-8"))
    site.install("acme-quotient", ENTRY, version="0.1.0")


@pytest.fixture
def own_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the page registers is forgotten afterwards."""
    monkeypatch.setattr(policies.registry._REGISTRY, "_registered", {})


@pytest.fixture
def page(site: Site, fresh_policies: None, own_names: None) -> dict[str, Any]:
    """The names that the page's code defines."""
    install_example(site)
    namespace: dict[str, Any] = {"__name__": "plugins_page"}
    for body in blocks("python"):
        line = TEXT[: TEXT.index(body)].count("\n")
        exec(compile("\n" * line + body, str(PAGE), "exec"), namespace)
    return namespace


def test_the_code_of_the_page_runs_in_order(page: dict[str, Any]) -> None:
    assert page["result"].reason == blocks("text")[0].strip()
    assert policies.lookup("acme.bitmap") is page["BitmapPolicy"]
    assert {"acme.tiny", "acme.bitmap", "acme.levelled-bitmap"} <= set(policies.available())


def test_the_policies_of_the_page_keep_the_contract(site: Site, tmp_path: Path) -> None:
    """All of the page's code as one test file: the contract runs for the classes in it."""
    install_example(site)
    file = tmp_path / "test_page.py"
    file.write_text("\n\n".join(blocks("python")), encoding="utf-8")
    finished = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-rs", str(file)],
        cwd=tmp_path,
        env={
            **os.environ,
            "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}",
            "PYTEST_ADDOPTS": "",
        },
        capture_output=True,
        text=True,
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    passed = re.search(r"^(\d+) passed", finished.stdout.splitlines()[-1])
    assert passed, finished.stdout
    assert int(passed[1]) > 200


def test_the_smallest_policy_of_the_page_keeps_the_contract_too(
    page: dict[str, Any],
) -> None:
    from policies.testing import KEY_SETS

    policy = page["TinyPolicy"]()
    for keys in KEY_SETS.values():
        reader = policy.open(policy.create_filter(keys))
        assert all(reader.might_contain_many(keys))


def test_the_three_members_are_all_that_is_needed() -> None:
    with pytest.raises(TypeError, match=r"must override key_may_match\(\) or open\(\)"):
        type("Unreadable", (FilterPolicy,), {"create_filter": lambda self, keys: b""})


def test_views_are_handed_to_those_who_take_them(page: dict[str, Any]) -> None:
    seen: list[object] = []
    base = page["BitmapPolicy"]

    def watching_open(self: Any, filter: Any) -> Any:
        seen.append(filter)
        return base.open(self, filter)

    for takes in (False, True):
        body = {"name": "acme.watching", "takes_views": takes, "open": watching_open}
        watching = type("Watching", (base,), body)
        policies.register(watching, replace=True)
        policies.open_block(policies.encode_block(watching(), b"x", num_keys=1))
    copied, view = seen
    assert type(copied) is bytes
    assert isinstance(view, memoryview)
    assert view.readonly


def test_a_cost_model_is_what_a_budget_predicts_a_plug_in_by(
    page: dict[str, Any], tmp_path: Path
) -> None:
    for at, run in enumerate(page["advised"].runs):
        assert run.option.policy == "acme.budgeted-bitmap", at
        made = policies.create(run.option.policy, **run.option.params)
        keys = [b"key%08d" % number for number in range(run.keys)]
        reader = made.open(made.create_filter(keys))
        assert reader.expected_fpr == pytest.approx(run.option.fpr, rel=0.02)
        block = policies.encode_block(made, made.create_filter(keys), num_keys=len(keys))
        assert 8 * len(block) / len(keys) == pytest.approx(run.option.bits_per_key, rel=0.01)
    file = tmp_path / "lsm.toml"
    file.write_text(next(body for body in blocks("toml") if "budget =" in body))
    rule = policies.load(file).rule
    assert rule is not None
    counts = dict(page["levels"])
    foreseen = by_budget.expected(rule, counts, 1 << 30, is_refiltered=True)
    assert all(0 < each.fpr < 1 for each in foreseen.values())
    named = LevelPolicies.uniform(policies.create("acme.bitmap"), 7)
    assert prediction.rate_of(named, 1, 1000) is None


def test_the_tables_and_lists_of_the_page() -> None:
    told = ("What a reader may tell",)
    text = "".join(part for title, part in sections(PAGE).items() if title not in told)
    rows = {row[0] for row in table_rows(text)}
    raised = {row for row in rows if "Error" in row or "Exit" in row} | {"all else"}
    assert {row.strip("`") for row in rows - raised} == {
        field.name for field in attrs.fields(BuildContext)
    }
    assert raised == {
        ", ".join(f"`{error.__name__}`" for error in kind)
        for kind in (containment.INTERRUPTIONS, containment.MOMENTARY)
    } | {"all else"}
    assert f"nest [{block_format.DEEPEST} levels]" in TEXT
    listed = re.search(r"^- ((?:`\w+`,?\s+(?:and )?)+)have a meaning already", TEXT, re.MULTILINE)
    assert listed
    assert set(re.findall(r"`(\w+)`", listed[1])) == RESERVED
    assert f"`{plugins.GROUP}`" in TEXT
    assert f"`{plugins.SWITCH}`" in TEXT


def test_the_entry_point_is_that_of_the_example() -> None:
    packaging = next(body for body in blocks("toml") if "entry-points" in body)
    assert packaging in (EXAMPLE / "pyproject.toml").read_text(encoding="utf-8")
    assert tomllib.loads(packaging)["project"]["entry-points"] == {plugins.GROUP: ENTRY}


def test_the_configuration_of_the_page_loads(
    site: Site, fresh_policies: None, tmp_path: Path
) -> None:
    install_example(site)
    file = tmp_path / "lsm.toml"
    file.write_text(next(body for body in blocks("toml") if "[filters.level" in body))
    levels = policies.load(file)
    assert [policy.name for policy in levels] == [*["blocked"] * 3, *["acme.quotient"] * 4]
    assert levels[3].params() == {"slot_bits": 16}


def test_every_link_leads_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)", TEXT):
        assert (PAGE.parent / target).exists(), target


# --- what users see -------------------------------------------------------------------------------


def message(error: type[FilterError], call: Callable[[], object]) -> str:
    """What a call raises, in words."""
    with pytest.raises(error) as info:
        call()
    assert type(info.value) is error
    return str(info.value)


def local_scan(site: Site) -> Callable[[], Any]:
    """The search for plug-ins, for those of this site alone, and in the order of their names."""

    def scan() -> dict[str, tuple[plugins.Plugin, ...]]:
        found = plugins.scan()
        here = {
            line.partition(" = ")[0]
            for info in site.path.glob("*.dist-info/entry_points.txt")
            for line in info.read_text().splitlines()
        }
        return {name: offers for name, offers in found.items() if name in here}

    return scan


def test_users_see_the_errors_of_the_page(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    def fresh() -> Registry:
        return Registry(BUILTIN, local_scan(site))

    def lookup(name: str) -> Callable[[], object]:
        return lambda: fresh().lookup(name)

    unknown, duplicate = policies.UnknownPolicyError, policies.DuplicatePolicyError
    broken = policies.PluginError
    seen = [message(unknown, lookup("acme.quotient"))]

    install_example(site)
    monkeypatch.setenv("LSM_DISABLE_PLUGINS", "1")
    seen.append(message(unknown, lookup("acme.quotient")))
    for off in ("", "0"):
        monkeypatch.setenv("LSM_DISABLE_PLUGINS", off)
        assert fresh().lookup("acme.quotient").name == "acme.quotient"

    seen.append(
        message(
            policies.UnknownParameterError,
            lambda: fresh().create("acme.quotient", slot_bit=16),
        )
    )
    used = fresh()
    mine = type("QuotientPolicy", (policies.NoFilterPolicy,), {"name": "acme.quotient"})
    mine.__module__ = "mine"
    fresh().register(mine)
    used.lookup("acme.quotient")
    registering = message(duplicate, lambda: used.register(mine))

    site.install("emca-quotient", {"acme.quotient": "emca:Quotient"}, version="2.0")
    seen.append(message(duplicate, lookup("acme.quotient")))
    seen.append(registering)

    site.install("acme-broken", {"acme.broken": "acme_broken:Policy"}, version="0.3")
    site.module(
        "acme_abstract",
        "import policies\nclass Policy(policies.FilterPolicy):\n    name = 'acme.abstract'\n",
    )
    site.install("acme-abstract", {"acme.abstract": "acme_abstract:Policy"}, version="0.3")
    site.module("acme_misnamed", POLICY_SOURCE.format(name="acme.other"))
    site.install("acme-misnamed", {"acme.misnamed": "acme_misnamed:Policy"}, version="0.3")
    site.plugin("acme-golomb", "golomb", version="0.3")
    site.plugin("acme-blocked", "blocked", version="0.3")
    assert fresh().lookup("blocked") is policies.BlockedPolicy
    seen += [
        message(broken, lookup(name))
        for name in ("acme.broken", "acme.abstract", "acme.misnamed", "golomb")
    ]

    raising = "    def open(self, filter):\n        raise KeyError('oops')\n"
    site.module("acme_raising", POLICY_SOURCE.format(name="acme.raising") + raising)
    site.install("acme-raising", {"acme.raising": "acme_raising:Policy"}, version="0.3")
    example = sys.modules["acme_quotient"].QuotientPolicy
    cut = example().create_filter([b"key"] * 10)[:9]
    for name, filter, error in (
        ("acme.raising", b"x", broken),
        ("acme.quotient", cut, policies.CorruptBlockError),
    ):
        registry = fresh()
        if name == "acme.quotient":
            registry.register(example)
        monkeypatch.setattr(policies.registry, "lookup", registry.lookup)
        block = policies.encode_block(registry.create(name), filter, num_keys=1)
        with pytest.raises(error) as info:
            policies.open_block(block)
        seen.append(str(info.value))
        assert policies.describe_block(block).policy == name

    assert [" ".join(body.split()) for body in blocks("text")[1:]] == seen
