"""The pages of the whole way from web archives to token caches, as archives, and the recipe that goes it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal

import pyarrow.parquet as pq
from fastwarc.warc import ArchiveIterator, WarcRecordType

from curate import Dataset, Outputs, deduplicate, read_warc, tokenize
from examples.web_archive import encode_page, gzip_member, response_record
from transforms.extraction import ExtractText
from transforms.gopher_rules import GopherQuality, GopherRepetition
from transforms.language import Language
from transforms.minhash import MinHash
from transforms.normalise import NormalizeText
from transforms.tokens import Tokenizer

DATA: Final = Path(__file__).parents[2] / "shared" / "data"
ARCHIVE: Final = DATA / "warc" / "commoncrawl-2008" / "sample.warc.gz"
TOKENIZER: Final = DATA / "tokenizers" / "gpt2.tokenizer.json"
MODEL: Final = DATA / "lid" / "lid.176.ftz"
EOS: Final = "<|endoftext|>"
SETS: Final = ("aeb", "wcxb_dev", "wcxb_dev2")
FILE_PAGES: Final = 200
NEAR: Final = 0.8
LANGUAGES: Final = {"en": 0.65}

Extractor = Literal["blocks", "trafilatura"]


def pages_of(name: str, count: int) -> Iterator[tuple[str, bytes]]:
    """Yield (address, HTML) of the first pages of a set, every tenth once more with a paragraph added."""
    table = pq.read_table(DATA / "extraction" / f"{name}.parquet", columns=["id", "url", "html"]).slice(0, count)
    for number, row in enumerate(table.to_pylist()):
        url = row["url"] or f"https://{name}.example.net/{row['id']}"
        yield url, row["html"]
        if number % 10 == 0:
            yield f"{url}#again", row["html"].replace(b"</body>", b"<p>Seen again on another day.</p></body>")


def write_inputs(root: Path, pages: int) -> Path:
    """Write the archives below `root` and return it."""
    root.mkdir(parents=True)
    shutil.copyfile(ARCHIVE, root / "sample.warc.gz")
    for name in SETS:
        records = []
        for number, (url, page) in enumerate(pages_of(name, pages)):
            body, content_type = encode_page(page)
            records.append(gzip_member(response_record(f"{name} {number}", url, content_type, body)))
        for first in range(0, len(records), FILE_PAGES):
            part = records[first : first + FILE_PAGES]
            (root / f"{name}-{first // FILE_PAGES}.warc.gz").write_bytes(b"".join(part))
    return root


def size_of(root: Path) -> tuple[int, float]:
    """Return the responses below `root`, and their MB."""
    lengths = []
    for path in sorted(root.glob("*.warc.gz")):
        with path.open("rb") as file:
            lengths += [r.content_length for r in ArchiveIterator(file, record_types=WarcRecordType.response)]
    return len(lengths), sum(lengths) / 1e6


def outputs(root: Path, extractor: Extractor = "blocks") -> Outputs:
    """Return the whole way from archives to caches, made real after each step that is measured."""
    extract = ExtractText() if extractor == "blocks" else ExtractText("trafilatura", favour="precision")
    text = read_warc(root, source="web", on_clash="place").apply(extract)
    english = text.apply(NormalizeText(), Language(LANGUAGES, model=MODEL), name="language")
    good = english.keep("language").apply(GopherRepetition(), GopherQuality(), name="filter")
    unique: Dataset = deduplicate(good, method=MinHash(threshold=str(NEAR)))
    return Outputs(unique=unique, cells=tokenize(unique, Tokenizer(TOKENIZER, eos=EOS)))
