"""Loss as a power of compute, fitted to a few runs, and how far it may be off when it is extrapolated.

    L(C) = E + A · C^-α        C: floating-point operations of training; E: what no compute takes away

The curve is fitted as in Hoffmann et al. 2022, "Training compute-optimal large language models", §3.3 and appendix
D.3: Huber loss (δ = 10^-3) on log residuals, by L-BFGS from a grid of starts. Its interval is the posterior predictive
one over E (uniform from -l to l, l the lowest loss), α (uniform in its logarithm), A (uniform) and the variance of a
run (1/σ²), so the uncertainty of E is in it, which three or four rungs hardly fix. In the interval E may be negative,
which no loss can be for ever: rungs of few tokens get steeper with size, and an interval that leans on E ≥ 0 then is
narrow and wrong (docs/log.md). Residuals count together with the noise between seeds of a rung; where no rung has two
seeds, a noise is assumed and said.

Pure arithmetic on numbers, no clock and no randomness. Cost: some milliseconds an interval, some 50 a curve.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from curate.configuration import ConfigurationError

Floats = npt.NDArray[np.float64]
_Cells = tuple[Floats, Floats, Floats, Floats]

MINIMUM_RUNGS: Final = 3
"""Fewer rungs than the law has unknowns say nothing of it."""

LEVEL: Final = 0.8
"""Part of all outcomes that a band shall hold."""

ASSUMED_NOISE: Final = 0.002
"""Standard deviation between seeds, as part of the loss, where it was not measured (our runs: .001 to .004)."""

ASSUMED_DEGREES: Final = 4
"""Degrees of freedom that an assumed noise counts as."""

EXPONENTS: Final = 0.005, 1.5
"""The exponents α that are thought possible; published ones lie from .05 to .5."""

_DELTA: Final = 1e-3
_DESCENTS: Final = 4
_E_CELLS: Final = 120
_NODES: Final = np.sinh(np.linspace(-3.0, 3.0, 17))
_T_POINTS: Final = (np.arange(32) + 0.5) / 32
_SMALLEST: Final = 1e-12


@dataclass(frozen=True, slots=True)
class Rung:
    """Runs of one size: their compute in floating-point operations, and the loss of each seed in nats per token."""

    flop: float
    losses: tuple[float, ...]

    def __post_init__(self) -> None:
        """Check that the numbers can be fitted.

        Raises:
            ConfigurationError: no compute, no loss, or a loss that is not finite and positive.
        """
        if not (math.isfinite(self.flop) and self.flop > 0 and self.losses):
            raise ConfigurationError(f"a rung has a positive compute and a loss or more, got {self}")
        if not all(math.isfinite(loss) and loss > 0 for loss in self.losses):
            raise ConfigurationError(f"losses of a rung are finite and positive, got {self.losses}")

    @property
    def loss(self) -> float:
        """The mean over seeds."""
        return math.fsum(self.losses) / len(self.losses)


@dataclass(frozen=True, slots=True)
class Noise:
    """The standard deviation between runs that differ in the seed alone, its degrees of freedom, and its origin."""

    deviation: float
    degrees: int
    is_measured: bool


@dataclass(frozen=True, slots=True)
class Law:
    """L(C) = `irreducible` + `scale` · C^-`exponent`."""

    irreducible: float
    scale: float
    exponent: float

    def at(self, flop: float) -> float:
        """Return the loss at `flop`."""
        return self.irreducible + self.scale * math.pow(flop, -self.exponent)


@dataclass(frozen=True, slots=True)
class Band:
    """An interval that shall hold the loss of one more run with probability `level`, and its median."""

    low: float
    median: float
    high: float
    level: float

    def holds(self, loss: float) -> bool:
        """Return whether `loss` lies in it."""
        return self.low <= loss <= self.high

    @property
    def half_width(self) -> float:
        """Half of high - low."""
        return (self.high - self.low) / 2


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A rung that was left out, and the band that the others give at its compute."""

    rung: Rung
    band: Band

    @property
    def error(self) -> float:
        """(median - loss) / loss."""
        return (self.band.median - self.rung.loss) / self.rung.loss


def measured_noise(rungs: Sequence[Rung]) -> Noise:
    """Return the noise between seeds, pooled over rungs; `ASSUMED_NOISE` of the mean loss where none has two."""
    squares = math.fsum((loss - rung.loss) ** 2 for rung in rungs for loss in rung.losses)
    degrees = sum(len(rung.losses) - 1 for rung in rungs)
    if degrees:
        return Noise(math.sqrt(squares / degrees), degrees, True)
    mean = math.fsum(rung.loss for rung in rungs) / len(rungs)
    return Noise(ASSUMED_NOISE * mean, ASSUMED_DEGREES, False)


