"""Edges decided on by component, in tasks, equal the sequential rule over all edges: any graph, any partitions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from curate.deduplication import _Making, components
from curate.deduplication.components import final_roots, whole_runs
from curate.deduplication.decide import _cuts
from curate.deduplication.pairs import by_node
from curate.deduplication.plan import CANDIDATES, EDGES, LINKS, Plan, edges_files
from curate.deduplication.shingles import candidates_exchange
from curate.exchange import LIMITS
from curate.regroup import regroup
from curate.running.engine import Engine
from curate.running.jobs import Item, Spooled, publish_files
from curate.running.journal import Journal
from curate.running.runners import LocalRunner
from curate.store import Store
from curate.writer import write_parquet
from transforms.components import components as connected
from transforms.duplicates import STAYS, survivors
from transforms.minhash import MinHash
from transforms.schema import BASE

LAYOUTS = ((1 << 20, 1 << 20, 1), (1 << 20, 0, 1 << 20), (60_000, 0, 7))
"""Bytes of a partition, edges that one task decides on, edges that are held."""

Longs = npt.NDArray[np.int64]
Row = tuple[int, int, int, int, int]


@dataclass(frozen=True)
class Graph:
    """Edges a < b, each once, with made-up similarities, and a keep order of the nodes."""

    a: Longs
    b: Longs
    rank: Longs

    @property
    def similarity(self) -> list[Longs]:
        """Sizes of intersection and union, and a band."""
        return [60 + (self.a * 7 + self.b * 13) % 40, np.full(len(self.a), 100), (self.a + self.b) % 20]


def graph(pairs: list[tuple[int, int]], seed: int) -> Graph:
    edges = np.array(sorted({(min(pair), max(pair)) for pair in pairs if pair[0] != pair[1]}), np.int64).reshape(-1, 2)
    nodes = int(edges.max(initial=0)) + 1
    return Graph(edges[:, 0].copy(), edges[:, 1].copy(), np.random.default_rng(seed).permutation(nodes))


def graphs() -> Iterator[tuple[str, Graph]]:
    draw = np.random.default_rng(3)
    names = draw.permutation(300).tolist()
    yield "chain", graph([(names[i], names[i + 1]) for i in range(120)], 1)
    yield "star", graph([(names[0], name) for name in names[1:150]], 2)
    yield (
        "cliques",
        graph([(a, b) for at in (0, 15, 40) for a in range(at, at + 14) for b in range(at, a)], 3),
    )
    yield "random", graph(draw.integers(0, 250, (200, 2)).tolist(), 4)
    yield "dense", graph(draw.integers(0, 60, (700, 2)).tolist(), 5)
    yield "one edge", graph([(4, 9)], 6)


def by_definition(of: Graph, keep: int) -> list[Row]:
    """Return (what goes, because of whom, their similarity) of one call over all edges."""
    similarity = of.similarity
    found = survivors(of.rank, of.a, of.b, similarity[0], similarity[1], keep=keep)
    goes = np.flatnonzero(found.keeper != STAYS)
    rows = [goes, found.keeper[goes], *(column[found.edge[goes]] for column in similarity)]
    return sorted(zip(*(row.tolist() for row in rows), strict=True))


def in_tasks(folder: Path, of: Graph, keep: int, partition_bytes: int, most: int, held: int) -> tuple[list[Row], bool]:
    """Return the same from the tasks of a deduplication, and whether these were rounds."""
    store, size = Store(folder), len(of.rank)
    limits = replace(LIMITS, partition_bytes=partition_bytes, most_partitions=3, fan_in=3, memory=30_000)
    given = ("key", ("shard",), (size,), ("s",), (), None, MinHash(), BASE, limits, keep)
    plan = Plan(store, *given, max_component_edges=most, held_edges=held)
    places, refs = edges_files(plan), np.arange(size)
    place = (of.a * 5 + of.b) % len(places)  # an edge lies anywhere
    with candidates_exchange(plan).collect() as orders:
        ids = pa.array([int(ref).to_bytes(16, "big") for ref in refs], pa.binary(16))
        keys = pa.array([int(rank).to_bytes(4, "big") for rank in of.rank], pa.large_binary())
        rows = pa.RecordBatch.from_arrays([pa.array(refs), ids, keys], schema=CANDIDATES)
        orders.add(rows, by_node(refs, plan.bucket_partitions))
        exchange = candidates_exchange(plan)
        others: dict[str, Spooled] = {exchange.file: orders.finish()}
        for number, (task, unit) in enumerate(places):
            mine = place == number
            table = pa.RecordBatch.from_arrays([pa.array(c[mine]) for c in (of.a, of.b, *of.similarity)], schema=EDGES)
            with store.spool() as path:
                write_parquet(path, [table], EDGES)
                files = {**others, "edges.parquet": (path, table.num_rows)}
                publish_files(store, Item(plan.inner_key(task, unit), "", unit), task, files, {})
            others = {}  # the first has the keep order
    with closing(Journal(store)) as journal:
        making = _Making(plan, Engine(store, LocalRunner(), journal))
        ordered, _ = regroup(making.engine, exchange, [plan.inner_key(*places[0])])
        near = making.decide(ordered, len(of.a))
    found = pa.concat_tables([near.table(partition) for partition in range(plan.shard_partitions)])
    assert [int.from_bytes(i, "big") for i in found.column("keeper_id").to_pylist()] == found.column(
        "keeper"
    ).to_pylist()
    columns = [found.column(name).to_pylist() for name in ("ref", "keeper", "shared", "whole", "band")]
    return sorted(zip(*columns, strict=True)), any(
        "relinked" in of.statistics().get("duplicates", {}) for of in making.inner
    )


@pytest.mark.parametrize(("name", "of"), list(graphs()), ids=lambda value: value if isinstance(value, str) else "")
def test_any_graph_is_decided_on_by_component_as_by_one_pass_over_all_edges(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, of: Graph
) -> None:
    monkeypatch.setattr(components, "EDGES_AT_ONCE", 16)
    case = 0
    for keep in (1, 2):
        expected = by_definition(of, keep)
        for partition_bytes, most, held in LAYOUTS:
            found, rounds = in_tasks(tmp_path / str(case := case + 1), of, keep, partition_bytes, most, held)
            assert found == expected
            assert rounds == (most == 0)
    assert keep == 2 and (expected or name != "dense")


def test_links_of_a_node_that_goes_on_in_the_next_batch_are_led_by_its_lowest() -> None:
    a, b = np.array([1, 1, 2, 2, 2, 2, 5]), np.array([3, 4, 1, 6, 7, 8, 6])
    rows = pa.RecordBatch.from_arrays([pa.array(a), pa.array(b)], schema=LINKS)
    for size in (1, 2, 3, 7):
        pieces = [rows.slice(start, size) for start in range(0, 7, size)]
        for names, others in whole_runs(iter(pieces)):
            first = {name: int(b[a == name][0]) for name in names.tolist()}
            assert {name: int(others[names == name][0]) for name in names.tolist()} == first
        roots = final_roots(iter(pieces))
        assert roots.nodes.tolist() == [1, 2, 5] and roots.roots.tolist() == [1, 1, 5]


@pytest.mark.parametrize(
    ("limit", "cuts"), [(1, [(0, 1), (1, 2), (2, 3), (3, 4)]), (5, [(0, 2), (2, 4)]), (99, [(0, 4)])]
)
def test_ranges_of_keep_order_have_no_more_edges_than_are_held_or_are_one_document(
    limit: int, cuts: list[tuple[int, int]]
) -> None:
    assert list(_cuts(np.array([2, 3, 4, 1]), limit)) == cuts


def test_components_of_the_same_graph_are_what_they_were() -> None:
    """The graphs above have what they are there for: a long component, a wide one, several."""
    sizes = {name: len(np.unique(connected(of.a, of.b).roots)) for name, of in graphs()}
    assert (sizes["chain"], sizes["star"], sizes["cliques"], sizes["one edge"]) == (1, 1, 3, 1) and sizes["random"] > 9
