"""A plan as text that a person wants to read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from mixtures.sequences import Chunks

if TYPE_CHECKING:
    from mixtures.plan import Plan
    from mixtures.plan_fields import Segment

_ROWS: Final = 40
"""Components shown; of more, those drawn most often."""


def show_plan(plan: Plan) -> str:
    """Return what `plan` draws: a line on the whole, one for each segment, a table of components."""
    positions = len(plan) * plan.sequences.length
    lines = [
        f"plan {plan.digest[:16]}: {plan.steps:,} steps of {plan.batch:,} × {plan.sequences.length:,} tokens "
        f"({count(positions)}), {len(plan.components):,} components, seed {plan.seed}"
    ]
    for at, segment in enumerate(plan.segments):
        lines.append(f"  {_segment(plan, segment, at)}")
    lines += [f"  agrees with plan {past.plan[:16]} up to step {past.steps:,}" for past in plan.earlier]
    if isinstance(plan.sequences, Chunks) and plan.sequences.share != 1:
        lines.append(f"  simulated epochs: {plan.sequences.share} of each component is read")
    for phase, names in plan.undrawn.items():
        lines.append(f"  {phase}: too rare to be drawn: {', '.join(names[:8])}{' …' if len(names) > 8 else ''}")
    if plan.validation:
        held = sum(validation.tokens for validation in plan.validation)
        lines.append(f"  validation: {', '.join(v.name for v in plan.validation)} ({count(held)} tokens)")
    return "\n".join([*lines, *(f"  {line}" for line in _table(plan))])


def count(number: int) -> str:
    """Return `number` with three digits and a unit, as "8.00 M"."""
    for unit, power in (("T", 12), ("G", 9), ("M", 6), ("k", 3)):
        if number >= 10**power:
            value = number / 10**power
            return f"{value:.{max(0, 2 - len(str(int(value))) + 1)}f} {unit}"
    return f"{number}"


def _segment(plan: Plan, segment: Segment, at: int) -> str:
    updates = f", updates of {segment.batch or plan.batch:,} × {segment.length or plan.sequences.length:,}"
    own = updates if segment.batch or segment.length else ""
    first, stop = plan.starts[at], plan.starts[at + 1]
    cut = "" if segment.drawn_length == segment.quota_length else f", cut from {segment.quota_length // plan.batch:,}"
    return (
        f"{segment.phase}: steps {first:,} to {stop - 1:,} ({stop - first:,}{cut}; "
        f"{count(segment.tokens)} tokens asked, {count(segment.drawn_length * plan.sequences.length)} drawn{own})"
    )


def _table(plan: Plan) -> list[str]:
    drawn, tokens = plan.draws(), plan.tokens_read()
    ordered = sorted(plan.components, key=lambda component: (-drawn[component.name], component.name))
    header = ["component", "tokens", *(f"{s.phase}: asked → planned" for s in plan.segments), "tokens read", "epochs"]
    rows = [header]
    for component in ordered[:_ROWS]:
        name = component.name
        shares = [_shares(segment, name) for segment in plan.segments]
        epochs = f"{drawn[name] / component.sequences:.2f}"
        rows.append([name, count(component.tokens), *shares, count(tokens[name]), epochs])
    lines = _aligned(rows)
    if len(ordered) > _ROWS:
        lines.append(f"… and {len(ordered) - _ROWS:,} more")
    return lines


def _shares(segment: Segment, name: str) -> str:
    asked = segment.weights.get(name, 0) / sum(segment.weights.values())
    return f"{asked:.2%} → {segment.counts.get(name, 0) / segment.quota_length:.2%}"


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            text.ljust(width) if at == 0 else text.rjust(width)
            for at, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
