"""Training a tokenizer on a dataset, as a stage of one task. Memory: the distinct words of all texts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from curate.datasets import Dataset
from curate.digests import digest_json
from curate.parts import checked_bytes
from curate.products import MadeOf, TokenizerFile, commit_tokenizer
from curate.recipes.cells import TrainedTokenizer
from curate.running.jobs import Item, RunsJobs, publish_files
from curate.store import Store
from transforms.token_training import train_bpe


@dataclass(frozen=True, slots=True)
class TrainTokenizerJob:
    """Trains on all texts of `dataset`."""

    dataset: Dataset
    vocab_size: int
    special: tuple[str, ...]
    name: str

    @property
    def store(self) -> Store:
        """The store of the dataset."""
        return self.dataset.store

    def run(self, item: Item) -> int:
        """Publish the tokenizer.json and return how many documents it was trained on."""
        with self.store.spool() as path:
            path.write_bytes(train_bpe(self._texts(), self.vocab_size, self.special))
            publish_files(self.store, item, self.name, {"tokenizer.json": (path, 1)}, {})
        return self.dataset.rows

    def _texts(self) -> Iterator[str]:
        for batch in self.dataset.batches(["text"]):
            yield from batch.column("text").to_pylist()


def train(
    name: str, operation: TrainedTokenizer, key: str, described: dict[str, Any], dataset: Dataset, engine: RunsJobs
) -> TokenizerFile:
    """Train the tokenizer of `operation` on all texts of `dataset`, and commit it with its card."""
    task = digest_json({"operation": "train tokenizer: train", "stage": key})
    job = TrainTokenizerJob(dataset, operation.vocab_size, operation.special, name)
    inner = engine.receipts(job, [Item(task, dataset.name, {"dataset": dataset.key})])
    content = checked_bytes(engine.store, task, "tokenizer.json")
    card = {
        "documents": dataset.rows,
        "texts": dataset.manifest["texts"],
        "dataset": dataset.content,
        "vocab_size": operation.vocab_size,
        "special": list(operation.special),
    }
    return commit_tokenizer(engine.store, MadeOf(name, key, described, (dataset,), [inner]), content, card)
