"""Comparisons of real mixtures: how often A against A is called different, and junk found, against what was stated.

A is the main texts of web articles; B is A with 0, 5, 10 or 30 % of the tokens replaced by junk (`evidence_data`). A
pilot on seeds of its own gives mean and variance of the paired differences. Drawn from what it leaves open about them
(normal-inverse-Wishart, Gelman et al., "Bayesian data analysis", §3.6), 2,000 repetitions of what follows state
beforehand in how many of 20 comparisons each share of junk will be found, with the interval that holds 95 % of them.
Then 20 fixed sets of 12 seeds, drawn from 60, are compared with each share at level 1 %, on news and encyclopedia text
together. A seed's run is made once and serves all sets that it is in; the processor time of a comparison is that of
its runs. Runs go to processes of one thread each.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from benchmarks.evidence_data import NEUTRAL, Corpora, open_corpora
from curate.caches.cache import TokenCache
from mixtures import Chunks, Loader, Mixture, Phase
from trainers.batches import pack
from trainers.config import Config, ModelConfig, OptimizerConfig
from trainers.evidence.compare import losses_of, order_seed
from trainers.evidence.statistics import paired_intervals

LENGTH: Final = 64
BATCH: Final = 4
STEPS: Final = 128
HELD_OUT_TOKENS: Final = 8_192
LEVEL: Final = 0.01
DOMAINS: Final = ("+".join(NEUTRAL),)
"""One domain of both neutral texts: one comparison, which has the whole level."""

SHARES: Final = (5, 10, 30)
"""Per cent of junk."""

PILOT_SEED: Final = 50_000
MINUTES: Final = 15.0

Checks = dict[str, tuple[Any, str, bool]]


@dataclass(frozen=True, slots=True)
class Run:
    """A run to make: weights of components in per cent, its seed, and its place among the sides of a pair."""

    weights: tuple[tuple[str, int], ...]
    seed: int
    place: int = 0


@dataclass(frozen=True, slots=True)
class Done:
    """Losses by domain, and seconds of processor time."""

    losses: Mapping[str, float]
    seconds: float


@dataclass(frozen=True, slots=True)
class Size:
    """How much is measured: sets of seeds, seeds in a set, seeds that they are drawn from, and those of the pilot."""

    sets: int = 20
    seeds: int = 12
    pool: int = 60
    pilot: int = 12

    @property
    def drawn(self) -> npt.NDArray[np.int64]:
        """The sets: places in the pool, one set a row."""
        rng = np.random.default_rng(20)
        return np.array([rng.choice(self.pool, self.seeds, replace=False) for _ in range(self.sets)])


SIZES: Final = {"small": Size(2, 3, 5, 4), "full": Size()}


def config(vocabulary: int) -> Config:
    """Return the model of all runs: 2 layers of width 64, 32,768 tokens."""
    model = ModelConfig(vocabulary=vocabulary, width=64, layers=2, heads=2, kv_heads=1, hidden=192)
    optimizer = OptimizerConfig(learning_rate=0.01, warmup=8, decay=32)
    return Config(model, optimizer, steps=STEPS, batch=BATCH, length=LENGTH)


@lru_cache(maxsize=1)
def opened(folder: Path) -> Corpora:
    """Return the caches in `folder`, opened once a process."""
    return open_corpora(folder)


def validation(found: Corpora, names: Sequence[str]) -> dict[str, Any]:
    """Return held-out batches by domain; "news+wiki" is one of both texts."""
    return {
        name: pack([text for one in name.split("+") for text in _first(found.held[one])], 64, LENGTH) for name in names
    }


def _first(cache: TokenCache) -> Iterator[npt.NDArray[np.integer]]:
    left = HELD_OUT_TOKENS
    for document in range(len(cache)):
        yield cache[document][:left]
        if (left := left - len(cache[document])) <= 0:
            return


def train(folder: Path, names: tuple[str, ...], run: Run) -> Done:
    """Make one run and return its losses on the held-out texts `names`."""
    found = opened(folder)
    weights = dict(run.weights)
    caches = {name: found.training[name] for name in weights}
    tokens = STEPS * BATCH * LENGTH
    mixture = Mixture(
        None, Phase("main", tokens, weights), sequences=Chunks(LENGTH), repeats=None, rare="round up", batch=BATCH
    )
    plan = replace(mixture.compile(caches), seed=order_seed(run.seed, run.place))
    begun = time.process_time()
    losses = losses_of(Loader(plan, caches), validation(found, names), replace(config(found.vocabulary), seed=run.seed))
    return Done(losses, time.process_time() - begun)


def train_all(folder: Path, names: tuple[str, ...], runs: Sequence[Run], pool: Executor) -> list[Done]:
    """Make all runs in the processes of `pool`."""
    count = len(runs)
    return list(pool.map(train, [folder] * count, [names] * count, runs, chunksize=2))


def processes(workers: int) -> Executor:
    """Return a pool of `workers` fresh processes; each compiles the model once."""
    return ProcessPoolExecutor(workers, get_context("spawn"))


def mixed(share: int) -> tuple[tuple[str, int], ...]:
    """Return the weights of a mixture with `share` per cent of junk."""
    return (("web", 100 - share), ("junk", share)) if share else (("web", 100),)


def checks(folder: Path, size: Size, pool: Executor) -> tuple[Checks, list[str]]:
    """Return checks and lines that say what was stated and what was found."""
    stated = _stated(folder, size, pool)
    told = [f"stated before: {share} % junk is found in {s.power:.0%} of comparisons" for share, s in stated.items()]
    clean, others = _measured(folder, size, pool)
    found, seconds = {}, []
    for share, side in others.items():
        pairs = [([clean[at] for at in one], [side[at] for at in one]) for one in size.drawn.tolist()]
        found[share] = sum(_differ(*pair) for pair in pairs)
        seconds += [sum(run.seconds for runs in pair for run in runs) for pair in pairs]
    result: Checks = {"A against A, called different": (found[0], f"≤ 1 of {size.sets}", found[0] <= 1)}
    for share, one in stated.items():
        bound = f"{one.fewest} to {one.most} of {size.sets} (power {one.power:.2f})"
        result[f"{share} % junk, found"] = (found[share], bound, one.fewest <= found[share] <= one.most)
        told.append(f"{share} % junk: found in {found[share]} of {size.sets}; asked {bound}")
    minutes = max(seconds) / 60
    result["CPU-minutes of a comparison"] = (round(minutes, 2), f"≤ {MINUTES:g}", minutes <= MINUTES)
    return result, told


def _differ(first: Sequence[Done], second: Sequence[Done]) -> bool:
    sides = ({domain: [run.losses[domain] for run in side] for domain in side[0].losses} for side in (first, second))
    return any(interval.verdict == "different" for interval in paired_intervals(*sides, LEVEL).values())


@dataclass(frozen=True, slots=True)
class Stated:
    """What the pilot says: the power of a comparison, and between how many of the sets will find the difference."""

    power: float
    fewest: int
    most: int


def _stated(folder: Path, size: Size, pool: Executor) -> dict[int, Stated]:
    """Return what the pilot says of each share of junk."""
    seeds = range(PILOT_SEED, PILOT_SEED + size.pilot)
    runs = [Run(mixed(share), seed, int(share > 0)) for share in (0, *SHARES) for seed in seeds]
    done = train_all(folder, DOMAINS, runs, pool)
    losses = np.array([[run.losses[name] for name in DOMAINS] for run in done]).reshape(-1, size.pilot, len(DOMAINS))
    return {share: foretold(side - losses[0], size) for share, side in zip(SHARES, losses[1:], strict=True)}


def foretold(differences: npt.NDArray[np.float64], size: Size, series: int = 2_000) -> Stated:
    """Return what pilot `differences` (seed, domain) say of comparisons of `size`."""
    rng = np.random.default_rng(13)
    count, domains = differences.shape
    spread = np.atleast_2d(np.cov(differences.T, bias=True)) * count
    comparisons = domains + (domains > 1)
    edge = float(stdtrit(size.seeds - 1, 1 - LEVEL / comparisons / 2))
    sets, found = size.drawn, np.zeros(series, np.int64)
    for at in range(series):
        made = rng.standard_normal((count - 1, domains)) @ np.linalg.cholesky(np.linalg.inv(spread)).T
        covariance = np.linalg.inv(made.T @ made)
        mean = rng.multivariate_normal(differences.mean(0), covariance / count)
        drawn = rng.multivariate_normal(mean, covariance, size.pool)[sets]
        drawn = np.concatenate([drawn, drawn.mean(-1, keepdims=True)], -1)[..., :comparisons]
        t = drawn.mean(1) / (drawn.std(1, ddof=1) / math.sqrt(size.seeds))
        found[at] = int((abs(t) > edge).any(-1).sum())
    fewest, most = np.quantile(found, [0.025, 0.975])
    return Stated(float(found.mean()) / size.sets, int(fewest), math.ceil(most))


def _measured(folder: Path, size: Size, pool: Executor) -> tuple[list[Done], dict[int, list[Done]]]:
    """Return the runs of A, and of B by share, on all seeds."""
    seeds = range(1, size.pool + 1)
    shares = (0, *SHARES)
    runs = [Run(mixed(0), seed) for seed in seeds] + [Run(mixed(s), seed, 1) for s in shares for seed in seeds]
    done = train_all(folder, DOMAINS, runs, pool)
    count = len(seeds)
    return done[:count], {share: done[(at + 1) * count : (at + 2) * count] for at, share in enumerate(shares)}
