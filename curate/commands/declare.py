"""`curate declare` and `curate note`: what is expected of a run before it begins, what people note while it goes."""

from __future__ import annotations

import argparse
import getpass
from pathlib import Path

from curate.commands.numbers import positive
from curate.commands.results import last_result
from curate.commands.store_options import STORE_HELP, add_store_options, store_of
from curate.commands.tokens import opened
from curate.commands.training import add_branch, branch_config, branch_loader, check_run_folder, config_of


def add_declare(command: argparse.ArgumentParser) -> None:
    """Add the arguments of `declare`."""
    command.set_defaults(command=declare_run)
    command.add_argument("store", metavar="DIR", help=f"store with the plan that the run will follow: {STORE_HELP}")
    add_store_options(command)
    command.add_argument("--recipe", metavar="FOLDER", help="result in the store (default: the one that ran last)")
    command.add_argument("--run", type=Path, required=True, metavar="RUN", help="folder that curate train will get")
    command.add_argument("--hypothesis", required=True, metavar="TEXT", help="what the run shall show")
    command.add_argument("--steps", type=positive, metavar="N", help="updates, as for curate train (default: all)")
    command.add_argument("--width", type=int, default=64, metavar="W", help="width, as for curate train (default: 64)")
    command.add_argument("--experts", metavar="E,K", help="as for curate train")
    command.add_argument("--qk-norm", choices=["head"], help="as for curate train")
    command.add_argument(
        "--matrices", choices=["adamw", "muon"], default="adamw", help="as for curate train (default: adamw)"
    )
    command.add_argument("--strict", type=int, metavar="SHARDS", help="as for curate train")
    command.add_argument(
        "--compute", choices=["float32", "bfloat16"], default="float32", help="as for curate train (default: float32)"
    )
    add_branch(command)
    command.add_argument("--forecast", type=Path, metavar="FILE", help="forecast.json of curate ladder")
    command.add_argument(
        "--fails-if",
        action="append",
        default=[],
        metavar="CONDITION",
        help="what would count as failure, as 'loss > 3.1'; repeatable (default: a loss above the forecast's band)",
    )
    command.add_argument(
        "--healthy-if",
        action="append",
        default=[],
        metavar="CONDITION",
        help="what a healthy run meets, as 'spikes <= 3'; repeatable",
    )


def declare_run(options: argparse.Namespace) -> int:
    """Write the declaration and print its digest."""
    from mixtures import Loader
    from trainers.checkpoint import Checkpoints
    from trainers.config import flat
    from trainers.evidence.declaration import HEALTH, NAME, declare

    check_run_folder(options.run)
    store = store_of(options)
    _, plan, caches = opened(store, options.recipe or last_result(store))
    if options.parent is None:
        digest, config, parent = plan.digest, config_of(plan, options), {}
    else:
        digest = branch_loader(Loader(plan, caches.open()), options).digest
        config = branch_config(options)
        parent = {"step": options.at, "state": Checkpoints(options.parent).load(options.at).state}
    made = declare(
        options.run,
        options.hypothesis,
        digest,
        flat(config),
        forecast=options.forecast,
        health=tuple(options.healthy_if) or HEALTH,
        failure=tuple(options.fails_if),
        parent=parent,
    )
    for condition in made.failure:
        print(f"counts as failure: {condition}")
    for condition in made.health:
        print(f"healthy: {condition}")
    print(f"declared {made.digest}")
    print(options.run / NAME)
    return 0


def add_note(command: argparse.ArgumentParser) -> None:
    """Add the arguments of `note`."""
    command.set_defaults(command=note)
    command.add_argument("run", type=Path, metavar="RUN", help="folder of the run")
    command.add_argument("text", metavar="TEXT", help="what there is to say")
    command.add_argument("--step", type=int, required=True, metavar="S", help="step that it is about")
    command.add_argument("--author", metavar="NAME", help="who says it (default: the user's name)")


def note(options: argparse.Namespace) -> int:
    """Append a note to the diary of a run."""
    from trainers.evidence.diary import NAME, write_note

    write_note(options.run, options.step, options.text, options.author or _user())
    print(options.run / NAME)
    return 0


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container without a user's name
        return "unknown"
