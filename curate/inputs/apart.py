"""A store apart from the sources of its recipe: a run must not read what it writes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from curate.configuration import ConfigurationError
from curate.inputs.files import place_of
from curate.readers.reader import Reader
from curate.storage.patterns import matcher
from curate.store import Store

WRITTEN: Final = (
    "runs/run/journal.jsonl",
    "runs/run/failed.txt",
    "shards/key/part.parquet",
    "shards/key/receipt.json",
    "documents/manifest.json",
    "report.html",
)
"""Names like those that a store has files under, in all formats that a source may be read from."""


def check_apart(readers: Iterable[Reader], store: Store) -> None:
    """Refuse a source whose pattern matches files of the store that lies below its root.

    Raises:
        ConfigurationError: there is one. A source with a listing reads what is listed, so it may lie anywhere.
    """
    inner = store.resolved().url("").rstrip("/")
    for reader in readers:
        outer = place_of(reader.root).resolved().url("").rstrip("/")
        if reader.listing is not None or not f"{inner}/".startswith(f"{outer}/"):
            continue
        below = inner[len(outer) + 1 :]
        pattern = matcher(reader.pattern)
        if any(pattern.match(f"{below}/{name}".lstrip("/")) for name in WRITTEN):
            raise ConfigurationError(
                f"source {reader.source!r} would read the store: {inner} lies below its folder {outer}, and "
                f"{reader.pattern!r} matches files of it. Give the store another place"
            )
