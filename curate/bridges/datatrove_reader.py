"""Documents of a finished dataset as the first step of a datatrove pipeline.

A pipeline calls its steps with (data, rank, world size); the reader yields the shards whose number is `rank` modulo the
world size, so that any number of tasks together sees each document once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow.parquet as pq

from curate.bridges.rows import check_columns, plain_value
from curate.configuration import ConfigurationError
from curate.datasets import Dataset
from curate.receipts import shard_folder
from curate.store import Store

NAMED: Final = ("text", "id")


@dataclass(frozen=True, slots=True)
class DatatroveReader:
    """What `to_datatrove` returns: yields datatrove's `Document`s; other columns are its metadata, nulls left out."""

    store: Store
    shards: tuple[str, ...]
    columns: tuple[str, ...]
    name: str = "curate"
    type: str = "reader"

    def __call__(self, data: Iterable[Any] | None = None, rank: int = 0, world_size: int = 1) -> Iterator[Any]:
        """Yield what comes from earlier steps, then the documents of this rank."""
        from datatrove.data import Document

        yield from data or ()
        for key in self.shards[rank::world_size]:
            path = self.store.local(f"{shard_folder(key)}/part.parquet")
            with pq.ParquetFile(path) as file:
                for batch in file.iter_batches(columns=list(self.columns)):
                    for row in batch.to_pylist():
                        more = {name: plain_value(value) for name, value in row.items() if name not in NAMED}
                        known = {name: value for name, value in more.items() if value is not None}
                        yield Document(text=row["text"], id=row["id"].hex(), metadata=known)


def to_datatrove(dataset: Dataset, columns: Sequence[str] | None = None) -> DatatroveReader:
    """Return a reader of `dataset` to begin a datatrove pipeline with: `[to_datatrove(dataset), JsonlWriter(…)]`.

    Args:
        dataset: a finished dataset, as `open_result(store, folder).outputs["documents"]`.
        columns: beside `id` and `text` which become metadata; None: all.

    Raises:
        ConfigurationError: it has no text, or lacks one of the columns.
    """
    more = [name for name in check_columns(dataset, columns) if name not in NAMED]
    try:
        check_columns(dataset, NAMED)
    except ConfigurationError:
        raise ConfigurationError(f"{dataset.name} holds records, not documents: apply ExtractText first") from None
    shards = tuple(str(shard["key"]) for shard in dataset.kept_shards())
    return DatatroveReader(dataset.store, shards, (*NAMED, *more))
