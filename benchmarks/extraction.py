"""From archives to text on one core: pages per second and F1 of both extractors, and records per second of WARC.

Run `python -m benchmarks.extraction [--size small|full]`. It reads ../shared/data/extraction/aeb.parquet (181 news
pages with gold text, article extraction benchmark) and the Common Crawl sample beside it, and says so and ends where
they are not there. F1 is that of the benchmark: over multisets of 4-token shingles; per page true and false positives
and false negatives are divided by their sum; precision and recall are means over pages. Rates are of CPU time, best
of three. `ratio` compares ExtractText, which decodes, bounds and accounts, with bare trafilatura on the same bytes.
The last line is JSON; the exit status is 1 when a check fails.
"""

from __future__ import annotations

import argparse
import io
import json
import logging
import platform
import re
import sys
import time
from collections import Counter
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from fastwarc.warc import ArchiveIterator

from curate.readers.warc import read_warc_events
from transforms.extraction import ExtractText
from transforms.schema import NOT_CHECKED, records

DATA: Final = Path(__file__).parents[2] / "shared" / "data"
PAGES: Final = DATA / "extraction" / "aeb.parquet"
ARCHIVE: Final = DATA / "warc" / "commoncrawl-2008" / "sample.warc.gz"
COUNTS: Final = {"small": 60, "full": 181}
LEAST_F1: Final = {"trafilatura": 0.95, "resiliparse": 0.91}
LEAST_RATIO: Final = 0.85
PACKAGES: Final = ("trafilatura", "resiliparse", "lxml", "fastwarc")
_WORD: Final = re.compile(r"\w+")


def seconds(function: Callable[[], object]) -> float:
    """Return the least CPU time of three calls."""
    times = []
    for _ in range(3):
        start = time.process_time()
        function()
        times.append(time.process_time() - start)
    return min(times)


def batch_of(pages: list[bytes]) -> pa.RecordBatch:
    """Return `pages` as raw records."""
    rows = [
        {
            "id": number.to_bytes(16, "big"),
            "source": "aeb",
            "origin": {"uri": "aeb", "place": "row", "offset": number, "length": 1, "part": 0},
            "licence": "unknown",
            "licence_basis": "unknown",
            "optout": NOT_CHECKED,
            "payload": page,
            "content_type": "text/html",
        }
        for number, page in enumerate(pages)
    ]
    return pa.RecordBatch.from_pylist(rows, schema=records())


def texts_of(extractor: Any, batch: pa.RecordBatch) -> list[str]:
    """Return the text of each record of `batch`, empty where it was dropped."""
    kept = ExtractText(extractor).apply(batch).kept
    found = dict(zip(kept["id"].to_pylist(), kept["text"].to_pylist(), strict=True))
    return [found.get(key, "") for key in batch["id"].to_pylist()]


def shingles(text: str) -> Counter[tuple[str, ...]]:
    """Return the multiset of 4-token shingles of `text`."""
    words = _WORD.findall(text)
    return Counter(tuple(words[i : i + 4]) for i in range(len(words) - 3))


def f1_of(gold: list[str], found: list[str]) -> float:
    """Return F1 as the article extraction benchmark defines it."""
    precision = recall = 0.0
    for wanted, got in zip(map(shingles, gold), map(shingles, found), strict=True):
        both = (wanted & got).total()
        precision += both / got.total() if got else not wanted
        recall += both / wanted.total() if wanted else not got
    precision, recall = precision / len(gold), recall / len(gold)
    return 2 * precision * recall / (precision + recall)


def peers_of(pages: list[bytes]) -> dict[str, float]:
    """Return pages per second of the libraries themselves, from bytes, with their own decoding."""
    import trafilatura
    from resiliparse.extract.html2text import extract_plain_text
    from resiliparse.parse.encoding import bytes_to_str, detect_encoding

    logging.getLogger("trafilatura").setLevel(logging.CRITICAL + 1)

    def plain(page: bytes) -> str:
        return str(extract_plain_text(bytes_to_str(page, detect_encoding(page)), main_content=True, alt_texts=False))

    return {
        "bare trafilatura": len(pages)
        / seconds(lambda: [trafilatura.extract(page, include_comments=False) for page in pages]),
        "bare resiliparse": len(pages) / seconds(lambda: [plain(page) for page in pages]),
    }


def archive_rates() -> dict[str, float]:
    """Return records per second read from the sample archive, by us and by fastwarc."""
    data = ARCHIVE.read_bytes()
    count = sum(1 for _ in ArchiveIterator(io.BytesIO(data)))

    def by_fastwarc() -> None:
        for record in ArchiveIterator(io.BytesIO(data)):
            record.reader.read()

    ours = seconds(lambda: [None for _ in read_warc_events(io.BytesIO(data), ARCHIVE.name)])
    return {"read_warc_events": count / ours, "fastwarc, nothing checked or decoded": count / seconds(by_fastwarc)}


def main(arguments: list[str] | None = None) -> int:
    """Print a table, the checks and one line of JSON; return 1 if a check failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--size", choices=sorted(COUNTS), default="full", help="how many pages (default: %(default)s)")
    options = parser.parse_args(arguments)
    if not (PAGES.exists() and ARCHIVE.exists()):
        print(f"skipped: {PAGES.parent.name}/{PAGES.name} or {ARCHIVE.name} is not in ../shared/data")
        return 0
    table = pq.read_table(PAGES).slice(0, COUNTS[options.size])
    pages, gold = table["html"].to_pylist(), table["gold_text"].to_pylist()
    batch = batch_of(pages)
    print(f"{PAGES.name}: {len(pages)} pages, {sum(map(len, pages)) / 1e6:.1f} MB of HTML, one core")
    rates, checks = {}, {}
    for extractor, least in LEAST_F1.items():
        f1 = f1_of(gold, texts_of(extractor, batch))
        rates[extractor] = len(pages) / seconds(lambda extractor=extractor: texts_of(extractor, batch))  # type: ignore[misc]
        checks[f"F1 {extractor}"] = [round(f1, 4), f"≥ {least}", f1 >= least]
        print(f"{'ExtractText, ' + extractor:45} {rates[extractor]:10.1f} pages/s   F1 {f1:.4f}")
    peers = peers_of(pages)
    for name, rate in peers.items():
        print(f"{name:45} {rate:10.1f} pages/s")
    for name, rate in archive_rates().items():
        print(f"{name:45} {rate:10.0f} records/s")
    ratio = rates["trafilatura"] / peers["bare trafilatura"]
    checks["rate / bare trafilatura"] = [round(ratio, 2), f"≥ {LEAST_RATIO}", ratio >= LEAST_RATIO]
    for check, (value, bound, holds) in checks.items():
        print(f"{check:45} {value:10} {bound:12} {'holds' if holds else 'FAILS'}")
    report = {
        "name": "extraction",
        "unit": "pages/s",
        "ours": round(rates["trafilatura"], 1),
        "peers": {name: round(rate, 1) for name, rate in peers.items()},
        "ratio": round(ratio, 2),
        "checks": checks,
        "versions": {"python": platform.python_version(), **{package: version(package) for package in PACKAGES}},
    }
    print(json.dumps(report, ensure_ascii=False))
    return int(not all(holds for _, _, holds in checks.values()))


if __name__ == "__main__":
    sys.exit(main())
