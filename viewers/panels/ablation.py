"""Ablation: which parts of the recipe earned their place, where `curate ablate` tried to do without them."""

from __future__ import annotations

from collections.abc import Sequence

from curate.ablations import AblatedPart, Ablation, Effect
from viewers.budget import ROWS
from viewers.difference_dots import Difference, chart
from viewers.loading import Report
from viewers.markup import Child, join
from viewers.panels.panel import Panel
from viewers.tables import Group, Mark, left_out, paragraphs, table
from viewers.visible import shortened

SHOWN = 40
"""Domains shown of a part."""


def ablation(report: Report) -> Panel | None:
    """Return the panel; None where nothing was tried."""
    if report.ablation is None:
        return None
    lede = (
        "Each part was left out alone, and a small model trained on what the rest of the recipe makes: above zero the "
        "part helps. What is not told apart may still help, by less than this could see, or at a larger scale."
    )
    return Panel(
        "ablation", "What each part is worth", lede, join([_verdicts(report.ablation), _effects(report.ablation)])
    )


def _verdicts(found: Ablation) -> Child:
    rows = [(shortened(part.name), part.verdict, shortened(part.why, 200) or "–") for part in found.parts[:ROWS]]
    built = table("Parts of the recipe", Mark.EXACT, ("Part", "Verdict", "Why"), rows, frozenset({"Verdict", "Why"}))
    return join([built, left_out(max(len(found.parts) - ROWS, 0), "parts")])


def _effects(found: Ablation) -> Child:
    tried = [part for part in found.parts if part.effects]
    groups = [Group(shortened(part.name), [_row(effect) for effect in part.effects[:SHOWN]]) for part in tried[:SHOWN]]
    if not groups:
        return None
    columns = ("Held-out text", "Loss without it, minus with it", "From", "To", "Verdict")
    return join(
        [
            paragraphs(
                f"Nats per predicted token; {shortened(found.model)}. Intervals hold together with "
                f"{1 - found.level:.0%}."
            ),
            chart("Loss without a part, minus with it", _differences(tried)),
            table("What leaving it out does", Mark.EXACT, columns, groups, frozenset({"Verdict"})),
            left_out(max(len(tried) - SHOWN, 0), "parts"),
        ]
    )


def _differences(tried: Sequence[AblatedPart]) -> list[Difference]:
    """Return one line per part, of the mean of domains; of a part alone, one per domain."""
    if len(tried) == 1:
        found = [(effect.domain, effect) for effect in tried[0].effects]
    else:
        found = [(part.name, part.whole) for part in tried]
    return [
        Difference(shortened(name, 60), at.low, at.difference, at.high, shortened(at.verdict, 60), at.low * at.high > 0)
        for name, at in found[:SHOWN]
    ]


def _row(effect: Effect) -> tuple[str, ...]:
    numbers = (f"{value:+.4f}".replace("-", "−") for value in (effect.difference, effect.low, effect.high))
    return (shortened(effect.domain), *numbers, shortened(effect.verdict))
