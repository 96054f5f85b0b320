"""The SuRF filter, built and asked in Python."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, pairwise
from typing import TYPE_CHECKING, NamedTuple, Self, TypeVar

from filters import header, surf
from filters.columns import one_by_one
from filters.hashing import checked64, digest, key_bytes, mix
from filters.kernels.python.base import Filter
from filters.kernels.python.louds import Louds
from filters.surf import MAX_SUFFIX_BITS, Geometry, Suffix

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from filters.columns import Nulls
    from filters.hashing import Key

T = TypeVar("T")


class SurfFilter(Filter):
    """A trie of the keys' beginnings, which answers for ranges of keys as well.

    Sized by ``suffix_bits``, ``bits_per_key`` or ``fpr``; ``suffix`` says what is kept of a key
    behind its beginning: ``hash``, ``real`` bits of its own, or ``mixed``.
    """

    __slots__ = ("_geometry", "_num_keys", "_payload", "_salt", "_seed", "_trie")
    family = surf.FAMILY

    def __init__(
        self, trie: Louds, geometry: Geometry, *, seed: int, salt: int, payload: memoryview
    ):
        """For kernels; users call ``build`` or ``from_bytes``."""
        self._trie = trie
        self._geometry = geometry
        self._num_keys = trie.num_keys
        self._seed = seed
        self._salt = salt
        self._payload = payload

    @classmethod
    def build(
        cls,
        keys: Iterable[Key],
        *,
        suffix_bits: int | None = None,
        bits_per_key: float | None = None,
        fpr: float | None = None,
        suffix: str | None = None,
        seed: int | None = None,
        salt: int | None = None,
        nulls: Nulls = "error",
    ) -> Self:
        """A filter of exactly these keys, in any order; least work where they are in theirs."""
        sizing = surf.check(
            suffix_bits=suffix_bits, bits_per_key=bits_per_key, fpr=fpr, suffix=suffix
        )
        seed, salt = checked64("seed", seed), checked64("salt", salt)
        distinct = surf.ordered(one_by_one(keys, nulls))
        edges = sorted(_edges_of(distinct), key=lambda edge: edge.depth)  # stable: level by level
        nodes = min(1, len(distinct)) + sum(edge.leads_on for edge in edges)
        surf.check_edges(len(edges))
        kept = surf.suffix_for(sizing, len(distinct), nodes, len(edges))
        geometry = Geometry(nodes, len(edges), kept)
        suffixes = [
            _suffix_of(distinct[edge.key], edge.depth + 1, kept, seed, salt)
            for edge in edges
            if not edge.leads_on
        ]
        ends = [bool(distinct) and not distinct[0]]
        ends += [edge.ends for edge in edges if edge.leads_on]
        payload = b"".join(
            [
                geometry.head,
                _row(edge.leads_on for edge in edges),
                _row(edge.is_first for edge in edges),
                _row(ends[:nodes]),
                bytes(edge.label for edge in edges),
                _packed(suffixes, kept.bits),
            ]
        )
        view = memoryview(payload)
        return cls(Louds(view, geometry), geometry, seed=seed, salt=salt, payload=view)

    @classmethod
    def from_bytes(cls, buffer: Buffer) -> Self:
        """The filter in these bytes: a view of an immutable buffer, a copy of a mutable one."""
        head, geometry, payload = surf.decode(buffer)
        trie = Louds(payload, geometry)
        if trie.num_keys != head.num_keys:
            raise surf.fault(surf.COUNT, trie.num_keys)
        return cls(trie, geometry, seed=head.seed, salt=head.salt, payload=payload)

    def to_bytes(self) -> bytes:
        """The complete filter, as ``docs/family-formats.md`` lays it out."""
        hash_bits, edges = self._geometry.suffix.hash_bits, self._geometry.edges
        head = header.Header(
            self.family, hash_bits, edges, self._num_keys, seed=self._seed, salt=self._salt
        )
        return header.pack(head, self._payload)

    def might_contain(self, key: Key) -> bool:
        """False: the key was never added. True: it may have been."""
        key = key_bytes(key)
        if not self._num_keys:
            return False
        trie, node = self._trie, 0
        for depth, byte in enumerate(key, 1):
            start, stop = trie.edges(node)
            edge = trie.at_least(byte, start, stop)
            if edge == stop or trie.label(edge) != byte:
                return False
            if not trie.leads_on(edge):
                kept = self._geometry.suffix
                return self._suffix(edge) == _suffix_of(key, depth, kept, self._seed, self._salt)
            node = trie.child(edge)
        return trie.is_key(node)

    def may_contain_range(self, low: Key | None, high: Key | None) -> bool:
        """False: no key was added from ``low`` on and below ``high``. True: one may have been.

        None is no bound.
        """
        first, behind = surf.bound(low) or b"", surf.bound(high)
        if not self._num_keys or (behind is not None and first >= behind):
            return False
        if behind is None:
            return self._goes_on(0, 0, first)
        trie, node, depth = self._trie, 0, 0
        while depth < len(first):
            start, stop = trie.edges(node)
            lowest = trie.at_least(first[depth], start, stop)
            if first[depth] != behind[depth]:
                return self._between(lowest, stop, depth, first, behind)
            if lowest == stop or trie.label(lowest) != first[depth]:
                return False
            if not trie.leads_on(lowest):
                below = self._may_be_below(lowest, depth + 1, behind)
                return below and self._may_be_from(lowest, depth + 1, first)
            node, depth = trie.child(lowest), depth + 1
        return self._begins_below(node, depth, behind)  # all here begin with the lower bound

    def _between(self, lowest: int, stop: int, depth: int, first: bytes, behind: bytes) -> bool:
        """Whether a key may be in the range, of a node at which its bounds part."""
        trie, low, high = self._trie, first[depth], behind[depth]
        if lowest < stop and trie.label(lowest) == low:
            if not trie.leads_on(lowest):
                if self._may_be_from(lowest, depth + 1, first):
                    return True
            elif self._goes_on(trie.child(lowest), depth + 1, first):
                return True
            lowest += 1
        if lowest == stop or trie.label(lowest) > high:
            return False
        if trie.label(lowest) < high:
            return True
        if not trie.leads_on(lowest):
            return self._may_be_below(lowest, depth + 1, behind)
        return self._begins_below(trie.child(lowest), depth + 1, behind)

    def _goes_on(self, node: int, depth: int, first: bytes) -> bool:
        """Whether a key from ``first`` on may be below a node that stands for its beginning."""
        trie = self._trie
        while depth < len(first):
            start, stop = trie.edges(node)
            lowest = trie.at_least(first[depth], start, stop)
            if lowest == stop:
                return False
            if lowest + 1 < stop or trie.label(lowest) > first[depth]:
                return True
            if not trie.leads_on(lowest):
                return self._may_be_from(lowest, depth + 1, first)
            node, depth = trie.child(lowest), depth + 1
        return True

    def _begins_below(self, node: int, depth: int, behind: bytes) -> bool:
        """Whether a key below ``behind`` may be in a node that stands for its beginning."""
        trie = self._trie
        while depth < len(behind):
            start, stop = trie.edges(node)
            if trie.is_key(node) or (start < stop and trie.label(start) < behind[depth]):
                return True
            if start == stop or trie.label(start) > behind[depth]:
                return False
            if not trie.leads_on(start):
                return self._may_be_below(start, depth + 1, behind)
            node, depth = trie.child(start), depth + 1
        return False

    def _may_be_from(self, edge: int, depth: int, first: bytes) -> bool:
        """Whether the key that ends in an edge may be ``first`` or more; it begins as that does."""
        kept = self._geometry.suffix
        real = self._suffix(edge) >> kept.hash_bits
        return real >= _real_bits(first, depth, kept)

    def _may_be_below(self, edge: int, depth: int, behind: bytes) -> bool:
        """Whether the key that ends in an edge may be below ``behind``; it begins as that does."""
        kept = self._geometry.suffix
        real = self._suffix(edge) >> kept.hash_bits
        return depth < len(behind) and real <= _real_bits(behind, depth, kept)

    def _suffix(self, edge: int) -> int:
        """What is kept of the key that ends in an edge."""
        bits = self._geometry.suffix.bits
        byte, place = divmod(self._trie.leaf(edge) * bits, 8)
        start = self._geometry.suffixes + byte
        return int.from_bytes(self._payload[start : start + 5], "little") >> place & (1 << bits) - 1

    @property
    def num_keys(self) -> int:
        """How many keys are in."""
        return self._num_keys

    @property
    def hash_bits(self) -> int:
        """How many bits of its hash are kept of a key."""
        return self._geometry.suffix.hash_bits

    @property
    def real_bits(self) -> int:
        """How many bits of its own are kept of a key, behind those that the trie has."""
        return self._geometry.suffix.real_bits

    @property
    def num_nodes(self) -> int:
        """How many nodes the trie has."""
        return self._geometry.nodes

    @property
    def size_in_bytes(self) -> int:
        """The length of ``to_bytes()``."""
        return header.OVERHEAD + len(self._payload)

    @property
    def fill(self) -> float:
        """The share of bits in use: all of them, where there is a key."""
        return float(self._num_keys > 0)

    @property
    def expected_fpr(self) -> float:
        """The most that can pass of absent keys, one in 2^hash_bits; of random ones less do."""
        return surf.expected_fpr(self._num_keys, self._geometry.suffix)


class Edge(NamedTuple):
    """One edge of a trie that is being built."""

    depth: int
    label: int
    leads_on: bool
    is_first: bool
    ends: bool
    """Whether a key ends in the node that it leads to."""
    key: int
    """The first key below it."""


def _edges_of(keys: Sequence[bytes]) -> Iterator[Edge]:
    """The edges that each of these ascending keys adds to those before it."""
    shared = [0, *(_shared(one, two) for one, two in pairwise(keys)), 0]
    for index, key in enumerate(keys):
        first, last = shared[index], max(shared[index], shared[index + 1])
        # The key before ends where this one goes on, or has an edge in that node already.
        is_first = index == 0 or len(keys[index - 1]) == first
        for depth in range(first, min(last + 1, len(key))):
            ends = depth + 1 == len(key) == last
            yield Edge(depth, key[depth], depth < last, is_first, ends, index)
            is_first = True


def _shared(one: bytes, two: bytes) -> int:
    """How many bytes both begin with."""
    for place, (left, right) in enumerate(zip(one, two, strict=False)):
        if left != right:
            return place
    return min(len(one), len(two))


def _real_bits(key: bytes, depth: int, kept: Suffix) -> int:
    """The first bits of a key behind so many bytes, and zeros behind its end."""
    following = key[depth : depth + MAX_SUFFIX_BITS // 8].ljust(MAX_SUFFIX_BITS // 8, b"\0")
    return int.from_bytes(following, "big") >> MAX_SUFFIX_BITS - kept.real_bits


def _suffix_of(key: bytes, depth: int, kept: Suffix, seed: int, salt: int) -> int:
    """What is kept of a key that ends in an edge, or would, if it were in."""
    hashed = mix(digest(key, seed), salt) >> 64 - kept.hash_bits if kept.hash_bits else 0
    return hashed | _real_bits(key, depth, kept) << kept.hash_bits


def _row(bits: Iterable[bool]) -> bytes:
    """Bits in whole words, the lowest of a byte first."""
    words = (
        sum(bit << place for place, bit in enumerate(word)).to_bytes(8, "little")
        for word in _in_groups(bits, surf.WORD_BITS)
    )
    return b"".join(words)


def _packed(suffixes: Sequence[int], bits: int) -> bytes:
    """Numbers of so many bits, one behind the other; eight of them take whole bytes."""
    groups = (
        sum(each << place * bits for place, each in enumerate(group)).to_bytes(bits, "little")
        for group in _in_groups(suffixes, 8)
    )
    return b"".join(groups)[: -(-len(suffixes) * bits // 8)]


def _in_groups(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """The items, so many at a time."""
    following = iter(items)
    while group := list(islice(following, size)):
        yield group
