"""The harness that keeps an engine safe from every way a policy can go wrong."""

from __future__ import annotations

import asyncio
import re
import threading
from abc import ABCMeta
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

import policies
from filters.families import KEY_FAMILIES
from policies import BuildContext, BuildResult, FilterPolicy, VerifiedBuilder, door
from policies.builtin import BUILTIN, BlockedPolicy
from policies.testing import KEY_SETS

KEYS = [b"a", b"b", b"b", b"c"]


def one_by_one(builder: VerifiedBuilder, keys: Sequence[bytes]) -> None:
    for key in keys:
        builder.add(key)


WAYS = {"one by one": one_by_one, "at once": VerifiedBuilder.add_many}
add_all = one_by_one


@pytest.fixture(autouse=True, params=WAYS)
def way_of_adding(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every claim holds for both ways."""
    monkeypatch.setitem(globals(), "add_all", WAYS[request.param])


def build(policy: FilterPolicy, keys: Sequence[bytes] = KEYS) -> BuildResult:
    builder = VerifiedBuilder(policy, BuildContext(level=2, expected_keys=len(keys)))
    add_all(builder, keys)
    return builder.finish()


class Scripted(FilterPolicy):
    """A policy whose every step can be replaced, for whichever instance reads."""

    name: ClassVar[str] = "test.scripted"
    steps: ClassVar[dict[str, Any]] = {
        "new_builder": lambda: None,
        "add": lambda: None,
        "finish": lambda: b"filter",
        "open": lambda: None,
        "one": lambda: True,
        "many": lambda: [True] * 4,
        "range": lambda *_: True,
        "params": dict,
    }

    def create_filter(self, keys: Sequence[bytes]) -> bytes:
        raise AssertionError("the builder is asked, not the policy")

    def new_builder(self, context: BuildContext) -> Any:
        self.context = context
        self.steps["new_builder"]()
        return ScriptedBuilder(self.steps)

    def open(self, filter: bytes) -> Any:
        self.steps["open"]()
        return ScriptedReader(self.steps)

    def params(self) -> Any:
        return self.steps["params"]()


class ScriptedBuilder:
    """Its ``num_keys`` is what the script says, if it says so."""

    def __init__(self, steps: dict[str, Any]):
        self.steps = steps
        if "built_keys" in steps:
            self.num_keys = steps["built_keys"]

    def add(self, key: bytes) -> None:
        self.steps["add"]()

    def finish(self) -> Any:
        return self.steps["finish"]()


class ScriptedReader:
    """Like :class:`ScriptedBuilder`."""

    def __init__(self, steps: dict[str, Any]):
        self.steps = steps
        if "read_keys" in steps:
            self.num_keys = steps["read_keys"]

    def might_contain(self, key: bytes) -> Any:
        return self.steps["one"]()

    def might_contain_many(self, keys: list[bytes]) -> Any:
        keys.clear()  # what is handed to a policy is the policy's
        return self.steps["many"]()

    def may_contain_range(self, low: bytes | None, high: bytes | None) -> Any:
        return self.steps["range"](low, high)


def scripted(**steps: Any) -> Scripted:
    """An instance of a class of its own, that follows this script."""
    cls = type("Scripted", (Scripted,), {"steps": {**Scripted.steps, **steps}})
    policy: Scripted = cls()
    return policy


class Panic(BaseException):
    """What an extension in another language raises."""


STEPS = ("new_builder", "add", "finish", "open", "one", "many", "params")


def gone(_self: object) -> str:
    raise Panic("gone")


def raising(error: BaseException) -> Callable[[], None]:
    def step() -> None:
        raise error

    return step


class TestBuilt:
    @pytest.mark.parametrize("cls", [cls for cls in BUILTIN if cls.name != "none"])
    @pytest.mark.parametrize("shape", ["no keys", "the empty key", "repeats", "3000 sorted"])
    def test_what_is_built_in_is_built(self, cls: type[FilterPolicy], shape: str) -> None:
        keys = KEY_SETS[shape]
        result = build(cls(), keys)
        assert (result.state, result.reason) == ("built", "")
        assert result.filter is not None
        assert result.num_keys == (len(keys) if cls.name == "leveldb" else len(set(keys)))
        block = policies.encode_block(cls(), result.filter, num_keys=result.num_keys)
        assert all(policies.open_block(block).might_contain_many(keys))

    @given(st.lists(st.binary(max_size=8)))
    def test_any_keys(self, keys: list[bytes]) -> None:
        result = build(policies.CuckooPolicy(), keys)
        assert result.state == "built"
        assert result.num_keys == len(set(keys))

    def test_the_policy_sees_the_context(self) -> None:
        policy = scripted()
        build(policy)
        assert policy.context == BuildContext(level=2, expected_keys=4)

    def test_bytes_of_a_filter_are_not_shown(self) -> None:
        assert "secret" not in repr(BuildResult("built", b"secret", 1))

    @pytest.mark.parametrize(
        ("counts", "num_keys"),
        [
            ({}, 3),
            ({"built_keys": 4}, 4),
            ({"built_keys": None, "read_keys": 2}, 2),
            ({"read_keys": 1}, 1),
            ({"built_keys": 0}, 3),
            ({"built_keys": -1}, 3),
            ({"built_keys": 5}, 3),
            ({"built_keys": True}, 3),
            ({"built_keys": 2.0, "read_keys": "2"}, 3),
            ({"built_keys": 2**70, "read_keys": 2}, 2),
        ],
    )
    def test_a_count_is_believed_where_it_can_be_right(
        self, counts: dict[str, Any], num_keys: int
    ) -> None:
        assert build(scripted(**counts)) == BuildResult("built", b"filter", num_keys)

    def test_a_count_of_no_keys_is_none(self) -> None:
        policy = scripted(many=list, built_keys=7)
        assert build(policy, []) == BuildResult("built", b"filter", 0)

    def test_no_bytes_for_no_keys(self) -> None:
        result = build(scripted(many=list, finish=bytes), [])
        assert result == BuildResult("built", b"", 0)


class TestDeclined:
    def test_none_is_an_answer(self) -> None:
        result = build(policies.NoFilterPolicy())
        assert result == BuildResult("declined", reason="policy 'none' declined 4 keys")


class TestFailed:
    @pytest.mark.parametrize(
        ("step", "cause"),
        [
            ("new_builder", r"raised in new_builder\(\)"),
            ("add", r"raised in add\(\)"),
            ("finish", r"raised in finish\(\)"),
            ("open", "raised while its filter was verified.*failed to open a filter"),
            ("one", "raised while its filter was verified"),
            ("many", "raised while its filter was verified"),
            ("params", "raised while its filter was verified.*cannot be named in a block"),
        ],
    )
    @pytest.mark.parametrize(
        "error",
        [
            ZeroDivisionError("oops"),
            MemoryError("oops"),
            RecursionError("oops"),
            KeyError("oops"),
            asyncio.CancelledError("oops"),
            Panic("oops"),
        ],
        ids=lambda error: type(error).__name__,
    )
    def test_an_exception_of_the_policy(self, step: str, cause: str, error: BaseException) -> None:
        result = build(scripted(**{step: raising(error)}))
        assert (result.state, result.filter, result.num_keys) == ("failed", None, 0)
        expected = f"policy 'test.scripted' {cause}.*{type(error).__name__}: '?oops"
        assert re.fullmatch(expected + "'?", result.reason)

    @pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit])
    @pytest.mark.parametrize("step", STEPS)
    def test_an_interruption_passes(self, step: str, error: type[BaseException]) -> None:
        with pytest.raises(error):
            build(scripted(**{step: raising(error())}))

    @pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit])
    @pytest.mark.parametrize("step", STEPS)
    def test_where_nobody_can_be_interrupted_it_is_the_policys(
        self, step: str, error: type[BaseException]
    ) -> None:
        results: list[BuildResult] = []

        def in_the_background() -> None:
            results.append(build(scripted(**{step: raising(error("out"))})))

        thread = threading.Thread(target=in_the_background)
        thread.start()
        thread.join()
        assert [result.state for result in results] == ["failed"]
        assert f"{error.__name__}: out" in results[0].reason

    def test_bytes_with_a_mind_of_their_own(self) -> None:
        class Bytes(bytes):
            def __bool__(self) -> bool:
                raise Panic("no truth")

        result = build(scripted(finish=lambda: Bytes(b"x")))
        assert "finished with Bytes, not with bytes" in result.reason

    def test_a_name_that_raises(self) -> None:
        nameless = type("Nameless", (Scripted,), {"name": property(gone)})
        assert build(nameless()).reason == "policy 'Nameless' raised in new_builder(): Panic: gone"

    def test_a_count_that_raises(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(ScriptedReader, "num_keys", property(gone), raising=False)
        assert build(scripted()).reason.endswith("while its filter was verified: Panic: gone")

    def test_an_exception_that_raises_when_it_is_shown(self) -> None:
        class Mute(BaseException):
            __str__ = gone

        assert build(scripted(add=raising(Mute()))).reason.endswith("raised in add(): Mute")

    @pytest.mark.parametrize(
        ("script", "reason"),
        [
            ({"finish": lambda: "text"}, "finished with str, not with bytes or None"),
            ({"finish": lambda: bytearray(b"x")}, "finished with bytearray, not with bytes"),
            ({"finish": lambda: 0}, "finished with int, not with bytes or None"),
            ({"finish": bytes}, "finished with no bytes for 4 keys"),
            ({"one": lambda: False}, "misses 4 of its 4 keys"),
            ({"one": lambda: None}, "answered a key with NoneType, not with True or False"),
            ({"one": lambda: 1}, "answered a key with int, not with True or False"),
            ({"many": lambda: [True] * 3}, "gave 3 answers for 4 keys"),
            ({"many": lambda: [True] * 5}, "gave 5 answers for 4 keys"),
            ({"many": lambda: [True, False, None, True]}, "misses 2 of its 4 keys"),
            ({"many": lambda: "abcd"}, "answered many keys with str, not with a list"),
            ({"many": lambda: None}, "answered many keys with NoneType"),
            ({"params": lambda: {"x": b""}}, "cannot be named in a block"),
        ],
    )
    def test_a_wrong_result(self, script: dict[str, Any], reason: str) -> None:
        result = build(scripted(**script))
        assert (result.state, result.filter, result.num_keys) == ("failed", None, 0)
        assert result.reason.startswith("policy 'test.scripted' ")
        assert reason in result.reason

    @pytest.mark.parametrize(
        "denied", [(None, None), (b"c", None), (b"b", b"b\x00"), (b"b", b"c"), (b"a", b"b")]
    )
    def test_a_range_that_is_denied(self, denied: tuple[bytes | None, bytes | None]) -> None:
        result = build(scripted(range=lambda *asked: asked != denied))
        assert result.state == "failed"
        assert result.reason.endswith("denies a range which holds one of its keys")

    def test_an_answer_for_a_range_that_is_neither_true_nor_false(self) -> None:
        result = build(scripted(range=lambda *_: 1))
        assert result.reason.endswith("answered a range with int, not with True or False")

    def test_a_range_that_raises(self) -> None:
        def refuse(*_: object) -> None:
            raise Panic("oops")

        assert build(scripted(range=refuse)).reason.endswith("was verified: Panic: oops")

    def test_a_reader_that_is_none(self) -> None:
        class NoReader(Scripted):
            def open(self, filter: bytes) -> Any:
                return None

        assert "its reader is a NoneType" in build(NoReader()).reason

    def test_a_failed_builder_goes_on_taking_keys(self) -> None:
        calls: list[int] = []

        def add() -> None:
            calls.append(1)
            raise ValueError("full")

        result = build(scripted(add=add))
        assert result.reason == "policy 'test.scripted' raised in add(): ValueError: full"
        assert len(calls) == 1


class TestMisuse:
    @pytest.mark.parametrize("policy", [policies.BlockedPolicy(), scripted(add=raising(OSError()))])
    def test_a_finished_builder_is_finished(self, policy: FilterPolicy) -> None:
        builder = VerifiedBuilder(policy, BuildContext())
        builder.add(b"a")
        builder.finish()
        with pytest.raises(ValueError, match="has finished"):
            builder.add(b"a")
        with pytest.raises(ValueError, match="has finished"):
            builder.finish()


@pytest.mark.parametrize("name", sorted(KEY_FAMILIES))
def test_one_that_takes_no_digests_keeps_keys_in_any_order(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And is asked in one way, without a line of Python for each key."""
    monkeypatch.delattr(door, "ways_in")
    builder = VerifiedBuilder(policies.create(name), BuildContext())
    keys = [b"key%d" % i for i in range(500)]
    for key in [*keys, *keys[::-7]]:
        builder.add(key)
    result = builder.finish()
    assert (result.state, result.num_keys) == ("built", 500)
    assert result.filter is not None
    assert all(policies.create(name).open(result.filter).might_contain_many(keys))


@pytest.mark.parametrize(
    "name", sorted({policy.name for policy in BUILTIN} - {"none", *KEY_FAMILIES})
)
def test_a_built_in_policy_keeps_digests_and_no_keys(name: str) -> None:
    builder = VerifiedBuilder(policies.create(name), BuildContext())
    keys = [b"key%d" % i for i in range(500)]
    for key in keys:
        builder.add(key)
    assert not builder._keys
    assert builder._digests is not None
    assert len(builder._digests) == 500
    result = builder.finish()
    assert (result.state, result.num_keys) == ("built", 500)
    assert result.filter is not None
    assert all(policies.create(name).open(result.filter).might_contain_many(keys))


@pytest.mark.parametrize("name", ["blocked", *sorted(KEY_FAMILIES)])
def test_a_filter_that_misses_keys_is_dropped(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a built-in policy's keys, or their digests, are kept for."""
    cls: Any = policies.lookup(name)
    honest = cls.build

    def forgetful(self: Any, keys: Any) -> Any:
        return honest(self, [b"some other key"])

    monkeypatch.setattr(cls, "build", forgetful)
    result = build(cls().with_seed(5), [b"key%d" % i for i in range(100)])
    assert result.state == "failed"
    assert re.search(rf"'{name}' built a filter that misses \d+ of its 100 keys", result.reason)


class PoseurMeta(ABCMeta):
    """Makes classes that say they are whatever they are compared with."""

    def __eq__(cls, other: object) -> bool:
        return True

    def __hash__(cls) -> int:
        return 0


def test_no_class_can_say_that_it_is_built_in() -> None:
    """Only the readers of our own classes are believed to answer for a digest as for a key."""

    class Poseur(BlockedPolicy, metaclass=PoseurMeta):
        name: ClassVar[str] = "acme.poseur"

        def open(self, filter: Any) -> Any:
            return ScriptedReader({**Scripted.steps, "one": lambda: None})

    result = build(Poseur(), [b"key%d" % i for i in range(100)])
    assert result.state == "failed"
    assert "answered a key with NoneType" in result.reason


def test_a_filter_is_opened_as_a_lookup_opens_it() -> None:
    """By an instance without parameters, and where views are taken from a view."""
    opened: list[tuple[int, Any]] = []

    @attrs.frozen
    class Watched(FilterPolicy):
        name: ClassVar[str] = "acme.watched"
        takes_views: ClassVar[bool] = True
        width: int = 3

        def create_filter(self, keys: Sequence[bytes]) -> bytes:
            return b"filter"

        def open(self, filter: bytes) -> Any:
            opened.append((self.width, filter))
            return policies.NoFilterPolicy().open(filter)

    assert build(Watched(7)).state == "built"
    assert opened == [(3, b"filter")]
    assert isinstance(opened[0][1], memoryview)


def test_whoever_will_read_a_filter_verifies_it() -> None:
    policy = scripted(finish=lambda: b"filter\x06")
    builder = VerifiedBuilder(policy, BuildContext(), read_by=policies.LevelDBPolicy())
    add_all(builder, KEYS)
    assert "misses" in builder.finish().reason


def test_a_policy_derived_from_a_built_in_one_is_probed_with_its_keys() -> None:
    """It may hash as it likes, so that digests would prove nothing."""

    class Reversing:
        def __init__(self, reader: Any):
            self._reader = reader

        def might_contain(self, key: bytes) -> bool:
            return bool(self._reader.might_contain(key[::-1]))

        def might_contain_many(self, keys: Sequence[bytes]) -> list[bool]:
            return [self.might_contain(key) for key in keys]

    @attrs.frozen(kw_only=True)
    class ReversedPolicy(BlockedPolicy):
        name: ClassVar[str] = "acme.reversed"

        def open(self, filter: Any) -> Any:
            return Reversing(super().open(filter))

    result = build(ReversedPolicy(), [b"key%d" % i for i in range(100)])
    assert result.state == "failed"
    assert "misses" in result.reason


@pytest.mark.parametrize("policy", [BlockedPolicy(), policies.create("leveldb")])
def test_a_key_of_the_wrong_type_costs_the_filter(policy: FilterPolicy) -> None:
    result = build(policy, [b"a", 7, b"c"])  # type: ignore[list-item]
    assert result.state == "failed"
    assert "raised in add(): TypeError" in result.reason
