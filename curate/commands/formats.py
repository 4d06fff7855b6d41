"""`curate formats`: which versions of each file format this installation writes and reads, and what it is made of."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib import import_module
from importlib.metadata import version
from typing import Final

from curate.formats import Format


@dataclass(frozen=True, slots=True)
class KnownFormat:
    """A kind of file, the version of it that is written, and the oldest that is read."""

    file: str
    writes: int
    reads_from: int


_WHERE: Final = {
    "receipt.json": "curate.receipts:RECEIPT",
    "manifest.json": "curate.receipts:MANIFEST",
    "statistics.json": "curate.receipts:STATISTICS",
    "cache.json": "curate.caches.layout:FORMAT",
    "plan.json": "mixtures.plan_format:FORMAT",
    "packings/": "mixtures.packing:FORMAT",
    "*.exchange": "curate.exchange:FORMAT",
    "report.json": "viewers.report_data:FORMAT",
    "checkpoint": "trainers.checkpoint:FORMAT",
    "forecast.json": "trainers.evidence.forecast:FORMAT",
    "declaration.json": "trainers.evidence.declaration:FORMAT",
    "mixture.json": "mixtures.published:FORMAT",
    "published.json": "viewers.publication:FORMAT",
}
"""File → module and name of its format."""


def known_formats() -> Iterator[KnownFormat]:
    """Yield the formats of this installation."""
    for file, place in _WHERE.items():
        module, name = place.split(":")
        found: Format | int = getattr(import_module(module), name)
        if isinstance(found, Format):
            yield KnownFormat(file, found.number, found.oldest)
        else:  # a file between two tasks: another version is made again
            yield KnownFormat(file, found, found)


def add_formats(command: argparse.ArgumentParser) -> None:
    """Add the arguments of `formats`."""
    command.set_defaults(command=show_formats)
    command.add_argument("--json", action="store_true", help="print one JSON object")


def show_formats(options: argparse.Namespace) -> int:
    """Print the formats; return 0."""
    from curate.cluster.versions import versions_here

    formats, versions = list(known_formats()), dict(versions_here())
    if options.json:
        print(json.dumps({"formats": [asdict(known) for known in formats], "versions": versions}))
        return 0
    print(f"curate {version('curate')}, {versions.pop('curate')}")
    for known in formats:
        reads = f"{known.reads_from} to {known.writes}" if known.reads_from < known.writes else str(known.writes)
        print(f"  {known.file:<16} writes {known.writes}, reads {reads}")
    print("what reaches content: " + ", ".join(f"{name} {here}" for name, here in versions.items()))
    return 0
