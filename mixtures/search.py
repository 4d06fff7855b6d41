"""Weights from small runs: a mixing law fitted to trials, and the mixture that it says is best, with what is uncertain.

The law is the exponential of Ye et al. 2024, "Data mixing laws", §3: the loss on domain i is c + exp(Σⱼ tⱼ wⱼ) for
shares w (Σ w = 1, so the intercept is in t). For each c of a grid below the lowest loss, t follows from ridge
regression of log(loss - c); c is the one whose leave-one-out errors, in nats, are least. What trials of this size leave
open is shown by fits to resampled trials (bootstrap). As in RegMix (Liu et al. 2024, §3.3) the proposal is the mean of
the best of many candidates, here those with the lowest mean + deviation over the fits: where nothing was tried the
fits disagree. Repeats of up to four passes are nearly as good as new text (Muennighoff et al. 2023), so small runs,
which repeat less, are taken as they are and the caps of the training itself bound the candidates.

Cost: milliseconds a fit of 30 trials; seconds a proposal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from scipy.stats import rankdata

from curate.configuration import ConfigurationError
from mixtures.designs import WHOLE, Shares, baselines, candidates, capped, largest_shares, thousandths
from mixtures.weights import Number

Floats = npt.NDArray[np.float64]

RIDGE: Final = 1e-3
GRID: Final = np.geomspace(0.02, 3.0, 24)
"""Distances of c below the lowest loss, as multiples of the range of the losses."""

RESAMPLES: Final = 40
CANDIDATES: Final = 4_000
BEST: Final = 32
"""Candidates whose mean is proposed."""

FEWEST: Final = 3
"""Trials that a fit needs beyond the number of components."""

TRUSTED: Final = 0.7
"""Rank correlation below which the law tells mixtures apart too badly to believe a proposal."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A mixture that was tried (thousandths by component), and its losses by held-out domain, in nats per token."""

    weights: Shares
    losses: Mapping[str, float]

    @property
    def mean(self) -> float:
        """The mean loss over domains."""
        return sum(self.losses.values()) / len(self.losses)


@dataclass(frozen=True, slots=True)
class MixingLaw:
    """The fitted law of each domain: loss = c + exp(t · shares)."""

    components: tuple[str, ...]
    domains: Mapping[str, tuple[float, Floats]]

    def predict(self, weights: Mapping[str, Number]) -> dict[str, float]:
        """Return the loss of a mixture on each domain.

        Raises:
            ConfigurationError: it names other components than the trials did.
        """
        if set(weights) - set(self.components):
            raise ConfigurationError(f"the law was fitted on {', '.join(self.components)}, not on {', '.join(weights)}")
        given = np.array([float(weights.get(name, 0)) for name in self.components])
        return {name: float(c + np.exp(given / given.sum() @ t)) for name, (c, t) in self.domains.items()}

    def means(self, shares: Floats) -> Floats:
        """Return the mean loss over domains of each row of `shares`."""
        losses: Floats = np.mean([c + np.exp(shares @ t) for c, t in self.domains.values()], axis=0)
        return losses


@dataclass(frozen=True, slots=True)
class Proposal:
    """The mixture that the law says is best. Losses are means over domains; `low` to `high` holds 80 % of the fits."""

    weights: Shares
    predicted: float
    low: float
    high: float
    best_tried: Trial
    baselines: Mapping[str, Trial]
    """The natural and the uniform mixture, where they were tried."""
    rank_correlation: float
    """Between the trials' losses and what the law says of each from the others (Spearman)."""
    law: MixingLaw

    def __str__(self) -> str:
        shares = ", ".join(f"{name} {weight / 10:g} %" for name, weight in self.weights.items())
        lines = [
            f"proposed: {shares}",
            f"  predicted mean loss {self.predicted:.4f}, {self.low:.4f} to {self.high:.4f} in 80 % of the fits",
            f"  best tried {self.best_tried.mean:.4f}: "
            + ", ".join(f"{name} {weight / 10:g} %" for name, weight in self.best_tried.weights.items()),
            *(f"  {name} {trial.mean:.4f}" for name, trial in self.baselines.items()),
            f"  rank correlation of predicted and measured loss, each trial from the others: "
            f"{self.rank_correlation:.2f}",
        ]
        return "\n".join(lines)


