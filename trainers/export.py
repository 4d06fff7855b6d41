"""Export of a model to the layout of Hugging Face: `model.safetensors`, `config.json`, and the tokenizer's files.

The architecture is the one that computes the same, so that nothing of the model is lost:

    dense                                   LlamaForCausalLM
    dense with qk_norm                      Qwen3ForCausalLM
    experts, softmax gate                   MixtralForCausalLM
    experts, softmax gate, with qk_norm     Qwen3MoeForCausalLM
    experts, sigmoid gate                   Glm4MoeForCausalLM: routing bias and shared expert, with or without qk_norm

The two of softmax experts have neither a routing bias nor a shared expert; a model that has is refused. GLM's
shared expert is a multiple of an expert wide, so a narrower one is filled up with zeros, which change nothing.
A matrix is stored as (outputs, inputs). `config.json` has the plan, state and step that a model comes from as "curate".

Invariant: logits equal ours up to rounding; the same checkpoint gives the same bytes. Memory: twice the parameters.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from curate.configuration import ConfigurationError
from trainers.attention import Attention
from trainers.config import ModelConfig
from trainers.experts import Experts
from trainers.layers import SwiGLU
from trainers.model import Model
from trainers.saved import Saved
from transforms.tokens import Tokenizer

Architecture = Literal["Llama", "Qwen3", "Mixtral", "Qwen3Moe", "Glm4Moe"]
Matrix = npt.NDArray[np.float32]
Tensors = dict[str, Matrix]

MODEL_TYPES: Final[Mapping[Architecture, str]] = {
    "Llama": "llama",
    "Qwen3": "qwen3",
    "Mixtral": "mixtral",
    "Qwen3Moe": "qwen3_moe",
    "Glm4Moe": "glm4_moe",
}
GATED: Final = {"gate": "gate_proj", "up": "up_proj", "down": "down_proj"}
MIXTRAL: Final = {"gate": "w1", "up": "w3", "down": "w2"}


def export_model(saved: Saved, folder: Path, tokenizer: Tokenizer | None = None) -> Architecture:
    """Write `saved` into `folder`, made if absent, and return the architecture that it was written as.

    Raises:
        ConfigurationError: no architecture computes the same, or `folder` holds a model already.
        ModuleNotFoundError: the extra `train` is not installed.
    """
    from safetensors.numpy import save_file

    kind = architecture(saved.config.model, np.asarray(saved.bias))
    target = folder / "model.safetensors"
    if target.exists():
        raise ConfigurationError(f"{target} is there already: export into another folder, or remove it")
    folder.mkdir(parents=True, exist_ok=True)
    settings = describe(saved.config.model, kind, saved.config.length)
    settings["curate"] = {"plan": saved.plan, "state": saved.state, "step": saved.step}
    if tokenizer is not None:
        settings |= _write_tokenizer(folder, tokenizer, saved.config.length)
    _write_json(folder / "config.json", settings)
    # One word of metadata only: the library writes several in an order of chance.
    save_file(tensors(saved.model, np.asarray(saved.bias), kind), target, metadata={"format": "pt"})
    return kind


def architecture(config: ModelConfig, bias: Matrix) -> Architecture:
    """Return the architecture that computes what a model of `config` with this routing bias does.

    Raises:
        ConfigurationError: there is none.
    """
    if (experts := config.experts) is None:
        return "Llama" if config.qk_norm is None else "Qwen3"
    if experts.gate == "sigmoid":
        return "Glm4Moe"
    if np.any(bias) or experts.shared:
        what = "a routing bias" if np.any(bias) else "a shared expert"
        raise ConfigurationError(
            f'no architecture of Hugging Face has experts with a softmax gate and {what}: train with gate="sigmoid", '
            'which exports as GLM-4, or with balance="none" and shared=0'
        )
    return "Mixtral" if config.qk_norm is None else "Qwen3Moe"


def describe(config: ModelConfig, kind: Architecture, length: int) -> dict[str, Any]:
    """Return the content of `config.json` for a model trained on sequences of `length`."""
    described = {
        "architectures": [f"{kind}ForCausalLM"],
        "model_type": MODEL_TYPES[kind],
        "vocab_size": config.vocabulary,
        "hidden_size": config.width,
        "intermediate_size": config.hidden,
        "num_hidden_layers": config.layers,
        "num_attention_heads": config.heads,
        "num_key_value_heads": config.kv_heads,
        "head_dim": config.head_width,
        "hidden_act": "silu",
        "max_position_embeddings": length,
        "rms_norm_eps": config.norm_epsilon,
        "rope_theta": config.rope_base,
        "attention_bias": False,
        "tie_word_embeddings": config.head == "tied",
        "torch_dtype": "float32",
        "use_cache": True,
        "bos_token_id": None,
        "eos_token_id": None,
        "pad_token_id": None,
    }
    if (experts := config.experts) is not None:
        described |= {"num_experts_per_tok": experts.chosen}
        described |= {"Mixtral": {"num_local_experts": experts.count}}.get(kind, {})
    if experts is not None and kind == "Qwen3Moe":
        described |= {"num_experts": experts.count, "moe_intermediate_size": config.hidden, "norm_topk_prob": True}
        described |= {"decoder_sparse_step": 1, "mlp_only_layers": []}
    if experts is not None and kind == "Glm4Moe":
        described |= {
            "n_routed_experts": experts.count,
            "n_shared_experts": -(-experts.shared // config.hidden),
            "moe_intermediate_size": config.hidden,
            "norm_topk_prob": True,
            "routed_scaling_factor": 1.0,
            "n_group": 1,
            "topk_group": 1,
            "first_k_dense_replace": 0,
            "partial_rotary_factor": 1.0,
            "use_qk_norm": config.qk_norm is not None,
        }
    return described


def tensors(model: Model, bias: Matrix, kind: Architecture) -> Tensors:
    """Return the arrays of `model` by the names and in the layout of `kind`."""
    blocks, found = model.blocks, {"model.embed_tokens.weight": _array(model.embedding)}
    found["model.norm.weight"] = _array(model.norm.gain)
    if model.head is not None:
        found["lm_head.weight"] = _turned(model.head)
    for layer in range(len(blocks.attention_norm.gain)):
        name = f"model.layers.{layer}"
        found[f"{name}.input_layernorm.weight"] = _array(blocks.attention_norm.gain[layer])
        found[f"{name}.post_attention_layernorm.weight"] = _array(blocks.feed_forward_norm.gain[layer])
        found |= {f"{name}.self_attn.{part}": matrix for part, matrix in _attention(blocks.attention, layer)}
        if isinstance(blocks.feed_forward, SwiGLU):
            found |= {f"{name}.mlp.{part}": matrix for part, matrix in _gated(blocks.feed_forward, (layer,))}
        else:
            found |= {f"{name}.{part}": matrix for part, matrix in _experts(blocks.feed_forward, layer, bias, kind)}
    return found


def _attention(attention: Attention, layer: int) -> Iterator[tuple[str, Matrix]]:
    width = attention.query.shape[1]
    for name, matrix in (("q", attention.query), ("k", attention.key), ("v", attention.value)):
        yield f"{name}_proj.weight", _turned(matrix[layer].reshape(width, -1))
    yield "o_proj.weight", _turned(attention.output[layer].reshape(-1, width))
    if attention.query_norm is not None and attention.key_norm is not None:
        yield "q_norm.weight", _array(attention.query_norm.gain[layer])
        yield "k_norm.weight", _array(attention.key_norm.gain[layer])


def _experts(experts: Experts, layer: int, bias: Matrix, kind: Architecture) -> Iterator[tuple[str, Matrix]]:
    prefix, names = ("block_sparse_moe", MIXTRAL) if kind == "Mixtral" else ("mlp", GATED)
    yield f"{prefix}.gate.weight", _turned(experts.router[layer])
    each = SwiGLU(experts.gate, experts.up, experts.down)
    for expert in range(experts.router.shape[-1]):
        for name, matrix in _gated(each, (layer, expert), names):
            yield f"{prefix}.experts.{expert}.{name}", matrix
    if kind == "Glm4Moe":
        yield "mlp.gate.e_score_correction_bias", _array(bias[layer])
        hidden = experts.gate.shape[-1]
        for name, matrix in _gated(experts.shared or _nothing(experts), (layer,)):
            axis = 1 if name.startswith("down") else 0
            more = [(0, 0), (0, 0)]
            more[axis] = 0, -matrix.shape[axis] % hidden
            yield f"mlp.shared_experts.{name}", np.pad(matrix, more)


def _nothing(experts: Experts) -> SwiGLU:
    """Return a shared expert of no width: the architecture's arrays are there, and empty."""
    (layers, width, _), kind = experts.router.shape, np.float32
    into, out = np.zeros((layers, width, 0), kind), np.zeros((layers, 0, width), kind)
    return SwiGLU(into, into, out)  # type: ignore[arg-type]


def _gated(part: SwiGLU, at: tuple[int, ...], names: Mapping[str, str] = GATED) -> Iterator[tuple[str, Matrix]]:
    for ours, theirs in names.items():
        yield f"{theirs}.weight", _turned(getattr(part, ours)[at])


def _array(array: Any) -> Matrix:
    return np.ascontiguousarray(array, np.float32)


def _turned(array: Any) -> Matrix:
    return np.ascontiguousarray(np.asarray(array, np.float32).T)


def _write_tokenizer(folder: Path, tokenizer: Tokenizer, length: int) -> dict[str, int | None]:
    """Write the tokenizer's files and return the ids of its special tokens, as `config.json` has them."""
    (folder / "tokenizer.json").write_bytes(tokenizer.content())
    special = {"bos_token": tokenizer.bos, "eos_token": tokenizer.eos}
    described = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": length, **special}
    _write_json(folder / "tokenizer_config.json", described)
    encoder = tokenizer.encoder()
    return {"bos_token_id": encoder.bos, "eos_token_id": encoder.eos}


def _write_json(path: Path, value: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", "utf-8")
