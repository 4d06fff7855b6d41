"""Pictures over training steps as inline SVG: weights that change at borders, and losses as lines.

They stretch to the width they get, so axes are words beside them, never text inside. Coordinates are integers.
Cost: at most `POINTS` points a line.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from viewers.markup import Child, Markup, element
from viewers.numbers import grouped
from viewers.runs import Curve

WIDTH: Final = 10_000
HEIGHT: Final = 1_000
POINTS: Final = 300
"""Points of a line; of a longer one, means over equal stretches of its points are drawn."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Steps `first` to `stop` - 1, with an area of `part` / `whole` and a line at `line` / `length`."""

    first: int
    stop: int
    part: int
    whole: int
    line: int
    length: int


@dataclass(frozen=True, slots=True)
class Frame:
    """The axes that lines share: steps 0 to `steps`, losses `low` to `high`."""

    steps: int
    low: float
    high: float

    def place(self, step: float, loss: float) -> str:
        """Return where a point is drawn: "x y"."""
        x = round(WIDTH * step / max(self.steps, 1))
        y = round(HEIGHT * (self.high - loss) / (self.high - self.low)) if self.high > self.low else HEIGHT // 2
        return f"{x} {y}"


def strip(stretches: Sequence[Stretch], most: tuple[int, int]) -> Markup:
    """Return areas and lines over all steps; `most` (a ratio) is the share that reaches the top."""
    steps = max((stretch.stop for stretch in stretches), default=0) or 1
    shapes = []
    for one in stretches:
        x, end = one.first * WIDTH // steps, one.stop * WIDTH // steps
        area, line = (_height(one.part, one.whole, most), _height(one.line, one.length, most))
        shapes.append(element("rect", x=x, y=HEIGHT - area, width=end - x, height=area, class_="dropped"))
        if one.part or one.line:
            shapes.append(element("path", d=f"M{x} {HEIGHT - line}H{end}", class_="line"))
    borders = [element("path", d=f"M{one.first * WIDTH // steps} 0V{HEIGHT}", class_="border") for one in stretches[1:]]
    return _svg(*shapes, *borders)


def _height(part: int, whole: int, most: tuple[int, int]) -> int:
    return min(HEIGHT, part * most[1] * HEIGHT // (whole * most[0])) if whole and most[0] else 0


def frame_of(curves: Sequence[Curve]) -> Frame:
    """Return the axes on which all of `curves` fit."""
    losses = [loss for curve in curves for loss in curve.losses]
    steps = max((step for curve in curves for step in curve.steps), default=0)
    return Frame(steps, min(losses, default=0.0), max(losses, default=0.0))


def plot(
    title: Child,
    value: Child,
    curve: Curve,
    frame: Frame,
    *,
    marks: Sequence[int] = (),
    said: Callable[[float], str] = "{:.3f}".format,
) -> Markup:
    """Return `curve` as a figure under its title, `value` beside it, the ends of both axes in words.

    `marks` are steps at which an upright line is drawn; `said` writes a value of the upright axis.
    """
    places = [frame.place(step, loss) for step, loss in _thinned(curve)]
    path = f"M{'L'.join(places)}" + ("h0" if len(places) == 1 else "") if places else "M0 0"
    high, low = (element("span", said(loss)) for loss in (frame.high, frame.low))
    steps = element("span", element("span", "step 0"), element("span", grouped(frame.steps)), class_="steps")
    caption = element("figcaption", title, element("span", value, class_="legend"))
    scale = element("span", high, low, class_="scale")
    places = [frame.place(step, frame.high).split()[0] for step in marks]
    borders = [element("path", d=f"M{x} 0V{HEIGHT}", class_="border") for x in places]
    drawn = _svg(*borders, element("path", d=path, class_="line"))
    return element("figure", caption, scale, drawn, steps, class_="plot")


def _thinned(curve: Curve) -> list[tuple[float, float]]:
    size = -(-len(curve) // POINTS) if len(curve) else 1
    points = []
    for start in range(0, len(curve), size):
        steps, losses = curve.steps[start : start + size], curve.losses[start : start + size]
        points.append((sum(steps) / len(steps), sum(losses) / len(losses)))
    return points


def _svg(*shapes: Markup) -> Markup:
    """Return a picture of what stands beside it in words: hidden from screen readers."""
    return element(
        "svg",
        *shapes,
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        preserveAspectRatio="none",
        aria_hidden="true",
        focusable="false",
    )
