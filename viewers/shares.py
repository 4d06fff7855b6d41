"""What each phase of a plan asks for and what it draws, in integers.

Cost: components × phases; no sequence is looked at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mixtures.plan import Plan
from mixtures.plan_fields import Component, Segment
from viewers.flows import Identity
from viewers.visible import shortened


@dataclass(frozen=True, slots=True)
class Share:
    """A component in a phase: its weight, and the sequences and tokens drawn of it there."""

    component: Component
    weight: int
    drawn: int
    tokens: int


@dataclass(frozen=True, slots=True)
class PhaseShares:
    """A phase over steps `first` to `stop` - 1: `weights` is the sum of weights, `length` the sequences drawn.

    `planned` is how many sequences the phase had before it was cut short, `asked` the tokens that were asked for.
    """

    name: str
    first: int
    stop: int
    asked: int
    weights: int
    length: int
    planned: int
    shares: tuple[Share, ...]

    @property
    def drawn(self) -> int:
        """Sum of the sequences drawn of each component."""
        return sum(share.drawn for share in self.shares)


def phases_of(plan: Plan) -> list[PhaseShares]:
    """Return the phases of `plan` in order, components in the order of the plan."""
    return [_phase(plan, segment, *plan.starts[at : at + 2]) for at, segment in enumerate(plan.segments)]


def is_met(phase: PhaseShares, one: Share) -> bool:
    """Return whether the share drawn is within a tenth, or one sequence, of the share that was asked for."""
    asked, drawn = one.weight * phase.length, one.drawn * phase.weights
    return abs(drawn - asked) <= max(asked // 10, phase.weights)


def plan_identities(plan: Plan, phases: Sequence[PhaseShares]) -> list[Identity]:
    """Return the sums that a plan must hold: draws = sequences = steps × batch, over all and in each phase."""
    drawn = sum(plan.draws().values())
    phased = tuple((shortened(phase.name, 40), phase.length) for phase in phases)
    return [
        Identity("sequences", (("draws of all components", drawn),), (("sequences", len(plan)),)),
        Identity("sequences", (("sequences", len(plan)),), (("steps × batch", plan.steps * plan.batch),)),
        Identity("sequences", (("sequences", len(plan)),), phased),
        *(Identity("sequences", (("draws", phase.drawn),), (("sequences", phase.length),)) for phase in phases),
    ]


def _phase(plan: Plan, segment: Segment, first: int, stop: int) -> PhaseShares:
    drawn = _between(plan.draws(first), plan.draws(stop))
    tokens = _between(plan.tokens_read(first), plan.tokens_read(stop))
    shares = tuple(
        Share(component, segment.weights.get(component.name, 0), drawn[component.name], tokens[component.name])
        for component in plan.components
    )
    total = sum(segment.weights.values())
    return PhaseShares(
        segment.phase, first, stop, segment.tokens, total, segment.drawn_length, segment.quota_length, shares
    )


def _between(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, int]:
    return {name: after[name] - before[name] for name in after}
