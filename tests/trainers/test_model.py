import importlib
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import install_import_hook

import tests.trainers.typechecking  # noqa: F401
import trainers
from tests.trainers.synthetic import MODEL, SHAPE, VOCABULARY, markov, sequences, tiny
from trainers.chunked import normaliser_and_target
from trainers.config import ExpertsConfig
from trainers.loss import model_loss, next_token_loss
from trainers.model import init_bias, init_model
from trainers.step import on_device

EXPERTS = ExpertsConfig(count=4, chosen=2, shared=12)
OWN = replace(MODEL, head="own", kv_heads=1, qk_norm="head", experts=EXPERTS)
CONFIGS = pytest.mark.parametrize("config", [MODEL, OWN], ids=["dense", "experts"])


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


def some_bias(config):
    """Return a bias that is not zero, but for a model without routers."""
    return jnp.asarray(rng(9, 9).normal(0, 0.1, init_bias(config).shape).astype(np.float32))


forward = jax.jit(lambda model, bias, inputs: model(inputs.tokens, inputs.segments, inputs.positions, bias))


def reference(model, config, bias, data):
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
                q, k = h @ block.attention.query[:, head], h @ block.attention.key[:, shared]
                if config.qk_norm:
                    q = _norm(q, block.attention.query_norm.gain, config)
                    k = _norm(k, block.attention.key_norm.gain, config)
                q, k = _turn(q, positions, config), _turn(k, positions, config)
                v = h @ block.attention.value[:, shared]
                for p in range(len(tokens)):
                    seen = [s for s in range(p + 1) if segments[s] == segments[p]]
                    weights = np.exp(q[p] @ k[seen].T / np.sqrt(width))
                    out[p] += (weights / weights.sum()) @ v[seen] @ block.attention.output[head]
            x = x + out
            h = _norm(x, block.feed_forward_norm.gain, config)
            x = x + (_swiglu(h, block.feed_forward) if config.experts is None else _experts(h, block, bias[layer]))
        head = parameters.embedding.T if parameters.head is None else parameters.head
        rows.append(_norm(x, parameters.norm.gain, config) @ head)
    return np.stack(rows)


def _swiglu(x, part, *expert):
    gate, up, down = (matrix[expert] for matrix in (part.gate, part.up, part.down))
    return (x @ gate / (1 + np.exp(-x @ gate)) * (x @ up)) @ down


def _experts(x, block, bias):
    """All experts of all tokens, with weight 0 for those not chosen."""
    part = block.feed_forward
    scores = 1 / (1 + np.exp(-x @ part.router))
    total = _swiglu(x, part.shared)
    for place, score in enumerate(scores):
        chosen = np.argsort(-(score + bias))[: EXPERTS.chosen]
        for expert in chosen:
            total[place] += score[expert] / score[chosen].sum() * _swiglu(x[place], part, expert)
    return total


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


@CONFIGS
def test_logits_equal_those_of_plain_numpy(config):
    model, bias, data = loud(config), some_bias(config), batch()
    found, expected = forward(model, bias, on_device(data)), reference(model, config, np.asarray(bias), data)
    np.testing.assert_allclose(found, expected, rtol=5e-4, atol=5e-4)


def test_documents_packed_into_a_row_give_what_they_give_apart():
    """Equal up to the order of float32 sums, which other lengths group otherwise: 2e-6 is some 16 roundings."""
    model, bias, data = loud(OWN), some_bias(OWN), batch(cut=8)
    packed = np.asarray(forward(model, bias, on_device(data)))
    for part in (slice(0, 8), slice(8, None)):
        alone = np.asarray(forward(model, bias, on_device(sequences(data.tokens[:, part]))))
        np.testing.assert_allclose(packed[:, part], alone, rtol=0, atol=2e-6 * np.abs(alone).max())


@CONFIGS
def test_a_token_changes_nothing_before_it_and_nothing_in_other_documents(config):
    model, bias, data = loud(config), some_bias(config), batch(cut=10)
    changed = data.tokens.copy()
    changed[:, 4] = (changed[:, 4] + 1) % VOCABULARY
    before, after = (np.asarray(forward(model, bias, on_device(sequences(t, 10)))) for t in (data.tokens, changed))
    assert np.array_equal(before[:, :4], after[:, :4])
    assert np.array_equal(before[:, 10:], after[:, 10:])
    assert (before[:, 4:10] != after[:, 4:10]).all(axis=(0, 2)).all()


def test_gradients_equal_finite_differences():
    config = replace(OWN, head="tied")
    model, bias, inputs = loud(config), some_bias(config), on_device(batch())

    with jax.enable_x64(True):
        double = jax.tree.map(lambda a: jnp.asarray(np.asarray(a, np.float64)), model)
        function = jax.jit(jax.value_and_grad(lambda m: model_loss(m, bias, inputs).objective(0.1)))
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


@pytest.mark.parametrize("chunk", [10, 32, 100])
def test_normaliser_and_target_in_chunks_equal_the_plain_ones_with_their_gradients(chunk):
    x, words = (
        jnp.asarray(rng(4, n).normal(size=shape).astype(np.float32)) for n, shape in enumerate([(2, 3, 6), (32, 6)])
    )
    targets = jnp.asarray(rng(4, 5).integers(0, 32, (2, 3)))

    def plain(x, words, targets, _):
        logits = x @ words.T
        return jax.nn.logsumexp(logits, axis=-1), jnp.take_along_axis(logits, targets[..., None], axis=-1)[..., 0]

    def both(x, words):
        def value(function, x, words):
            normaliser, target = function(x, words, targets, chunk)
            return jnp.sum(normaliser**2 - jnp.sin(target)), (normaliser, target)

        return [
            jax.value_and_grad(partial(value, function), argnums=(0, 1), has_aux=True)(x, words)
            for function in (normaliser_and_target, plain)
        ]

    found, expected = jax.jit(both)(x, words)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


def test_first_model_is_the_same_for_a_seed_and_begins_near_the_uniform_loss():
    inputs = on_device(batch())
    model, again, other = (init_model(MODEL, seed) for seed in (0, 0, 1))
    assert all(map(np.array_equal, jax.tree.leaves(model), jax.tree.leaves(again)))
    assert not np.array_equal(model.embedding, other.embedding)
    assert float(jax.jit(lambda m: model_loss(m, init_bias(MODEL), inputs).objective(0.0))(model)) == pytest.approx(
        np.log(VOCABULARY), abs=1.0
    )


@CONFIGS
def test_matrix_parameters_are_those_of_the_blocks(config):
    model = jax.eval_shape(lambda: init_model(config, 0))
    matrices = [a for a in jax.tree.leaves(model.blocks) if a.ndim > 2]
    assert sum(a.size for a in matrices) == config.matrix_parameters
    assert config.active_parameters <= config.matrix_parameters


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
    folder = Path(trainers.__file__).parent
    names = [f"trainers.{path.stem}" for path in folder.glob("*.py") if "from jaxtyping" in path.read_text("utf-8")]
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


@pytest.mark.parametrize(
    "model",
    [MODEL, OWN, replace(OWN, vocabulary_chunk=10, experts=replace(EXPERTS, capacity=1.5))],
    ids=["dense", "experts", "experts with a capacity, in chunks"],
)
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
        jax.eval_shape(lambda m: m(tokens, tokens, tokens[:, :7], init_bias(MODEL)), model)
    with pytest.raises(Exception, match="logits"):
        axes_checked["loss"].next_token_loss(jnp.zeros((2, 8)), tokens, tokens, tokens > 0)
