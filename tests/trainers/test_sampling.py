from dataclasses import replace

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curate.configuration import ConfigurationError
from tests.trainers.synthetic import MODEL, VOCABULARY, sequences, tiny
from trainers.config import ExpertsConfig
from trainers.model import init_bias, init_model
from trainers.sampling import Sampling, draw, sample
from trainers.saved import Saved
from trainers.step import on_device

LOGITS = np.log(np.array([0.1, 0.4, 0.2, 0.25, 0.05]))


def share(sampling, draws=4000):
    """How often each token is drawn."""
    return np.bincount([draw(LOGITS, sampling, number) for number in range(draws)], minlength=5) / draws


def test_tokens_are_drawn_as_often_as_their_probabilities_say():
    np.testing.assert_allclose(share(Sampling(seed=3)), np.exp(LOGITS), atol=0.03)
    squared = np.exp(2 * LOGITS) / np.exp(2 * LOGITS).sum()
    np.testing.assert_allclose(share(Sampling(temperature=0.5)), squared, atol=0.03)


def test_top_k_and_top_p_leave_the_likeliest_with_their_proportions():
    np.testing.assert_allclose(share(Sampling(top_k=2)), [0, 0.4 / 0.65, 0, 0.25 / 0.65, 0], atol=0.03)
    np.testing.assert_allclose(share(Sampling(top_p=0.66)), [0, 0.4 / 0.85, 0.2 / 0.85, 0.25 / 0.85, 0], atol=0.03)
    np.testing.assert_allclose(share(Sampling(top_p=0.01), 50), [0, 1, 0, 0, 0])
    np.testing.assert_allclose(share(Sampling(temperature=0), 50), [0, 1, 0, 0, 0])


@given(st.integers(0, 2**64 - 1), st.integers(0, 1000), st.floats(0, 5), st.integers(1, 9), st.floats(0.01, 1))
@settings(max_examples=50)
def test_draw_is_the_same_again_and_among_the_likeliest(seed, number, temperature, top_k, top_p):
    sampling = Sampling(temperature, top_k, top_p, seed)
    token = draw(LOGITS, sampling, number)
    assert token == draw(LOGITS, sampling, number)
    assert token in np.argsort(-LOGITS)[:top_k]


@pytest.mark.parametrize(
    "change",
    [{"temperature": -1.0}, {"top_k": 0}, {"top_p": 0.0}, {"top_p": 1.5}, {"seed": -1}, {"temperature": np.nan}],
)
def test_sampling_out_of_range_is_refused(change):
    with pytest.raises(ConfigurationError):
        Sampling(**change)


@pytest.fixture(scope="module")
def untrained():
    """A model with experts that nothing trained, of sequences of 16 tokens."""
    model = replace(MODEL, layers=1, experts=ExpertsConfig(4, 2))
    return Saved(replace(tiny(), model=model), init_model(model, 1), init_bias(model), 0, "", "")


def test_sample_is_what_logits_of_the_text_so_far_give_and_its_beginning_is_the_shorter_one(untrained):
    drawn = list(sample(untrained, [3, 4], 9, Sampling(seed=5)))
    assert drawn[:4] == list(sample(untrained, [3, 4], 4, Sampling(seed=5)))
    assert drawn != list(sample(untrained, [3, 4], 9, Sampling(seed=6)))
    inputs = on_device(sequences(np.array([[3, 4, *drawn] + [0] * 5], np.int32)))
    forward = jax.jit(lambda model, bias: model(inputs.tokens, inputs.segments, inputs.positions, bias))
    logits = forward(untrained.model, untrained.bias)[0]
    assert drawn == [draw(np.asarray(logits[place + 1], np.float64), Sampling(seed=5), place) for place in range(9)]


def test_sample_goes_on_beyond_the_length_of_sequences_and_ends_where_told(untrained):
    drawn = list(sample(untrained, [1], 40, Sampling(seed=1)))
    assert len(drawn) == 40
    stop = drawn[20]
    assert list(sample(untrained, [1], 40, Sampling(seed=1), {stop})) == drawn[: drawn.index(stop)]


def test_prompt_that_is_empty_or_of_other_tokens_is_refused(untrained):
    for prompt in ([], [VOCABULARY], [-1]):
        with pytest.raises(ConfigurationError, match="at least one token"):
            list(sample(untrained, prompt, 1, Sampling()))
