"""Languages: what each output holds of each language, and what each filter took from it, however few they are.

`who_loses` tells which languages a filter hits more than others, and says nothing of small groups, for want of numbers.
Here the numbers themselves stand, for those who ask after one language.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from viewers.bars import Bar, Segment, chart
from viewers.budget import LONG_ROWS
from viewers.language_names import language_name
from viewers.loading import Report, StageView
from viewers.markup import Child, Markup, element, join
from viewers.numbers import counted, grouped, share
from viewers.panels.panel import Panel
from viewers.tables import Mark, left_out, table
from viewers.visible import shortened

LEDE: Final = (
    "Look for your language: how much of it is here, and which filter took how much; why, the funnel tells. "
    "Few documents prove nothing; Who loses tells where it is more than chance."
)


BARS: Final = 12
"""Languages drawn of an output; the table below has more."""


def languages(report: Report) -> Panel | None:
    """Return the panel; None where no step told the languages of documents."""
    held = [(name, stage) for name, stage in report.outputs.items() if _groups(stage)]
    lost = list(_lost(report))
    if not held and not lost:
        return None
    rule = (
        "Of documents whose language was told, by a Language step or by their source; others are in no row. A Language "
        "step predicts: a text in a language that its model does not know stands under one that it resembles. What "
        "filters before that step took is not told by language. A language that no filter is named for lost nothing. "
        "“Switch” is a step that sends documents to filters of their own, by their language or another column."
    )
    body = join([element("p", rule, class_="note"), *(_held(name, stage) for name, stage in held), _losses(lost)])
    return Panel("languages", "Languages", LEDE, body)


def _groups(stage: StageView) -> Mapping[str, Any]:
    groups: Mapping[str, Any] = stage.statistics.get("groups", {}).get("language", {})
    return groups


def _held(name: str, stage: StageView) -> Markup:
    groups = sorted(_groups(stage).items(), key=lambda item: (-item[1]["characters"], item[0]))
    documents, characters = (sum(counts[what] for _, counts in groups) for what in ("documents", "characters"))
    rows: list[list[Child]] = [
        [
            shortened(language_name(code)),
            grouped(counts["documents"]),
            share(counts["documents"], documents),
            grouped(counts["characters"]),
            share(counts["characters"], characters),
        ]
        for code, counts in groups[:LONG_ROWS]
    ]
    bars = [
        Bar(
            shortened(language_name(code), 60),
            (Segment(counts["characters"], "kept"),),
            share(counts["characters"], characters),
        )
        for code, counts in groups[:BARS]
    ]
    picture = chart(f"Largest languages of {shortened(name, 60)}, by characters", bars, ())
    columns = ("Language", "Documents", "of documents", "Characters", "of characters")
    built = table(f"Languages of {shortened(name)}", Mark.EXACT, columns, rows)
    untold = stage.manifest["rows"] - documents
    sentence = (
        f"{counted(len(groups), 'language')}, those with most characters first. No language was told for "
        f"{grouped(untold)} of {counted(stage.manifest['rows'], 'document')}, {_untold(stage, characters)} of all "
        "characters: these are in no row, and shares are of the others."
    )
    return join([element("p", sentence), picture, built, left_out(len(groups) - len(rows), "languages")])


def _untold(stage: StageView, characters: int) -> str:
    sources: Mapping[str, Any] = stage.statistics["groups"]["source"]
    whole = sum(counts["characters"] for counts in sources.values())
    return share(whole - characters, whole)


def _lost(report: Report) -> Iterator[tuple[str, str, int, int]]:
    """Yield language, filter, and how many documents came in and were dropped, where any were; nothing held out."""
    for stage in report.stages:
        if stage.holds_out:
            continue
        steps = stage.statistics.get("who", {}).get("steps", {})
        for index, step in steps.items():
            filter_ = stage.statistics["steps"][index]["name"]
            title = filter_ if filter_ == stage.name else f"{filter_} in {stage.name}"
            for entry in step.get("by", {}).get("language", {}).get("values", {}).get("least", {}).values():
                if entry.get("dropped"):
                    yield entry["name"], title, entry["documents"], entry["dropped"]


def _losses(lost: Sequence[tuple[str, str, int, int]]) -> Markup | None:
    if not lost:
        return None
    ordered = sorted(lost, key=lambda row: (-row[3], row[0], row[1]))
    rows: list[list[Child]] = [
        [shortened(language_name(code)), shortened(title), grouped(came), grouped(gone), share(gone, came)]
        for code, title, came, gone in ordered[:LONG_ROWS]
    ]
    columns = ("Language", "Filter", "Came in", "Dropped", "Rate")
    built = table("What filters take from each language", Mark.EXACT, columns, rows, frozenset({"Filter"}))
    return join([built, left_out(len(ordered) - len(rows), "rows of languages and filters")])
