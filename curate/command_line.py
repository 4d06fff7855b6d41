"""The command line. Each command is a library call; this module parses, prints and picks the exit status.

Exit status: 0 fine, 1 a check failed, 2 the command or the recipe is wrong and nothing was done, 3 the run failed, 130
stopped by Ctrl-C (SIGINT), 143 stopped by SIGTERM.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import types
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from typing import Final

from curate.commands.audit import add_audit
from curate.commands.caches import add_caches, add_deep, verification
from curate.commands.card import add_card
from curate.commands.contamination import add_contamination
from curate.commands.curve import add_curve
from curate.commands.duplicates import add_duplicates
from curate.commands.index import add_index
from curate.commands.listing import add_list
from curate.commands.plan import add_plan_options, print_plan
from curate.commands.plan_diff import add_diff
from curate.commands.quarantine import add_isolation_options, add_quarantine, isolation_arguments
from curate.commands.report import add_report
from curate.commands.status import add_status
from curate.commands.store import add_store_commands
from curate.commands.store_options import STORE_HELP, add_store_options, store_of
from curate.commands.templates import add_templates
from curate.commands.tokens import add_commands
from curate.configuration import ConfigurationError
from curate.recipes.recipe import Outputs, Recipe, load_recipe, parse_pairs
from curate.recipes.stages import Stage
from curate.running.jobs import TaskError
from curate.running.journal import finished_recipes
from curate.running.stopping import stoppable
from curate.store import Store, StoreError
from transforms.outcome import SchemaError

OK, CHECK_FAILED, USAGE, RUN_FAILED = 0, 1, 2, 3

EPILOG: Final = """\
A recipe is a Python function decorated with @recipe that returns Outputs(…). See what a run would do, run it,
look at what came out, check every byte of it, and write the page that shows it:

  curate plan   recipe.py --store STORE --set crawl=DIR
  curate run    recipe.py --store STORE --set crawl=DIR
  curate look   STORE
  curate verify STORE
  curate report STORE

Exit status: 0 fine, 1 a check failed, 2 the command or the recipe is wrong (nothing was done), 3 the run failed
(what was finished is kept, and the same command goes on from there), 130 stopped by Ctrl-C, 143 by SIGTERM (the same).
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    options = parser().parse_args(arguments)
    command: Callable[[argparse.Namespace], int] = options.command
    with stoppable() as stop:
        try:
            return command(options)
        except BaseException as error:
            if stop.signal is None and not isinstance(error, KeyboardInterrupt):
                return _status_of(error)
            print("curate: stopped. What was finished is kept: the same command goes on from there", file=sys.stderr)
            return stop.status


