import json
import subprocess
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from curate.configuration import ConfigurationError
from tests.curate.token_corpus import BEGIN, END, write_tokenizer
from tests.trainers.hugging_face import logits_of
from tests.trainers.synthetic import MODEL, markov, sequences, tiny
from trainers.checkpoint import Checkpoint, Checkpoints
from trainers.config import ExpertsConfig, flat
from trainers.export import export_model
from trainers.model import init_bias, init_model
from trainers.saved import Saved, open_model
from trainers.state import arrays, init_state
from trainers.step import on_device
from transforms.tokens import Tokenizer

ROOT = Path(__file__).parents[2]
PEER = ROOT / ".venv-peer-tokens" / "bin" / "python"

ONE = replace(MODEL, layers=1, head="own")
SIGMOID = ExpertsConfig(4, 2, shared=36)
SOFTMAX = ExpertsConfig(4, 2, gate="softmax", balance="none")
MODELS = {
    "Llama": replace(MODEL, kv_heads=1),
    "Qwen3": replace(ONE, qk_norm="head"),
    "Mixtral": replace(ONE, experts=SOFTMAX),
    "Qwen3Moe": replace(ONE, qk_norm="head", experts=SOFTMAX),
    "Glm4Moe": replace(ONE, qk_norm="head", experts=SIGMOID),
    "Glm4Moe alone": replace(ONE, experts=replace(SIGMOID, shared=0)),
}


def rng(*key):
    return np.random.Generator(np.random.Philox(key=list(key)))


TOKENS = markov(rng(5, 0), (2, 12))


def saved(model):
    """Return a model whose gains are not one and whose parameters are large enough to see each of them."""
    noise = rng(5, 1)
    loud = jax.tree.map(
        lambda a: jnp.asarray(np.asarray(a) * (1 + noise.normal(0, 0.5, a.shape)).astype(np.float32)),
        init_model(model, 3),
    )
    sigmoid = model.experts is not None and model.experts.gate == "sigmoid"
    steer = jnp.asarray(noise.normal(0, 0.2 * sigmoid, init_bias(model).shape).astype(np.float32))
    return Saved(replace(tiny(), model=model), loud, steer, 7, "the plan", "the state")


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """Folders of all architectures, and the logits that the models exported have here."""
    root, logits = tmp_path_factory.mktemp("exported"), {}
    inputs = on_device(sequences(TOKENS))
    for name, model in MODELS.items():
        made = saved(model)
        assert export_model(made, root / name) == name.split()[0]
        logits[name] = np.asarray(
            jax.jit(made.model.__class__.__call__)(
                made.model, inputs.tokens, inputs.segments, inputs.positions, made.bias
            )
        )
    return root, logits


@pytest.mark.parametrize("name", MODELS)
def test_exported_model_has_our_logits_in_plain_numpy(exported, name):
    root, logits = exported
    np.testing.assert_allclose(logits_of(root / name, TOKENS), logits[name], rtol=5e-4, atol=5e-4)


PEER_SCRIPT = """
import sys, numpy, torch, transformers
root, names = sys.argv[1], sys.argv[2:]
tokens = torch.tensor(numpy.load(root + "/tokens.npy"), dtype=torch.long)
for name in names:
    model, told = transformers.AutoModelForCausalLM.from_pretrained(f"{root}/{name}", output_loading_info=True)
    assert type(model).__name__ == name.split()[0] + "ForCausalLM", type(model)
    assert not any(told.values()), (name, told)
    with torch.no_grad():
        numpy.save(f"{root}/{name}.npy", model.eval()(tokens).logits.numpy())
"""


@pytest.mark.slow
def test_exported_models_have_our_logits_in_transformers(exported):
    if not PEER.exists():
        pytest.skip("no .venv-peer-tokens with torch and transformers here: python -m benchmarks.install_peers tokens")
    root, logits = exported
    np.save(root / "tokens.npy", TOKENS)
    command = [str(PEER), "-c", PEER_SCRIPT, str(root), *MODELS]
    result = subprocess.run(command, check=False, capture_output=True, text=True, env={"HF_HUB_OFFLINE": "1"})
    assert result.returncode == 0, result.stderr
    for name in MODELS:
        np.testing.assert_allclose(np.load(root / f"{name}.npy"), logits[name], rtol=5e-4, atol=5e-4, err_msg=name)


def test_exported_configuration_names_where_the_model_comes_from(exported):
    config = json.loads((exported[0] / "Llama" / "config.json").read_text("utf-8"))
    assert config["curate"] == {"plan": "the plan", "state": "the state", "step": 7}


def test_same_model_is_exported_to_the_same_bytes_and_not_over_another_one(exported, tmp_path):
    export_model(saved(MODELS["Glm4Moe"]), tmp_path)
    for file in ("model.safetensors", "config.json"):
        assert (tmp_path / file).read_bytes() == (exported[0] / "Glm4Moe" / file).read_bytes()
    with pytest.raises(ConfigurationError, match="another folder"):
        export_model(saved(MODELS["Glm4Moe"]), tmp_path)


@pytest.mark.parametrize(
    ("experts", "bias", "named"),
    [(replace(SOFTMAX, balance="sign"), 1.0, "a routing bias"), (replace(SOFTMAX, shared=8), 0.0, "a shared expert")],
)
def test_model_that_no_architecture_computes_is_refused_with_what_to_do(tmp_path, experts, bias, named):
    made = saved(replace(ONE, experts=experts))
    with pytest.raises(ConfigurationError, match=f"{named}.*sigmoid"):
        export_model(replace(made, bias=made.bias + bias), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_tokenizer_is_written_as_transformers_reads_it(tmp_path):
    tokenizer = Tokenizer(write_tokenizer(tmp_path), bos=BEGIN, eos=END)
    out = tmp_path / "out"
    export_model(saved(MODELS["Llama"]), out, tokenizer)
    config, told = (json.loads((out / f"{name}config.json").read_text("utf-8")) for name in ("", "tokenizer_"))
    assert (out / "tokenizer.json").read_bytes() == tokenizer.content()
    assert (told["bos_token"], told["eos_token"]) == (BEGIN, END)
    assert (config["bos_token_id"], config["eos_token_id"]) == (tokenizer.encoder().bos, tokenizer.encoder().eos)


def test_model_of_a_run_is_opened_at_a_step_and_without_its_capacity(tmp_path):
    experts = ExpertsConfig(4, 2, capacity=1.0)
    config = replace(tiny(), model=replace(MODEL, layers=1, experts=experts), ema=0.5)
    state = init_state(config)
    state = replace(state, average=replace(state.average, embedding=state.model.embedding + 1), bias=state.bias + 2)
    checkpoints = Checkpoints(tmp_path)
    with checkpoints.locked():
        for step in (0, 2):
            checkpoints.save(Checkpoint(step, "the plan", flat(config), {}, arrays(state)))
    found = open_model(tmp_path)
    assert (found.step, found.plan, found.config) == (2, "the plan", config)
    assert found.model.blocks.feed_forward.capacity is None
    np.testing.assert_array_equal(found.model.embedding, state.model.embedding)
    np.testing.assert_array_equal(found.bias, np.full((1, 4), 2))
    np.testing.assert_array_equal(open_model(tmp_path, 2, "average").model.embedding, state.average.embedding)
    with pytest.raises(ConfigurationError, match="of step 5: there are 0, 2"):
        open_model(tmp_path, 5)
    with pytest.raises(ConfigurationError, match="curate train --run"):
        open_model(tmp_path / "nothing")
