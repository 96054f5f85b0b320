"""The SuRF filter: parameters, sizing and layout.

A trie of sorted keys, cut where each is alone (Zhang, Lim, Leis, Andersen, Kaminsky, Keeton and
Pavlo, 2018), that answers for keys and for ranges of keys. Each key is kept as far as it takes to
tell it from its neighbours, and behind that a few bits of its hash, for keys that are asked for,
and a few of its own next bits, for ranges as well. It is built of the keys themselves, and not of
digests.

An edge of the trie is a label, a bit that says whether a node follows or a key ends, and a bit that
says whether it is the first edge of its node (LOUDS-sparse); edges and nodes stand in level order.
A key that others begin with ends in a node, which has a bit for that; such keys are known exactly,
and need no suffix. In the header, ``size`` is the number of edges and ``parameter`` the hash bits
of a suffix. The payload is the number of nodes (u32), the real bits of a suffix (u32), the three
rows of bits, each in whole words of 64, the labels, and the suffixes, bit by bit.

How many nodes there are depends on the keys, and so does the size. What is predicted is for keys of
random bytes, which part early; each byte that some keys share takes eleven bits, once for all that
share it.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable
from itertools import groupby
from typing import TYPE_CHECKING

import attrs

from filters import header
from filters.columns import one_by_one
from filters.errors import CorruptFilterError, FilterError
from filters.family import Family
from filters.hashing import key_bytes
from filters.sizing_parameters import SizingParameter, SizingParameters

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from filters.hashing import Key

FAMILY = "surf"
WORD_BITS = 64
LABELS = 256
MAX_EDGES = (1 << 32) - 2
MAX_SUFFIX_BITS = 32

SUFFIXES = ("mixed", "hash", "real")
"""What a suffix is of: both, or all of one; the first is the default."""

# Of both, the key has a whole byte first: those of text hardly differ in their high bits.
BYTE = 8

SIZING_PARAMETERS = SizingParameters(
    FAMILY,
    ranges={
        "suffix_bits": (0, MAX_SUFFIX_BITS),
        "bits_per_key": (1, 512),
        "fpr": (2**-MAX_SUFFIX_BITS, 0.5),
    },
    default=SizingParameter("suffix_bits", 12),
    whole=frozenset({"suffix_bits"}),
)

_HEAD = struct.Struct("<LL")


@attrs.frozen
class Sizing(SizingParameter):
    """The sizing parameter, and what suffixes are of."""

    suffix: str = SUFFIXES[0]


@attrs.frozen
class Suffix:
    """How many bits of its hash and of itself are kept of a key, behind what the trie has of it."""

    hash_bits: int
    real_bits: int

    @property
    def bits(self) -> int:
        """All of them."""
        return self.hash_bits + self.real_bits


@attrs.frozen
class Geometry:
    """How many nodes and edges a trie has, and what is kept of each key that ends in an edge."""

    nodes: int
    edges: int
    suffix: Suffix

    @property
    def leaves(self) -> int:
        """How many edges lead to no node: in each ends a key."""
        return self.edges - max(0, self.nodes - 1)

    @property
    def has_child(self) -> int:
        """Where in the payload the bits start that say which edges lead to a node."""
        return _HEAD.size

    @property
    def louds(self) -> int:
        """Where those start that say which edges are their node's first."""
        return self.has_child + _row_bytes(self.edges)

    @property
    def ends(self) -> int:
        """Where those start that say in which nodes a key ends."""
        return self.louds + _row_bytes(self.edges)

    @property
    def labels(self) -> int:
        """Where the labels start."""
        return self.ends + _row_bytes(self.nodes)

    @property
    def suffixes(self) -> int:
        """Where the suffixes start."""
        return self.labels + self.edges

    @property
    def suffix_bits(self) -> int:
        """How many bits all suffixes take."""
        return self.leaves * self.suffix.bits

    @property
    def head(self) -> bytes:
        """What the payload begins with."""
        return _HEAD.pack(self.nodes, self.suffix.real_bits)


