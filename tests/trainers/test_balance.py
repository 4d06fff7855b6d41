from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curate.configuration import ConfigurationError
from tests.trainers.synthetic import MODEL, MarkovLoader, held_out, tiny
from tests.trainers.training import run
from trainers.balance import balanced, next_bias
from trainers.config import ExpertsConfig, flat, recipe, with_experts
from trainers.experts import Experts, Routing
from trainers.log import read_log
from trainers.model import init_bias, init_model
from trainers.quantiles import BINS, bin_of, exceeded_by, histogram
from trainers.state import arrays, digest
from trainers.train import fit
from trainers.validation import evaluate

COUNT, CHOSEN = 8, 2


def rng(*key):
    return np.random.Generator(np.random.Philox(key=list(key)))


def config(balance, rate=None):
    return replace(MODEL, layers=1, experts=ExpertsConfig(COUNT, CHOSEN, balance=balance, rate=rate))


def routed(scores, bias, balance):
    """The routing of tokens with these logits: the router passes them on as they are."""
    layer = Experts(jnp.eye(COUNT), None, None, None, None, CHOSEN, "sigmoid", balance, None)
    choice = layer.choose(jnp.asarray(scores), bias[0], jnp.ones(len(scores), bool))
    load = jnp.bincount(choice.expert.reshape(-1), length=COUNT)
    sums = jnp.int32(len(scores)), load, load * 0, choice.entropy.sum(), choice.margins
    return Routing(*(jnp.asarray(part)[None] for part in sums))


def skewed(seed, tokens=4000):
    """Logits of which some experts have larger ones for all tokens."""
    return (rng(31, seed).normal(0, 1, (tokens, COUNT)) + np.linspace(-1.5, 1.5, COUNT)).astype(np.float32)


@pytest.mark.parametrize(("balance", "steps", "reached"), [("quantile", 12, 0.05), ("sign", 60, 0.1), ("none", 3, 99)])
def test_bias_evens_out_the_load_of_skewed_scores(balance, steps, reached):
    settings, scores = config(balance), skewed(1)
    bias = jnp.zeros((1, COUNT))
    advance = jax.jit(lambda b: (next_bias(settings, b, routed(scores, b, balance)), routed(scores, b, balance)))
    violations = []
    for _ in range(steps):
        after, routing = advance(bias)
        violations.append(float(balanced(routing, bias).max_violation[0]))
        bias = after
    assert violations[0] > 1
    assert violations[-1] < reached
    assert abs(float(bias.sum())) < 1e-5
    assert balance != "none" or not bias.any()


def test_sign_update_moves_by_the_rate_towards_the_mean_load():
    load = jnp.array([[10, 30, 20, 20, 20, 20, 20, 20]])
    routing = Routing(jnp.array([80]), load, load * 0, jnp.ones(1), jnp.zeros((1, COUNT, 0), jnp.int32))
    moved = next_bias(config("sign", 0.25), jnp.zeros((1, COUNT)), routing)
    np.testing.assert_allclose(moved, [[0.25, -0.25, 0, 0, 0, 0, 0, 0]])


@pytest.mark.parametrize("balance", ["sign", "quantile"])
def test_batch_of_padding_leaves_the_bias_as_it_is(balance):
    bias = jnp.arange(COUNT, dtype=jnp.float32)[None]
    nothing = jnp.zeros((1, COUNT), jnp.int32)
    routing = Routing(jnp.zeros(1, jnp.int32), nothing, nothing, jnp.zeros(1), jnp.zeros((1, COUNT, BINS), jnp.int32))
    np.testing.assert_array_equal(next_bias(config(balance), bias, routing), bias)
    assert float(balanced(routing, bias).max_violation[0]) == 0


def test_balanced_tells_violation_entropy_and_the_norm_of_the_bias():
    load = jnp.array([[10, 30, 20, 20, 20, 20, 20, 20]])
    routing = Routing(jnp.array([80]), load, load * 0 + 3, jnp.array([40.0]), load)
    found = balanced(routing, jnp.full((1, COUNT), 2.0))
    assert float(found.max_violation[0]) == pytest.approx(0.5)
    assert float(found.entropy[0]) == pytest.approx(0.5)
    assert float(found.bias_norm) == pytest.approx(2 * COUNT**0.5)
    assert int(found.overflowed.sum()) == 3 * COUNT
    assert balanced(None, jnp.zeros((1, 0))) is None


