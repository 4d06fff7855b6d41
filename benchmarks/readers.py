"""Readers: what is read of damaged archives, HTML records that are not lost, and MB per second of each format.

    python -m benchmarks.readers [--size small|full] [--peers]

1. Every file of ../shared/data/warc: records, refusals, structural records and gaps, which cover every byte.
2. HTML records: of the sample of 2008, and of pages in WARC records without a payload-type header, all are read or
   refused by their HTTP status; datatrove's reader beside it.
3. Throughput: the same texts and pages in each format, from the file to Arrow rows with ids and origins, on one core,
   in MB of content (uncompressed) per second of CPU, best of three. `--peers` runs datatrove's readers on the same
   files and core, in an environment of its own (`.venv-peer-datatrove-readers`, made where it is not there; it needs
   libmagic). Their documents are Python objects, ours Arrow rows; neither extracts text of HTML.
4. Parts: the files of the table once more in parts of a quarter, which give the same ids.

The last line is JSON; ratio is that of WARC in gzip. The exit status is 1 when a check fails.
"""

from __future__ import annotations

import argparse
import bz2
import csv
import gzip
import io
import json
import lzma
import platform
import subprocess
import sys
import tarfile
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import lz4.frame
import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

from benchmarks.dedup_runs import keep_to_core
from benchmarks.install_peers import SCRIPTS, Environment
from curate.inputs.files import FileUnit, open_hashed
from curate.inputs.splitting import split
from curate.readers.chunks import chunks_of
from curate.readers.events import Gap, Read, Refused, Structural, totals
from curate.readers.forms import TarForm, TextForm
from curate.readers.open import read_events
from curate.readers.reader import Reader, declared_columns
from curate.readers.warc import read_warc_events

DATA: Final = Path(__file__).parents[2] / "shared" / "data"
WARCS: Final = DATA / "warc"
SETS: Final = ("aeb", "wcxb_dev")
TEXTS: Final = {"small": 12_000_000, "full": 60_000_000}
"""Bytes of text at most."""
PAGES: Final = {"small": 150, "full": 500}
SEPARATOR: Final = "\n\x1e\n"
PEER: Final = Environment("datatrove-readers")
FIELD: Final = 131_072
"""Longest field that the csv module, and so datatrove, reads; longer texts are cut for CSV."""

PEER_FORMATS: Final = ("warc.gz", "warc.zst", "wet.gz", "jsonl", "jsonl.gz", "jsonl.zst", "parquet", "csv")
PACKS: Final[dict[str, Callable[[bytes], bytes]]] = {
    "": bytes,
    "gz": lambda data: gzip.compress(data, 6, mtime=0),
    "zst": lambda data: zstandard.compress(data, 3),
    "lz4": lz4.frame.compress,
    "bz2": bz2.compress,
    "xz": lambda data: lzma.compress(data, preset=1),
}

Check = list[Any]


