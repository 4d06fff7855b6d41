"""What the tasks of one hold-out share: shards in order, limits, and the files between tasks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curate.digests import digest_json
from curate.exchange import FORMAT, Limits
from curate.parts import BATCH_BYTES, checked_file
from curate.regroup import Exchange, memory_of
from curate.running.jobs import Resources
from curate.store import Store
from transforms.hold_out import Limit
from transforms.minhash import MinHash
from transforms.schema import ID

Refs = npt.NDArray[np.int64]

CHOICES: Final = pa.schema(
    [
        pa.field("stratum", pa.large_binary()),  # the value of `per`, encoded
        pa.field("key", pa.uint64(), nullable=False),
        pa.field("digest", ID, nullable=False),
        pa.field("id", ID, nullable=False),
        pa.field("characters", pa.int64(), nullable=False),
        pa.field("ref", pa.int64(), nullable=False),
    ]
)
"""Documents that may be held out, and (in `chosen.parquet`) those that are."""

SIZES: Final = pa.schema(
    [
        pa.field("stratum", pa.large_binary()),
        pa.field("documents", pa.int64(), nullable=False),
        pa.field("characters", pa.int64(), nullable=False),
    ]
)
"""How large the strata of a shard are."""

HELD: Final = pa.schema(
    [
        pa.field("digest", ID, nullable=False),
        pa.field("id", ID, nullable=False),
        pa.field("shingles", pa.large_list(pa.uint64()), nullable=False),
    ]
)
"""What is held out, as training is compared with it."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What every task knows. `key` is that of both outputs together; `shards` are those of the input, in order."""

    store: Store
    key: str
    shards: tuple[str, ...]
    limit: Limit
    per: str | None
    method: MinHash | None
    schema: pa.Schema
    limits: Limits

    def task_key(self, task: str, unit: object) -> str:
        """Return the shard key of one task."""
        return digest_json({"operation": f"hold out {task}", "stage": self.key, "unit": unit})

    def inner_key(self, task: str, unit: object) -> str:
        """Return the shard key of a task that writes exchange files."""
        return digest_json({"operation": f"hold out {task}", "stage": self.key, "unit": unit, "exchange": FORMAT})

    def exchange(self, what: str, schema: pa.Schema, order: tuple[str, ...], partitions: int) -> Exchange:
        """Return the regrouping of the rows `what` of all tasks of one kind."""
        key, name = self.inner_key("exchange", what), f"hold out: {what}"
        return Exchange(self.store, key, name, f"{what}.exchange", schema, order, partitions, self.limits)

    @property
    def resources(self) -> Resources:
        """What a task needs: buffers of exchange files, and texts with their shingles."""
        return Resources(memory=memory_of(self.limits).memory + 8 * BATCH_BYTES)

    def file(self, task: str, unit: object, name: str) -> Path:
        """Return the path of a file that a task published, checked.

        Raises:
            StoreError: it is missing or damaged.
        """
        return checked_file(self.store, self.task_key(task, unit), name)
