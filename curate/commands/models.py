"""Commands on the model of a run: `export-model` writes it for Hugging Face, `sample` lets it write."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curate.commands.numbers import not_negative
from curate.commands.results import last_result
from curate.commands.store_options import STORE_HELP, add_store_options, store_of
from curate.commands.tokens import opened, tokenizer_of
from curate.configuration import ConfigurationError
from curate.visible import visible

if TYPE_CHECKING:
    from trainers.saved import Saved
    from transforms.tokens import Tokenizer


def add_export_model(command: argparse.ArgumentParser) -> None:
    """Add the arguments of `export-model`."""
    command.set_defaults(command=export_model_command)
    _add_run(command, "write the tokenizer of this store beside the model; ")
    command.add_argument("out", type=Path, metavar="OUT", help="folder to write, without a model so far")


def export_model_command(options: argparse.Namespace) -> int:
    """Write the model in the layout of Hugging Face and say as which architecture."""
    from trainers.export import export_model

    if options.out.exists() and not options.out.is_dir():
        raise ConfigurationError(f"{options.out} is a file: give a folder, which need not be there")
    saved = _open(options)
    tokenizer = None if options.store is None else _tokenizer(options, saved)
    kind = export_model(saved, options.out, tokenizer)
    print(f"{options.out}: {kind}ForCausalLM, step {saved.step}, state {saved.state}")
    return 0


def add_sample(command: argparse.ArgumentParser) -> None:
    """Add the arguments of `sample`."""
    command.set_defaults(command=sample_command)
    _add_run(command, "")
    number: Callable[..., Any] = command.add_argument
    number("--prompt", default="", metavar="TEXT", help="what the text begins with (default: nothing but BOS)")
    number(
        "--count",
        type=not_negative,
        default=100,
        metavar="N",
        help="most tokens to draw; EOS ends before (default: 100)",
    )
    number("--seed", type=int, default=0, metavar="N", help="the same seed gives the same text (default: 0)")
    number("--temperature", type=float, default=1.0, metavar="T", help="0 takes the likeliest token (default: 1)")
    number("--top-k", type=int, metavar="K", help="draw from the K likeliest tokens only")
    number(
        "--top-p", type=float, default=1.0, metavar="P", help="and of these from the fewest that reach P (default: 1)"
    )


def sample_command(options: argparse.Namespace) -> int:
    """Print the prompt and what the model writes after it."""
    from trainers.sampling import Sampling, sample

    saved = _open(options)
    if options.store is None:
        raise ConfigurationError("sample needs the tokenizer: name the store that was trained on, --store DIR")
    encoder = _tokenizer(options, saved).encoder()
    prompt = [*([] if encoder.bos is None else [encoder.bos]), *encoder.encode_plain(options.prompt).tolist()]
    if not prompt:
        raise ConfigurationError("this tokenizer has no BOS, so a text cannot begin from nothing: give a --prompt")
    sampling = Sampling(options.temperature, options.top_k, options.top_p, options.seed)
    stop = () if encoder.eos is None else (encoder.eos,)
    drawn = list(sample(saved, prompt, options.count, sampling, stop))
    start = int(encoder.bos is not None)
    text = encoder.decode([*prompt[start:], *drawn])
    print(visible(text, len(text)))
    return 0


def _add_run(command: argparse.ArgumentParser, purpose: str) -> None:
    command.add_argument("run", type=Path, metavar="RUN", help="folder of the run: log and checkpoints")
    command.add_argument("--step", type=int, metavar="S", help="updates of the checkpoint (default: the last one)")
    command.add_argument(
        "--weights",
        choices=["last", "average"],
        default="last",
        help="the parameters after the last update or their running average (default: last)",
    )
    command.add_argument("--store", metavar="DIR", help=f"{purpose}a store with the result trained on: {STORE_HELP}")
    add_store_options(command)
    command.add_argument("--recipe", metavar="FOLDER", help="result in the store (default: the one that ran last)")


def _open(options: argparse.Namespace) -> Saved:
    from trainers.saved import open_model

    return open_model(options.run, options.step, options.weights)


def _tokenizer(options: argparse.Namespace, saved: Saved) -> Tokenizer:
    """Return the tokenizer of the store.

    Raises:
        ConfigurationError: it has another vocabulary than the model.
    """
    store = store_of(options)
    _, plan, caches = opened(store, options.recipe or last_result(store))
    if plan.vocabulary != (own := saved.config.model.vocabulary):
        raise ConfigurationError(
            f"the tokenizer of {options.store} has {plan.vocabulary} tokens, the model {own}: "
            "name the store that the run was trained on"
        )
    return tokenizer_of(caches)
