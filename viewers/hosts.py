"""How many hosts the documents of a stage come from: exact while all fit into the statistics, else sketched."""

from __future__ import annotations

from dataclasses import dataclass

from curate.accounting.statistics import estimate_distinct
from viewers.loading import StageView


@dataclass(frozen=True, slots=True)
class Hosts:
    """A number of hosts; not exact when it is estimated from a HyperLogLog sketch."""

    number: int
    is_exact: bool


def hosts_of(stage: StageView) -> Hosts | None:
    """Return how many hosts there are; None when no document has an address with one ("file:/a" has none)."""
    node = stage.statistics.get("hosts", {"most": {"least": {}, "k": 0}})
    held = node["most"]
    named = sum(bool(entry["name"]) for entry in held["least"].values())
    if not named:
        return None
    if len(held["least"]) < held["k"]:
        return Hosts(named, True)
    return Hosts(estimate_distinct(node["distinct"]), False)
