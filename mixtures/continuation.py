"""Going on with a plan under another mixture: the past stays, bit for bit, or the plan is refused.

Batches of the past depend on the seed, the batch size, the sequences, the padding, and the components and counts of
its segments. New components are appended, so that old ones keep their index; a segment's order of drawing depends on
its own counts alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mixtures.differences import differences
from mixtures.errors import PlanError
from mixtures.plan import Plan
from mixtures.plan_fields import Component, to_json

_SETTINGS = ("seed", "batch", "sequences", "tokenizer", "vocabulary", "padding", "validation", "views")


def require_past(past: Plan, settings: Mapping[str, Any], components: Mapping[str, Component]) -> None:
    """Check that a mixture with these `settings` (fields of a plan) and `components` may go on with `past`.

    Raises:
        PlanError: a setting, or the cache of a component that both have, is another; names the first such field.
    """
    old = {component.name: component for component in past.components}
    shared = sorted(old.keys() & components.keys())
    ours = {name: to_json(getattr(past, name)) for name in _SETTINGS}
    theirs = {name: to_json(settings[name]) for name in _SETTINGS}
    before = {name: to_json(old[name]) for name in shared}
    after = {name: to_json(components[name]) for name in shared}
    for difference in (*differences(ours, theirs), *differences(before, after, "components")):
        raise PlanError(f"a continued plan keeps its past: {difference}")


def joined(past: Plan, future: Plan) -> Plan:
    """Return the plan that draws `past`, then the segments of `future`; `require_past` has passed."""
    old = {component.name for component in past.components}
    return replace(
        future,
        components=(*past.components, *(component for component in future.components if component.name not in old)),
        segments=(*past.segments, *future.segments),
        earlier=past.earlier,
    )
