"""Going on with a plan under another mixture: the past stays, bit for bit, or the plan is refused.

Batches of the past depend on the seed, the batch size, the sequences, the padding, and the components and counts of
its segments. New components are appended, so that old ones keep their index; a segment's order of drawing depends on
its own counts alone.
"""

from __future__ import annotations

from dataclasses import replace

from mixtures.differences import differences
from mixtures.errors import PlanError
from mixtures.plan import Plan

_FREE = ("components", "segments", "earlier")


def joined(past: Plan, future: Plan) -> Plan:
    """Return the plan that draws `past`, then the segments of `future`.

    Raises:
        PlanError: a setting, or the cache of a component that both have, is another; names the first such field.
    """
    before, after = past.to_json(), future.to_json()
    old = {item["name"]: item for item in before["components"]}
    new = {item["name"]: item for item in after["components"]}
    shared = sorted(old.keys() & new.keys())
    ours = {name: value for name, value in before.items() if name not in _FREE}
    theirs = {name: value for name, value in after.items() if name not in _FREE}
    settings = differences(ours, theirs)
    caches = differences({name: old[name] for name in shared}, {name: new[name] for name in shared}, "components")
    for difference in (*settings, *caches):
        raise PlanError(f"a continued plan keeps its past: {difference}")
    added = tuple(component for component in future.components if component.name not in old)
    return replace(
        future,
        components=(*past.components, *added),
        segments=(*past.segments, *future.segments),
        earlier=past.earlier,
    )
