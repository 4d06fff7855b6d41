"""A front page over many results: their names, digests, sizes and failed checks, and the runs that did not finish.

Training runs in the places stand on it, too: what each came to, failures first (`viewers.run_index`). Results are read
from the `report.json` of a store where that shows the result, else from its manifests and statistics. Invariants: as on
a report, every text is escaped, nothing is loaded, no script runs; the only links lead to report pages, relative to
where the page stands. The same stores give the same bytes. What cannot be read is listed with the reason.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from curate.caches.errors import CacheError
from curate.configuration import ConfigurationError
from curate.formats import FormatError
from curate.run import results_in
from curate.running.journal import finished_recipes, runs_in
from curate.store import MissingError, Store, StoreError
from curate.upkeep.status import RunStatus, status_of
from mixtures.errors import PlanError
from trainers.evidence.listing import ListedRun, list_runs
from viewers.checks import check_report
from viewers.finder import said
from viewers.frame import document, write_whole
from viewers.loading import load_report
from viewers.markup import Child, Markup, element, join
from viewers.numbers import counted, grouped
from viewers.panels.panel import Panel
from viewers.report_data import FILE, about, failed_checks, read_report_json
from viewers.run_index import runs_panel
from viewers.scripts import script
from viewers.tables import Mark, code, left_out, table
from viewers.visible import shortened

MOST: Final = 1000
"""Rows of each table."""

PAGE: Final = "report.html"


@dataclass(frozen=True, slots=True)
class Entry:
    """A result: what `report.json` says of it; `page` is the path of its report page, None where there is none."""

    place: str
    folder: str
    data: Mapping[str, Any]
    page: Path | None


@dataclass(frozen=True, slots=True)
class Shelf:
    """What lies at one place: results, last finished first, runs that did not finish, what cannot be read, training."""

    place: str
    entries: tuple[Entry, ...] = ()
    unfinished: tuple[RunStatus, ...] = ()
    unreadable: tuple[tuple[str, str], ...] = ()
    training: tuple[ListedRun, ...] = ()


def write_index(places: Sequence[Store], path: Path) -> list[Shelf]:
    """Write the front page over `places` (stores, or folders with a `report.json`) to `path`; return what it shows.

    Raises:
        ConfigurationError: nothing is at one of `places`.
        OSError: `path` cannot be written.
    """
    shelves = [shelf_of(place, path.parent) for place in places]
    write_whole(path, render_index(shelves, path.parent).encode())
    return shelves


def shelf_of(store: Store, folder: Path) -> Shelf:
    """Return what lies at a place; a local one is named as seen from `folder`.

    Raises:
        ConfigurationError: nothing does: neither a result nor a run nor a `report.json`.
    """
    place = str(store) if store.is_remote else os.path.relpath(store.root.resolve(), folder.resolve())
    training = () if store.is_remote else tuple(list_runs(store.root))
    written, problem = _written(store)
    try:
        folders = _folders(store)
    except (StoreError, FormatError) as error:  # a manifest that nobody can read says nothing of the others
        return Shelf(place, (), (), (("store", str(error)),), training)
    runs = tuple(run for name in runs_in(store) if (run := status_of(store, name, now=0)).state != "finished")
    entries, unreadable = [], [(FILE, problem)] if problem else []
    for result in folders:
        try:
            data = _data(store, result, written)
        except (StoreError, FormatError, CacheError, PlanError) as error:
            unreadable.append((result, str(error)))
        else:
            entries.append(Entry(place, result, data, _page(store) if data is written else None))
    if not folders and written is not None:
        entries.append(Entry(place, "", written, _page(store)))
    if not (entries or runs or unreadable or training):
        raise ConfigurationError(f"{store} holds no result, no run and no {FILE}: give stores or folders with reports")
    return Shelf(place, tuple(entries), runs, tuple(unreadable), training)


def _written(store: Store) -> tuple[Mapping[str, Any] | None, str]:
    """Return the values beside the page of a store, and what is wrong with them."""
    try:
        return read_report_json(store.read_bytes(FILE), store.url(FILE)), ""
    except (FileNotFoundError, MissingError):
        return None, ""
    except (StoreError, FormatError) as error:
        return None, str(error)


def _folders(store: Store) -> list[str]:
    there = results_in(store)
    last = {event["folder"]: number for number, event in enumerate(finished_recipes(store))}
    return sorted(there, key=lambda folder: (-last.get(folder, -1), folder))


def _data(store: Store, folder: str, written: Mapping[str, Any] | None) -> Mapping[str, Any]:
    if written is not None and written["manifest"] == store.read_json(f"{folder}/manifest.json")["digest"]:
        return written
    report = load_report(store, folder)
    return about(report, check_report(report))


def _page(store: Store) -> Path | None:
    return None if store.is_remote or not store.exists(PAGE) else store.root / PAGE


def render_index(shelves: Sequence[Shelf], folder: Path) -> str:
    """Return the front page, to stand in `folder`."""
    number, training = sum(len(shelf.entries) for shelf in shelves), sum(len(shelf.training) for shelf in shelves)
    trained = runs_panel({shelf.place: shelf.training for shelf in shelves})
    results = _results(shelves, folder) if number or trained is None else None
    panels = [results, trained, _unfinished(shelves), _unreadable(shelves)]
    shown = [panel.markup() for panel in panels if panel is not None]
    header = element(
        "header",
        element("p", "Composition reports", class_="kicker"),
        element("h1", counted(number, "result") if number or not training else counted(training, "training run")),
        element("p", f"From {counted(len(shelves), 'place')}: what each holds, and what failed.", class_="subtitle"),
    )
    footer = "Made by curate from what the stores say of themselves. This file loads nothing; its own script sorts."
    return document(
        "Composition reports",
        header,
        element("main", *shown, class_="index"),
        element("footer", element("p", footer), class_="colophon"),
        said(),
        source=script(),
    )


def _results(shelves: Sequence[Shelf], folder: Path) -> Panel:
    entries = [entry for shelf in shelves for entry in shelf.entries]
    rows = [_row(entry, folder) for entry in entries[:MOST]]
    columns = ("Result", "Documents", "Tokens", "Sources", "Failed checks", "Warnings", "Content digest", "Place")
    words = frozenset({"Failed checks", "Content digest", "Place"})
    body = join([table("Results", Mark.EXACT, columns, rows, words), left_out(len(entries) - len(rows), "results")])
    lede = "Look for failed checks: such a result must not be used. A name leads to its report, where there is one."
    return Panel("results", "Results", lede, body)


def _row(entry: Entry, folder: Path) -> list[Child]:
    data, totals = entry.data, entry.data["totals"]
    failed = failed_checks(data)
    warned = sum(check["verdict"] == "warn" for check in data["checks"])
    name = shortened(data["name"])
    return [
        name if entry.page is None else element("a", name or "report", href=_relative(entry.page, folder)),
        grouped(totals["documents"]),
        grouped(totals["tokens"]) if totals["tokens"] else "–",
        grouped(totals["sources"]),
        element("span", ", ".join(failed), class_="verdict fail") if failed else "none",
        grouped(warned),
        code(data["content"][:16]),
        shortened(entry.place),
    ]


def _relative(page: Path, folder: Path) -> str:
    parts = Path(os.path.relpath(page.resolve(), folder.resolve())).parts
    return "/".join(quote(part, safe="") for part in parts)


def _unfinished(shelves: Sequence[Shelf]) -> Panel | None:
    found = [(shelf.place, run) for shelf in shelves for run in shelf.unfinished]
    if not found:
        return None
    rows: list[list[Child]] = [
        [code(shortened(run.run)), _stopped_at(run), _why(run), shortened(place)] for place, run in found[:MOST]
    ]
    columns = ("Run", "Last at", "Why it ended", "Place")
    built = table("Runs that did not finish", Mark.EXACT, columns, rows, frozenset(columns))
    body = join([built, left_out(len(found) - len(rows), "runs")])
    lede = "Look for an error that comes again: what a run finished is kept, and the same command goes on from there."
    return Panel("unfinished", "Runs that did not finish", lede, body)


def _stopped_at(run: RunStatus) -> str:
    return shortened(list(run.jobs)[-1]) if run.jobs else "–"


def _why(run: RunStatus) -> str:
    return shortened(run.error or "its journal has no end: killed, or still running", 400)


def _unreadable(shelves: Sequence[Shelf]) -> Panel | None:
    rows: list[list[Child]] = [list(row) for row in _problems(shelves)]
    if not rows:
        return None
    columns = ("What", "Why", "Place")
    built = table("What cannot be read", Mark.EXACT, columns, rows[:MOST], frozenset(columns))
    lede = "Nothing is said of these: they are damaged, or of another version."
    return Panel("unreadable", "Not readable", lede, built)


def _problems(shelves: Sequence[Shelf]) -> Iterator[tuple[Markup, str, str]]:
    for shelf in shelves:
        for what, why in shelf.unreadable:
            yield code(shortened(what)), shortened(why, 400), shortened(shelf.place)
