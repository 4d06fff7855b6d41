import pytest

from curate.configuration import ConfigurationError
from tests.trainers.synthetic import MarkovLoader, held_out, tiny
from trainers.evidence.compare import MEAN
from trainers.evidence.pilot import Cost, _affordable_steps, measured_noise, plan_comparison
from trainers.evidence.power import power

DOMAINS = {"markov": held_out(2), "other": held_out(2, salt=7)}


def sizes(steps):
    return [tiny(steps)]


def good(seed):
    return MarkovLoader(seed)


def test_plan_states_noise_and_what_will_be_found_and_keeps_to_the_budget():
    planned = plan_comparison({"a": good, "b": good}, DOMAINS, sizes, most_steps=16, budget=60)
    assert planned.configs[0].steps == 16 and 3 <= len(planned.seeds) <= 20
    assert planned.spent + planned.expected <= 60
    assert set(planned.noise) == {"markov", "other", MEAN} and planned.comparisons == 3
    for name, least in planned.detectable.items():
        noise = planned.noise[name].deviation
        assert power(least, noise, len(planned.seeds), 0.01, 3) == pytest.approx(0.8, abs=0.01)
    assert "before the comparison" in str(planned) and "found with probability 0.8" in str(planned)


def test_steps_are_halved_until_the_seeds_are_affordable_and_a_budget_too_small_says_what_is_needed():
    costs = [Cost(1.0, 0.0, 0.0)]
    assert _affordable_steps(costs, 64, mixtures=2, seeds=5, budget=1210, spent=10) == 64
    assert _affordable_steps(costs, 64, mixtures=2, seeds=5, budget=610, spent=10) == 32
    with pytest.raises(ConfigurationError, match=r"leaves 0\.8 .* 8 steps with 5 seeds take 2\.4: make it 3 or more"):
        _affordable_steps(costs, 64, mixtures=2, seeds=5, budget=60, spent=10)


def test_loader_that_ignores_its_seed_has_no_noise_and_is_refused():
    with pytest.raises(ConfigurationError, match="its loader ignores seeds"):
        measured_noise(lambda seed: MarkovLoader(1), DOMAINS, sizes(16)[0], pairs=1)
