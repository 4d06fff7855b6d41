"""`curate publish` and `curate rebuild`: a mixture and its runs as static files, and what an outsider finds in them."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from curate.commands.results import last_result
from curate.commands.store_options import STORE_HELP, add_store_options, store_of
from curate.commands.tokens import opened
from curate.configuration import ConfigurationError


def add_publish(command: argparse.ArgumentParser) -> None:
    """Add the arguments of `publish`."""
    command.set_defaults(command=publish_result)
    command.add_argument("store", metavar="DIR", help=f"store with the result: {STORE_HELP}")
    add_store_options(command)
    command.add_argument("out", type=Path, metavar="OUT", help="new folder for the files")
    command.add_argument(
        "--recipe", required=True, metavar="FILE[:NAME]", help="the recipe that made it: its mixture is written down"
    )
    command.add_argument(
        "--set", action="append", default=[], metavar="K=V", help="a setting of the recipe; repeatable"
    )
    command.add_argument("--result", metavar="FOLDER", help="result in the store (default: the one that ran last)")
    command.add_argument(
        "--run",
        type=Path,
        action="append",
        default=[],
        metavar="RUN",
        help="training run, or a folder of runs, that failed or not; repeatable",
    )
    command.add_argument(
        "--with", dest="beside", type=Path, action="append", default=[], metavar="FILE", help="another file to publish"
    )


def publish_result(options: argparse.Namespace) -> int:
    """Write the files."""
    from curate.recipes.recipe import load_recipe, parse_pairs
    from mixtures import Mixture, PlanError
    from mixtures.published import mixture_json
    from viewers.publication import publish

    store = store_of(options)
    folder = options.result or last_result(store)
    result, plan, caches = opened(store, folder)
    loaded, module = load_recipe(options.recipe)
    mixture = loaded(**loaded.settings(parse_pairs(options.set))).mixture
    if not isinstance(mixture, Mixture):
        raise ConfigurationError(f"{options.recipe} gives no mixture to Outputs(…), and nothing else can be rebuilt")
    held = result.caches.get("validation")
    try:
        value = mixture_json(mixture, plan, caches.open(), {} if held is None else held.open())
    except PlanError as error:
        raise ConfigurationError(f"{error}: give the recipe and the settings that made the result") from None
    beside = [Path(str(module.__file__)), *options.beside]
    print(publish(store, folder, value, options.out, runs=options.run, recipe=beside))
    print(f"plan {plan.digest}")
    return 0


def add_rebuild(command: argparse.ArgumentParser) -> None:
    """Add the arguments of `rebuild`."""
    command.set_defaults(command=rebuild_published)
    command.add_argument("published", type=Path, metavar="DIR", help="folder that curate publish wrote")


def rebuild_published(options: argparse.Namespace) -> int:
    """Check the files, compile the mixture again, and name each run that failed; return 1 when something is wrong."""
    from viewers.publication import check
    from viewers.visible import plain

    found = check(options.published)
    for run in found.runs:
        state = f"FAILED, {run.outcome}" if run.has_failed else run.outcome
        print(f"run {plain(run.name)}: {state}: {plain(run.reason)}")
    if found.runs:
        print(f"{len(found.failed)} of {len(found.runs)} runs failed")
    for problem in found.problems:
        print(f"curate: {plain(problem)}", file=sys.stderr)
    if found.plan:
        print(f"plan {found.plan}, compiled again from {options.published / 'mixture' / 'mixture.json'}")
    return 1 if found.problems else 0
