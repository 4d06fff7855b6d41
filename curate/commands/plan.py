"""`curate plan`: print what a run would do, in words or as JSON."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from curate.commands.recipe_options import add_recipe_options, outputs_of
from curate.commands.store_options import store_of

if TYPE_CHECKING:
    from curate.recipes.recipe import Outputs
    from curate.store import Store


def add_plan(command: argparse.ArgumentParser) -> None:
    """Add the arguments of `plan`."""
    command.set_defaults(command=show_plan)
    add_recipe_options(command)
    command.add_argument(
        "--cost", action="store_true", help="estimate time, CPU and disk from earlier runs of the same kind of stage"
    )
    command.add_argument(
        "--workers", type=int, default=os.cpu_count() or 1, metavar="N", help="CPUs to estimate for (default: all)"
    )
    command.add_argument("--json", action="store_true", help="print JSON: all of it, with the keys of shards to make")


def show_plan(options: argparse.Namespace) -> int:
    """Print what a run would do; return 0."""
    _, outputs, _ = outputs_of(options)
    print_plan(options, outputs, store_of(options), print)
    return 0


def print_plan(options: argparse.Namespace, outputs: Outputs, store: Store, show: Callable[[str], None]) -> None:
    """Plan, and give the lines to `show`."""
    from curate.planning.plan import plan
    from curate.running.progress import PREPARING, waiting

    with waiting(PREPARING):
        made = plan(outputs, store, sample=options.sample, workers=options.workers if options.cost else None)
    if options.json:
        show(json.dumps(made.to_json(), indent=1))
        return
    show(f"{outputs}\n")
    show(str(made))
