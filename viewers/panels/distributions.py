"""Distributions: measures around their thresholds; lengths, months and languages of what stays and of what goes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from curate.accounting.statistics import LENGTH_BINS
from curate.accounting.who import MONTH
from viewers.bars import Bar, Segment, chart
from viewers.budget import ROWS
from viewers.dates import months_in
from viewers.language_names import language_name
from viewers.loading import Report, StageView
from viewers.markup import Child, Markup, element, join
from viewers.numbers import counted, grouped, share
from viewers.panels.panel import Panel
from viewers.panels.spread import measures
from viewers.tables import Mark, left_out, table
from viewers.visible import shortened
from viewers.who import dropped_by, length_name, lost_in

MONTHS: Final = 36
"""Months of an output that are shown, the latest ones."""

LANGUAGES: Final = 12
"""Languages that are shown of what stays and of what goes, those with most documents."""

AGAINST: Final = (("kept", "in the outputs"), ("dropped", "dropped by a filter"))

NO_DATE: Final = "not known"


def distributions(report: Report) -> Panel | None:
    """Return the panel; None for a result without documents."""
    outputs = [(name, stage) for name, stage in report.outputs.items() if stage.manifest["rows"] and stage.has_text]
    if not outputs:
        return None
    lede = (
        "Look for texts so short that they teach nothing, for the month after which nothing was crawled, for a "
        "language that goes more than others, and for a threshold in the midst of the documents."
    )
    against = list(_months_against(report, [stage for _, stage in outputs]))
    are_told = len(outputs) == 1 and bool(against)
    parts = [part for name, stage in outputs[:ROWS] for part in _output(name, stage, len(outputs) > 1, are_told)]
    stages = [stage for _, stage in outputs]
    parts += [*_kept_and_dropped(report, stages), *against, *_languages(report, stages)]
    parts += measures(report)
    note = left_out(max(len(outputs) - ROWS, 0), "outputs")
    return Panel("distributions", "Distributions", lede, join([*parts, note]))


def _output(name: str, stage: StageView, is_titled: bool, are_months_told: bool) -> Iterator[Markup | None]:
    if is_titled:
        yield element("h3", shortened(name))
    yield from _lengths(name, stage)
    if not are_months_told:
        yield from _dates(name, stage)


def _kept_and_dropped(report: Report, outputs: Sequence[StageView]) -> Iterator[Markup | None]:
    """Yield the lengths of what is in the outputs against those of what filters dropped on the way."""
    kept, dropped = _bins(outputs), dropped_by(report, "length")
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
    yield chart("Lengths in characters: kept against dropped", bars, AGAINST)
    yield table("Lengths, kept against dropped", Mark.EXACT, ("Length", "Kept", "Dropped", "Dropped of both"), rows)
    note = (
        "Kept: documents of all outputs, as long as they came out. Dropped: by any step after the text was there, what "
        "is held out apart, as long as the step saw them. Filter by filter: see Who loses."
    )
    yield element("p", note, class_="note")


def _months_against(report: Report, outputs: Sequence[StageView]) -> Iterator[Markup | None]:
    """Yield the months of what is in the outputs against those of what filters dropped on the way."""
    dropped = dropped_by(report, MONTH)
    if not any(documents for month, documents in dropped.items() if month):
        return
    kept: dict[str, int] = {}
    for stage in outputs:
        months = months_in(stage)
        for month, documents in [*months.items(), ("", stage.manifest["rows"] - sum(months.values()))]:
            kept[month] = kept.get(month, 0) + documents
    months_there = sorted({*kept, *dropped} - {""})
    shown = months_there[-MONTHS:] + ([""] if kept.get("") or dropped.get("") else [])
    yield from _against("Months of crawling", "Month", [(month or NO_DATE, month) for month in shown], kept, dropped)
    yield left_out(max(len(months_there) - MONTHS, 0), "months, kept and dropped,")
    yield _untold("month", 0, lost_in(report) - sum(dropped.values()))


def _languages(report: Report, outputs: Sequence[StageView]) -> Iterator[Markup | None]:
    """Yield the languages of what is in the outputs against those of what filters dropped on the way."""
    dropped = dropped_by(report, "language")
    if not any(documents for code, documents in dropped.items() if code):
        return
    kept: dict[str, int] = {}
    for stage in outputs:
        for code, counts in stage.statistics.get("groups", {}).get("language", {}).items():
            kept[code] = kept.get(code, 0) + counts["documents"]
    codes = sorted({*kept, *dropped} - {""}, key=lambda code: (-kept.get(code, 0) - dropped.get(code, 0), code))
    told = [(shortened(language_name(code), 60), code) for code in codes[:LANGUAGES]]
    yield from _against("Languages", "Language", told, kept, dropped)
    yield left_out(max(len(codes) - LANGUAGES, 0), "languages, kept and dropped,")
    stays = sum(stage.manifest["rows"] for stage in outputs) - sum(kept.values())
    goes = lost_in(report) - sum(documents for code, documents in dropped.items() if code)
    yield _untold("language", stays, goes)


def _untold(what: str, kept: int, dropped: int) -> Markup | None:
    """Return the sentence that says of how many documents nothing was counted, None when there are none."""
    stays = f"{counted(kept, 'document')} of the outputs" if kept else ""
    goes = f"{counted(dropped, 'document')} dropped by steps that saw none, or did not count it" if dropped else ""
    told = " and ".join(part for part in (stays, goes) if part)
    return element("p", f"In no row, as the {what} is not known: {told}.", class_="note") if told else None


def _against(
    what: str, head: str, told: Sequence[tuple[str, str]], kept: Mapping[str, int], dropped: Mapping[str, int]
) -> Iterator[Markup | None]:
    """Yield `kept` against `dropped` as bars and a table; `told` are names and keys, in order."""
    bars, rows = list[Bar](), list[list[Child]]()
    for name, key in told:
        stay, went = kept.get(key, 0), dropped.get(key, 0)
        bars.append(Bar(name, (Segment(stay, "kept"), Segment(went, "dropped")), share(went, stay + went)))
        rows.append([name, grouped(stay), grouped(went), share(went, stay + went)])
    yield chart(f"{what}: kept against dropped", bars, AGAINST)
    yield table(f"{what}, kept against dropped", Mark.EXACT, (head, "Kept", "Dropped", "Dropped of both"), rows)


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
