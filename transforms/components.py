"""Connected components of edges: by union-find where all edges are in one place, by rounds where they are not.

Rounds are large-star and small-star in turn (Kiveris, Lattanzi, Mirrokni, Rastogi, Vassilvitskii 2014, "Connected
Components in MapReduce and Beyond"). A round is two exchanges and two functions on partitions:

    outward(edges)   both directions of each edge              → exchange by first node → `large_star`
    downward(edges)  each edge from its higher to lower node   → exchange by first node → `small_star`

until both report no changed edge. Then edges are stars: every node but the lowest of its component has one edge, to
that lowest node. `stars` contracts the edges of one partition (before the first round, or after any function) to
fewer than it has nodes; that is allowed at any time and bounds what is exchanged, but the result does not need it.

Invariants: each function keeps the nodes and which of them are connected; the final stars depend on the set of edges
alone, on no partition and no order. A node without edges has no row.
Cost: a sort of the rows per function; union-find is linear but for sorting the nodes. Rounds grow with the logarithm of
the longest chain: 18 for 100,000 documents in a chain without contraction, in the worst numbering tried (the last one
finds nothing to change), 10 to 14 with contraction in 3 partitions; in 64 partitions contraction saves nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from transforms.kernels import kernel

Indices = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Links:
    """Edges a[i] – b[i] of distinct nodes, each once, sorted; `changed` of those that came in are others now."""

    a: Indices
    b: Indices
    changed: int = 0

    def __len__(self) -> int:
        """Return the number of edges."""
        return len(self.a)


@dataclass(frozen=True, slots=True)
class Roots:
    """Components: `nodes`, sorted and unique, and for each the lowest node of its component."""

    nodes: Indices
    roots: Indices

    def of(self, nodes: Indices) -> Indices:
        """Return the roots of `nodes`; one that is not listed has no edge and is its own."""
        if len(self.nodes) == 0:
            return nodes.copy()
        places = np.minimum(np.searchsorted(self.nodes, nodes), len(self.nodes) - 1)
        return np.where(self.nodes[places] == nodes, self.roots[places], nodes)


def components(a: Indices, b: Indices) -> Roots:
    """Return the components of the edges a[i] – b[i]: union-find, in memory. 40 bytes per edge."""
    nodes, local = np.unique(np.concatenate([a, b]), return_inverse=True)
    local = local.reshape(-1).astype(np.int64)
    return Roots(nodes, nodes[_lowest(np.int64(len(nodes)), local[: len(a)], local[len(a) :])])


def stars(a: Indices, b: Indices) -> Links:
    """Return as few edges with the same components: from each node to the lowest of its component."""
    found = components(a, b)
    other = found.nodes != found.roots
    return Links(found.nodes[other], found.roots[other])


def roots(a: Indices, b: Indices) -> Roots:
    """Return the components of final stars: edges of which no round changes one. Each edge leads to its root."""
    nodes, values = np.concatenate([a, b]), np.concatenate([b, b])
    names, first = np.unique(nodes, return_index=True)
    return Roots(names, values[first])


def outward(a: Indices, b: Indices) -> Links:
    """Return the rows that `large_star` needs, to be exchanged by `a`: both directions of each edge."""
    return _distinct(np.concatenate([a, b]), np.concatenate([b, a]))


def downward(a: Indices, b: Indices) -> Links:
    """Return the rows that `small_star` needs, to be exchanged by `a`: from the higher node to the lower."""
    return _distinct(np.maximum(a, b), np.minimum(a, b))


def large_star(a: Indices, b: Indices) -> Links:
    """Link the higher neighbours of each node a[i] with its lowest: itself or a neighbour. All rows of a node are here.

    An edge comes in twice, once from either end, and goes out once: from its lower end.
    """
    rows = _distinct(a, b)
    lowest = np.minimum(_first_of_run(rows.a, rows.b), rows.a)
    up = rows.b > rows.a
    edges = _distinct(rows.b[up], lowest[up])
    return Links(edges.a, edges.b, int((lowest[up] != rows.a[up]).sum()))


def small_star(a: Indices, b: Indices) -> Links:
    """Link each node a[i] and its lower neighbours with the lowest of them. All rows of a node are here."""
    rows = _distinct(a, b)
    lowest = _first_of_run(rows.a, rows.b)
    other = rows.b != lowest
    edges = _distinct(np.concatenate([rows.a, rows.b[other]]), np.concatenate([lowest, lowest[other]]))
    return Links(edges.a, edges.b, int(other.sum()))


def _distinct(a: Indices, b: Indices) -> Links:
    """Return the rows sorted by both columns, each once, without loops."""
    order = np.lexsort((b, a))
    a, b = np.asarray(a[order]), np.asarray(b[order])
    new = a != b
    new[1:] &= (a[1:] != a[:-1]) | (b[1:] != b[:-1])
    return Links(a[new], b[new])


def _first_of_run(a: Indices, b: Indices) -> Indices:
    """Return, for each row, b of the first row with its a; rows are sorted."""
    first = np.ones(len(a), np.bool_)
    first[1:] = a[1:] != a[:-1]
    return np.asarray(b[first][np.cumsum(first) - 1])


@kernel
def _lowest(nodes: np.int64, a: Indices, b: Indices) -> Indices:
    """Return the lowest node of each node's component. Links lead to lower nodes, so the lowest has none."""
    parent = np.arange(nodes)
    for e in range(a.shape[0]):
        x, y = a[e], b[e]
        while x != y:  # Rem's algorithm with splicing (Patwary, Blair, Manne 2010)
            if parent[x] == parent[y]:
                break
            if parent[x] > parent[y]:
                x, y = y, x
            if parent[y] == y:
                parent[y] = parent[x]
                break
            above = parent[y]
            parent[y] = parent[x]
            y = above
    for node in range(nodes):
        parent[node] = parent[parent[node]]
    return parent
