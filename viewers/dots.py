"""Dots with intervals: one line of inline SVG per ratio, on a scale of doublings around 1; words beside it say it, too.

Places are integers, so a page has the same bytes on any machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from viewers.intervals import MILLION, logarithm
from viewers.markup import Child, Markup, element

WIDTH: Final = 12_000
HEIGHT: Final = 10
DOUBLINGS: Final = 3
"""The scale goes from 1/8 to 8; what lies beyond stands at its end."""


@dataclass(frozen=True, slots=True)
class Dot:
    """A ratio (a fraction) with its interval in millionths, under a label; `stands_out` where 1 lies outside."""

    label: Child
    ratio: tuple[int, int]
    interval: tuple[int, int]
    value: Child
    stands_out: bool


def chart(title: str, dots: Sequence[Dot]) -> Markup | None:
    """Return `dots` on one scale, None when there are none."""
    if not dots:
        return None
    items = [
        element(
            "li",
            element("span", dot.label, class_="label"),
            draw(dot),
            element("span", dot.value, class_="value"),
        )
        for dot in dots
    ]
    ends = (
        element("span", "⅛ or less", class_="low"),
        element("span", "as all"),
        element("span", "8 times or more", class_="high"),
    )
    scale = element("li", element("span", class_="label"), element("span", *ends, class_="ends"), class_="axis")
    caption = element("figcaption", title, element("span", "dot: ratio, line: 95 % interval", class_="legend"))
    return element("figure", caption, element("ul", scale, *items), class_="bars dots")


def draw(dot: Dot) -> Markup:
    """Return the SVG of one dot; what it shows stands beside it in words, so it is hidden from screen readers."""
    low, high = (place(end, MILLION) for end in dot.interval)
    at, tone = place(*dot.ratio), "out" if dot.stands_out else "in"
    lines = [
        element("path", d=f"M{place(1, 1)} 0V{HEIGHT}", class_="same"),
        element("path", d=f"M{low} {HEIGHT // 2}H{high}", class_=f"range {tone}"),
        element("path", d=f"M{at} {HEIGHT // 2}h0", class_=f"dot {tone}"),
    ]
    return element(
        "svg",
        *lines,
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        preserveAspectRatio="none",
        aria_hidden="true",
        focusable="false",
    )


def place(numerator: int, denominator: int) -> int:
    """Return where a ratio stands on the scale, its ends for what lies beyond."""
    if not numerator:
        return 0
    units = WIDTH // (2 * DOUBLINGS)
    return min(max(WIDTH // 2 + logarithm(numerator, denominator) * units // 4096, 0), WIDTH)
