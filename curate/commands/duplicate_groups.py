"""Groups of duplicates as ledgers tell of them: a document that stays, and those that went because of it.

Memory: a count for each survivor, the members that are asked for. Cost: two passes over the ledger of a stage; for
texts one pass over the ids of the datasets before it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from heapq import nsmallest
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from curate.datasets import Dataset, has_dataset, open_dataset
from curate.receipts import shard_folder
from transforms.schema import ID


@dataclass(frozen=True, slots=True)
class Member:
    """A document that went.

    `similarity` is in words, as in the ledger, "" where what was compared is the same; `equal_to` the near duplicate,
    gone too, that has its very text; `reference` the earlier dataset that its survivor is in, if it is in one.
    """

    id: bytes
    source: str
    reason: str
    similarity: str
    characters: int
    equal_to: bytes | None
    reference: str | None


@dataclass(frozen=True, slots=True)
class Group:
    """A survivor and those of the documents that went because of it that are listed; `size` counts all of them."""

    survivor: bytes
    size: int
    members: tuple[Member, ...]


def names_survivors(dataset: Dataset) -> bool:
    """Return whether the ledger of `dataset` names a survivor for each document that it dropped as a duplicate."""
    return str(dataset.manifest["operation"].get("operation", "")).startswith("deduplicate")


def largest_groups(dataset: Dataset, count: int, listed: int) -> list[Group]:
    """Return the `count` largest groups, largest first, then by id, with the first `listed` members of each."""
    sizes: Counter[bytes] = Counter()
    for batch in dataset.ledger():
        sizes.update(survivor for survivor, _ in _dropped(batch))
    return _groups(dataset, dict(nsmallest(count, sizes.items(), key=lambda entry: (-entry[1], entry[0]))), listed)


def group_of(dataset: Dataset, identity: bytes, listed: int) -> Group | None:
    """Return the group that `identity` is in, as survivor or member; None where it is in none."""
    sizes: Counter[bytes] = Counter()
    wanted = {identity}
    for batch in dataset.ledger():
        wanted |= {survivor for survivor, row in _dropped(batch) if row["id"] == identity}
    for batch in dataset.ledger():
        sizes.update(survivor for survivor, _ in _dropped(batch) if survivor in wanted)
    return next(iter(_groups(dataset, sizes, listed)), None)


def _groups(dataset: Dataset, sizes: Mapping[bytes, int], listed: int) -> list[Group]:
    members: dict[bytes, list[Member]] = {survivor: [] for survivor in sizes}
    for batch in dataset.ledger():
        for survivor, row in _dropped(batch):
            if survivor in members and len(members[survivor]) < listed:
                members[survivor].append(_member(row))
    return [Group(survivor, size, tuple(members[survivor])) for survivor, size in sizes.items()]


def _dropped(batch: pa.RecordBatch) -> Iterator[tuple[bytes, dict[str, Any]]]:
    """Yield the rows that name a survivor, with it."""
    there = pc.fill_null(pc.match_substring(batch.column("evidence"), '"survivor":"'), False)
    columns = ["id", "source", "reason", "measure", "numerator", "denominator", "characters", "evidence"]
    for row in batch.filter(there).select(columns).to_pylist():
        evidence = json.loads(row["evidence"])
        yield bytes.fromhex(evidence["survivor"]), {**row, "evidence": evidence}


def _member(row: Mapping[str, Any]) -> Member:
    similarity = row["measure"] or ""
    if row["denominator"]:
        value = row["numerator"] / row["denominator"]
        similarity += f" {row['numerator']:,}/{row['denominator']:,} = {value:.3f}"
    equal_to = row["evidence"].get("equal_to")
    told = row["id"], row["source"], row["reason"], similarity, row["characters"]
    return Member(*told, bytes.fromhex(equal_to) if equal_to else None, row["evidence"].get("reference"))


def texts_before(dataset: Dataset, ids: Iterable[bytes]) -> dict[bytes, dict[str, Any]]:
    """Return text, source and URL (where there is one) of documents as they came to the stage that made `dataset`.

    What is no longer in the store is left out.
    """
    found: dict[bytes, dict[str, Any]] = {}
    wanted = set(ids)
    for entry in dataset.manifest["inputs"]:
        if not has_dataset(dataset.store, entry["name"], entry["key"]):
            continue
        upstream = open_dataset(dataset.store, entry["name"], entry["key"])
        for shard in upstream.each_shard(["key", "content"]):
            name = f"{shard_folder(shard['key'])}/part.parquet"
            if wanted - set(found) and shard["content"] is not None and upstream.store.exists(name):
                with pq.ParquetFile(upstream.store.local(name)) as file:
                    found.update(_rows(file, wanted))
    return found


def _rows(file: pq.ParquetFile, wanted: set[bytes]) -> Iterator[tuple[bytes, dict[str, Any]]]:
    values = pa.array(sorted(wanted), ID)
    columns = [name for name in ("id", "source", "text", "url") if name in file.schema_arrow.names]
    for group in range(file.num_row_groups):
        ids = file.read_row_group(group, columns=["id"]).column("id")
        rows = pc.indices_nonzero(pc.is_in(ids, values))
        if len(rows):
            for row in file.read_row_group(group, columns=columns).take(rows).to_pylist():
                yield row["id"], row