def fit_law(rungs: Sequence[Rung], irreducible: float | None = None) -> Law:
    """Return the law nearest to the mean losses of `rungs`; `irreducible` fixes E.

    Raises:
        ConfigurationError: fewer than three rungs of different compute, or E is not below every loss.
    """
    from scipy.optimize import minimize  # dear to import, and whoever reads a forecast fits nothing

    flop, loss = _arrays(rungs, MINIMUM_RUNGS, irreducible)
    centre = _centre(flop)
    compute = np.log(flop) - centre
    objective = _huber_objective(compute, np.log(loss), irreducible)
    starts = sorted((objective(start)[0], tuple(start.tolist())) for start in _starts(compute, loss, irreducible))
    bounds = [(None, None), EXPONENTS] if irreducible is not None else [(None, None), EXPONENTS, (None, None)]
    ends = [
        minimize(objective, np.array(start), method="L-BFGS-B", jac=True, bounds=bounds, options={"maxiter": 200})
        for _, start in starts[:_DESCENTS]
    ]
    best = min(ends, key=lambda end: float(end.fun)).x
    exponent = float(best[1])
    least = irreducible if irreducible is not None else math.exp(float(best[2]))
    return Law(least, math.exp(float(best[0]) + exponent * centre), exponent)


def predict(rungs: Sequence[Rung], flop: float, *, level: float = LEVEL, irreducible: float | None = None) -> Band:
    """Return the interval of the loss of one run of compute `flop`, given those of `rungs`.

    Raises:
        ConfigurationError: as `fit_law`, or `level` is not between 0 and 1.
    """
    return _predict(rungs, flop, level, irreducible, MINIMUM_RUNGS, measured_noise(rungs))


def leave_one_out(
    rungs: Sequence[Rung], *, level: float = LEVEL, irreducible: float | None = None
) -> tuple[LeftOut, ...]:
    """Return for each rung the band that the others give for it, with the noise of all.

    With three rungs the two that are left fix no E: these bands are wide, as they must be.

    Raises:
        ConfigurationError: as `predict`.
    """
    _arrays(rungs, MINIMUM_RUNGS, irreducible)
    noise = measured_noise(rungs)
    return tuple(
        LeftOut(
            rung,
            _predict([*rungs[:at], *rungs[at + 1 :]], rung.flop, level, irreducible, MINIMUM_RUNGS - 1, noise),
        )
        for at, rung in enumerate(rungs)
    )


def _arrays(rungs: Sequence[Rung], least: int, irreducible: float | None) -> tuple[Floats, Floats]:
    flop = np.array([rung.flop for rung in rungs], np.float64)
    loss = np.array([rung.loss for rung in rungs], np.float64)
    if len(set(flop.tolist())) < max(least, len(rungs)):
        raise ConfigurationError(
            f"a forecast needs at least {least} rungs of different compute, got {sorted(flop.tolist())}: "
            "train more sizes, and give the seeds of one size as one rung"
        )
    if irreducible is not None and not 0 <= irreducible < loss.min():
        raise ConfigurationError(f"E = {irreducible} must lie from 0 to below the lowest loss, {loss.min()}")
    return flop, loss


def _centre(flop: Floats) -> float:
    """Return the mean logarithm: around it A and α are nearly uncorrelated."""
    return float(np.log(flop).mean())


def _starts(compute: Floats, loss: Floats, irreducible: float | None) -> list[Floats]:
    """Return points (log A at the centre, α, log E) over a grid of E and α, A by least squares."""
    levels = np.linspace(0.05, 0.95, 10) * loss.min() if irreducible is None else np.array([irreducible])
    starts = []
    for least in levels.tolist():
        for exponent in np.geomspace(0.01, 1.0, 12).tolist():
            shape = np.exp(-exponent * compute)
            scale = max(float(shape @ (loss - least) / (shape @ shape)), _SMALLEST)
            start = [math.log(scale), exponent]
            starts.append(np.array(start if irreducible is not None else [*start, math.log(least)]))
    return starts


def _huber_objective(
    compute: Floats, log_loss: Floats, irreducible: float | None
) -> Callable[[Floats], tuple[float, Floats]]:
    """Return the function from (log A, α, log E) to the Huber losses' sum and gradient; a fixed E is left out."""
    fixed = None if irreducible is None else math.log(max(irreducible, _SMALLEST))

    def objective(point: Floats) -> tuple[float, Floats]:
        reducible, least = point[0] - point[1] * compute, point[2] if fixed is None else fixed
        said = np.logaddexp(reducible, least)
        share = np.exp(reducible - said)
        residual = (said - log_loss) / _DELTA
        size = np.abs(residual)
        slope = np.clip(residual, -1, 1) / _DELTA
        gradient = [float(slope @ share), float(-slope @ (share * compute)), float(slope @ (1 - share))]
        value = float(np.where(size <= 1, size * size / 2, size - 0.5).sum())
        return value, np.array(gradient[: len(point)])

    return objective


