"""Tokens: the caches of each output and cell, special tokens that stand in texts, and the tokenizers behind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from curate.accounting.statistics import LENGTH_BINS
from viewers.bars import Bar, Segment, chart
from viewers.budget import LONG_ROWS, ROWS
from viewers.loading import ProductView, Report
from viewers.markup import Child, Markup, element, join
from viewers.numbers import counted, fixed, grouped, rounded, share
from viewers.panels.panel import Panel
from viewers.tables import Group, Mark, code, facts, left_out, table
from viewers.tokens import CellView
from viewers.visible import shortened
from viewers.who import length_name

BARS = 24
"""Cells drawn; the table below has more."""


def tokens(report: Report) -> Panel | None:
    """Return the panel; None for a result without token caches."""
    if not report.cells:
        return None
    caches = [
        _fertility(report.cells),
        _caches(report.cells),
        *_used(report.cells),
        _whole_cells(report.cells),
        *_lengths(report.cells),
        _special(report.cells),
    ]
    body = join([*caches, *_tokenizers(report), _backends(report), _made(report)])
    lede = (
        "Look for a cell with few bytes per token: the tokenizer does not know its language or its format, and the "
        "same weight buys less text of it."
    )
    return Panel("tokens", "Tokens", lede, body)


def _fertility(cells: Sequence[CellView]) -> Markup | None:
    """Return how many bytes of text a token stands for, cell by cell of the first output."""
    mine = [cell for cell in cells if cell.output == cells[0].output and cell.description.tokens][:BARS]
    bars = [
        Bar(
            shortened(cell.cell, 60),
            (Segment(rounded(cell.bytes, cell.description.tokens, 3), "kept"),),
            _quotient(cell.bytes, cell.description.tokens, 2),
        )
        for cell in mine
    ]
    return chart(f"Bytes per token: {shortened(cells[0].output, 60)}", bars, ())


def _caches(cells: Sequence[CellView]) -> Markup:
    outputs = dict.fromkeys(cell.output for cell in cells)
    groups, shown = [], 0
    for output in outputs:
        mine = [cell for cell in cells if cell.output == output]
        rows = [_row(cell) for cell in mine[: max(LONG_ROWS - shown, 0)]]
        shown += len(rows)
        if rows:
            groups.append(Group(shortened(output), [*rows, _total(mine)] if len(mine) > 1 else rows))
    columns = ("Cell", "Documents", "Characters", "Tokens", "Tokens per document", "Bytes per token", "Unknown tokens")
    note = element("p", "Tokens with those that begin and end documents; bytes of the texts in UTF-8.", class_="note")
    built = table("Token caches", Mark.EXACT, columns, groups)
    return join([built, left_out(len(cells) - shown, "cells"), note])


def _used(cells: Sequence[CellView]) -> Iterator[Markup]:
    """Yield the ids that each cell uses, and its longest document; nothing for caches of which that was not counted."""
    outputs: dict[str, list[list[Child]]] = {}
    for cell in cells[:LONG_ROWS]:
        if cell.used is not None:
            identity, length = cell.longest[0] if cell.longest else ("–", 0)
            size = cell.description.vocabulary
            row: list[Child] = [shortened(cell.cell), grouped(cell.used), share(cell.used, size), code(identity)]
            outputs.setdefault(cell.output, []).append([*row, grouped(length)])
    if outputs:
        columns = ("Cell", "Ids in use", "of the vocabulary", "Longest document", "Tokens in it")
        groups = [Group(shortened(output), rows) for output, rows in outputs.items()]
        yield table("Ids in use and longest documents", Mark.EXACT, columns, groups, frozenset({"Longest document"}))


def _whole_cells(cells: Sequence[CellView]) -> Markup | None:
    """Return which cells are mostly one document."""
    lines = []
    for cell in cells:
        identity, length = cell.longest[0] if cell.longest else ("", 0)
        if 2 * length > cell.description.tokens:
            told = f"{share(length, cell.description.tokens)} of the tokens of {shortened(cell.cell)} ({cell.output})"
            lines.append(element("li", "One document, ", code(identity), f", is {told}."))
    if not lines:
        return None
    note = left_out(max(len(lines) - ROWS, 0), "cells")
    return element("div", element("ul", *lines[:ROWS]), note, class_="unchecked")


def _lengths(cells: Sequence[CellView]) -> Iterator[Markup]:
    """Yield the histogram of documents by tokens of each output."""
    for output in dict.fromkeys(cell.output for cell in cells):
        found = [cell.description.statistics.get("lengths", {}) for cell in cells if cell.output == output]
        bins = [sum(each.get(edge, 0) for each in found) for edge in LENGTH_BINS]
        filled = [place for place, documents in enumerate(bins) if documents]
        if filled:
            rows: list[list[Child]] = [
                [length_name(LENGTH_BINS[place], "tokens"), grouped(bins[place]), share(bins[place], sum(bins))]
                for place in range(filled[0], filled[-1] + 1)
            ]
            columns = ("Length", "Documents", "of all")
            yield table(f"Documents of {shortened(output)} by tokens", Mark.EXACT, columns, rows)


def _row(cell: CellView) -> list[Child]:
    about = cell.description
    return _numbers(cell.cell, about.documents, cell.characters, about.tokens, cell.bytes, cell.unknown)


def _total(cells: Sequence[CellView]) -> list[Child]:
    return _numbers(
        "all cells",
        sum(cell.description.documents for cell in cells),
        sum(cell.characters for cell in cells),
        sum(cell.description.tokens for cell in cells),
        sum(cell.bytes for cell in cells),
        sum(cell.unknown for cell in cells),
    )


def _numbers(name: str, documents: int, characters: int, made: int, size: int, unknown: int) -> list[Child]:
    return [
        shortened(name),
        grouped(documents),
        grouped(characters),
        grouped(made),
        _quotient(made, documents, 1),
        _quotient(size, made, 3),
        grouped(unknown),
    ]


def _quotient(numerator: int, denominator: int, places: int) -> str:
    return fixed(rounded(numerator, denominator, places), places) if denominator else "–"


def _special(cells: Sequence[CellView]) -> Markup:
    found = [(cell, token, hits) for cell in cells for token, hits in sorted(cell.special_text.items())]
    if not found:
        sentence = "No text of these caches holds the name of a special token."
        return element("p", sentence, class_="note")
    rows: list[list[Child]] = [
        [
            shortened(token),
            f"{shortened(cell.output)}, {shortened(cell.cell)}",
            grouped(hits["documents"]),
            grouped(hits["hits"]),
        ]
        for cell, token, hits in found[:ROWS]
    ]
    title = "Special tokens that stand in texts, encoded as text"
    columns = ("Special token", "Cache", "Documents", "Hits")
    built = table(title, Mark.EXACT, columns, rows, frozenset({"Cache"}))
    return join([built, left_out(len(found) - len(rows), "rows")])


def _tokenizers(report: Report) -> list[Markup]:
    cells = {cell.description.tokenizer: cell for cell in report.cells}
    trained = {str(product.manifest["content"]): product for product in report.products if product.kind == "tokenizer"}
    return [_tokenizer(cells[digest], trained.get(digest)) for digest in list(cells)[:ROWS]]


def _tokenizer(cell: CellView, trained: ProductView | None) -> Markup:
    about = cell.description
    marks = [f"begins with {about.bos_text!r}" if about.bos_text is not None else "has no token at its beginning"]
    marks.append(f"ends with {about.eos_text!r}" if about.eos_text is not None else "has none at its end")
    pairs: list[tuple[str, Child]] = [
        ("tokenizer.json", code(about.tokenizer)),
        ("Vocabulary", counted(about.vocabulary, "id")),
        ("A document", shortened(", ".join(marks), 400)),
        ("Library", shortened(about.library)),
        ("Stored as", about.dtype),
    ]
    pairs += _card(trained.manifest["card"]) if trained is not None else [("Trained", "elsewhere: taken as a file")]
    name = shortened(trained.name) if trained is not None else "Tokenizer"
    return element("div", element("h3", name), facts(pairs), class_="tokenizer")


def _card(card: dict[str, Any]) -> list[tuple[str, Child]]:
    special = ", ".join(shortened(token) for token in card["special"][:ROWS])
    return [
        ("Trained on", f"{counted(card['documents'], 'document')} of this result"),
        ("Their content", code(card["dataset"])),
        ("Multiset of texts", code(card["texts"]["multiset"]["sum"]) if card.get("texts") else "none"),
        ("Vocabulary asked", grouped(card["vocab_size"])),
        ("Special tokens", special or "none"),
    ]


def _backends(report: Report) -> Markup | None:
    """Return which library encoded each stage of caches, and in how many compared documents it differed."""
    lines = []
    for product in report.products:
        backend = product.manifest.get("backend")
        if product.kind == "caches" and backend:
            compared = backend["compared"]
            told = f"{shortened(product.name)}: encoded by {shortened(backend['used'])}"
            if compared.get("documents"):  # none where `tokenizers` encoded: nothing to compare with
                told += (
                    f"; {counted(compared['documents'], 'document')} compared with the tokenizers library, "
                    f"{grouped(compared['differing'])} with other ids"
                )
            told += f". {shortened(backend['why'], 400)}" if backend["why"] else "."
            lines.append(element("li", told))
    if not lines:
        return None
    note = left_out(max(len(lines) - ROWS, 0), "stages")
    return join([element("h3", "What encoded"), element("ul", *lines[:ROWS]), note])


def _made(report: Report) -> Markup:
    rows: list[list[Child]] = [
        [
            shortened(product.name),
            counted(len(product.manifest["cells"]), "cache") if product.kind == "caches" else product.kind,
            ", ".join(shortened(entry["name"], 60) for entry in product.manifest["inputs"]) or "files",
            code(product.key),
            code(product.manifest["content"]),
        ]
        for product in report.products[:ROWS]
    ]
    columns = ("Stage", "What", "Made from", "Key", "Content digest")
    built = table("Tokenizers, models and caches", Mark.EXACT, columns, rows, frozenset(columns))
    return join([built, left_out(len(report.products) - len(rows), "stages")])
