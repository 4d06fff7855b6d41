import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest

from tests.trainers import strict
from tests.trainers.synthetic import MODEL
from trainers.config import ExpertsConfig
from trainers.model import init_model
from trainers.state import digest
from trainers.step import in_type

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def one_device():
    """The states and losses of the strict run in this process, on one device, without a mesh."""
    return list(strict.states(strict.config()))


@pytest.fixture(scope="module")
def eight_devices():
    """What the run came to on eight devices, strictly and cut along data and fsdp by psum."""
    command = [sys.executable, "-W", "error", "-m", "tests.trainers.strict", "8", "fsdp"]
    environment = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    result = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True, env=environment)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


@pytest.mark.slow
def test_strict_state_with_muon_and_average_is_equal_bit_for_bit_on_eight_devices(one_device, eight_devices):
    assert eight_devices["8"] == [digest(one_device[-1][0]), [loss for _, loss in one_device]]


@pytest.mark.slow
def test_psum_on_a_mesh_cut_along_data_and_fsdp_learns_the_same(one_device, eight_devices):
    found, losses = eight_devices["fsdp"]
    assert found != eight_devices["8"][0]
    assert losses == pytest.approx([loss for _, loss in one_device], rel=1e-4)


@pytest.mark.slow
def test_average_keeps_what_it_says_of_itself_in_each_update(one_device):
    expected = init_model(strict.config().model, strict.config().seed)
    for update, (state, _) in enumerate(one_device):
        stays = min(0.9, (1 + update) / (10 + update))
        expected = jax.tree.map(lambda old, new, s=stays: s * old + (1 - s) * new, expected, state.model)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6), state.average, expected)


def test_model_in_bfloat16_keeps_gains_and_routers_in_float32():
    experts = replace(MODEL, experts=ExpertsConfig(count=4, chosen=2))
    model = in_type(init_model(experts, 0), "bfloat16")
    types = {jax.tree_util.keystr(path): a.dtype.name for path, a in jax.tree_util.tree_flatten_with_path(model)[0]}
    exact = {name for name, kind in types.items() if kind == "float32"}
    assert exact == {name for name in types if name.endswith(("gain", "router"))}
    assert in_type(model, "float32") is model
