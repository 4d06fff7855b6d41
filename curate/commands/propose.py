"""`curate propose`: weights for the components of a store, from small runs of mixtures and a law fitted to them."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, Final

from curate.commands.compare import MINUTES, Side, held_out_of
from curate.commands.numbers import above_zero, positive, writable_file
from curate.commands.results import last_result
from curate.commands.store_options import STORE_HELP, add_store_options, store_of
from curate.commands.tokens import opened, require_equal_steps
from curate.configuration import ConfigurationError
from curate.formats import Format
from curate.store import json_line, self_digested

if TYPE_CHECKING:
    from mixtures.search import Proposal, Trial

FORMAT: Final = Format(1, "propose again with curate propose")
"""Version 1: the first."""

FEWEST_STEPS: Final = 8


def add_propose(command: argparse.ArgumentParser) -> None:
    """Add the arguments of `propose`."""
    command.set_defaults(command=propose_weights)
    command.add_argument(
        "store", metavar="DIR", help=f"store with a mixture, whose components are weighed: {STORE_HELP}"
    )
    add_store_options(command)
    command.add_argument("--trials", type=positive, default=24, metavar="N", help="mixtures to try (default: 24)")
    command.add_argument("--seeds", type=positive, default=1, metavar="N", help="seeds of each (default: 1)")
    command.add_argument(
        "--tokens", type=above_zero, metavar="N", help="of the training that the mixture is for (default: of the plan)"
    )
    command.add_argument(
        "--epochs", default="4", metavar="E", help="passes over a component in it at most (default: 4)"
    )
    command.add_argument(
        "--budget",
        type=above_zero,
        default=MINUTES,
        metavar="M",
        help=f"CPU-minutes for all runs (default: {MINUTES:g})",
    )
    command.add_argument("--width", type=int, default=64, metavar="W", help="width of the model (default: 64)")
    command.add_argument("--steps", type=positive, metavar="N", help="updates of a run (default: by the budget)")
    command.add_argument(
        "--held-out", type=positive, default=16, metavar="N", help="held-out sequences per domain (default: 16)"
    )
    command.add_argument("--save", type=writable_file, metavar="FILE", help="write trials and proposal as JSON")


def propose_weights(options: argparse.Namespace) -> int:
    """Run the trials, print what the law fitted to them proposes, and save all of it if asked for."""
    from mixtures.designs import designs
    from mixtures.search import TRUSTED, fewest_trials, propose
    from trainers.config import Config, recipe
    from trainers.evidence.pilot import Cost, measured_cost
    from trainers.evidence.trials import run_trials, trial_loader

    store = store_of(options)
    result, plan, caches = opened(store, last_result(store))
    require_equal_steps(plan)
    cells = {name: cache for name, cache in caches.open().items() if cache.tokens}
    sizes = {name: cache.tokens for name, cache in cells.items()}
    if options.trials < (fewest := fewest_trials(len(cells))):
        raise ConfigurationError(f"--trials {options.trials}: {len(cells)} components need {fewest} at least")
    tokens = int(options.tokens or plan.steps * plan.batch * plan.sequences.length)
    tried = designs(sizes, options.trials, tokens=tokens, epochs=options.epochs)
    validation = held_out_of([Side(str(options.store), result, plan, cells)], result, options.held_out)

    def config_of(steps: int) -> Config:
        given: dict[str, Any] = {"vocabulary": plan.vocabulary, "length": plan.sequences.length, "batch": plan.batch}
        return recipe(options.width, steps * plan.batch * plan.sequences.length, **given)

    def timed(config: Config) -> Cost:
        return measured_cost(
            lambda seed: trial_loader(cells, tried[0], config, plan.sequences, seed), validation, config
        )

    steps = options.steps or _affordable(timed(config_of(plan.steps)), options, len(tried), plan.steps)
    config = config_of(steps)
    print(f"{len(tried)} mixtures, {options.seeds} seeds, width {config.model.width}, {steps} steps each")
    trials = run_trials(cells, tried, validation, config, seeds=options.seeds, sequences=plan.sequences, told=print)
    proposal = propose(trials, sizes, tokens=tokens, epochs=options.epochs)
    print(proposal)
    if proposal.rank_correlation < TRUSTED:
        print(f"do not believe it: a rank correlation below {TRUSTED} takes more steps, seeds or trials")
    print(f"Phase(…, weights={dict(proposal.weights)})")
    if options.save:
        options.save.write_bytes(json_line(self_digested(proposal_json(proposal, trials, steps))))
        print(options.save)
    return 0


def _affordable(cost: Any, options: argparse.Namespace, trials: int, most: int) -> int:
    """Return the steps of a run that the budget leaves, at most `most`.

    Raises:
        ConfigurationError: it leaves too few.
    """
    runs = trials * options.seeds
    steps = min(most, int((options.budget * 60 / runs - cost.evaluation) / cost.step))
    if steps < FEWEST_STEPS:
        raise ConfigurationError(
            f"the budget of {options.budget:g} CPU-minutes leaves {max(steps, 0)} steps for each of {runs} runs; "
            f"{FEWEST_STEPS} take {runs * cost.run(FEWEST_STEPS) / 60:.1f}"
        )
    return steps


def proposal_json(proposal: Proposal, trials: list[Trial], steps: int) -> dict[str, Any]:
    """Return the values of a search: every trial, and what was made of them."""
    return {
        "format": FORMAT.stamp,
        "kind": "proposal",
        "weights": dict(proposal.weights),
        "predicted": [repr(value) for value in (proposal.low, proposal.predicted, proposal.high)],
        "rank_correlation": repr(proposal.rank_correlation),
        "steps": steps,
        "trials": [
            {"weights": dict(trial.weights), "losses": {name: repr(loss) for name, loss in trial.losses.items()}}
            for trial in trials
        ],
    }
