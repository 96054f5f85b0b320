"""The contract as tests: subclass :class:`FilterPolicyContract` to prove a policy of your own.

::

    from policies.testing import FilterPolicyContract

    class TestQuotientPolicy(FilterPolicyContract):
        policies = (QuotientPolicy(), QuotientPolicy(remainder_bits=12))

It needs pytest and nothing else, and draws the same keys in every run. The policy must be known by
its name: install the package that has its entry point (``pip install -e .``), or call
``policies.register(cls)`` in a ``conftest.py``. Calling
``pytest.register_assert_rewrite("policies.testing")`` there makes failures show their values.
"""

from __future__ import annotations

import json
import os
import pickle
import random
import subprocess
import sys
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, ClassVar

import pytest

from policies import block, registry
from policies.contract import BuildContext, FilterBuilder, FilterPolicy, FilterReader, RangeReader
from policies.errors import cause
from policies.verified import VerifiedBuilder

KEY_COUNTS = (1, 2, 3, 5, 8, 13, 100, 3000)

CONTEXTS = (
    BuildContext(),
    BuildContext(level=0, reason="flush", expected_keys=0),
    BuildContext(level=3, reason="compaction", expected_keys=10),
    BuildContext(level=6, is_bottommost=True, reason="bulk", expected_keys=10**9),
)

# What another process is asked: it must not matter that it hashes str and bytes differently.
_OTHER_PROCESS = """
import importlib, pickle, sys
path, module, name, params, filter, keys = pickle.load(sys.stdin.buffer)
sys.path[:] = path
policy = getattr(importlib.import_module(module), name)(**params)
print(all(policy.key_may_match(key, filter) for key in keys))
"""


def key_sets() -> dict[str, list[bytes]]:
    """Keys of many shapes, by what is special about them."""
    rng = random.Random(20)
    numbered = [b"key%08d" % number for number in range(max(KEY_COUNTS))]
    shuffled = rng.sample(numbered, 1000)
    return {
        "no keys": [],
        "the empty key": [b""],
        "every length to 70": [rng.randbytes(length) for length in range(71)],
        "long keys": [rng.randbytes(65535), b"\x00" * 65535, b"\xff" * 65535],
        "zeros": [b"\x00" * length for length in range(71)],
        "one key often": [b"again"] * 50,
        "repeats": [key for key in numbered[:500] for _ in range(3)],
        "unsorted repeats": shuffled + shuffled,
        "random": [rng.randbytes(rng.randrange(1, 40)) for _ in range(1000)],
        "differing in one bit": [(1 << bit).to_bytes(16, "big") for bit in range(128)],
        **{f"{count} sorted": numbered[:count] for count in KEY_COUNTS},
    }


KEY_SETS = key_sets()
ABSENT = [b"absent%08d" % number for number in range(2000)]