def _row_bytes(bits: int) -> int:
    return -(-bits // WORD_BITS) * WORD_BITS // 8


def check(
    *,
    suffix_bits: int | None = None,
    bits_per_key: float | None = None,
    fpr: float | None = None,
    suffix: str | None = None,
) -> Sizing:
    """The one sizing parameter that these arguments give, or TypeError or ValueError."""
    chosen = SIZING_PARAMETERS.choose(suffix_bits=suffix_bits, bits_per_key=bits_per_key, fpr=fpr)
    if suffix is None:
        suffix = SUFFIXES[0]
    if not isinstance(suffix, str):
        raise TypeError(f"suffix of a {FAMILY} filter is a str, not {type(suffix).__name__}")
    if suffix not in SUFFIXES:
        raise ValueError(
            f"suffix of a {FAMILY} filter is {suffix!r}, allowed are {', '.join(SUFFIXES)}"
        )
    if chosen.name == "fpr" and suffix == "real":
        raise ValueError(
            f"a {FAMILY} filter keeps a rate (fpr) by bits of hashes: of suffix='real' it promises "
            "none, choose 'mixed' or 'hash', or suffix_bits or bits_per_key"
        )
    return Sizing(chosen.name, chosen.value, suffix)


def suffix_for(sizing: Sizing, num_keys: int, nodes: int, edges: int) -> Suffix:
    """What to keep of each key beside a trie of so many nodes and edges.

    For a size it is what the trie leaves of it, nothing where it takes all. For a rate it is as
    many bits of hashes as keep it even if every absent key leads to where a key ends.
    """
    if sizing.name == "fpr":
        hash_bits = math.ceil(-math.log2(sizing.value))
        more = min(max(BYTE, hash_bits), MAX_SUFFIX_BITS - hash_bits)
        return Suffix(hash_bits, more if sizing.suffix == "mixed" else 0)
    bits = int(sizing.value)
    if sizing.name == "bits_per_key":
        bare = Geometry(nodes, edges, Suffix(0, 0))
        room = math.floor(sizing.value * num_keys) // 8 * 8 - 8 * payload_bytes(bare)
        bits = max(0, min(MAX_SUFFIX_BITS, room // bare.leaves)) if bare.leaves else 0
    mixed = min(bits, max(BYTE, bits // 2))
    real = {"hash": 0, "real": bits, "mixed": mixed}[sizing.suffix]
    return Suffix(bits - real, real)


def plan(num_keys: int, sizing: SizingParameter) -> Geometry:
    """What a filter of so many keys of random bytes is expected to take."""
    if not isinstance(sizing, Sizing):
        sizing = Sizing(sizing.name, sizing.value)
    nodes = round(_nodes_of_random_keys(num_keys))
    edges = max(0, num_keys + nodes - 1)
    return Geometry(nodes, edges, suffix_for(sizing, num_keys, nodes, edges))


def _nodes_of_random_keys(num_keys: int) -> float:
    """The root, and on each level below it the prefixes that two keys or more have."""
    if not num_keys:
        return 0
    nodes, prefixes, on_level = 1.0, float(LABELS), math.inf
    while num_keys > 1 and on_level > 1e-3:
        none = math.exp(num_keys * math.log1p(-1 / prefixes))
        one = num_keys / (prefixes - 1) * none
        on_level = prefixes * (1 - none - one) if num_keys < 1e6 * prefixes else prefixes
        if num_keys < 1e-6 * prefixes:  # else the difference of nearly equal numbers
            on_level = num_keys * (num_keys - 1) / 2 / prefixes
        nodes += on_level
        prefixes *= LABELS
    return nodes


def predicted_fpr(num_keys: float, geometry: Geometry) -> float:
    """How often an absent key of random bytes passes a filter of as many such keys."""
    rate, prefixes = 0.0, 1.0
    while num_keys and prefixes < 1e6 * max(num_keys, LABELS):
        above, prefixes = prefixes, prefixes * LABELS
        alone = math.exp((num_keys - 1) * math.log1p(-1 / prefixes))
        earlier = math.exp((num_keys - 1) * math.log1p(-1 / above)) if above > 1 else 0.0
        rate += num_keys / prefixes * (alone - earlier)
    return min(1.0, rate) * 2.0**-geometry.suffix.bits


def expected_fpr(num_keys: int, suffix: Suffix) -> float:
    """How many absent keys pass at most, whatever they are: those that share bits of a hash.

    It is as many only if each leads to where a key ends, as keys do that resemble those of the set;
    of random bytes there are far less. Without hashes nothing is promised.
    """
    return 2.0**-suffix.hash_bits if num_keys else 0.0


def payload_bytes(geometry: Geometry) -> int:
    """The bytes between header and checksum."""
    return geometry.suffixes + -(-geometry.suffix_bits // 8)


def ordered(keys: Iterable[Key]) -> list[bytes]:
    """The keys in ascending order, each once; it takes little where they come in order."""
    listed = [key_bytes(key) for key in one_by_one(keys)]
    listed.sort()
    return [key for key, _ in groupby(listed)]


def check_edges(edges: int) -> None:
    """Refuse to write a trie that no reader takes."""
    if edges > MAX_EDGES:
        raise FilterError(
            f"a {FAMILY} filter of these keys takes {edges} edges, allowed are {MAX_EDGES}: split "
            "the keys over several filters"
        )


def bound(key: Key | None) -> bytes | None:
    """One end of a range: a key, or None for no end."""
    return None if key is None else key_bytes(key)


def decode(buffer: Buffer) -> tuple[header.Header, Geometry, memoryview]:
    """Validated header, geometry and payload of a filter's bytes; kernels check the trie itself."""
    head, payload = header.unpack(buffer, FAMILY)
    if len(payload) < _HEAD.size:
        raise CorruptFilterError(
            f"{FAMILY} filter is cut short: {len(payload)} payload bytes, {_HEAD.size} come before "
            "its edges"
        )
    nodes, real_bits = _HEAD.unpack_from(payload)
    geometry = Geometry(nodes, head.size, Suffix(head.parameter, real_bits))
    if geometry.suffix.bits > MAX_SUFFIX_BITS:
        raise CorruptFilterError(
            f"{FAMILY} filter claims suffixes of {head.parameter} and {real_bits} bits; allowed "
            f"are {MAX_SUFFIX_BITS} in all"
        )
    # The empty key alone takes a node without an edge; else each node has one or more.
    most, least = (head.size, 1) if head.size else (min(1, head.num_keys), min(1, head.num_keys))
    if head.size > MAX_EDGES or not least <= nodes <= most:
        raise CorruptFilterError(
            f"{FAMILY} filter claims {nodes} nodes and {head.size} edges of {head.num_keys} keys; "
            f"allowed are 0 to {MAX_EDGES} edges, and nodes as many as edges at most"
        )
    header.check_payload(FAMILY, payload, payload_bytes(geometry), geometry.suffix_bits)
    rows = ((geometry.has_child, head.size), (geometry.louds, head.size), (geometry.ends, nodes))
    for start, bits in rows:
        row = payload[start : start + _row_bytes(bits)]
        if bits % WORD_BITS and int.from_bytes(row[-8:], "little") >> bits % WORD_BITS:
            raise CorruptFilterError(f"{FAMILY} filter has bits set behind a row of {bits}")
    return head, geometry, payload


NO_FIRST, EARLY, DISORDER, FEW_NODES, ORPHANS, COUNT = range(1, 7)
"""What can be wrong with a trie; kernels look in this order, edge by edge and then at the whole."""


def fault(kind: int, place: int) -> CorruptFilterError:
    """The error for what a kernel found at this edge, node, or count."""
    what = {
        NO_FIRST: f"begins with edge {place}, which is said to be none of its node's first",
        EARLY: f"has a node {place} before any edge leads to it",
        DISORDER: f"has labels that are not ascending, at edge {place}",
        FEW_NODES: f"has edges of {place} nodes, which is not what it claims",
        ORPHANS: f"has {place} edges that lead to nodes, which is not what it claims",
        COUNT: f"has {place} keys in its trie, which is not what it claims",
    }[kind]
    return CorruptFilterError(f"{FAMILY} filter {what}")


RECORD = Family(
    page=__name__,
    class_name="SurfFilter",
    number=10,
    policy="policies.builtin:SurfPolicy",
    options={"suffix": "`mixed`, `hash` or `real`"},
    examples=({"suffix_bits": 0}, {"bits_per_key": 16}, {"fpr": 0.01}),
    purpose="ranges of any length; keys as well",
    strength="ranges of any length; its size and its rate depend on the keys",
    reads="a few for each byte",
    answers_ranges=True,
)
