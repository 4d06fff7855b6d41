"""Comparing mixtures: the same small models, seeds and budget on all, losses on held-out text that is no one's own.

Only this tells whether a filter helps. Runs are paired: seed s gives every mixture the same initial parameters, and
each mixture an order of data of its own, also one that is compared with itself: what two orders differ by is noise.
Where several sizes are given, all is done at each: whether the ranking held is the only hint that it may transfer.
Cost: mixtures · seeds runs of each size.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Final, Literal

from curate.ablations import MEAN
from curate.configuration import ConfigurationError
from trainers.batches import Batch, Loader
from trainers.config import Config
from trainers.evidence.statistics import Interval, Verdict, paired_intervals
from trainers.train import fit
from trainers.validation import evaluate_sources

SeededLoader = Callable[[int], Loader]
"""Gives the loader of a mixture for a seed (of the order of its data)."""

MINIMUM_SEEDS: Final = 3
"""With two seeds the interval is so wide (63 standard errors at 1 %) that nothing is ever told apart."""

Pairs = Literal["all", "with the first"]
"""Which mixtures are compared: each with each, or each with the first."""

Losses = Mapping[str, Mapping[str, tuple[float, ...]]]
"""Mixture → domain → loss by seed, in nats per predicted token."""


@dataclass(frozen=True, slots=True)
class Contrast:
    """Two mixtures on one domain: the interval of their difference, second minus first."""

    first: str
    second: str
    domain: str
    interval: Interval

    @property
    def said(self) -> str:
        """What the interval says, in words."""
        if self.interval.verdict == "not told apart":
            return "not told apart"
        return f"{self.first if self.interval.mean > 0 else self.second} is better"


@dataclass(frozen=True, slots=True)
class AtSize:
    """What was found with one configuration."""

    config: Config
    seeds: tuple[int, ...]
    plans: Mapping[str, tuple[str, ...]]
    """Mixture → digest of its plan by seed."""
    losses: Losses
    contrasts: tuple[Contrast, ...]

    @property
    def ranking(self) -> tuple[str, ...]:
        """The mixtures by mean loss over domains and seeds, best first."""
        return tuple(sorted(self.losses, key=lambda name: (self.mean(name), name)))

    def mean(self, mixture: str) -> float:
        """Return the mean loss of `mixture` over domains and seeds."""
        by_domain = [math.fsum(values) / len(values) for name, values in self.losses[mixture].items() if name != MEAN]
        return math.fsum(by_domain) / len(by_domain)

    def __str__(self) -> str:
        model, tokens = self.config.model, self.config.steps * self.config.batch * self.config.length
        width = max(len("domain"), *(len(contrast.domain) for contrast in self.contrasts))
        lines = [f"width {model.width}, {model.layers} layers, {tokens:,} tokens, {len(self.seeds)} paired seeds"]
        shown = ("", "")
        for contrast in self.contrasts:
            if (pair := (contrast.first, contrast.second)) != shown:
                shown = pair
                lines.append(f"  {pair[1]} minus {pair[0]}")
                lines.append(f"    {'domain':{width}}  {'difference':>10}  interval             verdict")
            it = contrast.interval
            ends = f"{it.low:+.4f} to {it.high:+.4f}"
            lines.append(f"    {contrast.domain:{width}}  {it.mean:+10.4f}  {ends}   {contrast.said}")
        return "\n".join([*lines, f"  ranking: {', '.join(self.ranking)}"])


@dataclass(frozen=True, slots=True)
class Comparison:
    """What `compare` found. `level` is that of all comparisons together; printed, it is a table."""

    mixtures: tuple[str, ...]
    level: float
    comparisons: int
    """How many share the level: pairs · domains (with their mean) · sizes."""
    sizes: tuple[AtSize, ...]

    @property
    def verdict(self) -> Verdict:
        """Whether any two of the mixtures differ in at least one domain at one size."""
        found = any(c.interval.verdict == "different" for size in self.sizes for c in size.contrasts)
        return "different" if found else "not told apart"

    @property
    def rank_held(self) -> bool | None:
        """Whether all sizes rank the mixtures alike; None where there is one size."""
        return None if len(self.sizes) < 2 else len({size.ranking for size in self.sizes}) == 1

    @property
    def caution(self) -> str:
        """What the ranking is worth, in words."""
        may = "A ranking at this scale may not transfer to larger models or more tokens."
        if self.rank_held is None:
            return f"{may} It was measured at one size: give two to see whether it holds."
        held = "is the same" if self.rank_held else "is NOT the same"
        return f"{may} Here it {held} at {len(self.sizes)} sizes."

    def __str__(self) -> str:
        head = (
            f"loss on held-out text in nats per token; intervals of {1 - self.level:.0%} for {self.comparisons} "
            "comparisons together (Bonferroni)"
        )
        return "\n".join([head, *map(str, self.sizes), f"verdict: {self.verdict}", self.caution])


def compare(
    loaders: Mapping[str, SeededLoader],
    validation: Mapping[str, Sequence[Batch]],
    config: Config | Sequence[Config],
    seeds: Sequence[int] | Sequence[Sequence[int]],
    *,
    level: float = 0.01,
    pairs: Pairs = "all",
) -> Comparison:
    """Train `config` on each mixture with each seed and return how their losses on `validation` differ.

    Args:
        loaders: mixtures by name, each a function from a seed to its loader.
        validation: held-out batches by domain, which no mixture trains on.
        config: model and budget, or several; the seed is replaced.
        seeds: at least three, all different; or such a list for each of several configurations.
        level: the probability, at most, of any "different" among mixtures that do not differ.
        pairs: which mixtures are compared; fewer pairs have narrower intervals.

    Raises:
        ConfigurationError: fewer than two mixtures, no domain, or too few seeds or repeated ones.
        TrainingError: a run diverged.
    """
    configs = (config,) if isinstance(config, Config) else tuple(config)
    by_size = [_seeds(given) for given in ([seeds] * len(configs) if not _nested(seeds) else seeds)]
    if len(loaders) < 2 or not validation or MEAN in validation:
        raise ConfigurationError(f"compare takes two mixtures and some domains, got {[*loaders]}, {[*validation]}")
    if not configs or len(by_size) != len(configs):
        raise ConfigurationError(f"compare takes a list of seeds per size, got {len(by_size)} for {len(configs)}")
    count = comparisons_of(len(loaders), len(validation), len(configs), pairs)
    sizes = [
        _at_size(loaders, validation, one, chosen, level / count, pairs)
        for one, chosen in zip(configs, by_size, strict=True)
    ]
    return Comparison(tuple(loaders), level, count, tuple(sizes))


def comparisons_of(mixtures: int, domains: int, sizes: int, pairs: Pairs) -> int:
    """Return how many comparisons share the level."""
    each = mixtures * (mixtures - 1) // 2 if pairs == "all" else mixtures - 1
    return each * (domains + (domains > 1)) * sizes


def order_seed(seed: int, place: int) -> int:
    """Return the seed of the order of data of the mixture at `place`: that of the pair for the first, others apart."""
    return seed + (place << 32)


def losses_of(loader: Loader, validation: Mapping[str, Sequence[Batch]], config: Config) -> dict[str, float]:
    """Train `config` on `loader` and return the loss on each domain, and the mean of all where there are several.

    Raises:
        TrainingError: the run diverged.
    """
    state = fit(loader, config)
    found = {name: held.loss for name, held in evaluate_sources(state.model, state.bias, validation).items()}
    return {**found, MEAN: math.fsum(found.values()) / len(found)} if len(found) > 1 else found


def _at_size(
    loaders: Mapping[str, SeededLoader],
    validation: Mapping[str, Sequence[Batch]],
    config: Config,
    seeds: Sequence[int],
    each: float,
    pairs: Pairs,
) -> AtSize:
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in loaders}
    plans: dict[str, list[str]] = {name: [] for name in loaders}
    for seed in seeds:
        for place, (name, make) in enumerate(loaders.items()):
            loader = make(order_seed(seed, place))
            plans[name].append(loader.digest)
            runs[name].append(losses_of(loader, validation, replace(config, seed=seed)))
    losses = {name: {domain: tuple(run[domain] for run in side) for domain in side[0]} for name, side in runs.items()}
    made = [pair for pair in combinations(loaders, 2) if pairs == "all" or pair[0] == next(iter(loaders))]
    contrasts = tuple(
        Contrast(first, second, domain, interval)
        for first, second in made
        for domain, interval in paired_intervals(losses[first], losses[second], each * len(losses[first])).items()
    )
    return AtSize(config, tuple(seeds), {name: tuple(found) for name, found in plans.items()}, losses, contrasts)


def _nested(seeds: Sequence[int] | Sequence[Sequence[int]]) -> bool:
    return bool(len(seeds)) and not isinstance(seeds[0], int)


def _seeds(given: object) -> tuple[int, ...]:
    seeds = tuple(given) if isinstance(given, Sequence) else ()
    if len(set(seeds)) < max(MINIMUM_SEEDS, len(seeds)):
        raise ConfigurationError(f"compare takes at least {MINIMUM_SEEDS} different seeds, got {list(seeds)}")
    return seeds
