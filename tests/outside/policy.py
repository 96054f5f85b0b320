"""The policy of the family."""

from __future__ import annotations

import attrs

from policies.builtin import SeededPolicy


@attrs.frozen(kw_only=True)
class OutsidePolicy(SeededPolicy, family="outside"):
    """A Bloom filter from outside."""

    bits_per_key: float | None = None
    fpr: float | None = None
    num_probes: int | None = None
