import importlib
import sys
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import install_import_hook

import tests.trainers.typechecking  # noqa: F401
from tests.trainers.synthetic import MODEL, SHAPE, VOCABULARY, markov, sequences, tiny
from trainers.loss import model_loss, next_token_loss
from trainers.model import init_bias, init_model
from trainers.step import on_device

OWN = replace(MODEL, head="own", kv_heads=1)


def rng(*key):
    return np.random.Generator(np.random.Philox(key=list(key)))


def batch(cut=10):
    return sequences(markov(rng(1, 1), SHAPE), cut)


def loud(config, seed=3):
    """Return a model whose gains are not one and whose parameters are large enough to see each of them."""
    noise = rng(seed, 0)
    return jax.tree.map(
        lambda a: jnp.asarray(np.asarray(a) * (1 + noise.normal(0, 0.5, a.shape)).astype(np.float32)),
        init_model(config, seed),
    )


BIAS = init_bias(MODEL)
forward = jax.jit(lambda model, inputs: model(inputs.tokens, inputs.segments, inputs.positions, BIAS)[0])


def reference(model, config, data):
    """The forward pass in plain NumPy, one row, one head and one position at a time, in double precision."""
    parameters = jax.tree.map(lambda a: np.asarray(a, np.float64), model)
    blocks, width = parameters.blocks, config.head_width
    rows = []
    for tokens, segments, positions in zip(data.tokens, data.segments, data.positions, strict=True):
        x = parameters.embedding[tokens]
        for layer in range(config.layers):
            block = jax.tree.map(lambda a, layer=layer: a[layer], blocks)
            h = _norm(x, block.attention_norm.gain, config)
            out = np.zeros_like(x)
            for head in range(config.heads):
                shared = head // (config.heads // config.kv_heads)
                q = _turn(h @ block.attention.query[:, head], positions, config)
                k = _turn(h @ block.attention.key[:, shared], positions, config)
                v = h @ block.attention.value[:, shared]
                for p in range(len(tokens)):
                    seen = [s for s in range(p + 1) if segments[s] == segments[p]]
                    weights = np.exp(q[p] @ k[seen].T / np.sqrt(width))
                    out[p] += (weights / weights.sum()) @ v[seen] @ block.attention.output[head]
            x = x + out
            h = _norm(x, block.feed_forward_norm.gain, config)
            gate = h @ block.feed_forward.gate
            x = x + (gate / (1 + np.exp(-gate)) * (h @ block.feed_forward.up)) @ block.feed_forward.down
        head = parameters.embedding.T if parameters.head is None else parameters.head
        rows.append(_norm(x, parameters.norm.gain, config) @ head)
    return np.stack(rows)


def _norm(x, gain, config):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + config.norm_epsilon) * gain


def _turn(x, positions, config):
    half = x.shape[1] // 2
    result = np.empty_like(x)
    for i in range(half):
        angle = positions * config.rope_base ** (-2 * i / x.shape[1])
        result[:, i] = x[:, i] * np.cos(angle) - x[:, half + i] * np.sin(angle)
        result[:, half + i] = x[:, half + i] * np.cos(angle) + x[:, i] * np.sin(angle)
    return result


@pytest.mark.parametrize("config", [MODEL, OWN], ids=["tied", "own"])
def test_logits_equal_those_of_plain_numpy(config):
    model, data = loud(config), batch()
    np.testing.assert_allclose(forward(model, on_device(data)), reference(model, config, data), rtol=2e-4, atol=2e-4)


def test_documents_packed_into_a_row_give_what_they_give_apart():
    """Equal up to the order of float32 sums, which other lengths group otherwise: 2e-6 is some 16 roundings."""
    model, data = loud(MODEL), batch(cut=10)
    packed = np.asarray(forward(model, on_device(data)))
    for part in (slice(0, 10), slice(10, None)):
        alone = np.asarray(forward(model, on_device(sequences(data.tokens[:, part]))))
        np.testing.assert_allclose(packed[:, part], alone, rtol=0, atol=2e-6 * np.abs(alone).max())


def test_a_token_changes_nothing_before_it_and_nothing_in_other_documents():
    model, data = loud(MODEL), batch(cut=10)
    changed = data.tokens.copy()
    changed[:, 4] = (changed[:, 4] + 1) % VOCABULARY
    before, after = (np.asarray(forward(model, on_device(sequences(t, 10)))) for t in (data.tokens, changed))
    assert np.array_equal(before[:, :4], after[:, :4])
    assert np.array_equal(before[:, 10:], after[:, 10:])
    assert (before[:, 4:10] != after[:, 4:10]).all(axis=(0, 2)).all()


@pytest.mark.parametrize("config", [MODEL, OWN], ids=["tied", "own"])
def test_gradients_equal_finite_differences(config):
    model, inputs = loud(config), on_device(batch())

    with jax.enable_x64(True):
        double = jax.tree.map(lambda a: jnp.asarray(np.asarray(a, np.float64)), model)
        function = jax.jit(jax.value_and_grad(lambda m: model_loss(m, BIAS, inputs).objective(0.1)))
        _, gradient = function(double)
        leaves, tree = jax.tree.flatten(double)
        for number, slope in enumerate(jax.tree.leaves(gradient)):
            place = np.unravel_index(np.argmax(np.abs(slope)), slope.shape)
            ends = []
            for step in (1e-5, -1e-5):
                moved = [*leaves]
                moved[number] = moved[number].at[place].add(step)
                ends.append(float(function(jax.tree.unflatten(tree, moved))[0]))
            assert float(slope[place]) == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-5), number


