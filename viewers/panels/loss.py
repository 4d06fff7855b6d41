"""Loss: curves of training runs on this mixture, and of the loss on held-out text of each source."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from trainers.evidence.diary import Diary
from viewers.budget import ROWS
from viewers.curves import frame_of, plot
from viewers.judged import judged_body
from viewers.loading import Report
from viewers.markup import Child, Markup, element, join
from viewers.numbers import counted, grouped
from viewers.panels.panel import Panel
from viewers.runs import Curve, RunView, trains_on
from viewers.tables import Mark, code, facts, left_out, table
from viewers.visible import shortened

PLOTS = 24
"""Sources drawn of one run; the table has more."""

SETTINGS = 40
"""Settings shown of a run."""


def loss(report: Report) -> Panel | None:
    """Return the panel; None for a result without a plan when no run is given."""
    if report.plan is None and not report.runs:
        return None
    lede = (
        "Look at held-out text, source by source: a mixture that lowers the mean may raise the loss of one. Two runs "
        "differ by chance, too; curate compare says whether a difference is more than that."
    )
    if not report.runs:
        sentence = "No training run was given: curate report DIR --run RUN shows its losses here."
        body: Markup = element("p", sentence, class_="note")
    else:
        body = join([*(_run(report, number, run) for number, run in enumerate(report.runs[:PLOTS], 1))])
        body = join([body, left_out(max(len(report.runs) - PLOTS, 0), "runs")])
    return Panel("loss", "Loss", lede, body)


def _run(report: Report, number: int, run: RunView) -> Markup:
    name = shortened(run.name) if len(report.runs) == 1 else f"{number}. {shortened(run.name)}"
    curves = [curve for _, curve in list(run.validation.items())[:PLOTS]]
    frame = frame_of([run.train, *curves])
    marks = sorted({note.step for note in run.diary.notes if note.step <= frame.steps})
    held = [(f"Held out: {shortened(s, 60)}", c) for s, c in list(run.validation.items())[:PLOTS]]
    shown = [("Training", run.train), *held]
    plots = [plot(title, _last(curve), curve, frame, marks=marks) for title, curve in shown]
    return element(
        "div",
        element("h3", name),
        element("p", "Nats per predicted token; all plots share both axes. ", _about(report, run), class_="note"),
        element("div", *plots, class_="plots"),
        left_out(max(len(run.validation) - PLOTS, 0), "plots"),
        _table(name, run),
        _facts(report, run),
        _expected(run),
        notes_table(name, run.diary),
        class_="run",
    )


def _expected(run: RunView) -> Markup | None:
    """Return what was declared and forecast of the run, and how it does."""
    if run.judged is None:
        return None
    return join([element("h4", "Against what was declared and forecast"), judged_body(run.judged)])


def notes_table(name: str, diary: Diary) -> Markup | None:
    """Return the notes of a run in the order of writing, and which lines are not as they were written."""
    if not diary.notes and not diary.broken:
        return None
    rows: list[list[Child]] = [
        [grouped(note.step), shortened(note.text, 2000), shortened(note.author), when(note.time)]
        for note in diary.notes[-ROWS:]
    ]
    columns = ("Step", "Note", "Author", "Written")
    built = table(f"Notes on {name}", Mark.EXACT, columns, rows, frozenset({"Note", "Author", "Written"}))
    omitted = left_out(len(diary.notes) - len(rows), "notes")
    return join([built, omitted, *([broken_notes(diary)] if diary.broken else [])])


def broken_notes(diary: Diary) -> Markup:
    """Return which lines of a diary were changed, put in or taken out."""
    lines = ", ".join(map(str, diary.broken[:ROWS]))
    said = f"Not as it was written at line {lines} of notes.jsonl: something was changed, put in or taken out there."
    return element("p", said, class_="note")


def when(seconds: int) -> str:
    """Return a time (seconds since 1970) as "2026-11-30 22:04 UTC"."""
    if not 0 < seconds < 1 << 36:
        return "not recorded"
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")


def _about(report: Report, run: RunView) -> str:
    parts = [
        "At the right of each title stands the last loss. Training is the loss on each batch before its update, "
        f"{counted(len(run.train), 'step')}."
    ]
    if report.plan is not None and trains_on(report.plan, run) and len(run.train) < report.plan.steps:
        parts.append(f"The plan has {counted(report.plan.steps, 'step')}: this run is at most a part of it.")
    if not run.validation:
        parts.append("The log has no loss on held-out text.")
    elif trains_on(report.plan, run) and (missing := _not_measured(report, run)):
        parts.append(f"Trained on, but without a loss on held-out text (see Hold-out): {', '.join(missing)}.")
    if run.repeated:
        parts.append(f"{counted(run.repeated, 'step')} trained again after a stop, {grouped(run.disagreed)} otherwise.")
    if run.skipped:
        parts.append(f"{counted(run.skipped, 'line')} without a finite loss left out.")
    return " ".join(parts)


def _not_measured(report: Report, run: RunView) -> list[str]:
    """Return the components of the plan that no held-out text of the run stands for."""
    names = [component.name for component in report.plan.components] if report.plan is not None else []
    missing = [shortened(name, 60) for name in names if name not in run.validation]
    return [*missing[:ROWS], *(["…"] if len(missing) > ROWS else [])]


def _last(curve: Curve) -> str:
    return f"{curve.losses[-1]:.4f}" if len(curve) else "–"


def _table(name: str, run: RunView) -> Markup:
    rows = [_row("training batches", run.train), *(_row(s, c) for s, c in list(run.validation.items())[:ROWS])]
    columns = ("Text", "Measured", "First", "at step", "Lowest", "at step ", "Last", "at step  ")
    built = table(f"Losses of {name}", Mark.EXACT, columns, rows)
    return join([built, left_out(max(len(run.validation) - ROWS, 0), "sources")])


def _row(name: str, curve: Curve) -> list[Child]:
    if not len(curve):
        return [shortened(name), "0", *["–"] * 6]
    least = min(range(len(curve)), key=lambda at: curve.losses[at])
    places: Sequence[int] = (0, least, len(curve) - 1)
    cells = [cell for at in places for cell in (f"{curve.losses[at]:.4f}", grouped(curve.steps[at]))]
    return [shortened(name), grouped(len(curve)), *cells]


def _facts(report: Report, run: RunView) -> Markup:
    settings = sorted(run.config.items())
    shown = ", ".join(f"{shortened(str(n), 60)} {shortened(str(v), 60)}" for n, v in settings[:SETTINGS])
    pairs: list[tuple[str, Child]] = [
        ("Plan of the run", code(shortened(run.plan)) if run.plan else "not recorded"),
        ("This mixture", "yes" if trains_on(report.plan, run) else "no: it was trained on another plan"),
        ("Configuration", shown or "not recorded"),
    ]
    return facts(pairs)
