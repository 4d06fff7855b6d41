"""`curate index`: a front page over many stores and reports."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from curate.commands.store_options import STORE_HELP, add_store_options, store_of


def add_index(command: argparse.ArgumentParser) -> None:
    """Add the arguments of `index`."""
    command.set_defaults(command=write)
    command.add_argument(
        "places", nargs="+", metavar="DIR", help=f"stores, or folders with a report.json: {STORE_HELP}"
    )
    command.add_argument(
        "--out", type=Path, default=Path("index.html"), metavar="FILE", help="page to write (default: index.html)"
    )
    add_store_options(command)


def write(options: argparse.Namespace) -> int:
    """Write the page; return 1 when something could not be read."""
    from viewers.index import write_index

    shelves = write_index([store_of(options, place) for place in options.places], options.out)
    print(options.out)
    damaged = [(shelf.place, what) for shelf in shelves for what, _ in shelf.unreadable]
    for place, what in damaged:
        print(f"curate: {what} of {place} cannot be read: the page says why", file=sys.stderr)
    return 1 if damaged else 0
