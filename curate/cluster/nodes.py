"""The nodes of a Ray cluster: what each has, and how many tasks of a kind fit on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from curate.running.jobs import Resources


@dataclass(frozen=True, slots=True)
class Node:
    """A node that is alive, with all it has, whether in use or not; memory in bytes."""

    id: str
    host: str
    address: str
    cpus: int
    memory: int
    gpus: int

    def fits(self, need: Resources) -> int:
        """Return how many tasks that need so much fit here at once."""
        most = self.cpus // need.cpus
        if need.memory:
            most = min(most, self.memory // need.memory)
        return min(most, self.gpus // need.gpus) if need.gpus else most

    def __str__(self) -> str:
        gpus = f", {self.gpus} GPUs" if self.gpus else ""
        return f"{self.host} ({self.address}): {self.cpus} CPUs, {self.memory / 1e9:.2f} GB of memory{gpus}"


def nodes_of(table: Sequence[dict[str, Any]]) -> tuple[Node, ...]:
    """Return the live nodes of Ray's node table, ordered."""
    alive = [row for row in table if row["Alive"]]
    return tuple(sorted((_node(row) for row in alive), key=lambda node: (node.host, node.address, node.id)))


def _node(row: dict[str, Any]) -> Node:
    has = row["Resources"]
    return Node(
        row["NodeID"], row["NodeManagerHostname"], row["NodeManagerAddress"],
        int(has.get("CPU", 0)), int(has.get("memory", 0)), int(has.get("GPU", 0)),
    )  # fmt: skip


def capacity(nodes: Sequence[Node], need: Resources) -> int:
    """Return how many tasks that need so much run at once."""
    return sum(node.fits(need) for node in nodes)


def no_room(stage: str, nodes: Sequence[Node], need: Resources) -> str:
    """Return why a stage cannot run: what its tasks need, and what there is."""
    there = "; ".join(map(str, nodes)) or "none"
    return (
        f"{stage}: each task needs {need}, and no node has as much. The nodes are {there}. Add a larger node, or lower "
        "what the stage declares"
    )
