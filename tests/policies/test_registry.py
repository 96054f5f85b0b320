"""Names and what stands behind them: what is built in, and what a program registers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

import policies
from filters.errors import FilterError
from filters.families import every
from policies import (
    DuplicatePolicyError,
    FilterPolicy,
    UnknownParameterError,
    UnknownPolicyError,
)
from policies.builtin import BUILTIN
from policies.plugins import Plugin
from policies.registry import Registry

NAMES = (
    "binary-fuse",
    "blocked",
    "bumped-ribbon",
    "cassandra",
    "classic",
    "counting",
    "cuckoo",
    "leveldb",
    "none",
    "ribbon",
    "rocksdb",
    "surf",
    "xor",
)


class Width(FilterPolicy):
    """A policy of three members, with a parameter the plain way."""

    name: ClassVar[str] = "acme.width"

    def __init__(self, width: int = 1):
        self.width = width

    def params(self) -> dict[str, Any]:
        return {"width": self.width}

    def create_filter(self, keys: Sequence[bytes]) -> bytes:
        return b"."

    def key_may_match(self, key: bytes, filter: bytes) -> bool:
        return True


class TestBuiltIn:
    def test_all_are_there(self, registry: Registry) -> None:
        assert set(NAMES) <= set(registry.available())
        assert registry.available() == tuple(sorted(registry.available()))

    def test_every_family_is_a_policy_or_a_structure(self) -> None:
        named = {cls.name for cls in BUILTIN} - {"none"}
        structures = {family.name for family in every().values() if not family.policy}
        assert named == set(every()) - structures
        for name in structures:
            with pytest.raises(UnknownPolicyError):
                policies.create(name)

    @pytest.mark.parametrize("cls", BUILTIN)
    def test_names_lead_to_classes(self, cls: type[FilterPolicy]) -> None:
        assert policies.lookup(cls.name) is cls
        assert type(policies.create(cls.name)) is cls

    @pytest.mark.parametrize(
        ("name", "given", "params"),
        [
            ("blocked", {}, {"bits_per_key": 10}),
            ("blocked", {"fpr": 0.01}, {"fpr": 0.01}),
            ("blocked", {"num_probes": 4}, {"bits_per_key": 10, "num_probes": 4}),
            ("classic", {"bits_per_key": 12.0}, {"bits_per_key": 12}),
            ("classic", {"bits_per_key": 12.5}, {"bits_per_key": 12.5}),
            ("counting", {}, {"counters_per_key": 10}),
            ("cuckoo", {}, {"fingerprint_bits": 12}),
            ("cuckoo", {"bits_per_key": 16}, {"bits_per_key": 16}),
            ("leveldb", {}, {"bits_per_key": 10}),
            ("rocksdb", {}, {"bits_per_key": 10, "optimize_filters_for_memory": True}),
            ("binary-fuse", {}, {"fingerprint_bits": 8}),
            ("xor", {}, {"fingerprint_bits": 8}),
            ("cassandra", {}, {"fp_chance": 0.01}),
            ("cassandra", {"fp_chance": 1.0}, {"fp_chance": 1}),
            ("bumped-ribbon", {}, {"fpr": 0.01}),
            ("none", {}, {}),
        ],
    )
    def test_parameters_are_what_a_filter_will_be_made_of(
        self, name: str, given: dict[str, Any], params: dict[str, Any]
    ) -> None:
        policy = policies.create(name, **given)
        assert policy.params() == params
        assert [type(value) for value in policy.params().values()] == list(
            map(type, params.values())
        )
        assert policies.create(name, **params) == policy

    def test_a_default_equals_itself_written_out(self) -> None:
        assert policies.BlockedPolicy() == policies.BlockedPolicy(bits_per_key=10)
        assert hash(policies.BlockedPolicy()) == hash(policies.BlockedPolicy(bits_per_key=10.0))
        assert policies.BlockedPolicy() != policies.BlockedPolicy(bits_per_key=11)
        assert policies.BlockedPolicy() != policies.ClassicPolicy()

    @given(st.floats(1, 16), st.one_of(st.none(), st.integers(1, 8)))
    def test_what_params_say_makes_an_equal_policy(self, bits: float, probes: int | None) -> None:
        policy = policies.BlockedPolicy(bits_per_key=bits, num_probes=probes)
        assert policies.create("blocked", **policy.params()) == policy

    @pytest.mark.parametrize(
        ("name", "given", "error", "message"),
        [
            ("blocked", {"fpr": 2}, ValueError, r"fpr of a blocked .* 2, allowed are .* to"),
            ("blocked", {"fpr": 0.1, "bits_per_key": 9}, ValueError, "bits_per_key and fpr"),
            ("classic", {"bits_per_key": "10"}, TypeError, "is a number, not str"),
            ("classic", {"num_probes": 0}, ValueError, "num_probes of a classic filter"),
            ("counting", {"counters_per_key": 65}, ValueError, "counters_per_key of a counting"),
            ("cuckoo", {"fingerprint_bits": 5}, ValueError, "fingerprint_bits of a cuckoo"),
            ("leveldb", {"bits_per_key": 9.5}, ValueError, "whole number, not 9.5"),
            ("rocksdb", {"bits_per_key": 101}, ValueError, "bits_per_key of a rocksdb"),
            ("rocksdb", {"optimize_filters_for_memory": 1}, TypeError, "True or False"),
            ("binary-fuse", {"fingerprint_bits": 9}, ValueError, "fingerprint_bits of a binary"),
            ("xor", {"bits_per_key": 9}, ValueError, "bits_per_key of a xor filter"),
            ("cassandra", {"fp_chance": 6.71e-05}, ValueError, "demands more than that"),
            ("cassandra", {"fp_chance": 1.5}, ValueError, "fp_chance of a cassandra .* 1.5"),
        ],
    )
    def test_bad_values_fail_when_the_policy_is_made(
        self, name: str, given: dict[str, Any], error: type[Exception], message: str
    ) -> None:
        with pytest.raises(error, match=message):
            policies.create(name, **given)

    def test_a_seed_is_checked_and_stays_secret(self) -> None:
        assert "seed" not in repr(policies.BlockedPolicy().with_seed(77))
        with pytest.raises(UnknownParameterError, match="'seed'"):
            policies.create("blocked", seed=1)
        with pytest.raises(ValueError, match="seed is out of range"):
            policies.BlockedPolicy().with_seed(-1)
        with pytest.raises(ValueError, match="seed is out of range"):
            policies.BlockedPolicy(seed=2**64)
        with pytest.raises(TypeError, match="seed is an int"):
            policies.BlockedPolicy().with_seed("77")  # type: ignore[arg-type]

    def test_only_leveldb_has_windows(self) -> None:
        windowed = [cls.name for cls in BUILTIN if "block" in cls.layouts]
        assert windowed == ["leveldb"]


class TestUnknown:
    def test_the_message_says_what_is_known_and_what_to_do(self, registry: Registry) -> None:
        with pytest.raises(UnknownPolicyError) as info:
            registry.create("binary_fuse")
        message = str(info.value)
        assert message.startswith("unknown filter policy 'binary_fuse'")
        assert "did you mean 'binary-fuse'?" in message
        assert ", ".join(NAMES[:7]) in message
        assert "'lsm.filter_policies'" in message
        assert "policies.register(cls)" in message
        assert isinstance(info.value, LookupError)
        assert isinstance(info.value, FilterError)

    def test_nothing_is_near(self, registry: Registry) -> None:
        with pytest.raises(UnknownPolicyError) as info:
            registry.lookup("zzz")
        assert "did you mean" not in str(info.value)

    @pytest.mark.parametrize("name", [None, 3, b"blocked", ["blocked"]])
    def test_a_name_is_text(self, registry: Registry, name: Any) -> None:
        with pytest.raises(TypeError, match="name is a str, not"):
            registry.lookup(name)

    def test_an_unknown_parameter(self, registry: Registry) -> None:
        with pytest.raises(UnknownParameterError) as info:
            registry.create("cuckoo", fingerprint_bit=8)
        message = str(info.value)
        assert "unknown parameter 'fingerprint_bit' of filter policy 'cuckoo'" in message
        assert "did you mean 'fingerprint_bits'?" in message
        assert "allowed are bits_per_key, fingerprint_bits, fpr" in message
        assert isinstance(info.value, TypeError)
        assert isinstance(info.value, FilterError)

    def test_a_parameter_of_a_policy_without_any(self, registry: Registry) -> None:
        with pytest.raises(UnknownParameterError, match="'fpr' of filter policy 'none': it takes"):
            registry.create("none", fpr=0.1)

    def test_a_plain_class_takes_what_its_signature_says(self, registry: Registry) -> None:
        registry.register(Width)
        assert registry.create("acme.width", width=3).params() == {"width": 3}
        with pytest.raises(UnknownParameterError, match="did you mean 'width'"):
            registry.create("acme.width", with_=3)

    def test_a_class_that_takes_anything_takes_anything(self, registry: Registry) -> None:
        class Anything(Width):
            name: ClassVar[str] = "acme.anything"

            def __init__(self, **params: int):
                super().__init__(sum(params.values()))

        registry.register(Anything)
        assert registry.create("acme.anything", a=1, b=2).params() == {"width": 3}

    def test_a_private_field_goes_by_its_public_name(self, registry: Registry) -> None:
        @attrs.frozen
        class Private(Width):
            name: ClassVar[str] = "acme.private"
            _width: int = 5
            derived: int = attrs.field(init=False, default=1)

            def params(self) -> dict[str, Any]:
                return FilterPolicy.params(self)

        registry.register(Private)
        assert registry.create("acme.private", width=6).params() == {"width": 6}


class TestRegister:
    def test_a_class_is_found_by_its_name(self, registry: Registry) -> None:
        assert registry.register(Width) is Width
        assert registry.lookup("acme.width") is Width
        assert "acme.width" in registry.available()

    def test_again_is_no_error_and_another_is(self, registry: Registry) -> None:
        class Other(Width):
            pass

        registry.register(Width)
        registry.register(Width)
        with pytest.raises(DuplicatePolicyError) as info:
            registry.register(Other)
        message = str(info.value)
        assert f"'acme.width' is {__name__}.Width already, not {__name__}." in message
        assert "Other: choose another name, or pass replace=True" in message
        assert registry.lookup("acme.width") is Width
        assert registry.register(Other, replace=True) is Other
        assert registry.lookup("acme.width") is Other

    def test_refresh_keeps_what_the_program_registered(self, registry: Registry) -> None:
        registry.register(Width)
        registry.refresh()
        assert registry.lookup("acme.width") is Width

    @pytest.mark.parametrize("replace", [False, True])
    def test_names_that_are_built_in_stay_so(self, registry: Registry, replace: bool) -> None:
        class Blocked(Width):
            name: ClassVar[str] = "blocked"

        with pytest.raises(ValueError, match=r"'blocked' is built in: .* 'acme\.blocked'"):
            registry.register(Blocked, replace=replace)

    def test_names_without_a_prefix_are_reserved(self, registry: Registry) -> None:
        class Golomb(Width):
            name: ClassVar[str] = "golomb"

        with pytest.raises(ValueError, match=r"'golomb' is reserved: .* 'acme\.golomb'"):
            registry.register(Golomb)

    @pytest.mark.parametrize("name", ["", "Acme.x", ".x", "-a.x", "a b.c", "ä.x", "a." + "x" * 63])
    def test_names_that_break_the_grammar(self, registry: Registry, name: str) -> None:
        cls = type("Bad", (Width,), {"name": name})
        with pytest.raises(ValueError, match=r"has the name .* allowed are 1 to 64 of a-z"):
            registry.register(cls)

    @pytest.mark.parametrize("name", ["a.", "0.x", "a.b.c-d_e", "a." + "x" * 62])
    def test_names_at_the_edge_of_the_grammar(self, registry: Registry, name: str) -> None:
        cls = type("Good", (Width,), {"name": name})
        assert registry.register(cls) is cls

    @pytest.mark.parametrize(
        ("offered", "message"),
        [
            (Width(), "is a class, not a Width"),
            ("acme.width", "is a class, not a str"),
            (dict, "builtins.dict is not a subclass of policies.FilterPolicy"),
            (FilterPolicy, "is abstract: it lacks create_filter"),
            (type("Nameless", (Width,), {"name": None}), "has no name"),
        ],
    )
    def test_what_is_no_policy_class(self, registry: Registry, offered: Any, message: str) -> None:
        with pytest.raises(TypeError, match=message):
            registry.register(offered)

    def test_a_name_that_became_a_field(self, registry: Registry) -> None:
        @attrs.frozen
        class Field(Width):
            name: str = "acme.field"  # type: ignore[misc]

        with pytest.raises(TypeError, match=r'has no name: write name: ClassVar\[str\] = "..."'):
            registry.register(Field)

    @pytest.mark.parametrize("layouts", [frozenset(), {"block"}, {"table", "page"}])
    def test_layouts_that_do_not_exist(self, registry: Registry, layouts: Any) -> None:
        cls = type("Laid", (Width,), {"layouts": layouts})
        with pytest.raises(ValueError, match=r"has the layouts .* allowed are table, or table and"):
            registry.register(cls)

    @pytest.mark.parametrize("parameter", ["policy", "layout", "level", "seed"])
    def test_parameters_with_another_meaning(self, registry: Registry, parameter: str) -> None:
        fields = {parameter: attrs.field(default=1)}
        cls = attrs.make_class("Made", fields, bases=(Width,), class_body={"name": "acme.made"})
        with pytest.raises(ValueError, match=f"has a parameter '{parameter}'"):
            registry.register(cls)


class TestLookingOnlyOnNeed:
    def test_names_that_are_known_need_no_search(self) -> None:
        searches = 0

        def scan() -> Mapping[str, tuple[Plugin, ...]]:
            nonlocal searches
            searches += 1
            return {}

        registry = Registry(BUILTIN, scan)
        registry.register(Width)
        for name in (*NAMES, "acme.width"):
            registry.lookup(name)
        assert searches == 0
        for _ in range(3):
            registry.available()
            with pytest.raises(UnknownPolicyError):
                registry.lookup("acme.lost")
        assert searches == 1
        registry.refresh()
        registry.available()
        assert searches == 2
