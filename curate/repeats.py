"""Records that two files of one source hold: found by id over all shards of a keyed source.

Each task looks at one range of ids and reads the `keys.parquet` of every shard. Equal id and equal bytes: the record
of the later file is a repeat. Equal id and other bytes: an error. Memory: 32 bytes per record of the range.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from curate.jobs import Item
from curate.readers.chunks import InputError
from curate.receipts import FileEntry, Receipt, publish_receipt, shard_folder
from curate.store import Store
from curate.writer import write_parquet
from transforms.outcome import rows

RECORDS_PER_TASK: Final = 20_000_000

REPEATS: Final = pa.schema(
    [pa.field("id", pa.binary(16), nullable=False), pa.field("shard", pa.int64(), nullable=False)]
)
"""Schema of `repeats.parquet`: the record `id` of the shard with this ordinal is a repeat."""


@dataclass(frozen=True, slots=True)
class IdRange:
    """The ids of one task: those whose first two bytes lie in `first` ≤ … < `last`."""

    first: int
    last: int

    def described(self) -> dict[str, int]:
        """Return the unit as it stands in a receipt."""
        return {"first": self.first, "last": self.last}


def id_ranges(records: int) -> list[IdRange]:
    """Return the ranges for this many records."""
    count = max(1, -(-records // RECORDS_PER_TASK))
    edges = [65536 * i // count for i in range(count + 1)]
    return [IdRange(first, last) for first, last in pairwise(edges)]


@dataclass(frozen=True, slots=True)
class RepeatsJob:
    """Finds repeats among `shards`, given by key in the order of their files; `paths` name them in errors."""

    store: Store
    name: str
    source: str
    shards: tuple[str, ...]
    paths: tuple[str, ...]

    def run(self, item: Item) -> None:
        """Publish the repeats of one range of ids.

        Raises:
            InputError: two records share a natural key and differ.
        """
        found = [{"id": identity, "shard": shard} for identity, shard in self._repeats(item.unit)]
        folder = shard_folder(item.key)
        files = {}
        with self.store.spool() as path:
            written = write_parquet(path, [rows(REPEATS, found)], REPEATS)
            size = path.stat().st_size
            digest = self.store.publish(path, f"{folder}/repeats.parquet")
            files["repeats.parquet"] = FileEntry(size, digest, written.rows, written.content)
        publish_receipt(self.store, Receipt(item.key, self.name, item.unit.described(), files))

    def _repeats(self, ids: IdRange) -> list[tuple[bytes, int]]:
        parts = []
        for ordinal, key in enumerate(self.shards):
            file = self.store.file(f"{shard_folder(key)}/keys.parquet")
            if file.exists():
                parts.append(_rows_in_range(pq.read_table(file.local()), ids, ordinal))
        if not parts:
            return []
        table = np.concatenate(parts)
        table = table[np.lexsort((table["shard"], table["id"]))]
        same = np.flatnonzero(table["id"][1:] == table["id"][:-1]) + 1
        for row in same:
            if table["record"][row] != table["record"][row - 1]:
                raise InputError(self._clash(table[row - 1], table[row]))
        return [(bytes(table["id"][row].ljust(16, b"\0")), int(table["shard"][row])) for row in same]

    def _clash(self, first: Any, second: Any) -> str:
        return (
            f"source {self.source!r}: {self.paths[first['shard']]} and {self.paths[second['shard']]} hold different "
            f"records with one natural key (id {bytes(first['id']).hex()}). "
            'Choose another key column, or on_clash="place"'
        )


def _rows_in_range(table: pa.Table, ids: IdRange, ordinal: int) -> Any:
    result = np.zeros(table.num_rows, [("id", "S16"), ("record", "S16"), ("shard", np.int64)])
    for name in ("id", "record"):
        result[name] = table.column(name).to_numpy(zero_copy_only=False)
    result["shard"] = ordinal
    prefix = np.array([int.from_bytes(bytes(i[:2]).ljust(2, b"\0"), "big") for i in result["id"]], np.int64)
    return result[(prefix >= ids.first) & (prefix < ids.last)]


def repeats_by_shard(store: Store, keys: Sequence[str]) -> dict[int, frozenset[bytes]]:
    """Return the repeats that the tasks `keys` published: shard ordinal → ids."""
    found: dict[int, set[bytes]] = {}
    for key in keys:
        for row in pq.read_table(store.local(f"{shard_folder(key)}/repeats.parquet")).to_pylist():
            found.setdefault(row["shard"], set()).add(row["id"])
    return {shard: frozenset(ids) for shard, ids in sorted(found.items())}