def test_first_model_is_the_same_for_a_seed_and_begins_near_the_uniform_loss():
    inputs = on_device(batch())
    model, again, other = (init_model(MODEL, seed) for seed in (0, 0, 1))
    assert all(map(np.array_equal, jax.tree.leaves(model), jax.tree.leaves(again)))
    assert not np.array_equal(model.embedding, other.embedding)
    assert float(jax.jit(lambda m: model_loss(m, BIAS, inputs).objective(0.0))(model)) == pytest.approx(
        np.log(VOCABULARY), abs=1.0
    )


def test_matrix_parameters_are_those_of_the_blocks():
    model = jax.eval_shape(lambda: init_model(OWN, 0))
    matrices = [*jax.tree.leaves(model.blocks.attention), *jax.tree.leaves(model.blocks.feed_forward)]
    assert sum(a.size for a in matrices) == OWN.matrix_parameters


def test_loss_and_z_loss_equal_plain_numpy_with_mask_and_borders():
    logits = rng(2, 1).normal(size=(2, 6, 5)).astype(np.float32)
    tokens = rng(2, 2).integers(0, 5, (2, 6))
    segments = np.array([[1, 1, 1, 2, 2, 0], [1, 1, 1, 1, 1, 1]])
    mask = np.array([[1, 1, 1, 1, 1, 0], [1, 0, 1, 1, 1, 1]], bool)
    targets = [(0, 1), (0, 2), (0, 4), (1, 2), (1, 3), (1, 4), (1, 5)]
    normaliser = np.log(np.exp(logits.astype(np.float64)).sum(-1))
    expected = sum(normaliser[b, p - 1] - logits[b, p - 1, tokens[b, p]] for b, p in targets)
    squares = sum(normaliser[b, p - 1] ** 2 for b, p in targets)
    loss = jax.jit(next_token_loss)(*map(jnp.asarray, (logits, tokens, segments, mask)))
    assert int(loss.predicted) == len(targets)
    assert float(loss.cross_entropy) == pytest.approx(expected, rel=1e-6)
    assert float(loss.objective(0.5)) == pytest.approx((expected + 0.5 * squares) / len(targets), rel=1e-6)


def test_z_loss_gradient_is_twice_the_normaliser_times_the_probabilities():
    logits = jnp.asarray(rng(3, 1).normal(size=(1, 2, 5)).astype(np.float32))
    arguments = jnp.zeros((1, 2), jnp.int32), jnp.ones((1, 2), jnp.int32), jnp.ones((1, 2), bool)

    def part(z, weight):
        return next_token_loss(z, *arguments).objective(weight)

    slope = jax.jit(jax.grad(part))
    found = (slope(logits, 1.0) - slope(logits, 0.0))[0, 0]
    z = np.asarray(logits[0, 0], np.float64)
    normaliser = np.log(np.exp(z).sum())
    np.testing.assert_allclose(found, 2 * normaliser * np.exp(z - normaliser), rtol=1e-5)


def test_loss_of_a_batch_that_predicts_nothing_is_zero_with_zero_gradient():
    arguments = jnp.zeros((1, 3), jnp.int32), jnp.ones((1, 3), jnp.int32), jnp.zeros((1, 3), bool)
    function = jax.jit(jax.value_and_grad(lambda z: next_token_loss(z, *arguments).objective(1.0)))
    value, slope = function(jnp.ones((1, 3, 5)))
    assert value == 0
    assert not slope.any()


@pytest.fixture
def axes_checked():
    """The modules imported anew with every array of every call checked against its named axes."""
    names = [
        f"trainers.{name}"
        for name in ("experts", "model", "balance", "loss", "optimizer", "state", "step", "validation")
    ]
    before = {name: sys.modules.pop(name) for name in names if name in sys.modules}
    try:
        with install_import_hook(names, "tests.trainers.typechecking.typechecked"):
            yield {name.split(".")[1]: importlib.import_module(name) for name in names}
    finally:
        for name in names:
            sys.modules.pop(name, None)
        sys.modules.update(before)
        for name, module in before.items():
            setattr(sys.modules["trainers"], name.split(".")[1], module)


@pytest.mark.parametrize("model", [MODEL, OWN], ids=["tied", "own"])
def test_every_array_of_a_step_has_the_axes_that_its_signature_names(axes_checked, model):
    config = replace(tiny(), model=model)
    state = jax.eval_shape(lambda: axes_checked["state"].init_state(config))
    inputs = axes_checked["step"].on_device(batch())
    new, metrics = jax.eval_shape(axes_checked["step"].make_step(config), state, inputs)
    assert jax.tree.map(lambda a: a.shape, new) == jax.tree.map(lambda a: a.shape, state)
    assert metrics.loss.shape == ()


def test_an_array_with_other_axes_than_its_signature_names_is_refused(axes_checked):
    model = jax.eval_shape(lambda: axes_checked["model"].init_model(MODEL, 0))
    tokens = jnp.zeros((2, 8), jnp.int32)
    with pytest.raises(Exception, match="positions"):
        jax.eval_shape(lambda m: m(tokens, tokens, tokens[:, :7], BIAS), model)
    with pytest.raises(Exception, match="logits"):
        axes_checked["loss"].next_token_loss(jnp.zeros((2, 8)), tokens, tokens, tokens > 0)
