"""The page of a ladder, `ladder.html`: what its rungs came to and what they say of the run that is still to come."""

from __future__ import annotations

from pathlib import Path

from trainers.evidence.forecast import Forecast
from viewers.frame import document, write_whole
from viewers.judged import rungs_table
from viewers.ladder_plot import ladder_plot, progress_plot, said_band
from viewers.markup import Child, element, join
from viewers.numbers import grouped
from viewers.panels.panel import Panel
from viewers.tables import Mark, code, facts, table
from viewers.visible import shortened


def write_ladder_page(forecast: Forecast, path: Path) -> None:
    """Write the page of `forecast` to `path`.

    Raises:
        OSError: it cannot be written.
    """
    write_whole(path, render_ladder(forecast).encode())


def render_ladder(forecast: Forecast) -> str:
    """Return the page of `forecast`."""
    width = forecast.config.get("model.width", 0)
    band = forecast.loss
    header = element(
        "header",
        element("p", "Scaling ladder", class_="kicker"),
        element("h1", f"Width {grouped(int(width))}: {said_band(band)}"),
        element("p", f"With probability {band.level:.0%}, nats per token.", class_="subtitle"),
        element("p", "Forecast ", element("code", forecast.digest), class_="digest"),
    )
    panels = [_target(forecast), _rungs(forecast)]
    footer = "Made by curate from the logs of the rungs, before the run that it forecasts. This file loads nothing."
    return document(
        "Scaling ladder",
        header,
        element("main", *(panel.markup() for panel in panels), class_="index"),
        element("footer", element("p", footer), class_="colophon"),
    )


def _target(forecast: Forecast) -> Panel:
    pairs: list[tuple[str, Child]] = [
        ("Loss", f"{said_band(forecast.loss)}, median {forecast.loss.median:.4f}"),
        ("The curve says", f"{forecast.curve:.4f}"),
        ("Plan", code(shortened(forecast.plan))),
        ("Compute", f"{forecast.flop:.4g} FLOP"),
    ]
    bands = {**{f"{percent} %": band for percent, band in sorted(forecast.progress.items())}, **forecast.sources}
    rows: list[list[Child]] = [
        [shortened(name), f"{band.low:.4f}", f"{band.median:.4f}", f"{band.high:.4f}"] for name, band in bands.items()
    ]
    lede = (
        "Look at how wide the band is: few rungs hardly fix the loss that no compute takes away, and the band has that "
        "in it. What is extrapolated is drawn hollow."
    )
    pictures = element("div", ladder_plot(forecast), progress_plot(forecast, ()), class_="forecasts")
    columns = ("Of", "Low", "Median", "High")
    return Panel("target", "Forecast", lede, join([facts(pairs), pictures, table("Bands", Mark.EXACT, columns, rows)]))


def _rungs(forecast: Forecast) -> Panel:
    lede = "Look at what the other rungs say of each: a rung outside of it does not follow the law of the others."
    return Panel("rungs", "Rungs", lede, rungs_table(forecast))
