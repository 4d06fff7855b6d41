"""Processes that chaos starts: a run of the reduced demo, and a Ray cluster of two nodes that does as it is told.

    python -m benchmarks.chaos_child run INPUTS STORE [--runner ray] [--address HOST:PORT] [--endpoint URL --cache DIR]
    python -m benchmarks.chaos_child cluster

The cluster prints its address. A line "lose" on standard input kills its second node at once, "join" adds one, and the
end of standard input ends it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.chaos_recipe import outputs
from curate.run import run
from curate.store import StorageOptions, Store


def serve_cluster() -> None:
    """Keep a cluster of two nodes of one CPU each, and change it as standard input says."""
    from ray.cluster_utils import Cluster

    settings = {"num_cpus": 1, "object_store_memory": 128 << 20}
    cluster = Cluster(initialize_head=True, head_node_args={**settings, "include_dashboard": False})
    nodes = [cluster.add_node(**settings)]
    print(cluster.address, flush=True)
    for line in sys.stdin:
        if line.strip() == "lose" and nodes:
            cluster.remove_node(nodes.pop(), allow_graceful=False)
        elif line.strip() == "join":
            nodes.append(cluster.add_node(**settings))
        print("done", flush=True)
    cluster.shutdown()


def main(arguments: Sequence[str] | None = None) -> int:
    """Do as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    commands = parser.add_subparsers(required=True, dest="command")
    commands.add_parser("cluster")
    command = commands.add_parser("run")
    command.add_argument("inputs", type=Path)
    command.add_argument("store")
    command.add_argument("--runner", choices=["local", "ray"], default="local")
    command.add_argument("--address")
    command.add_argument("--endpoint")
    command.add_argument("--cache", type=Path)
    given = parser.parse_args(arguments)
    if given.command == "cluster":
        serve_cluster()
        return 0
    workers = None if given.address or given.runner == "local" else 2
    options = StorageOptions(endpoint=given.endpoint, region=given.endpoint and "us-east-1", cache=given.cache)
    store = Store(given.store, options=options)
    run(outputs(given.inputs), store, runner=given.runner, workers=workers, address=given.address)
    return 0


if __name__ == "__main__":
    sys.exit(main())
