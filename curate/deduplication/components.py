"""Components of edges that are too many for one task: rounds of large-star and small-star, then edges by component.

    links       per file of edges        edges, contracted                       → both directions, by node; edges
    large star  per partition of nodes   higher neighbours to the lowest         → by higher node
    small star  per partition of nodes   lower neighbours to the lowest          → both directions, by node
                … until neither changes a link; then
    label       per partition of nodes   edges and keep orders with their root   → by root
    decide      per partition of roots   the sequential rule (`curate.deduplication.decide`)

Every round is committed like all tasks. Links stream by in the order of nodes, so no node's neighbours need to fit into
memory; a label task holds the roots of its nodes, 32 bytes each. The outcome does not depend on partitions or batches.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from curate.deduplication.pairs import by_node
from curate.deduplication.plan import CANDIDATES, EDGES, LINKS, ROOTED_EDGES, ROOTED_ORDERS, Plan, Refs, edges_files
from curate.regroup import Exchange, Regrouped
from curate.running.jobs import Item, Resources, publish_files
from curate.store import Store
from transforms.components import Links, Roots, downward, large_star, outward, small_star, stars

EDGES_AT_ONCE: Final = 1 << 20
"""Edges that are contracted at a time: a constant of the format, as it decides on links."""

Half = Literal["large", "small"]
HALVES: Final[tuple[Half, ...]] = ("large", "small")


def links_exchange(plan: Plan, step: int = 0) -> Exchange:
    """Return the regrouping of links by node before the half round `step`."""
    return plan.exchange(f"links-{step}", LINKS, ("a", "b"), plan.bucket_partitions)


def edges_exchange(plan: Plan) -> Exchange:
    """Return the regrouping of edges by their first node."""
    return plan.exchange("edges", EDGES, ("a", "b"), plan.bucket_partitions)


def rooted_edges_exchange(plan: Plan, edges: int) -> Exchange:
    """Return the regrouping of all `edges` by component."""
    return plan.exchange("rooted", ROOTED_EDGES, ("root", "a", "b"), plan.root_partitions(edges))


def rooted_orders_exchange(plan: Plan, edges: int) -> Exchange:
    """Return the regrouping of keep orders of what has an edge, by component."""
    return plan.exchange("ranked", ROOTED_ORDERS, ("root", "ref"), plan.root_partitions(edges))


@dataclass(frozen=True, slots=True)
class LinksJob:
    """Per file of edges: its edges by node, and links with the same components in both directions."""

    plan: Plan
    name: str = "deduplicate: links"

    @property
    def store(self) -> Store:
        """The store of the plan."""
        return self.plan.store

    @property
    def resources(self) -> Resources:
        """What a task needs."""
        return Resources(memory=self.plan.resources.memory + 200 * EDGES_AT_ONCE)

    def run(self, item: Item) -> int:
        """Publish the links and edges of the file `item.unit`, and return how many edges there are."""
        plan, count = self.plan, 0
        task, unit = edges_files(plan)[item.unit]
        with links_exchange(plan).collect(2) as links, edges_exchange(plan).collect(2) as edges:
            with pq.ParquetFile(plan.file(task, unit, "edges.parquet")) as file:
                for rows in file.iter_batches(EDGES_AT_ONCE):
                    a, b = (rows.column(name).to_numpy() for name in ("a", "b"))
                    edges.add(
                        pa.RecordBatch.from_arrays(rows.columns, schema=EDGES), by_node(a, plan.bucket_partitions)
                    )
                    found = stars(a, b)
                    found = outward(found.a, found.b)
                    links.add(_rows(found), by_node(found.a, plan.bucket_partitions))
                    count += rows.num_rows
            files = {collector.exchange.file: collector.finish() for collector in (links, edges)}
            publish_files(self.store, item, self.name, files, {})
        return count


@dataclass(frozen=True, slots=True)
class StarJob:
    """Per partition of nodes: one half round on its links."""

    plan: Plan
    links: Regrouped
    half: Half
    step: int

    @property
    def name(self) -> str:
        """What the tasks do."""
        return f"deduplicate: {self.half} star {self.step // 2}"

    @property
    def store(self) -> Store:
        """The store of the plan."""
        return self.plan.store

    @property
    def resources(self) -> Resources:
        """What a task needs."""
        return self.plan.resources

    def run(self, item: Item) -> int:
        """Publish the links of partition `item.unit` for the next half round; return how many were read."""
        exchange, count, changed = links_exchange(self.plan, self.step + 1), 0, 0
        star, turn = (large_star, downward) if self.half == "large" else (small_star, outward)
        with exchange.collect() as links:
            for a, b in whole_runs(self.links.batches(item.unit)):
                found = star(a, b)
                count, changed = count + len(a), changed + found.changed
                found = turn(found.a, found.b)
                links.add(_rows(found), by_node(found.a, exchange.partitions))
            counts = {"duplicates": {"relinked": changed}}
            publish_files(self.store, item, self.name, {exchange.file: links.finish()}, counts)
        return count


def whole_runs(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[Refs, Refs]]:
    """Yield the columns of sorted links, each batch led by the first link of the node that it goes on with.

    So a star function, to which a link counts once however often it comes, sees the lowest neighbour of each node.
    """
    last = (-1, -1)
    for batch in batches:
        a, b = batch.column("a").to_numpy(), batch.column("b").to_numpy()
        goes_on = int(a[0]) == last[0]
        if goes_on:
            a, b = np.concatenate([[last[0]], a]), np.concatenate([[last[1]], b])
        yield a, b
        last = int(a[-1]), int(b[np.searchsorted(a, a[-1])])


def _rows(links: Links) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(links.a), pa.array(links.b)], schema=LINKS)


@dataclass(frozen=True, slots=True)
class LabelJob:
    """Per partition of nodes: edges and keep orders with the root of their component, which final `links` tell."""

    plan: Plan
    links: Regrouped
    edges: Regrouped
    orders: Regrouped
    count: int
    name: str = "deduplicate: label"

    @property
    def store(self) -> Store:
        """The store of the plan."""
        return self.plan.store

    @property
    def resources(self) -> Resources:
        """What a task needs."""
        return self.plan.resources

    def run(self, item: Item) -> int:
        """Publish edges and keep orders of partition `item.unit` by root; return how many edges there are."""
        plan, roots, count = self.plan, final_roots(self.links.batches(item.unit)), 0
        edges, orders = rooted_edges_exchange(plan, self.count), rooted_orders_exchange(plan, self.count)
        with edges.collect(2) as rooted, orders.collect(2) as ranked:
            for batch in self.edges.batches(item.unit):
                root = roots.of(batch.column("a").to_numpy())
                rows = pa.RecordBatch.from_arrays([pa.array(root), *batch.columns], schema=ROOTED_EDGES)
                rooted.add(rows, by_node(root, edges.partitions))
                count += batch.num_rows
            for batch in self.orders.batches(item.unit):
                batch = batch.filter(pa.array(np.isin(batch.column("ref").to_numpy(), roots.nodes)))
                root = roots.of(batch.column("ref").to_numpy())
                columns = [pa.array(root), *(batch.column(name) for name in CANDIDATES.names)]
                ranked.add(pa.RecordBatch.from_arrays(columns, schema=ROOTED_ORDERS), by_node(root, orders.partitions))
            files = {collector.exchange.file: collector.finish() for collector in (rooted, ranked)}
            publish_files(self.store, item, self.name, files, {})
        return count


def final_roots(batches: Iterator[pa.RecordBatch]) -> Roots:
    """Return the roots of the nodes of final links, which come in both directions: the lower end of the first."""
    nodes, roots = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for a, b in whole_runs(batches):
        names, first = np.unique(a, return_index=True)
        nodes.append(names)
        roots.append(np.minimum(names, b[first]))
    names, first = np.unique(np.concatenate(nodes), return_index=True)
    return Roots(names, np.concatenate(roots)[first])
