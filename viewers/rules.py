"""What rules do beside dropping, from statistics: near misses by rule, and which rules fail the same documents.

Cost: one number per stage, source, transform and pair of rules.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from viewers.loading import Report, StageView

Rule = tuple[str, str]
"""A transform and a reason."""


@dataclass(frozen=True, slots=True)
class Overlap:
    """Rules of one transform that documents fail together.

    `both` has for two rules in alphabetical order, which may be one, how many documents fail both; `alone` for a rule
    how many fail no other.
    """

    stage: StageView
    transform: str
    both: Mapping[tuple[str, str], int]
    alone: Mapping[str, int]

    @property
    def rules(self) -> list[str]:
        """Rules that documents fail, those with most documents first."""
        found = [one for one, other in self.both if one == other]
        return sorted(found, key=lambda rule: (-self.both[rule, rule], rule))

    def together(self, one: str, other: str) -> int:
        """Return how many documents fail both."""
        return self.both.get((min(one, other), max(one, other)), 0)


def near_misses(stage: StageView, source: str | None = None) -> dict[Rule, int]:
    """Return rule → documents that `stage` kept although it nearly dropped them, of one source or of all."""
    found: dict[Rule, int] = {}
    for node in _nodes(stage, source):
        for transform, reasons in node.get("near", {}).items():
            for reason, counted in reasons.items():
                key = (transform, reason)
                found[key] = found.get(key, 0) + counted["documents"]
    return found


def overlaps(report: Report) -> list[Overlap]:
    """Return what is known of the overlap of rules, stage by stage, of all sources."""
    return [overlap for stage in report.stages for overlap in _of(stage)]


def _of(stage: StageView) -> Iterator[Overlap]:
    found: dict[str, tuple[dict[tuple[str, str], int], dict[str, int]]] = {}
    for node in _nodes(stage):
        for transform, counted in node.get("overlap", {}).items():
            both, alone = found.setdefault(transform, ({}, {}))
            for one, others in counted.get("pairs", {}).items():
                for other, number in others.items():
                    both[one, other] = both.get((one, other), 0) + number["documents"]
            for reason, number in counted.get("alone", {}).items():
                alone[reason] = alone.get(reason, 0) + number["documents"]
    for transform in sorted(found):
        yield Overlap(stage, transform, *found[transform])


def _nodes(stage: StageView, only: str | None = None) -> Iterator[Mapping[str, Any]]:
    """Yield what each step says of each source, or of one."""
    for index in sorted(stage.statistics.get("steps", {}), key=int):
        for source, node in stage.statistics["steps"][index]["sources"].items():
            if only is None or source == only:
                yield node
