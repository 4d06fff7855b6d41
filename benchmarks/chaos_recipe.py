"""The reduced demo that chaos runs: little data of our own making, and every kind of stage that a recipe can have."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from curate import (
    Column,
    Dataset,
    Outputs,
    decontaminate,
    deduplicate,
    deduplicate_parts,
    deduplicate_semantic,
    deduplicate_urls,
    fit_topics,
    hold_out,
    read_jsonl,
    read_parquet,
    read_warc,
    tokenize,
    train_tokenizer,
)
from mixtures import AtMost, Chunks, Mixture, Phase
from transforms import AssignTopic, Benchmark, ExtractText, MaskPII, MinHash, WithdrawList
from transforms.user_function import EditText

WORDS: Final = [a + b for a in ("ka", "lo", "mi", "su", "te", "vo", "ra") for b in ("ren", "tal", "mos", "bik", "dun")]
QUESTION: Final = "which of the two merchants carried more lamps over the mountain before the first snow fell in autumn"


@dataclass(frozen=True, slots=True)
class Amount:
    """How much is read: files per source, and documents per file."""

    files: int
    documents: int


def write_inputs(root: Path, amount: Amount, seed: int) -> None:
    """Write five sources, a benchmark and a withdraw list below `root`, the same bytes for the same arguments.

    `keyed` holds a record that every file has, `pages` is compressed and has damage, `crawl` is a web archive, `table`
    is Parquet, `files` are parts of repositories; the texts of all come from one pool, so that there are duplicates,
    and some quote the benchmark.
    """
    draw = random.Random(seed)
    pool = [" ".join(draw.choice(WORDS) for _ in range(60)) for _ in range(amount.documents)]
    pool[0] = f"{pool[0]} {QUESTION} {pool[0]}"
    for number in range(amount.files):
        _write(root / "keyed" / f"{number}.jsonl", "".join(_keyed_lines(draw, pool, number)).encode())
        found = [json.dumps({"text": f"{draw.choice(pool)} {draw.choice(WORDS)}"}) for _ in pool]
        pages = "".join(f"{line}\n" for line in [*found, "no json", '{"text": ""}'])
        _write(root / "pages" / f"{number}.jsonl.gz", gzip.compress(pages.encode(), mtime=0))
        records = [_warc_record(number, n, draw.choice(pool)) for n in range(amount.documents // 4)]
        _write(root / "crawl" / f"{number}.warc.gz", b"".join(gzip.compress(record, mtime=0) for record in records))
    (root / "table").mkdir()
    lines = [
        {"name": f"r{n}", "part": n, "repo": f"r{n % 9}", "text": f"part {n} {text[:120]}"}
        for n, text in enumerate(pool)
    ]
    _write(root / "files" / "0.jsonl", "".join(json.dumps(line) + "\n" for line in lines).encode())
    _write(
        root / "withdrawn.jsonl",
        json.dumps({"url": "https://site0.example/3", "reason": "asked", "date": "2024-06-01"}).encode() + b"\n",
    )
    table = pa.table({"text": [f"{text} {draw.choice(WORDS)} table" for text in pool], "stars": list(range(len(pool)))})
    pq.write_table(table, root / "table" / "part.parquet", row_group_size=64)
    _write(root / "benchmark.jsonl", json.dumps({"question": QUESTION, "answer": "the second"}).encode() + b"\n")


def _keyed_lines(draw: random.Random, pool: Sequence[str], number: int) -> Iterator[str]:
    for n in range(len(pool)):
        text = f"{draw.choice(pool)} mail to a{n}@mail.example.net "
        yield json.dumps({"name": f"{number}-{n}", "text": text, "year": n}) + "\n"
    yield json.dumps({"name": "everywhere", "text": "a record that every file holds", "year": None}) + "\n"


def _warc_record(file: int, number: int, text: str) -> bytes:
    """Return a WARC response record (WARC/1.1, ISO 28500) with a small page."""
    paragraphs = "".join(f"<p>{text[start : start + 200]}</p>" for start in range(0, len(text), 200))
    page = (
        f"<html><head><title>Page {number}</title></head><body><article>{paragraphs}</article></body></html>".encode()
    )
    response = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n" + page
    header = (
        "WARC/1.1\r\nWARC-Type: response\r\n"
        f"WARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-{file:04d}{number:08d}>\r\n"
        f"WARC-Date: 2024-05-01T00:00:00Z\r\nWARC-Target-URI: https://site{file}.example/{number}\r\n"
        f"Content-Type: application/http; msgtype=response\r\nContent-Length: {len(response)}\r\n\r\n"
    )
    return header.encode() + response + b"\r\n\r\n"


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def documents(root: Path) -> tuple[Dataset, Dataset]:
    """Return training and held-out documents of all sources, without duplicates and the benchmark's items."""
    strip = EditText(str.strip, reason="white space", version=1)
    keyed = read_jsonl(root / "keyed", source="keyed", columns={"key": "name", "year": Column("year", "int64")})
    withdrawn = WithdrawList(root / "withdrawn.jsonl")
    measured = keyed.apply(EditText(str.strip, reason="white space", version=2), name="measured")
    files = read_jsonl(
        root / "files",
        source="files",
        columns={"key": "name", "repo": Column("repo", "string"), "part": Column("part", "int64")},
    )
    crawl = read_warc(root / "crawl", source="crawl").apply(withdrawn, ExtractText("resiliparse"), strip, name="crawl")
    unique = deduplicate(
        keyed.apply(strip, MaskPII(), name="keyed").join(measured, {"measured_year": "year"}),
        deduplicate_parts(read_jsonl(root / "pages", source="pages").apply(strip, name="pages"), unit="line"),
        deduplicate_urls(crawl),
        deduplicate_semantic(read_parquet(root / "table", source="table"), similarity="0.99", clusters=2),
        files.group("repo", order="-part"),
        method=MinHash(threshold="0.7"),
    )
    items = Benchmark.jsonl("Lamps", root / "benchmark.jsonl", question="question", answer="answer")
    return hold_out(decontaminate(unique, items), documents=5, per="source", near_duplicates="0.8")


def outputs(root: Path) -> Outputs:
    """Return a recipe with every kind of stage, down to the plan and its first batches."""
    train, valid = documents(root)
    topics = fit_topics(train, k=2, documents=20)
    train = train.apply(AssignTopic(topics), name="assign")
    tokenizer = train_tokenizer(train, 300)
    mixture = Mixture(
        tokenize(train, tokenizer, by="source"),
        Phase("main", tokens=20_000, weights={"keyed": 2, "pages": 1}, others=1),
        sequences=Chunks(64),
        repeats=AtMost(50, then="redistribute"),
        batch=4,
        seed=7,
    )
    upper = valid.apply(EditText(str.upper, reason="case", version=1), name="upper")
    validation = tokenize(valid, tokenizer, by="source", name="tokenize valid")
    return Outputs(mixture, upper=upper, validation=validation, batches=[(0, 8)])
