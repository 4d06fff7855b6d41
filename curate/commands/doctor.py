"""`curate doctor`: whether this machine can run recipes, and what to do where it cannot."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from curate.commands.store_options import STORE_HELP, add_store_options, store_of
from curate.doctor import NAMES, examine
from curate.running.progress import say


def add_doctor(command: argparse.ArgumentParser) -> None:
    """Add the arguments of `doctor`."""
    command.set_defaults(command=show_findings)
    command.add_argument("--store", metavar="DIR", help=f"also a place for a store, as a run needs it: {STORE_HELP}")
    command.add_argument("--lock", type=Path, metavar="FILE", help="also whether packages are those of a lock file")
    command.add_argument("--skip", action="append", default=[], choices=NAMES, help="do not look at this; repeatable")
    command.add_argument("--json", action="store_true", help="print one JSON object a line")
    add_store_options(command)


def show_findings(options: argparse.Namespace) -> int:
    """Print what is found; return 1 when something keeps recipes from running."""
    store = None if options.store is None else store_of(options)
    states = []
    if "ray" not in options.skip:
        say("the last look starts a Ray: ten seconds, up to two minutes on a busy machine")
    for finding in examine(store, options.lock, options.skip):
        states.append(finding.state)
        print(json.dumps(asdict(finding)) if options.json else finding.line(), flush=True)
    if not options.json:
        print(f"{states.count('problem')} problems, {states.count('warning')} warnings")
    return 1 if "problem" in states else 0
