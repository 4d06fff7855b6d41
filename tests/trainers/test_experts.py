from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainers.experts import Experts, _block_size
from trainers.layers import SwiGLU

COUNT, CHOSEN, EMBED, HIDDEN = 5, 2, 8, 6
SHAPE = (3, 40)


def rng(*key):
    return np.random.Generator(np.random.Philox(key=list(key)))


def normal(number, *shape, scale=1.0):
    return jnp.asarray(rng(17, number).normal(0, scale, shape).astype(np.float32))


def experts(capacity=None, gate="sigmoid", balance="quantile"):
    matrices = [normal(n, *shape, scale=0.5) for n, shape in enumerate([(COUNT, EMBED, HIDDEN)] * 2)]
    down, shared = normal(3, COUNT, HIDDEN, EMBED), SwiGLU(*(normal(n, EMBED, EMBED, scale=0.3) for n in (4, 5, 6)))
    return Experts(normal(7, EMBED, COUNT), *matrices, down, shared, CHOSEN, gate, balance, capacity)


X, BIAS = normal(8, *SHAPE, EMBED), normal(9, COUNT, scale=0.3)
REAL = jnp.asarray(rng(17, 10).random(SHAPE) < 0.8)
ALL = jnp.ones(SHAPE, bool)


def dense(layer, x, bias, real, kept=None):
    """The sum over all experts, with weight 0 for those not chosen (and those not `kept`: token, choice)."""
    tokens = x.reshape(-1, EMBED)
    logits = tokens @ layer.router
    scores = jax.nn.sigmoid(logits) if layer.scores == "sigmoid" else jax.nn.softmax(logits)
    _, chosen = jax.lax.top_k(scores + bias, CHOSEN)
    picked = jnp.take_along_axis(scores, chosen, axis=1)
    weights = picked / picked.sum(axis=1, keepdims=True) * real.reshape(-1, 1) * (1 if kept is None else kept)
    full = jnp.zeros_like(scores).at[jnp.arange(len(tokens))[:, None], chosen].set(weights)
    inner = jax.nn.silu(jnp.einsum("te,nef->tnf", tokens, layer.gate)) * jnp.einsum("te,nef->tnf", tokens, layer.up)
    y = jnp.einsum("tnf,nfe,tn->te", inner, layer.down, full).reshape(x.shape) + layer.shared(x)
    return y, chosen


def in_double(tree):
    return jax.tree.map(lambda a: np.asarray(a, np.float64) if a.dtype == jnp.float32 else a, tree)


def test_dispatch_equals_the_dense_sum_with_its_gradients_and_the_bias_gets_none():
    """In double precision, where nothing but the order of sums differs."""

    def both(*arguments):
        def value(function, layer, x, bias):
            y = function(layer, x, bias, REAL)[0]
            return jnp.sum(jnp.sin(y) * y), y

        return [
            jax.value_and_grad(partial(value, function), argnums=(0, 1, 2), has_aux=True)(*arguments)
            for function in (Experts.__call__, dense)
        ]

    with jax.enable_x64(True):
        found, expected = jax.jit(both)(*in_double((experts(gate="softmax"), X, BIAS)))
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)
    assert not np.any(found[1][2])
    assert np.any(found[1][0].router)


