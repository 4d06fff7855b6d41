from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.trainers.synthetic import MODEL, tiny
from trainers.config import OptimizerConfig
from trainers.model import init_model
from trainers.optimizer import decayed, dimension_numbers, make_optimizer, newton_schulz, orthogonal, schedule


def rates(config, steps, updates):
    return np.asarray(schedule(config, steps)(jnp.asarray(updates)))


def test_wsd_warms_up_stays_and_falls_to_its_floor():
    config = OptimizerConfig(learning_rate=1.0, warmup=4, decay=5, floor=0.1)
    found = rates(config, 20, [0, 1, 3, 4, 14, 15, 16, 19, 20, 1000])
    assert found == pytest.approx([0.25, 0.5, 1, 1, 1, 1, 0.82, 0.28, 0.1, 0.1])


def test_linear_falls_from_the_end_of_the_warmup_to_the_end():
    config = OptimizerConfig(learning_rate=2.0, warmup=10, shape="linear")
    assert rates(config, 110, [9, 10, 60, 110]) == pytest.approx([2, 2, 1, 0])


def test_cosine_equals_that_of_optax_after_the_warmup():
    config = OptimizerConfig(learning_rate=3e-3, warmup=10, shape="cosine", floor=0.2)
    theirs = optax.cosine_decay_schedule(3e-3, 90, alpha=0.2)
    updates = np.arange(10, 101)
    np.testing.assert_allclose(rates(config, 100, updates), theirs(updates - 10), rtol=1e-5)


@pytest.mark.parametrize("shape", ["wsd", "cosine", "linear"])
def test_schedules_without_warmup_begin_at_the_rate_and_with_all_warmup_never_divide_by_zero(shape):
    assert rates(OptimizerConfig(learning_rate=1.0, warmup=0, shape=shape), 5, [0]) == pytest.approx([1])
    all_warmup = rates(OptimizerConfig(learning_rate=1.0, warmup=5, shape=shape), 5, [0, 4])
    assert all_warmup == pytest.approx([0.2, 1])


@given(
    st.sampled_from(["wsd", "cosine", "linear"]),
    st.integers(0, 20),
    st.integers(0, 20),
    st.integers(1, 40),
    st.floats(0, 1),
)
@settings(max_examples=30)
def test_rates_lie_between_nothing_and_the_rate_and_never_rise_after_the_warmup(shape, warmup, decay, more, floor):
    decay = decay if shape == "wsd" else 0
    config = OptimizerConfig(learning_rate=1.0, warmup=warmup, decay=decay, shape=shape, floor=floor)
    steps = warmup + decay + more
    found = rates(config, steps, np.arange(84))[: steps + 3]  # one shape: compiled once
    assert ((found >= -1e-6) & (found <= 1 + 1e-6)).all()
    assert (np.diff(found[warmup:]) <= 1e-6).all()
    assert found[-1] == pytest.approx(floor, abs=1e-6)


def test_weight_decay_leaves_gains_and_embedding_alone():
    marked = decayed(init_model(replace(MODEL, head="own"), 0))
    assert marked.head is True
    assert marked.blocks.attention.query is True
    assert marked.blocks.feed_forward.down is True
    assert not (marked.embedding or marked.norm.gain or marked.blocks.attention_norm.gain)


def test_first_update_equals_adamw_in_plain_numpy_after_clipping():
    config = replace(tiny(), optimizer=OptimizerConfig(learning_rate=0.5, warmup=2, clip=0.7))
    model = init_model(MODEL, 0)
    optimizer = make_optimizer(config)
    updates, _ = jax.jit(lambda m: optimizer.update(jax.tree.map(jnp.cos, m), optimizer.init(m), m))(model)
    gradients = [np.cos(np.asarray(a, np.float64)) for a in jax.tree.leaves(model)]
    norm = np.sqrt(sum((g * g).sum() for g in gradients))
    assert norm > 0.7
    trees = jax.tree.leaves(model), jax.tree.leaves(decayed(model)), jax.tree.leaves(updates)
    for g, parameter, mark, update in zip(gradients, *trees, strict=True):
        clipped = g * 0.7 / norm
        expected = -0.25 * (clipped / (np.abs(clipped) + 1e-8) + 0.1 * mark * np.asarray(parameter, np.float64))
        np.testing.assert_allclose(update, expected, rtol=1e-4, atol=1e-6)


def test_first_update_of_muon_equals_that_of_optax_at_matrices_and_adamw_elsewhere():
    config = replace(tiny(), optimizer=replace(tiny().optimizer, clip=1e9, matrices="muon"))
    theirs = optax.contrib.muon(
        0.01, weight_decay=0.1, consistent_rms=0.2, muon_weight_dimension_numbers=dimension_numbers
    )

    def first_updates(model):
        gradients = jax.tree.map(jnp.cos, model)
        return [
            optimizer.update(gradients, optimizer.init(model), model)[0]
            for optimizer in (make_optimizer(config), theirs)
        ]

    model = init_model(MODEL, 0)
    ours, expected = jax.jit(first_updates)(model)
    np.testing.assert_allclose(ours.embedding, -0.01 * np.sign(np.cos(model.embedding)), atol=1e-6)
    np.testing.assert_allclose(ours.blocks.attention_norm.gain, -0.01, atol=1e-6)
    for part in ("attention", "feed_forward"):
        leaves = (jax.tree.leaves(getattr(updates.blocks, part)) for updates in (ours, expected))
        for update, reference in zip(*leaves, strict=True):
            np.testing.assert_allclose(update, reference, atol=1e-6)
            assert np.unique(np.abs(update)).size > 10  # not the signs of AdamW


@pytest.mark.parametrize(("compute", "error"), [("float32", 1e-5), ("bfloat16", 0.1)])
def test_newton_schulz_moves_singular_values_by_the_quintic_and_keeps_their_vectors(compute, error):
    rng = np.random.Generator(np.random.Philox(1))
    left, _, right = np.linalg.svd(rng.standard_normal((2, 4, 7)), full_matrices=False)
    values = np.array([[1.0, 0.3, 0.1, 0.01], [0.5, 0.5, 0.02, 0.005]])
    expected = values / np.linalg.norm(values, axis=1, keepdims=True)
    for _ in range(5):
        expected = 3.4445 * expected - 4.775 * expected**3 + 2.0315 * expected**5
    assert ((expected > 0.65) & (expected < 1.2)).all()
    found = newton_schulz(jnp.asarray((left * values[:, None]) @ right, jnp.float32), compute)
    np.testing.assert_allclose(np.asarray(found, np.float64), (left * expected[:, None]) @ right, atol=error)


def test_orthogonal_takes_each_matrix_of_layers_and_experts_apart_and_all_heads_together():
    rng = np.random.Generator(np.random.Philox(2))
    stacked = jnp.asarray(rng.standard_normal((2, 3, 6, 2, 2)), jnp.float32)  # layer, expert, embed, heads, head
    found = orthogonal(stacked, optax.contrib.MuonDimensionNumbers((2,), (3, 4)), "float32")
    one = newton_schulz(stacked[1, 2].reshape(1, 6, 4).swapaxes(1, 2))[0].T.reshape(6, 2, 2)
    np.testing.assert_allclose(found[1, 2], one * 0.2 * 6**0.5, atol=1e-6)
