"""What plug-ins raise: where it stays, and what is the caller's own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest

import policies
from policies import FilterPolicy, LevelPolicies, PluginError, PolicyConfigError, UnknownPolicyError
from policies.containment import INTERRUPTIONS, MOMENTARY, is_attended, is_momentary, let_pass
from policies.errors import cause
from policies.registry import Registry
from tests.policies.conftest import Site


class Panic(BaseException):
    """What an extension in another language raises."""


class Poseur(Panic):
    """Says that it is an interruption."""

    __class__ = KeyboardInterrupt  # type: ignore[assignment]


FOREIGN = (ValueError, Panic, Poseur, asyncio.CancelledError, *MOMENTARY)


@pytest.mark.parametrize("error", INTERRUPTIONS)
def test_an_interruption_passes_where_somebody_called(error: type[BaseException]) -> None:
    with pytest.raises(error):
        let_pass(error())
    let_pass(error(), attended=False)


@pytest.mark.parametrize("error", FOREIGN)
def test_nothing_else_passes(error: type[BaseException]) -> None:
    let_pass(error())
    let_pass(error(), attended=False)


def test_only_the_main_thread_is_ever_interrupted() -> None:
    seen = []
    thread = threading.Thread(target=lambda: seen.append(is_attended()))
    thread.start()
    thread.join()
    assert seen == [False]
    assert is_attended()


def test_what_tells_of_the_moment() -> None:
    class FullError(MemoryError):
        """A kind of it."""

    assert all(is_momentary(error()) for error in (*MOMENTARY, FullError))
    assert not any(is_momentary(error) for error in (None, ValueError(), Panic(), SystemExit()))


@pytest.mark.parametrize("said", [ValueError, Panic])
def test_an_error_whose_words_fail_is_called_by_its_class(said: type[BaseException]) -> None:
    class MuteError(Exception):
        def __str__(self) -> str:
            raise said

    assert cause(MuteError()) == "MuteError"
    assert cause(KeyError("x")) == "KeyError: 'x'"


# -- In the registry -----------------------------------------------------------------------

PANIC = "class Panic(BaseException): pass\n"
BROKEN = {
    "import": f"{PANIC}raise Panic('out of order')\n",
    "exception group": "raise BaseExceptionGroup('out of order', [KeyError()])\n",
    "metaclass": f"""
from policies import FilterPolicy
{PANIC}
class Meta(type(FilterPolicy)):
    @property
    def layouts(cls): raise Panic('out of order')
class Policy(FilterPolicy, metaclass=Meta):
    name = 'acme.broken'
    def create_filter(self, keys): return b'x'
    def key_may_match(self, key, filter): return True
