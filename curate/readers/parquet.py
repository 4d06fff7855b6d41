"""Parquet: rows as documents, column by column where nothing needs a look at single values.

Place is the row number. Columns that nobody declared go to `extra` row by row. Memory: one batch of `CHUNK_ROWS` rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from curate.configuration import ConfigurationError
from curate.readers.events import End, Event, Gap
from curate.readers.jsonl import row_event
from curate.readers.reader import Reader

BATCH_ROWS = 1024


def read_parquet_events(path: Path, reader: Reader) -> Iterator[Event]:
    """Yield the events of a Parquet file; a damaged row group ends it with a gap of the rows that are left."""
    try:
        file = pq.ParquetFile(path)
    except (pa.ArrowException, OSError) as error:
        size = path.stat().st_size
        yield Gap("stored", 0, size, "not Parquet", str(error)[:200])
        yield End("stored", size)
        return
    with file:
        total, row = file.metadata.num_rows, 0
        names = [name for name in file.schema_arrow.names if name not in reader.ignore]
        try:
            for batch in file.iter_batches(batch_size=BATCH_ROWS, columns=names):
                for value in batch.to_pylist():
                    yield row_event(value, reader, "row", row, 1)
                    row += 1
        except (pa.ArrowException, OSError) as error:
            yield Gap("row", row, total - row, "damaged row group", str(error)[:200])
        yield End("row", total)


def check_columns(path: Path, reader: Reader) -> None:
    """Raise before any work where a declared column is not in the file.

    Raises:
        ConfigurationError: it is missing; the message lists what is there.
    """
    try:
        names = pq.read_schema(path).names
    except (pa.ArrowException, OSError):
        return  # the reading task records the damage
    missing = [column.name for _, column in reader.columns if column.name not in names]
    if missing:
        raise ConfigurationError(f"{path} has no column {', '.join(missing)}; its columns are {', '.join(names)}")
