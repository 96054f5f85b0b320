"""The contract suite over every policy that is built in, and over plug-ins that are installed."""

from __future__ import annotations

import importlib.util
import sys
import tomllib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import pytest

import filters
import policies
from filters.families import FAMILIES, every
from policies import BuildContext, FilterPolicy, FilterReader
from policies.builtin import BUILTIN
from policies.contract import may_contain_range
from policies.testing import ABSENT, KEY_SETS, FilterPolicyContract
from tests.policies.cases import policies_of

BitmapPolicy = policies.lookup("test.bitmap")
EXAMPLE = Path(__file__).parents[2] / "examples" / "acme-quotient"


# A class for each family: the suite holds the policies of a class against each other.
for _family in (each for each in every().values() if each.policy):
    _members = {"policies": tuple(policies_of(_family.name))}
    _name = f"Test{_family.policy.rpartition(':')[2]}"
    globals()[_name] = type(_name, (FilterPolicyContract,), _members)


class TestDeclining(FilterPolicyContract):
    """At a chance of 1 Cassandra keeps no filter."""

    policies = (policies.CassandraPolicy(fp_chance=1),)


class TestNone(FilterPolicyContract):
    policies = (policies.NoFilterPolicy(),)
    always_maybe = True


class TestInstalledPlugin(FilterPolicyContract):
    policies = (BitmapPolicy(),)


def _example() -> ModuleType:
    """The example, imported from its directory under its own name."""
    path = EXAMPLE / "acme_quotient.py"
    spec = importlib.util.spec_from_file_location("acme_quotient", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["acme_quotient"] = module
    spec.loader.exec_module(module)
    return module


_MODULE = _example()
QuotientPolicy: type[FilterPolicy] = _MODULE.QuotientPolicy


@pytest.fixture(scope="module", autouse=True)
def _example_is_installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The example's metadata, as installing it would write them from its pyproject.toml."""
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    site = tmp_path_factory.mktemp("site")
    info = site / f"acme_quotient-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Name: {project['name']}\nVersion: {project['version']}\n")
    entries = project["entry-points"]["lsm.filter_policies"].items()
    lines = "\n".join(f"{name} = {target}" for name, target in entries)
    (info / "entry_points.txt").write_text(f"[lsm.filter_policies]\n{lines}\n")
    added = [str(site), str(EXAMPLE)]
    sys.path.extend(added)
    sys.modules[_MODULE.__name__] = _MODULE  # other tests install it, and take it away again
    policies.refresh()
    yield
    for path in added:
        sys.path.remove(path)
    policies.refresh()


class TestExamplePlugin(FilterPolicyContract):
    policies = (QuotientPolicy(), QuotientPolicy(slot_bits=16))  # type: ignore[call-arg]


class RangePolicy(FilterPolicy):
    """Keeps all keys, and knows which ranges hold one."""

    name: ClassVar[str] = "test.range"

    def create_filter(self, keys: Sequence[bytes]) -> bytes:
        return b"".join(len(key).to_bytes(4, "big") + key for key in sorted(set(keys))) or b"\x00"

    def open(self, filter: bytes) -> Any:
        keys, rest = [], b"" if filter == b"\x00" else filter
        while rest:
            size = int.from_bytes(rest[:4], "big")
            keys.append(rest[4 : 4 + size])
            rest = rest[4 + size :]
        return RangeKeeper(keys)


class RangeKeeper:
    """Its answers are the truth."""

    def __init__(self, keys: list[bytes]):
        self.keys = keys

    def might_contain(self, key: bytes) -> bool:
        """Whether it is there."""
        return key in self.keys

    def might_contain_many(self, keys: Sequence[bytes]) -> list[bool]:
        """Whether each is there."""
        return [key in self.keys for key in keys]

    def may_contain_range(self, low: bytes | None, high: bytes | None) -> Any:
        """Whether a key lies there."""
        return any((low or b"") <= key and (high is None or key < high) for key in self.keys)


class TestRanges(FilterPolicyContract):
    policies = (RangePolicy(),)

    @pytest.fixture(autouse=True)
    def known(self, monkeypatch: pytest.MonkeyPatch) -> None:
        known = dict(policies.registry._REGISTRY._registered)
        monkeypatch.setattr(policies.registry._REGISTRY, "_registered", known)
        policies.register(RangePolicy)


