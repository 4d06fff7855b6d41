"""Commands that look after a store: gc and where. Each is a library call, too."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from curate.commands.store_options import STORE_HELP, add_store_options, store_of
from curate.configuration import ConfigurationError
from curate.store import Store

if TYPE_CHECKING:
    from curate.upkeep.finding import Place, TokenPlace
    from curate.upkeep.leftovers import Leftover
    from mixtures import Plan
    from mixtures.explain import Drawn

MOST_STEPS: Final = 12
"""Steps that `where` shows of a document in a cache."""


def gc_command(store: Store, options: argparse.Namespace) -> int:
    """List what no kept result names, and remove it when told to."""
    from curate.upkeep.collecting import collect, older_than_runs, refuse_while_running, unfinished_run
    from curate.upkeep.leftovers import INNER, JOURNALS, leftovers

    kept = _kept(store, options)
    more = [name for name, wanted in ((INNER, options.inner), (JOURNALS, options.journals)) if wanted]
    look: Callable[[Store], None] = _forced if options.force else refuse_while_running
    look(store)
    found = older_than_runs(store, leftovers(store, kept, more))
    for line in listed(kept, found):
        print(line)
    if found and (run := unfinished_run(store)) is not None:
        print(
            f"note: run {run} did not finish, and what it made is left over, too: to keep it, run it to its end first"
        )
    if options.delete:
        collect(store, found, look)
    size = sum(leftover.entry.size for leftover in found)
    done = "removed" if options.delete else "left over; --delete removes them"
    print(f"{len(found):,} files, {size:,} bytes {done}")
    return 0


def _kept(store: Store, options: argparse.Namespace) -> list[str]:
    from curate.upkeep.collecting import latest_results, named_results, results_of

    named = named_results(store, options.keep)
    if options.latest:
        return sorted({*named, *latest_results(store)})
    return sorted(named) or list(results_of(store))


def _forced(store: Store) -> None:
    """Look at nothing: whoever forces it knows of the run."""


def listed(kept: Sequence[str], found: Sequence[Leftover]) -> Iterator[str]:
    """Yield lines: the results that are kept, then each folder that is left over, then sums by kind."""
    from curate.upkeep.leftovers import by_folder, by_kind

    yield from (f"kept: {folder}" for folder in kept)
    for folder, (files, size) in by_folder(found).items():
        yield f"  {folder}: {files:,} files, {size:,} bytes"
    for kind, files, size in by_kind(found):
        yield f"{kind}: {files:,} files, {size:,} bytes"


def where_command(store: Store, options: argparse.Namespace) -> int:
    """Print where a document is, and which steps of training draw it; exit status 1 when it is nowhere."""
    from curate.upkeep.finding import Question, find

    given = [(by, value) for by in ("url", "id", "text") if (value := getattr(options, by)) is not None]
    question = Question(*given[0])
    counted, began, number = [0], time.monotonic(), 0

    def read(size: int) -> None:
        counted[0] += size

    plans = list(_plans(store))
    for number, place in enumerate(find(store, question, read), 1):  # noqa: B007
        print(place)
        for line in _steps(store, plans, place):
            print(line)
    seconds = time.monotonic() - began
    rate = counted[0] / max(seconds, 1e-9) / 1e6
    places = f"{number:,} place" + ("" if number == 1 else "s")
    print(f"{places}; {counted[0]:,} bytes looked at in {seconds:.1f} s, {rate:.0f} MB/s", file=sys.stderr)
    return 0 if number else 1


def _plans(store: Store) -> Iterator[tuple[str, str, Plan]]:
    """Yield (folder, key of its training caches, plan) of each result that has a plan."""
    from curate.run import open_result
    from curate.upkeep.collecting import results_of
    from mixtures import Plan

    try:
        folders = list(results_of(store))
    except ConfigurationError:  # nothing has finished yet: documents are found all the same
        return
    for folder in folders:
        result = open_result(store, folder)
        if result.plan is not None:
            yield folder, result.caches["training"].key, Plan.load(store.local(f"{folder}/plan.json"), result.plan)


def _steps(store: Store, plans: Sequence[tuple[str, str, Plan]], place: Place | TokenPlace) -> Iterator[str]:
    from curate.upkeep.finding import TokenPlace
    from mixtures import Packed
    from mixtures.explain import drawn
    from mixtures.packings import packings_in

    if not isinstance(place, TokenPlace):
        return
    for folder, key, plan in plans:
        if key == place.caches.key:
            cells = place.caches.open() if isinstance(plan.sequences, Packed) else {}
            packings = packings_in(store, folder, plan, cells)
            steps = list(drawn(plan, place.cell, place.start, place.stop, packings))
            yield f"  plan of {folder}: {_told(steps)}"


def _told(steps: Sequence[Drawn]) -> str:
    if not steps:
        return "no step draws it"
    shown = ", ".join(f"{place.step} (row {place.row}, pass {place.epoch})" for place in steps[:MOST_STEPS])
    more = f" and {len(steps) - MOST_STEPS} more" if len(steps) > MOST_STEPS else ""
    return f"drawn in {'step' if len(steps) == 1 else 'steps'} {shown}{more}"


def add_gc(command: argparse.ArgumentParser) -> None:
    """Add the arguments of `gc`."""
    command.set_defaults(command=lambda options: gc_command(store_of(options), options))
    command.add_argument("store", metavar="DIR", help=f"store: {STORE_HELP}")
    command.add_argument("--keep", action="append", default=[], metavar="FOLDER", help="result to keep (default: all)")
    command.add_argument("--latest", action="store_true", help="keep, of each recipe, the result that ran last")
    command.add_argument("--inner", action="store_true", help="also files between the tasks of kept stages")
    command.add_argument("--journals", action="store_true", help="also journals and logs of runs that ended")
    command.add_argument("--delete", action="store_true", help="remove what is listed")
    command.add_argument("--force", action="store_true", help="also while a run goes on: what is older than its start")
    add_store_options(command)


def add_where(command: argparse.ArgumentParser) -> None:
    """Add the arguments of `where`."""
    command.set_defaults(command=lambda options: where_command(store_of(options), options))
    command.add_argument("store", metavar="DIR", help=f"store: {STORE_HELP}")
    sought = command.add_mutually_exclusive_group(required=True)
    sought.add_argument("--url", help="its URL, exactly or in its normalised form")
    sought.add_argument("--id", metavar="HEX", help="its id, 32 hex digits")
    sought.add_argument("--text", help="a text that it holds; white space counts as one space")
    add_store_options(command)
