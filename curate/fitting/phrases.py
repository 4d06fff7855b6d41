"""Phrases of benchmarks that are common in a corpus, in a recipe: counted per shard, added up once.

    count       per shard      texts that have each phrase, but for those in which its item is found
    choose      once           the sum, and the phrases that are common

Invariants: texts that stand in several shards count once in each. Memory: the index of the benchmarks, and the counts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

import pyarrow as pa
import pyarrow.parquet as pq

from curate.configuration import ConfigurationError
from curate.digests import digest_json
from curate.parts import checked_bytes, checked_file, part_batches
from curate.receipts import read_receipt
from curate.recipes.graph import Dataset
from curate.recipes.models import Fitted, FittedModel, Fitting
from curate.running.jobs import Item, publish_files
from curate.store import Store, StoreError, json_line
from curate.writer import write_parquet
from transforms.contamination import Benchmark, Decontaminate
from transforms.contamination_common import LEAST, SHARE
from transforms.contamination_counts import PhraseCounts

COUNTS: Final = pa.schema(
    [pa.field("phrase", pa.uint64(), nullable=False), pa.field("texts", pa.int64(), nullable=False)]
)
TABLE: Final = "phrases.parquet"
TEXT: Final = pa.schema([pa.field("text", pa.large_string())])


@dataclass(frozen=True, slots=True)
class FitPhrases:
    """How common phrases are fitted; see `fit_phrases`."""

    decontaminate: Decontaminate

    version: ClassVar[int] = 1
    verb: ClassVar[str] = "fit phrases"
    file: ClassVar[str] = "phrases.bin"

    def columns(self) -> Mapping[str, str]:
        """Return no column beside `text`."""
        return {}

    def warm(self) -> None:
        """Compile the kernels."""
        self.decontaminate.ready()

    def fit(self, fitting: Fitting) -> Fitted:
        """Count, add up, and choose."""
        engine = fitting.engine
        shards = [shard for dataset in fitting.datasets for shard in dataset.kept_shards()]
        items = [
            Item(_task_key(fitting.key, shard["key"]), f"shard {n}", shard["key"], shard["bytes"])
            for n, shard in enumerate(shards)
        ]
        counted = engine.receipts(CountJob(engine.store, self), items)
        keys = tuple(item.key for item in items)
        last = Item(_task_key(fitting.key, list(keys)), "choose", keys)
        chosen = engine.receipts(ChooseJob(engine.store, self), [last])
        content = checked_bytes(engine.store, last.key, self.file)
        card: dict[str, Any] = json.loads(checked_bytes(engine.store, last.key, "card.json"))
        return Fitted({self.file: content}, card, (counted, chosen))


@dataclass(frozen=True, slots=True)
class CountJob:
    """Per shard: in how many texts each phrase stands. Items' units are shard keys."""

    store: Store
    fit: FitPhrases
    name: str = "phrases: count"

    def run(self, item: Item) -> int:
        """Publish the counts of shard `item.unit`, and return its documents."""
        counts, rows = PhraseCounts(self.fit.decontaminate), 0
        for batch in part_batches(self.store, item.unit, ["text"], TEXT):
            counts.add(batch.column("text"))
            rows += batch.num_rows
        table = pa.RecordBatch.from_arrays([pa.array(column) for column in counts.table()], schema=COUNTS)
        with self.store.spool() as path:
            write_parquet(path, [table], COUNTS)
            publish_files(
                self.store, item, self.name, {TABLE: (path, len(table))}, {"phrases": {"texts": counts.texts}}
            )
        return rows


@dataclass(frozen=True, slots=True)
class ChooseJob:
    """Once: the sum of all counts, and what is common. The item's unit are the keys of the counts."""

    store: Store
    fit: FitPhrases
    name: str = "phrases: choose"

    def run(self, item: Item) -> int:
        """Publish the phrases, and return how many texts were counted."""
        counts = PhraseCounts(self.fit.decontaminate)
        for key in item.unit:
            table = pq.read_table(checked_file(self.store, key, TABLE), schema=COUNTS)
            texts = _texts_of(self.store, key)
            counts.add_counts(table.column("phrase").to_numpy(), table.column("texts").to_numpy(), texts)
        common = counts.common()
        card = {
            "texts": common.texts,
            "phrases": len(common.hashes()),
            "least": LEAST,
            "share": SHARE,
            **replace(self.fit.decontaminate, common=common).card(),
        }
        with self.store.spool() as first, self.store.spool() as second:
            first.write_bytes(common.to_bytes())
            second.write_bytes(json_line(card))
            publish_files(self.store, item, self.name, {self.fit.file: (first, 1), "card.json": (second, 1)}, {})
        return counts.texts


def _texts_of(store: Store, key: str) -> int:
    receipt = read_receipt(store, key)
    if receipt is None:
        raise StoreError(f"the counts {key} are not there: run the recipe again to make them")
    return int(receipt.statistics["phrases"]["texts"])


def _task_key(stage: str, unit: object) -> str:
    return digest_json({"operation": "count phrases", "stage": stage, "unit": unit})


def fit_phrases(
    dataset: Dataset | Sequence[Dataset], *benchmarks: Benchmark, name: str = "fit phrases", **options: Any
) -> FittedModel:
    """Return the phrases of `benchmarks` that are common in `dataset`, for `decontaminate(…, common=…)`.

    A phrase (five words) is common if at least `transforms.contamination_common.LEAST` texts have it, and more than one
    text in `SHARE`, of those in which the item with that phrase is not found.

    Args:
        dataset: what the phrases are common in: what will be decontaminated, or some of it.
        benchmarks: those that are looked for.
        name: of the stage.
        options: `ngram` and `coverage` of `Decontaminate`, where these are not its own.

    Raises:
        ConfigurationError: no benchmark is given.
    """
    if not benchmarks:
        raise ConfigurationError("fit_phrases needs the benchmarks that are looked for")
    datasets = (dataset,) if isinstance(dataset, Dataset) else tuple(dataset)
    return FittedModel(datasets, FitPhrases(Decontaminate(benchmarks, **options)), name)