class MostlyKeptPolicy(FilterPolicy):
    """Breaks the contract: forgets one key in a hundred."""

    name: ClassVar[str] = "test.mostly-kept"

    def create_filter(self, keys: Sequence[bytes]) -> bytes:
        return b"\x00".join(key for number, key in enumerate(keys) if number % 100 != 99)

    def key_may_match(self, key: bytes, filter: bytes) -> bool:
        return key in filter.split(b"\x00")


class TestTheSuiteItself:
    """That the suite finds what it is there to find."""

    suite = FilterPolicyContract()

    def test_a_lost_key(self) -> None:
        with pytest.raises(AssertionError, match=r"1 of 100 keys are missed.*key00000099"):
            self.suite.test_every_key_is_found(MostlyKeptPolicy(), KEY_SETS["100 sorted"])

    def test_a_policy_an_engine_drops(self) -> None:
        with pytest.raises(AssertionError, match=r"test\.mostly-kept.*misses 1 of its 100 keys"):
            self.suite.test_an_engine_accepts_it(MostlyKeptPolicy(), KEY_SETS["100 sorted"])

    def test_a_filter_that_never_says_no(self) -> None:
        class Maybe(MostlyKeptPolicy):
            def key_may_match(self, key: bytes, filter: bytes) -> bool:
                return True

        with pytest.raises(AssertionError, match="2000 of 2000 absent keys"):
            self.suite.test_absent_keys_are_mostly_told_so(Maybe())

    def test_answers_that_depend_on_the_process(self) -> None:
        with pytest.raises(AssertionError, match=r"does it use hash\(\)"):
            self.suite.test_another_process_reads(HashPolicy())

    def test_a_builder_that_goes_on(self) -> None:
        with pytest.raises(pytest.fail.Exception, match=r"finish\(\) after finish\(\)"):
            self.suite.test_a_builder_finishes_once(EndlessPolicy())

    @pytest.mark.parametrize("answer", [None, 1, "yes"])
    def test_an_answer_that_is_neither_true_nor_false(self, answer: object) -> None:
        class Mumbling(KeptPolicy):
            def key_may_match(self, key: bytes, filter: bytes) -> Any:
                return answer

        kind = type(answer).__name__
        with pytest.raises(AssertionError, match=rf"might_contain\(\) answers .* of type {kind}"):
            self.suite.test_answers_are_true_or_false(Mumbling())

    def test_a_reader_that_forgets_its_return(self) -> None:
        with pytest.raises(AssertionError, match="is a return missing"):
            self.suite.test_all_ways_of_asking_agree(TwoFacedPolicy(None), KEY_SETS["3 sorted"])
        with pytest.raises(AssertionError, match=r"NoneType.*is a return missing"):
            self.suite.test_answers_are_true_or_false(TwoFacedPolicy(None))

    def test_a_reader_that_says_of_one_key_what_it_does_not_of_many(self) -> None:
        message = r"might_contain\(\) answers False for b'key0+', and might_contain_many\(\) True"
        with pytest.raises(AssertionError, match=message):
            self.suite.test_all_ways_of_asking_agree(TwoFacedPolicy(False), KEY_SETS["3 sorted"])

    def test_batches_that_are_no_list(self) -> None:
        with pytest.raises(AssertionError, match="returns a list, not tuple"):
            self.suite.test_all_ways_of_asking_agree(
                TwoFacedPolicy(True, many=tuple), KEY_SETS["3 sorted"]
            )

    @pytest.mark.parametrize(
        ("rate", "message"),
        [
            (lambda: 1 / 0, "expected_fpr raises ZeroDivisionError: division by zero"),
            (lambda: 1.5, "expected_fpr is 1.5: it is a share"),
            (lambda: float("nan"), "expected_fpr is nan"),
            (lambda: "0.01", "expected_fpr is a str"),
            (lambda: print, "expected_fpr is a builtin_function_or_method: it is a property"),
        ],
    )
    def test_a_rate_that_is_none(self, rate: Callable[[], object], message: str) -> None:
        policy = TwoFacedPolicy(True, rate=rate)
        with pytest.raises((AssertionError, pytest.fail.Exception), match=message):
            self.suite.test_a_rate_is_a_rate(policy, KEY_SETS["3 sorted"])
        self.suite.test_a_rate_is_a_rate(
            TwoFacedPolicy(True, rate=lambda: None), KEY_SETS["3 sorted"]
        )

    @pytest.mark.parametrize(
        "denied",
        [
            lambda low, high: low is None,
            lambda low, high: high is None,
            lambda low, high: low == b"key00000050",  # as if it did not belong to the range
            lambda low, high: low == b"key0000005",
        ],
    )
    def test_a_range_that_is_denied(
        self, denied: Callable[[object, object], bool], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        answer = RangeKeeper.may_contain_range
        monkeypatch.setattr(
            RangeKeeper,
            "may_contain_range",
            lambda self, low, high: answer(self, low, high) and not denied(low, high),
        )
        with pytest.raises(AssertionError, match="is denied, and holds a key"):
            self.suite.test_every_range_that_holds_a_key_may(RangePolicy(), KEY_SETS["100 sorted"])

    @pytest.mark.parametrize("answer", [None, 1])
    def test_a_range_that_is_answered_with_something_else(
        self, answer: object, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(RangeKeeper, "may_contain_range", lambda *_: answer)
        with pytest.raises(AssertionError, match=f"answers {answer} for .*allowed are True and"):
            self.suite.test_ranges_are_answered_with_true_or_false(RangePolicy())

    def test_a_name_that_leads_nowhere(self) -> None:
        with pytest.raises(policies.UnknownPolicyError, match="mostly-kept"):
            self.suite.test_the_name_leads_to_the_class(MostlyKeptPolicy())


class KeptPolicy(MostlyKeptPolicy):
    """Keeps all keys."""

    def create_filter(self, keys: Sequence[bytes]) -> bytes:
        return b"\x00".join(keys)


class TwoFacedPolicy(KeptPolicy):
    """Breaks the contract: its readers answer for one key what they do not for many."""

    def __init__(
        self,
        answer: object,
        many: Callable[[list[bool]], object] = list,
        rate: Callable[[], object] = float,
    ):
        self.answer = answer
        self.many = many
        self.rate = rate

    def open(self, filter: bytes) -> Any:
        return TwoFacedReader(self, filter)


class TwoFacedReader:
    def __init__(self, policy: TwoFacedPolicy, filter: bytes):
        self._policy = policy
        self._keys = filter.split(b"\x00")

    def might_contain(self, key: bytes) -> object:
        """Whatever was asked for."""
        return self._policy.answer

    def might_contain_many(self, keys: Sequence[bytes]) -> object:
        """The truth, as something."""
        return self._policy.many([key in self._keys for key in keys])

    @property
    def expected_fpr(self) -> object:
        """Whatever was asked for."""
        return self._policy.rate()


class HashPolicy(MostlyKeptPolicy):
    """Breaks the contract: ``hash()`` of bytes is another one in every process."""

    def create_filter(self, keys: Sequence[bytes]) -> bytes:
        return b",".join(b"%d" % hash(key) for key in keys)

    def key_may_match(self, key: bytes, filter: bytes) -> bool:
        return b"%d" % hash(key) in filter.split(b",")


class EndlessBuilder:
    """Takes keys for ever."""

    def add(self, key: bytes) -> None:
        """Take the next key."""

    def finish(self) -> None:
        """None, as often as asked."""


class EndlessPolicy(MostlyKeptPolicy):
    """Breaks the contract: its builders do not finish."""

    def new_builder(self, context: BuildContext) -> EndlessBuilder:
        return EndlessBuilder()


class TestDefaults:
    """What a policy of three members gets for free."""

    def test_key_may_match_and_open_default_to_each_other(self) -> None:
        class ByOpen(FilterPolicy):
            name: ClassVar[str] = "test.by-open"

            def create_filter(self, keys: Sequence[bytes]) -> bytes:
                return policies.BlockedPolicy().create_filter(keys)

            def open(self, filter: bytes) -> FilterReader:
                return filters.BlockedBloomFilter.from_bytes(filter)

        assert ByOpen().key_may_match(b"a", ByOpen().create_filter([b"a"]))
        bitmap = BitmapPolicy()
        reader = bitmap.open(bitmap.create_filter([b"a"]) or b"")
        assert reader.might_contain(b"a")
        assert reader.might_contain_many([b"a", b"b"]) == [True, False]

    def test_a_policy_that_cannot_read_is_refused_when_it_is_defined(self) -> None:
        with pytest.raises(TypeError, match=r"Blind must override key_may_match\(\) or open\(\)"):

            class Blind(FilterPolicy):
                name: ClassVar[str] = "test.blind"

                def create_filter(self, keys: Sequence[bytes]) -> bytes:
                    return b"."

    def test_plain_policies_are_equal_by_class_and_have_no_parameters(self) -> None:
        Other = type("Other", (BitmapPolicy,), {})  # noqa: N806
        assert BitmapPolicy().params() == {}
        assert BitmapPolicy() == BitmapPolicy()
        assert BitmapPolicy() != Other()
        assert len({BitmapPolicy(), BitmapPolicy()}) == 1

    def test_a_seed_is_ignored_where_there_is_no_use_for_it(self) -> None:
        policy = BitmapPolicy()
        assert policy.with_seed(7) is policy
        assert policies.LevelDBPolicy().with_seed(7) == policies.LevelDBPolicy()


class TestReadersAndRanges:
    """Who does not answer for ranges says "maybe", and so does whoever says anything else."""

    def test_one_that_answers_for_keys_alone(self) -> None:
        reader = BitmapPolicy().open(BitmapPolicy().create_filter([b"a"]) or b"")
        assert may_contain_range(reader, b"x", b"y")

    def test_one_that_answers_for_ranges(self) -> None:
        reader = RangePolicy().open(RangePolicy().create_filter([b"b"]))
        assert may_contain_range(reader, b"a", b"c")
        assert not may_contain_range(reader, b"a", b"b")
        assert not may_contain_range(reader, b"c", None)

    @pytest.mark.parametrize("answer", [None, 0, ""])
    def test_all_but_false_is_maybe(self, answer: object, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(RangeKeeper, "may_contain_range", lambda *_: answer)
        assert may_contain_range(RangeKeeper([]), None, None)

    def test_the_filter_of_no_keys_denies_all_ranges(self) -> None:
        block = policies.encode_block(policies.BlockedPolicy(), b"", num_keys=0)
        reader = policies.open_block(block)
        assert not may_contain_range(reader, None, None)
        with pytest.raises(TypeError, match="a key is bytes-like or str"):
            may_contain_range(reader, 7, None)  # type: ignore[arg-type]


def test_the_reader_of_no_filter_answers_maybe() -> None:
    reader = policies.NoFilterPolicy().open(b"whatever")
    assert reader.might_contain_many(ABSENT[:3]) == [True] * 3
    assert reader.might_contain_many(["text", b"bytes"]) == [True, True]
    with pytest.raises(TypeError, match="a key is bytes-like or str"):
        reader.might_contain(7)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="not as one str"):
        reader.might_contain_many("text")


@pytest.mark.parametrize("name", [cls.name for cls in BUILTIN])
def test_a_key_may_be_text_and_nothing_that_has_no_bytes(name: str) -> None:
    policy = policies.create(name)
    if name != "none":
        created = policy.create_filter(["t\u00e9xt", b"bytes"])  # type: ignore[list-item]
        assert created is not None
        reader = policy.open(created)
        assert reader.might_contain_many(["t\u00e9xt".encode(), b"bytes"]) == [True, True]
        with pytest.raises(TypeError, match="a key is bytes-like or str"):
            policy.create_filter([7])  # type: ignore[list-item]


def test_two_filters_of_one_policy_share_the_seed_and_not_the_salt() -> None:
    policy = policies.BlockedPolicy().with_seed(99)
    first, second = (policy.create_filter(KEY_SETS["100 sorted"]) for _ in range(2))
    assert first != second
    assert filters.BlockedBloomFilter.from_bytes(first).digest_seed == 99
    assert filters.BlockedBloomFilter.from_bytes(second).digest_seed == 99


def test_builders_report_what_the_family_counts() -> None:
    counts = {}
    for name in (family.name for family in FAMILIES.values() if family.policy):
        builder = policies.create(name).new_builder(BuildContext())
        for key in KEY_SETS["repeats"]:
            builder.add(key)
        builder.finish()
        counts[name] = builder.num_keys  # type: ignore[attr-defined]
    # LevelDB counts every entry; RocksDB and Cassandra's leave out one that equals the one before.
    assert counts.pop("leveldb") == 1500
    assert set(counts.values()) == {500}


def test_counting_is_stored_as_the_classic_filter_it_collapses_to() -> None:
    filter = policies.CountingPolicy().create_filter(KEY_SETS["100 sorted"])
    assert filters.ClassicBloomFilter.from_bytes(filter).num_keys == 100
