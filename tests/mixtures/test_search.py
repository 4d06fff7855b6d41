"""Designs of weights, the law fitted to trials, the proposal, and held-out text that no mixture owns."""

import numpy as np
import pytest

from curate.configuration import ConfigurationError
from mixtures.designs import capped, designs, largest_shares
from mixtures.neutral import neutral_documents, private_sources
from mixtures.search import Trial, fit_mixing_law, propose, rank_correlation

SIZES = {"web": 400_000, "books": 900_000, "docs": 300_000, "text": 700_000, "code": 200_000}
TOKENS = 1_500_000
TRUTH = {"news": (-0.8, -0.2, -0.1, -0.3, 0.3), "code": (0.4, 0.5, 0.0, 0.4, -2.0)}


def losses_of(weights, noise=0.0, rng=None):
    shares = np.array(list(weights.values())) / 1000
    draws = {name: 0.0 if rng is None else rng.normal(0, noise) for name in TRUTH}
    return {name: float(3 + np.exp(0.3 + shares @ t) + draws[name]) for name, t in TRUTH.items()}


def trials(count=20, seed=0):
    rng = np.random.default_rng(seed)
    made = designs(SIZES, count, tokens=TOKENS, epochs=2, seed=seed)
    return [Trial(one, losses_of(one, 0.01, rng)) for one in made]


def test_designs_begin_with_natural_and_uniform_add_up_and_keep_to_the_caps():
    made = designs(SIZES, 12, tokens=TOKENS, epochs=2)
    assert made[0] == {"web": 160, "books": 360, "docs": 120, "text": 280, "code": 80}
    assert made[1] == dict.fromkeys(SIZES, 200)
    most = largest_shares(SIZES, TOKENS, 2)
    for one in made:
        assert sum(one.values()) == 1000 and min(one.values()) >= 0
        assert all(one[name] <= 1000 * cap + 1 for name, cap in zip(SIZES, most, strict=True))
    assert designs(SIZES, 12, tokens=TOKENS, epochs=2) == made
    assert designs(SIZES, 12, tokens=TOKENS, epochs=2, seed=1)[2:] != made[2:]


def test_components_of_one_size_have_one_baseline_under_both_names():
    sizes = dict.fromkeys(SIZES, 400_000)
    made = designs(sizes, 12, tokens=TOKENS, epochs=4)
    assert made[0] == dict.fromkeys(SIZES, 200) and made.count(made[0]) == 1
    found = propose([Trial(one, losses_of(one)) for one in made], sizes, tokens=TOKENS, epochs=4)
    assert found.baselines["natural"] is found.baselines["uniform"] and found.baselines["uniform"].weights == made[0]


def test_designs_lie_far_apart():
    shares = np.array([list(one.values()) for one in designs(SIZES, 12, tokens=TOKENS, epochs=2)]) / 1000
    distances = np.abs(shares[:, None] - shares[None]).sum(-1) + 9 * np.eye(12)
    assert distances.min() > 0.3


def test_caps_give_what_they_free_to_the_others_in_proportion():
    given = capped(np.array([0.6, 0.3, 0.1]), np.array([0.4, 1.0, 1.0]))
    assert given.tolist() == pytest.approx([0.4, 0.45, 0.15])
    assert capped(np.array([1.0, 0.0]), np.array([0.5, 0.5])).tolist() == pytest.approx([0.5, 0.5])


def test_law_foretells_mixtures_that_it_has_not_seen():
    law = fit_mixing_law(trials())
    unseen = designs(SIZES, 14, tokens=TOKENS, epochs=2, seed=5)[2:]
    predicted = [np.mean(list(law.predict(one).values())) for one in unseen]
    measured = [np.mean(list(losses_of(one).values())) for one in unseen]
    assert rank_correlation(predicted, measured) > 0.9
    assert np.abs(np.subtract(predicted, measured)).max() < 0.05


def test_proposal_is_as_good_as_the_best_of_many_and_keeps_to_the_caps():
    found = propose(trials(), SIZES, tokens=TOKENS, epochs=2)
    best = min(np.mean(list(losses_of(one).values())) for one in designs(SIZES, 300, tokens=TOKENS, epochs=2, seed=9))
    true = float(np.mean(list(losses_of(found.weights).values())))
    assert true < best + 0.01
    assert found.low - 0.02 < true < found.high + 0.02 and found.low <= found.predicted <= found.high
    assert found.weights["code"] <= 268 and found.rank_correlation > 0.9
    assert {*found.baselines} == {"natural", "uniform"} and "proposed: web" in str(found)
    assert found.best_tried.mean <= min(trial.mean for trial in found.baselines.values())


def test_losses_that_are_all_equal_give_no_order_and_no_failure():
    equal = [Trial(one.weights, {"news": 3.0}) for one in trials()]
    found = propose(equal, SIZES, tokens=TOKENS, epochs=2)
    assert found.predicted == pytest.approx(3.0, abs=0.01) and found.rank_correlation == pytest.approx(0, abs=1)


def test_what_cannot_be_searched_is_refused():
    with pytest.raises(ConfigurationError, match="need 8 trials at least, got 4"):
        propose(trials()[:4], SIZES, tokens=TOKENS)
    odd = [*trials(), Trial({"web": 1000}, {"news": 1.0})]
    with pytest.raises(ConfigurationError, match="all trials weigh web, books"):
        propose(odd, SIZES, tokens=TOKENS)
    with pytest.raises(ConfigurationError, match="raise epochs or shorten it"):
        designs(SIZES, 4, tokens=10 * TOKENS, epochs=2)
    with pytest.raises(ConfigurationError, match="two components"):
        designs({"web": 5}, 4, tokens=1)
    with pytest.raises(ConfigurationError, match="was fitted on"):
        fit_mixing_law(trials()).predict({"other": 1})


class Cached:
    """A cache of documents, given as (id, text digest) in one byte each."""

    def __init__(self, *documents):
        self.documents = np.array([[[identity] * 16, [text] * 16] for identity, text in documents], np.uint8)

    def __len__(self):
        return len(self.documents)

    def ids(self, start, stop):
        return self.documents[start:stop, 0]

    def text_digests(self):
        return self.documents[:, 1]


def test_neutral_text_is_of_no_private_source_and_trained_on_by_nobody_as_document_or_text():
    private = private_sources([{"web", "books"}, {"web", "code"}])
    assert private == {"books", "code"} and private_sources([]) == frozenset()
    held = {"web": Cached((1, 1), (2, 2), (3, 3), (4, 4))}
    training = [{"a": Cached((2, 90))}, {"b": Cached((91, 3))}]
    sources = {bytes([4] * 16): "books"}
    (found,) = neutral_documents(held, training, sources.get, private).values()
    assert (found.documents, found.private, found.trained) == ((0,), 1, 2)
