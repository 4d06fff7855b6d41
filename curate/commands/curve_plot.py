"""The plot of `curate dedup-curve`: one static SVG file, without a library, readable in print."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from html import escape
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from transforms.banding_curve import Point
    from transforms.minhash import MinHash

WIDTH: Final = 640
HEIGHT: Final = 420
LEFT: Final = 56
TOP: Final = 24
PLOT_WIDTH: Final = 420
PLOT_HEIGHT: Final = 340
STEPS: Final = 200

# colours that differ in lightness too, and dashes, so that curves can be told apart in grey
_STROKES: Final = (("#1b1b1b", "none"), ("#b2560d", "7 4"), ("#2a6f97", "2 3"), ("#6a994e", "9 3 2 3"))


def curve_svg(methods: Mapping[str, MinHash], points: Sequence[Point], threshold: Fraction) -> str:
    """Return the plot of the curves of `methods` by name, the measured `points` of the first, and its threshold."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        'font-family="sans-serif" font-size="12">',
        "<title>Probability that two texts become candidates, by Jaccard similarity</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        *_axes(),
        f'<line x1="{_x(float(threshold))}" x2="{_x(float(threshold))}" y1="{_y(0)}" y2="{_y(1)}" stroke="#999999"/>',
    ]
    for number, (name, method) in enumerate(methods.items()):
        parts += _curve(number, name, method)
    parts += [_mark(point) for point in points]
    return "\n".join([*parts, "</svg>", ""])


def _x(similarity: float) -> str:
    return f"{LEFT + PLOT_WIDTH * similarity:.2f}"


def _y(probability: float) -> str:
    return f"{TOP + PLOT_HEIGHT * (1 - probability):.2f}"


def _axes() -> list[str]:
    lines = []
    for tenth in range(0, 11, 2):
        value = tenth / 10
        lines += [
            f'<line x1="{_x(0)}" x2="{_x(1)}" y1="{_y(value)}" y2="{_y(value)}" stroke="#e3e3e3"/>',
            f'<text x="{LEFT - 8}" y="{_y(value)}" text-anchor="end" dominant-baseline="middle">{value:g}</text>',
            f'<text x="{_x(value)}" y="{TOP + PLOT_HEIGHT + 18}" text-anchor="middle">{value:g}</text>',
        ]
    middle = f'x="{_x(0.5)}" y="{TOP + PLOT_HEIGHT + 38}" text-anchor="middle"'
    return [*lines, f"<text {middle}>Jaccard similarity (vertical line: threshold)</text>"]


def _curve(number: int, name: str, method: MinHash) -> list[str]:
    colour, dashes = _STROKES[number % len(_STROKES)]
    places = (step / STEPS for step in range(STEPS + 1))
    line = " ".join(f"{_x(similarity)},{_y(method.recall(similarity))}" for similarity in places)
    style = f'fill="none" stroke="{colour}" stroke-width="2" stroke-dasharray="{dashes}"'
    left, top = LEFT + PLOT_WIDTH + 14, TOP + 20 * number + 8
    label = escape(f"{name} {method.bands}×{method.rows}")
    return [
        f'<polyline points="{line}" {style}/>',
        f'<line x1="{left}" x2="{left + 26}" y1="{top}" y2="{top}" {style}/>',
        f'<text x="{left + 32}" y="{top}" dominant-baseline="middle">{label}</text>',
    ]


def _mark(point: Point) -> str:
    middle = float(point.low + point.high) / 2
    said = f"{point.candidates:,} of {point.pairs:,} pairs, expected {point.expected:.4f}"
    return (
        f'<circle cx="{_x(middle)}" cy="{_y(point.share)}" r="3.5" fill="#ffffff" stroke="#1b1b1b">'
        f"<title>{escape(said)}</title></circle>"
    )
