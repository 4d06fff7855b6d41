"""`curate quarantine`, and the options of `curate run` that say what a document may cost and which are not tried."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path
from typing import Any, Final

from curate.accounting.quarantine import all_lists, parsed_lists
from curate.commands.store_options import STORE_HELP, add_store_options, store_of
from curate.isolation.limits import FACTOR, MEMORY, SECONDS

_MIB: Final = 1 << 20


def add_quarantine(command: argparse.ArgumentParser) -> None:
    """Add the arguments of `quarantine`."""
    command.set_defaults(command=show_quarantine)
    command.add_argument("store", metavar="DIR", help=f"store of the run: {STORE_HELP}")
    add_store_options(command)


def add_isolation_options(command: argparse.ArgumentParser) -> None:
    """Add the options of a run that isolates."""
    command.add_argument(
        "--quarantine",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="verdicts of another run, as `curate quarantine` prints them: their documents are not tried; repeatable",
    )
    command.add_argument(
        "--document-seconds",
        type=float,
        default=SECONDS,
        metavar="S",
        help=f"seconds after which a document is tried alone, with {FACTOR} times as many (default: {SECONDS:g})",
    )
    command.add_argument(
        "--document-memory",
        type=int,
        default=MEMORY // _MIB,
        metavar="MIB",
        help=f"MiB of memory likewise (default: {MEMORY // _MIB})",
    )


def isolation_arguments(options: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments of `curate.run.run` that those options stand for."""
    return {
        "quarantine": options.quarantine,
        "document_seconds": options.document_seconds,
        "document_memory": options.document_memory * _MIB,
    }


def show_quarantine(options: argparse.Namespace) -> int:
    """Print all quarantine lists of a store, and say on standard error how many verdicts of which kind they hold."""
    content = all_lists(store_of(options))
    sys.stdout.write(content.decode())
    found = [verdict for listed in parsed_lists(content).values() for verdict in listed.values()]
    counts = Counter(f"{verdict.transform} {verdict.reason}" for verdict in found)
    said = ", ".join(f"{count:,} {name}" for name, count in sorted(counts.items()))
    documents = "document" if len(found) == 1 else "documents"
    print(f"{len(found):,} {documents}: {said}" if found else "no document is quarantined", file=sys.stderr)
    return 0
