"""The contract every policy keeps, and what is this filter's own.

Run with ``pip install -e .[test] && pytest``.
"""

from __future__ import annotations

import pytest
from acme_quotient import QuotientPolicy

from filters import CorruptFilterError
from policies.testing import ABSENT, FilterPolicyContract


class TestQuotientPolicy(FilterPolicyContract):
    policies = (QuotientPolicy(), QuotientPolicy(slot_bits=16))


@pytest.mark.parametrize(("slot_bits", "highest"), [(8, 0.05), (16, 0.0005)])
def test_wider_slots_have_fewer_false_positives(slot_bits: int, highest: float) -> None:
    keys = [b"present%d" % number for number in range(3000)]
    policy = QuotientPolicy(slot_bits=slot_bits)
    answers = policy.open(policy.create_filter(keys)).might_contain_many(ABSENT)
    assert sum(answers) / len(ABSENT) <= highest


def test_a_slot_width_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="slot_bits"):
        QuotientPolicy(slot_bits=12)


@pytest.mark.parametrize("length", [0, 1, 2, 9])
def test_a_filter_cut_short_is_refused(length: int) -> None:
    filter = QuotientPolicy().create_filter([b"key"] * 10)
    with pytest.raises(CorruptFilterError):
        QuotientPolicy().open(filter[:length])
