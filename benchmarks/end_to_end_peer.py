"""datatrove's chain on the pages of `benchmarks.end_to_end`: its steps called one after the other in one process.

What the lock does not hold is replaced, each time by something no slower, and said in `ABOUT`. Documents stay in memory
between the steps, whereas a run of datatrove writes and reads them; its extractor runs without its child process. Both
spare it work. Its definitions of the filters, of words and of MinHash differ from ours, so what survives differs, too.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from datatrove.data import Document
from datatrove.pipeline.dedup.minhash import (
    MinhashConfig,
    MinhashDedupBuckets,
    MinhashDedupCluster,
    MinhashDedupFilter,
    MinhashDedupSignature,
)
from datatrove.pipeline.extractors import Trafilatura
from datatrove.pipeline.filters import GopherQualityFilter, GopherRepetitionFilter
from datatrove.pipeline.tokens import DocumentTokenizer
from datatrove.utils.hashing import HashConfig
from datatrove.utils.logging import logger
from resiliparse.parse.encoding import detect_encoding
from warcio.archiveiterator import ArchiveIterator

ABOUT: Final = """\
steps called in this process, documents kept in memory, trafilatura without its child process. Replaced, because the
lock does not hold them: WarcReader (cchardet, python-magic) by its loop over warcio with resiliparse's detection and
the Content-Type; LanguageFilter (a download) by lid.176.ftz called as it calls it; xxhash in MinHash by its sha1.\
"""
EOS: Final = "<|endoftext|>"
Row = tuple[str, float, int, int]


def read_pages(root: Path) -> Iterator[Document]:
    """Yield HTML responses as WarcReader does: UTF-8, or what a detector says; what neither decodes is left out."""
    for path in sorted(root.glob("*.warc.gz")):
        with path.open("rb") as file:
            for record in ArchiveIterator(file):
                kind = (record.http_headers and record.http_headers.get_header("Content-Type")) or ""
                if record.rec_type != "response" or "html" not in kind:
                    continue
                content = record.content_stream().read()
                try:
                    text = _decoded(content)
                except (UnicodeDecodeError, LookupError):
                    continue
                yield Document(text=text, id=record.rec_headers.get_header("WARC-Record-ID"))


def _decoded(content: bytes) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return content.decode(detect_encoding(content))


def extract(documents: list[Document]) -> list[Document]:
    """Return the documents with their text; errors drop a page, as in datatrove."""
    extractor, kept = Trafilatura(), []
    for document in documents:
        try:
            document.text = extractor.extract(document.text)
        except Exception:  # as its extractor does
            continue
        if document.text:
            kept.append(document)
    return kept


def identify(documents: list[Document], model: Any, thresholds: Mapping[str, float]) -> list[Document]:
    """Return the documents whose language passes, with the calls of its wrapper of fastText."""
    kept = []
    for document in documents:
        labels, scores = model.predict(document.text.replace("\n", " "), k=-1)
        found = dict(zip((label.removeprefix("__label__") for label in labels), scores, strict=True))
        if any(found.get(language, 0) > threshold for language, threshold in thresholds.items()):
            kept.append(document)
    return kept


def filtered(documents: list[Document]) -> list[Document]:
    """Return the documents that both Gopher filters keep."""
    repetition, quality = GopherRepetitionFilter(), GopherQualityFilter()
    return [d for d in documents if repetition.filter(d) is True and quality.filter(d) is True]


def without_duplicates(documents: list[Document], folder: Path) -> list[Document]:
    """Return the documents that its four stages of MinHash keep, with its default of 14 buckets of 8 hashes."""
    config = MinhashConfig(hash_config=HashConfig(hash_fc="sha1"))
    signatures, buckets, remove = (str(folder / name) for name in ("signatures", "buckets", "remove"))
    MinhashDedupSignature(signatures, config).run(iter(documents), 0, 1)
    for bucket in range(config.num_buckets):
        MinhashDedupBuckets(signatures, buckets, config=config).run(None, bucket, config.num_buckets)
    MinhashDedupCluster(buckets, remove, config).run(None, 0, 1)
    return list(MinhashDedupFilter(remove).run(iter(documents), 0, 1))


def run_datatrove(
    root: Path,
    work: Path,
    pages: int,
    tokenizer: Path,
    model_file: Path,
    thresholds: Mapping[str, float],
    clock: Callable[[], float],
) -> list[Row]:
    """Run the chain on the archives below `root` and return (stage, seconds of `clock`, came, left) of each step.

    Models, the tokenizer and the word tokenizer are loaded before the clock starts.
    """
    import fasttext

    logging.getLogger("trafilatura").setLevel(logging.CRITICAL + 1)
    logger.remove()
    model = fasttext.load_model(str(model_file))
    writer = DocumentTokenizer(str(work / "tokens"), str(tokenizer), eos_token=EOS, seed=1)
    filtered(extract([Document(text=f"<p>{'The small words of a first sentence. ' * 20}</p>", id="warm")]))
    writer.tokenizer.encode("warm")

    def tokenized(documents: list[Document]) -> list[Document]:
        writer.run(iter(documents), 0, 1)
        return documents

    steps: dict[str, Callable[[list[Document]], list[Document]]] = {
        "read": lambda _: list(read_pages(root)),
        "extract": extract,
        "language": lambda documents: identify(documents, model, thresholds),
        "filter": filtered,
        "MinHash": lambda documents: without_duplicates(documents, work),
        "tokenize": tokenized,
    }
    rows: list[Row] = []
    documents: list[Document] = []
    for name, step in steps.items():
        came, began = len(documents) if rows else pages, clock()
        documents = step(documents)
        rows.append((name, clock() - began, came, len(documents)))
    return rows
