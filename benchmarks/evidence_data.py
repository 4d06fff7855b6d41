"""Texts of ../shared/data as token caches for the measurements of `benchmarks.evidence`.

Components: main texts of web articles (wcxb), books, documentation, textbook, Python code. Junk: whole pages of the
crawl of 2008 as they stand, of any language and encoding, menus and all, that a rule of Gopher or FineWeb throws out.
Held out: `news` (gold texts of aeb) and `wiki` (English paragraphs of multidomain), of no component's source, and a
part of each component, held out before the tokenizer (1,024 ids) is trained.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from fastwarc.warc import ArchiveIterator, WarcRecordType
from resiliparse.extract.html2text import extract_plain_text
from resiliparse.parse.encoding import bytes_to_str, detect_encoding

from curate import Outputs, deduplicate, field, hold_out, read_parquet, tokenize, train_tokenizer
from curate.caches.cache import TokenCache
from curate.run import open_result, results_in, run
from curate.store import Store
from transforms import FineWebQuality, GopherQuality, GopherRepetition

DATA: Final = Path(__file__).parents[2] / "shared" / "data"
COMPONENTS: Final = ("web", "books", "docs", "textbook", "code")
NEUTRAL: Final = ("news", "wiki")
CHARACTERS: Final = 2_000_000
HELD_OUT: Final = 40_000
LONGEST_TEXT: Final = 20_000
"""Characters taken of a text: many short ones rather than a few long ones."""

VOCABULARY: Final = 1024
DOMAINS: Final = {"books": "books", "docs": "tech-docs", "textbook": "textbook", "code": "code-py"}
LONGEST: Final = 400_000
"""Characters of a page's HTML that are looked at."""


@dataclass(frozen=True, slots=True)
class Corpora:
    """Token caches: of components and junk to train on, of held-out text, and the size of the vocabulary."""

    training: Mapping[str, TokenCache]
    held: Mapping[str, TokenCache]
    vocabulary: int


def make_corpora(folder: Path) -> None:
    """Make the caches in `folder`.

    Raises:
        FileNotFoundError: ../shared/data is not there.
    """
    _write(folder / "texts" / "web.parquet", _limited(_gold("wcxb_dev", "wcxb_dev2")))
    for name, domain in DOMAINS.items():
        _write(folder / "texts" / f"{name}.parquet", _limited(_domain(domain, None)))
    _write(folder / "texts" / "junk.parquet", _limited(_junk()))
    _write(folder / "held" / "news.parquet", _gold("aeb"))
    _write(folder / "held" / "wiki.parquet", _domain("wiki", "en"))
    run(_outputs(folder), folder / "store", runner="local")


def open_corpora(folder: Path) -> Corpora:
    """Return the caches that `make_corpora` made in `folder`."""
    store = Store(folder / "store")
    made = open_result(store, results_in(store)[-1])
    training, held = made.caches["training"].open(), made.caches["neutral"].open() | made.caches["validation"].open()
    held.pop("junk")
    return Corpora(training, held, next(iter(training.values())).vocabulary)


def _outputs(folder: Path) -> Outputs:
    texts = [read_parquet(folder / "texts", f"{name}.parquet", source=name) for name in (*COMPONENTS, "junk")]
    neutral = [read_parquet(folder / "held", f"{name}.parquet", source=name) for name in NEUTRAL]
    train, valid = hold_out(deduplicate(*texts), characters=HELD_OUT, per="source")
    clean = train.where(field("source").isin(COMPONENTS), reason="junk is not what the tokenizer is for")
    tokenizer = train_tokenizer(clean, VOCABULARY)
    return Outputs(
        training=tokenize(train, tokenizer, by="source"),
        validation=tokenize(valid, tokenizer, by="source", name="tokenize valid"),
        neutral=tokenize(deduplicate(*neutral, name="neutral"), tokenizer, by="source", name="tokenize neutral"),
    )


def _write(path: Path, texts: Iterator[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"text": pa.array(texts, pa.large_string())}), path)


def _limited(texts: Iterator[str]) -> Iterator[str]:
    left = CHARACTERS
    for text in texts:
        if left <= 0:
            return
        yield text[:LONGEST_TEXT]
        left -= min(len(text), LONGEST_TEXT)


def _gold(*names: str) -> Iterator[str]:
    for name in names:
        rows = pq.read_table(DATA / "extraction" / f"{name}.parquet", columns=["page_type", "gold_text"]).to_pylist()
        yield from (row["gold_text"] for row in rows if row["page_type"] == "article" and row["gold_text"])


def _domain(domain: str, language: str | None) -> Iterator[str]:
    rows = pq.read_table(DATA / "corpora" / "multidomain.parquet", columns=["domain", "lang", "text"]).to_pylist()
    chosen = [row["text"] for row in rows if row["domain"] == domain and language in (None, row["lang"])]
    yield from chosen


def _junk() -> Iterator[str]:
    """Yield whole pages of the crawl of 2008 that a filter throws out."""
    texts = []
    with (DATA / "warc" / "commoncrawl-2008" / "sample.warc.gz").open("rb") as file:
        for record in ArchiveIterator(file, record_types=WarcRecordType.response):
            page = record.reader.read()[:LONGEST]
            texts.append(extract_plain_text(bytes_to_str(page, detect_encoding(page)), main_content=False))
    batch = pa.record_batch({"text": pa.array([text for text in texts if text], pa.large_string())})
    filters = (GopherRepetition(), GopherQuality(), FineWebQuality())
    failing = [~measure.passes() for each in filters for measure in each.measures(batch)]
    broken = np.any(failing, axis=0)
    yield from (text for text, breaks in zip(batch["text"].to_pylist(), broken.tolist(), strict=True) if breaks)
