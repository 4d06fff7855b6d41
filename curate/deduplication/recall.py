"""Measured recall: of similar pairs that came into a deduplication, how many its banding proposes.

Pairs are drawn from all that came in, before anything went, without bias (`transforms.banding_sample`), compared
exactly, and held against the banding of the stage: see `transforms.banding_curve`. Buckets that were too large to be
compared are not looked at; the stage counts the pairs that it gave up.

Cost: two passes over the texts, the first with four hashes of each shingle. Memory: 130 bytes a
text, a batch, the pairs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from curate.datasets import Dataset
from curate.parquet_batches import group_batches, open_parquet
from curate.recall import UNIT, RecallPoint, StageRecall
from curate.receipts import shard_folder
from curate.run import Result
from curate.running.progress import Progress
from transforms.banding_curve import Point, paired_points
from transforms.banding_sample import Meetings, meeting_hashes, text_keys
from transforms.exact_numbers import decimal_text
from transforms.minhash import MinHash
from transforms.order_key import group_hashes
from transforms.text_columns import code_points

LEAST = Fraction(1, 2)
"""The similarity from which on pairs are looked at."""


def measured_stages(result: Result, pairs: int) -> Iterator[tuple[StageRecall, MinHash, list[Point]]]:
    """Yield what is measured of each stage of `result` that looks for near duplicates, its method and the points.

    At most so many `pairs` are drawn. A stage that leaves templates out of its shingles is passed over: its sets are
    not those of the texts.

    Raises:
        StoreError: the store is damaged.
    """
    made = {(dataset.name, dataset.key): dataset for dataset in result.stages}
    for dataset in result.stages:
        fields = method_fields(dataset.manifest["operation"])
        if fields is None:
            continue
        method = method_of(fields["method"]["fields"])
        inputs = [made[entry["name"], entry["key"]] for entry in dataset.manifest["inputs"]]
        texts, one, other = drawn_pairs(inputs, method, fields["within"], pairs, f"{dataset.name}: pairs")
        points = paired_points(one, other, method, LEAST) if len(one) else []
        yield StageRecall(dataset.name, dataset.key, texts, tuple(map(_kept, points))), method, points


def method_fields(operation: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the fields of a deduplication by MinHash of whole texts; None of any other operation."""
    fields: Mapping[str, Any] = operation.get("fields", {})
    method = fields.get("method") or {}
    is_near = operation.get("operation") == "deduplicate" and method.get("class") == "MinHash"
    return fields if is_near and not fields.get("without_templates") else None


def method_of(fields: Mapping[str, Any]) -> MinHash:
    """Return the method that a manifest describes."""
    threshold = fields["threshold"]
    exact = next(iter(threshold.values())) if isinstance(threshold, Mapping) else threshold
    return MinHash(**{**fields, "threshold": Fraction(str(exact))})


def drawn_pairs(
    inputs: Sequence[Dataset], method: MinHash, within: str | None, most: int, title: str
) -> tuple[int, pa.LargeStringArray, pa.LargeStringArray]:
    """Return how many different texts there are, and the first and the second text of each pair drawn."""
    meetings, keys = Meetings(), list[Any]()
    for batch in _batches(inputs, ["text", *([] if within is None else [within])], title):
        groups = None if within is None else group_hashes(batch.column(within))
        mine = text_keys(batch.column("text"))
        meetings.add(meeting_hashes(batch.column("text"), method, groups), mine)
        keys.append(mine)
    texts = len(np.unique(np.concatenate(keys))) if keys else 0
    pairs = meetings.pairs(most)
    wanted = np.unique(pairs)
    found: dict[int, str] = {}
    for batch in _batches(inputs, ["text"], title) if len(wanted) else ():
        mine = text_keys(batch.column("text"))
        for row in np.flatnonzero(np.isin(mine, wanted)).tolist():
            found.setdefault(int(mine[row]), batch.column("text")[row].as_py())
    one, other = (pa.array([found[key] for key in side], pa.large_string()) for side in pairs.T.tolist())
    return texts, one, other


def _batches(inputs: Sequence[Dataset], columns: Sequence[str], title: str) -> Iterator[pa.RecordBatch]:
    """Yield the documents of `inputs` whose text is not empty."""
    progress = Progress(title, None, 0)
    for dataset in inputs:
        for shard in dataset.each_shard(["key", "content"]):
            if shard["content"] is None:
                continue
            with open_parquet(dataset.store.local(f"{shard_folder(shard['key'])}/part.parquet")) as file:
                for group in range(file.num_row_groups):
                    for batch in group_batches(file, group, columns):
                        yield batch.filter(pa.array(code_points(batch.column("text")) > 0))
                        progress.advance(batch.num_rows, batch.nbytes)
    progress.finish()


def _kept(point: Point) -> RecallPoint:
    low, high = decimal_text(point.low), decimal_text(point.high)
    return RecallPoint(low, high, point.pairs, point.candidates, round(point.expected * UNIT))
