from __future__ import annotations

import itertools
import math
import random

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transforms.components import (
    Links,
    Roots,
    components,
    downward,
    large_star,
    outward,
    roots,
    small_star,
    stars,
)
from transforms.duplicates import STAYS, survivors

Longs = npt.NDArray[np.int64]
EDGES = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=40)


def longs(values: object) -> Longs:
    return np.array(values, np.int64)


def columns(edges: list[tuple[int, int]]) -> tuple[Longs, Longs]:
    return longs([a for a, _ in edges]), longs([b for _, b in edges])


def by_walking(a: Longs, b: Longs) -> dict[int, int]:
    """Return the lowest node of each node's component, by walking from each lowest node."""
    neighbours: dict[int, set[int]] = {}
    for x, y in zip(a.tolist(), b.tolist(), strict=True):
        neighbours.setdefault(x, set()).add(y)
        neighbours.setdefault(y, set()).add(x)
    lowest: dict[int, int] = {}
    for start in sorted(neighbours):
        waiting = [start] if start not in lowest else []
        while waiting:
            node = waiting.pop()
            if node not in lowest:
                lowest[node] = start
                waiting.extend(neighbours[node])
    return lowest


def exchanged(parts: list[Links], partitions: int) -> list[tuple[Longs, Longs]]:
    """Return the rows of all parts by their first node: what an exchange does, in an arbitrary order."""
    a, b = (np.concatenate([getattr(part, name) for part in parts]) for name in ("a", "b"))
    place = (a.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(40)).astype(np.int64) % partitions
    return [(a[place == p][::-1], b[place == p][::-1]) for p in range(partitions)]


def by_rounds(a: Longs, b: Longs, partitions: int, contract: bool) -> tuple[Roots, int]:
    """Return the components by large-star and small-star over partitions, and the number of rounds."""
    parts = [Links(a[p::partitions], b[p::partitions]) for p in range(partitions)]
    for number in itertools.count(1):
        changed = 0
        for spread, function in ((outward, large_star), (downward, small_star)):
            parts = [stars(part.a, part.b) for part in parts] if contract else parts
            rows = exchanged([spread(part.a, part.b) for part in parts], partitions)
            parts = [function(*part) for part in rows]
            changed += sum(part.changed for part in parts)
        if changed == 0:
            a, b = (np.concatenate([getattr(part, name) for part in parts]) for name in ("a", "b"))
            return roots(a, b), number
    raise AssertionError


def as_dict(found: Roots) -> dict[int, int]:
    return dict(zip(found.nodes.tolist(), found.roots.tolist(), strict=True))


