"""Topics of a corpus: `fit_topics` fits them to a sample, the same however the corpus is cut into shards.

    sample   per shard   beginnings of the documents that may be in the sample
    fit      once        the sample; vectors, groups, terms, names; topics and their card

The arithmetic is in `transforms.topic_sample` and `transforms.topic_fitting`. Memory: a batch; in the last task the
beginnings of the sampled texts, 2 kB of vectors for each, and some MB.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Final

import pyarrow as pa
import pyarrow.parquet as pq

from curate.configuration import ConfigurationError, describe
from curate.digests import digest_json
from curate.parts import checked_bytes, checked_file, part_batches
from curate.recipes.graph import Dataset
from curate.recipes.models import Fitted, FittedModel, Fitting
from curate.running.jobs import Item, publish_files
from curate.store import Store, json_line
from curate.writer import write_parquet
from transforms import topic_fitting
from transforms.embedding import Embedder, HashedTfidf
from transforms.exact_numbers import Number, exact
from transforms.spherical_kmeans import ROUNDS
from transforms.topic_fitting import Sampled
from transforms.topic_sample import SAMPLE, bound, lowest, sampled
from transforms.topics import Topics

DIMENSION: Final = 1024
"""Numbers in a vector of the default embedder; with half as many topics agree with known domains a little less."""

_PART: Final = "sample.parquet"
_CARD: Final = "card.json"


@dataclass(frozen=True, slots=True)
class FitTopics:
    """How topics are fitted; see `fit_topics`."""

    k: int
    embedder: Embedder
    language: str | None
    documents: int
    min_share: Fraction
    characters: int
    seed: int
    rounds: int

    version: ClassVar[int] = 1
    verb: ClassVar[str] = "fit topics"
    file: ClassVar[str] = "topics.model"

    def columns(self) -> Mapping[str, str]:
        """Return the column of languages, where one is named."""
        return {self.language: "strings"} if self.language else {}

    def fit(self, fitting: Fitting) -> Fitted:
        """Fit topics to a sample of all datasets."""
        engine, rows = fitting.engine, sum(dataset.rows for dataset in fitting.datasets)
        shards = [shard for dataset in fitting.datasets for shard in dataset.kept_shards()]
        items = [
            Item(_task_key(fitting.key, number), f"sample {number}", {"shard": shard["key"]}, shard["bytes"])
            for number, shard in enumerate(shards)
        ]
        parts = engine.receipts(SampleJob(engine.store, self, bound(self.documents, rows)), items)
        last = Item(_task_key(fitting.key, "fit"), "fit", {"parts": len(items)})
        fitted = engine.receipts(FitJob(engine.store, self, tuple(item.key for item in items)), [last])
        made = {name: checked_bytes(engine.store, last.key, name) for name in (self.file, _CARD)}
        card: dict[str, Any] = json.loads(made[_CARD])
        card |= {"of": rows, "embedder": describe(self.embedder)}
        return Fitted({self.file: made[self.file]}, card, (parts, fitted))

    def topics_of(self, rows: pa.Table) -> tuple[Topics, dict[str, Any]]:
        """Return topics of `rows` of `SAMPLE`, and their card."""
        texts = pa.concat_arrays([pa.array([], pa.large_string()), *rows.column("text").chunks])
        languages = rows.column("language").to_pylist() if self.language else None
        how = topic_fitting.Fitting(
            self.k, self.embedder, self.min_share, self.characters, seed=self.seed, rounds=self.rounds
        )
        return topic_fitting.fit(Sampled(rows.column("id").to_pylist(), texts, languages), how)

    def warm(self) -> None:
        """Call the kernels of sampling, fitting and assigning once; an embedder of the user's own is never called."""
        if isinstance(self.embedder, HashedTfidf):
            texts = pa.array(["One line that a kernel is compiled on.", "Another, with 中文."], pa.large_string())
            ids = pa.array([bytes(16), b"1" * 16], pa.binary(16))
            batch = pa.RecordBatch.from_arrays([ids, texts, texts], names=["id", "text", "language"])
            self.topics_of(lowest(pa.Table.from_batches([sampled(batch, 1 << 64, self.characters, 0)]), 2))


