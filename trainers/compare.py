"""Comparing two mixtures: the same small model, seeds and budget on both, losses on held-out text that neither owns.

Only this tells whether a filter helps. Runs are paired: seed s gives both sides the same initial parameters, and each
side its own order of data. Cost: 2 · seeds runs of the configuration.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from curate.configuration import ConfigurationError
from trainers.batches import Batch, Loader
from trainers.config import Config
from trainers.statistics import Interval, Verdict, paired_intervals
from trainers.train import fit
from trainers.validation import evaluate_sources

SeededLoader = Callable[[int], Loader]
"""Gives the loader of a mixture for a seed (of the order of its data)."""

MINIMUM_SEEDS = 3
"""With two seeds the interval is so wide (63 standard errors at 1 %) that nothing is ever told apart."""


@dataclass(frozen=True, slots=True)
class Domain:
    """One held-out domain: the losses of both sides by seed, and the interval of their difference."""

    name: str
    first: tuple[float, ...]
    second: tuple[float, ...]
    interval: Interval


@dataclass(frozen=True, slots=True)
class Comparison:
    """What `compare` found. `level` is that of all domains together; printed, it is a table."""

    first: str
    second: str
    plans: tuple[tuple[str, str], ...]
    """Digests of both plans, by seed."""
    seeds: tuple[int, ...]
    level: float
    domains: tuple[Domain, ...]

    @property
    def verdict(self) -> Verdict:
        """Whether the two mixtures differ in at least one domain."""
        return "different" if any(d.interval.verdict == "different" for d in self.domains) else "not told apart"

    def __str__(self) -> str:
        width = max(len("domain"), *(len(domain.name) for domain in self.domains))
        lines = [
            f"{self.second} minus {self.first}, loss on held-out text in nats per token, {len(self.seeds)} paired "
            f"seeds; intervals of {1 - self.level:.0%} for {len(self.domains)} domains together (Bonferroni)",
            f"{'domain':{width}}  {'difference':>10}  interval             verdict",
        ]
        for domain in self.domains:
            it = domain.interval
            lines.append(
                f"{domain.name:{width}}  {it.mean:+10.4f}  {it.low:+.4f} to {it.high:+.4f}   {_said(self, domain)}"
            )
        return "\n".join([*lines, f"verdict: {self.verdict}"])


def compare(
    loaders: Mapping[str, SeededLoader],
    validation: Mapping[str, Sequence[Batch]],
    config: Config,
    seeds: Sequence[int],
    *,
    level: float = 0.01,
) -> Comparison:
    """Train `config` on both mixtures with each seed and return how their losses on `validation` differ.

    Args:
        loaders: two mixtures by name, each a function from a seed to its loader.
        validation: held-out batches by domain, which neither mixture trains on.
        config: model and budget; its seed is replaced.
        seeds: at least three, all different.
        level: the probability, at most, of "different" for two mixtures that do not differ.

    Raises:
        ConfigurationError: not two mixtures, no domain, or too few seeds or repeated ones.
        TrainingError: a run diverged.
    """
    if len(loaders) != 2 or not validation:
        raise ConfigurationError(f"compare takes two mixtures and some domains, got {[*loaders]}, {[*validation]}")
    if len(set(seeds)) < max(MINIMUM_SEEDS, len(seeds)):
        raise ConfigurationError(f"compare takes at least {MINIMUM_SEEDS} different seeds, got {list(seeds)}")
    (first, make_first), (second, make_second) = loaders.items()
    plans: list[tuple[str, str]] = []
    losses: tuple[list[dict[str, float]], list[dict[str, float]]] = ([], [])
    for seed in seeds:
        pair = make_first(seed), make_second(seed)
        plans.append((pair[0].digest, pair[1].digest))
        for side, loader in zip(losses, pair, strict=True):
            side.append(_losses(loader, validation, replace(config, seed=seed)))
    by_domain = [{name: tuple(run[name] for run in side) for name in validation} for side in losses]
    intervals = paired_intervals(by_domain[0], by_domain[1], level)
    domains = tuple(Domain(name, by_domain[0][name], by_domain[1][name], intervals[name]) for name in intervals)
    return Comparison(first, second, tuple(plans), tuple(seeds), level, domains)


def _losses(loader: Loader, validation: Mapping[str, Sequence[Batch]], config: Config) -> dict[str, float]:
    state = fit(loader, config)
    return {name: result.loss for name, result in evaluate_sources(state.model, state.bias, validation).items()}


def _said(comparison: Comparison, domain: Domain) -> str:
    if domain.interval.verdict == "not told apart":
        return "not told apart"
    return f"{comparison.first if domain.interval.mean > 0 else comparison.second} is better"