def test_histograms_of_shards_add_up_to_that_of_the_whole():
    values, real = jnp.asarray(skewed(2, 300)), jnp.asarray(rng(31, 3).random(300) < 0.7)
    count = jax.jit(histogram)
    parts = count(values[:100], real[:100]) + count(values[100:], real[100:])
    np.testing.assert_array_equal(parts, count(values, real))
    assert parts.sum() == COUNT * real.sum()


@given(st.integers(0, 2**31 - 1), st.integers(-20, 1), st.floats(-1, 1), st.floats(0.05, 0.95))
@settings(max_examples=25)
def test_quantile_of_counts_is_that_of_the_values_to_the_width_of_a_bin(seed, exponent, shift, share):
    values = ((rng(seed, 0).normal(0, 1, (257, 1)) + shift) * 2.0**exponent).astype(np.float32)
    found = float(QUANTILE(values, share)[0])
    ordered = np.sort(values[:, 0])[::-1]
    wanted = share * len(ordered)
    near = ordered[max(0, int(wanted) - 1)], ordered[min(256, int(wanted) + 1)]
    slack = 0.13 * max(abs(near[0]), abs(near[1])) + 2.0**-23
    assert near[1] - slack <= found <= near[0] + slack


QUANTILE = jax.jit(lambda v, share: exceeded_by(histogram(v, jnp.ones(len(v), bool)), share))


def test_bins_ascend_with_the_values_and_end_at_either_side():
    values = np.array([-np.inf, -9, -1, -1e-3, -1e-9, 0.0, -0.0, 1e-9, 1e-3, 1.0, 1.2, 9, np.inf], np.float32)
    found = np.asarray(bin_of(jnp.asarray(values)))
    assert (np.diff(found) >= 0).all()
    assert (found[0], found[-1]) == (0, BINS - 1)
    assert len({*found[4:8].tolist()}) == 1
    assert found[9] < found[10]


@pytest.mark.parametrize(
    "change",
    [
        {"chosen": 1},
        {"chosen": 8},
        {"shared": -1},
        {"gate": "tanh"},
        {"balance": "loss"},
        {"rate": 0.0},
        {"capacity": 0.5},
    ],
)
def test_experts_out_of_range_are_refused(change):
    with pytest.raises(ConfigurationError):
        replace(ExpertsConfig(COUNT, CHOSEN), **change)


def test_model_of_the_dial_with_experts_has_about_as_many_parameters_for_a_token():
    dense = recipe(256, 10**8, vocabulary=100_000).model
    model = with_experts(dense, 16, 4)
    assert model.hidden == 176
    assert dense.matrix_parameters < model.active_parameters < 1.03 * dense.matrix_parameters
    assert model.vocabulary_chunk == 16_384


def test_flat_names_what_experts_are_and_leaves_out_what_is_none():
    fields = flat(config("sign", 0.5))
    assert fields["experts.balance"] == "sign"
    assert fields["experts.rate"] == "0.5"
    assert "experts.capacity" not in fields
    assert not {name for name in flat(MODEL) if name.startswith(("experts", "qk_norm", "vocabulary_chunk"))}


def test_run_with_experts_logs_their_load_and_goes_on_with_the_bias_where_it_stopped(tmp_path):
    given = replace(tiny(10), model=replace(MODEL, layers=1, experts=ExpertsConfig(4, 2)))
    run(tmp_path, config=given, steps=4)
    trained = run(tmp_path, config=given)
    assert digest(fit(MarkovLoader(), given)) == trained.digest
    lines = [line["experts"] for line in read_log(tmp_path).train]
    assert [sum(line["load"][0]) for line in lines] == [64 * 2] * 10
    assert (lines[0]["bias_norm"], lines[0]["overflowed"]) == (0, [[0] * 4])
    assert lines[-1]["bias_norm"] > 0
    assert "bias" in arrays(trained.state)
    assert trained.state.bias.shape == (1, 4)
    for line in lines:
        assert line["max_violation"][0] == pytest.approx(max(line["load"][0]) / 32 - 1)


def test_evaluation_uses_the_bias_and_does_not_change_it():
    given = replace(MODEL, layers=1, experts=ExpertsConfig(4, 2))
    model, bias = init_model(given, 0), jnp.array([[5.0, 0, 0, -5]])
    plain, steered = (evaluate(model, each, held_out(1)).loss for each in (init_bias(given), bias))
    assert plain != steered
    np.testing.assert_array_equal(bias, [[5, 0, 0, -5]])
