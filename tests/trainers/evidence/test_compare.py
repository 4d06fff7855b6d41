from dataclasses import replace

import numpy as np
import pytest

from curate.configuration import ConfigurationError
from tests.trainers.synthetic import MarkovLoader, held_out, tiny
from trainers.config import ModelConfig
from trainers.evidence.compare import MEAN, AtSize, Comparison, Contrast, compare
from trainers.evidence.statistics import Interval

DOMAINS = {"markov": held_out(2), "other": held_out(2, salt=7)}
CONFIG = tiny(24)
SMALL = replace(CONFIG, steps=16)


def good(seed):
    return MarkovLoader(seed)


def noisy(seed):
    return MarkovLoader(seed, jumps=0.9)


def half(seed):
    return MarkovLoader(seed, jumps=0.5)


def test_worse_mixture_is_told_apart_where_it_is_worse():
    found = compare({"good": good, "noisy": noisy}, DOMAINS, CONFIG, seeds=[1, 2, 3, 4])
    (size,) = found.sizes
    markov = {contrast.domain: contrast for contrast in size.contrasts}["markov"]
    assert found.verdict == markov.interval.verdict == "different"
    assert markov.interval.low > 0
    differences = np.subtract(size.losses["noisy"]["markov"], size.losses["good"]["markov"])
    assert markov.interval.mean == pytest.approx(np.mean(differences))
    assert (size.plans["good"][0], size.plans["noisy"][0]) == ("markov 1 0.1 5", f"markov {1 + (1 << 32)} 0.9 5")
    assert found.comparisons == 3 and MEAN in size.losses["good"]
    assert "good is better" in str(found) and "Bonferroni" in str(found) and "may not transfer" in str(found)


def test_three_mixtures_at_two_sizes_are_ranked_at_both_and_every_pair_shares_the_level():
    found = compare({"noisy": noisy, "good": good, "half": half}, DOMAINS, [SMALL, CONFIG], seeds=[1, 2, 3])
    assert [size.ranking for size in found.sizes] == [("good", "half", "noisy")] * 2
    assert found.rank_held and "is the same at 2 sizes" in str(found)
    assert found.comparisons == 3 * 3 * 2 == sum(len(size.contrasts) for size in found.sizes)
    fewer = compare(
        {"noisy": noisy, "good": good, "half": half}, DOMAINS, SMALL, seeds=[1, 2, 3], pairs="with the first"
    )
    assert {contrast.first for contrast in fewer.sizes[0].contrasts} == {"noisy"} and fewer.comparisons == 6
    wide, narrow = (one.sizes[0].contrasts[0].interval for one in (found, fewer))
    assert wide.mean == narrow.mean and wide.high - wide.low > narrow.high - narrow.low


def test_mixture_against_itself_is_called_different_at_most_once_in_twenty_seed_sets():
    verdicts = []
    for number in range(20):
        seeds = [10 * number + each for each in range(4)]
        found = compare({"one": good, "other": good}, DOMAINS, SMALL, seeds, level=0.01)
        assert all(contrast.interval.mean != 0 for contrast in found.sizes[0].contrasts)
        verdicts.append(found.verdict)
    assert verdicts.count("different") <= 1


@pytest.mark.parametrize(
    "changed",
    [
        {"loaders": {"one": good}},
        {"validation": {}},
        {"validation": {MEAN: DOMAINS["markov"]}},
        {"seeds": [1, 2]},
        {"seeds": [1, 1, 2]},
        {"seeds": [[1, 2, 3], [1, 2, 3]]},
    ],
)
def test_comparison_that_says_nothing_is_refused(changed):
    arguments = {"loaders": {"a": good, "b": noisy}, "validation": DOMAINS, "config": CONFIG, "seeds": [1, 2, 3]}
    with pytest.raises(ConfigurationError, match="compare takes"):
        compare(**(arguments | changed))


def test_seed_of_the_configuration_is_replaced():
    ours = compare({"a": good, "b": noisy}, DOMAINS, replace(SMALL, seed=7), seeds=[1, 2, 3])
    theirs = compare({"a": good, "b": noisy}, DOMAINS, SMALL, seeds=[1, 2, 3])
    assert ours.sizes[0].losses == theirs.sizes[0].losses


def test_mixtures_that_differ_in_one_of_two_domains_are_different_and_ranks_that_turn_are_told():
    apart, alike = Interval(0.5, 0.4, 0.6, "different"), Interval(0.0, -0.1, 0.1, "not told apart")
    contrasts = (Contrast("a", "b", "books", apart), Contrast("a", "b", "code", alike))
    losses = {"a": {"books": (1.0,)}, "b": {"books": (2.0,)}}
    size = AtSize(CONFIG, (1, 2, 3), {}, losses, contrasts)
    turned = replace(size, losses={"a": losses["b"], "b": losses["a"]}, contrasts=contrasts[1:])
    both = Comparison(("a", "b"), 0.01, 2, (size, turned))
    assert both.verdict == "different"
    assert not both.rank_held and "is NOT the same" in both.caution
    assert replace(both, sizes=(turned,)).verdict == "not told apart"
    assert replace(both, sizes=(turned,)).rank_held is None


def test_sizes_are_told_by_their_width():
    model = ModelConfig(vocabulary=32, width=16, layers=2, heads=4, kv_heads=2, hidden=24)
    size = AtSize(
        replace(CONFIG, model=model),
        (1,),
        {},
        {"a": {"x": (1.0,)}},
        (Contrast("a", "b", "x", Interval(0, 0, 0, "not told apart")),),
    )
    assert str(size).startswith("width 16, 2 layers, 1,536 tokens, 1 paired seeds")
