"""The document schema: the columns that every dataset has, and the words for rights.

A document is one row. `id` is 16 bytes of a digest of (source name, natural key) and never changes when the
text does; `origin` says where the raw record lies, relative to the source's root. Rights columns are there from
the first stage on, with "unknown" or "not checked" where nobody looked: a null would hide the difference
between "no" and "not asked".
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

ID: Final = pa.binary(16)
"""Type of `id` and of text digests: 16 bytes of BLAKE3."""

ORIGIN: Final = pa.struct(
    [
        pa.field("uri", pa.large_string(), nullable=False),  # path below the source's root, "/" between parts
        pa.field("place", pa.large_string(), nullable=False),  # unit of offset: one of PLACES
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("length", pa.int64(), nullable=False),
        pa.field("part", pa.int32(), nullable=False),  # sub-index for readers that make many documents of a record
    ]
)
"""Type of `origin`: the raw record a document was read from."""

PLACES: Final = ("stored", "stream", "row")
"""Units of `origin.offset` and `origin.length`: bytes of the stored file (plain files, gzip members of one record),
bytes of the decompressed stream (one-stream compression), or rows of a Parquet file."""

OPTOUT: Final = pa.struct(
    [
        pa.field("robots_txt", pa.large_string(), nullable=False),
        pa.field("robots_meta", pa.large_string(), nullable=False),  # meta robots and X-Robots-Tag
        pa.field("tdm", pa.large_string(), nullable=False),  # TDM reservation protocol
    ]
)
"""Type of `optout`: per signal "yes", "no" or "not checked"."""

NOT_CHECKED: Final = {"robots_txt": "not checked", "robots_meta": "not checked", "tdm": "not checked"}
UNKNOWN: Final = "unknown"
LICENCE_BASES: Final = ("page", "source", "user", UNKNOWN)
"""Who says so: declared in the page, by the source's own metadata, asserted by the user of the recipe, nobody."""

CRAWLED_AT: Final = pa.timestamp("ms", tz="UTC")

BASE: Final = pa.schema(
    [
        pa.field("id", ID, nullable=False),
        pa.field("text", pa.large_string(), nullable=False),
        pa.field("source", pa.large_string(), nullable=False),
        pa.field("origin", ORIGIN, nullable=False),
        pa.field("licence", pa.large_string(), nullable=False),  # SPDX id or "unknown"
        pa.field("licence_basis", pa.large_string(), nullable=False),
        pa.field("crawled_at", CRAWLED_AT),
        pa.field("optout", OPTOUT, nullable=False),
    ]
)
"""Columns of every document, in this order. Further declared columns follow, then `extra`."""

EXTRA: Final = pa.field("extra", pa.large_string())
"""Input columns that nobody declared, as canonical JSON; null when there were none."""

SHARE: Final = pa.decimal128(5, 4)
"""Type of shares and confidences, .0000 to 1.0000."""
ENCODING: Final = pa.field("encoding", pa.large_string())
DECODE_CONFIDENCE: Final = pa.field("decode_confidence", SHARE)
"""With `ENCODING`, how bytes became text (`transforms.decoding.Decoded`)."""

PAYLOAD: Final = pa.schema(
    [
        pa.field("payload", pa.large_binary(), nullable=False),  # body, transfer and content encodings undone
        pa.field("content_type", pa.large_string()),  # media type of the HTTP header, lower case, no parameters
        pa.field("http_charset", pa.large_string()),  # charset parameter of the HTTP header
        pa.field("url", pa.large_string()),
        pa.field(
            "optout_headers", pa.large_string()
        ),  # opt-out signals of the HTTP header; null: it has none to look at
    ]
)
"""Columns of records that have bytes but no text yet. `ExtractText` turns `payload` into `text`, keeps `url`."""


def documents(*columns: pa.Field) -> pa.Schema:
    """Return the schema of documents with the further `columns` declared, `extra` last."""
    return pa.schema([*BASE, *columns, EXTRA])


def records() -> pa.Schema:
    """Return the schema of raw records: documents without `text`, with the columns of `PAYLOAD`."""
    return pa.schema([*(field for field in BASE if field.name != "text"), *PAYLOAD, EXTRA])


def with_columns(schema: pa.Schema, *columns: pa.Field) -> pa.Schema:
    """Return `schema` with `columns` replaced where a name exists, else put before `extra`.

    The order is part of the format: columns stand in the order in which transforms add them.
    """
    fields = {field.name: field for field in schema}
    extra = fields.pop(EXTRA.name, None)
    fields.update({column.name: column for column in columns})
    return pa.schema([*fields.values(), *([extra] if extra is not None else [])])


def set_columns(batch: pa.RecordBatch, columns: dict[pa.Field, pa.Array]) -> pa.RecordBatch:
    """Return `batch` with `columns` set, placed as `with_columns` places them."""
    schema = with_columns(batch.schema, *columns)
    new = {field.name: values for field, values in columns.items()}
    arrays = [new[field.name] if field.name in new else batch.column(field.name) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
