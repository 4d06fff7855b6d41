"""Differences with intervals: one line of inline SVG each, on one scale around 0; the table beside it has the numbers.

Places are rounded to integers: losses come from training, and the same run gives the same page.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from viewers.markup import Child, Markup, element

WIDTH: Final = 10_000
HEIGHT: Final = 10


@dataclass(frozen=True, slots=True)
class Difference:
    """A mean difference and the ends of its interval under a label; `stands_out` where 0 lies outside."""

    label: Child
    low: float
    mean: float
    high: float
    value: Child
    stands_out: bool


def chart(title: str, differences: Sequence[Difference]) -> Markup | None:
    """Return `differences` on one scale, None when there are none."""
    if not differences:
        return None
    reach = max(abs(end) for each in differences for end in (each.low, each.high)) or 1.0
    items = [
        element(
            "li",
            element("span", each.label, class_="label"),
            _draw(each, reach),
            element("span", each.value, class_="value"),
        )
        for each in differences
    ]
    ends = (
        element("span", f"−{reach:.3f}", class_="low"),
        element("span", "0"),
        element("span", f"+{reach:.3f}", class_="high"),
    )
    scale = element("li", element("span", class_="label"), element("span", *ends, class_="ends"), class_="axis")
    caption = element("figcaption", title, element("span", "dot: mean, line: interval", class_="legend"))
    return element("figure", caption, element("ul", scale, *items), class_="bars dots")


def _draw(each: Difference, reach: float) -> Markup:
    low, at, high = (round(WIDTH / 2 * (1 + value / reach)) for value in (each.low, each.mean, each.high))
    tone = "out" if each.stands_out else "in"
    return element(
        "svg",
        element("path", d=f"M{WIDTH // 2} 0V{HEIGHT}", class_="same"),
        element("path", d=f"M{low} {HEIGHT // 2}H{high}", class_=f"range {tone}"),
        element("path", d=f"M{at} {HEIGHT // 2}h0", class_=f"dot {tone}"),
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        preserveAspectRatio="none",
        aria_hidden="true",
        focusable="false",
    )
