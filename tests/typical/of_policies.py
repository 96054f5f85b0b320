"""What programs and plug-ins do with policies, as type checkers see it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Self, assert_type
from zlib import crc32

import attrs

import policies
from filters import CorruptFilterError, FilterError
from policies import (
    BlockedPolicy,
    BuildContext,
    BuildResult,
    CuckooPolicy,
    FilterBuilder,
    FilterPolicy,
    FilterReader,
    LevelPolicies,
    RangeReader,
    Recommendation,
    VerifiedBuilder,
)
from policies.budget import Budget
from policies.config import Choice
from policies.rule import BudgetRule


@attrs.frozen
class BitmapReader:
    """A reader: whatever has these methods is one."""

    bitmap: bytes = attrs.field(repr=False)

    def might_contain(self, key: bytes) -> bool:
        """False: the key was not among them."""
        byte, bit = divmod(crc32(key) % (8 * len(self.bitmap)), 8)
        return bool(self.bitmap[byte] >> bit & 1)

    def might_contain_many(self, keys: Sequence[bytes]) -> list[bool]:
        """The answers in order."""
        return [self.might_contain(key) for key in keys]

    def may_contain_range(self, low: bytes | None, high: bytes | None) -> bool:
        """It cannot tell."""
        return True


class BitmapBuilder:
    """A builder, likewise."""

    def __init__(self, policy: BitmapPolicy) -> None:
        self._policy = policy
        self._keys: list[bytes] = []
        self.num_keys: int | None = None

    def add(self, key: bytes) -> None:
        """Take the next key."""
        self._keys.append(key)

    def finish(self) -> bytes | None:
        """The filter."""
        self.num_keys = len(self._keys)
        return self._policy.create_filter(self._keys)


@attrs.frozen(kw_only=True)
class BitmapPolicy(FilterPolicy):
    """A policy of somebody else's."""

    name: ClassVar[str] = "typical.bitmap"
    takes_views: ClassVar[bool] = True
    layouts: ClassVar[frozenset[str]] = frozenset({"table"})
    bits_per_key: int = attrs.field(default=16, validator=attrs.validators.ge(1))
    _seed: int = attrs.field(default=0, eq=False, repr=False)

    def create_filter(self, keys: Sequence[bytes]) -> bytes:
        """A bit for each key."""
        bitmap = bytearray(max(1, len(keys) * self.bits_per_key // 8))
        for key in keys:
            byte, bit = divmod(crc32(key) % (8 * len(bitmap)), 8)
            bitmap[byte] |= 1 << bit
        return bytes(bitmap)

    def open(self, filter: bytes | memoryview) -> BitmapReader:
        """Its reader, from bytes or a view."""
        if not filter:
            raise CorruptFilterError("a bitmap has at least one byte")
        return BitmapReader(bytes(filter))

    def new_builder(self, context: BuildContext) -> BitmapBuilder:
        """A builder that looks at what is known."""
        assert_type(context.level, int | None)
        assert_type(context.expected_keys, int | None)
        return BitmapBuilder(self)

    def with_seed(self, seed: int) -> Self:
        """The same policy with a seed."""
        return attrs.evolve(self, seed=seed)


class TinyPolicy(FilterPolicy):
    """The least that works."""

    name: ClassVar[str] = "typical.tiny"

    def create_filter(self, keys: Sequence[bytes]) -> bytes:
        """All keys."""
        return b"\n".join(keys)

    def key_may_match(self, key: bytes, filter: bytes) -> bool:
        """Whether it is one of them."""
        return key in filter.split(b"\n")


def registering() -> None:
    """Policies by their names."""
    assert_type(policies.register(BitmapPolicy), type[BitmapPolicy])
    assert_type(policies.register(TinyPolicy, replace=True), type[TinyPolicy])
    assert_type(policies.lookup("typical.bitmap"), type[FilterPolicy])
    assert_type(policies.available(), tuple[str, ...])
    policy = policies.create("typical.bitmap", bits_per_key=12)
    assert_type(policy, FilterPolicy)
    assert_type(policy.params(), dict[str, Any])
    assert_type(BitmapPolicy(bits_per_key=8).with_seed(1), BitmapPolicy)
    reader: FilterReader = BitmapPolicy().open(b"\x00")
    ranges: RangeReader = BitmapPolicy().open(b"\x00")
    builder: FilterBuilder = BitmapPolicy().new_builder(BuildContext(level=1))
    assert not reader.might_contain(b"key")
    assert ranges.may_contain_range(None, b"key")
    builder.add(b"key")


def building(keys: list[bytes], policy: FilterPolicy) -> bytes:
    """A verified filter in a block."""
    builder = VerifiedBuilder(policy, BuildContext(level=3, reason="compaction"))
    builder.add("text")
    builder.add_many(keys)
    result = builder.finish()
    assert_type(result, BuildResult)
    if result.filter is None:
        raise FilterError(result.reason)
    assert_type(result.filter, bytes)
    block = policies.encode_block(policy, result.filter, num_keys=result.num_keys)
    assert_type(block, bytes)
    return block


def reading(block: bytes, keys: list[bytes]) -> int:
    """A block, looked at and asked."""
    described = policies.describe_block(memoryview(block))
    assert_type(described, policies.BlockDescription)
    assert_type(described.params, dict[str, Any])
    assert_type(described.bits_per_key, float | None)
    reader = policies.open_block(block)
    assert_type(reader, FilterReader)
    assert_type(reader.might_contain(keys[0]), bool)
    assert_type(reader.might_contain_many(keys), list[bool])
    try:
        policies.open_block(block[:-1])
    except (policies.CorruptBlockError, policies.PluginError) as error:
        assert_type(error, policies.CorruptBlockError | policies.PluginError)
    return sum(reader.might_contain_many(keys))


def choosing(path: Path) -> None:
    """Policies made, recommended, and of a configuration."""
    assert BlockedPolicy(bits_per_key=12) != CuckooPolicy(fpr=0.001)
    created = BlockedPolicy().create_filter([b"key"])
    assert_type(created, bytes | None)
    built = CuckooPolicy().build([b"key"])
    if created is not None and built is not None:
        assert_type(policies.encode_block(BlockedPolicy(), created), bytes)
        assert_type(policies.encode_block(CuckooPolicy(), built), bytes)
    levels = policies.load(path, levels=5)
    assert_type(levels, LevelPolicies)
    assert_type(levels[3], FilterPolicy)
    assert_type([policy.name for policy in levels], list[str])
    assert_type(LevelPolicies.by_budget("10 bits/key", families=["blocked"]), LevelPolicies)
    assert_type(LevelPolicies.of_rule(BudgetRule(Budget.parse("1 MiB"))), LevelPolicies)
    assert_type(LevelPolicies.uniform(BitmapPolicy()), LevelPolicies)
    assert_type(LevelPolicies((Choice(BlockedPolicy()),)), LevelPolicies)
    best, *others = policies.recommend(1_000_000, fpr=0.001, lookups=100)
    assert_type(best, Recommendation)
    assert_type(others, list[Recommendation])
    assert_type(best.policy, FilterPolicy | None)


def use(path: Path) -> int:
    """All of it."""
    path.write_text('[filters]\npolicy = "cuckoo"\nfpr = 0.001\n')
    keys = [b"key%d" % number for number in range(100)]
    registering()
    choosing(path)
    each = [BlockedPolicy(fpr=0.01), BitmapPolicy(), TinyPolicy(), *policies.load(path, 1)]
    return sum(reading(building(keys, policy), keys) for policy in each)
