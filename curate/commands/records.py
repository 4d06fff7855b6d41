"""A few records of whatever a path holds as lines of text, raw beside what becomes of them.

Text from the web is hostile to terminals too: control characters are shown as escapes, lines and lengths are bounded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq

from curate.accounting.ledger import LEDGER
from curate.configuration import ConfigurationError
from curate.datasets import Dataset
from curate.inputs.files import FileUnit
from curate.readers.chunks import build_rows
from curate.readers.events import End, Gap, Read, Refused, Structural
from curate.readers.forms import TarForm
from curate.readers.open import read_records
from curate.readers.reader import Reader, declared_columns
from curate.receipts import committed_folders, read_manifest
from curate.run import open_result
from curate.store import Store
from curate.visible import SHOWN, visible
from transforms.extraction import ExtractText
from transforms.outcome import Outcome

_DERIVED: Final = re.compile(r"\.(?:wet|wat)\b")  # text and metadata of archives, named as in a.warc.wet.gz
_KINDS: Final = {
    ".wet": "wet",
    ".wat": "wat",
    ".tar": "tar",
    ".tgz": "tar",
    ".json": "jsonl",
    ".csv": "csv",
    ".tsv": "csv",
    ".htm": "html",
    ".xml": "mediawiki",
    ".epub": "epub",
    ".pdf": "pdf",
}


def look(place: Path | Store, count: int = 3) -> Iterator[str]:
    """Yield lines that show `count` records of a web archive, JSON lines, Parquet, text file, store or dataset.

    A store that is no local folder is given as one; a path may be that of any of them.

    Raises:
        ConfigurationError: nothing is there, or the store holds no finished recipe or dataset.
    """
    if isinstance(place, Store) and place.is_remote:
        yield from _look_store(place, count)
        return
    path = place.root if isinstance(place, Store) else Path(place)
    if path.is_dir():
        yield from _look_store(Store(path.resolve()), count)
    elif not path.is_file():
        raise ConfigurationError(f"{path} is not there: give a file, a store, or a dataset in a store")
    elif (".warc" in path.name or ".arc" in path.name) and not _DERIVED.search(path.name.lower()):
        yield from _look_archive(path, count)
    elif path.name.endswith(".parquet"):
        yield from _look_parquet(path, count)
    else:
        yield from _look_lines(path, count)


def _entry(title: str, values: Mapping[str, Any]) -> Iterator[str]:
    yield f"── {title}"
    for name, value in values.items():
        if value is None or value == "":
            continue
        text = visible(value if isinstance(value, str) else _plain(value))
        yield f"   {name}: " + text.replace("\n", "\n      ")


def _plain(value: Any) -> str:
    if isinstance(value, bytes):
        return value.hex() if len(value) == 16 else value[: 4 * SHOWN].decode("utf-8", "backslashreplace")
    if isinstance(value, Mapping):
        return json.dumps(value, ensure_ascii=False, default=str)
    return str(value)


def _events(path: Path, reader: Reader) -> Iterator[Any]:
    unit = FileUnit(path.parent, path.name, path.stat().st_size, "")
    with path.open("rb") as file:
        yield from read_records(reader, file, unit)


def _look_archive(path: Path, count: int) -> Iterator[str]:
    reader = Reader("warc", path.parent, path.name, "look")
    shown = 0
    for event in _events(path, reader):
        if isinstance(event, End) or shown == count:
            break
        place = f"{event.place} byte {event.offset:,}, {event.length:,} bytes"
        if isinstance(event, Read):
            shown += 1
            yield from _entry(f"record at {place}", _extracted(reader, event))
        elif isinstance(event, Structural):
            yield f"── {event.kind} at {place}"
        else:
            kind = "refused" if isinstance(event, Refused) else "gap"
            yield f"── {kind} at {place}: {event.reason} {visible(event.detail or '')}"


def _extracted(reader: Reader, event: Read) -> dict[str, Any]:
    origin = {"uri": "", "place": event.place, "offset": event.offset, "length": event.length, "part": event.part}
    outcome: Outcome = ExtractText().apply(build_rows(reader, [bytes(16)], [origin], [event.values]))
    raw = {name: event.values.get(name) for name in ("url", "content_type", "http_charset", "payload")}
    if outcome.kept.num_rows:
        row = outcome.kept.to_pylist()[0]
        return {**raw, "encoding": row.get("encoding"), "extracted": row["text"]}
    dropped = outcome.dropped.to_pylist()[0]
    return {**raw, "dropped": f"{dropped['reason']} {dropped['evidence'] or ''}"}


def _look_parquet(path: Path, count: int) -> Iterator[str]:
    with pq.ParquetFile(path) as file:
        yield f"{file.metadata.num_rows:,} rows in {file.metadata.num_row_groups:,} row groups; columns:"
        yield from (f"   {field.name}: {field.type}" for field in file.schema_arrow)
        for number, batch in zip(range(count), file.iter_batches(batch_size=1), strict=False):
            yield from _entry(f"row {number}", batch.to_pylist()[0])


def _reader_of(path: Path) -> Reader:
    """Return a reader for a file, by its name."""
    name = path.name.lower()
    kind = next((kind for ending, kind in _KINDS.items() if ending in name), "text")
    form = TarForm("text") if kind == "tar" else None
    columns = declared_columns(None, "text") if kind in ("jsonl", "csv") else ()
    return Reader(kind, path.parent, path.name, "look", columns, form=form)


def _look_lines(path: Path, count: int) -> Iterator[str]:
    reader = _reader_of(path)
    for event in islice((e for e in _events(path, reader) if not isinstance(e, (End, Structural))), count):
        if isinstance(event, Read):
            yield from _entry(f"record at {event.place} byte {event.offset:,}", event.values)
        elif isinstance(event, (Refused, Gap)):
            yield f"── {event.place} byte {event.offset:,}: {event.reason} {event.detail or ''}"


def _look_store(store: Store, count: int) -> Iterator[str]:
    for dataset in _datasets(store):
        yield f"{dataset}"
        rows = (row for batch in dataset.batches() for row in batch.slice(0, count).to_pylist())
        for row in islice(rows, count):
            yield from _entry(f"{row['source']} {row['id'].hex()}", row)
        ledger = (row for batch in dataset.ledger() for row in batch.slice(0, 64).to_pylist())
        for row in islice(ledger, count):
            shown = {name: row[name] for name in LEDGER.names if name not in ("kind", "text_digest", "source")}
            yield from _entry(f"{row['kind']}: {row['transform']}, {row['reason']}", shown)


def _datasets(place: Store) -> list[Dataset]:
    """Return the datasets of a store, or of one folder in it."""
    if place.exists("manifest.json"):
        return _datasets_in(*place.above())
    found = [
        dataset
        for folder in committed_folders(place)
        if read_manifest(place, folder)["kind"] == "recipe"
        for dataset in _datasets_in(place, folder)
    ]
    if not found:
        raise ConfigurationError(f"{place} holds no dataset and no store")
    return found


def _datasets_in(store: Store, folder: str) -> list[Dataset]:
    manifest = read_manifest(store, folder)
    if manifest["kind"] == "recipe":
        return list(open_result(store, folder).outputs.values())
    return [Dataset(store, folder, manifest)]