@dataclass(frozen=True, slots=True)
class Input:
    """Files of one format: the folder, what reads them, and the MB of content in them."""

    kind: str
    reader: Reader
    megabytes: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the tables and the JSON line, and return 1 when a check failed."""
    parser = argparse.ArgumentParser(description="What readers lose, and how fast they are.")
    parser.add_argument("--size", choices=TEXTS, default="small")
    parser.add_argument("--peers", action="store_true", help="run datatrove's readers, too")
    options = parser.parse_args(arguments)
    if not WARCS.is_dir():
        print("../shared/data is not there: nothing to measure")
        return 0
    keep_to_core()
    checks = damage_table()
    with tempfile.TemporaryDirectory() as folder:
        inputs = write_inputs(Path(folder), options.size)
        rates = {each.kind: rate_of(each) for each in inputs}
        checks |= part_checks(inputs)
        peers = run_peers(Path(folder), inputs) if options.peers else {}
        checks |= html_checks(Path(folder), PAGES[options.size], peers)
    speeds = {kind: round(found["megabytes"] / found["cpu"], 1) for kind, found in peers.items() if "cpu" in found}
    print(f"\n{'format':12} {'MB':>7} {'ours MB/s':>10} {'datatrove':>10} {'ratio':>6}")
    for each in inputs:
        theirs = speeds.get(each.kind)
        beside = f"{theirs:10.1f} {rates[each.kind] / theirs:6.1f}" if theirs else ""
        print(f"{each.kind:12} {each.megabytes:7.1f} {rates[each.kind]:10.1f} {beside}")
    theirs = speeds.get("warc.gz")
    result = {
        "name": "readers",
        "unit": "MB of content per second of CPU, WARC in gzip",
        "ours": rates["warc.gz"],
        "peers": {"datatrove": theirs} if theirs else {},
        "ratio": round(rates["warc.gz"] / theirs, 2) if theirs else None,
        "rows": [
            {
                "what": each.kind,
                "unit": "MB of content per second of CPU",
                "ours": rates[each.kind],
                "peers": {"datatrove": speeds[each.kind]} if each.kind in speeds else {},
            }
            for each in inputs
        ],
        "checks": checks,
        "versions": {"python": platform.python_version(), **{n: version(n) for n in ("pyarrow", "zstandard", "lz4")}},
    }
    print(json.dumps(result, ensure_ascii=False))
    return 0 if all(check[2] for check in checks.values()) else 1


def damage_table() -> dict[str, Check]:
    """Print what is in each archive that others made, and check that events cover it."""
    print(f"{'archive':52} {'bytes':>9} {'read':>5} {'refused':>7} {'other':>5} {'gaps':>4}  why")
    covered = files = 0
    for path in sorted(path for path in WARCS.rglob("*") if path.is_file()):
        data = path.read_bytes()
        events = list(read_warc_events(io.BytesIO(data), path.name))
        sums = totals(events)
        whole = all(total == end for total, end in sums.values())
        whole = whole and ("stream" in sums or sums["stored"] == (len(data), len(data)))
        covered, files = covered + whole, files + 1
        counts = Counter(type(event) for event in events)
        why = ", ".join(sorted({str(e.reason) for e in events if isinstance(e, Gap)}))
        numbers = [counts[kind] for kind in (Read, Refused, Structural, Gap)]
        name = str(path.relative_to(WARCS))
        print(f"{name:52} {len(data):9,} {numbers[0]:5} {numbers[1]:7} {numbers[2]:5} {numbers[3]:4}  {why}")
    return {"archives whose every byte is in an event": [covered, f"= {files}", covered == files]}


def html_checks(folder: Path, pages: int, peers: dict[str, Any]) -> dict[str, Check]:
    """Check that no HTML record is lost: each is read, or refused because of its status."""
    sample = WARCS / "commoncrawl-2008" / "sample.warc.gz"
    events = list(read_warc_events(io.BytesIO(sample.read_bytes()), sample.name))
    read = sum(isinstance(event, Read) for event in events)
    status = sum(isinstance(event, Refused) and event.reason == "http status" for event in events)
    mine = sum(read_count(path) for path in sorted((folder / "warc.gz").iterdir()))
    print(f"\nHTML of 2008: {read} read and {status} refused by their HTTP status, of 139")
    print(f"pages without a payload-type header: {mine} read, of {pages}")
    if "2008" in peers:
        print(f"datatrove: {peers['2008'].get('documents')} of 139; {peers['warc.gz'].get('documents')} of {pages}")
    return {
        "HTML records of 2008 read or refused by status": [read + status, "= 139", read + status == 139],
        "pages without a payload-type header that are read": [mine, f"= {pages}", mine == pages],
    }


def read_count(path: Path) -> int:
    """Return how many records of an archive are read."""
    with path.open("rb") as file:
        return sum(isinstance(event, Read) for event in read_warc_events(file, path.name))


def write_inputs(root: Path, size: str) -> list[Input]:
    """Write the same pages and texts in each format below `root`."""
    pages, texts = list(pages_of(PAGES[size])), list(texts_of(TEXTS[size]))
    warcs = [response(number, url, page) for number, (url, page) in enumerate(pages)]
    arcs = [b"filedesc://a 0.0.0.0 20240101000000 text/plain 0\n\n", *(arc(url, page) for url, page in pages)]
    wets = [wet(number, text) for number, text in enumerate(texts)]
    lines = b"".join(
        json.dumps({"id": n, "text": text}, ensure_ascii=False).encode() + b"\n" for n, text in enumerate(texts)
    )
    made = [
        *(_archive(root, "warc", ending, warcs) for ending in ("", "gz", "lz4", "zst")),
        _archive(root, "arc", "gz", arcs),
        _archive(root, "wet", "gz", wets),
        *(_stream(root, "jsonl", ending, lines) for ending in PACKS),
        _stream(root, "csv", "", _csv(texts)),
        _stream(root, "text", "", SEPARATOR.join(texts).encode(), TextForm(SEPARATOR)),
        _stream(root, "tar", "gz", _tar(texts), TarForm("text")),
    ]
    return [*made, _parquet(root, texts)]


def pages_of(count: int) -> Iterator[tuple[str, bytes]]:
    """Yield (address, HTML) of pages of the extraction sets."""
    found = 0
    for name in SETS:
        for row in pq.read_table(DATA / "extraction" / f"{name}.parquet", columns=["id", "html"]).to_pylist():
            if found < count:
                found += 1
                html = row["html"]
                yield f"https://{name}.example.net/{found}", html if isinstance(html, bytes) else html.encode()


def texts_of(most: int) -> Iterator[str]:
    """Yield texts, without what separates them in a text file."""
    size = 0
    for batch in pq.ParquetFile(DATA / "corpora" / "multidomain.parquet").iter_batches(256, columns=["text"]):
        for text in batch.column("text").to_pylist():
            size += len(text.encode())
            if size > most:
                return
            yield text.replace("\x1e", " ").replace("\0", " ").replace("\r", " ")


def response(number: int, url: str, page: bytes) -> bytes:
    """Return a WARC record without a payload-type header."""
    block = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n" + page
    return _record("response", number, "application/http; msgtype=response", block, url)


def wet(number: int, text: str) -> bytes:
    """Return a WET record."""
    return _record("conversion", number, "text/plain", text.encode(), f"https://example.net/{number}")


def _record(kind: str, number: int, media_type: str, block: bytes, url: str) -> bytes:
    head = (
        f"WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Record-ID: <urn:uuid:00000000-0000-0000-0000-{number:012}>\r\n"
        f"WARC-Date: 2024-01-01T00:00:00Z\r\nWARC-Target-URI: {url}\r\nContent-Type: {media_type}\r\n"
        f"Content-Length: {len(block)}\r\n\r\n"
    )
    return head.encode() + block + b"\r\n\r\n"


def arc(url: str, page: bytes) -> bytes:
    """Return an ARC record."""
    block = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n" + page
    return f"{url} 10.0.0.1 20240101000000 text/html {len(block)}\n".encode() + block + b"\n"


def _archive(root: Path, name: str, ending: str, records: Sequence[bytes]) -> Input:
    content = b"".join(map(PACKS[ending], records))
    return _written(root, name, ending, content, sum(map(len, records)))


def _stream(root: Path, name: str, ending: str, content: bytes, form: Any = None) -> Input:
    return _written(root, name, ending, PACKS[ending](content), len(content), form)


def _written(root: Path, name: str, ending: str, content: bytes, size: int, form: Any = None) -> Input:
    kind = f"{name}.{ending}" if ending else name
    (root / kind).mkdir()
    (root / kind / f"a.{kind}").write_bytes(content)
    return Input(kind, _reader("warc" if name == "arc" else name, root / kind, form), size / 1e6)


def _reader(name: str, folder: Path, form: Any = None) -> Reader:
    columns = declared_columns(None, "text") if name in ("jsonl", "csv", "parquet") else ()
    return Reader(name, folder, "*", "b", columns, form=form)


def _csv(texts: Sequence[str]) -> bytes:
    held = io.StringIO(newline="")
    writer = csv.writer(held)
    writer.writerow(["id", "text"])
    writer.writerows((number, text[: FIELD // 4]) for number, text in enumerate(texts))
    return held.getvalue().encode()


def _tar(texts: Sequence[str]) -> bytes:
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w") as archive:
        for number, text in enumerate(texts):
            info = tarfile.TarInfo(f"{number}.txt")
            info.size = len(content := text.encode())
            archive.addfile(info, io.BytesIO(content))
    return held.getvalue()


def _parquet(root: Path, texts: Sequence[str]) -> Input:
    (root / "parquet").mkdir()
    table = pa.table({"id": list(range(len(texts))), "text": texts})
    pq.write_table(table, root / "parquet" / "a.parquet", compression="zstd", row_group_size=500)
    return Input("parquet", _reader("parquet", root / "parquet"), sum(len(text.encode()) for text in texts) / 1e6)


def units_in(reader: Reader, parts: bool) -> list[FileUnit]:
    """Return the units of the one file of a reader: whole, or in parts of a quarter."""
    assert isinstance(reader.root, Path)
    (path,) = reader.root.iterdir()
    size = path.stat().st_size
    cut = Reader(reader.format, reader.root, "*", "b", reader.columns, form=reader.form, unit_bytes=max(size // 4, 1))
    fingerprint, found = split(cut if parts else reader, lambda: path.open("rb"), path.name, size)
    units = [FileUnit(reader.root, path.name, p.stop - p.begin.at, fingerprint, part=p) for p in found if parts]
    return units or [FileUnit(reader.root, path.name, size, fingerprint)]


def ids_of(reader: Reader, units: Sequence[FileUnit]) -> list[bytes]:
    """Read units to rows, and return the ids."""
    found: list[bytes] = []
    for unit in units:
        with open_hashed(unit) as file:
            for chunk in chunks_of(read_events(reader, file, unit), reader, unit.path):
                found += chunk.rows.column("id").to_pylist()
    return found


def rate_of(each: Input) -> float:
    """Return MB of content per second of CPU, best of three."""
    units = units_in(each.reader, parts=False)
    ids_of(each.reader, units)
    best = float("inf")
    for _ in range(3):
        began = time.process_time()
        ids_of(each.reader, units)
        best = min(best, time.process_time() - began)
    return round(each.megabytes / best, 1)


def part_checks(inputs: Sequence[Input]) -> dict[str, Check]:
    """Check that parts give the ids of the whole."""
    equal = cut = 0
    for each in inputs:
        if each.reader.format in ("warc", "wet", "jsonl", "parquet"):
            units = units_in(each.reader, parts=True)
            cut += len(units) > 1
            equal += ids_of(each.reader, units) == ids_of(each.reader, units_in(each.reader, parts=False))
    count = sum(each.reader.format in ("warc", "wet", "jsonl", "parquet") for each in inputs)
    return {
        "files whose parts give the ids of the whole": [equal, f"= {count}", equal == count],
        "of these, files that are cut into parts": [cut, "≥ 8", cut >= 8],
    }


def run_peers(root: Path, inputs: Sequence[Input]) -> dict[str, Any]:
    """Return what datatrove's readers took, format → cpu, documents, megabytes."""
    PEER.make()
    (root / "warc.2008").mkdir()
    (root / "warc.2008" / "a.warc.gz").symlink_to(WARCS / "commoncrawl-2008" / "sample.warc.gz")
    sizes = {each.kind: each.megabytes for each in inputs}
    command = [str(PEER.interpreter), str(SCRIPTS / "datatrove_readers.py"), str(root), *PEER_FORMATS, "warc.2008"]
    ran = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])["formats"]
    found["2008"] = found.pop("warc.2008")
    for kind, each in found.items():
        if "failed" in each:
            print(f"datatrove, {kind}: {each['failed']}")
    return {kind: {**each, "megabytes": sizes.get(kind, 0.0)} for kind, each in found.items()}


if __name__ == "__main__":
    sys.exit(main())