@pytest.mark.parametrize("capacity", [1.0, 2.5])
def test_capacity_drops_the_later_tokens_of_a_full_expert_and_counts_them(capacity):
    layer = experts(capacity)
    y, routing = jax.jit(lambda e: e(X, BIAS, REAL))(layer)
    _, chosen = dense(layer, X, BIAS, REAL)
    room = np.full(COUNT, int(np.ceil(capacity * REAL.size * CHOSEN / COUNT)))
    kept, overflowed = np.zeros(chosen.shape), np.zeros(COUNT, int)
    for place, (picked, real) in enumerate(zip(np.asarray(chosen), np.asarray(REAL).reshape(-1), strict=True)):
        for choice, expert in enumerate(picked[: CHOSEN * real]):
            kept[place, choice] = room[expert] > 0
            overflowed[expert] += room[expert] <= 0
            room[expert] -= 1
    np.testing.assert_allclose(y, dense(layer, X, BIAS, REAL, jnp.asarray(kept))[0], rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(routing.overflowed, overflowed)
    assert capacity > 2 or overflowed.any()


def test_routing_counts_choices_and_entropy_of_tokens_that_are_not_padding():
    layer = experts()
    _, routing = jax.jit(lambda e: e(X, BIAS, REAL))(layer)
    _, chosen = dense(layer, X, BIAS, REAL)
    real = np.asarray(REAL).reshape(-1)
    np.testing.assert_array_equal(routing.load, np.bincount(np.asarray(chosen)[real].reshape(-1), minlength=COUNT))
    assert int(routing.tokens) == real.sum()
    assert not np.any(routing.overflowed)
    assert routing.margins.sum() == COUNT * real.sum()
    scores = 1 / (1 + np.exp(-np.asarray(X, np.float64).reshape(-1, EMBED) @ np.asarray(layer.router)))[real]
    share = scores / scores.sum(axis=1, keepdims=True)
    assert float(routing.entropy) == pytest.approx(-(share * np.log(share)).sum(), rel=1e-5)


def test_bias_steers_who_is_chosen_and_not_with_which_weight():
    layer = experts(balance="sign")
    tokens = X.reshape(-1, EMBED)
    to_last = layer.choose(tokens, jnp.zeros(COUNT).at[-1].set(10.0), ALL.reshape(-1))
    shifted = layer.choose(tokens, jnp.full(COUNT, 0.25), ALL.reshape(-1))
    plain = layer.choose(tokens, jnp.zeros(COUNT), ALL.reshape(-1))
    assert (np.asarray(to_last.expert)[:, 0] == COUNT - 1).all()
    assert (np.asarray(to_last.weight)[:, 0] < 1).all()
    np.testing.assert_array_equal(shifted.expert, plain.expert)
    np.testing.assert_array_equal(shifted.weight, plain.weight)


def test_router_of_a_bfloat16_stream_is_float32():
    layer, x = experts(balance="none"), X.astype(jnp.bfloat16)
    choice = layer.choose(x.reshape(-1, EMBED), BIAS, ALL.reshape(-1))
    exact = layer.choose(x.astype(jnp.float32).reshape(-1, EMBED), BIAS, ALL.reshape(-1))
    assert choice.weight.dtype == jnp.float32
    np.testing.assert_array_equal(choice.weight, exact.weight)


LAYER = Experts(*(None,) * 5, CHOSEN, "sigmoid", "none", None)
PLACES = jax.jit(lambda expert, load: LAYER._blocks(expert, load)[:2])


@given(st.integers(0, 2**31 - 1), st.integers(0, COUNT), st.floats(0, 1))
@settings(max_examples=30)
def test_blocks_give_every_choice_a_place_of_its_own_in_a_block_of_its_expert(seed, favourite, favoured):
    draw = rng(seed, 0)
    expert = np.where(draw.random(94) < favoured, favourite, draw.integers(0, COUNT + 1, 94))
    place, owner = map(np.asarray, PLACES(expert, np.bincount(expert, minlength=COUNT + 1)[:COUNT]))
    size = _block_size(94 // COUNT)
    inside = place < len(owner) * size
    np.testing.assert_array_equal(inside, expert < COUNT)
    assert len(np.unique(place[inside])) == inside.sum()
    np.testing.assert_array_equal(owner[place[inside] // size], expert[inside])


def test_blocks_are_as_large_as_a_fair_share_lets_them():
    assert [_block_size(share) for share in (0, 1, 9, 100, 127, 5000)] == [8, 8, 8, 64, 64, 128]
