"""Training a tokenizer on a dataset, as a stage. Memory: the distinct words of all texts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from curate.cells import TrainedTokenizer
from curate.datasets import Dataset
from curate.products import MadeOf, TokenizerFile, commit_tokenizer
from curate.store import Store
from transforms.token_training import train_bpe


def train(
    name: str, operation: TrainedTokenizer, key: str, described: dict[str, Any], dataset: Dataset, store: Store
) -> TokenizerFile:
    """Train the tokenizer of `operation` on all texts of `dataset`, and commit it with its card."""
    content = train_bpe(_texts(dataset), operation.vocab_size, operation.special)
    card = {
        "documents": dataset.rows,
        "texts": dataset.manifest["texts"],
        "dataset": dataset.content,
        "vocab_size": operation.vocab_size,
        "special": list(operation.special),
    }
    return commit_tokenizer(store, MadeOf(name, key, described, (dataset,), ()), content, card)


def _texts(dataset: Dataset) -> Iterator[str]:
    for batch in dataset.batches(["text"]):
        yield from batch.column("text").to_pylist()
