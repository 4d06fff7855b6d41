"""A plan made smaller: the same mixture, phases in proportion, over fewer steps. What small runs of a ladder read.

Invariants: components, caches, seed, sequences and weights are those of the plan; each phase keeps its part of the
steps and each component its part of a phase, both to within one (largest remainders, ties to whoever comes first). It
is a plan of its own, with a digest of its own. Cost: components × phases.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from curate.configuration import ConfigurationError
from mixtures.plan import Plan
from mixtures.plan_fields import Segment


def scaled(plan: Plan, steps: int) -> Plan:
    """Return `plan` over `steps` steps.

    Raises:
        ConfigurationError: `steps` is more than the plan has, or too few to give each phase one.
    """
    if not len(plan.segments) <= steps <= plan.steps:
        raise ConfigurationError(
            f"a plan of {plan.steps} steps in {len(plan.segments)} phases can be scaled down to {len(plan.segments)} "
            f"to {plan.steps} steps, not {steps}"
        )
    if steps == plan.steps:
        return plan
    lengths = apportioned({str(at): segment.drawn_length for at, segment in enumerate(plan.segments)}, steps, least=1)
    segments = [
        _segment(segment, lengths[str(at)] * plan.batch, plan.sequences.length)
        for at, segment in enumerate(plan.segments)
    ]
    return replace(plan, segments=tuple(segments), earlier=())


def epochs(plan: Plan) -> tuple[str, float]:
    """Return the component that the plan repeats most, and how many passes over it the plan makes."""
    sizes = {component.name: component.sequences for component in plan.components}
    return max(((name, count / sizes[name]) for name, count in plan.draws().items()), key=lambda item: item[1])


def apportioned(shares: Mapping[str, int], total: int, least: int = 0) -> dict[str, int]:
    """Return integers in proportion to `shares` that add up to `total`, each at least `least` (Hamilton's method)."""
    whole = sum(shares.values())
    parts = {name: max(least, share * total // whole) for name, share in shares.items()}
    order = sorted(shares, key=lambda name: (-(shares[name] * total % whole), list(shares).index(name)))
    missing = total - sum(parts.values())
    for name in order[: max(missing, 0)]:
        parts[name] += 1
    for _ in range(-missing):  # `least` took more than was there: the largest give it back
        parts[max(parts, key=lambda name: parts[name])] -= 1
    return parts


def _segment(segment: Segment, length: int, sequence: int) -> Segment:
    counts = {name: count for name, count in apportioned(segment.counts, length).items() if count}
    tokens = min(segment.tokens, length * sequence)
    return replace(segment, tokens=tokens, counts=counts, quota_length=length, drawn_length=length)
