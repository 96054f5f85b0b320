"""One filter on its way: of all keys of a table, or of those of a partition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import attrs

from policies import BuildContext, FilterPolicy, VerifiedBuilder
from policies.block import block_parts
from policies.builtin import is_built_in
from policies.prefixes import Prefixes, PrefixFeed

if TYPE_CHECKING:
    from filters import Digests
    from policies.verified import BuildResult


class FilterPart:
    """Takes keys in order, and makes a filter of them, of their prefixes, or of both.

    A policy that is built in gets them as they come, and keeps their digests. A plug-in gets them
    at the end, when their number is known.
    """

    def __init__(
        self,
        policy: FilterPolicy,
        context: BuildContext,
        prefixes: Prefixes | None = None,
        digests: Digests | None = None,
    ):
        self._policy = policy
        self._context = context
        self._feed = None if prefixes is None else PrefixFeed(prefixes)
        self._prefixes = prefixes
        self._waiting: list[Sequence[bytes]] = []
        self._builder: VerifiedBuilder | None = None
        if is_built_in(policy):
            self._builder = VerifiedBuilder(policy, context, digests=digests)

    def add_many(self, keys: Sequence[bytes]) -> None:
        """Take the next keys."""
        for some in (keys,) if self._feed is None else self._feed(keys):
            if self._builder is None:
                self._waiting.append(some)
            else:
                self._builder.add_many(some)

    def finish(self) -> BuildResult:
        """What has become of it; once only."""
        builder = self._builder
        if builder is None:
            count = sum(map(len, self._waiting))
            context = attrs.evolve(self._context, expected_keys=count)
            builder = VerifiedBuilder(self._policy, context)
            for keys in self._waiting:
                builder.add_many(keys)
        self._waiting.clear()
        return builder.finish()

    def stored(self, result: BuildResult) -> tuple[bytes | memoryview, ...]:
        """A filter that was built, in a block that describes itself, framed by its prefixes."""
        assert result.filter is not None
        assert result.identity is not None, "a filter that was verified for another policy"
        block = block_parts(result.identity, result.filter, result.num_keys)
        return block if self._prefixes is None else (self._prefixes.encode(), *block)
