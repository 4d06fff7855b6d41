"""Contamination: benchmarks that were looked for, what was found, and what was not checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from curate.accounting.samples import PER_REASON
from transforms.contamination_findings import VERDICTS
from transforms.exact_numbers import decimal_text, exact
from viewers.bars import Bar, Segment, chart
from viewers.budget import DUPLICATE_BYTES, ROWS, fitting
from viewers.contamination import (
    WIDELY_USED,
    Guard,
    checked_documents,
    guards_of,
    hits_of,
    is_guard,
    items_found,
    not_looked_for,
    unchecked_sources,
)
from viewers.finding_card import finding_card
from viewers.loading import Report, StageView
from viewers.markup import Child, Markup, element, join
from viewers.numbers import counted, grouped
from viewers.panels.panel import Panel
from viewers.sample_card import Excerpts
from viewers.settings import decimal_of
from viewers.tables import Mark, code, left_out, mark, table
from viewers.visible import shortened

SOURCES = 8
"""Sources that are named for a benchmark, those with most documents."""
ACTIONS = {
    "drop": "the document goes",
    "cut": "the words of the item are cut out",
    "tag": "the document stays, with a tag",
    "mask": "the document stays, and the places of the item are no targets of training",
}


def contamination(report: Report) -> Panel:
    """Return the panel."""
    guards = guards_of(report)
    lede = (
        "Read what was not checked before what was found: a benchmark that nobody named is in the training text as "
        "often as the web has it."
    )
    if not guards:
        sentence = (
            "No stage of this recipe looks for benchmarks: none is checked, and any of them may be in these texts: "
            f"{', '.join(WIDELY_USED)} and all others."
        )
        body = element("p", sentence, class_="note")
    else:
        stages = list({(guard.stage.name, guard.stage.key): guard.stage for guard in guards}.values())
        body = join(
            [
                _unchecked(report, guards),
                element("h3", "What was looked for, and found"),
                *(_rule(guard) for guard in guards[:ROWS]),
                _benchmarks(guards),
                *(_found(stage, guards) for stage in stages[:ROWS]),
                *(_items(stage, guards) for stage in stages[:ROWS]),
                _samples(report, stages),
            ]
        )
    return Panel("contamination", "Contamination", lede, body)


def _rule(guard: Guard) -> Markup:
    fields = guard.fields
    least = decimal_text(exact(decimal_of(fields["coverage"])))
    verdicts = " or ".join(fields["verdicts"])
    sentence = (
        f"Stage {guard.stage.title} compares words without case and punctuation. Where at least {least} of the words "
        f"of a question, answer, choice or passage that count stand in a document, in order, that is found; an item of "
        f"fewer than {counted(fields['ngram'], 'word')} only as a whole. For a {verdicts} "
        f"{ACTIONS.get(fields['action'], shortened(str(fields['action'])))}. A leak has the words as they are, a "
        "variant other numbers or names, a quotation is text that the benchmark itself has from elsewhere."
    )
    if fields["action"] not in ("tag", "mask") and (others := [v for v in VERDICTS if v not in fields["verdicts"]]):
        counted_too = "are counted as left" if guard.counts_left else "are not counted"
        sentence += f" Documents with nothing but a {' or '.join(others)} stay and {counted_too}."
    return element("p", sentence)


def _benchmarks(guards: list[Guard]) -> Markup:
    given = [(guard, benchmark) for guard in guards for benchmark in guard.benchmarks]
    rows = [_benchmark(guard, benchmark) for guard, benchmark in given[:ROWS]]
    columns = ("Benchmark", "Items", "Items too short or plain to find", "Documents", "Fields", "File")
    words = frozenset({"Items", "Items too short or plain to find", "Fields", "File"})
    built = table("Benchmarks looked for", Mark.EXACT, columns, rows, words)
    return join([_picture(given[:ROWS]), built, left_out(len(given) - len(rows), "benchmarks")])


def _picture(given: Sequence[tuple[Guard, Any]]) -> Markup | None:
    """Return how many items of each benchmark can be found, where that is recorded."""
    bars = []
    for guard, benchmark in given:
        if (checked := guard.protection.get(benchmark["name"])) is not None:
            lost = checked["short"] + checked["plain"]
            alone = checked["items"] - lost - checked["joined"]
            parts = ((alone, "kept"), (checked["joined"], "equal"), (lost, "dropped"))
            told = f"{grouped(checked['items'] - lost)} of {grouped(checked['items'])}"
            bars.append(Bar(shortened(benchmark["name"], 60), [Segment(n, tone) for n, tone in parts], told))
    legend = (("kept", "by themselves"), ("equal", "with answer or choices only"), ("dropped", "not at all"))
    return chart("Items that can be found, by benchmark", bars, legend) if bars else None


def _benchmark(guard: Guard, benchmark: Any) -> list[Child]:
    named = [f"{part} {benchmark[part]!r}" for part in ("question", "answer", "choices", "passage") if benchmark[part]]
    documents = sum(hits.dropped + hits.cut for hits in hits_of(guard.stage))
    checked = guard.protection.get(benchmark["name"])
    return [
        shortened(benchmark["name"]),
        grouped(checked["items"]) if checked else "not recorded",
        _unprotectable(checked) if checked else "not recorded",
        grouped(documents) if len(guard.benchmarks) == 1 else "with others, see below",
        shortened(", ".join(named), 300),
        code(benchmark["digest"]),
    ]


def _unprotectable(checked: Mapping[str, int]) -> str:
    return (
        f"{grouped(checked['short'] + checked['plain'])}; {grouped(checked['joined'])} more with answer or choices only"
    )


def _found(stage: StageView, guards: list[Guard]) -> Markup:
    came = checked_documents(stage)
    found = hits_of(stage)
    counted_too = all(guard.counts_left for guard in guards if guard.stage is stage)

    def told(left: int) -> str:
        return grouped(left) if counted_too else "not counted"

    rows: list[list[Child]] = [
        [shortened(h.source), h.verdict, *(grouped(n) for n in (h.dropped, h.characters, h.cut)), told(h.left)]
        for h in found[:ROWS]
    ]
    looked = (
        f"{counted(sum(came.values()), 'document')} of {counted(len(came), 'source')} came into stage {stage.title}. "
    )
    if not rows:
        return element("p", looked, "No item was found in any of them. ", mark(Mark.EXACT))
    columns = ("Source", "Verdict", "Documents dropped", "Characters dropped", "Documents cut", "Documents left")
    built = table(f"Found in {stage.title}", Mark.EXACT, columns, rows, frozenset({"Verdict"}))
    return join([element("p", looked), built, left_out(len(found) - len(rows), "rows")])


def _items(stage: StageView, guards: list[Guard]) -> Markup:
    """Return the table of items found, by benchmark and split."""
    found = items_found(stage)
    if not found:
        return join([])
    known = {name: n["items"] for guard in guards if guard.stage is stage for name, n in guard.protection.items()}
    rows: list[list[Child]] = []
    for mine in found[:ROWS]:
        where = sorted(mine.sources.items(), key=lambda pair: (-pair[1], pair[0]))
        shown = ", ".join(f"{shortened(source)} {grouped(count)}" for source, count in where[:SOURCES])
        numbers = [grouped(mine.items.get(verdict, 0)) for verdict in VERDICTS]
        documents = grouped(sum(mine.documents.values()))
        items = grouped(known[mine.benchmark]) if mine.benchmark in known else "not recorded"
        rows.append([shortened(mine.benchmark), items, *numbers, documents, shown])
    columns = ("Benchmark", "Items", *(f"Found as {verdict}" for verdict in VERDICTS), "Documents", "Sources")
    built = table(f"Items found by {stage.title}", Mark.EXACT, columns, rows, frozenset({"Items", "Sources"}))
    note = "Dropped, cut, tagged, masked or left; a document counts once for each verdict on it."
    return join([built, left_out(len(found) - len(rows), "benchmarks"), element("p", note, class_="note")])


def _unchecked(report: Report, guards: list[Guard]) -> Markup:
    names = list(dict.fromkeys(shortened(b["name"]) for guard in guards for b in guard.benchmarks))
    sources = unchecked_sources(report)
    passages = [shortened(b["name"]) for guard in guards for b in guard.benchmarks if not b["answer"]]
    lines = [
        f"Every benchmark other than {', '.join(names[:ROWS])}: not checked. So, of widely used ones, "
        f"{', '.join(not_looked_for(names))} are not.",
        _unprotected(guards),
        "Translations, paraphrases and items of which only the gist is told: not found by words.",
    ]
    if any(not guard.is_whole for guard in guards):
        lines.append("Documents of other branches: a benchmark is looked for in some branches of a Switch only.")
    if sources:
        lines.append(f"Sources that came to no such stage: {', '.join(map(shortened, sources[:ROWS]))}.")
    if passages:
        lines.append(f"No field for answers was given for {', '.join(passages[:ROWS])}: answers alone are not found.")
    items = [element("li", line) for line in lines]
    return element("div", element("h3", "What was not checked"), element("ul", *items), class_="unchecked")


def _unprotected(guards: list[Guard]) -> str:
    known = [checked for guard in guards for checked in guard.protection.values()]
    where = "The function unprotectable of the package’s transforms lists them from the benchmark’s file."
    if not known:
        return f"Items too short or too plain to be found: this result does not record how many there are. {where}"
    short, plain = (sum(checked[reason] for checked in known) for reason in ("short", "plain"))
    return f"{counted(short, 'item')} too short and {counted(plain, 'item')} too plain to be found. {where}"


def _samples(report: Report, stages: list[StageView]) -> Markup:
    excerpts = Excerpts.of(report)
    kinds = ("dropped", "near miss")
    found = [s for kind in kinds for stage in stages for s in stage.samples if _is_found(s, kind)]
    cards = fitting(found, lambda sample: finding_card(sample, excerpts), DUPLICATE_BYTES)
    heading = element("h3", "Documents to read")
    if not found:
        return join([heading, element("p", "No document went or was left because of a benchmark.", class_="note")])
    rule = (
        f"Of each verdict the up to {PER_REASON} dropped documents with the lowest digest of their text, then those "
        "that were left; the words of the item are marked where the excerpt has them. "
    )
    note = element("p", rule, mark(Mark.SAMPLED), class_="note")
    omitted = left_out(len(found) - len(cards), "documents")
    return element("div", heading, note, element("div", *cards, class_="cards"), omitted, class_="batch")


def _is_found(sample: Mapping[str, Any], kind: str) -> bool:
    return bool(is_guard(sample["transform"]) and sample["kind"] == kind)
