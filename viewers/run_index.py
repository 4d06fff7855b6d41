"""Training runs on a front page: what each came to, failures first, and which branched from which."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from trainers.listing import ListedRun
from viewers.markup import Child, Markup, element, join
from viewers.numbers import counted, grouped
from viewers.panels.panel import Panel
from viewers.tables import Mark, code, left_out, table
from viewers.visible import shortened

MOST: Final = 1000
"""Rows shown."""

DRAWN: Final = 60
"""Runs drawn as lines; the table has more."""

HEIGHT: Final = 14
WIDTH: Final = 1_000
_TONES: Final = {"failed": "fail", "unreadable": "fail", "finished": "pass"}


def runs_panel(runs: Mapping[str, Sequence[ListedRun]]) -> Panel | None:
    """Return the panel of `runs`, place → its runs; None where there are none."""
    found = [(place, run) for place, listed in runs.items() for run in listed]
    if not found:
        return None
    failed = sum(run.has_failed for _, run in found)
    ordered = sorted(found, key=lambda item: (not item[1].has_failed, item[0], item[1].name))
    rows = [_row(place, run) for place, run in ordered[:MOST]]
    columns = ("Run", "Outcome", "Why", "Declared", "Step", "Loss", "Notes", "Branched from", "Plan", "Place")
    words = frozenset({"Outcome", "Why", "Declared", "Branched from", "Plan", "Place"})
    built = table("Training runs", Mark.EXACT, columns, rows, words)
    lede = (
        f"Look at what failed and why: {grouped(failed)} of {counted(len(found), 'run')}. Failures stay listed, and "
        "come first."
    )
    body = join([*map(_branches, runs.values()), built, left_out(len(found) - len(rows), "runs")])
    return Panel("runs", "Training runs", lede, body)


def _row(place: str, run: ListedRun) -> list[Child]:
    declared = {"": "no", "passed": "passed", "failed": "failed", "running": "not over"}.get(run.verdict, run.verdict)
    return [
        shortened(run.name),
        _verdict(run.outcome, _TONES.get(run.outcome, "warn")),
        shortened(run.reason, 400),
        _verdict(declared, "fail") if declared == "failed" else declared,
        grouped(run.done),
        "–" if run.loss is None else f"{run.loss:.4f}",
        grouped(run.notes),
        f"{shortened(run.parent)} at step {grouped(run.first)}" if run.parent else "–",
        code(shortened(run.plan[:16])) if run.plan else "–",
        shortened(place),
    ]


def _verdict(word: str, tone: str) -> Markup:
    return element("span", word, class_=f"verdict {tone}")


def _branches(runs: Sequence[ListedRun]) -> Markup | None:
    """Return runs as lines over steps, each branch below the run that it left; None where nothing branched."""
    if not any(run.parent for run in runs):
        return None
    ordered = _below_parents(list(runs))[:DRAWN]
    steps = max((run.done for run in ordered), default=0) or 1
    at = {_base(run): row for row, run in enumerate(ordered)}
    shapes = []
    for row, run in enumerate(ordered):
        y, begin, end = row * HEIGHT + HEIGHT // 2, run.first * WIDTH // steps, run.done * WIDTH // steps
        if run.parent in at:
            shapes.append(element("path", d=f"M{begin} {at[run.parent] * HEIGHT + HEIGHT // 2}V{y}", class_="border"))
        shapes.append(element("path", d=f"M{begin} {y}H{end}h0", class_="line"))
    drawn = element(
        "svg",
        *shapes,
        viewBox=f"0 0 {WIDTH} {len(ordered) * HEIGHT}",
        preserveAspectRatio="none",
        aria_hidden="true",
        focusable="false",
        height=len(ordered) * HEIGHT,
    )
    names = element("ol", *(element("li", shortened(run.name)) for run in ordered))
    caption = element(
        "figcaption", "Branches", element("span", "lines: steps made; upright: where one left", class_="legend")
    )
    return element(
        "figure", caption, drawn, element("p", "From above to below:", class_="note"), names, class_="branches"
    )


def _below_parents(runs: list[ListedRun]) -> list[ListedRun]:
    """Return `runs` with each branch right below its parent, by step; a run whose parent is not there stands alone."""
    names = {_base(run) for run in runs}
    children: dict[str, list[ListedRun]] = {}
    for run in runs:
        children.setdefault(run.parent if run.parent in names else "", []).append(run)
    ordered: list[ListedRun] = []
    waiting = sorted(children.get("", []), key=lambda run: run.name, reverse=True)
    while waiting:
        run = waiting.pop()
        ordered.append(run)
        below = children.pop(_base(run), [])
        waiting += sorted(below, key=lambda each: (each.first, each.name), reverse=True)
    shown = {id(run) for run in ordered}
    return ordered + [run for run in runs if id(run) not in shown]


def _base(run: ListedRun) -> str:
    return run.name.rsplit("/", 1)[-1]