def _status_of(error: BaseException) -> int:
    """Say what went wrong and return the exit status; an error that nobody foresaw is raised again."""
    if isinstance(error, (ConfigurationError, SchemaError)):
        print(f"curate: {error}", file=sys.stderr)
        return USAGE
    if isinstance(error, BrokenPipeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    if isinstance(error, (TaskError, StoreError, RuntimeError, OSError)):
        print(f"curate: {type(error).__name__}: {error}", file=sys.stderr)
        return RUN_FAILED
    raise error


def parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    top = argparse.ArgumentParser(
        prog="curate",
        description="Make training data for language models: every document, choice and failure accounted for.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = top.add_subparsers(required=True, metavar="COMMAND")
    _add_run(commands)
    _add_plan(commands)
    add_list(commands, _add)
    add_status(commands, _add)
    verify = _add(commands, "verify", _verify, "check every byte and every count of a store")
    verify.add_argument("store", metavar="DIR", help=f"store to check: {STORE_HELP}")
    add_deep(verify)
    add_store_options(verify)
    look = _add(commands, "look", _look, "show a few records of a file, dataset or store, raw beside extracted")
    look.add_argument("path", metavar="PATH", help=".warc(.gz), .jsonl(.gz, .zst), .parquet, text, or store")
    add_store_options(look)
    look.add_argument("--count", type=int, default=3, metavar="N", help="records to show (default: 3)")
    add_report(commands, _add, last_result)
    add_index(commands, _add)
    add_audit(commands, _add)
    add_commands(commands, _add, last_result)
    add_diff(commands, _add, last_result)
    add_store_commands(commands, _add)
    add_quarantine(commands, _add)
    add_curve(commands, _add, last_result)
    add_duplicates(commands, _add, last_result)
    add_contamination(commands, _add, last_result)
    add_card(commands, _add)
    add_caches(commands, _add)
    add_templates(commands, _add, last_result)
    fetch = _add(commands, "fetch", _fetch, "fetch a pinned model into the user's data folder")
    fetch.add_argument("what", choices=["lid"], help="lid: the fastText language model lid.176.ftz (CC-BY-SA-3.0)")
    return top


def _add(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    command: Callable[[argparse.Namespace], int],
    text: str,
) -> argparse.ArgumentParser:
    added = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
    added.set_defaults(command=command)
    return added


def _add_recipe_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("recipe", metavar="FILE[:NAME]", help="Python file with the recipe; NAME where it has several")
    command.add_argument(
        "--store", required=True, metavar="DIR", help=f"store to write, made if it is not there: {STORE_HELP}"
    )
    add_store_options(command)
    command.add_argument(
        "--set", action="append", default=[], metavar="K=V", help="a setting of the recipe; repeatable"
    )
    command.add_argument("--sample", metavar="F", help="run on this share of the documents, as 0.01, chosen by id")


def _add_run(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = _add(commands, "run", _run, "run a recipe: make what is missing, reuse what is there")
    _add_recipe_options(command)
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


def _add_plan(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = _add(commands, "plan", _plan, "say what a run would do, why, and what it would reuse; reads only")
    _add_recipe_options(command)
    add_plan_options(command)


def _outputs(options: argparse.Namespace) -> tuple[Recipe, Outputs, list[types.ModuleType]]:
    loaded, module = load_recipe(options.recipe)
    return loaded, loaded(**loaded.settings(parse_pairs(options.set))), [module]


def _run(options: argparse.Namespace) -> int:
    from curate.run import run

    loaded, outputs, modules = _outputs(options)
    began = time.monotonic()

    def started(stage: Stage, there: bool) -> None:
        if there:
            print(f"{stage.name}: reused", file=sys.stderr)

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
            started=started,
            **isolation_arguments(options),
        )
    for name, dataset in result.outputs.items():
        print(f"{name}: {dataset.rows:,} documents, content {dataset.content}")
    print(f"digest: {result.digest}")
    if gone := result.quarantined:
        said = ", ".join(f"{count:,} {reason}" for reason, count in gone.items())
        print(f"quarantined documents: {said}; curate quarantine {options.store} lists them", file=sys.stderr)
    print(f"{time.monotonic() - began:.1f} s; curate report {options.store} writes the page", file=sys.stderr)
    return OK


def _plan(options: argparse.Namespace) -> int:
    _, outputs, _ = _outputs(options)
    print_plan(options, outputs, store_of(options), print)
    return OK


def _verify(options: argparse.Namespace) -> int:
    found = verification(options)
    for note in found.notes:
        print(f"note: {note}")
    for problem in found.problems:
        print(f"PROBLEM: {problem}")
    print(f"{found.files:,} files, {found.bytes:,} bytes checked: {len(found.problems)} problems")
    return OK if found.ok else CHECK_FAILED


def _look(options: argparse.Namespace) -> int:
    from curate.commands.look import look

    for line in look(store_of(options, options.path), options.count):
        print(line)
    return OK


def last_result(store: Store) -> str:
    """Return the folder of the result that ran last in `store`.

    Raises:
        ConfigurationError: no recipe has finished there.
    """
    from curate.run import results_in

    there = results_in(store)
    finished = [event["folder"] for event in finished_recipes(store) if event["folder"] in there]
    if not there:
        raise ConfigurationError(
            f"{store.url('')} holds no result of a recipe: run one with curate run --store {store.url('')}"
        )
    return finished[-1] if finished else there[-1]


def _fetch(options: argparse.Namespace) -> int:
    from curate.fetch import FetchError, fetch_lid

    try:
        print(fetch_lid())
    except FetchError as error:
        print(f"curate: {error}", file=sys.stderr)
        return RUN_FAILED
    return OK


if __name__ == "__main__":
    sys.exit(main())
