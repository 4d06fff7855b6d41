"""Trials of a mixture search: the same small model on each mixture of a design, losses by held-out domain.

Seed s gives every mixture the same initial parameters, so that what two trials differ by is mostly their data. Cost:
mixtures · seeds runs of the configuration.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from curate.ablations import MEAN
from curate.caches.cache import TokenCache
from mixtures.designs import Shares
from mixtures.loader import Loader
from mixtures.mixture import Mixture, Phase
from mixtures.search import Trial
from mixtures.sequences import Chunks, Sequences
from trainers.batches import Batch
from trainers.config import Config
from trainers.evidence.compare import losses_of

DEFAULT_SEQUENCES = Chunks(512)


def run_trials(
    caches: Mapping[str, TokenCache],
    tried: Sequence[Shares],
    validation: Mapping[str, Sequence[Batch]],
    config: Config,
    *,
    seeds: int = 1,
    sequences: Sequences = DEFAULT_SEQUENCES,
    told: Callable[[str], None] = lambda line: None,
) -> list[Trial]:
    """Train `config` on each mixture of `tried` with each of `seeds` seeds; losses are means over them.

    Args:
        caches: component → its tokens.
        tried: weights of the components, as `mixtures.designs.designs` gives them.
        validation: held-out batches by domain, which no component holds.
        config: model and budget; its seed is replaced.
        seeds: of parameters and order.
        sequences: how token streams are cut; of the length of `config`.
        told: is given a line per trial.

    Raises:
        ConfigurationError: a mixture cannot be compiled from these caches.
        TrainingError: a run diverged.
    """
    trials = []
    for number, weights in enumerate(tried, 1):
        runs = []
        for seed in range(1, seeds + 1):
            loader = trial_loader(caches, weights, config, sequences, seed)
            runs.append(losses_of(loader, validation, replace(config, seed=seed)))
        losses = {domain: sum(run[domain] for run in runs) / seeds for domain in runs[0] if domain != MEAN}
        trials.append(Trial(weights, losses))
        shares = ", ".join(f"{name} {weight / 10:g} %" for name, weight in weights.items())
        told(f"trial {number} of {len(tried)}: {trials[-1].mean:.4f}  {shares}")
    return trials


def trial_loader(
    caches: Mapping[str, TokenCache], weights: Shares, config: Config, sequences: Sequences, seed: int
) -> Loader:
    """Return the loader of a trial: one phase of as many tokens as `config` reads, in the order of `seed`.

    Raises:
        ConfigurationError: the mixture cannot be compiled from these caches.
    """
    tokens = config.steps * config.batch * config.length
    phase = Phase("trial", tokens, weights)
    mixture = Mixture(None, phase, sequences=sequences, repeats=None, rare="round up", batch=config.batch, seed=seed)
    return Loader(mixture.compile(caches), caches)
