"""Pictures of forecasts as inline SVG: a ladder with what is extrapolated drawn hollow, and a run inside its bands.

As in `viewers.curves` they stretch to the width they get, axes are words beside them, and coordinates are integers;
what they show stands in tables beside them, so they are hidden from screen readers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from trainers.evidence.forecast import Forecast, Point
from trainers.evidence.scaling import Band
from viewers.curves import HEIGHT, WIDTH
from viewers.markup import Markup, element

POINTS: Final = 60
MARGIN: Final = 500
"""Left free at both sides, so that no dot is cut."""


def ladder_plot(forecast: Forecast, measured: float | None = None) -> Markup:
    """Return losses by compute: rungs as dots, the law through them, the target hollow with its band.

    `measured` is what the target came to, drawn filled.
    """
    flops = [rung.flop for rung in forecast.rungs]
    losses = [loss for rung in forecast.rungs for loss in rung.losses]
    ends = [*losses, forecast.loss.low, forecast.loss.high, forecast.curve, *([] if measured is None else [measured])]
    low, high = min(ends), max(ends)
    first, last = math.log(min(flops)), math.log(forecast.flop)

    def place(flop: float, loss: float) -> tuple[int, int]:
        across = (math.log(flop) - first) / (last - first) if last > first else 0.5
        down = (high - loss) / (high - low) if high > low else 0.5
        return MARGIN + round(across * (WIDTH - 2 * MARGIN)), round(down * HEIGHT)

    def through(start: float, stop: float) -> str:
        parts = [start * (stop / start) ** (at / POINTS) for at in range(POINTS + 1)]
        return "M" + "L".join("{} {}".format(*place(flop, forecast.law.at(flop))) for flop in parts)

    x, top = place(forecast.flop, forecast.loss.high)
    bottom = place(forecast.flop, forecast.loss.low)[1]
    shapes = [
        element("path", d=through(min(flops), max(flops)), class_="line"),
        element("path", d=through(max(flops), forecast.flop), class_="line beyond"),
        element("path", d=f"M{x} {top}V{bottom}", class_="range"),
    ]
    for rung in forecast.rungs:
        shapes += [dot(*place(rung.flop, loss), "dot out") for loss in rung.losses]
    target = place(forecast.flop, forecast.loss.median)
    shapes += [dot(*target, "dot out"), dot(*target, "dot hollow")]
    if measured is not None:
        shapes.append(dot(*place(forecast.flop, measured), "dot seen"))
    left, right = f"{min(flops):.2g} FLOP", f"{forecast.flop:.2g} FLOP"
    legend = "dots: rungs, hollow: forecast with its band" + (", dark: what came" if measured is not None else "")
    return figure("Loss by compute", legend, (f"{high:.3f}", f"{low:.3f}"), (left, right), shapes)


def progress_plot(forecast: Forecast, points: Sequence[Point]) -> Markup | None:
    """Return the bands of each stretch of training and, as far as it went, the run in them; None without bands."""
    bands = sorted(forecast.progress.items())
    if not bands:
        return None
    means = [(int(point.where.removesuffix(" %")), point.loss) for point in points if point.where.endswith(" %")]
    ends = [end for _, band in bands for end in (band.low, band.high)] + [loss for _, loss in means]
    low, high = min(ends), max(ends)

    def place(percent: int, loss: float) -> str:
        return f"{percent * WIDTH // 100} {round((high - loss) / (high - low) * HEIGHT) if high > low else HEIGHT // 2}"

    upper = [place(percent, band.high) for percent, band in bands]
    lower = [place(percent, band.low) for percent, band in reversed(bands)]
    middle = [place(percent, band.median) for percent, band in bands]
    shapes = [
        element("path", d=f"M{'L'.join([*upper, *lower])}Z", class_="band"),
        element("path", d=f"M{'L'.join(middle)}", class_="line beyond"),
    ]
    if means:
        shapes.append(element("path", d=f"M{'L'.join(place(*mean) for mean in means)}h0", class_="line"))
    legend = "area: forecast, line: the run, each 5 %"
    return figure("While it trains", legend, (f"{high:.3f}", f"{low:.3f}"), ("start", "100 %"), shapes)


def said_band(band: Band) -> str:
    """Return "3.406 to 3.681"."""
    return f"{band.low:.4f} to {band.high:.4f}"


def dot(x: int, y: int, name: str) -> Markup:
    """Return a dot at a place, in the style `name`."""
    return element("path", d=f"M{x} {y}h0", class_=name)


def figure(title: str, legend: str, heights: tuple[str, str], widths: tuple[str, str], shapes: list[Markup]) -> Markup:
    """Return `shapes` under a title, with the ends of both axes in words: top and bottom, left and right."""
    drawn = element(
        "svg",
        *shapes,
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        preserveAspectRatio="none",
        aria_hidden="true",
        focusable="false",
    )
    caption = element("figcaption", title, element("span", legend, class_="legend"))
    scale = element("span", *(element("span", height) for height in heights), class_="scale")
    steps = element("span", *(element("span", width) for width in widths), class_="steps")
    return element("figure", caption, scale, drawn, steps, class_="plot forecast")
