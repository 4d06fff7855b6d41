"""How surely near duplicates are compared: the curve of the banding, and what was measured beside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, Final

from curate.recall import UNIT, RecallPoint, StageRecall
from transforms.exact_numbers import decimal_text
from viewers.curves import HEIGHT, WIDTH
from viewers.intervals import MILLION, wilson
from viewers.ladder_plot import dot, figure
from viewers.loading import Report, StageView
from viewers.markup import Child, Markup, element, join
from viewers.numbers import counted, fixed, grouped, rounded
from viewers.settings import decimal_of
from viewers.tables import Mark, left_out, table

SIMILARITIES: Final = ("0.5", "0.6", "0.7", "0.75", "0.8", "0.85", "0.9", "0.95")

LEAST: Final = Fraction(1, 2)
"""Where the curve begins, as the points do."""

STEPS: Final = 50

POINTS: Final = 20
"""Points of a stage that are shown."""

COLUMNS: Final = ("Similarity", "Pairs", "Proposed", "of these", "95 % interval", "By the curve")


def recall(report: Report, stage: StageView) -> Markup | None:
    """Return with which probability two texts of each similarity are compared, and the share that was."""
    method: dict[str, Any] | None = (stage.operation.get("fields") or {}).get("method")
    fields = (method or {}).get("fields", {})
    if not {"bands", "rows", "threshold"} <= set(fields) or stage.operation.get("operation") != "deduplicate":
        return None
    threshold = Fraction(decimal_of(fields["threshold"]))

    def chance(value: Fraction) -> Fraction:
        return Fraction(1 - (1 - value ** fields["rows"]) ** fields["bands"])

    stages = () if report.recall is None else report.recall.stages
    measured = next((one for one in stages if (one.name, one.key) == (stage.name, stage.key)), None)
    rows: list[list[Child]] = []
    for value in sorted({*map(Fraction, SIMILARITIES), threshold}):
        name = decimal_text(value) + (" (threshold)" if value == threshold else "")
        rows.append([name, fixed(rounded(chance(value).numerator, chance(value).denominator, 4), 4)])
    return join(
        [
            _plot(chance, threshold, () if measured is None else measured.points),
            _said(measured, bool((stage.operation.get("fields") or {}).get("without_templates"))),
            None if measured is None or not measured.points else _measured(stage, measured),
            table(f"Recall of bands in {stage.title}", Mark.EXACT, ("Similarity", "Compared with probability"), rows),
        ]
    )


def _said(measured: StageRecall | None, lacks_templates: bool) -> Markup:
    if lacks_templates:
        told = "The curve is arithmetic. Recall is not measured where templates are left out of what is compared."
    elif measured is None:
        told = (
            "The curve is arithmetic; curate dedup-curve --store STORE draws pairs of what came in without "
            "bias, compares them exactly, and sets what was found beside it."
        )
    else:
        pairs = sum(point.pairs for point in measured.points)
        told = (
            f"The curve is arithmetic of the bands. Measured beside it: {counted(pairs, 'pair')} of the "
            f"{grouped(measured.texts)} different texts that came in, each with a similarity of at least "
            f"{decimal_text(LEAST)}, drawn by hashes that have nothing to do with the bands, and compared exactly. "
            "Proposed are those that share a band; pairs given up in buckets that are too large stand under Pairs."
        )
    return element("p", told, class_="note")


def _plot(chance: Callable[[Fraction], Fraction], threshold: Fraction, points: Sequence[RecallPoint]) -> Markup:
    def x(similarity: Fraction) -> int:
        return round((similarity - LEAST) / (1 - LEAST) * WIDTH)

    def y(share: Fraction) -> int:
        return round((1 - share) * HEIGHT)

    values = [LEAST + (1 - LEAST) * Fraction(at, STEPS) for at in range(STEPS + 1)]
    shapes = [
        element("path", d="M" + "L".join(f"{x(value)} {y(chance(value))}" for value in values), class_="line"),
        element("path", d=f"M{x(max(threshold, LEAST))} 0V{HEIGHT}", class_="border"),
    ]
    for point in points:
        at = x((Fraction(point.low) + Fraction(point.high)) / 2)
        low, high = (Fraction(end, MILLION) for end in wilson(point.proposed, point.pairs))
        shapes.append(element("path", d=f"M{at} {y(high)}V{y(low)}", class_="range"))
        shapes.append(dot(at, y(Fraction(point.proposed, point.pairs)), "dot"))
    legend = "line: by the bands" + (", dots: measured" if points else "")
    legend += f", upright: threshold {decimal_text(threshold)}"
    title = "Probability that a pair is compared, by Jaccard similarity"
    return element("div", figure(title, legend, ("1", "0"), (decimal_text(LEAST), "1"), shapes), class_="recall")


def _measured(stage: StageView, measured: StageRecall) -> Markup:
    rows = [_point(point) for point in measured.points[-POINTS:]]
    built = table(f"Recall measured in {stage.title}", Mark.SAMPLED, COLUMNS, rows)
    return join([built, left_out(max(len(measured.points) - POINTS, 0), "rows of lower similarity")])


def _point(point: RecallPoint) -> list[Child]:
    low, high = (fixed(rounded(end, MILLION, 4), 4) for end in wilson(point.proposed, point.pairs))
    return [
        f"{point.low} to {point.high}",
        grouped(point.pairs),
        grouped(point.proposed),
        fixed(rounded(point.proposed, point.pairs, 4), 4),
        f"{low} – {high}",
        fixed(rounded(point.expected, UNIT, 4), 4),
    ]
