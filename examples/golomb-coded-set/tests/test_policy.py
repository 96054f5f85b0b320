"""The contract that every policy keeps, and what this one promises beside it."""

from __future__ import annotations

import pytest
from golomb_coded_set import BIP158, GolombCodedSet, GolombPolicy, SipKey
from golomb_coded_set.policy import HEAD

import policies
from policies import BuildContext, VerifiedBuilder
from policies.rule import BudgetRule
from policies.testing import KEY_SETS, FilterPolicyContract

KEYS = KEY_SETS["3000 sorted"]


class TestGolombPolicy(FilterPolicyContract):
    policies = (GolombPolicy(), GolombPolicy(m=50), GolombPolicy(m=1000, p=12))


def test_its_defaults_are_bip_158s() -> None:
    assert GolombPolicy().params() == {"m": 784_931, "p": 19}
    assert GolombPolicy().parameters == BIP158
    assert GolombPolicy(m=1000).params() == {"m": 1000, "p": 9}


@pytest.mark.parametrize(
    ("params", "told"),
    [({"m": 1}, "m is 1"), ({"m": 0}, "m is 0"), ({"p": 3}, "p is 3"), ({"m": 2**32}, "m is 4294")],
)
def test_what_cannot_be_is_refused_where_it_is_asked_for(params: dict[str, int], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        GolombPolicy(**params)


def test_behind_the_head_are_bip_158s_bytes() -> None:
    filter = GolombPolicy().create_filter(KEYS)
    version, p, m, key = HEAD.unpack_from(filter)
    assert (version, p, m) == (1, 19, 784_931)
    bare = GolombCodedSet.from_bytes(filter[HEAD.size :], SipKey(key))
    assert bare.num_keys == len(KEYS)
    assert all(bare.might_contain_many(KEYS))


def test_filters_of_nobodys_seed_have_keys_of_their_own() -> None:
    """Keys chosen to pass one filter then pass no other."""
    keys = {HEAD.unpack_from(GolombPolicy().create_filter(KEYS[:3]))[3] for _ in range(10)}
    assert len(keys) == 10


def test_a_seed_makes_the_bytes_and_is_not_in_them() -> None:
    seed = 0x0123_4567_89AB_CDEF
    one, other = (GolombPolicy().with_seed(each) for each in (seed, seed + 1))
    assert one.create_filter(KEYS) == one.create_filter(KEYS)
    assert one.create_filter(KEYS) != other.create_filter(KEYS)
    head = one.create_filter(KEYS)[: HEAD.size]
    for order in ("little", "big"):
        assert seed.to_bytes(8, order) not in head


@pytest.mark.parametrize("seed", [0, 2**64 - 1])
def test_every_seed_of_a_database_will_do(seed: int) -> None:
    assert GolombPolicy().with_seed(seed).create_filter([b"key"])


def test_a_builder_makes_the_bytes_that_all_keys_at_once_make() -> None:
    policy = GolombPolicy(m=300).with_seed(5)
    keys = [b"key%06d" % number for number in range(10_000)]
    builder = policy.new_builder(BuildContext(expected_keys=10))
    for key in (*keys, *keys[:100]):
        builder.add(key)
    assert builder.finish() == policy.create_filter(keys)
    assert builder.num_keys == 10_000


def test_a_filter_that_is_verified_counts_its_keys() -> None:
    builder = VerifiedBuilder(GolombPolicy(), BuildContext(level=6, is_bottommost=True))
    for key in KEYS:
        builder.add(key)
    result = builder.finish()
    assert (result.state, result.num_keys) == ("built", len(KEYS))


def test_a_budget_can_choose_it() -> None:
    [model] = BudgetRule.of({"budget": "12 bits/key", "families": ["bip158.golomb"]}).models()
    option = model.option(1_000_000, 0.001)
    assert option is not None
    policy = policies.create(option.policy, **option.params)
    assert isinstance(policy, GolombPolicy)
    keys = [b"key%d" % number for number in range(5000)]
    reader = policy.open(policy.create_filter(keys))
    assert reader.expected_fpr <= option.fpr == 0.001
    assert 8 * reader.size_in_bytes / len(keys) == pytest.approx(option.bits_per_key, rel=0.02)
    assert model.option(1_000_000, 1e-12) is None
