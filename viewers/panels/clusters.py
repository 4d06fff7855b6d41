"""Parts of the panel on duplicates: who goes for whom, and clusters."""

from __future__ import annotations

from typing import Final

from viewers.bars import Bar, Segment, chart
from viewers.clusters import between, clusters_of
from viewers.loading import StageView
from viewers.markup import Child, Markup, element, join
from viewers.numbers import counted, grouped, share
from viewers.tables import Mark, code, left_out, table
from viewers.visible import shortened

MATRIX: Final = 24
"""Sources on each side of the matrix."""

LARGEST: Final = 10
"""Clusters that are named."""

SIZE_COLUMNS: Final = ("Documents in it", "Clusters", "of all", "Documents")


def matrix(stage: StageView) -> Markup | None:
    """Return the documents of each source that go for one of each source."""
    found = between(stage)
    if not found:
        return None
    sums: dict[str, int] = {}
    for pair, documents in found.items():
        for source in set(pair):
            sums[source] = sums.get(source, 0) + documents
    order = sorted(sums, key=lambda source: (-sums[source], source))
    shown = order[:MATRIX]
    rows: list[list[Child]] = [
        [shortened(goes), *(grouped(found[goes, stays]) if (goes, stays) in found else "–" for stays in shown)]
        for goes in shown
    ]
    columns = ("Dropped, of", *(f"kept one is of {shortened(stays, 40)}" for stays in shown))
    note = (
        "Rows are the sources of documents that were dropped as duplicates, columns the sources of the documents kept "
        "instead; the same name twice means duplicates within a source."
    )
    built = table(f"Which sources duplicates are of, in {stage.title}", Mark.EXACT, columns, rows)
    return join([element("p", note, class_="note"), built, left_out(len(order) - len(shown), "sources")])


def clusters(stage: StageView) -> Markup | None:
    """Return how large clusters are, and the largest ones."""
    found = clusters_of(stage)
    if found is None:
        return None
    kind = Mark.EXACT if found.is_all else Mark.SAMPLED
    classes = list(found.classes())
    bars = [Bar(name, (Segment(number, "dropped"),), counted(number, "cluster")) for name, number, _ in classes]
    sizes: list[list[Child]] = [
        [name, grouped(number), share(number, len(found.sizes)), grouped(documents)]
        for name, number, documents in classes
    ]
    largest: list[list[Child]] = [[code(identity), grouped(size)] for identity, size in found.largest[:LARGEST]]
    which = "all clusters" if found.is_all else f"the {grouped(len(found.sizes))} clusters of survivors with lowest ids"
    return join(
        [
            chart(f"Clusters by size, of {which}", bars, ()),
            table(f"Sizes of clusters in {stage.title}", kind, SIZE_COLUMNS, sizes),
            table(f"Largest clusters in {stage.title}", kind, ("Survivor", "Documents"), largest),
        ]
    )
