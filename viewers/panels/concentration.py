"""Concentration: the largest hosts, how unequal hosts are, and how far the host alone says the score."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from viewers.bars import Bar, Segment, chart
from viewers.budget import ROWS
from viewers.concentration import Concentration, Largest, concentrations
from viewers.hosts import hosts_of
from viewers.intervals import MILLION
from viewers.loading import Report
from viewers.markup import Child, Markup, element, join
from viewers.numbers import counted, fixed, grouped, rounded, share
from viewers.panels.panel import Panel
from viewers.tables import Mark, left_out, mark, table
from viewers.visible import shortened

TOP: Final = 20
"""Hosts that are shown."""

NOTE: Final = (
    "Gini coefficient: 0 if every host has as much, near 1 if one has nearly all. Variance of scores explained by host "
    "(ε², which takes off what hosts of few documents explain by chance): 0 if the host says nothing of the score, 1 "
    "if it says all."
)


def concentration(report: Report) -> Panel | None:
    """Return the panel; None for a result whose documents have no addresses."""
    found = concentrations(report)
    if not found:
        return None
    lede = (
        "Look for one host with more than a few per cent of all documents, and for a score that the host explains: "
        "then the score knows sites, not texts, and a threshold picks publishers."
    )
    parts = [part for one in found[:ROWS] for part in _one(one)]
    body = join([_unequal(found[:ROWS]), element("p", NOTE, class_="note"), *parts])
    return Panel("concentration", "Concentration", lede, join([body, left_out(max(len(found) - ROWS, 0), "datasets")]))


def _kind(one: Concentration) -> Mark:
    return Mark.EXACT if one.is_exact else Mark.SAMPLED


def _unequal(found: list[Concentration]) -> Markup:
    rows: list[list[Child]] = []
    for one in found:
        hosts = hosts_of(one.stage)
        number = grouped(hosts.number if hosts else one.hosts)
        told = number if one.is_exact else join(["≈ ", number, " ", mark(Mark.SKETCHED)])
        scores = [
            f"{shortened(score.column, 40)} {'–' if score.share is None else _decimal(score.share)}"
            for score in one.explained
        ]
        cells: list[Child] = [told, _decimal(one.gini), _decimal(one.gini_characters), ", ".join(scores) or "no scores"]
        rows.append([shortened(one.stage.name), *cells])
    columns = ("Dataset", "Hosts", "Gini of documents", "Gini of characters", "Variance explained by host")
    kind = Mark.EXACT if all(one.is_exact for one in found) else Mark.SAMPLED
    return table("How unequal hosts are", kind, columns, rows, frozenset({"Variance explained by host"}))


def _one(one: Concentration) -> Iterator[Markup | None]:
    name = shortened(one.stage.name)
    top = one.largest[:TOP]
    if not top:
        return
    bars = [
        Bar(shortened(host.host, 60), (Segment(host.documents, "kept"),), share(host.documents, host.of))
        for host in top[: TOP // 2]
    ]
    documents = one.stage.manifest["rows"]
    if one.is_exact and one.documents < documents:
        yield element(
            "p",
            f"Shares are of the {counted(one.documents, 'document')} with a host, {share(one.documents, documents)} of "
            f"all {grouped(documents)}; of all, {shortened(top[0].host, 60)} has {share(top[0].documents, documents)}.",
        )
    yield chart(f"Largest hosts of {name}, by documents", bars, ())
    yield table(f"Largest hosts of {name}", _kind(one), _columns(one), [_row(host) for host in top])
    rest = sum(host.documents for host in one.largest[:TOP])
    of = top[0].of
    if one.hosts > len(top) and one.is_exact:
        yield element("p", f"The table has {grouped(len(top))} of {counted(one.hosts, 'host')}.", class_="note")
    yield element(
        "p",
        f"These {grouped(len(top))} have {share(rest, of)} of "
        + (f"{grouped(of)} documents." if one.is_exact else f"the {grouped(of)} documents with the lowest ids."),
        class_="note",
    )


def _columns(one: Concentration) -> tuple[str, ...]:
    if one.is_exact:
        return "Host", "Documents", "Share"
    return "Host", "Documents of the sample", "Share", "95 % interval"


def _row(host: Largest) -> list[Child]:
    row: list[Child] = [shortened(host.host), grouped(host.documents), share(host.documents, host.of)]
    if host.interval is None:
        return row
    low, high = (fixed(rounded(end, MILLION // 100, 1), 1) for end in host.interval)
    return [*row, f"{low} – {high} %"]


def _decimal(millionths: int) -> str:
    return fixed(rounded(millionths, MILLION, 3), 3)
