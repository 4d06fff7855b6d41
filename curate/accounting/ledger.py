"""The ledger: one row for every document dropped, every edit of a kept document, and every gap in a file.

Rows stand in the order of the input (record by record, then step by step), which no batching changes.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from transforms.schema import ID, ORIGIN

KINDS: Final = ("dropped", "edit", "gap")

LEDGER: Final = pa.schema(
    [
        pa.field("kind", pa.large_string(), nullable=False),  # one of KINDS
        pa.field("id", ID),  # null for gaps
        pa.field("source", pa.large_string(), nullable=False),
        pa.field("origin", ORIGIN, nullable=False),
        pa.field("transform", pa.large_string(), nullable=False),
        pa.field("reason", pa.large_string(), nullable=False),
        pa.field("measure", pa.large_string()),
        pa.field("numerator", pa.int64()),
        pa.field("denominator", pa.int64()),
        pa.field("threshold", pa.large_string()),
        pa.field("evidence", pa.large_string()),  # canonical JSON
        pa.field("characters", pa.int64(), nullable=False),  # code points of the text that the step saw; 0 without text
        pa.field("text_digest", ID),  # of that text; null without text
        pa.field("cut", pa.int64(), nullable=False),  # edits: code points removed and added
        pa.field("inserted", pa.int64(), nullable=False),
    ]
)
"""Schema of `dropped.parquet`."""

SAMPLE_KINDS: Final = ("dropped", "near miss", "edited", "kept", "cell", "survivor", "pair")
"""Of a cell of topic and level: what is kept of it. The last two are both sides of near duplicates:
`curate.deduplication.shown`."""

SAMPLES: Final = pa.schema(
    [
        pa.field("kind", pa.large_string(), nullable=False),  # one of SAMPLE_KINDS
        pa.field("transform", pa.large_string(), nullable=False),  # "" for kept, the column of levels for cell
        pa.field("reason", pa.large_string(), nullable=False),  # "" for kept, topic=TOPIC/COLUMN=LEVEL for cell
        pa.field("text_digest", ID, nullable=False),
        pa.field("id", ID, nullable=False),
        pa.field("source", pa.large_string(), nullable=False),
        pa.field("origin", ORIGIN, nullable=False),
        pa.field("url", pa.large_string()),
        pa.field("measure", pa.large_string()),
        pa.field("numerator", pa.int64()),
        pa.field("denominator", pa.int64()),
        pa.field("threshold", pa.large_string()),
        pa.field("evidence", pa.large_string()),
        pa.field("characters", pa.int64(), nullable=False),
        pa.field("excerpt", pa.large_string(), nullable=False),  # masked and shortened; "" where the source forbids it
        pa.field("after", pa.large_string()),  # edited: the same stretch after the edit
        pa.field("licence", pa.large_string()),  # these as the step saw them; null without a column or a value
        pa.field("language", pa.large_string()),
        pa.field("topic", pa.large_string()),
        pa.field("levels", pa.large_string()),  # canonical JSON: columns of levels and their values
    ]
)
"""Schema of `samples.parquet`; the last four columns are null in what format 2 wrote."""