""",
}


@pytest.mark.parametrize("how", BROKEN)
def test_a_plug_in_that_panics_when_it_is_loaded(site: Site, registry: Registry, how: str) -> None:
    site.module("acme_broken", BROKEN[how])
    site.install("acme-broken", {"acme.broken": "acme_broken:Policy"})
    with pytest.raises(PluginError, match=r"'acme\.broken' of acme-broken 1\.0 .*out of order"):
        registry.lookup("acme.broken")
    assert registry.lookup("blocked") is policies.BlockedPolicy


@pytest.mark.parametrize("error", INTERRUPTIONS)
def test_loading_a_plug_in_can_be_interrupted(
    site: Site, registry: Registry, error: type[BaseException]
) -> None:
    site.module("acme_broken", f"raise {error.__name__}")
    site.install("acme-broken", {"acme.broken": "acme_broken:Policy"})
    with pytest.raises(error):
        registry.lookup("acme.broken")


def test_metadata_that_cannot_be_read_are_no_end_of_the_world(
    site: Site, registry: Registry
) -> None:
    site.plugin("acme-good", "acme.good")
    site.install("acme-torn", {"acme.torn": "acme_torn:Policy"})
    torn = site.path / "acme_torn-1.0.dist-info" / "entry_points.txt"
    good = torn.read_bytes()
    torn.write_bytes(b"\xff\xfe")
    for ask in (registry.available, lambda: registry.lookup("acme.good")):
        with pytest.raises(PluginError, match=r"cannot be looked for.*LSM_DISABLE_PLUGINS=1"):
            ask()
    assert registry.lookup("blocked") is policies.BlockedPolicy
    torn.write_bytes(good)
    assert registry.lookup("acme.good").name == "acme.good"
    with pytest.raises(UnknownPolicyError):
        registry.lookup("acme.lost")


# -- In configurations ---------------------------------------------------------------------


class TroubledPolicy(FilterPolicy):
    """Raises what it is told to, where it is told to."""

    name: ClassVar[str] = "acme.troubled"
    trouble: ClassVar[dict[str, type[BaseException]]] = {}

    def __init__(self) -> None:
        self._reach("__init__")

    def _reach(self, step: str) -> None:
        if step in self.trouble:
            raise self.trouble[step]("out of order")

    def create_filter(self, keys: Sequence[bytes]) -> bytes:
        return b"."

    def key_may_match(self, key: bytes, filter: bytes) -> bool:
        return True

    def params(self) -> dict[str, Any]:
        self._reach("params")
        return {}

    def with_seed(self, seed: int) -> TroubledPolicy:
        self._reach("with_seed")
        return self


@pytest.fixture
def troubled(monkeypatch: pytest.MonkeyPatch) -> type[TroubledPolicy]:
    monkeypatch.setattr(policies.registry._REGISTRY, "_registered", {})
    monkeypatch.setattr(TroubledPolicy, "trouble", {})
    return policies.register(TroubledPolicy)


DOCUMENT = {"filters": {"policy": "acme.troubled"}}


@pytest.mark.parametrize("error", FOREIGN)
def test_a_configuration_names_the_table_of_a_plug_in_that_panics(
    troubled: type[TroubledPolicy], error: type[BaseException]
) -> None:
    troubled.trouble["__init__"] = error
    with pytest.raises(PolicyConfigError, match=r"lsm\.toml: \[filters\]: .*out of order"):
        LevelPolicies.from_config(DOCUMENT, source="lsm.toml")


@pytest.mark.parametrize("error", [KeyError, Panic, asyncio.CancelledError])
@pytest.mark.parametrize("step", ["params", "with_seed"])
def test_levels_name_the_plug_in_that_panics(
    troubled: type[TroubledPolicy], step: str, error: type[BaseException]
) -> None:
    levels = LevelPolicies.from_config(DOCUMENT)
    troubled.trouble[step] = error
    with pytest.raises(PluginError, match=r"TroubledPolicy raised in .*out of order"):
        levels.to_toml() if step == "params" else levels.with_seed(1)


@pytest.mark.parametrize("error", [KeyError, Panic])
def test_levels_are_written_without_comparing_policies(
    troubled: type[TroubledPolicy], monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    def refuse(_self: object, _other: object) -> bool:
        raise error

    monkeypatch.setattr(troubled, "__eq__", refuse)
    apart = {"filters": {**DOCUMENT["filters"], "level": {"3": DOCUMENT["filters"]}}}
    levels = LevelPolicies.from_config(apart)
    assert levels.to_toml() == LevelPolicies.from_config(DOCUMENT).to_toml()


@pytest.mark.parametrize("error", INTERRUPTIONS)
def test_configuring_can_be_interrupted(
    troubled: type[TroubledPolicy], error: type[BaseException]
) -> None:
    levels = LevelPolicies.from_config(DOCUMENT)
    for step in ("__init__", "params", "with_seed"):
        troubled.trouble[step] = error
    for ask in (
        lambda: LevelPolicies.from_config(DOCUMENT),
        levels.to_toml,
        lambda: levels.with_seed(1),
    ):
        with pytest.raises(error):
            ask()


def test_a_file_that_nests_too_deeply_is_not_valid_toml(tmp_path: Path) -> None:
    file = tmp_path / "lsm.toml"
    for text in ("x = " + "[" * 100_000, "x = " + "{a=" * 100_000):
        file.write_text(text)
        with pytest.raises(PolicyConfigError, match=r"lsm\.toml: not valid TOML"):
            policies.load(file)
