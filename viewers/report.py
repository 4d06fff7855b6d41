"""The composition report: one offline HTML file about a committed result, from manifests and statistics alone.

Invariants: the same store gives the same bytes (no clock, host or path); every string from data is text; no script, no
request; under 2 MB, because samples, sources and stages have budgets of bytes and tables a limit of rows, and what is
left out is counted. Memory and time follow the numbers of stages, sources and reasons, not of documents.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Final

from curate.store import Store
from viewers.loading import Report, load_report
from viewers.markup import Markup, element, join, stylesheet
from viewers.panels.contamination import contamination
from viewers.panels.duplicates import duplicates
from viewers.panels.funnel import funnel
from viewers.panels.hold_out import hold_out
from viewers.panels.lineage import lineage
from viewers.panels.loss import loss
from viewers.panels.mixture import mixture
from viewers.panels.panel import Panel
from viewers.panels.personal import personal
from viewers.panels.rights import rights
from viewers.panels.samples import samples
from viewers.panels.scores import scores
from viewers.panels.tokens import tokens
from viewers.panels.topics import topics
from viewers.panels.verdicts import verdicts
from viewers.tables import MEANINGS, Mark, mark
from viewers.visible import shortened

PANELS: Final[tuple[Callable[[Report], Panel | None], ...]] = (
    verdicts,
    rights,
    funnel,
    samples,
    duplicates,
    contamination,
    personal,
    scores,
    topics,
    hold_out,
    tokens,
    mixture,
    loss,
    lineage,
)
"""What the report shows, in the order of what decides trust; a panel is None where it has no subject."""

POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
"""Content security policy of the page: our own style and nothing else."""


def write_report(store: Store, result_folder: str, path: Path, *, runs: Sequence[Path] = ()) -> Path:
    """Write the composition report of the result in `result_folder` of `store` to `path`, and return `path`.

    The file is replaced whole or not at all. `runs` are folders of training runs whose losses it shows.

    Raises:
        StoreError: something is missing or damaged.
        CacheError: a token cache is damaged.
        PlanError: the plan is damaged.
        ConfigurationError: `result_folder` holds no recipe's result, or a folder of `runs` no training run.
        OSError: `path` cannot be written.
    """
    content = render(load_report(store, result_folder, runs)).encode()
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.unfinished")
    try:
        unfinished.write_bytes(content)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
    return path


def render(report: Report) -> str:
    """Return the page about `report`."""
    panels = [made for panel in PANELS if (made := panel(report)) is not None]
    title = f"{shortened(report.name)}: composition report"
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", name="referrer", content="no-referrer"),
        element("link", rel="icon", href="data:,"),
        element("title", title),
        stylesheet((files("viewers") / "report.css").read_text("utf-8")),
    )
    body = element(
        "body",
        element("a", "Skip to the report", href="#report", class_="skip"),
        _header(report),
        element("div", _contents(panels), element("main", *(p.markup() for p in panels), id="report"), class_="page"),
        _footer(),
    )
    return "<!DOCTYPE html>\n" + element("html", head, body, lang="en").html + "\n"


def _header(report: Report) -> Markup:
    return element(
        "header",
        element("p", "Composition report", class_="kicker"),
        element("h1", shortened(report.name)),
        element("p", "What went in, what stayed, what went and why.", class_="subtitle"),
        element("p", element("code", report.content), class_="digest"),
    )


def _contents(panels: Sequence[Panel]) -> Markup:
    items = []
    for panel in panels:
        below = [element("li", element("a", title, href=f"#{anchor}")) for anchor, title in panel.entries]
        link = element("a", panel.title, href=f"#{panel.anchor}")
        items.append(element("li", link, element("ol", *below) if below else None))
    marks = [element("li", mark(kind), " ", MEANINGS[kind]) for kind in Mark]
    marks.append(element("li", "Characters are Unicode code points."))
    return element(
        "nav",
        element("h2", "Contents", id="contents"),
        element("ol", *items),
        element("h2", "How to read a number"),
        element("ul", *marks, class_="marks"),
        aria_labelledby="contents",
    )


def _footer() -> Markup:
    sentence = (
        "Made by curate from manifests and statistics, without a second pass over the documents. This file loads "
        "nothing, runs no script and holds no links that lead out of it."
    )
    return element("footer", join([element("p", sentence)]), class_="colophon")
