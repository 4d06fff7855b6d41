"""`curate run`: make what is missing of a recipe's outputs, reuse what is there."""

from __future__ import annotations

import argparse
import sys
import time
from contextlib import redirect_stdout
from typing import TYPE_CHECKING

from curate.commands.quarantine import add_isolation_options, isolation_arguments
from curate.commands.recipe_options import add_recipe_options, outputs_of, recipe_file
from curate.commands.store_options import store_of

if TYPE_CHECKING:
    from curate.recipes.stages import Stage


def add_run(command: argparse.ArgumentParser) -> None:
    """Add the arguments of `run`."""
    command.set_defaults(command=run_recipe)
    add_recipe_options(command)
    command.add_argument(
        "--runner", choices=["ray", "local"], default="ray", help="ray: parallel tasks; local: one process"
    )
    command.add_argument(
        "--workers",
        type=int,
        metavar="N",
        help="CPUs for Ray (default: all); with --address, the most tasks at once (default: all there is room for)",
    )
    command.add_argument(
        "--address",
        metavar="ADDR",
        help="running Ray cluster that this machine is a node of: auto, or HOST:PORT (default: start a Ray)",
    )
    add_isolation_options(command)


def run_recipe(options: argparse.Namespace) -> int:
    """Run the recipe and print its outputs and their digest; return 0."""
    from curate.run import run

    loaded, outputs, modules = outputs_of(options)
    began = time.monotonic()
    with redirect_stdout(sys.stderr):  # Ray tells of lost workers on standard output, which is for results
        result = run(
            outputs,
            store_of(options),
            name=loaded.name,
            runner=options.runner,
            workers=options.workers,
            address=options.address,
            sample=options.sample,
            modules=modules,
            started=_started,
            recipe=recipe_file(options),
            **isolation_arguments(options),
        )
    for name, dataset in result.outputs.items():
        print(f"{name}: {dataset.rows:,} documents, content {dataset.content}")
    print(f"digest: {result.digest}")
    if empty := [name for name, dataset in result.outputs.items() if not dataset.rows]:
        more = "" if options.sample is None else ", or take a larger --sample"
        print(
            f"no documents in {', '.join(empty)}: curate look {options.store} shows what was dropped{more}",
            file=sys.stderr,
        )
    if gone := result.quarantined:
        said = ", ".join(f"{count:,} {reason}" for reason, count in gone.items())
        print(f"quarantined documents: {said}; curate quarantine {options.store} lists them", file=sys.stderr)
    print(f"{time.monotonic() - began:.1f} s; curate report {options.store} writes the page", file=sys.stderr)
    return 0


def _started(stage: Stage, there: bool) -> None:
    if there:
        print(f"{stage.name}: reused", file=sys.stderr)
