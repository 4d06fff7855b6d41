"""Mixtures to try: the natural one, the uniform one, and weights that fill the space between, under caps on repeats.

Weights are thousandths that add up to 1,000, so that a `Phase` takes them as they are. Further ones are drawn from
Dirichlet distributions around the natural and the uniform mixture, of several concentrations (Liu et al. 2024,
"RegMix", §3.1), and chosen one by one to be farthest from those that are there (maximin). Cost: 64 candidates a design.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from curate.configuration import ConfigurationError
from mixtures.weights import Number, exact

WHOLE: Final = 1_000
NATURAL: Final = "natural"
UNIFORM: Final = "uniform"
CANDIDATES: Final = 64
CONCENTRATIONS: Final = (0.5, 1.0, 2.0, 5.0)
"""Of Dirichlet distributions, as multiples of the number of components: from corners to near their centre."""

Shares = Mapping[str, int]
"""Component → thousandths."""


def designs(sizes: Mapping[str, int], count: int, *, tokens: int, epochs: Number = 4, seed: int = 0) -> list[Shares]:
    """Return `count` mixtures of components of `sizes` tokens: the natural one, the uniform one, then further ones.

    Where natural and uniform are the same, it is there once.

    Args:
        sizes: component → its tokens.
        count: at least 2.
        tokens: of the training that they are meant for.
        epochs: the most passes over a component in it.
        seed: of the draws.

    Raises:
        ConfigurationError: fewer than two components or designs, or too few tokens for the caps.
    """
    if len(sizes) < 2 or count < 2:
        raise ConfigurationError(f"designs take two components and two designs at least, got {len(sizes)}, {count}")
    most = largest_shares(sizes, tokens, epochs)
    drawn = candidates(sizes, CANDIDATES * count, most, np.random.default_rng(seed))
    natural, uniform = baselines(sizes, most).values()
    chosen = [natural, uniform] if thousandths(natural, sizes) != thousandths(uniform, sizes) else [natural]
    distance = np.min([np.abs(drawn - one).sum(1) for one in chosen], axis=0)
    while len(chosen) < count:
        chosen.append(drawn[int(distance.argmax())])
        distance = np.minimum(distance, np.abs(drawn - chosen[-1]).sum(1))
    return [thousandths(one, sizes) for one in chosen]


def baselines(sizes: Mapping[str, int], most: npt.NDArray[np.float64]) -> dict[str, npt.NDArray[np.float64]]:
    """Return the shares of the natural and of the uniform mixture by name, under the caps `most`."""
    natural = np.array(list(sizes.values())) / sum(sizes.values())
    return {NATURAL: capped(natural, most), UNIFORM: capped(np.full(len(sizes), 1 / len(sizes)), most)}


def candidates(
    sizes: Mapping[str, int], count: int, most: npt.NDArray[np.float64], rng: np.random.Generator
) -> npt.NDArray[np.float64]:
    """Return `count` shares under the caps `most`, one mixture a row."""
    natural = np.array(list(sizes.values())) / sum(sizes.values())
    centres = (natural, np.full(len(sizes), 1 / len(sizes)))
    rows = []
    for at in range(count):
        concentration = CONCENTRATIONS[at // 2 % len(CONCENTRATIONS)] * len(sizes)
        rows.append(capped(rng.dirichlet(np.maximum(centres[at % 2] * concentration, 1e-3)), most))
    return np.array(rows)


def largest_shares(sizes: Mapping[str, int], tokens: int, epochs: Number) -> npt.NDArray[np.float64]:
    """Return the largest share of each component that repeats it `epochs` times at most in `tokens` tokens.

    Raises:
        ConfigurationError: all components together are too few.
    """
    passes = float(exact(epochs, "epochs"))
    most = np.minimum(np.array(list(sizes.values())) * passes / tokens, 1.0)
    if most.sum() < 1:
        raise ConfigurationError(
            f"{epochs} passes over all components are {int(sum(sizes.values()) * passes):,} tokens, the training has "
            f"{tokens:,}: raise epochs or shorten it"
        )
    return most


def capped(shares: npt.NDArray[np.float64], most: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return `shares` with none above `most`; what that frees goes to the others in proportion, as `AtMost` does."""
    result, held = shares.copy(), np.zeros(len(shares), bool)
    while (over := (result > most + 1e-12) & ~held).any():
        held |= over
        free = 1 - most[held].sum()
        rest = np.where(held, 0.0, shares)
        rest = rest if rest.sum() > 0 else np.where(held, 0.0, most)
        result = np.where(held, most, rest * free / rest.sum() if rest.sum() > 0 else rest)
    return result


def thousandths(shares: npt.NDArray[np.float64], names: Sequence[str] | Mapping[str, int]) -> dict[str, int]:
    """Return `shares` in thousandths by name, rounded by largest remainder."""
    exactly = shares / shares.sum() * WHOLE
    floors = np.floor(exactly).astype(int)
    for place in np.argsort(floors - exactly, kind="stable")[: WHOLE - int(floors.sum())]:
        floors[place] += 1
    return dict(zip(names, floors.tolist(), strict=True))
