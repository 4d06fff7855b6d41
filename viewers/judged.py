"""A run against what was declared and forecast of it: verdict, conditions, what was changed, forecasts met and missed.

    judged = trainers.evidence.judgement.judged_of(folder)   # None: nothing was declared or forecast of this run
    panel = forecast_panel(judged)                  # a panel of the run's page; `judged_body` is its body alone

What was declared lies beside the log (`declaration.json`, `forecast.json`); a damaged file is said in the page.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from trainers.evidence.forecast import Forecast, Point
from trainers.evidence.judgement import Judged, Judgement, Told
from viewers.ladder_plot import ladder_plot, progress_plot
from viewers.markup import Child, Markup, element, join
from viewers.numbers import counted, grouped
from viewers.panels.panel import Panel
from viewers.tables import Mark, code, facts, left_out, table
from viewers.visible import shortened

ROWS: Final = 100
TONES: Final = {"passed": "pass", "failed": "fail", "running": "warn"}
"""How each verdict is shown."""


def judged_body(judged: Judged) -> Markup:
    """Return what is shown of a run: verdict first, then pictures and tables."""
    if judged.judgement is None:
        return element("p", shortened(judged.problem, 600), class_="note")
    found = judged.judgement
    parts = [_sentence(found), _facts(found), _differences(found), _conditions(found)]
    if found.forecast is not None:
        parts += [_pictures(found.forecast, found.points), _points(found), rungs_table(found.forecast)]
    return join(parts)


def forecast_panel(judged: Judged | None) -> Panel | None:
    """Return the panel of a run's page; None where nothing was declared or forecast."""
    if judged is None:
        return None
    lede = (
        "Look at the verdict: what was expected was written before the run, and what would count as failure, too. A "
        "band of 80 % misses one time in five, so a few misses are what it promises."
    )
    return Panel("forecast", "Forecast and verdict", lede, judged_body(judged))


def rungs_table(forecast: Forecast) -> Markup:
    """Return the rungs of a forecast, what the others say of each, and its caveats."""
    rows: list[list[Child]] = [
        [
            grouped(rung.width),
            grouped(rung.parameters),
            grouped(rung.tokens),
            f"{rung.flop:.3g}",
            f"{sum(rung.losses) / len(rung.losses):.4f}",
            grouped(len(rung.losses)),
            f"{rung.left_out.low:.4f}",
            f"{rung.left_out.high:.4f}",
        ]
        for rung in forecast.rungs[:ROWS]
    ]
    columns = ("Width", "Parameters", "Tokens", "FLOP", "Loss", "Seeds", "Others say: low", "high")
    law = forecast.law
    origin = "between seeds" if forecast.is_noise_measured else "assumed"
    sentence = (
        f"Loss = {law.irreducible:.3f} + {law.scale:.4g} · FLOP^-{law.exponent:.4f}; runs that differ in the seed "
        f"alone differ by {forecast.noise:.4f} ({origin})."
    )
    caveats = [element("p", f"Caveat: {shortened(each, 300)}.", class_="note") for each in forecast.caveats]
    return join([table("Rungs of the ladder", Mark.EXACT, columns, rows), element("p", sentence), *caveats])


def _sentence(found: Judgement) -> Markup:
    words = {"passed": "Passed", "failed": "Failed", "running": "Not over"}
    verdict = element("span", words[found.verdict], class_=f"verdict {TONES[found.verdict]}")
    inside = sum(point.is_inside for point in found.points)
    of = f" {inside} of {counted(len(found.points), 'forecast')} met so far." if found.points else ""
    void = " The forecast is void: the run differs from the one that was forecast." if found.voids else ""
    return element("p", verdict, f": {shortened(found.reason, 400)}.{of}{void}")


def _facts(found: Judgement) -> Markup | None:
    pairs: list[tuple[str, Child]] = []
    if found.declaration is not None:
        made = found.declaration
        pairs += [
            ("Hypothesis", shortened(made.hypothesis, 2000)),
            ("Declared", f"{made.declared}, before the first step"),
            ("Declaration", code(made.digest)),
        ]
    else:
        pairs.append(("Hypothesis", "none: the run was not declared"))
    if found.forecast is not None:
        pairs.append(("Forecast", code(found.forecast.digest)))
    return facts(pairs)


def _differences(found: Judgement) -> Markup | None:
    rows: list[list[Child]] = [["declared", shortened(each, 300)] for each in found.changes]
    rows += [["forecast", shortened(each, 300)] for each in found.voids]
    if not rows:
        return None
    built = table("What the run does otherwise", Mark.EXACT, ("Than", "What"), rows[:ROWS], frozenset({"What"}))
    return join([built, left_out(max(len(rows) - ROWS, 0), "differences")])


def _conditions(found: Judgement) -> Markup | None:
    rows = [_condition("failure", told, told.holds is not True) for told in found.failure]
    rows += [_condition("health", told, told.holds is not False) for told in found.health]
    if not rows:
        return None
    columns = ("Condition", "Kind", "Value", "Verdict")
    return table("Declared conditions", Mark.EXACT, columns, rows[:ROWS], frozenset({"Kind", "Verdict"}))


def _condition(kind: str, told: Told, is_well: bool) -> list[Child]:
    words = "not known yet" if told.value is None else "well" if is_well else "failed"
    tone = "warn" if told.value is None else "pass" if is_well else "fail"
    value = "–" if told.value is None else f"{told.value:.4f}"
    name = "counts as failure" if kind == "failure" else "healthy"
    return [shortened(str(told.condition)), name, value, element("span", words, class_=f"verdict {tone}")]


def _pictures(forecast: Forecast, points: Sequence[Point]) -> Markup:
    final = next((point.loss for point in points if point.where in ("held-out text", "last batches")), None)
    return element("div", progress_plot(forecast, points), ladder_plot(forecast, final), class_="forecasts")


def _points(found: Judgement) -> Markup | None:
    if found.forecast is None:
        return None
    met = {point.where: point for point in found.points}
    bands = {f"{percent} %": band for percent, band in sorted(found.forecast.progress.items())}
    bands["held-out text" if found.forecast.held_out else "last batches"] = found.forecast.loss
    bands |= found.forecast.sources
    rows: list[list[Child]] = []
    for where, band in list(bands.items())[:ROWS]:
        point = met.get(where)
        words, tone = ("–", "") if point is None else ("inside", "pass") if point.is_inside else ("outside", "warn")
        seen = "–" if point is None else f"{point.loss:.4f}"
        said: Child = element("span", words, class_=f"verdict {tone}") if tone else words
        rows.append([shortened(where), f"{band.low:.4f}", f"{band.median:.4f}", f"{band.high:.4f}", seen, said])
    columns = ("Of", "Low", "Median", "High", "Measured", "Verdict")
    built = table("Forecasts", Mark.EXACT, columns, rows, frozenset({"Verdict"}))
    return join([built, left_out(max(len(bands) - ROWS, 0), "forecasts")])
