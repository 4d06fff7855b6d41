"""Where a recipe masks personal data, and which sources come to no such step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from transforms.pii import MaskPII
from viewers.configured import configured
from viewers.loading import Report, StageView

TRANSFORM: Final = MaskPII.__name__


@dataclass(frozen=True, slots=True)
class Masking:
    """A `MaskPII` in a step of a stage, also within a branch: its masks by kind."""

    stage: StageView
    step: str
    masks: Mapping[str, str]


def maskings_of(report: Report) -> Iterator[Masking]:
    """Yield every `MaskPII` of the recipe, in branches too."""
    for stage in report.stages:
        for step in stage.operation.get("steps", []):
            for node in configured(step.get("transform"), TRANSFORM):
                yield Masking(
                    stage, str(step.get("name", "")), {k: m for k, m in node["fields"].items() if isinstance(m, str)}
                )


def unmasked_sources(report: Report) -> list[str]:
    """Return the sources of which no document came to a stage that masks, on its way to an output or a cache."""
    leading = _leading(report)
    reached = {s for masking in maskings_of(report) if masking.stage.key in leading for s in masking.stage.sources}
    return [source for source in report.sources if source not in reached]


def _leading(report: Report) -> set[str]:
    """Return the keys of the stages that outputs and what is made of documents come from."""
    keys = {stage.key for stage in report.outputs.values()}
    keys |= {entry["key"] for product in report.products for entry in product.manifest["inputs"]}
    for stage in reversed(report.stages):
        if stage.key in keys:
            keys |= {entry["key"] for entry in stage.manifest["inputs"]}
    return keys