def without_loops(edges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    return [edge for edge in edges if edge[0] != edge[1]]


@settings(max_examples=200)
@given(edges=EDGES)
def test_components_of_any_edges_are_those_found_by_walking(edges: list[tuple[int, int]]) -> None:
    a, b = columns(edges)
    expected = by_walking(a, b)
    found = components(a, b)
    assert as_dict(found) == expected
    assert found.of(np.arange(40)).tolist() == [expected.get(node, node) for node in range(40)]
    links = stars(a, b)
    assert sorted(zip(links.a.tolist(), links.b.tolist(), strict=True)) == sorted(
        (node, root) for node, root in expected.items() if node != root
    )


@settings(max_examples=200)
@given(edges=EDGES, partitions=st.integers(1, 4), contract=st.booleans())
def test_rounds_of_any_edges_give_the_components_for_any_partitions(
    edges: list[tuple[int, int]], partitions: int, contract: bool
) -> None:
    edges = without_loops(edges)
    a, b = columns(edges)
    found, _ = by_rounds(a, b, partitions, contract)
    assert as_dict(found) == by_walking(a, b)


@given(edges=EDGES)
def test_each_star_keeps_what_is_connected_and_counts_its_changes(edges: list[tuple[int, int]]) -> None:
    edges = without_loops(edges)
    a, b = columns(edges)
    expected = by_walking(a, b)
    for spread, function in ((outward, large_star), (downward, small_star)):
        rows = spread(a, b)
        made = function(rows.a, rows.b)
        assert as_dict(components(made.a, made.b)) == expected
        before, after = (
            {frozenset(edge) for edge in zip(x.a.tolist(), x.b.tolist(), strict=True)} for x in (rows, made)
        )
        assert (made.changed == 0) == (before == after)
        assert len(made) <= len(before)


def chain(count: int, order: str) -> tuple[Longs, Longs]:
    names = np.arange(count)
    if order == "mixed":
        names = np.random.default_rng(0).permutation(count)
    elif order == "zigzag":
        names = np.where(names % 2, count - names, names)
    return names[:-1].astype(np.int64), names[1:].astype(np.int64)


@pytest.mark.parametrize("order", ["ascending", "mixed", "zigzag"])
def test_rounds_on_a_chain_grow_with_its_logarithm(order: str) -> None:
    for count in (1000, 100_000):
        found, rounds = by_rounds(*chain(count, order), 3, contract=False)
        assert len(found.nodes) == count and len(np.unique(found.roots)) == 1
        assert rounds <= math.log2(count) + 2  # 11 and 18 for both numberings that are bad


@pytest.mark.parametrize("order", ["ascending", "mixed", "zigzag"])
def test_rounds_with_contraction_in_few_partitions_are_fewer(order: str) -> None:
    plain, less = (by_rounds(*chain(20_000, order), 3, contract)[1] for contract in (False, True))
    assert less < plain


def test_no_edges_have_no_components() -> None:
    none = longs([])
    assert len(components(none, none).nodes) == 0 and len(stars(none, none)) == 0
    assert large_star(none, none).changed == small_star(none, none).changed == 0
    assert roots(none, none).of(longs([4])).tolist() == [4]


# --- survivors per component -----------------------------------------------------------------------------------------


def drawn_graph(seed: int) -> tuple[Longs, Longs, Longs, Longs, Longs]:
    draw, count = np.random.default_rng(seed), 3000
    a, b = draw.integers(0, count, (2, 2200))
    a, b = np.minimum(a, b)[a != b], np.maximum(a, b)[a != b]
    whole = draw.integers(90, 100, len(a))
    return draw.permutation(count), a, b, draw.integers(80, 90, len(a)), whole


@pytest.mark.parametrize("keep", [1, 2])
def test_survivors_per_component_are_those_of_all_edges(keep: int) -> None:
    rank, a, b, shared, whole = drawn_graph(1)
    expected = survivors(rank, a, b, shared, whole, keep=keep)
    keeper, edge = np.full(len(rank), STAYS, np.int64), np.full(len(rank), STAYS, np.int64)
    found = components(a, b)
    of_edge = found.of(a)
    for root in np.unique(of_edge).tolist():
        mine = np.flatnonzero(of_edge == root)
        nodes, local = np.unique(np.concatenate([a[mine], b[mine]]), return_inverse=True)
        verdict = survivors(rank[nodes], local[: len(mine)], local[len(mine) :], shared[mine], whole[mine], keep=keep)
        goes = verdict.keeper != STAYS
        keeper[nodes[goes]], edge[nodes[goes]] = nodes[verdict.keeper[goes]], mine[verdict.edge[goes]]
    assert keeper.tolist() == expected.keeper.tolist() and edge.tolist() == expected.edge.tolist()
    assert (keeper != STAYS).sum() > 300 and len(np.unique(of_edge)) > 20


def test_survivors_in_ranges_of_the_keep_order_are_those_of_one_call() -> None:
    """A component too large for a task: three calls, each with the edges whose later end is in its range."""
    rank, a, b, shared, whole = drawn_graph(2)
    expected = survivors(rank, a, b, shared, whole)
    state, keeper = np.full(len(rank), -1, np.int8), np.full(len(rank), STAYS, np.int64)
    for first, last in ((0, 1000), (1000, 1800), (1800, 3000)):
        mine = (rank >= first) & (rank < last)
        here = mine[np.where(rank[a] > rank[b], a, b)]
        known = np.where(mine, -1, np.where(rank < first, state, 0)).astype(np.int8)  # later ones have no edge here
        verdict = survivors(rank, a[here], b[here], shared[here], whole[here], before=known)
        keeper[mine], state[mine] = verdict.keeper[mine], verdict.keeper[mine] == STAYS
    assert keeper.tolist() == expected.keeper.tolist()


def test_keeping_several_leaves_each_dropped_document_as_many_survivors() -> None:
    rank, a, b, shared, whole = drawn_graph(3)
    neighbours: dict[int, set[int]] = {d: set() for d in range(len(rank))}
    for x, y in zip(a.tolist(), b.tolist(), strict=True):
        neighbours[x].add(y)
        neighbours[y].add(x)
    for keep in (1, 2, 3):
        keeper = survivors(rank, a, b, shared, whole, keep=keep).keeper
        stays = {d for d in range(len(rank)) if keeper[d] == STAYS}
        for d in range(len(rank)):
            earlier = {other for other in neighbours[d] & stays if rank[other] < rank[d]}
            assert (d in stays) == (len(earlier) < keep)
            assert d in stays or int(keeper[d]) in earlier


def test_edges_given_in_another_order_have_the_same_components() -> None:
    _, a, b, _, _ = drawn_graph(4)
    order = list(range(len(a)))
    random.Random(0).shuffle(order)
    assert as_dict(components(b[order], a[order])) == as_dict(components(a, b))
