from dataclasses import replace

import numpy as np
import pytest

from curate.configuration import ConfigurationError
from tests.trainers.synthetic import MarkovLoader, held_out, tiny
from trainers.compare import Comparison, Domain, compare
from trainers.statistics import Interval

DOMAINS = {"markov": held_out(2), "other": held_out(2, salt=7)}
CONFIG = tiny(24)


def good(seed):
    return MarkovLoader(seed)


def noisy(seed):
    return MarkovLoader(seed, jumps=0.9)


def test_worse_mixture_is_told_apart_where_it_is_worse():
    found = compare({"good": good, "noisy": noisy}, DOMAINS, CONFIG, seeds=[1, 2, 3, 4])
    markov = {domain.name: domain for domain in found.domains}["markov"]
    assert found.verdict == markov.interval.verdict == "different"
    assert markov.interval.low > 0
    assert markov.interval.mean == pytest.approx(np.mean(np.subtract(markov.second, markov.first)))
    assert found.plans[0] == ("markov 1 0.1 5", "markov 1 0.9 5")
    assert "good is better" in str(found)
    assert "Bonferroni" in str(found)


def test_mixture_against_itself_in_the_same_order_differs_by_nothing():
    found = compare({"one": good, "other": good}, DOMAINS, CONFIG, seeds=[1, 2, 3])
    assert found.verdict == "not told apart"
    assert all(domain.first == domain.second for domain in found.domains)


def test_mixture_against_itself_in_other_orders_is_called_different_at_most_once_in_twenty_seed_sets():
    verdicts = []
    for number in range(20):
        seeds = [10 * number + each for each in range(4)]
        sides = {"one": good, "other": lambda seed: good(seed + 1000)}
        found = compare(sides, DOMAINS, CONFIG, seeds, level=0.01)
        assert any(domain.interval.mean != 0 for domain in found.domains)
        verdicts.append(found.verdict)
    assert verdicts.count("different") <= 1


@pytest.mark.parametrize(
    "changed",
    [
        {"loaders": {"one": good}},
        {"validation": {}},
        {"seeds": [1, 2]},
        {"seeds": [1, 1, 2]},
    ],
)
def test_comparison_that_says_nothing_is_refused(changed):
    arguments = {"loaders": {"a": good, "b": noisy}, "validation": DOMAINS, "config": CONFIG, "seeds": [1, 2, 3]}
    with pytest.raises(ConfigurationError, match="compare takes"):
        compare(**(arguments | changed))


def test_seed_of_the_configuration_is_replaced():
    ours = compare({"a": good, "b": noisy}, DOMAINS, replace(CONFIG, seed=7), seeds=[1, 2, 3])
    assert ours == compare({"a": good, "b": noisy}, DOMAINS, CONFIG, seeds=[1, 2, 3])


def test_mixtures_that_differ_in_one_of_two_domains_are_different():
    apart, alike = Interval(0.5, 0.4, 0.6, "different"), Interval(0.0, -0.1, 0.1, "not told apart")
    domains = [Domain("books", (), (), apart), Domain("code", (), (), alike)]
    both = Comparison("a", "b", (), (1, 2, 3), 0.01, tuple(domains))
    assert both.verdict == "different"
    assert str(both).count("not told apart") == 1
    assert replace(both, domains=tuple(domains[1:])).verdict == "not told apart"
