"""What the tasks of one join share: shards in order, columns, and the rows between tasks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from curate.digests import digest_json
from curate.exchange import FORMAT, Limits
from curate.regroup import Exchange, memory_of
from curate.running.jobs import Resources
from curate.store import Store
from transforms.schema import ID

SHARD_BITS: Final = 32
LEFT_BYTES: Final = 24

ID_FIELD: Final = pa.field("*id", ID, nullable=False)
PLACE: Final = pa.field("*place", pa.int64(), nullable=False)  # shard << SHARD_BITS | row
MATCHED: Final = pa.field("*matched", pa.bool_(), nullable=False)
LEFT: Final = pa.schema([ID_FIELD, PLACE])


@dataclass(frozen=True, slots=True)
class Plan:
    """What every task of one join knows: the shards of both inputs, in order.

    `columns` are pairs (our name, its name on the right); `schema` is that of the outcome.
    """

    store: Store
    key: str
    left: tuple[str, ...]
    right: tuple[str, ...]
    left_schema: pa.Schema
    right_schema: pa.Schema
    schema: pa.Schema
    columns: tuple[tuple[str, str], ...]
    other: str
    partitions: int
    limits: Limits

    @property
    def resources(self) -> Resources:
        """What a task needs."""
        return memory_of(self.limits)

    @property
    def taken(self) -> list[pa.Field]:
        """The columns that are taken, by our names."""
        return [self.schema.field(ours) for ours, _ in self.columns]

    @property
    def shard_partitions(self) -> int:
        """Partitions of what belongs to documents: a task reads one and takes what is its own."""
        return max(1, min(len(self.left), self.limits.most_partitions))

    @property
    def left_exchange(self) -> Exchange:
        """The documents by id."""
        return self._exchange("left", LEFT, (ID_FIELD.name, PLACE.name), self.partitions)

    @property
    def right_exchange(self) -> Exchange:
        """The rows that are joined, by id."""
        return self._exchange(
            "right", pa.schema([ID_FIELD, PLACE, *self.taken]), (ID_FIELD.name, PLACE.name), self.partitions
        )

    @property
    def matched_exchange(self) -> Exchange:
        """What belongs to documents, by their shard."""
        schema = pa.schema([PLACE, ID_FIELD, MATCHED, *self.taken])
        return self._exchange("matched", schema, (PLACE.name,), self.shard_partitions)

    def _exchange(self, what: str, schema: pa.Schema, order: tuple[str, ...], partitions: int) -> Exchange:
        key, file = self.inner_key("exchange", what), f"{what}.exchange"
        return Exchange(self.store, key, f"join: {what}", file, schema, order, partitions, self.limits)

    def task_key(self, unit: int) -> str:
        """Return the key of an output shard."""
        return digest_json({"operation": "join apply", "stage": self.key, "unit": unit})

    def inner_key(self, task: str, unit: object) -> str:
        """Return the shard key of one task in between."""
        return digest_json({"operation": f"join {task}", "stage": self.key, "unit": unit, "exchange": FORMAT})
