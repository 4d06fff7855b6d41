"""`map.parquet`: the samples as points of a map, for embedding-atlas and whatever else reads Parquet.

The fixed samples of all stages, each with its verdict (kept, dropped, near miss, edited), become vectors (hashed
TF-IDF, rarity as counted among the samples) and places in a square (`transforms.flat_map`). Texts are the masked
excerpts of the page; those of sources that forbid it are not among them.

Invariants: the same store gives the same rows and places on any machine, and the same bytes under one version of
Arrow; at most `MOST` points, by the lowest digests of their texts. Cost: some 2 s for 4,000 points; no second pass over
the corpus.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from transforms.embedding import HashedTfidf, document_frequencies, rarity_of
from transforms.flat_map import SIDE, flat_map
from transforms.spherical_kmeans import unit_rows
from viewers.loading import Report

FILE: Final = "map.parquet"
MOST: Final = 4000
DIMENSION: Final = 256
VERDICTS: Final = ("kept", "dropped", "near miss", "edited")

SCHEMA: Final = pa.schema(
    [
        pa.field("id", pa.large_string(), nullable=False),
        pa.field("text", pa.large_string(), nullable=False),
        pa.field("x", pa.float32(), nullable=False),
        pa.field("y", pa.float32(), nullable=False),
        pa.field("source", pa.large_string(), nullable=False),
        pa.field("stage", pa.large_string(), nullable=False),
        pa.field("verdict", pa.large_string(), nullable=False),
        pa.field("transform", pa.large_string(), nullable=False),
        pa.field("reason", pa.large_string(), nullable=False),
        pa.field("topic", pa.large_string()),
        pa.field("level", pa.large_string()),
        pa.field("language", pa.large_string()),
        pa.field("licence", pa.large_string()),
        pa.field("url", pa.large_string()),
        pa.field("characters", pa.int64(), nullable=False),
    ]
)
"""Columns of the map; x and y lie between 0 and 1; topic, level, language and licence are null where not known."""


def map_parquet(report: Report) -> bytes:
    """Return the content of `map.parquet`."""
    samples = _chosen(report)
    texts = pa.array([str(sample["excerpt"]) for _, sample in samples], pa.large_string())
    rarity = rarity_of(document_frequencies(texts), len(samples), lightest=1)
    places = flat_map(unit_rows(HashedTfidf(DIMENSION, rarity).embed(texts)))
    rows = [_row(stage, sample, *place) for (stage, sample), place in zip(samples, places.tolist(), strict=True)]
    file = BytesIO()
    pq.write_table(
        pa.Table.from_pylist(rows, SCHEMA), file, compression="zstd", use_dictionary=False, store_schema=False
    )
    return file.getvalue()


def _chosen(report: Report) -> Sequence[tuple[str, Mapping[str, Any]]]:
    """Return (stage, sample) of the points, a text of a stage once per verdict, ordered by digest."""
    found = {
        (bytes(sample["text_digest"]), sample["kind"], stage.key, sample["reason"], bytes(sample["id"])): (
            stage.name,
            sample,
        )
        for stage, sample in _samples(report)
    }
    return [found[key] for key in sorted(found)[:MOST]]


def _samples(report: Report) -> Iterator[tuple[Any, Mapping[str, Any]]]:
    for stage in report.stages:
        for sample in stage.samples:
            if sample["kind"] in VERDICTS and sample["excerpt"]:
                yield stage, sample


def _row(stage: str, sample: Mapping[str, Any], x: int, y: int) -> dict[str, Any]:
    evidence = _evidence(sample["evidence"])
    return {
        "id": sample["id"].hex(),
        "text": sample["excerpt"],
        "x": x / SIDE,
        "y": y / SIDE,
        "source": sample["source"],
        "stage": stage,
        "verdict": sample["kind"],
        "transform": sample["transform"],
        "reason": sample["reason"],
        "topic": sample["topic"] or evidence.get("topic"),
        "level": _level(sample["levels"]),
        "language": sample["language"] or evidence.get("language"),
        "licence": sample["licence"],
        "url": sample["url"],
        "characters": sample["characters"],
    }


def _level(levels: str | None) -> str | None:
    """Return the level: its number where there is one column of levels, else each with its column."""
    if levels is None:
        return None
    found = json.loads(levels)
    return str(*found.values()) if len(found) == 1 else ", ".join(f"{name} {value}" for name, value in found.items())


def _evidence(text: str | None) -> dict[str, str]:
    """Return what the evidence of a sample says in words."""
    try:
        value = json.loads(text or "{}")
    except ValueError:
        return {}
    return {n: v for n, v in value.items() if isinstance(v, str)} if isinstance(value, dict) else {}