class FilterPolicyContract:
    """What every policy promises.

    Set ``policies`` to instances of one class with different parameters. ``always_maybe`` is for a
    policy that answers "maybe" to everything on purpose.
    """

    policies: ClassVar[Sequence[FilterPolicy]] = ()
    always_maybe: ClassVar[bool] = False

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Run each test for every policy, and for every set of keys where it takes one."""
        if "policy" in metafunc.fixturenames:
            metafunc.parametrize("policy", self.policies, ids=_label)
        if "keys" in metafunc.fixturenames:
            metafunc.parametrize("keys", KEY_SETS.values(), ids=list(KEY_SETS))

    def test_the_class_is_usable(self, policy: FilterPolicy) -> None:
        """The class has a name, layouts and parameters that the registry accepts."""
        registry.check_class(type(policy))

    def test_the_name_leads_to_the_class(self, policy: FilterPolicy) -> None:
        """Its name, and nothing else, finds the class again."""
        assert registry.lookup(policy.name) is type(policy)
        assert policy.name in registry.available()

    def test_parameters_survive_json(self, policy: FilterPolicy) -> None:
        """What ``params()`` says makes an equal policy, after JSON too."""
        written = json.dumps(policy.params(), allow_nan=False)
        again = registry.create(policy.name, **json.loads(written))
        assert again == policy
        assert again.params() == policy.params()

    def test_equality_and_hash_are_those_of_the_parameters(self, policy: FilterPolicy) -> None:
        """Policies are values: equal if their parameters are."""
        twin = registry.create(policy.name, **policy.params())
        assert twin == policy
        assert hash(twin) == hash(policy)
        for other in self.policies:
            assert (other == policy) == (other.params() == policy.params())
        assert policy != policy.name

    def test_a_policy_survives_pickle(self, policy: FilterPolicy) -> None:
        """Another process can be given the policy."""
        assert pickle.loads(pickle.dumps(policy)) == policy

    def test_a_seed_is_no_parameter(self, policy: FilterPolicy) -> None:
        """A seed changes neither equality nor parameters, and is not shown."""
        seed = 0x5EED_0123_4567_89AB
        seeded = policy.with_seed(seed)
        assert seeded == policy
        assert hash(seeded) == hash(policy)
        assert seeded.params() == policy.params()
        assert str(seed) not in repr(seeded)
        keys = KEY_SETS["100 sorted"]
        filter = seeded.create_filter(keys)
        if filter is not None:
            reader = policy.open(filter)
            _check_found(reader, keys)
            assert getattr(reader, "digest_seed", seed) == seed

    def test_every_key_is_found(self, policy: FilterPolicy, keys: list[bytes]) -> None:
        """No key of the set is ever answered "no"."""
        filter = policy.create_filter(tuple(keys))
        if filter is None:
            return
        assert type(filter) is bytes
        assert filter or not keys, "a filter of no bytes is for no keys"
        _check_found(policy.open(filter), keys)

    def test_all_ways_of_asking_agree(self, policy: FilterPolicy, keys: list[bytes]) -> None:
        """One key, many keys, the policy, the digest and the capsule give one answer."""
        filter = policy.create_filter(keys)
        if filter is None:
            return
        reader = policy.open(filter)
        asked = keys[:200] + ABSENT[:200]
        answers = reader.might_contain_many(asked)
        assert isinstance(answers, list), (
            f"might_contain_many() returns a list, not {type(answers).__name__}"
        )
        _check_same(asked, answers, "might_contain()", reader.might_contain)
        _check_same(
            asked, answers, "key_may_match()", lambda key: policy.key_may_match(key, filter)
        )
        _check_same(
            asked,
            answers,
            "might_contain() of a reader for each key",
            lambda key: policy.open(filter).might_contain(key),
        )
        assert reader.might_contain_many([]) == []
        by_digest: Callable[[int], bool] | None = getattr(reader, "might_contain_digest", None)
        if by_digest is not None:
            from filters import digest

            seed: int = getattr(reader, "digest_seed")  # noqa: B009 - no part of the protocol
            _check_same(
                asked, answers, "might_contain_digest()", lambda key: by_digest(digest(key, seed))
            )
        if hasattr(reader, "__lsm_probe__"):
            from policies.door import ways_in

            for name, ask in ways_in(reader):
                _check_same(asked, answers, f"{name}() of its capsule", ask)

    def test_answers_are_true_or_false(self, policy: FilterPolicy) -> None:
        """An engine takes False for "no", and whatever else it is told for "maybe"."""
        filter = policy.create_filter(KEY_SETS["100 sorted"])
        if filter is None:
            pytest.skip("there is no filter")
        reader = policy.open(filter)
        asked = KEY_SETS["100 sorted"] + ABSENT[:100]
        for key in asked:
            _check_answer("might_contain()", key, reader.might_contain(key))
            _check_answer("key_may_match()", key, policy.key_may_match(key, filter))
        for key, answer in zip(asked, reader.might_contain_many(asked), strict=True):
            _check_answer("might_contain_many()", key, answer)

    def test_a_rate_is_a_rate(self, policy: FilterPolicy, keys: list[bytes]) -> None:
        """``expected_fpr``, where a reader has it, is a number from 0 to 1, or None."""
        filter = policy.create_filter(keys)
        if filter is None:
            return
        try:
            rate: Any = getattr(policy.open(filter), "expected_fpr", None)
        except Exception as error:
            pytest.fail(
                f"expected_fpr raises {cause(error)}: it is asked for whenever somebody looks into "
                "a database, also of a filter of no keys; None says that it is not known"
            )
        if rate is None:
            return
        assert isinstance(rate, int | float), (
            f"expected_fpr is a {type(rate).__name__}: it is a property, and a number or None"
        )
        assert 0 <= rate <= 1, f"expected_fpr is {rate}: it is a share of absent keys, 0 to 1"

    def test_absent_keys_are_mostly_told_so(self, policy: FilterPolicy) -> None:
        """The filter is of use: it says "no" to some absent keys."""
        filter = policy.create_filter(KEY_SETS["3000 sorted"])
        if self.always_maybe or filter is None:
            pytest.skip("this policy answers maybe to everything")
        maybes = sum(policy.open(filter).might_contain_many(ABSENT))
        assert maybes < 0.9 * len(ABSENT), f"{maybes} of {len(ABSENT)} absent keys may be there"

    def test_every_range_that_holds_a_key_may(
        self, policy: FilterPolicy, keys: list[bytes]
    ) -> None:
        """No range is denied that holds a key, wherever its bounds lie, and open ends have none."""
        reader = _range_reader(policy, keys)
        if reader is None:
            return
        ordered = sorted(set(keys))
        for low, high in _ranges(ordered):
            if _holds_one(ordered, low, high):
                assert reader.may_contain_range(low, high) is not False, (
                    f"the range from {_shown(low)} to {_shown(high)} is denied, and holds a key: "
                    "the low bound belongs to it, the high one does not, and None is no bound"
                )

    def test_ranges_are_answered_with_true_or_false(self, policy: FilterPolicy) -> None:
        """Bounds that are equal, empty or the wrong way round are answered like any others."""
        keys = KEY_SETS["100 sorted"]
        reader = _range_reader(policy, keys)
        if reader is None:
            pytest.skip("this policy answers for keys alone, or there is no filter")
        few = [None, b"", b"\x00", b"key", *keys[:2], keys[-1] + b"\x00", b"\xff" * 20]
        for low in few:
            for high in few:
                answer = reader.may_contain_range(low, high)
                assert answer is True or answer is False, (
                    f"may_contain_range() answers {answer!r} for {_shown(low)} to {_shown(high)}, "
                    "allowed are True and False"
                )

    def test_any_instance_reads(self, policy: FilterPolicy, keys: list[bytes]) -> None:
        """What reading needs is in the bytes, not in the policy's parameters."""
        filter = policy.create_filter(keys)
        if filter is None:
            return
        answers = policy.open(filter).might_contain_many(ABSENT[:100])
        for other in self.policies:
            reader = other.open(filter)
            _check_found(reader, keys)
            assert reader.might_contain_many(ABSENT[:100]) == answers

    def test_another_process_reads(self, policy: FilterPolicy) -> None:
        """The answers do not depend on the process that made the filter."""
        keys = KEY_SETS["100 sorted"]
        filter = policy.create_filter(keys)
        cls = type(policy)
        if filter is None or not _is_importable(cls):
            pytest.skip("there is no filter, or its class cannot be imported")
        other_hashes = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
        answer = subprocess.run(
            [sys.executable, "-c", _OTHER_PROCESS],
            input=pickle.dumps(
                (sys.path, cls.__module__, cls.__name__, policy.params(), filter, keys)
            ),
            env={**os.environ, "PYTHONHASHSEED": other_hashes},
            stdout=subprocess.PIPE,
            check=True,
        )
        last_line = answer.stdout.strip().rpartition(b"\n")[2]
        assert last_line == b"True", "does it use hash(), which differs by process?"

    def test_a_block_round_trip(self, policy: FilterPolicy, keys: list[bytes]) -> None:
        """A block carries policy, parameters, count and filter."""
        filter = policy.create_filter(keys)
        if filter is None:
            return
        encoded = block.encode_block(policy, filter, num_keys=len(keys))
        described = block.describe_block(encoded)
        assert described.policy == policy.name
        assert registry.create(described.policy, **described.params) == policy
        assert described.num_keys == len(keys)
        assert described.payload_bytes == len(filter)
        for buffer in (encoded, memoryview(encoded), bytearray(encoded)):
            reader = block.open_block(buffer)
            _check_found(reader, keys)
            if filter:
                expected = policy.open(filter).might_contain_many(ABSENT[:100])
                assert reader.might_contain_many(ABSENT[:100]) == expected

    def test_views_are_read_where_they_are_taken(self, policy: FilterPolicy) -> None:
        """With ``takes_views``, a view into a larger buffer is read."""
        keys = KEY_SETS["100 sorted"]
        filter = policy.create_filter(keys)
        if filter is None or not policy.takes_views:
            pytest.skip("this policy reads bytes only, or there is no filter")
        view: Any = memoryview(b"before" + filter + b"after")[6 : 6 + len(filter)]
        _check_found(policy.open(view), keys)

    @pytest.mark.parametrize("context", CONTEXTS, ids=lambda context: context.reason)
    def test_a_builder_builds(self, policy: FilterPolicy, context: BuildContext) -> None:
        """A builder's filter finds every key, whatever the context says."""
        keys = KEY_SETS["repeats"]
        builder = _filled(policy.new_builder(context), keys)
        filter = builder.finish()
        if filter is None:
            return
        assert type(filter) is bytes
        _check_found(policy.open(filter), keys)
        num_keys: int | None = getattr(builder, "num_keys", None)
        assert num_keys is None or 0 < num_keys <= len(keys)

    @pytest.mark.parametrize("context", CONTEXTS, ids=lambda context: context.reason)
    def test_a_builder_without_keys(self, policy: FilterPolicy, context: BuildContext) -> None:
        """A builder that got no key finishes like any other."""
        filter = policy.new_builder(context).finish()
        assert filter is None or type(filter) is bytes
        if filter:
            policy.open(filter)

    def test_a_builder_finishes_once(self, policy: FilterPolicy) -> None:
        """A finished builder refuses to go on."""
        builder = _filled(policy.new_builder(BuildContext()), KEY_SETS["13 sorted"])
        builder.finish()
        _check_refused("finish() after finish()", builder.finish)
        _check_refused("add() after finish()", lambda: builder.add(b"late"))

    def test_builders_are_independent(self, policy: FilterPolicy) -> None:
        """Two builders at work share nothing."""
        first, second = (policy.new_builder(BuildContext()) for _ in range(2))
        for key in KEY_SETS["100 sorted"]:
            first.add(key)
        for key in ABSENT[:100]:
            second.add(key)
        for builder, keys in ((first, KEY_SETS["100 sorted"]), (second, ABSENT[:100])):
            filter = builder.finish()
            if filter is not None:
                _check_found(policy.open(filter), keys)

    def test_an_engine_accepts_it(self, policy: FilterPolicy, keys: list[bytes]) -> None:
        """The harness that engines build filters in finds nothing wrong."""
        builder = VerifiedBuilder(policy, BuildContext(expected_keys=len(keys)))
        for key in keys:
            builder.add(key)
        result = builder.finish()
        assert result.state in ("built", "declined"), result.reason


