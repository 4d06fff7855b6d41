"""Distributions: lengths of what came out and of what was dropped, and the months in which it was crawled."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from curate.accounting.statistics import LENGTH_BINS
from viewers.bars import Bar, Segment, chart
from viewers.budget import ROWS
from viewers.dates import months_in
from viewers.loading import Report, StageView
from viewers.markup import Child, Markup, element, join
from viewers.numbers import grouped, share
from viewers.panels.panel import Panel
from viewers.tables import Mark, left_out, table
from viewers.visible import shortened
from viewers.who import length_name, lengths_dropped

MONTHS: Final = 120
"""Months of an output that are shown, the latest ones."""

NO_DATE: Final = "not known"


def distributions(report: Report) -> Panel | None:
    """Return the panel; None for a result without documents."""
    outputs = [(name, stage) for name, stage in report.outputs.items() if stage.manifest["rows"] and stage.has_text]
    if not outputs:
        return None
    lede = (
        "Look for texts so short that they teach nothing, and for the month after which nothing was crawled: what "
        "happened since is not in it."
    )
    parts = [part for name, stage in outputs[:ROWS] for part in _output(name, stage, len(outputs) > 1)]
    parts += _kept_and_dropped(report, [stage for _, stage in outputs])
    note = left_out(max(len(outputs) - ROWS, 0), "outputs")
    return Panel("distributions", "Lengths and dates", lede, join([*parts, note]))


def _output(name: str, stage: StageView, is_titled: bool) -> Iterator[Markup | None]:
    if is_titled:
        yield element("h3", shortened(name))
    yield from _lengths(name, stage)
    yield from _dates(name, stage)


def _kept_and_dropped(report: Report, outputs: Sequence[StageView]) -> Iterator[Markup | None]:
    """Yield the lengths of what is in the outputs against those of what filters dropped on the way."""
    kept, dropped = _bins(outputs), lengths_dropped(report)
    filled = [edge for edge in LENGTH_BINS if kept[edge] or dropped.get(edge, 0)]
    if not any(dropped.values()):
        return
    shown = LENGTH_BINS[LENGTH_BINS.index(filled[0]) : LENGTH_BINS.index(filled[-1]) + 1]
    bars, rows = list[Bar](), list[list[Child]]()
    for edge in shown:
        stay, went = kept[edge], dropped.get(edge, 0)
        segments = (Segment(stay, "kept"), Segment(went, "dropped"))
        bars.append(Bar(length_name(edge).removesuffix(" characters"), segments, share(went, stay + went)))
        rows.append([length_name(edge), grouped(stay), grouped(went), share(went, stay + went)])
    legend = (("kept", "in the outputs"), ("dropped", "dropped by a filter"))
    yield chart("Lengths in characters: kept against dropped", bars, legend)
    yield table("Lengths, kept against dropped", Mark.EXACT, ("Length", "Kept", "Dropped", "Dropped of both"), rows)
    note = (
        "Kept: documents of all outputs, as long as they came out. Dropped: by any step after the text was there, what "
        "is held out apart, as long as the step saw them. Filter by filter: see Who loses."
    )
    yield element("p", note, class_="note")


def _bins(stages: Sequence[StageView]) -> dict[str, int]:
    found = [counts for stage in stages for counts in stage.statistics.get("lengths", {}).values()]
    return {edge: sum(counts.get(edge, 0) for counts in found) for edge in LENGTH_BINS}


def _lengths(name: str, stage: StageView) -> Iterator[Markup | None]:
    bins = _bins([stage])
    filled = [edge for edge in LENGTH_BINS if bins[edge]]
    if not filled:
        return
    first, last = LENGTH_BINS.index(filled[0]), LENGTH_BINS.index(filled[-1])
    shown = LENGTH_BINS[first : last + 1]
    total = sum(bins.values())
    bars = [
        Bar(length_name(edge).removesuffix(" characters"), (Segment(bins[edge], "kept"),), share(bins[edge], total))
        for edge in shown
    ]
    yield chart(f"Lengths in characters: {shortened(name)}", bars, ())
    rows: list[list[Child]] = [[length_name(edge), grouped(bins[edge]), share(bins[edge], total)] for edge in shown]
    yield table(f"Lengths of {shortened(name)}", Mark.EXACT, ("Length", "Documents", "of all"), rows)


def _dates(name: str, stage: StageView) -> Iterator[Markup | None]:
    months = months_in(stage)
    rows_of_all = stage.manifest["rows"]
    unknown = rows_of_all - sum(months.values())
    if not months:
        sentence = f"Of no document in {shortened(name)} it is known when it was crawled."
        yield element("p", sentence, class_="note")
        return
    ordered = sorted(months)
    told = [(month, months[month]) for month in ordered[-MONTHS:]] + ([(NO_DATE, unknown)] if unknown else [])
    bars = [Bar(month, (Segment(documents, "kept"),), grouped(documents)) for month, documents in told]
    yield chart(f"Months of crawling: {shortened(name)}", bars, ())
    rows: list[list[Child]] = [[month, grouped(n), share(n, rows_of_all)] for month, n in told]
    yield table(f"Months of crawling of {shortened(name)}", Mark.EXACT, ("Month", "Documents", "of all"), rows)
    yield left_out(max(len(ordered) - MONTHS, 0), "months")
