"""Training runs on a front page: what each came to, failures first, and which branched from which."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from trainers.evidence.listing import ListedRun
from viewers.markup import Child, Markup, element, join
from viewers.numbers import counted, grouped
from viewers.panels.panel import Panel
from viewers.tables import Mark, code, left_out, table
from viewers.visible import shortened

MOST: Final = 1000
"""Rows shown."""

DRAWN: Final = 60
"""Runs drawn as lines; the table has more."""

HEIGHT: Final = 10
WIDTH: Final = 10_000
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
    ordered = _below_parents(list(runs))
    steps = max((run.done for _, run in ordered), default=0) or 1
    items = [
        element(
            "li",
            element("span", f"{'↳ ' * depth}{shortened(run.name, 60)}", class_="label"),
            _line(run, steps),
            element("span", _stretch(run), class_="value"),
        )
        for depth, run in ordered[:DRAWN]
    ]
    legend = element("span", "lines: the steps that each run made", class_="legend")
    figure = element("figure", element("figcaption", "Branches", legend), element("ul", *items), class_="bars branches")
    return join([figure, left_out(max(len(ordered) - DRAWN, 0), "runs")])


def _line(run: ListedRun, steps: int) -> Markup:
    begin, end = run.first * WIDTH // steps, run.done * WIDTH // steps
    return element(
        "svg",
        element("path", d=f"M{begin} {HEIGHT // 2}H{max(end, begin)}h0", class_="line"),
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        preserveAspectRatio="none",
        aria_hidden="true",
        focusable="false",
    )


def _stretch(run: ListedRun) -> str:
    return f"{grouped(run.first)} to {grouped(run.done)}"


def _below_parents(runs: list[ListedRun]) -> list[tuple[int, ListedRun]]:
    """Return (depth, run): each branch right below its parent, by step; one whose parent is not there stands alone."""
    names = {_base(run) for run in runs}
    children: dict[str, list[ListedRun]] = {}
    for run in runs:
        children.setdefault(run.parent if run.parent in names else "", []).append(run)
    ordered: list[tuple[int, ListedRun]] = []
    waiting = [(0, run) for run in sorted(children.pop("", []), key=lambda run: run.name, reverse=True)]
    while waiting:
        depth, run = waiting.pop()
        ordered.append((depth, run))
        below = sorted(children.pop(_base(run), []), key=lambda each: (each.first, each.name), reverse=True)
        waiting += [(depth + 1, each) for each in below]
    return ordered + [(0, run) for rest in children.values() for run in rest]  # what follows from itself, if anything


def _base(run: ListedRun) -> str:
    return run.name.rsplit("/", 1)[-1]
