"""A trie as rows of bits and labels, edge by edge in level order, walked in Python."""

from __future__ import annotations

from array import array
from bisect import bisect_left

from filters import surf
from filters.surf import Geometry

WORD = surf.WORD_BITS


class Louds:
    """The trie in a payload, checked when it is made: whatever is asked, walks end within it.

    Nodes and edges have numbers from 0 on. An edge to a node leads to the node that comes next
    among all that edges lead to, and behind itself: so nothing is ever walked twice.
    """

    __slots__ = ("_children", "_ends", "_has_child", "_labels", "_starts", "num_keys")

    def __init__(self, payload: memoryview, geometry: Geometry):
        self._has_child = payload[geometry.has_child : geometry.louds]
        self._ends = payload[geometry.ends : geometry.labels]
        self._labels = payload[geometry.labels : geometry.suffixes]
        self._starts = array("Q")  # the first edge of each node
        self._children = array("Q")  # how many edges before each word lead to nodes
        self._measure(payload[geometry.louds : geometry.ends], geometry)

    def _measure(self, firsts: memoryview, geometry: Geometry) -> None:
        children = 0
        for edge, label in enumerate(self._labels):
            if edge % WORD == 0:
                self._children.append(children)
            if _bit(firsts, edge):
                if len(self._starts) > children:
                    raise surf.fault(surf.EARLY, len(self._starts))
                self._starts.append(edge)
            elif not edge:
                raise surf.fault(surf.NO_FIRST, edge)
            elif label <= self._labels[edge - 1]:
                raise surf.fault(surf.DISORDER, edge)
            children += _bit(self._has_child, edge)
        if not geometry.edges:
            self._starts.extend([0] * geometry.nodes)
        if len(self._starts) != geometry.nodes:
            raise surf.fault(surf.FEW_NODES, len(self._starts))
        if children != max(0, geometry.nodes - 1):
            raise surf.fault(surf.ORPHANS, children)
        self._starts.append(geometry.edges)
        self.num_keys = geometry.leaves + int.from_bytes(self._ends, "little").bit_count()

    def edges(self, node: int) -> tuple[int, int]:
        """The first edge of a node, and the one behind its last."""
        return self._starts[node], self._starts[node + 1]

    def label(self, edge: int) -> int:
        """The byte that an edge stands for."""
        return self._labels[edge]

    def at_least(self, byte: int, start: int, stop: int) -> int:
        """The first of these edges, which are one node's, whose label is this byte or more."""
        return bisect_left(self._labels, byte, start, stop)

    def leads_on(self, edge: int) -> bool:
        """Whether an edge leads to a node; else a key ends in it."""
        return bool(_bit(self._has_child, edge))

    def child(self, edge: int) -> int:
        """The node that an edge leads to, if it leads to one; it comes behind the edge's own."""
        return 1 + self._children_before(edge)

    def leaf(self, edge: int) -> int:
        """How many edges before this one have a key that ends in them."""
        return edge - self._children_before(edge)

    def is_key(self, node: int) -> bool:
        """Whether a key ends in a node."""
        return bool(_bit(self._ends, node))

    def _children_before(self, edge: int) -> int:
        word, place = divmod(edge, WORD)
        bits = int.from_bytes(self._has_child[8 * word : 8 * word + 8], "little")
        return self._children[word] + (bits & (1 << place) - 1).bit_count()


def _bit(row: memoryview, index: int) -> int:
    return row[index >> 3] >> (index & 7) & 1
