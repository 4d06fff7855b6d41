"""When the documents of a stage were crawled, by month, from its statistics. Cost: the months."""

from __future__ import annotations

from viewers.loading import StageView
from viewers.numbers import counted


def span_of_dates(stage: StageView) -> str:
    """Return in words from when to when the documents of `stage` were crawled, and of how many that is not known."""
    months = months_in(stage)
    rows = stage.manifest["rows"]
    if not months:
        return f"when {counted(rows, 'document')} were crawled is not known"
    ordered = sorted(months)
    unknown = rows - sum(months.values())
    told = ordered[0] if len(ordered) == 1 else f"{ordered[0]} to {ordered[-1]}"
    return f"crawled {told}" + (f"; of {counted(unknown, 'document')} not known" if unknown else "")


def months_in(stage: StageView) -> dict[str, int]:
    """Return month → documents that `stage` keeps of it, of all sources; those without a date are in none."""
    months: dict[str, int] = {}
    for found in stage.statistics.get("crawled", {}).values():
        for month, documents in found.items():
            months[month] = months.get(month, 0) + documents
    return months
