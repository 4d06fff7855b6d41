"""What an exported folder computes, in plain NumPy and double precision, from its files alone.

Written after the definitions of the architectures: each file has (outputs, inputs) matrices, queries of consecutive
heads, rotary halves paired.
"""

import json

import numpy as np
from safetensors.numpy import load_file


def logits_of(folder, tokens):
    """Return the logits of each row of `tokens`, one document a row."""
    config = json.loads((folder / "config.json").read_text("utf-8"))
    arrays = {name: a.astype(np.float64) for name, a in load_file(folder / "model.safetensors").items()}
    return np.stack([_row(config, arrays, row) for row in np.asarray(tokens)])


def _row(config, arrays, tokens):
    x = arrays["model.embed_tokens.weight"][tokens]
    for layer in range(config["num_hidden_layers"]):
        part = {
            name.removeprefix(f"model.layers.{layer}."): a
            for name, a in arrays.items()
            if name.startswith(f"model.layers.{layer}.")
        }
        x = x + _attention(config, part, _norm(config, x, part["input_layernorm.weight"]))
        h = _norm(config, x, part["post_attention_layernorm.weight"])
        x = x + (_experts(config, part, h) if "num_experts_per_tok" in config else _gated(part, "mlp", h))
    head = arrays["model.embed_tokens.weight" if config["tie_word_embeddings"] else "lm_head.weight"]
    return _norm(config, x, arrays["model.norm.weight"]) @ head.T


def _norm(config, x, gain):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + config["rms_norm_eps"]) * gain


def _attention(config, part, x):
    heads, groups, width = config["num_attention_heads"], config["num_key_value_heads"], config["head_dim"]
    q, k, v = (
        (x @ part[f"self_attn.{name}_proj.weight"].T).reshape(len(x), -1, width).swapaxes(0, 1) for name in "qkv"
    )
    if "self_attn.q_norm.weight" in part:
        q, k = (_norm(config, a, part[f"self_attn.{name}_norm.weight"]) for name, a in (("q", q), ("k", k)))
    q, k = _turned(config, q), _turned(config, k)
    out = []
    for head in range(heads):
        scores = q[head] @ k[head // (heads // groups)].T / np.sqrt(width)
        weights = np.exp(np.where(np.tri(len(x), dtype=bool), scores, -np.inf))
        out.append(weights / weights.sum(-1, keepdims=True) @ v[head // (heads // groups)])
    return np.concatenate(out, axis=1) @ part["self_attn.o_proj.weight"].T


def _turned(config, x):
    half = x.shape[-1] // 2
    angles = np.arange(x.shape[1])[:, None] * config["rope_theta"] ** (-np.arange(half) / half)
    first, second = x[..., :half], x[..., half:]
    cos, sin = np.cos(angles), np.sin(angles)
    return np.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1)


def _gated(part, prefix, x, names=("gate_proj", "up_proj", "down_proj")):
    gate, up, down = (part[f"{prefix}.{name}.weight"].T for name in names)
    return (x @ gate / (1 + np.exp(-x @ gate)) * (x @ up)) @ down


def _experts(config, part, x):
    mixtral = config["model_type"] == "mixtral"
    prefix = "block_sparse_moe" if mixtral else "mlp"
    names = ("w1", "w3", "w2") if mixtral else ("gate_proj", "up_proj", "down_proj")
    logits = x @ part[f"{prefix}.gate.weight"].T
    scores = 1 / (1 + np.exp(-logits)) if config["model_type"] == "glm4_moe" else np.exp(logits)
    scores = scores if config["model_type"] == "glm4_moe" else scores / scores.sum(-1, keepdims=True)
    wanted = scores + part.get("mlp.gate.e_score_correction_bias", 0)
    total = _gated(part, "mlp.shared_experts", x) if config.get("n_shared_experts") else np.zeros_like(x)
    for place, score in enumerate(scores):
        chosen = np.argsort(-wanted[place])[: config["num_experts_per_tok"]]
        for expert in chosen:
            total[place] += (
                score[expert] / score[chosen].sum() * _gated(part, f"{prefix}.experts.{expert}", x[place], names)
            )
    return total
