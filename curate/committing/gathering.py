"""Merging receipts in a tree of tasks, so that nothing of size passes through the driver.

A task of the lowest level reads `FAN_IN` receipts and publishes their rows, merged statistics and merged samples; a
task above merges what `FAN_IN` tasks below published, until one is left. They are tasks like all others: committed by
a receipt, reused, checked by `verify`, and named in the manifest of what they were made for, so that `gc` keeps them.
Their receipts have no statistics of their own, which would count twice. Cost: a hundredth of a file per shard.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice, repeat
from typing import Any, Protocol

import pyarrow as pa

from curate.accounting.ledger import SAMPLES
from curate.accounting.statistics import Statistics, merge_all
from curate.committing.gathered import (
    FAN_IN,
    MERGED,
    ROWS,
    Node,
    ReceiptRow,
    Receipts,
    merged_samples,
    read_node,
    table_of,
)
from curate.digests import digest_json
from curate.receipts import ASKED_AT_ONCE, FileEntry, Receipt, publish_receipt, read_receipt, shard_folder
from curate.running.jobs import Item, Job
from curate.store import Store, StoreError
from curate.writer import write_parquet


@dataclass(frozen=True, slots=True)
class Branch:
    """What a task merges: receipts by shard key at level 0, nodes of the level below above."""

    level: int
    members: tuple[str, ...]

    @property
    def key(self) -> str:
        """The shard key of the node."""
        return digest_json({"operation": "gather", "level": self.level, "members": list(self.members)})

    def described(self) -> dict[str, int]:
        """Return the unit as it stands in a receipt."""
        return {"level": self.level, "members": len(self.members)}


@dataclass(frozen=True, slots=True)
class GatherJob:
    """Merges receipts, or nodes."""

    store: Store
    name: str = "gather receipts"

    def run(self, item: Item) -> None:
        """Publish the node of the branch `item.unit`.

        Raises:
            StoreError: a receipt is missing or damaged.
        """
        branch: Branch = item.unit
        if branch.level:
            rows = [ReceiptRow.of(receipt) for receipt in required_receipts(self.store, branch.members)]
            below = [read_node(self.store, key) for key in branch.members]
            node = Node(sum(node.size for node in below), merge_all(node.statistics for node in below))
            self._publish(item, node, rows, None)
        else:
            rows, statistics = read_rows(self.store, branch.members)
            self._publish(item, Node(sum(row.bytes for row in rows), statistics), rows, table_of(iter(rows)))

    def _publish(self, item: Item, node: Node, members: Sequence[ReceiptRow], table: pa.RecordBatch | None) -> None:
        folder = shard_folder(item.key)
        sampled = (row.key for row in members if "samples.parquet" in row.files)
        batches = {"rows.parquet": (table, ROWS), "samples.parquet": (merged_samples(self.store, sampled), SAMPLES)}
        files: dict[str, FileEntry] = {}
        with ExitStack() as stack:
            for name, (batch, schema) in batches.items():
                if batch is not None and batch.num_rows:
                    path = stack.enter_context(self.store.spool())
                    written = write_parquet(path, [batch], schema)
                    size = path.stat().st_size
                    digest = self.store.publish(path, f"{folder}/{name}")
                    files[name] = FileEntry(size, digest, written.rows, written.content)
        content = node.content()
        files[MERGED] = FileEntry(len(content), self.store.publish_bytes(content, f"{folder}/{MERGED}"))
        publish_receipt(self.store, Receipt(item.key, self.name, item.unit.described(), files))


def required_receipt(store: Store, key: str) -> Receipt:
    """Return the receipt of the shard `key`.

    Raises:
        StoreError: it is missing, though its task finished.
    """
    receipt = read_receipt(store, key)
    if receipt is None:
        raise StoreError(f"{store.url(shard_folder(key))}: the task finished without a receipt: run again")
    return receipt


def required_receipts(store: Store, keys: Sequence[str]) -> Iterator[Receipt]:
    """Yield the receipts of the shards `keys`, at most `FAN_IN`; from a remote store some are read at once.

    Raises:
        StoreError: one is missing or damaged.
    """
    if not store.is_remote:
        yield from (required_receipt(store, key) for key in keys)
        return
    with ThreadPoolExecutor(ASKED_AT_ONCE) as pool:
        yield from pool.map(required_receipt, repeat(store), keys)


def read_rows(store: Store, keys: Sequence[str]) -> tuple[list[ReceiptRow], Statistics]:
    """Return the rows of these receipts and their merged statistics, which are held one at a time of a local store.

    Raises:
        StoreError: a receipt is missing or damaged.
    """
    held: list[ReceiptRow] = []

    def read() -> Iterator[Statistics]:
        for receipt in required_receipts(store, keys):
            held.append(ReceiptRow.of(receipt))
            yield receipt.statistics

    statistics = merge_all(read())
    return held, statistics


class MakesItems(Protocol):
    """What gathering needs of the engine."""

    @property
    def store(self) -> Store:
        """Where receipts lie."""
        ...

    def make(self, job: Job, items: Sequence[Item], made: frozenset[str] = frozenset()) -> frozenset[str]:
        """Make the items that are missing, and those of `made` again; return the keys of what was made."""
        ...


def gather(engine: MakesItems, keys: Sequence[str], made: frozenset[str] = frozenset()) -> Receipts:
    """Return the receipts of the shards `keys`; `made` were made just now.

    A node over a shard that was made just now is made again where it is there: who removed that shard gets an error if
    it came back otherwise, never an old sum.

    Raises:
        TaskError, StoreError: a receipt is missing or damaged.
    """
    store = engine.store
    if len(keys) <= FAN_IN:
        held, statistics = read_rows(store, keys)
        return Receipts(store, len(keys), sum(row.bytes for row in held), tuple(held), statistics)
    leaves, nodes = _level(engine, 0, keys, made)
    level, members = 0, leaves
    while len(members) > 1:
        level += 1
        members, further = _level(engine, level, members, frozenset())
        nodes += further
    return Receipts(store, len(keys), read_node(store, members[0]).size, leaves=leaves, nodes=tuple(nodes))


def _level(
    engine: MakesItems, level: int, keys: Sequence[str], made: frozenset[str]
) -> tuple[tuple[str, ...], list[ReceiptRow]]:
    branches = [Branch(level, members) for members in _groups(keys, FAN_IN)]
    items = [Item(branch.key, f"level {level}, {n}", branch) for n, branch in enumerate(branches)]
    again = frozenset(item.key for item in items if made and not made.isdisjoint(item.unit.members))
    engine.make(GatherJob(engine.store), items, again)
    nodes = tuple(item.key for item in items)
    groups = _groups(nodes, FAN_IN)
    return nodes, [ReceiptRow.of(r) for group in groups for r in required_receipts(engine.store, group)]


def _groups(keys: Sequence[Any], size: int) -> Iterator[tuple[Any, ...]]:
    remaining = iter(keys)
    while group := tuple(islice(remaining, size)):
        yield group