def propose(
    trials: Sequence[Trial], sizes: Mapping[str, int], *, tokens: int, epochs: Number = 4, seed: int = 0
) -> Proposal:
    """Return the mixture of components of `sizes` tokens that is predicted to have the lowest mean loss over domains.

    Args:
        trials: mixtures that were tried.
        sizes: component → its tokens.
        tokens: of the training that the mixture is for.
        epochs: the most passes over a component in it.
        seed: of candidates and resampling.

    Raises:
        ConfigurationError: too few trials, trials of other components or domains, or caps that cannot be kept.
    """
    _check(trials, sizes)
    rng = np.random.default_rng(seed)
    most = largest_shares(sizes, tokens, epochs)
    law = fit_mixing_law(trials)
    fits = [law, *(fit_mixing_law(some) for some in _resampled(trials, rng))]
    tried = [capped(row, most) for row in shares_of(trials, law.components)]
    drawn = np.concatenate([candidates(sizes, CANDIDATES, most, rng), np.array(tried)])
    for _ in range(2):  # candidates, then others near the best of them
        scores = np.array([fit.means(drawn) for fit in fits])
        best = drawn[np.argsort(scores.mean(0) + scores.std(0), kind="stable")[:BEST]]
        near = np.abs(np.repeat(best, 8, axis=0) * rng.normal(1, 0.15, (8 * BEST, best.shape[1])))
        drawn = np.concatenate([best, np.array([capped(row / row.sum(), most) for row in near])])
    weights = thousandths(capped(best.mean(0), most), law.components)
    said = np.array([np.mean(list(fit.predict(weights).values())) for fit in fits])
    low, high = np.quantile(said, [0.1, 0.9])
    predicted = [
        fit_mixing_law([*trials[:at], *trials[at + 1 :]]).predict(one.weights) for at, one in enumerate(trials)
    ]
    correlation = rank_correlation([float(np.mean(list(p.values()))) for p in predicted], [t.mean for t in trials])
    least = min(trials, key=lambda trial: trial.mean)
    known = {name: thousandths(shares, law.components) for name, shares in baselines(sizes, most).items()}
    found = {name: trial for name, shares in known.items() for trial in trials if trial.weights == shares}
    return Proposal(weights, float(said[0]), float(low), float(high), least, found, correlation, law)


def fit_mixing_law(trials: Sequence[Trial]) -> MixingLaw:
    """Return the law fitted to `trials`, each domain on its own.

    Raises:
        ConfigurationError: no trial.
    """
    if not trials:
        raise ConfigurationError("a mixing law is fitted to trials, and there is none")
    components = tuple(trials[0].weights)
    shares = shares_of(trials, components)
    domains = {}
    for domain in trials[0].losses:
        losses = np.array([trial.losses[domain] for trial in trials])
        domains[domain] = min((_fitted(shares, losses, float(gap)) for gap in GRID), key=lambda fit: fit[0])[1:]
    return MixingLaw(components, domains)


def shares_of(trials: Sequence[Trial], components: Sequence[str]) -> Floats:
    """Return the shares of `trials`, one a row."""
    return np.array([[trial.weights.get(name, 0) for name in components] for trial in trials], float) / WHOLE


def fewest_trials(components: int) -> int:
    """Return how many trials a proposal for so many components takes at least."""
    return components + FEWEST


def rank_correlation(predicted: Sequence[float], measured: Sequence[float]) -> float:
    """Return Spearman's rank correlation; 0 where all of one side are equal."""
    ranks = np.array([rankdata(predicted), rankdata(measured)])
    if np.ptp(ranks[0]) == 0 or np.ptp(ranks[1]) == 0:
        return 0.0
    return float(np.corrcoef(ranks)[0, 1])


def _fitted(shares: Floats, losses: Floats, gap: float) -> tuple[float, float, Floats]:
    """Return the squared leave-one-out error in nats, c and t of the law whose c is `gap` ranges below all losses."""
    c = float(losses.min()) - gap * (float(np.ptp(losses)) or 1e-3)
    height = np.log(losses - c)
    middle = height.mean()
    inverse = np.linalg.inv(shares.T @ shares + RIDGE * np.eye(shares.shape[1]))
    t = inverse @ shares.T @ (height - middle) + middle  # shares add up to 1: a constant is the same in every t
    leverage = np.einsum("ij,jk,ik->i", shares, inverse, shares)
    left_out = height - (height - shares @ t) / np.maximum(1 - leverage, 1e-3)
    error = float(np.square(np.exp(np.minimum(left_out, 50.0)) + c - losses).sum())
    return error, c, t


def _resampled(trials: Sequence[Trial], rng: np.random.Generator) -> list[list[Trial]]:
    return [[trials[at] for at in rng.integers(0, len(trials), len(trials))] for _ in range(RESAMPLES)]


def _check(trials: Sequence[Trial], sizes: Mapping[str, Any]) -> None:
    if len(trials) < fewest_trials(len(sizes)):
        raise ConfigurationError(
            f"{len(sizes)} components need {fewest_trials(len(sizes))} trials at least, got {len(trials)}"
        )
    for trial in trials:
        if list(trial.weights) != list(sizes) or set(trial.losses) != set(trials[0].losses) or not trial.losses:
            raise ConfigurationError(
                f"a trial of {', '.join(trial.weights)} with losses on {', '.join(trial.losses) or 'nothing'}: all "
                f"trials weigh {', '.join(sizes)}, in this order, and have losses on the same domains"
            )
