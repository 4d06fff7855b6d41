"""The recipes that `benchmarks.dedup` runs: `curate run benchmarks/dedup_recipe.py:unique --set root=… --store …`."""

from __future__ import annotations

from curate import (
    Column,
    Dataset,
    Outputs,
    deduplicate,
    deduplicate_parts,
    deduplicate_spans,
    read_parquet,
    recipe,
)
from transforms.minhash import MinHash

LONGEST = 1 << 30
"""Bytes of a record: one case is a text of 200 MB, and longer ones than 64 MiB are refused by default."""


@recipe
def unique(root: str) -> Outputs:
    """Return the texts below `root` without equal and near-equal ones, with all defaults."""
    texts = read_parquet(root, source="texts", columns={"key": "id"})
    return Outputs(unique=deduplicate(texts, method=MinHash()))


@recipe
def unique_by_place(root: str) -> Outputs:
    """Return the same, where of texts that resemble each other the one that stands first stays."""
    texts = read_parquet(
        root,
        source="texts",
        columns={"key": "id", "name": "id", "place": Column("place", "int64")},
        max_record_bytes=LONGEST,
    )
    return Outputs(unique=deduplicate(texts, method=MinHash(), prefer=("place",)))


@recipe
def unique_longest(root: str) -> Outputs:
    """Return the same, where the longest stays."""
    texts = read_parquet(root, source="texts", columns={"key": "id", "name": "id"})
    return Outputs(unique=deduplicate(texts, method=MinHash(), prefer=("-length",)))


def _documents(root: str) -> Dataset:
    return read_parquet(root, source="texts", columns={"key": "id"}).keep("documents")


@recipe
def documents(root: str) -> Outputs:
    """Return the texts below `root` as they are, for the next four to begin with."""
    return Outputs(unique=_documents(root))


@recipe
def equal_texts(root: str) -> Outputs:
    """Return each text once."""
    return Outputs(unique=deduplicate(_documents(root)))


@recipe
def lines(root: str) -> Outputs:
    """Return the texts without lines that are there already."""
    return Outputs(unique=deduplicate_parts(_documents(root), unit="line"))


@recipe
def paragraphs(root: str) -> Outputs:
    """Return the texts without paragraphs that are there already."""
    return Outputs(unique=deduplicate_parts(_documents(root)))


@recipe
def spans(root: str) -> Outputs:
    """Return the texts without spans of 50 words that are there already."""
    return Outputs(unique=deduplicate_spans(_documents(root)))
