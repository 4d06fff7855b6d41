"""The law of a ladder: published rungs, ladders of which the truth is known, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest

from curate.configuration import ConfigurationError
from trainers.evidence.scaling import ASSUMED_NOISE, Rung, fit_law, leave_one_out, measured_noise, predict

PUBLISHED = [Rung(2.650e19, (3.0154,)), Rung(1.726e20, (2.7809,)), Rung(1.381e21, (2.5638,))]
TARGET = 2.611e24


def ladder(rng, rungs, decades, seeds):
    """Return a ladder whose first rung has `seeds` runs, its compute's loss and what noise a run has."""
    least, exponent, scale = rng.uniform(1.2, 2.2), rng.uniform(0.05, 0.25), rng.uniform(0.8, 2.5)
    noise = math.exp(rng.uniform(math.log(0.001), math.log(0.01)))
    flops = 1e15 * 10.0 ** np.linspace(0, decades, rungs)

    def run(flop):
        return least + scale * (flop / 1e15) ** -exponent + noise * rng.standard_normal()

    return [Rung(f, tuple(run(f) for _ in range(1 if n else seeds))) for n, f in enumerate(flops)], run


def test_published_rungs_with_fixed_least_loss_give_the_published_forecast():
    assert fit_law(PUBLISHED, 1.5).at(TARGET) == pytest.approx(2.041, abs=0.002)
    band = predict(PUBLISHED, TARGET, irreducible=1.5)
    assert band.median == pytest.approx(2.041, abs=0.002) and band.holds(2.041)


def test_published_rungs_with_free_least_loss_give_a_band_that_says_how_little_is_known():
    band = predict(PUBLISHED, TARGET)
    assert band.holds(2.041)
    assert band.low <= 2.00 and band.high >= 2.09
    assert band.half_width > 5 * predict(PUBLISHED, TARGET, irreducible=1.5).half_width
    assert predict(PUBLISHED, TARGET, level=0.5).half_width < band.half_width


def test_law_of_losses_without_noise_is_found():
    flops = np.geomspace(1e15, 1e18, 6)
    law = fit_law([Rung(float(f), (float(1.7 + 90 * f**-0.12),)) for f in flops])
    assert (law.irreducible, law.exponent) == (pytest.approx(1.7, abs=0.01), pytest.approx(0.12, abs=0.001))
    assert law.at(1e20) == pytest.approx(1.7 + 90 * 1e20**-0.12, abs=0.003)


def test_one_wrong_rung_of_many_does_not_bend_the_curve():
    flops = [float(f) for f in np.geomspace(1e15, 1e18, 7)]
    losses = [1.7 + 90 * f**-0.12 for f in flops]
    losses[3] += 0.1
    law = fit_law([Rung(f, (loss,)) for f, loss in zip(flops, losses, strict=True)])
    assert law.at(1e19) == pytest.approx(1.7 + 90 * 1e19**-0.12, abs=0.02)


def test_bands_of_ladders_whose_truth_is_known_hold_about_four_of_five_runs():
    rng = np.random.default_rng(5)
    hits = 0
    for number in range(60):
        rungs, run = ladder(rng, 3 + number % 3, 2, seeds=3)
        flop = rungs[-1].flop * (10, 100)[number % 2]
        hits += predict(rungs, flop).holds(run(flop))
    assert 42 <= hits <= 54


def test_noise_is_pooled_over_seeds_or_assumed_and_said():
    assert not measured_noise(PUBLISHED).is_measured
    assert measured_noise(PUBLISHED).deviation == pytest.approx(ASSUMED_NOISE * 2.7867, rel=1e-3)
    rungs = [Rung(1.0, (3.0, 3.2)), Rung(10.0, (2.5, 2.5, 2.8)), Rung(100.0, (2.2,))]
    noise = measured_noise(rungs)
    assert (noise.is_measured, noise.degrees) == (True, 3)
    assert noise.deviation == pytest.approx(math.sqrt((0.02 + 0.06) / 3))
    quiet = [Rung(1.0, (3.1,)), Rung(10.0, (2.6, 2.6001)), Rung(100.0, (2.2,))]
    assert predict(quiet, 1e3).half_width < predict(rungs, 1e3).half_width


def test_rung_left_out_is_predicted_by_the_others():
    flops = [float(f) for f in np.geomspace(1e15, 1e18, 5)]
    found = leave_one_out([Rung(f, (1.7 + 90 * f**-0.12,)) for f in flops])
    assert [left.rung.flop for left in found] == flops
    assert all(left.band.holds(left.rung.loss) and abs(left.error) < 0.01 for left in found)


@pytest.mark.parametrize(
    ("rungs", "least", "said"),
    [
        (PUBLISHED[:2], None, "at least 3 rungs of different compute"),
        ([*PUBLISHED[:2], PUBLISHED[0]], None, "give the seeds of one size as one rung"),
        (PUBLISHED, 2.6, "below the lowest loss"),
    ],
)
def test_ladder_that_says_nothing_is_refused(rungs, least, said):
    for ask in (fit_law, lambda r, e: predict(r, TARGET, irreducible=e), lambda r, e: leave_one_out(r, irreducible=e)):
        with pytest.raises(ConfigurationError, match=said):
            ask(rungs, least)


def test_rung_without_a_finite_loss_is_refused():
    for flop, losses in ((0.0, (1.0,)), (1.0, ()), (1.0, (math.nan,)), (math.inf, (1.0,))):
        with pytest.raises(ConfigurationError, match="rung"):
            Rung(flop, losses)
    with pytest.raises(ConfigurationError, match="level"):
        predict(PUBLISHED, TARGET, level=1)
