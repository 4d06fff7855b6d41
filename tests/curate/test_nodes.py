"""What fits on which nodes, and how long to wait before a lost task is tried again."""

from __future__ import annotations

from typing import Any

import pytest

from curate.cluster.nodes import capacity, no_room, nodes_of
from curate.cluster.retries import Retries
from curate.running.jobs import Resources, resources_of

GB = 10**9


def row(name: str, alive: bool = True, **resources: float) -> dict[str, Any]:
    return {
        "NodeID": name, "Alive": alive, "NodeManagerAddress": f"10.0.0.{len(name)}", "NodeManagerHostname": name,
        "Resources": {**resources, "object_store_memory": 1.0},
    }  # fmt: skip


NODES = nodes_of([row("small", CPU=4.0, memory=8.0 * GB), row("large", CPU=16.0, memory=256.0 * GB, GPU=2.0),
                  row("head", memory=8.0 * GB), row("dead", alive=False, CPU=64.0, memory=999.0 * GB)])  # fmt: skip


@pytest.mark.parametrize(
    ("need", "most"),
    [
        (Resources(), 20),
        (Resources(cpus=3), 1 + 5),
        (Resources(memory=3 * GB), 2 + 16),
        (Resources(memory=9 * GB), 16),
        (Resources(gpus=1), 2),
        (Resources(memory=300 * GB), 0),
        (Resources(cpus=17), 0),
    ],
)
def test_capacity_counts_what_fits_on_each_live_node_by_every_resource(need: Resources, most: int) -> None:
    assert capacity(NODES, need) == most


def test_stage_without_room_is_told_with_what_it_needs_and_what_each_node_has() -> None:
    message = no_room("group", NODES, Resources(2, 300 * GB))
    assert message.startswith("group: each task needs 2 CPUs, 300.00 GB of memory, and no node has as much.")
    for part in ("large (10.0.0.5): 16 CPUs, 256.00 GB of memory, 2 GPUs", "small (10.0.0.5): 4 CPUs, 8.00 GB"):
        assert part in message
    assert "dead" not in message


def test_resources_below_a_cpu_are_refused_and_jobs_without_any_take_one() -> None:
    with pytest.raises(ValueError, match="at least one CPU"):
        Resources(0)
    with pytest.raises(ValueError, match="at least one CPU"):
        Resources(memory=-1)
    assert resources_of(object()) == Resources(1, 0, 0)  # type: ignore[arg-type]


def test_waits_double_up_to_the_longest() -> None:
    retries = Retries(first=1.0, longest=10.0)
    assert [retries.wait(losses) for losses in (1, 2, 3, 4, 5, 1000)] == [1.0, 2.0, 4.0, 8.0, 10.0, 10.0]
