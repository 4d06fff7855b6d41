"""What a comparison will cost and what it will be able to see, stated before it runs.

A pilot times a few steps of each size, chooses steps and seeds from a budget of processor time, and trains the first
mixture against itself in other orders to measure the noise between seeds; from this follows the least difference that
the comparison will find with probability .8. Its seeds are none of the comparison's.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from curate.configuration import ConfigurationError
from trainers.batches import Batch
from trainers.config import Config
from trainers.evidence.compare import MINIMUM_SEEDS, Pairs, SeededLoader, comparisons_of, losses_of, order_seed
from trainers.evidence.power import POWER, Noise, detectable, noise_of
from trainers.train import fit

PILOT_PAIRS: Final = 4
"""Pairs of runs of the pilot: its noise is then known to within a factor of about 1.5 either way."""

WANTED_SEEDS: Final = 5
"""Seeds for which steps are given up; beyond that, what is left of the budget goes into seeds."""

MOST_SEEDS: Final = 20
FEWEST_STEPS: Final = 8
TIMED_STEPS: Final = 4
PILOT_SEED: Final = 1_000_000
"""Seeds of the pilot begin here."""

Sizes = Callable[[int], Sequence[Config]]
"""Gives the configurations for a number of steps."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds of processor time of one size: of a step, of the evaluation of a model, and once, to compile."""

    step: float
    evaluation: float
    compiling: float

    def run(self, steps: int) -> float:
        """Return the seconds of a run of `steps`, without compiling."""
        return steps * self.step + self.evaluation


@dataclass(frozen=True, slots=True)
class Planned:
    """A comparison before it runs. Seconds are of processor time; `detectable` by domain, at the first size."""

    configs: tuple[Config, ...]
    seeds: tuple[int, ...]
    comparisons: int
    level: float
    noise: Mapping[str, Noise]
    detectable: Mapping[str, float]
    spent: float
    expected: float

    def __str__(self) -> str:
        sizes = ", ".join(f"width {config.model.width} × {config.steps} steps" for config in self.configs)
        lines = [
            f"before the comparison: {sizes}; seeds {self.seeds[0]} to {self.seeds[-1]}; {self.comparisons} "
            f"comparisons share the level {self.level:g}; about {self.expected / 60:.1f} CPU-minutes, after "
            f"{self.spent / 60:.1f} for the pilot",
            f"noise between seeds, from {PILOT_PAIRS} pairs of the first mixture against itself at the first size, "
            f"and the difference found with probability {POWER:g}, in nats per token:",
        ]
        width = max(map(len, self.noise))
        for name, noise in self.noise.items():
            band = f"{noise.low:.4f} to {noise.high:.4f}"
            lines.append(f"  {name:{width}}  {noise.deviation:.4f} ({band})   {self.detectable[name]:.4f}")
        return "\n".join(lines)


def plan_comparison(
    loaders: Mapping[str, SeededLoader],
    validation: Mapping[str, Sequence[Batch]],
    sizes: Sizes,
    most_steps: int,
    budget: float,
    *,
    level: float = 0.01,
    pairs: Pairs = "all",
    seeds: int | None = None,
) -> Planned:
    """Return sizes and seeds for `compare` that cost at most `budget` seconds of processor time, and what it will see.

    Steps are halved from `most_steps` until five seeds (or `seeds`) are affordable; then seeds are added, 20 at most.

    Raises:
        ConfigurationError: the budget is too small; the message says what is needed.
        TrainingError: a run of the pilot diverged.
    """
    begun = time.process_time()
    first = next(iter(loaders.values()))
    costs = [measured_cost(first, validation, config) for config in sizes(most_steps)]
    timing = time.process_time() - begun
    steps = _affordable_steps(costs, most_steps, len(loaders), seeds or WANTED_SEEDS, budget, timing)
    configs = tuple(sizes(steps))
    noise = measured_noise(first, validation, configs[0])
    spent = time.process_time() - begun
    each = len(loaders) * sum(cost.run(steps) for cost in costs)
    once = sum(cost.compiling for cost in costs[1:])
    wanted = seeds or max(MINIMUM_SEEDS, min(MOST_SEEDS, int((budget - spent - once) / each)))
    count = comparisons_of(len(loaders), len(validation), len(configs), pairs)
    found = {name: detectable(one.deviation, wanted, level, count) for name, one in noise.items()}
    return Planned(configs, tuple(range(1, wanted + 1)), count, level, noise, found, spent, once + wanted * each)


def measured_cost(make: SeededLoader, validation: Mapping[str, Sequence[Batch]], config: Config) -> Cost:
    """Return what runs of `config` cost, from two short ones: the first compiles."""
    optimizer = replace(config.optimizer, warmup=0, decay=0)
    short = replace(config, steps=min(TIMED_STEPS, config.steps), optimizer=optimizer)
    loader, marks = make(PILOT_SEED), [time.process_time()]
    losses_of(loader, validation, short)
    marks.append(time.process_time())
    fit(loader, short)
    marks.append(time.process_time())
    losses_of(loader, validation, short)
    marks.append(time.process_time())
    cold, training, both = (after - before for before, after in pairwise(marks))
    return Cost(training / short.steps, max(both - training, 0.0), max(cold - both, 0.0))


def measured_noise(
    make: SeededLoader, validation: Mapping[str, Sequence[Batch]], config: Config, pairs: int = PILOT_PAIRS
) -> dict[str, Noise]:
    """Return the noise between seeds by domain: one mixture against itself in other orders, `pairs` times.

    Raises:
        ConfigurationError: the mixture reads the same in every order, so that there is no noise to measure.
    """
    differences: dict[str, list[float]] = {}
    for seed in range(PILOT_SEED, PILOT_SEED + pairs):
        given = replace(config, seed=seed)
        sides = [losses_of(make(order_seed(seed, place)), validation, given) for place in (0, 1)]
        for name, loss in sides[0].items():
            differences.setdefault(name, []).append(sides[1][name] - loss)
    if silent := [name for name, found in differences.items() if not any(found)]:
        raise ConfigurationError(f"two orders of the mixture give the same loss on {silent}: its loader ignores seeds")
    return {name: noise_of(found) for name, found in differences.items()}


def _affordable_steps(costs: Sequence[Cost], most: int, mixtures: int, seeds: int, budget: float, spent: float) -> int:
    steps = most
    while (needed := _seconds(costs, steps, mixtures, seeds)) > budget - spent:
        if steps // 2 < min(FEWEST_STEPS, most):
            enough = math.ceil((needed + spent) / 60)
            raise ConfigurationError(
                f"the budget leaves {(budget - spent) / 60:.1f} CPU-minutes after timing, and {steps} steps with "
                f"{seeds} seeds take {needed / 60:.1f}: make it {enough} or more, or give fewer widths or seeds, or "
                "less held-out text"
            )
        steps //= 2
    return steps


def _seconds(costs: Sequence[Cost], steps: int, mixtures: int, seeds: int) -> float:
    pilot = 2 * PILOT_PAIRS * costs[0].run(steps)
    return pilot + sum(cost.compiling + mixtures * seeds * cost.run(steps) for cost in costs)
