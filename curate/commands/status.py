"""`curate status`: how a run stands that goes on elsewhere, or that went on until its driver was killed."""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import Final

from curate.commands.store_options import STORE_HELP, add_store_options, store_of
from curate.upkeep.status import RunStatus, status_of

WATCH_SECONDS: Final = 5.0


def add_status(command: argparse.ArgumentParser) -> None:
    """Add the arguments of `status`."""
    command.set_defaults(command=show_status)
    command.add_argument("store", metavar="DIR", help=f"store of the run: {STORE_HELP}")
    command.add_argument("--run", metavar="RUN", help="run, as its folder below runs/ is called (default: the last)")
    command.add_argument("--json", action="store_true", help="print one JSON object")
    command.add_argument("--watch", action="store_true", help="again every few seconds, until the run ends")
    add_store_options(command)


def show_status(options: argparse.Namespace) -> int:
    """Print the status; return 0 when the run goes on or finished, 1 when it stopped or gives no sign of life."""
    store = store_of(options)
    while True:
        status = status_of(store, options.run)
        _print(status, options.json, options.watch)
        if not options.watch or status.state != "running":
            return 0 if status.state in ("running", "finished") else 1
        time.sleep(WATCH_SECONDS)


def _print(status: RunStatus, as_json: bool, again: bool) -> None:
    if as_json:
        print(json.dumps(status.to_json(), default=str), flush=True)
        return
    clear = "\x1b[2J\x1b[H" if again and sys.stdout.isatty() else ""
    print(clear + "\n".join(status.lines()), flush=True)
