"""Classifiers in a recipe: `train_classifier`, a stage that gives a model and its card.

    candidates   per shard   documents that may be learned from: windows of text, and what is known of them
    train        once        the model, judged on what it never saw, and its card

Which documents are candidates follows from a keyed digest of the text and the number of documents in each class, not
from shards or their order; `transforms.training_set` says who trains and who judges, `transforms.classifier_training`
what the card has. Memory: `train` holds the windows of all candidates, at most some 8 kB each.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any, ClassVar, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from curate.committing.gathered import Receipts
from curate.configuration import ConfigurationError
from curate.datasets import Dataset as Finished
from curate.digests import digest_json
from curate.parts import checked_bytes, checked_file, part_batches
from curate.recipes.graph import Dataset
from curate.recipes.models import Fitted, FittedModel, Fitting
from curate.running.jobs import Item, Resources, publish_files
from curate.store import Store, json_line
from curate.writer import write_parquet
from transforms.classifier_training import train_and_judge
from transforms.duplicates import text_digests
from transforms.exact_numbers import Number, exact
from transforms.learners import Examples, HashedLinear, Learner
from transforms.minhash import MinHash
from transforms.sites import sites_of
from transforms.text_windows import windows_of
from transforms.training_set import (
    CANDIDATES,
    NEGATIVE,
    POSITIVE,
    TARGET,
    Selection,
    first_candidates,
    source_to_leave_out,
    text_keys,
)

FILE: Final = "classifier.bin"
TABLE: Final = "candidates.parquet"
AUTOMATIC: Final = "*"
NONE: Final = ""

MORE: Final = 2
"""Candidates of a class, as multiples of the documents that train: some are held out, or go as duplicates."""

ALL: Final = 1 << 64
WINDOW_BYTES: Final = 40 << 10
"""Bytes of memory that training takes per candidate: windows, shingles, a batch of features."""


@dataclass(frozen=True, slots=True)
class FitClassifier:
    """How a classifier is trained; see `train_classifier`.

    `parts` are the numbers of datasets among the inputs that are positive, negative, and of the target corpus.
    `leave_out` is a source, `AUTOMATIC` or `NONE`.
    """

    learner: Learner
    parts: tuple[int, int, int]
    documents: int
    held_out: Fraction
    leave_out: str
    near: MinHash | None
    width: int
    site: str

    version: ClassVar[int] = 1
    verb: ClassVar[str] = "train classifier"
    file: ClassVar[str] = FILE

    def columns(self) -> Mapping[str, str]:
        """Return the column of sites, where one is named; another that documents lack tells nothing of them."""
        return {} if self.site == "url" else {self.site: "strings"}

    def warm(self) -> None:
        """Compile the kernels of windows, sites and the learner."""
        text = "One short line of text.\nAnother one, with a few more words in it.\n"
        texts = pa.array([text, text + "More.", text.upper(), "x y"], pa.large_string())
        windows = windows_of(texts, self.width).texts
        sites_of(pa.array(["http://www.example.co.uk/a?b=c"], pa.large_string()))
        if isinstance(self.learner, HashedLinear):
            self.learner.fit(Examples(windows, np.array([1, 0, 1, 0], np.int8), np.ones(4)), self.width)

    def fit(self, fitting: Fitting) -> Fitted:
        """Collect candidates, train and judge."""
        engine = fitting.engine
        items: list[Item] = []
        for label, datasets in self._classes(fitting.datasets):
            least = self._cutoff(label, sum(dataset.rows for dataset in datasets))
            for number, dataset in enumerate(datasets):
                names = tuple(name for name, _ in dataset.manifest["schema"])
                for shard in dataset.kept_shards():
                    key = _task_key(fitting.key, "candidates", [label, number, shard["key"]])
                    part = Part(shard["key"], label, least, names)
                    items.append(Item(key, f"{dataset.name} {len(items)}", asdict(part), shard["bytes"]))
        inner: list[Receipts] = [engine.receipts(CandidatesJob(engine.store, self), items)]
        keys = tuple(item.key for item in items)
        last = Item(_task_key(fitting.key, "train", list(keys)), "train", keys)
        rows = sum(receipt.files[TABLE].rows or 0 for receipt in inner[0])
        inner.append(engine.receipts(TrainJob(engine.store, self, fitting.forbids, rows), [last]))
        card: dict[str, Any] = json.loads(checked_bytes(engine.store, last.key, "card.json"))
        return Fitted({FILE: checked_bytes(engine.store, last.key, FILE)}, card, tuple(inner))

    def _classes(self, datasets: Sequence[Finished]) -> list[tuple[int, Sequence[Finished]]]:
        positives, negatives, _ = self.parts
        ends = positives, positives + negatives
        parts = datasets[: ends[0]], datasets[ends[0] : ends[1]], datasets[ends[1] :]
        return list(zip((POSITIVE, NEGATIVE, TARGET), parts, strict=True))

    def _cutoff(self, label: int, rows: int) -> int:
        """Return the key below which a document of this class is a candidate: enough are, with room for chance."""
        wanted = MORE * self.documents
        return min(ALL, ALL * (wanted + wanted // 8 + 1000) // max(1, rows))

    def most(self, label: int) -> int:
        """Return how many candidates of a class are looked at; of the target as many as of one class train."""
        return self.documents if label == TARGET else MORE * self.documents


@dataclass(frozen=True, slots=True)
class Part:
    """A shard to find candidates in: of which class, below which key, and the columns that it has."""

    shard: str
    label: int
    below: int
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CandidatesJob:
    """Per shard: its candidates."""

    store: Store
    fit: FitClassifier
    name: str = "classifier: candidates"

    def run(self, item: Item) -> int:
        """Publish the candidates of one shard, and return how many documents it has."""
        part = Part(**item.unit)
        tables, rows = [CANDIDATES.empty_table()], 0
        columns = ["text", "source", *(name for name in (self.fit.site, "topic", "language") if name in part.names)]
        for batch in part_batches(self.store, part.shard, list(dict.fromkeys(columns)), _TYPES):
            tables.append(self._candidates(batch, part))
            rows += batch.num_rows
        table = first_candidates(pa.concat_tables(tables), self.fit.most(part.label)).combine_chunks()
        with self.store.spool() as path:
            write_parquet(path, table.to_batches(), CANDIDATES)
            publish_files(self.store, item, self.name, {TABLE: (path, table.num_rows)}, {})
        return rows

    def _candidates(self, batch: pa.RecordBatch, part: Part) -> pa.Table:
        digests = text_digests(batch.column("text"))
        keys = text_keys(digests)
        full = np.asarray(pc.greater(pc.binary_length(batch.column("text")), 0))
        below = np.ones(len(keys), np.bool_) if part.below >= ALL else keys < np.uint64(part.below)
        mine = pa.array(np.flatnonzero(below & full))
        rows = batch.take(mine)
        text = rows.column("text")
        windows = windows_of(text, self.fit.width)
        columns = [
            pa.array(np.full(rows.num_rows, part.label, np.int8)),
            pa.array(keys).take(mine),
            digests.take(mine),
            rows.column("source"),
            self._sites(rows),
            _string(rows, "topic"),
            _string(rows, "language"),
            pc.utf8_length(text).cast(pa.int64()),
            pa.LargeListArray.from_arrays(pa.array(windows.offsets), windows.texts),
        ]
        return pa.Table.from_arrays(columns, schema=CANDIDATES)

    def _sites(self, rows: pa.RecordBatch) -> pa.LargeStringArray:
        values = _string(rows, self.fit.site)
        return sites_of(values) if self.fit.site == "url" else values


_TYPES: Final = pa.schema([pa.field(name, pa.large_string()) for name in ("text", "source")])


def _string(rows: pa.RecordBatch, name: str) -> Any:
    if rows.schema.get_field_index(name) < 0:
        return pa.nulls(rows.num_rows, pa.large_string())
    return rows.column(name).cast(pa.large_string())


@dataclass(frozen=True, slots=True)
class TrainJob:
    """Once: the model and its card. The item's unit are the shard keys of candidates."""

    store: Store
    fit: FitClassifier
    forbids: frozenset[str]
    rows: int
    name: str = "classifier: train"

    @property
    def resources(self) -> Resources:
        """What the task needs: all candidates are in memory."""
        return Resources(memory=(1 << 30) + WINDOW_BYTES * self.rows)

    def run(self, item: Item) -> int:
        """Publish model and card, and return how many documents there were to learn from."""
        fit = self.fit
        tables = [pq.read_table(checked_file(self.store, key, TABLE), schema=CANDIDATES) for key in item.unit]
        table = _first(pa.concat_tables([CANDIDATES.empty_table(), *tables]), fit)
        leave_out = source_to_leave_out(table) if fit.leave_out == AUTOMATIC else fit.leave_out or None
        selection = Selection(fit.documents, fit.held_out, leave_out, fit.near)
        made = train_and_judge(table, fit.learner, fit.width, selection, self.shows)
        with self.store.spool() as first, self.store.spool() as second:
            first.write_bytes(made.content)
            second.write_bytes(json_line(made.card))
            publish_files(self.store, item, self.name, {FILE: (first, 1), "card.json": (second, 1)}, {})
        return int(table.num_rows)

    def shows(self, source: str) -> bool:
        """Return whether texts of `source` may be shown."""
        return source not in self.forbids


