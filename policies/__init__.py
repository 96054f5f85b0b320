"""The contract between an LSM engine and its filters: policies, blocks, plug-ins, levels.

::

    policy = policies.create("cuckoo", fpr=0.001)
    block = policies.encode_block(policy, policy.create_filter(keys))
    policies.open_block(block).might_contain(key)      # the block says which policy reads it

    levels = policies.load("lsm.toml", levels=7)       # levels[3] is the policy of level 3
"""

from __future__ import annotations

from policies import builtin
from policies.block import BlockDescription, describe_block, encode_block, open_block
from policies.builtin import *  # noqa: F403 - a class for each policy, listed there
from policies.contract import BuildContext, FilterBuilder, FilterPolicy, FilterReader, RangeReader
from policies.errors import (
    CorruptBlockError,
    DuplicatePolicyError,
    PluginError,
    PolicyConfigError,
    UnknownParameterError,
    UnknownPolicyError,
    UnsupportedVersionError,
)
from policies.levels import LevelPolicies, load
from policies.recommendation import Recommendation, recommend
from policies.registry import available, create, lookup, refresh, register
from policies.verified import BuildResult, VerifiedBuilder

__all__: list[str] = [
    "BlockDescription",
    "BuildContext",
    "BuildResult",
    "CorruptBlockError",
    "DuplicatePolicyError",
    "FilterBuilder",
    "FilterPolicy",
    "FilterReader",
    "LevelPolicies",
    "PluginError",
    "PolicyConfigError",
    "RangeReader",
    "Recommendation",
    "UnknownParameterError",
    "UnknownPolicyError",
    "UnsupportedVersionError",
    "VerifiedBuilder",
    "available",
    "create",
    "describe_block",
    "encode_block",
    "load",
    "lookup",
    "open_block",
    "recommend",
    "refresh",
    "register",
]
__all__ += builtin.__all__