def _range_reader(policy: FilterPolicy, keys: Sequence[bytes]) -> RangeReader | None:
    """A filter of these keys that answers for ranges; None where there is none, or it does not."""
    filter = policy.create_filter(keys)
    reader: Any = None if filter is None else policy.open(filter)
    return reader if hasattr(reader, "may_contain_range") else None


def _ranges(ordered: Sequence[bytes]) -> Iterator[tuple[bytes | None, bytes | None]]:
    """Ranges around these keys: of one key each, up to the next, and any between neighbours."""
    rng = random.Random(22)
    some = rng.sample(ordered, min(len(ordered), 200))
    yield None, None
    yield from ((key, key + b"\x00") for key in ordered)
    yield from pairwise(ordered)
    near = [None, b"", *some, *(key[:-1] for key in some), *(key + b"\x00" for key in some)]
    near += [key[:-1] + b"\xff" * 9 for key in some]
    yield from ((rng.choice(near), rng.choice(near)) for _ in range(3000))


def _holds_one(ordered: Sequence[bytes], low: bytes | None, high: bytes | None) -> bool:
    first = 0 if low is None else bisect_left(ordered, low)
    return first < len(ordered) and (high is None or ordered[first] < high)


def _shown(bound: bytes | None) -> str:
    return "no bound" if bound is None else repr(bound[:50])