def fit_topics(
    dataset: Dataset,
    k: int = 40,
    *,
    embedder: Embedder | None = None,
    language: str | None = None,
    documents: int = 20_000,
    min_share: Number | str | None = None,
    characters: int = 20_000,
    seed: int = 0,
    rounds: int = ROUNDS,
    name: str = "fit topics",
) -> FittedModel:
    """Return `k` topics of `dataset`, for `AssignTopic`: centres in a space of texts, with names and a card.

    The same documents give the same topics, however they are cut into shards: topics are fitted to those whose texts
    have the lowest keyed digests, by spherical k-means in integers.

    Args:
        dataset: documents; duplicates are best gone, for many of one text are a topic of their own.
        k: how many topics; fewer come out where documents cannot be divided into so many.
        embedder: what turns texts into vectors; None is hashed TF-IDF of 1,024 numbers (`transforms.embedding`), the
            same on any machine.
        language: column of languages, as `Language` writes it. The words that tell a topic are then compared within
            its language, so that no function words come into its name.
        documents: how many are looked at.
        min_share: least share of these in a topic, a decimal; None is a tenth of an even share, 1 / (10 k).
        characters: code points from the beginning of a text that count, when fitting and when assigning.
        seed: of the sample and of the first centres.
        rounds: how often centres move.
        name: of the stage.

    Raises:
        ConfigurationError: a number that is not positive, a share above 1 / k, or no embedder.
    """
    for what, number in (("k", k), ("documents", documents), ("characters", characters), ("rounds", rounds)):
        if number < 1:
            raise ConfigurationError(f"fit_topics({what}={number}): give a positive number")
    share = Fraction(1, 10 * k) if min_share is None else exact(min_share)
    if not 0 <= share * k <= 1:
        raise ConfigurationError(f"fit_topics(k={k}, min_share={min_share}): {k} topics cannot all have that share")
    chosen = HashedTfidf(DIMENSION) if embedder is None else embedder
    if isinstance(chosen, type) or not isinstance(chosen, Embedder):
        raise ConfigurationError(
            f"fit_topics(embedder={chosen!r}): that is no embedder, which has version, libraries, dimension and embed "
            "(see transforms/embedding.py). Did you mean an instance?"
        )
    fit = FitTopics(k, chosen, language, documents, share, characters, seed, rounds)
    return FittedModel((dataset,), fit, name)


@dataclass(frozen=True, slots=True)
class SampleJob:
    """Per shard: the documents whose keys lie below a bound."""

    store: Store
    fit: FitTopics
    below: int
    name: str = "topics: sample"

    def run(self, item: Item) -> int:
        """Publish the documents of a shard that may be in the sample, and return their number."""
        fit = self.fit
        batches = (
            sampled(batch, self.below, fit.characters, fit.seed) for batch in _documents(self.store, item, fit.language)
        )
        with self.store.spool() as path:
            written = write_parquet(path, batches, SAMPLE)
            publish_files(self.store, item, self.name, {_PART: (path, written.rows, written.content)}, {})
        return written.rows


def _documents(store: Store, item: Item, language: str | None) -> Iterator[pa.RecordBatch]:
    columns = ["id", "text", *([language] if language else [])]
    types = pa.schema([pa.field(name, pa.large_string()) for name in columns])
    for batch in part_batches(store, item.unit["shard"], columns, types):
        spoken = batch.column(language) if language else pa.nulls(batch.num_rows)
        arrays = [batch.column("id"), batch.column("text"), spoken.cast(pa.large_string())]
        yield pa.RecordBatch.from_arrays(arrays, names=["id", "text", "language"])


@dataclass(frozen=True, slots=True)
class FitJob:
    """Once: topics of the sample, which lies in the shards `parts`."""

    store: Store
    fit: FitTopics
    parts: tuple[str, ...]
    name: str = "topics: fit"

    def run(self, item: Item) -> int:
        """Publish topics and card, and return the number of documents that they were fitted to."""
        parts = [pq.read_table(checked_file(self.store, key, _PART), schema=SAMPLE) for key in self.parts]
        rows = lowest(pa.concat_tables([SAMPLE.empty_table(), *parts]), self.fit.documents)
        topics, card = self.fit.topics_of(rows)
        with self.store.spool() as first, self.store.spool() as second:
            first.write_bytes(topics.to_bytes())
            second.write_bytes(json_line(card))
            publish_files(self.store, item, self.name, {self.fit.file: (first, 1), _CARD: (second, 1)}, {})
        return int(rows.num_rows)


def _task_key(stage: str, task: int | str) -> str:
    return digest_json({"operation": "fit topics", "stage": stage, "task": task})
