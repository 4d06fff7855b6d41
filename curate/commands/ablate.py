"""`curate ablate`: a recipe with one part left out at a time, compared with the whole: which parts earn their place.

Variants go to the store of the whole, which has all stages that they share. The whole recipe runs last, so that it
stays the result that other commands look at.
"""

from __future__ import annotations

import argparse
import sys
from contextlib import redirect_stdout
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from curate.ablations import FILE, AblatedPart, Ablation, Effect, write_ablation
from curate.commands.compare import Side, add_sizes, require_seeds, run_comparison
from curate.commands.recipe_options import add_recipe_options, outputs_of
from curate.commands.store_options import store_of
from curate.commands.tokens import opened
from curate.configuration import ConfigurationError

if TYPE_CHECKING:
    from curate.recipes.ablation import Part
    from curate.recipes.recipe import Outputs

WHOLE = "the whole recipe"


def add_ablate(command: argparse.ArgumentParser) -> None:
    """Add the arguments of `ablate`."""
    command.set_defaults(command=ablate)
    add_recipe_options(command)
    command.add_argument(
        "--only", action="append", default=[], metavar="PART", help="a part to leave out; repeatable (default: all)"
    )
    command.add_argument("--list", action="store_true", help="print the parts and do nothing")
    command.add_argument(
        "--runner", choices=["ray", "local"], default="ray", help="ray: parallel tasks; local: one process"
    )
    add_sizes(command)


def ablate(options: argparse.Namespace) -> int:
    """Make the variants, compare each with the whole, print what came out and write `ablation.json`."""
    require_seeds(options)
    loaded, outputs, modules = outputs_of(options)
    variants, untried = variants_of(outputs, options.only)
    if options.list:
        for name in variants:
            print(name)
        for part in untried:
            print(f"{part.name}: {part.why}")
        return 0
    if not variants:
        raise ConfigurationError(f"recipe {loaded.name} has no part that can be left out")
    sides = [_made(options, name, made, modules, loaded.name) for name, made in variants.items()]
    sides.append(_made(options, WHOLE, outputs, modules, loaded.name))
    _, found, _ = run_comparison([sides[-1], *sides[:-1]], options, None, "with the first")
    largest = found.sizes[-1]
    parts = [_judged(name, [c for c in largest.contrasts if c.second == name]) for name in variants]
    result = sides[-1].result
    key = str(result.store.read_json(f"{result.name}/manifest.json")["key"])
    model = f"width {largest.config.model.width}, {largest.config.steps} steps, {len(largest.seeds)} seeds"
    ablation = Ablation(key, found.level, model, (*parts, *untried))
    write_ablation(result.store, ablation)
    for part in ablation.parts:
        print(f"{part.name}: {part.verdict}" + (f" ({part.why})" if part.why else ""))
    print(f"{result.store.url(FILE)}; curate report {options.store} shows it")
    return 0


def variants_of(outputs: Outputs, only: list[str]) -> tuple[dict[str, Outputs], list[AblatedPart]]:
    """Return the variants of a recipe by the part that each lacks, and the parts that cannot be left out.

    Raises:
        ConfigurationError: the recipe has no mixture, or `only` names something else than a part.
    """
    from curate.recipes.ablation import parts_of
    from curate.recipes.recipe import Outputs

    parts = {part.name: part for part in parts_of(outputs)}
    if unknown := [name for name in only if name not in parts]:
        raise ConfigurationError(f"there is no part {unknown[0]!r} to leave out, only {', '.join(parts)}")
    variants: dict[str, Outputs] = {}
    untried = []
    for name in only or parts:
        made = _variant(outputs, parts[name])
        if isinstance(made, Outputs):
            variants[name] = made
        else:
            untried.append(AblatedPart(name, "not tried", made, ()))
    return variants, untried


def _variant(outputs: Outputs, part: Part) -> Outputs | str:
    """Return the recipe without `part`, or why there is none."""
    from curate.recipes.ablation import cells_without
    from curate.recipes.compiling import compile_stages
    from curate.recipes.recipe import Outputs
    from mixtures import Mixture

    if part.protects is not None:
        return f"it protects {part.protects}, which loss does not measure"
    if not isinstance(outputs.mixture, Mixture):
        return "its mixture is of another kind"
    changed = Outputs(outputs.mixture.over(cells_without(outputs, part)))
    try:
        compile_stages(changed.products)
    except ConfigurationError as error:
        return f"without it the recipe cannot run: {error}"
    return changed


def _made(options: argparse.Namespace, name: str, outputs: Outputs, modules: list[Any], recipe: str) -> Side:
    from curate.recipes.ablation import training_cells
    from curate.run import run

    training_cells(outputs)
    print(f"making {name}" if name == WHOLE else f"making the recipe without {name}", file=sys.stderr)
    store = store_of(options)
    with redirect_stdout(sys.stderr):
        result = run(
            outputs,
            store,
            name=recipe if name == WHOLE else f"{recipe}-ablated",
            runner=options.runner,
            sample=options.sample,
            modules=modules,
        )
    result, plan, caches = opened(store, result.name)
    return Side(name, result, plan, caches.open())


def _judged(name: str, contrasts: list[Any]) -> AblatedPart:
    effects = tuple(
        Effect(c.domain, c.interval.mean, c.interval.low, c.interval.high, c.interval.verdict) for c in contrasts
    )
    found = AblatedPart(name, "not told apart", "", effects)
    if found.whole.verdict != "different":
        return found
    return replace(found, verdict="earned its place" if found.whole.difference > 0 else "is better left out")
