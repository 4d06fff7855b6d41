"""The page of a training run, `run.html`: how it goes, whether it is well, on what it ran, and what people noted.

Written from the run's folder alone, as often as one likes (`curate watch`), and loaded again by itself while the run
goes on. Invariants: as on a report, every text is escaped, nothing is loaded, no script but our own runs, and all is
there without it. The same folder at the same time gives the same bytes. Cost: the logs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from trainers.health import goodput, tokens_per_second, utilisation
from viewers.curves import Frame, frame_of, plot
from viewers.frame import document, write_whole
from viewers.judged import forecast_panel
from viewers.markup import Child, Markup, element, join
from viewers.numbers import counted, grouped
from viewers.panels.panel import Panel
from viewers.run_checks import check_run
from viewers.run_experts import experts
from viewers.run_view import RunPage, curve_of, load_run_page
from viewers.runs import Curve
from viewers.tables import Mark, code, facts, left_out, table
from viewers.verdict import Verdict
from viewers.visible import shortened

NAME: Final = "run.html"
PLOTS: Final = 24
ROWS: Final = 200
REFRESH_SECONDS: Final = 15


def write_run_page(folder: Path, now: float, *, refresh: int = REFRESH_SECONDS) -> RunPage:
    """Write `run.html` into the run's `folder` and return what it shows; it loads itself again after `refresh` seconds.

    Raises:
        ConfigurationError: there is no run, or its log cannot be read.
        OSError: the page cannot be written.
    """
    run = load_run_page(folder, now)
    write_whole(folder / NAME, render_run(run, refresh).encode())
    return run


def render_run(run: RunPage, refresh: int = REFRESH_SECONDS) -> str:
    """Return the page of `run`, which loads itself again while the run goes on."""
    panels = [made for panel in PANELS if (made := panel(run)) is not None]
    live = not run.ended
    script = (files("viewers.scripts") / "refresh.js").read_text("utf-8") if live else ""
    main = element("main", *(panel.markup() for panel in panels), class_="index", id="report")
    return document(
        f"{shortened(run.name)}: training run",
        element("a", "Skip to the run", href="#report", class_="skip"),
        _header(run, refresh if live else 0),
        main,
        _footer(run),
        source=script,
        refresh=refresh if live else 0,
    )


def _header(run: RunPage, refresh: int) -> Markup:
    pause = None
    if refresh:
        words = f"Stop loading this page again every {refresh} seconds"
        pause = element("p", element("button", words, id="refresh", type="button", hidden="", data_seconds=refresh))
    of = f" of {grouped(run.steps)}" if run.steps else ""
    return element(
        "header",
        element("p", "Training run", class_="kicker"),
        element("h1", shortened(run.name)),
        element("p", f"Step {grouped(run.done)}{of}: {_state(run)}.", class_="subtitle"),
        element("p", "Plan ", element("code", shortened(str(run.start.get("plan", "not recorded")))), class_="digest"),
        pause,
    )


def _state(run: RunPage) -> str:
    words = {"": "running", "finished": "finished", "steps": "stopped where it was told to", "silent": "silent"}
    return words.get(run.ended, f"stopped by {shortened(run.ended)}")


def _summary(run: RunPage) -> Panel:
    speed = tokens_per_second(run.train)
    mfu, good = utilisation(run.start, speed), goodput(run.lines)
    last = run.train[-1] if run.train else {}
    basis = {"given": "of a peak that was given", "measured": "of what products of matrices reach here"}
    about = basis.get(str(run.start["timing"].get("peak")), "")
    pairs: list[tuple[str, Child]] = [
        ("Loss of the last batch", _decimal(last.get("loss"))),
        ("Tokens", grouped(int(last.get("tokens", 0)))),
        ("Speed", f"{speed:,.0f} tokens a second, median of the last steps" if speed else "–"),
        ("MFU", f"{mfu:.1%} {about}" if mfu else "not known: the run was not told what the hardware can do"),
        ("Goodput", f"{good:.1%} of wall time in steps that count" if good is not None else "–"),
        ("Last heard of", _when(run.heard)),
        ("Time left", _left(run, speed)),
    ]
    lede = "Look at the checks below first: a number here says nothing while one of them fails."
    return Panel("now", "Now", lede, facts(pairs))


def _left(run: RunPage, speed: float | None) -> str:
    if not speed or run.ended or not run.train or run.steps <= run.done:
        return "–"
    per_step = run.train[-1]["tokens"] / run.done
    return f"about {(run.steps - run.done) * per_step / speed / 3600:.1f} hours of steps"


def _health(run: RunPage) -> Panel:
    checks = check_run(run)
    rows: list[list[Child]] = [
        [
            element("span", check.verdict.value, class_=f"verdict {check.verdict.value}"),
            check.question,
            shortened(check.finding, 600),
            code(check.id),
        ]
        for check in checks
    ]
    words = frozenset({"Question", "Finding", "Check"})
    body = table("Health checks", Mark.EXACT, ("Verdict", "Question", "Finding", "Check"), rows, words)
    failed = sum(check.verdict is Verdict.FAIL for check in checks)
    lede = (
        f"{counted(failed, 'check fails', 'checks fail')}. All of it follows from the log; a warning may be intended."
    )
    return Panel("health", "Health", lede, element("div", body, class_="checks"))


def _forecast(run: RunPage) -> Panel | None:
    return forecast_panel(run.judged)


def _losses(run: RunPage) -> Panel:
    training = run.curve(lambda line: line["loss"])
    held_out = _by_source(run, "loss")
    shared = frame_of([training, *held_out.values()])
    drawn = [_plotted(run, "Training", training, shared)]
    drawn += [_plotted(run, shortened(name, 60), curve, shared) for name, curve in list(held_out.items())[:PLOTS]]
    bits = _by_source(run, "bits_per_byte")
    parts = [
        element("p", "Nats per predicted token; all plots share both axes.", class_="note"),
        element("div", *drawn, class_="plots"),
        left_out(max(len(held_out) - PLOTS, 0), "plots"),
    ]
    if bits:
        frame = frame_of([*bits.values()])
        made = [_plotted(run, shortened(name, 60), curve, frame) for name, curve in list(bits.items())[:PLOTS]]
        parts += [element("h3", "Bits per byte"), element("div", *made, class_="plots")]
    lede = (
        "Training is the loss of each batch before its update, the others are the same held-out text each time. "
        "Upright lines are the beginnings of branches, and notes."
    )
    return Panel("loss", "Loss", lede, join([*parts, _loss_table(run, held_out)]))


def _by_source(run: RunPage, name: str) -> dict[str, Curve]:
    sources = sorted({str(line["source"]) for line in run.validation})
    curves = {
        source: curve_of(
            (line for line in run.validation if str(line["source"]) == source), lambda line: line.get(name)
        )
        for source in sources
    }
    return {source: curve for source, curve in curves.items() if len(curve)}


def _loss_table(run: RunPage, held_out: dict[str, Curve]) -> Markup | None:
    bits = _by_source(run, "bits_per_byte")
    rows: list[list[Child]] = [
        [
            shortened(name),
            grouped(curve.steps[-1]),
            f"{curve.losses[-1]:.4f}",
            f"{min(curve.losses):.4f}",
            _last(bits.get(name)),
        ]
        for name, curve in list(held_out.items())[:ROWS]
    ]
    if not rows:
        return None
    columns = ("Held-out text", "At step", "Loss", "Lowest", "Bits per byte")
    return join(
        [table("Loss on held-out text", Mark.EXACT, columns, rows), left_out(len(held_out) - len(rows), "sources")]
    )


def _steps(run: RunPage) -> Panel | None:
    if not run.train:
        return None
    curves: dict[str, tuple[Curve, Callable[[float], str]]] = {
        "Gradient norm": (run.curve(lambda line: line.get("gradient_norm")), _decimal),
        "Learning rate": (run.curve(lambda line: line.get("learning_rate")), "{:.2e}".format),
        "Tokens a second": (run.curve(lambda line: line["timing"].get("tokens_per_second")), "{:,.0f}".format),
    }
    drawn = [
        _plotted(run, name, curve, frame_of([curve]), said) for name, (curve, said) in curves.items() if len(curve)
    ]
    lede = "Look for a gradient norm that grows while the loss does not fall: it comes before a run diverges."
    return Panel("steps", "Steps", lede, element("div", *drawn, class_="plots"))


def _spikes(run: RunPage) -> Panel | None:
    if not run.spikes:
        return None
    rows: list[list[Child]] = [
        [
            grouped(spike.step),
            f"{spike.loss:.3f}",
            f"{spike.expected:.3f}",
            code(f"curate batch STORE --step {spike.step}"),
        ]
        for spike in run.spikes[:ROWS]
    ]
    columns = ("Step", "Loss", "Median before", "What it read")
    built = table("Spikes", Mark.EXACT, columns, rows, frozenset({"What it read"}))
    lede = (
        "Look at what these batches read: curate batch shows it decoded, curate explain names its documents, and "
        "curate trace leads from a token to the raw record. STORE is the store whose plan this run follows."
    )
    return Panel("spikes", "Spikes", lede, join([built, left_out(len(run.spikes) - len(rows), "spikes")]))


def _hardware(run: RunPage) -> Panel:
    rows: list[list[Child]] = [
        [
            _when(one.time),
            shortened(one.host) or "not recorded",
            f"{counted(one.hosts, 'process', 'processes')}, {counted(one.devices, 'device')} {shortened(one.device)}",
            grouped(one.first),
            grouped(one.last),
            shortened(one.ended or ("silent" if run.ended == "silent" else "running"), 300),
            grouped(one.lost),
        ]
        for one in run.sessions[-ROWS:]
    ]
    columns = ("Started", "Host", "Devices", "From step", "To step", "Ended by", "Steps lost")
    built = table("Sessions", Mark.EXACT, columns, rows, frozenset({"Host", "Devices", "Ended by"}))
    lede = "A session ends when the run finishes, is told to stop, fails, or is killed; lost steps were made again."
    body = join([built, left_out(len(run.sessions) - len(rows), "sessions")])
    return Panel("hardware", "Hardware", lede, body)


def _branches(run: RunPage) -> Panel | None:
    if len(run.segments) == 1 and not run.problem:
        return None
    rows: list[list[Child]] = [
        [
            shortened(part.name),
            grouped(part.first),
            "its own end" if part.stop is None else grouped(part.stop),
            _changes(part.changed),
        ]
        for part in run.segments
    ]
    columns = ("Run", "From step", "To step", "What changed")
    built = table("Segments", Mark.EXACT, columns, rows, frozenset({"What changed"}))
    lede = "The runs that this one went on from, oldest first; the curves above are drawn through all of them."
    return Panel(
        "branches", "Branches", lede, join([built, element("p", run.problem, class_="note") if run.problem else None])
    )


def _changes(changed: Sequence[str]) -> str:
    return shortened("; ".join(changed), 600) or "–"


def _journal(run: RunPage) -> Panel | None:
    if not run.notes and not run.broken_notes:
        return None
    rows: list[list[Child]] = [
        [grouped(note.step), shortened(note.text, 2000), shortened(note.author), _when(note.time)]
        for note in run.notes[-ROWS:]
    ]
    built = table(
        "Notes", Mark.EXACT, ("Step", "Note", "Author", "Written"), rows, frozenset({"Note", "Author", "Written"})
    )
    lines = counted(run.broken_notes, "line of the journal is", "lines of the journal are")
    gone = f"{lines} not as it was written: something was changed there." if run.broken_notes else None
    lede = "What people wrote while it ran; each is an upright line on the curves."
    parts = [built, left_out(len(run.notes) - len(rows), "notes"), element("p", gone, class_="note") if gone else None]
    return Panel("journal", "Journal", lede, join(parts))


def _settings(run: RunPage) -> Panel:
    given = {**run.config, **{f"environment.{name}": value for name, value in run.start.get("environment", {}).items()}}
    rows: list[list[Child]] = [
        [shortened(str(name), 80), shortened(str(value), 200)] for name, value in sorted(given.items())[:ROWS]
    ]
    built = table("Settings", Mark.EXACT, ("Setting", "Value"), rows, frozenset({"Value"}))
    return Panel("settings", "Settings", "The configuration and the environment of the last start.", built)


PANELS: Final[tuple[Callable[[RunPage], Panel | None], ...]] = (
    _summary,
    _health,
    _forecast,
    _losses,
    _steps,
    experts,
    _spikes,
    _hardware,
    _branches,
    _journal,
    _settings,
)
"""What the page shows, in the order of what decides; a panel is None where it has no subject."""


def _plotted(
    run: RunPage, title: str, curve: Curve, frame: Frame, said: Callable[[float], str] | None = None
) -> Markup:
    write = said or "{:.3f}".format
    value = write(curve.losses[-1]) if len(curve) else "–"
    return plot(title, value, curve, frame, marks=[step for step in run.marks if step <= frame.steps], said=write)


def _decimal(value: Any) -> str:
    return f"{value:.4f}" if isinstance(value, (int, float)) else "–"


def _last(curve: Curve | None) -> str:
    return f"{curve.losses[-1]:.4f}" if curve is not None and len(curve) else "–"


def _when(seconds: float) -> str:
    if not 0 < seconds < 1 << 36:
        return "not recorded"
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _footer(run: RunPage) -> Markup:
    sentence = (
        f"Made by curate at {_when(run.now)} from log.jsonl and notes.jsonl of this run alone. This file loads "
        "nothing; while the run goes on it loads itself again."
    )
    return element("footer", element("p", sentence), class_="colophon")