def _check_found(reader: FilterReader, keys: Sequence[bytes]) -> None:
    missed = [key for key in keys if not reader.might_contain(key)]
    assert not missed, f"{len(missed)} of {len(keys)} keys are missed, the first is {missed[0]!r}"
    answers = reader.might_contain_many(list(keys))
    assert len(answers) == len(keys)
    assert all(answers), "might_contain_many() misses keys that might_contain() finds"


def _check_same(
    asked: Sequence[bytes],
    answers: Sequence[bool],
    what: str,
    ask: Callable[[bytes], object],
) -> None:
    """That one way of asking gives the answers that ``might_contain_many()`` gave."""
    for key, answer in zip(asked, answers, strict=True):
        other = ask(key)
        assert other == answer, (
            f"{what} answers {other!r} for {key[:50]!r}, and might_contain_many() {answer!r}: an "
            "engine may ask either" + (", is a return missing?" if other is None else "")
        )


def _check_answer(what: str, key: bytes, answer: object) -> None:
    assert answer is True or answer is False, (
        f"{what} answers {answer!r} of type {type(answer).__name__} for {key!r}, allowed are True "
        'and False: an engine would take it for "maybe", and builds no such filter (is a return '
        "missing? numpy's answers need bool() around them)"
    )


def _check_refused(what: str, call: Callable[[], object]) -> None:
    try:
        call()
    except Exception:
        return
    pytest.fail(f"{what} is accepted: a builder makes one filter")


def _filled(builder: FilterBuilder, keys: Sequence[bytes]) -> FilterBuilder:
    for key in keys:
        builder.add(key)
    return builder


def _is_importable(cls: type[FilterPolicy]) -> bool:
    return getattr(sys.modules.get(cls.__module__), cls.__qualname__, None) is cls


def _label(policy: object) -> str:
    params = policy.params() if isinstance(policy, FilterPolicy) else {}
    return ",".join(f"{name}={value}" for name, value in params.items()) or "default"
