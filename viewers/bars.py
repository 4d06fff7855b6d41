"""Bars: one line of inline SVG that shows how an amount splits; widths are exact to 1/10,000 of the scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from viewers.markup import Child, Markup, element

UNITS: Final = 10_000
HEIGHT: Final = 10


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of a bar: how much, and its tone, a class of the style sheet ("kept", "dropped", "gaps" …)."""

    amount: int
    tone: str


@dataclass(frozen=True, slots=True)
class Bar:
    """A labelled bar with the numbers that it shows."""

    label: Child
    segments: Sequence[Segment]
    value: Child


def chart(title: str, bars: Sequence[Bar], legend: Sequence[tuple[str, str]]) -> Markup | None:
    """Return `bars` on a common scale, with a legend of (tone, meaning); None when there is nothing to show."""
    scale = max((sum(segment.amount for segment in bar.segments) for bar in bars), default=0)
    if not scale:
        return None
    items = [
        element(
            "li",
            element("span", bar.label, class_="label"),
            draw(bar.segments, scale),
            element("span", bar.value, class_="value"),
        )
        for bar in bars
    ]
    keys = [element("span", element("span", class_=f"key {tone}"), meaning) for tone, meaning in legend]
    caption = element("figcaption", title, element("span", *keys, class_="legend"))
    return element("figure", caption, element("ul", *items), class_="bars")


def draw(segments: Sequence[Segment], scale: int) -> Markup:
    """Return the SVG of one bar; what it shows stands beside it in words, so it is hidden from screen readers."""
    shapes = []
    begin = total = 0
    for segment in segments:
        total += segment.amount
        end = total * UNITS // scale
        if end > begin:
            shapes.append(element("rect", x=begin, y=0, width=end - begin, height=HEIGHT, class_=segment.tone))
        begin = end
    return element(
        "svg",
        *shapes,
        viewBox=f"0 0 {UNITS} {HEIGHT}",
        preserveAspectRatio="none",
        aria_hidden="true",
        focusable="false",
    )
