"""Commands on what a mixture compiled to: explain, batch, trace, train, compare. Each is a library call, too."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from curate.commands.results import last_result
from curate.commands.store_options import STORE_HELP, add_store_options, store_of
from curate.configuration import ConfigurationError
from curate.digests import text_digest
from curate.store import Store, StoreError
from curate.visible import visible

if TYPE_CHECKING:
    from curate.caches.cache import TokenCache
    from curate.products import Caches
    from curate.run import Result
    from mixtures import Plan
    from transforms.tokens import Tokenizer

SHOWN_DOCUMENTS: Final = 4
"""Ids that `explain` shows of a row."""


def opened(store: Store, folder: str) -> tuple[Result, Plan, Caches]:
    """Return the result in `folder` with its plan and training caches.

    Raises:
        ConfigurationError: its recipe has no mixture.
        StoreError: the plan is missing or damaged.
    """
    from curate.run import open_result
    from mixtures import Plan, PlanError

    result = open_result(store, folder)
    if result.plan is None:
        raise ConfigurationError(f"{store.url(folder)} has no plan: its recipe gives no mixture to Outputs(…)")
    try:
        plan = Plan.load(store.local(f"{folder}/plan.json"), result.plan)
    except PlanError as error:
        raise StoreError(str(error)) from error
    return result, plan, result.caches["training"]


def explain_command(store: Store, folder: str, options: argparse.Namespace) -> int:
    """Print which chunks of which components a step reads, and which documents each row holds."""
    from mixtures import explain
    from mixtures.packings import packings_in

    _, plan, caches = opened(store, folder)
    cells = caches.open()
    explanation = explain(plan, options.step, packings_in(store, folder, plan, cells))
    print(explanation)
    for number, row in enumerate(explanation.rows):
        ids = [identity for span in row.spans for identity in documents_in(cells[row.component], *span)]
        shown = ", ".join(ids[:SHOWN_DOCUMENTS]) + (
            f" and {len(ids) - SHOWN_DOCUMENTS} more" if len(ids) > SHOWN_DOCUMENTS else ""
        )
        place = f"{row.component}, pass {row.epoch}, chunk {row.chunk}"
        print(f"  row {number}: {place}, {counted(len(ids), 'document')}: {shown}")
    return 0


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, in the plural but for one."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def documents_in(cache: TokenCache, start: int, stop: int) -> list[str]:
    """Return the ids of the documents that tokens `start` to `stop` of `cache` belong to, in their order."""
    first, last = cache.document_at(start), cache.document_at(stop - 1)
    return [bytes(identity).hex() for identity in cache.ids(first, last + 1)]


def batch_command(store: Store, folder: str, options: argparse.Namespace) -> int:
    """Print the rows of a step, decoded, with the borders between documents."""
    from mixtures import Loader
    from mixtures.packings import packings_in

    _, plan, caches = opened(store, folder)
    cells = caches.open()
    batch = Loader(plan, cells, packings=packings_in(store, folder, plan, cells)).batch(options.step)
    encoder = tokenizer_of(caches).encoder()
    for row in range(min(len(batch), options.rows)):
        name = plan.components[int(batch.components[row])].name
        print(f"── step {options.step}, row {row}: sequence {int(batch.sequences[row])} of {name}")
        for segment in range(1, int(batch.segments[row].max()) + 1):
            tokens = batch.tokens[row][batch.segments[row] == segment]
            print(f"   [{segment}] {len(tokens)} tokens: " + visible(encoder.decode(tokens)).replace("\n", "\n      "))
    return 0


def tokenizer_of(caches: Caches) -> Tokenizer:
    """Return the tokenizer that `caches` were made with, from the store."""
    from curate.caches.cache import TokenCache
    from curate.caches.tokenization import stored_tokenizer
    from transforms.tokens import Tokenizer

    cell = caches.cells[0]
    description = TokenCache.open(caches.place(cell)).description
    path = stored_tokenizer(caches.store, description.tokenizer)
    return Tokenizer(path, bos=description.bos_text, eos=description.eos_text)


def trace_command(store: Store, folder: str, options: argparse.Namespace) -> int:
    """Print where a token of a batch comes from; with --replay, read and transform its record again."""
    from curate.upkeep.trace import trace_token
    from mixtures import locate
    from mixtures.packings import packings_in

    _, plan, caches = opened(store, folder)
    cells = caches.open()
    place = locate(plan, options.step, options.row, options.token, packings_in(store, folder, plan, cells), cells)
    trace = trace_token(caches, place.component, place.token)
    row, origin = trace.row, trace.row["origin"]
    print(f"step {options.step}, row {options.row}, token {options.token}: id {trace.token_id} {trace.characters!r}")
    print(f"  component {place.component}, pass {place.epoch}, chunk {place.chunk}, token {place.token} of its cache")
    print(
        f"  document {trace.document} of the cache, token {trace.position} of it, characters {trace.start}-{trace.end}"
    )
    print(f"  {row['source']} {row['id'].hex()}, text digest {trace.digest}")
    print(f"  record: {visible(origin['uri'])}, {origin['place']} {origin['offset']}, length {origin['length']}")
    print("  " + visible(trace.context()).replace("\n", "\n  "))
    return 0 if options.replay is None else _replay(trace, options)


def _replay(trace: Any, options: argparse.Namespace) -> int:
    from curate.recipes.compiling import compile_stages
    from curate.recipes.recipe import load_recipe, parse_pairs
    from curate.upkeep.trace import replay

    loaded, _ = load_recipe(options.replay)
    text = replay(compile_stages(loaded(**loaded.settings(parse_pairs(options.set))).products), trace)
    found = text_digest(text).hex()
    if found != trace.digest:
        print(f"replayed: ANOTHER TEXT, digest {found}", file=sys.stderr)
        return 1
    print(f"replayed: the same text, the token stands for {text[trace.start : trace.end]!r}")
    return 0


def held_out(plan: Plan, caches: Caches | None, sequences: int) -> dict[str, Sequence[Any]]:
    """Return fixed batches of the first `sequences` sequences of each validation cache, by cell."""
    if caches is None:
        return {}
    return {name: batches_of(plan, cache, sequences) for name, cache in caches.open().items() if cache.tokens}


def batches_of(plan: Plan, cache: TokenCache, sequences: int) -> tuple[Any, ...]:
    """Return the first documents of a cache, about enough for so many sequences, as batches of the plan's shape."""
    import numpy as np

    from trainers.batches import pack

    wanted = int(np.searchsorted(cache.starts, sequences * plan.sequences.length, side="right"))
    documents = [cache[document] for document in range(min(max(1, wanted - 1), len(cache)))]
    return pack(documents, plan.batch, plan.sequences.length)


