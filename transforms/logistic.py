"""Logistic regression on sparse integer features: trained to the same bits everywhere, evaluated in integers.

Training is AdaGrad (Duchi, Hazan, Singer 2011) with one example at a time, in 64-bit floats of which only additions,
multiplications, divisions and square roots are used, each in a fixed order: IEEE 754 rounds these correctly, so they
are the same on any CPU; the logistic function comes from a table made with decimal arithmetic. Then weights and bias
are rounded to units of 2^-20, and from there on there are integers only: the log-odds of a text are

    bias + ⌊256 · Σ weight · value / ⌊256 · √squares⌋⌋         in units of 2^-20

Invariants: the same examples in the same order give the same weights; a text's log-odds depend on it and the model
alone. The rounding changes log-odds by less than 2^-12 for texts of up to 10^5 features.
Cost: some 10 ns per feature and epoch; 12 bytes per bucket while training.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Context, Decimal
from functools import lru_cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from transforms.kernels import kernel
from transforms.segmentation import Positions
from transforms.text_features import Buckets, Features, Values

Floats = npt.NDArray[np.float64]
Weights = npt.NDArray[np.int32]
Integers = npt.NDArray[np.int64]

UNIT_BITS: Final = 20
UNIT: Final = 1 << UNIT_BITS
MILLI: Final = 1000
"""Scores are log-odds in thousandths."""
MOST: Final = 32_000
"""Largest score of a model, in thousandths: odds of e^32, about 10^14, to 1."""

_STEPS: Final = 64  # of the table per unit of log-odds
_REACH: Final = 30
_MOST_WEIGHT: Final = float((1 << 31) - 1)
_DECIMALS: Final = Context(prec=30)


@dataclass(frozen=True, slots=True)
class Descent:
    """How weights are found.

    Attributes:
        epochs: passes over the examples.
        rate: step of a weight that moves for the first time, in log-odds.
        decay: share of a weight that goes whenever its feature is seen.
    """

    epochs: int = 6
    rate: float = 0.5
    decay: float = 1e-6

    def __post_init__(self) -> None:
        if self.epochs < 1 or self.rate <= 0 or not 0 <= self.decay < 1:
            raise ValueError(f"{self}: at least one epoch, a positive rate, and a decay from 0 to below 1")


DESCENT: Final = Descent()


@dataclass(frozen=True, slots=True)
class Linear:
    """Weights and bias in units of 2^-20."""

    weights: Weights
    bias: int


def train(
    examples: Callable[[int], Iterable[tuple[Features, npt.NDArray[np.int8], Floats]]], bits: int, descent: Descent
) -> Linear:
    """Return the model of examples: `examples(epoch)` gives batches of features, labels (0 or 1) and importances."""
    weights, squares, bias = np.zeros(1 << bits), np.zeros(1 << bits), np.zeros(2)
    table = _logistic()
    for epoch in range(descent.epochs):
        for batch, labels, importance in examples(epoch):
            given = (batch.offsets, batch.buckets, batch.values, batch.squares, labels, importance)
            _descend(*given, weights, squares, bias, table, descent.rate, descent.decay)
    return Linear(_rounded(weights).astype(np.int32), int(_rounded(bias)[0]))


def log_odds(model: Linear, features: Features) -> Integers:
    """Return the log-odds of each text in units of 2^-20."""
    return _log_odds(
        features.offsets, features.buckets, features.values, features.squares, model.weights, np.int64(model.bias)
    )


def to_milli(odds: Integers, parts: Integers) -> Integers:
    """Return scores in thousandths of sums of log-odds over `parts` windows: their mean, rounded, within ±`MOST`."""
    scores = (2 * MILLI * odds + parts * UNIT) // (2 * UNIT * parts)
    return np.asarray(np.clip(scores, -MOST, MOST), np.int64)


@lru_cache(maxsize=1 << 16)
def probability(score: int) -> int:
    """Return the probability, in millionths, that belongs to a score in thousandths: 1 / (1 + e^-score), rounded."""
    power = _DECIMALS.exp(Decimal(-score) / MILLI)
    return int((Decimal(1_000_000) / (1 + power)).quantize(Decimal(1), context=_DECIMALS))


@lru_cache(maxsize=1 << 16)
def score_of(millionths: int) -> int:
    """Return the score in thousandths of a probability in millionths, which counts as 1 to 999,999."""
    share = min(max(millionths, 1), 999_999)
    odds = _DECIMALS.ln(Decimal(share) / Decimal(1_000_000 - share))
    return int((odds * MILLI).quantize(Decimal(1), context=_DECIMALS))


@lru_cache(maxsize=1)
def _logistic() -> Floats:
    """Return 1 / (1 + e^-x) at x = -30, -30 + 1/64, … 30, each the float next to the true value."""
    places = range(-_REACH * _STEPS, _REACH * _STEPS + 1)
    table = np.array([float(1 / (1 + _DECIMALS.exp(Decimal(-place) / _STEPS))) for place in places])
    table.flags.writeable = False
    return table


def _rounded(values: Floats) -> npt.NDArray[Any]:
    return np.clip(np.floor(values * UNIT + 0.5), -_MOST_WEIGHT, _MOST_WEIGHT).astype(np.int64)


@kernel
def _descend(
    offsets: Positions,
    buckets: Buckets,
    values: Values,
    squares: Positions,
    labels: npt.NDArray[np.int8],
    importance: Floats,
    weights: Floats,
    gradients: Floats,
    bias: Floats,
    table: Floats,
    rate: float,
    decay: float,
) -> None:
    """One pass over examples. `gradients` has the sum of squared gradients of each weight, bias[1] that of bias[0]."""
    for t in range(len(squares)):
        if squares[t] == 0:
            continue
        length = np.sqrt(np.float64(squares[t]))
        total = 0.0
        for at in range(offsets[t], offsets[t + 1]):
            total += weights[buckets[at]] * np.float64(values[at])
        odds = min(max(total / length + bias[0], -29.0), 29.0)
        place = (odds + 30.0) * 64.0
        cell = np.int64(place)
        share = place - np.float64(cell)
        chance = table[cell] + (table[cell + 1] - table[cell]) * share
        slope = (chance - np.float64(labels[t])) * importance[t]
        bias[1] += slope * slope
        if bias[1] > 0.0:
            bias[0] -= rate * slope / np.sqrt(bias[1])
        for at in range(offsets[t], offsets[t + 1]):
            bucket = buckets[at]
            step = slope * np.float64(values[at]) / length
            gradients[bucket] += step * step
            if gradients[bucket] > 0.0:
                kept = weights[bucket] - weights[bucket] * decay
                weights[bucket] = kept - rate * step / np.sqrt(gradients[bucket])


@kernel
def _root(value: np.int64) -> np.int64:
    """Return ⌊√value⌋, exactly, for 0 ≤ value < 2^62."""
    root = np.int64(np.sqrt(np.float64(value)))
    while root * root > value:
        root -= 1
    while (root + 1) * (root + 1) <= value:
        root += 1
    return root


@kernel
def _log_odds(
    offsets: Positions, buckets: Buckets, values: Values, squares: Positions, weights: Weights, bias: np.int64
) -> Integers:
    odds = np.empty(len(squares), np.int64)
    for t in range(len(squares)):
        total = np.int64(0)
        for at in range(offsets[t], offsets[t + 1]):
            total += np.int64(weights[buckets[at]]) * np.int64(values[at])
        length = _root(squares[t] << 16)
        odds[t] = bias + ((total << 8) // length if length else 0)
    return odds
