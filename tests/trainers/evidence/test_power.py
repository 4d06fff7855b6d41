import math

import numpy as np
import pytest

from trainers.evidence.power import detectable, noise_of, power
from trainers.evidence.statistics import paired_interval


def test_power_is_the_rate_at_which_the_interval_leaves_zero():
    rng = np.random.default_rng(3)
    for difference in (0.0, 0.6, 1.2, 2.0):
        draws = rng.normal(difference, 1.0, (4000, 5))
        found = sum(paired_interval([0.0] * 5, row, 0.02, 2).verdict == "different" for row in draws) / len(draws)
        stated = power(difference, 1.0, 5, 0.02, 2)
        assert abs(found - stated) < 4 * math.sqrt(max(stated * (1 - stated), 0.002) / len(draws)), difference


def test_power_grows_with_difference_and_seeds_and_shrinks_with_comparisons():
    assert power(0, 1, 6, 0.01) == pytest.approx(0.01)
    assert power(-1, 1, 6, 0.01) == power(1, 1, 6, 0.01) < power(2, 1, 6, 0.01) < power(2, 1, 9, 0.01)
    assert power(2, 1, 6, 0.01, comparisons=5) < power(2, 1, 6, 0.01)
    assert power(1e6, 1, 6, 0.01) == 1.0


@pytest.mark.parametrize("seeds", [3, 5, 20])
def test_detectable_difference_is_found_with_the_power_that_it_was_asked_for(seeds):
    least = detectable(0.02, seeds, 0.01, 4)
    assert power(least, 0.02, seeds, 0.01, 4) == pytest.approx(0.8, abs=0.01)


def test_noise_covers_the_deviation_that_made_it_eight_times_in_ten():
    rng = np.random.default_rng(5)
    made = [noise_of(rng.normal(0, 0.3, 4).tolist()) for _ in range(1000)]
    assert 0.75 < sum(noise.low <= 0.3 <= noise.high for noise in made) / 1000 < 0.85
    assert made[0].low < made[0].deviation < made[0].high and made[0].pairs == 4


def test_numbers_that_say_nothing_are_refused():
    for wrong in ([], [math.nan]):
        with pytest.raises(ValueError, match="noise is measured"):
            noise_of(wrong)
    for seeds, noise in ((1, 1.0), (3, 0.0)):
        with pytest.raises(ValueError, match="at least 2 seeds"):
            power(1, noise, seeds, 0.01)
