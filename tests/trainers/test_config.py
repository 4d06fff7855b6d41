from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curate.configuration import ConfigurationError
from tests.trainers.synthetic import MODEL, tiny
from trainers.config import differences, flat, recipe
from transforms.canonical import canonical_json


@given(st.integers(1, 64), st.integers(10_000, 10**12), st.integers(2, 4096))
def test_recipe_for_any_width_and_tokens_gives_a_configuration_that_spends_them(blocks, tokens, length):
    if tokens < 100 * length:
        return
    config = recipe(64 * blocks, tokens, vocabulary=1000, length=length)
    spent = config.steps * config.batch * length
    assert tokens - config.batch * length < spent <= tokens
    assert 0 < config.optimizer.learning_rate <= 0.003
    assert config.batch & (config.batch - 1) == 0


def test_recipe_of_the_demo_is_pinned():
    config = recipe(64, 300_000, vocabulary=4096)
    assert (config.steps, config.batch, config.length) == (292, 4, 256)
    assert (config.model.layers, config.model.heads, config.model.kv_heads, config.model.hidden) == (3, 2, 1, 192)
    assert (config.optimizer.learning_rate, config.optimizer.warmup, config.optimizer.decay) == (0.003, 14, 58)
    muon = recipe(64, 300_000, vocabulary=4096, matrices="muon")
    assert differences(flat(config), flat(muon)) == ["optimizer.matrices: stored adamw, given muon"]


def test_recipe_of_a_large_model_follows_the_law():
    config = recipe(2048, 10**11, vocabulary=128_000, length=4096)
    n = config.model.matrix_parameters
    assert config.optimizer.learning_rate == pytest.approx(1.79 * n**-0.713 * 1e11**0.307, rel=0.005)
    assert config.batch * config.length == pytest.approx(0.58 * 1e11**0.571, rel=0.5)
    assert config.model.head == "own"


def test_recipe_with_the_batch_of_a_plan_keeps_it():
    assert recipe(64, 100_000, vocabulary=100, length=128, batch=6).batch == 6
    scheduled = recipe(64, 100_000, vocabulary=100, length=128, batch=6, steps=40)
    assert (scheduled.steps, scheduled.optimizer.warmup, scheduled.optimizer.decay) == (40, 2, 8)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"width": 100}, "100"),
        ({"width": 0}, "multiple of 64"),
        ({"tokens": 300}, "300 tokens"),
        ({"batch": 4000}, "fewer than one batch"),
    ],
)
def test_recipe_of_what_cannot_be_names_it(arguments, named):
    with pytest.raises(ConfigurationError, match=named):
        recipe(**{"width": 64, "tokens": 100_000, "vocabulary": 100} | arguments)


@pytest.mark.parametrize("change", [{"heads": 3}, {"kv_heads": 3}, {"head": "none"}, {"layers": 0}, {"width": 4}])
def test_model_whose_axes_do_not_fit_is_refused(change):
    with pytest.raises(ConfigurationError):
        replace(MODEL, **change)


@pytest.mark.parametrize(
    "change",
    [
        *(
            {"learning_rate": 0.0},
            {"shape": "step"},
            {"floor": 2.0},
            {"clip": 0.0},
            {"shape": "cosine"},
            {"warmup": -1},
        ),
        *({"matrices": "sgd"}, {"momentum": 1.0}),
    ],
)
def test_optimizer_out_of_range_is_refused(change):
    with pytest.raises(ConfigurationError):
        replace(tiny().optimizer, **change)


@pytest.mark.parametrize(
    "change",
    [
        *({"steps": 5}, {"length": 1}, {"seed": -1}, {"z_loss": -1.0}, {"batch": 0}, {"ema": 1.0}),
        *({"compute": "float16"}, {"shards": 3}, {"shards": 0}, {"reduction": "sum"}),
        {"batch": 6, "shards": 6, "reduction": "strict"},
    ],
)
def test_run_out_of_range_is_refused(change):
    with pytest.raises(ConfigurationError):
        replace(tiny(), **change)


def test_flat_names_every_field_as_canonical_json():
    fields = flat(tiny())
    assert fields["model.width"] == 16
    assert fields["optimizer.learning_rate"] == "0.02"
    assert '"model.rope_base":"10000.0"' in canonical_json(fields)


def test_differences_name_the_fields_and_both_values():
    other = replace(tiny(), seed=4, model=replace(MODEL, hidden=32))
    found = differences(flat(tiny()), flat(other))
    assert found == ["model.hidden: stored 24, given 32", "seed: stored 0, given 4"]
    assert differences({"a": 1}, {}) == ["a: stored 1, given nothing"]
