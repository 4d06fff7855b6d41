"""Measures of the texts of a shard in a file beside it, so that no later task finds digests and code points again.

`measures.parquet` has a row for each row of the part, in order. A shard of fewer than `MEASURED_FROM` code points has
none, as its texts are measured in less time than a file takes to be written.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

from curate.accounting.measures import Measures
from curate.parquet_batches import file_batches, open_parquet
from transforms.schema import ID

MEASURED_FROM: Final = 4_000_000
"""Code points of the texts of a shard from which on it has a file of measures: a constant of the format."""

MEASURES_FILE: Final = "measures.parquet"

MEASURES: Final = pa.schema(
    [pa.field("digest", ID, nullable=False), pa.field("characters", pa.int64(), nullable=False)]
)
"""Per text its digest and its code points."""


@dataclass(slots=True)
class Measured:
    """Holds back the measures of a shard until its texts are long enough for a file of them."""

    characters: int = 0
    _held: list[pa.RecordBatch] = field(default_factory=list)

    def add(self, measures: Measures) -> Iterator[pa.RecordBatch]:
        """Yield what is to be written now, given the measures of the next rows."""
        columns = [measures.digests, pa.array(measures.characters)]
        self._held.append(pa.RecordBatch.from_arrays(columns, schema=MEASURES))
        self.characters += int(measures.characters.sum())
        if self.characters >= MEASURED_FROM:
            held, self._held = self._held, []
            yield from held


class StoredMeasures:
    """Reads the measures of a shard from the file at `path`, a number of rows at a time. A context."""

    def __init__(self, path: Path) -> None:
        self._file = open_parquet(path)
        self._batches = file_batches(self._file)
        self._rest = pa.RecordBatch.from_pylist([], MEASURES)

    def __enter__(self) -> StoredMeasures:
        """Return itself."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close the file."""
        self._file.close()

    def take(self, count: int) -> Measures:
        """Return the measures of the next `count` rows.

        Raises:
            ValueError: there are fewer.
        """
        pieces, found = [self._rest], self._rest.num_rows
        while found < count:
            batch = next(self._batches, None)
            if batch is None:
                raise ValueError(f"the file of measures ends {count - found} rows too early")
            pieces.append(batch)
            found += batch.num_rows
        rows = pa.concat_batches(pieces) if len(pieces) > 1 else pieces[0]
        self._rest = rows.slice(count)
        mine = rows.slice(0, count)
        return Measures(np.asarray(mine.column("characters").to_numpy(), np.int64), mine.column("digest"))
