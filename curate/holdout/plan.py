"""What the tasks of one hold-out share: shards in order, limits, and the files between tasks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from curate.digests import digest_json
from curate.receipts import shard_folder
from curate.store import Store, StoredFile
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

    def task_key(self, task: str, unit: object) -> str:
        """Return the shard key of one task."""
        return digest_json({"operation": f"hold out {task}", "stage": self.key, "unit": unit})

    def file(self, task: str, unit: object, name: str) -> StoredFile:
        """Return a file that a task published."""
        return self.store.file(f"{shard_folder(self.task_key(task, unit))}/{name}")