def _predict(
    rungs: Sequence[Rung], flop: float, level: float, irreducible: float | None, least: int, noise: Noise
) -> Band:
    if not 0 < level < 1:
        raise ConfigurationError(f"the level of a band lies between 0 and 1, got {level}")
    if not (math.isfinite(flop) and flop > 0):
        raise ConfigurationError(f"compute is positive, got {flop}")
    flops, loss = _arrays(rungs, least, irreducible)
    centre = _centre(flops)
    seeds = np.array([len(rung.losses) for rung in rungs], np.float64)
    posterior = _Posterior(np.log(flops) - centre, loss, seeds, noise)
    if irreducible is not None:
        cells = posterior.cells(np.array([irreducible]))
    else:
        bottom = -float(loss.min())
        cells = posterior.cells(_middles(bottom, -bottom))
        heavy = np.flatnonzero(cells[0].sum(axis=1) > 1e-6 * cells[0].sum())
        width = -2 * bottom / _E_CELLS
        cells = posterior.cells(_middles(bottom + heavy[0] * width, bottom + (heavy[-1] + 1) * width))
    low, median, high = _quantiles(posterior, cells, math.log(flop) - centre, ((1 - level) / 2, 0.5, (1 + level) / 2))
    return Band(low, median, high, level)


def _middles(low: float, high: float) -> Floats:
    return low + (np.arange(_E_CELLS) + 0.5) / _E_CELLS * (high - low)


@dataclass(frozen=True, slots=True)
class _Posterior:
    """The posterior over (E, α), A and σ integrated out, on a ridge of cells: for each E the α around its best."""

    compute: Floats
    loss: Floats
    seeds: Floats
    noise: Noise

    @property
    def degrees(self) -> int:
        """Degrees of freedom given E and α."""
        return len(self.loss) - 1 + self.noise.degrees

    def fitted(self, irreducible: Floats, exponent: Floats) -> tuple[Floats, Floats, Floats]:
        """Return A at the centre, the sum of squares of its shape, and all squares (noise and residuals)."""
        shape = np.exp(-exponent[..., None] * self.compute)
        rest = self.loss - irreducible[..., None]
        size = (self.seeds * shape * shape).sum(-1)
        scale = (self.seeds * shape * rest).sum(-1) / size
        residual = (self.seeds * (rest - scale[..., None] * shape) ** 2).sum(-1)
        return scale, size, residual + self.noise.degrees * self.noise.deviation**2 + _SMALLEST

    def cells(self, irreducible: Floats) -> _Cells:
        """Return weight, E, α and all squares of each cell, shape (E, nodes)."""
        exponent = self._best_exponents(irreducible)
        step = 1e-3 * exponent
        at = [self.fitted(irreducible, exponent + k * step)[2] for k in (-1, 0, 1)]
        curvature = np.maximum((at[0] - 2 * at[1] + at[2]) / step**2, _SMALLEST)
        width = np.sqrt(2 * at[1] / (self.degrees * curvature))
        nodes = np.clip(exponent[:, None] + width[:, None] * _NODES, *EXPONENTS)
        _, size, squares = self.fitted(irreducible[:, None], nodes)
        span = np.gradient(nodes, axis=1)
        log_weight = -0.5 * np.log(size) - 0.5 * self.degrees * np.log(squares) - np.log(nodes)
        weight = np.exp(log_weight - log_weight.max()) * span
        return weight, np.broadcast_to(irreducible[:, None], nodes.shape), nodes, squares

    def _best_exponents(self, irreducible: Floats) -> Floats:
        """Return the α with the smallest residuals for each E, by three zooms of a grid."""
        low, high = (np.full(irreducible.shape, math.log(end)) for end in EXPONENTS)
        for _ in range(4):
            parts = np.linspace(0.0, 1.0, 25)
            grid = low[:, None] + parts * (high - low)[:, None]
            best = self.fitted(irreducible[:, None], np.exp(grid))[2].argmin(axis=1)
            rows = np.arange(len(grid))
            low, high = grid[rows, np.maximum(best - 1, 0)], grid[rows, np.minimum(best + 1, 24)]
        return np.asarray(np.exp((low + high) / 2))


def _quantiles(posterior: _Posterior, cells: _Cells, compute: float, levels: Sequence[float]) -> list[float]:
    """Return quantiles of the loss at `compute`: a mixture of Student's t over the cells, each as 32 points."""
    from scipy.special import stdtrit

    weight, irreducible, exponent, squares = cells
    keep = weight > 1e-5 * weight.max()
    scale, size, _ = posterior.fitted(irreducible[keep], exponent[keep])
    shape = np.exp(-exponent[keep] * compute)
    place = irreducible[keep] + scale * shape
    spread = np.sqrt(squares[keep] / posterior.degrees * (1 + shape * shape / size))
    points = (place[:, None] + spread[:, None] * stdtrit(posterior.degrees, _T_POINTS)).ravel()
    mass = np.repeat(weight[keep] / len(_T_POINTS), len(_T_POINTS))
    order = np.argsort(points, kind="stable")
    below = np.cumsum(mass[order]) - mass[order] / 2
    return [float(value) for value in np.interp(np.array(levels) * mass.sum(), below, points[order])]
