"""Golomb-coded sets, byte for byte those of BIP 158, as a filter policy for lsm-filters.

The keys of a set are hashed to numbers below ``N * M``, sorted, and written as the gaps between
them, in Golomb-Rice codes: for a rate of one in ``M``, some 1.5 bits for each key more than the
least that any filter can take. Gaps have to be added up, so that a lookup is slow; many at once
share one pass. It suits filters that are sent to somebody, and levels that are seldom asked.

::

    policy = GolombPolicy(m=1000)                        # one absent key in a thousand passes
    reader = policy.open(policy.create_filter(keys))
    reader.might_contain_many(keys)

    GolombCodedSet.from_bytes(block_filter, SipKey(block_hash[:16]))     # as BIP 158 has it
"""

from golomb_coded_set.coded_set import GolombCodedSet, encode
from golomb_coded_set.parameters import BIP158, Parameters
from golomb_coded_set.policy import GolombPolicy
from golomb_coded_set.siphash import SipKey

__all__ = ["BIP158", "GolombCodedSet", "GolombPolicy", "Parameters", "SipKey", "encode"]
