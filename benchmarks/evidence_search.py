"""The mixture search on real text: what the law says of mixtures that it has not seen, and what its proposal is worth.

24 mixtures of five components are tried with one seed, natural and uniform among them; the law is fitted to them. Ten
others, drawn with another seed, are then predicted and trained with two seeds, and the ranks compared. At last the
proposal and the best mixture tried are trained with the same new seeds: neither noise nor the luck of the best counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks.evidence_data import COMPONENTS
from benchmarks.evidence_power import Checks, Run, opened, train_all
from mixtures.designs import Shares, designs
from mixtures.search import Trial, propose, rank_correlation
from trainers.evidence.statistics import paired_interval

DOMAINS: Final = ("news", "wiki", "docs", "code")
TOKENS: Final = 1_000_000
"""Of the training that the mixture is meant for: with four passes the caps bind the larger shares."""

EPOCHS: Final = 4
LEVEL: Final = 0.05
COUNTS: Final = {"small": (9, 3, 3), "full": (24, 10, 6)}
"""Trials, held-out mixtures, seeds of the last comparison."""

SEEDS: Final = 2


def checks(folder: Path, size: str, pool: Executor) -> tuple[Checks, list[str]]:
    """Return checks, and the proposal in words."""
    caches = opened(folder).training
    sizes = {name: caches[name].tokens for name in COMPONENTS}
    tried, others, seeds = COUNTS[size]
    made = designs(sizes, tried, tokens=TOKENS, epochs=EPOCHS)
    unseen = designs(sizes, others + 2, tokens=TOKENS, epochs=EPOCHS, seed=1)[2:]
    found = propose(_trials(folder, made, 1, pool), sizes, tokens=TOKENS, epochs=EPOCHS)
    measured = _trials(folder, unseen, SEEDS, pool)
    predicted = [float(np.mean(list(found.law.predict(trial.weights).values()))) for trial in measured]
    correlation = rank_correlation(predicted, [trial.mean for trial in measured])
    proposed, best = (_means(folder, shares, seeds, pool) for shares in (found.weights, found.best_tried.weights))
    interval = paired_interval(best, proposed, LEVEL)
    said = f"{interval.mean:+.4f} ({interval.low:+.4f} to {interval.high:+.4f})"
    told = [str(found), f"proposed minus best tried, {seeds} new seeds: {said}"]
    return {
        f"search: rank correlation, {others} held-out mixtures": (round(correlation, 3), "≥ .7", correlation >= 0.7),
        "search: proposal minus best tried": (said, "not above 0 by more than noise", interval.low <= 0),
    }, told


def _trials(folder: Path, shares: Sequence[Shares], seeds: int, pool: Executor) -> list[Trial]:
    runs = [Run(_positive(one), seed) for one in shares for seed in range(1, seeds + 1)]
    done = train_all(folder, DOMAINS, runs, pool)
    groups = [done[at : at + seeds] for at in range(0, len(done), seeds)]
    losses = [{name: sum(run.losses[name] for run in some) / seeds for name in DOMAINS} for some in groups]
    return [Trial(one, found) for one, found in zip(shares, losses, strict=True)]


def _means(folder: Path, shares: Shares, seeds: int, pool: Executor) -> list[float]:
    runs = [Run(_positive(shares), seed) for seed in range(101, 101 + seeds)]
    return [sum(run.losses[name] for name in DOMAINS) / len(DOMAINS) for run in train_all(folder, DOMAINS, runs, pool)]


def _positive(shares: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    return tuple((name, weight) for name, weight in shares.items() if weight)
