"""`curate report`: the page that shows what stayed, what went and why; its values; and which checks object."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from curate.commands.results import last_result
from curate.commands.store_options import STORE_HELP, add_store_options, store_of
from curate.configuration import ConfigurationError
from curate.store import Store


def add_report(command: argparse.ArgumentParser) -> None:
    """Add the arguments of `report`."""
    command.set_defaults(command=write)
    command.add_argument("store", metavar="DIR", help=f"store to report on: {STORE_HELP}")
    add_store_options(command)
    command.add_argument("--recipe", metavar="FOLDER", help="result in the store (default: the one that ran last)")
    command.add_argument("--run", type=Path, action="append", default=[], metavar="RUN", help="training run to show")
    command.add_argument(
        "--against",
        metavar="OTHER",
        help="write against.html, too: what differs from OTHER, a result of this store, a store, or a report.json",
    )
    command.add_argument(
        "--fail-on",
        metavar="ID[,ID…]",
        default="",
        help="exit with 1 unless these checks of the page pass; any: if any check fails. The page is written anyway",
    )


def write(options: argparse.Namespace) -> int:
    """Write the page and its values into the store; return 1 when a check that was asked for does not pass."""
    from curate.run import open_result
    from curate.running.progress import waiting
    from viewers.against import compare
    from viewers.atlas import FILE as MAP
    from viewers.atlas import map_parquet
    from viewers.croissant import FILE as CROISSANT
    from viewers.croissant import croissant_json, files_of
    from viewers.loading import load_report
    from viewers.report import compose
    from viewers.report_data import read_report_json
    from viewers.verdict import objections
    from viewers.visible import plain

    asked = [name.strip() for name in options.fail_on.split(",") if name.strip()]
    list(objections((), asked))  # a wrong id is told before anything is read
    store = store_of(options)
    with waiting("report: receipts, statistics and samples are read, and the page is composed"):
        report = load_report(store, options.recipe or last_result(store), options.run)
        made = compose(report)
    other = None if options.against is None else _other(options, store)
    result = open_result(store, options.recipe or last_result(store))
    pages = {"report.json": made.data, "report.html": made.page, CROISSANT: croissant_json(report, files_of(result))}
    pages[MAP] = map_parquet(report)
    if other is not None:
        here, there = (read_report_json(content, place) for content, place in ((made.data, "report.json"), other))
        pages["against.html"], pages["against.json"] = compare(here, there)
    for name, content in pages.items():
        store.put(name, content)
    print("\n".join(store.url(name) for name in pages if name.endswith(".html")))
    found = list(objections(made.checks, asked))
    for line in found:
        print(f"curate: check {plain(line)}", file=sys.stderr)
    return 1 if found else 0


def _other(options: argparse.Namespace, store: Store) -> tuple[bytes, str]:
    """Return the `report.json` of what the result is compared with, and where it comes from.

    Raises:
        ConfigurationError: nothing to compare with is there.
    """
    from curate.run import results_in
    from viewers.loading import load_report
    from viewers.report import compose

    named: str = options.against
    if named in results_in(store):
        return compose(load_report(store, named)).data, named
    if "://" not in named and Path(named).is_file():
        return Path(named).read_bytes(), named
    other = store_of(options, named)
    if results_in(other):
        return compose(load_report(other, last_result(other))).data, named
    if other.exists("report.json"):
        return other.read_bytes("report.json"), other.url("report.json")
    raise ConfigurationError(f"{named} is no result of {store}, no store with one and no report.json")
