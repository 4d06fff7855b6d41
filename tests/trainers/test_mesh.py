from dataclasses import replace

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import PartitionSpec

from curate.configuration import ConfigurationError
from tests.trainers.strict import config
from trainers.axes import named_axes
from trainers.config import ExpertsConfig
from trainers.loss import Inputs
from trainers.mesh import abstract_mesh, check_mesh, make_mesh, shardings
from trainers.state import init_state
from trainers.step import make_step

MIXTURE = replace(config().model, width=32, experts=ExpertsConfig(count=4, chosen=2))
PARALLEL = replace(config(), batch=64, reduction="psum", shards=1, model=MIXTURE)


def test_axes_of_a_state_have_the_names_of_their_annotations_and_are_cut_by_them():
    state = jax.eval_shape(lambda: init_state(PARALLEL))
    blocks = named_axes(state.model).blocks
    assert blocks.attention.output == ("layer", "heads", "head", "embed")
    assert blocks.feed_forward.down == ("layer", "expert", "hidden", "embed")
    places = shardings(state, abstract_mesh(2, 2, 2))
    assert places.model.blocks.feed_forward.down.spec == PartitionSpec(None, "expert", None, "fsdp")
    assert places.average.embedding.spec == PartitionSpec(None, "fsdp")
    assert places.bias.spec == places.updates.spec == PartitionSpec()
    cut = [place for place in jax.tree.leaves(places.optimizer) if "expert" in place.spec]
    assert len(cut) == 3 + 2  # momentum of the experts' matrices, both moments of the router


@pytest.mark.parametrize(
    ("changed", "sizes", "expected"),
    [
        ({}, (2, 2, 2), '[{"data", "fsdp", "expert"}, {}]'),
        ({}, (8, 4, 2), '[{}, {"expert"}, {"fsdp"}, {}]'),
        ({"reduction": "strict", "shards": 64}, (64, 1, 1), "collective_permute"),
    ],
)
def test_step_lowers_for_devices_that_are_not_there(changed, sizes, expected):
    config, mesh = replace(PARALLEL, **changed), abstract_mesh(*sizes)
    state = jax.eval_shape(lambda: init_state(config))
    rows = jax.ShapeDtypeStruct((64, 16), jnp.int32)
    inputs = Inputs(rows, rows, rows, jax.ShapeDtypeStruct((64, 16), jnp.bool_))
    text = make_step(config, mesh).trace(state, inputs).lower(lowering_platforms=("tpu",)).as_text()
    data, fsdp, expert = sizes
    assert f'<["data"={data}, "fsdp"={fsdp}, "expert"={expert}]>' in text
    assert expected in text
    assert ("manual_computation" in text) == (expected == "collective_permute")


@pytest.mark.parametrize(
    ("changed", "sizes", "named"),
    [
        ({}, (1, 3, 1), "width 32"),
        ({}, (1, 1, 3), "4 experts"),
        ({"batch": 24}, (8, 2, 1), "multiple of 16"),
        ({"shards": 8, "reduction": "strict"}, (4, 2, 1), "data parallel"),
        ({"shards": 2, "reduction": "strict"}, (4, 1, 1), "at most 2 devices"),
    ],
)
def test_run_that_a_mesh_cannot_cut_is_refused(changed, sizes, named):
    with pytest.raises(ConfigurationError, match=named):
        check_mesh(replace(PARALLEL, **changed), abstract_mesh(*sizes))


def test_mesh_of_more_devices_than_there_are_is_refused():
    with pytest.raises(ConfigurationError, match="data 64"):
        make_mesh(64)
    assert make_mesh().shape["data"] == len(jax.devices())