def _first(table: pa.Table, fit: FitClassifier) -> pa.Table:
    """Return the candidates of each class that are looked at."""
    parts = [
        first_candidates(table.filter(pc.equal(table.column("class"), label)), fit.most(label))
        for label in (TARGET, NEGATIVE, POSITIVE)
    ]
    return pa.concat_tables(parts)


def _task_key(stage: str, task: str, unit: object) -> str:
    return digest_json({"operation": f"classifier {task}", "stage": stage, "unit": unit})


def train_classifier(
    positives: Dataset | Sequence[Dataset],
    negatives: Dataset | Sequence[Dataset],
    *,
    target: Dataset | Sequence[Dataset] = (),
    learner: Learner | None = None,
    documents: int = 20_000,
    held_out: Number = 0.2,
    leave_out: str | None = AUTOMATIC,
    near_duplicates: float | MinHash | None = 0.8,
    width: int = 2_000,
    site: str = "url",
    name: str = "train classifier",
) -> FittedModel:
    """Return a classifier that tells documents like `positives` from documents like `negatives`, for `Quality`.

    Its score is the log-odds, in thousandths, that a document is like the positives. With it comes a card (`curate
    classifier STORE`): how it does on sites and on a source that it never saw, pooled and within source, topic and
    language, against predictors that know source or length alone; calibration; what explains its scores; which features
    tell. The same for quality, toxicity or any label.

    Args:
        positives: what scores shall be high for.
        negatives: what they shall be low for. A source may be on both sides, as labelled documents of one collection.
        target: documents that the classifier is for; the card says how their scores lie and what explains them.
        learner: `HashedLinear()` where it is None; `FastText()`, `EmbeddedLinear(embedder)`.
        documents: most of a class that train; at most four times as many as of the other, and both weigh the same.
        held_out: share of the sites that judge and do not train.
        leave_out: source that judges and does not train; "*": the smallest of which a class can spare; None: none.
        near_duplicates: Jaccard similarity from which on of two documents of a class one goes, or a `MinHash`; None:
            equal texts only.
        width: code points of a window; a long text has three: its beginning, middle and end.
        site: column that says what belongs together: "url", of which the site is taken, or another column of strings.
            Documents without it each stand for themselves.
        name: of the stage.

    Raises:
        ConfigurationError: no positives or no negatives, a number is out of its range, or no class has the source
            `leave_out`.
    """
    sides = [_datasets(side) for side in (positives, negatives, target)]
    if not sides[0] or not sides[1]:
        raise ConfigurationError("train_classifier() needs positives and negatives: give at least one dataset of each")
    share = exact(held_out)
    if documents < 1 or width < 1 or not 0 <= share < 1:
        raise ConfigurationError(
            f"train_classifier(documents={documents}, width={width}, held_out={held_out}): give positive numbers, and "
            "a share below 1"
        )
    known = sorted({source for dataset in (*sides[0], *sides[1]) for source in dataset.sources})
    if leave_out not in (None, AUTOMATIC, NONE, *known):
        raise ConfigurationError(f"train_classifier(leave_out={leave_out!r}): the sources are {', '.join(known)}")
    near = near_duplicates
    if near is not None and not isinstance(near, MinHash):
        near = MinHash(threshold=near)
    parts = (len(sides[0]), len(sides[1]), len(sides[2]))
    given = learner or HashedLinear()
    fit = FitClassifier(given, parts, documents, share, leave_out or NONE, near, width, site)
    return FittedModel((*sides[0], *sides[1], *sides[2]), fit, name)


def _datasets(side: Dataset | Sequence[Dataset]) -> tuple[Dataset, ...]:
    return (side,) if isinstance(side, Dataset) else tuple(side)
