"""The composition report: one offline HTML file about a committed result, from manifests and statistics alone.

Invariants: the same store gives the same bytes (no clock, host or path); every string from data is text; no request, no
script but our own, without which everything is there, too (`viewers.scripts`); every table as values too, in
`report.json` and behind a link; under 3 MB, because samples, sources and stages have budgets of bytes and tables a
limit of rows, and what is left out is counted; usable within a second, because what is far down waits
(`viewers.waiting`). Memory and time follow the numbers of stages, sources and reasons, not
of documents.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from curate.digests import digest_bytes
from curate.store import Store
from viewers.checks import check_report
from viewers.finder import finder, said
from viewers.frame import document, write_whole
from viewers.loading import Report, load_report
from viewers.markup import Child, Markup, element
from viewers.panels.ablation import ablation
from viewers.panels.concentration import concentration
from viewers.panels.contamination import contamination
from viewers.panels.datasheet import datasheet
from viewers.panels.distributions import distributions
from viewers.panels.duplicates import duplicates
from viewers.panels.funnel import funnel
from viewers.panels.hold_out import hold_out
from viewers.panels.languages import languages
from viewers.panels.lineage import lineage
from viewers.panels.loss import loss
from viewers.panels.mixture import mixture
from viewers.panels.panel import Panel
from viewers.panels.personal import personal
from viewers.panels.rights import rights
from viewers.panels.samples import samples
from viewers.panels.scores import scores
from viewers.panels.steps import steps
from viewers.panels.tokens import tokens
from viewers.panels.topics import topics
from viewers.panels.verdicts import verdicts
from viewers.panels.who_loses import who_loses
from viewers.panels.words import words
from viewers.report_data import report_json
from viewers.scripts import script
from viewers.tables import MEANINGS, Mark, code, mark
from viewers.verdict import Check
from viewers.visible import shortened
from viewers.waiting import AT_ONCE, sections

PANELS: Final[tuple[Callable[[Report], Panel | None], ...]] = (
    verdicts,
    rights,
    funnel,
    samples,
    contamination,
    mixture,
    who_loses,
    languages,
    duplicates,
    topics,
    concentration,
    scores,
    personal,
    distributions,
    hold_out,
    tokens,
    loss,
    ablation,
    steps,
    datasheet,
    lineage,
    words,
)
"""What the report shows, in the order of what decides trust; a panel is None where it has no subject."""


@dataclass(frozen=True, slots=True)
class Composed:
    """A page and what it says as values: the contents of `report.html` and `report.json`."""

    page: bytes
    data: bytes
    checks: tuple[Check, ...]


def write_report(store: Store, result_folder: str, path: Path, *, runs: Sequence[Path] = ()) -> Path:
    """Write the composition report of the result in `result_folder` of `store` to `path`, and return `path`.

    Beside it, with the suffix ".json", stands what it says as values. Each file is replaced whole or not at all. `runs`
    are folders of training runs whose losses it shows.

    Raises:
        StoreError: something is missing or damaged.
        CacheError: a token cache is damaged.
        PlanError: the plan is damaged.
        ConfigurationError: `result_folder` holds no recipe's result, or a folder of `runs` no training run.
        OSError: `path` cannot be written.
    """
    made = compose(load_report(store, result_folder, runs))
    write_whole(path.with_suffix(".json"), made.data)
    write_whole(path, made.page)
    return path


def compose(report: Report, at_once: int = AT_ONCE) -> Composed:
    """Return the page about `report` and its values; the page quotes the digest of these.

    What comes after the first `at_once` bytes of panels waits in the browser (`viewers.waiting`).
    """
    panels = [made for panel in PANELS if (made := panel(report)) is not None]
    checks = tuple(check_report(report))
    data = report_json(report, checks, panels)
    page = document(
        f"{shortened(report.name)}: composition report",
        element("a", "Skip to the report", href="#report", class_="skip"),
        _header(report),
        element("div", _contents(panels), element("main", *sections(panels, at_once), id="report"), class_="page"),
        _footer(digest_bytes(data)),
        said(),
        source=script(),
    )
    return Composed(page.encode(), data, checks)


def render(report: Report) -> str:
    """Return the page about `report`."""
    return compose(report).page.decode()


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
        finder(),
        element("h2", "Contents", id="contents", tabindex="-1"),
        element("ol", *items),
        element("h2", "How to read a number"),
        element("ul", *marks, class_="marks"),
        aria_labelledby="contents",
    )


def _footer(data: str) -> Markup:
    sentence = (
        "Made by curate from manifests and statistics, without a second pass over the documents. This file loads "
        "nothing and holds no links that lead out of it: each table is in its own link, as CSV. Its own script "
        "searches, sorts, copies and works out steps; all else is here without it."
    )
    beside: list[Child] = ["The same values stand beside this page in ", code("report.json"), ", BLAKE3 ", code(data)]
    return element("footer", element("p", sentence), element("p", *beside, "."), class_="colophon")
