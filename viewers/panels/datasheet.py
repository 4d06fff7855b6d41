"""Datasheet: what the recipe answers, what the page answers itself, and what nobody answers; the known gaps."""

from __future__ import annotations

from collections.abc import Iterator

from curate.recipes.datasheet import QUESTIONS
from viewers.checks import check_report
from viewers.croissant import missing
from viewers.flows import all_flows
from viewers.loading import Report
from viewers.markup import Child, Markup, element, join
from viewers.numbers import counted, grouped
from viewers.panels.panel import Panel
from viewers.provenance import inputs_table, made_with, recipe_text
from viewers.tables import Group, Mark, facts, table
from viewers.verdict import Verdict
from viewers.visible import shortened

NOT_ANSWERED = "not answered"

UNRECORDED = (
    "An earlier version of curate made this result: the text of its recipe, that version, and the files that it read "
    "are not recorded; its stages, with settings, versions and keys, are: see Lineage."
)

LONG = 2000
"""Code points of an answer that are shown."""


def datasheet(report: Report) -> Panel:
    """Return the panel."""
    sheet = report.datasheet
    answers = [getattr(sheet, question.field) for question in QUESTIONS]
    missing = sum(not answer for answer in answers)
    lede = (
        "Read what is not answered: nobody can count why data was made, who agreed to it, and whom to ask. Only the "
        "people who made it can say, in the recipe."
    )
    told = f"{counted(len(QUESTIONS), 'question')}, {grouped(missing)} not answered."
    parts = [element("p", told, class_="tally"), _facts(report), _questions(report), _counted(report), _gaps(report)]
    if report.provenance is not None:
        parts += [element("h3", "Made with"), inputs_table(report.provenance), recipe_text(report.provenance)]
    body = join(parts)
    return Panel("datasheet", "Datasheet and known gaps", lede, body)


def _facts(report: Report) -> Markup | None:
    sheet = report.datasheet
    told: list[tuple[str, Child]] = [
        (name, shortened(value, LONG))
        for name, value in (
            ("Title", sheet.name),
            ("Version", sheet.version),
            ("Licence of the collection", sheet.licence),
            ("Published at", sheet.url),
            ("Published on", sheet.published),
            ("To be cited as", sheet.citation),
        )
        if value
    ]
    if report.provenance is not None:
        told += made_with(report.provenance)
    if lacks := missing(report):
        told.append(("Not told to catalogues", ", ".join(lacks)))
    return facts(told) if told else None


def _questions(report: Report) -> Markup:
    sections = dict.fromkeys(question.section for question in QUESTIONS)
    groups = [
        Group(
            section,
            [
                [
                    question.text,
                    shortened(getattr(report.datasheet, question.field), LONG) or element("em", NOT_ANSWERED),
                ]
                for question in QUESTIONS
                if question.section == section
            ],
        )
        for section in sections
    ]
    return table("Datasheet", Mark.EXACT, ("Question", "Answer"), groups, frozenset({"Answer"}))


def _counted(report: Report) -> Markup:
    """Return the questions that the page answers itself, with where."""
    there = {check.id: check for check in check_report(report)}
    licences = there["licences-known"].finding
    rows: list[list[Child]] = [
        ["How many documents are there?", _documents(report), "Verdicts"],
        ["What was filtered, edited, joined or removed?", _steps(report), "Funnel by source"],
        ["Is anything missing from it?", there["no-gaps"].finding, "Funnel by source"],
        ["Under which licences are the documents?", licences, "Rights by source"],
        ["Were wishes not to be used looked at?", there["optout-checked"].finding, "Rights by source"],
        ["Are there duplicates?", there["deduplicated"].finding, "Duplicates"],
        ["Are benchmarks in it?", there["benchmarks-checked"].finding, "Contamination"],
        ["Is there a recommended split?", _split(report), "Hold-out"],
        ["Are errors in it known?", _errors(report), "Verdicts"],
    ]
    columns = ("Question", "Answer", "Panel")
    return table("What this page answers itself", Mark.EXACT, columns, rows, frozenset(columns))


def _documents(report: Report) -> str:
    outputs = list(report.outputs.items())[:5]
    return ", ".join(f"{counted(s.manifest['rows'], 'document')} in {shortened(name)}" for name, s in outputs)


def _steps(report: Report) -> str:
    steps = sum(len(flow.steps) for flow in all_flows(report))
    return f"{counted(len(report.stages), 'stage')}, {counted(steps, 'step')} of single sources, each with its reasons"


def _split(report: Report) -> str:
    held = [stage for stage in report.stages if stage.holds_out]
    return f"yes: {', '.join(shortened(stage.name, 40) for stage in held[:5])}" if held else "no text is held out"


def _errors(report: Report) -> str:
    number = len(list(_objections(report)))
    return f"{counted(number, 'check')} did not pass"


def _objections(report: Report) -> Iterator[str]:
    for check in check_report(report):
        if check.verdict is not Verdict.PASS:
            yield f"{check.question} {shortened(check.finding, 400)}."


def _gaps(report: Report) -> Markup:
    """Return the gaps that the recipe names, and what checks object to."""
    told = [element("li", shortened(gap, LONG)) for gap in report.datasheet.gaps]
    found = [element("li", objection) for objection in _objections(report)]
    if report.provenance is None:
        found.append(element("li", UNRECORDED))
    heading = element("h3", "Known gaps")
    if not told and not found:
        return join([heading, element("p", "None is named, and every check passes.", class_="note")])
    parts = [heading]
    parts.append(
        element(
            "p",
            "Named by the recipe:"
            if told
            else "The recipe names none. Checks that warn or fail, and what no result records:",
        )
    )
    parts += (
        [
            element("ul", *told),
            element("p", "Checks that warn or fail, and what no result records:") if found else join([]),
        ]
        if told
        else []
    )
    return join([*parts, element("ul", *found) if found else join([])])
