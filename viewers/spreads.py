"""How far documents lie from the thresholds of filters, from the counts of `transforms.spread` in statistics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from curate.accounting.rules import NONE
from transforms.spread import BINS, EDGE
from viewers.loading import Report, StageView


@dataclass(frozen=True, slots=True)
class RuleSpread:
    """A rule of a filter in a stage: what it measures, its bound ("≥ 2"), and documents by bin.

    `without` is how many documents gave no evidence: these pass.
    """

    stage: StageView
    transform: str
    reason: str
    measure: str
    bound: str
    bins: tuple[int, ...]
    without: int

    @property
    def keeps_above(self) -> bool:
        """Whether the bins from `EDGE` on are kept, as far as this rule goes."""
        return self.bound.startswith("≥")

    @property
    def judged(self) -> int:
        """Documents that came to the filter."""
        return sum(self.bins) + self.without

    @property
    def failing(self) -> int:
        """Documents beyond the threshold, also those that fail another rule before."""
        return sum(self.bins[:EDGE] if self.keeps_above else self.bins[EDGE:])


def spreads_of(report: Report) -> list[RuleSpread]:
    """Return the rules of all filters, those that most documents fail first; those of a Switch's branches are one."""
    found: dict[tuple[str, ...], RuleSpread] = {}
    for stage in report.stages:
        for one in _of_stage(stage):
            rule = stage.name, stage.key, one.transform, one.reason, one.measure, one.bound
            found[rule] = _sum(found[rule], one) if rule in found else one
    return sorted(found.values(), key=lambda one: (-one.failing, one.stage.name, one.transform, one.reason, one.bound))


def _sum(one: RuleSpread, other: RuleSpread) -> RuleSpread:
    bins = tuple(map(sum, zip(one.bins, other.bins, strict=True)))
    return replace(one, bins=bins, without=one.without + other.without)


def _of_stage(stage: StageView) -> Iterator[RuleSpread]:
    steps: Mapping[str, Any] = stage.statistics.get("steps", {})
    for index in sorted(steps, key=int):
        for transform, reasons in steps[index].get("spread", {}).items():
            for reason, measures in reasons.items():
                for measure, bounds in measures.items():
                    for bound, counts in bounds.items():
                        bins = tuple(counts.get(str(place), 0) for place in range(BINS))
                        yield RuleSpread(
                            stage, transform.rpartition(")/")[2], reason, measure, bound, bins, counts.get(NONE, 0)
                        )
