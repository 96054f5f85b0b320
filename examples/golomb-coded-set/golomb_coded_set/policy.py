"""The policy ``bip158.golomb``: its parameters, its builder, and the bytes around a set."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import ClassVar, Self

import attrs

from filters import CorruptFilterError, UnsupportedVersionError
from golomb_coded_set.coded_set import GolombCodedSet, encode, encode_hashes
from golomb_coded_set.cost import GolombCostModel
from golomb_coded_set.parameters import BIP158, Parameters, best_p, is_whole
from golomb_coded_set.siphash import SipKey, siphash_all
from policies import BuildContext, FilterPolicy

# Version, p, M, SipHash's key; BIP 158's bytes follow.
HEAD = struct.Struct("<BBI16s")
VERSION = 1


@attrs.frozen(kw_only=True)
class GolombPolicy(FilterPolicy):
    """Golomb-coded sets in which one absent key of ``m`` passes.

    ``p`` says how gaps are cut, and is the one that makes the smallest sets where it is left out.
    Without a seed each filter is hashed under a random key of its own.
    """

    name: ClassVar[str] = "bip158.golomb"
    takes_views: ClassVar[bool] = True
    m: int = attrs.field(default=BIP158.m, validator=is_whole)
    p: int = attrs.field(
        default=attrs.Factory(lambda self: best_p(self.m), takes_self=True), validator=is_whole
    )
    _seed: int | None = attrs.field(default=None, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        """Check the parameters where they are given, not where a filter is built."""
        Parameters(self.m, self.p)

    @property
    def parameters(self) -> Parameters:
        """What sets are coded with."""
        return Parameters(self.m, self.p)

    def with_seed(self, seed: int) -> Self:
        """The same policy, its filters under the key that belongs to a database's secret seed."""
        return attrs.evolve(self, seed=seed)

    def create_filter(self, keys: Sequence[bytes]) -> bytes:
        """A head that says how to read it, and the set."""
        key = self.new_key()
        return self.head(key) + encode(keys, key, self.parameters)

    def new_builder(self, context: BuildContext) -> GolombBuilder:
        """A builder that keeps hashes."""
        return GolombBuilder(self)

    def open(self, filter: bytes | memoryview) -> GolombCodedSet:
        """The set in these bytes, whichever parameters and key it was written with."""
        view = memoryview(filter)
        if len(view) < HEAD.size:
            raise CorruptFilterError(
                f"a Golomb filter has a head of {HEAD.size} bytes, and there are {len(view)}"
            )
        version, p, m, key = HEAD.unpack_from(view)
        if version > VERSION:
            raise UnsupportedVersionError(
                f"a Golomb filter of version {version}, and up to {VERSION} are read: upgrade "
                "golomb-coded-set"
            )
        try:
            parameters = Parameters(m, p)
        except ValueError as error:
            raise CorruptFilterError(f"no Golomb filter begins like this: {error}") from None
        if version != VERSION:
            raise CorruptFilterError(f"no Golomb filter has version {version}")
        return GolombCodedSet(view[HEAD.size :], SipKey(key), parameters)

    @classmethod
    def cost_model(cls) -> GolombCostModel:
        """What filters of a rate cost, for whoever places them by a budget."""
        return GolombCostModel()

    def new_key(self) -> SipKey:
        """The key of the next filter."""
        return SipKey.random() if self._seed is None else SipKey.of_seed(self._seed)

    def head(self, key: SipKey) -> bytes:
        """What stands before a set."""
        return HEAD.pack(VERSION, self.p, self.m, key.data)


class GolombBuilder:
    """Keeps the hash of each key, and keys themselves only until there are enough to hash at once.

    Keys of one 64-bit hash are one key to every reader, and count as one.
    """

    BATCH = 4096
    __slots__ = ("_hashes", "_key", "_pending", "_policy", "num_keys")

    def __init__(self, policy: GolombPolicy):
        self._policy: GolombPolicy | None = policy
        self._key = policy.new_key()
        self._pending: list[bytes] = []
        self._hashes: set[int] = set()
        self.num_keys: int | None = None

    def add(self, key: bytes) -> None:
        """Take the next key."""
        if self._policy is None:
            raise _finished()
        self._pending.append(key)
        if len(self._pending) == self.BATCH:
            self._hash()

    def finish(self) -> bytes:
        """The filter of all keys, once."""
        if self._policy is None:
            raise _finished()
        policy, self._policy = self._policy, None
        self._hash()
        hashes, self._hashes = self._hashes, set()
        self.num_keys = len(hashes)
        return policy.head(self._key) + encode_hashes(hashes, policy.parameters)

    def _hash(self) -> None:
        pending, self._pending = self._pending, []
        self._hashes.update(siphash_all(self._key, pending))


def _finished() -> ValueError:
    return ValueError("this builder has made its filter: take a new one for the next")
