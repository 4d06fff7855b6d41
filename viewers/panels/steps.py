"""Step inspector: what a step of training reads, down to documents, and which steps read a document.

Without the page's script it shows the first step of each phase, and holds what is needed to work out the others: the
plan, the keys of its permutations, and where documents begin (`viewers.reads`). With it any step is worked out in the
page (`viewers/scripts/steps.js`), by the arithmetic of `mixtures`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from curate.store import json_line, self_digested
from mixtures.permutation import component_key
from mixtures.plan import Plan
from mixtures.sequences import Chunks
from viewers.loading import Report
from viewers.markup import Child, Markup, element, join
from viewers.numbers import counted, grouped
from viewers.panels.panel import Panel
from viewers.reads import Example, Reads, listed_name
from viewers.table_data import cell, csv_address, json_address
from viewers.tables import Group, Mark, code, left_out, paragraphs, table
from viewers.visible import shortened

PLAN_BYTES: Final = 500_000
"""A plan that is larger does not fit into the page, and the inspector is left out."""

BREAK: Final = element("br")

LEDE: Final = "Ask what a step of training read, or which steps read a document."


def steps(report: Report) -> Panel | None:
    """Return the panel; None for a result without a plan."""
    if report.plan is None or report.reads is None:
        return None
    content = json_line(self_digested(report.plan.to_json()))
    fits = len(content) <= PLAN_BYTES
    body = join(
        [
            _rule(report.plan),
            _inspector(report.plan, report.reads) if fits else None,
            _examples(report.plan, report.reads, fits),
            _held(report.plan, report.reads, content) if fits else paragraphs(_too_large(report.plan)),
            _commands(),
        ]
    )
    return Panel("steps", "Step inspector", LEDE, body)


def _rule(plan: Plan) -> Markup:
    length = f"{grouped(plan.sequences.length)} tokens"
    row = (
        f"A row is a chunk of {length} of one component, whatever documents these belong to."
        if isinstance(plan.sequences, Chunks)
        else f"A row is a chunk of one component: whole documents, packed together into up to {length}."
    )
    return paragraphs(
        f"Each step reads {counted(plan.batch, 'row')}. {row} Which component comes next follows from the counts of "
        "the phase; which of its chunks, from an order of its own for each pass, shuffled by a key made of the seed, "
        "the component’s name and the number of the pass. So no list of the order exists: it is worked out, here as in "
        "training. Steps, rows, passes and chunks are numbered from 0."
    )


def _inspector(plan: Plan, reads: Reads) -> Markup:
    step = element(
        "p",
        element("label", f"Step, 0 to {grouped(plan.steps - 1)}", for_="step-number"),
        element("input", id="step-number", inputmode="numeric", autocomplete="off", value="0", maxlength=24),
        element("button", "Show", id="show-step", type="button"),
        element("button", "←", id="step-back", type="button", aria_label="Previous step"),
        element("button", "→", id="step-on", type="button", aria_label="Next step"),
    )
    document = element(
        "p",
        element("label", "Document, by its id", for_="document-id"),
        element("input", id="document-id", autocomplete="off", spellcheck="false", maxlength=40),
        element("button", "Which steps read it?", id="show-document", type="button"),
    )
    asked = [step, document if reads.borders else None]
    return element("div", *asked, element("div", id="inspected"), id="inspector", hidden="")


def _examples(plan: Plan, reads: Reads, fits: bool) -> Markup:
    listed = frozenset(plan.components[number].name for number in reads.borders) if fits else frozenset()
    groups = [_group(example, listed) for example in reads.examples]
    columns = ("Row", "Component", "Pass", "Chunk", "First token", "Tokens", "Documents", "Ids")
    return table(
        "What the first step of each phase reads", Mark.EXACT, columns, groups, frozenset({"Component", "Ids"})
    )


def _group(example: Example, listed: frozenset[str]) -> Group:
    """Return the rows of an example; ids of the components `listed` lead to the steps that read them."""
    explanation, rows = example.explanation, []
    for number, (place, row) in enumerate(zip(explanation.rows, example.rows, strict=False)):
        more = row.documents - len(row.ids)
        items: list[Child] = [_identity(identity, place.component in listed) for identity in row.ids]
        items += [f"and {grouped(more)} more"] if more else []
        cells: list[Child] = [str(number), shortened(place.component), *map(grouped, (place.epoch, place.chunk))]
        cells += [
            grouped(place.start),
            grouped(sum(stop - start for start, stop in place.spans)),
            grouped(row.documents),
        ]
        rows.append([*cells, element("span", _lines(items), class_="ids")])
    left = len(explanation.rows) - len(rows)
    title = f"step {grouped(explanation.step)}, phase {shortened(explanation.phase)}"
    return Group(title + (f": the first {len(rows)} of {grouped(len(explanation.rows))} rows" if left else ""), rows)


def _identity(identity: str, is_listed: bool) -> Markup:
    return element("a", code(identity), href=f"#document-{identity}") if is_listed else code(identity)


def _lines(items: Sequence[Child]) -> Markup:
    return join([part for item in items for part in (BREAK, item)][1:])


def _held(plan: Plan, reads: Reads, content: bytes) -> Markup:
    link = element("a", "plan.json", href=json_address(content), download="plan.json", id="steps-plan")
    parts: list[Child] = ["The plan itself is in this page: ", link, "."]
    if reads.borders:
        lines = [f"{_named(plan, n)},{start},{i}" for n, borders in reads.borders.items() for start, i in borders]
        address = csv_address("\n".join(["number,component,first token,id", *lines, ""]))
        documents = element("a", "documents.csv", href=address, download="documents.csv", id="steps-documents")
        parts += [f" So are the borders of {counted(len(lines), 'document')}: ", documents, "."]
    if reads.pieces:
        lines = [f"{_named(plan, n)},{c},{start},{size}" for n, all_ in reads.pieces.items() for c, start, size in all_]
        address = csv_address("\n".join(["number,component,chunk,first token,tokens", *lines, ""]))
        packed = element("a", "packed.csv", href=address, download="packed.csv", id="steps-packed")
        parts += [" How their documents are packed: ", packed, "."]
    missing = len(plan.components) - len(reads.borders)
    nouns = "list" if missing == 1 else "lists"
    return join(
        [
            element("p", *parts, class_="note"),
            left_out(missing, f"{nouns} of documents, of the largest {'component' if missing == 1 else 'components'},"),
            _keys(plan),
        ]
    )


def _named(plan: Plan, number: int) -> str:
    """Return number and name of a component as the first cells of a line."""
    return f"{number},{cell(listed_name(plan.components[number].name))}"


def _keys(plan: Plan) -> Markup:
    rows: list[list[Child]] = [
        [
            str(number),
            shortened(component.name),
            grouped(component.tokens),
            grouped(component.sequences),
            code(component_key(plan.seed, component.name).astype("<u8").tobytes().hex()),
        ]
        for number, component in enumerate(plan.components)
    ]
    columns = ("Number", "Component", "Tokens", "Chunks", "Key")
    built = table("Keys of the orders", Mark.EXACT, columns, rows, frozenset({"Component", "Key"}))
    note = paragraphs(
        "A key is the first 16 bytes of BLAKE3 of [“curate permutation 1”, seed, name] as JSON; docs/mixtures.md has "
        "the arithmetic that follows from it."
    )
    return element(
        "details", element("summary", "Keys from which each component’s order follows"), built, note, class_="plan-keys"
    )


def _too_large(plan: Plan) -> str:
    return (
        f"This plan has {counted(len(plan.components), 'component')} and {counted(len(plan.segments), 'phase')}: it is "
        "too large for the page to work steps out."
    )


def _commands() -> Markup:
    return element(
        "p",
        "With the store at hand, ",
        code("curate explain DIR --step N"),
        " names the documents of any step, and ",
        code("curate trace DIR --step N --row R --token T"),
        " leads a token back to its raw record.",
    )