def require_equal_steps(plan: Plan) -> None:
    """Check that all steps are of one size.

    Raises:
        ConfigurationError: a phase has a batch or length of its own.
    """
    for segment in plan.segments:
        if segment.batch or segment.length:
            raise ConfigurationError(
                f"phase {segment.phase!r} has a batch or length of its own, and runs that are compared take steps of "
                "one size: leave Phase(batch=, length=) out, or read Loader.update in a trainer of yours"
            )


def _add_plan_command(command: argparse.ArgumentParser, function: Callable[..., int]) -> None:
    def run(options: argparse.Namespace) -> int:
        store = store_of(options)
        try:
            return function(store, options.recipe or last_result(store), options)
        except IndexError as error:  # a step, row or token that is not there; the message has the range
            raise ConfigurationError(str(error)) from error

    command.set_defaults(command=run)
    command.add_argument("store", metavar="DIR", help=f"store with a result that has a plan: {STORE_HELP}")
    add_store_options(command)
    command.add_argument("--recipe", metavar="FOLDER", help="result in the store (default: the one that ran last)")


def _add_step(command: argparse.ArgumentParser) -> None:
    command.add_argument("--step", type=int, required=True, metavar="S", help="step, from 0")


def add_explain(command: argparse.ArgumentParser) -> None:
    """Add the arguments of `explain`."""
    _add_plan_command(command, explain_command)
    _add_step(command)


def add_batch(command: argparse.ArgumentParser) -> None:
    """Add the arguments of `batch`."""
    _add_plan_command(command, batch_command)
    _add_step(command)
    command.add_argument("--rows", type=int, default=4, metavar="N", help="rows to show (default: 4)")


def add_trace(command: argparse.ArgumentParser) -> None:
    """Add the arguments of `trace`."""
    _add_plan_command(command, trace_command)
    _add_step(command)
    command.add_argument("--row", type=int, required=True, metavar="R", help="row of the batch, from 0")
    command.add_argument("--token", type=int, required=True, metavar="T", help="token of the row, from 0")
    command.add_argument("--replay", metavar="FILE[:NAME]", help="read the record again and apply this recipe again")
    command.add_argument(
        "--set", action="append", default=[], metavar="K=V", help="a setting of the recipe; repeatable"
    )
