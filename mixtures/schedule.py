"""Which component the i-th sequence of a phase comes from: exact counts, random access, and a constant drift.

Components are the leaves of a Huffman tree over their counts (Huffman 1952; of equal weights the component that comes
first, and before merged nodes, is taken first). A node v of weight w is passed by w of the phase's sequences. Of the
first m of them, L(m) = ⌊(m·w' + ⌊w/2⌋) / w⌋ go to its left child of weight w', the heavier one, the others to the
right. L(0) = 0, L(w) = w', and L grows by 0 or 1, so each leaf is reached exactly as often as its count says, and
following one index down the tree takes as many divisions as its leaf is deep.

**Bound.** Let c(m) be the draws of a component with count q among the first m of T. For any m, any number of components
and any length, |c(m) - m·q/T| < 1.68.

Proof. For a node v let e(v) be the number of the first m that pass it, less m·w/T. At the root e = 0. L differs from
m·w'/w by some d with |d| ≤ 1/2, so the children have e' = e·w'/w + d and e'' = e·w''/w - d. Unrolled from a leaf of
weight w0 through its ancestors' weights w1 < w2 < … up to, not including, the root:
|e| ≤ ½·(1 + w0/w1 + w0/w2 + …). In a Huffman tree weights grow like Fibonacci numbers towards the root: the node merged
with v(j+1) was there already when v(j) was merged, or was made later; in both cases it weighs at least as much as v(j),
because v(j) was one of the two lightest. So w(j+2) ≥ w(j+1) + w(j), and with w1 ≥ w0, w(j) ≥ F(j+1)·w0. The sum is less
than that of the reciprocals of the Fibonacci numbers, 3.3599 (the reciprocal Fibonacci constant); half of it is below
1.68. ∎

Any window of draws is within 3.36 of its share. (Bit-reversed tickets drift by about log2 T / 3. A schedule within 1
exists, Tijdeman 1980, but nobody knows how to enter it in the middle.)

Invariants: counts exact over the phase; the same for single indices and batches.
Cost: on average as many steps as the entropy of the mixture in bits, plus one at most: about 0.1 µs for 200 components.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from transforms.kernels import kernel

DRIFT: Final = 1.68
"""Bound on |draws of a component among the first m - m·count/length|, for every m."""

LONGEST: Final = 1 << 50
"""Longest phase, in sequences: estimates in double precision are then off by at most one, which is put right."""

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Schedule:
    """The order in which a phase draws its components. `counts[i]` ≥ 1 is how often component i is drawn."""

    counts: tuple[int, ...]
    _nodes: Integers = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Build the tree.

        Raises:
            ValueError: there is no component, a count is below 1, or they add up to more than 2^50.
        """
        if not self.counts or min(self.counts) < 1 or sum(self.counts) > LONGEST:
            raise ValueError(f"a schedule needs counts of at least 1 that add up to at most 2^50, got {self.counts}")
        object.__setattr__(self, "_nodes", _huffman(self.counts))

    def __len__(self) -> int:
        return sum(self.counts)

    def draw(self, indices: Integers) -> tuple[Integers, Integers]:
        """Return the component of each of `indices`, and how often it was drawn before.

        Raises:
            IndexError: an index is not in range(len(self)).
        """
        outside = indices[(indices < 0) | (indices >= len(self))]
        if len(outside):
            raise IndexError(f"{int(outside[0])} is not in range({len(self)})")
        return _descend(indices, self._nodes)

    def drawn(self, length: int) -> list[int]:
        """Return how often each component is drawn among the first `length`."""
        result = [0] * len(self.counts)
        passing = {len(self._nodes) - 1: length}
        if len(self.counts) == 1:
            return [length]
        for node in range(len(self._nodes) - 1, -1, -1):
            left, right, left_weight, weight = (int(value) for value in self._nodes[node])
            arrived = passing[node]
            to_left = (arrived * left_weight + weight // 2) // weight
            for child, count in ((left, to_left), (right, arrived - to_left)):
                if child < 0:
                    result[~child] = count
                else:
                    passing[child] = count
        return result

    def index(self, component: int, number: int) -> int:
        """Return the index at which `component` is drawn for the time `number` (from 0): the inverse of `draw`.

        Raises:
            IndexError: `component` is not drawn that often.
        """
        if not 0 <= number < self.counts[component]:
            raise IndexError(f"component {component} is drawn {self.counts[component]} times, not {number + 1}")
        parents = {int(child): node for node in range(len(self._nodes)) for child in self._nodes[node, :2]}
        child = ~component
        while child in parents:
            node = parents[child]
            left, _, left_weight, weight = (int(value) for value in self._nodes[node])
            half = weight // 2
            if child == left:  # the first m with L(m + 1) > number
                number = -((half - (number + 1) * weight) // left_weight) - 1
            else:  # the first m with m + 1 - L(m + 1) > number
                number = ((number + 1) * weight - (weight - 1 - half) + (weight - left_weight) - 1) // (
                    weight - left_weight
                ) - 1
            child = node
        return number


def _huffman(counts: Sequence[int]) -> Integers:
    """Return inner nodes, children before parents, as rows (left, right, weight of left, weight); leaf i is ~i."""
    heap = [(count, leaf, ~leaf) for leaf, count in enumerate(counts)]
    heapq.heapify(heap)
    nodes = []
    while len(heap) > 1:
        right_weight, _, right = heapq.heappop(heap)
        left_weight, _, left = heapq.heappop(heap)
        nodes.append((left, right, left_weight, left_weight + right_weight))
        heapq.heappush(heap, (left_weight + right_weight, len(counts) + len(nodes), len(nodes) - 1))
    return np.array(nodes, np.int64).reshape(-1, 4)


@kernel
def _descend(indices: Integers, nodes: Integers) -> tuple[Integers, Integers]:
    components = np.zeros(len(indices), np.int64)
    numbers = np.empty(len(indices), np.int64)
    for i in range(len(indices)):
        number = np.uint64(indices[i])
        node = np.int64(len(nodes) - 1)
        while node >= 0:
            left_weight, weight = np.uint64(nodes[node, 2]), np.uint64(nodes[node, 3])
            to_left = np.uint64(np.float64(number) * (np.float64(left_weight) / np.float64(weight)))
            # Exact although the product wraps: the remainder lies between -2 and 3 weights, far below 2^63.
            rest = np.int64(number * left_weight + weight // np.uint64(2) - to_left * weight)
            signed = np.int64(weight)
            while rest < 0:
                to_left -= np.uint64(1)
                rest += signed
            while rest >= signed:
                to_left += np.uint64(1)
                rest -= signed
            if rest + np.int64(left_weight) >= signed:
                node, number = nodes[node, 0], to_left
            else:
                node, number = nodes[node, 1], number - to_left
        components[i] = ~node
        numbers[i] = np.int64(number)
    return components, numbers
