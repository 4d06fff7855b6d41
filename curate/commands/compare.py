"""`curate compare`: what mixtures are worth, by training the same small models on all of them.

Held-out text is that of the first store (or of `--neutral`), without what a mixture owns (`mixtures.neutral`). Steps
and seeds follow from a budget of processor time, and noise and detectable difference are stated before the first run.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from curate.commands.numbers import above_zero, between_0_and_1, positive, writable_file
from curate.commands.results import last_result
from curate.commands.store_options import STORE_HELP, add_store_options, store_of
from curate.commands.tokens import opened, require_equal_steps
from curate.configuration import ConfigurationError
from curate.running.progress import say

if TYPE_CHECKING:
    from curate.caches.cache import TokenCache
    from curate.run import Result
    from mixtures import Loader, Plan

WIDTHS: Final = (64, 128)
MINUTES: Final = 15.0


@dataclass(frozen=True, slots=True)
class Side:
    """One of the mixtures: what it is called, its result, plan and training caches."""

    name: str
    result: Result
    plan: Plan
    caches: Mapping[str, TokenCache]

    @property
    def sources(self) -> frozenset[str]:
        """The sources that its caches are made of."""
        made = {(entry["name"], entry["key"]) for entry in self.result.caches["training"].manifest["inputs"]}
        datasets = [dataset for dataset in self.result.stages if (dataset.name, dataset.key) in made]
        return frozenset(source for dataset in datasets for source in dataset.statistics["groups"]["source"])

    def loaders(self, steps: int) -> Callable[[int], Loader]:
        """Return what gives the loader of a seed, of the plan over `steps` steps."""
        from mixtures import Loader
        from mixtures.packings import packings_of
        from mixtures.scaled import scaled

        packings = packings_of(self.plan, self.caches)
        part = scaled(self.plan, steps)
        return lambda seed: Loader(replace(part, seed=seed), self.caches, packings=packings)


def add_compare(command: argparse.ArgumentParser) -> None:
    """Add the arguments of `compare`."""
    command.set_defaults(command=compare_stores)
    add_store_options(command)
    command.add_argument("stores", metavar="STORE", nargs="+", help=f"two stores or more, each a mixture: {STORE_HELP}")
    command.add_argument(
        "--neutral",
        metavar="STORE",
        help="store whose held-out text is used (default: the first's)",
    )
    command.add_argument(
        "--pairs", choices=("all", "with the first"), default="all", help="which pairs are compared (default: all)"
    )
    add_sizes(command)
    command.add_argument(
        "--page", type=writable_file, metavar="FILE", help="write a page, and its values with the suffix .json"
    )


def add_sizes(command: argparse.ArgumentParser) -> None:
    """Add the arguments that say how large a comparison is."""
    command.add_argument(
        "--budget",
        type=above_zero,
        default=MINUTES,
        metavar="M",
        help=f"CPU-minutes, from which steps and seeds follow (default: {MINUTES:g})",
    )
    command.add_argument(
        "--width", type=int, nargs="+", default=WIDTHS, metavar="W", help="widths of the models (default: 64 128)"
    )
    command.add_argument(
        "--steps", type=positive, metavar="N", help="updates of a run at most (default: all of the plan)"
    )
    command.add_argument(
        "--seeds", type=positive, metavar="N", help="paired seeds, at least 3 (default: by the budget)"
    )
    command.add_argument(
        "--level", type=between_0_and_1, default=0.01, metavar="P", help="of all comparisons (default: 0.01)"
    )
    command.add_argument(
        "--held-out", type=positive, default=16, metavar="N", help="held-out sequences per domain (default: 16)"
    )


def compare_stores(options: argparse.Namespace) -> int:
    """Print what the comparison will see, then what it found; write the page if one is asked for."""
    from curate.run import open_result

    if len(set(options.stores)) < max(2, len(options.stores)):
        raise ConfigurationError("compare takes two stores or more, each once")
    require_seeds(options)
    sides = []
    for place in options.stores:
        store = store_of(options, place)
        result, plan, caches = opened(store, last_result(store))
        sides.append(Side(str(place), result, plan, caches.open()))
    neutral = None
    if options.neutral:
        store = store_of(options, options.neutral)
        neutral = open_result(store, last_result(store))
    _, _, said = run_comparison(sides, options, neutral, options.pairs)
    if options.page:
        for path in said(options.page):
            print(path)
    return 0


def run_comparison(
    sides: Sequence[Side], options: argparse.Namespace, neutral: Result | None, pairs: Any
) -> tuple[Any, Any, Callable[[Path], list[Path]]]:
    """Plan and run the comparison of `sides`, printing both; return plan and outcome, and what writes their page.

    Raises:
        ConfigurationError: the mixtures cannot be compared, or the budget is too small.
    """
    from trainers.config import Config, recipe
    from trainers.evidence.compare import compare
    from trainers.evidence.pilot import plan_comparison
    from viewers.comparison_page import write_comparison

    require_comparable(sides)
    plan = sides[0].plan
    length = plan.sequences.length
    validation = held_out_of(sides, neutral or sides[0].result, options.held_out)
    shortest = min(side.plan.steps for side in sides)
    if options.steps and options.steps > shortest:
        raise ConfigurationError(f"--steps {options.steps}: the shortest of the plans has {shortest}")
    most = options.steps or shortest

    def sizes(steps: int) -> list[Config]:
        tokens = steps * plan.batch * length
        given: dict[str, Any] = {"vocabulary": plan.vocabulary, "length": length, "batch": plan.batch}
        return [recipe(width, tokens, **given) for width in options.width]

    chosen = {"level": options.level, "pairs": pairs}
    whole = {side.name: side.loaders(most) for side in sides}
    pilot = told_of_runs("measuring time and noise", whole)
    planned = plan_comparison(pilot, validation, sizes, most, options.budget * 60, seeds=options.seeds, **chosen)
    print(planned, flush=True)
    steps = planned.configs[0].steps
    loaders = told_of_runs(
        f"comparing, {len(planned.configs) * len(planned.seeds) * len(sides)} training runs",
        {side.name: side.loaders(steps) for side in sides},
    )
    found = compare(loaders, validation, planned.configs, planned.seeds, **chosen)
    print(found)
    return planned, found, lambda path: write_comparison(found, planned, path)


def require_seeds(options: argparse.Namespace) -> None:
    """Check the seeds that were asked for, before anything is made or trained.

    Raises:
        ConfigurationError: they are too few.
    """
    if options.seeds is not None and options.seeds < 3:
        raise ConfigurationError(f"--seeds {options.seeds}: at least 3 tell anything")


def told_of_runs(what: str, loaders: Mapping[str, Callable[[int], Any]]) -> dict[str, Callable[[int], Any]]:
    """Return `loaders`, functions from a seed, each of which says on stderr that its next training run begins."""
    begun = count(1)

    def made(name: str, seed: int) -> Any:
        say(f"{what}: run {next(begun)}, on {name}")
        return loaders[name](seed)

    return {name: partial(made, name) for name in loaders}


def require_comparable(sides: Sequence[Side]) -> None:
    """Check that losses of the mixtures mean the same.

    Raises:
        ConfigurationError: they differ in tokenizer, sequences or batch, or in the steps of a phase.
    """
    first = sides[0].plan
    for side in sides:
        require_equal_steps(side.plan)
        for field in ("tokenizer", "sequences", "batch"):
            if (ours := getattr(first, field)) != (theirs := getattr(side.plan, field)):
                raise ConfigurationError(
                    f"losses cannot be compared: the {field} of {sides[0].name} is {ours}, that of {side.name} {theirs}"
                )


def held_out_of(sides: Sequence[Side], result: Result, sequences: int) -> dict[str, Sequence[Any]]:
    """Return batches of neutral held-out text of `result` by domain, saying what is left out.

    Raises:
        ConfigurationError: there is none, or it has another tokenizer.
    """
    from mixtures.neutral import neutral_documents, private_sources

    held = result.caches.get("validation") or (None if result is sides[0].result else result.caches.get("training"))
    if held is None:
        raise ConfigurationError(
            f"{result.store.url(result.name)} has no held-out text: give its recipe Outputs(…, validation=…)"
        )
    caches = held.open()
    if other := [name for name, cache in caches.items() if cache.tokenizer != sides[0].plan.tokenizer]:
        raise ConfigurationError(f"the held-out text {other[0]!r} was made with another tokenizer than the mixtures")
    private = private_sources(side.sources for side in sides)
    made = {(entry["name"], entry["key"]) for entry in held.manifest["inputs"]}
    datasets = [dataset for dataset in result.stages if private and (dataset.name, dataset.key) in made]
    columns = ["id", "source"]
    rows = (row for dataset in datasets for batch in dataset.batches(columns) for row in batch.to_pylist())
    source_of = {row["id"]: row["source"] for row in rows}
    found = neutral_documents(caches, (side.caches for side in sides), source_of.get, private)
    validation: dict[str, Sequence[Any]] = {}
    for name, neutral in sorted(found.items()):
        if neutral.private or neutral.trained:
            print(
                f"held-out {name}: {neutral.private:,} documents of private sources and {neutral.trained:,} that a "
                f"mixture trains on are left out, {len(neutral.documents):,} stay"
            )
        if neutral.documents:
            validation[name] = _batches(sides[0].plan, caches[name], neutral.documents, sequences)
    if not validation:
        owned = f"it is of sources that not all mixtures read ({', '.join(sorted(private))})" if private else ""
        raise ConfigurationError(
            f"no held-out text is neutral: {owned or 'mixtures train on all of it'}. Give --neutral a store of other "
            "text with the same tokenizer"
        )
    return validation


def _batches(plan: Plan, cache: TokenCache, documents: Sequence[int], sequences: int) -> tuple[Any, ...]:
    from trainers.batches import pack

    chosen, tokens, wanted = [], 0, sequences * plan.sequences.length
    for document in documents:
        if tokens >= wanted:
            break
        chosen.append(cache[document][: wanted - tokens])
        tokens += len(chosen[-1])
    return pack(chosen, plan.batch, plan.sequences.length)
