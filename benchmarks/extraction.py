"""Text of pages by the block engine, trafilatura and resiliparse: F1, elements kept, glued words, pages per second.

Run `python -m benchmarks.extraction [--size small|full] [--folds FOLDER]`. It reads the gold sets in
../shared/data/extraction and the Common Crawl sample beside it, and says so and ends where they are not there.

`full` scores aeb (181 news pages) and wcxb_dev (507 pages of seven types) by cross-validation: five folds by domain,
each page by a model that saw no page of its domain. The models lie in FOLDER (`python -m benchmarks.train_extractor
--folds FOLDER`). `small` takes the packaged model on 60 pages of aeb, which it was trained on: a check that it runs.
F1 of aeb is over 4-token shingles, that of wcxb_dev over words, pages without gold aside. Rates are of CPU time in one
run, best of three. The last line is JSON; the exit status is 1 when a check fails.
"""

from __future__ import annotations

import argparse
import io
import json
import logging
import platform
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from fastwarc.warc import ArchiveIterator

from benchmarks.extraction_scores import bootstrap, f1_of, glued_words, kept_elements, shares, word_f1
from benchmarks.extractor_data import DATA, GoldPage, content_of, has_blocks, read_gold
from benchmarks.train_extractor import FOLDS, SEED, fold_numbers
from curate.readers.warc import read_warc_events
from transforms.extraction import ExtractText
from transforms.pages.engine import extract
from transforms.pages.model import BlockModel, packaged_model, read_model
from transforms.schema import NOT_CHECKED, records

ARCHIVE: Final = DATA.parent / "warc" / "commoncrawl-2008" / "sample.warc.gz"
SMALL: Final = 60
LEAST: Final = {"wcxb_dev": 0.865, "aeb": -0.01, "rate": 8.0, "elements": 0.9, "packaged": 0.95, "overhead": 0.85}
PACKAGES: Final = ("trafilatura", "resiliparse", "lxml", "fastwarc", "numba")

Texts = dict[tuple[str, int], str]
Checks = dict[str, list[Any]]


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


def by_trafilatura(page: bytes) -> str:
    """Return trafilatura's text of a page, as it comes but without comments."""
    import trafilatura

    logging.getLogger("trafilatura").setLevel(logging.CRITICAL + 1)
    return str(trafilatura.extract(page, include_comments=False) or "")


def by_resiliparse(page: bytes) -> str:
    """Return resiliparse's main content of a page."""
    from resiliparse.extract.html2text import extract_plain_text
    from resiliparse.parse.encoding import bytes_to_str, detect_encoding

    return str(extract_plain_text(bytes_to_str(page, detect_encoding(page)), main_content=True, alt_texts=False))


def by_blocks(page: bytes, model: BlockModel | None = None) -> str:
    """Return the block engine's text of a page."""
    return extract(content_of(page), model=model).text


def cross_validated(folder: Path) -> tuple[list[GoldPage], Texts, dict[tuple[str, int], int]]:
    """Return pages of aeb and wcxb_dev, the text of each by the model of its fold, and its fold.

    Pages whose fold has no model are left out, and a check fails for it.
    """
    pages = list(read_gold())
    with_text = [page for page in pages if has_blocks(page)]
    numbers = fold_numbers(with_text, FOLDS, SEED).tolist()
    of_domain = {page.domain: fold for page, fold in zip(with_text, numbers, strict=True)}
    models = {fold: read_model(path) for fold in range(FOLDS) if (path := folder / f"fold-{fold}.npz").exists()}
    placed = [(page, of_domain.get(page.domain, 0)) for page in pages if page.where != "wcxb_dev2"]
    scored = [(page, fold) for page, fold in placed if fold in models]
    texts = {(page.where, page.number): by_blocks(page.html, models[fold]) for page, fold in scored}
    return [page for page, _ in scored], texts, {(page.where, page.number): fold for page, fold in scored}


def score_news(pages: list[GoldPage], ours: Texts, theirs: Texts, checks: Checks) -> None:
    """Print and check F1 of aeb against trafilatura's."""
    gold = [page.gold for page in pages]
    rows = [shares(gold, [texts[page.where, page.number] for page in pages]) for texts in (ours, theirs)]
    low, high = bootstrap(rows[0], rows[1], f1_of)
    print(f"aeb: F1 blocks {f1_of(rows[0]):.4f}, trafilatura {f1_of(rows[1]):.4f}, difference {low:.4f} to {high:.4f}")
    checks["aeb F1 difference, lower bound"] = [round(low, 4), f"≥ {LEAST['aeb']}", low >= LEAST["aeb"]]


def score_kinds(
    pages: list[GoldPage], ours: Texts, theirs: Texts, folds: dict[tuple[str, int], int], checks: Checks
) -> None:
    """Print and check word F1 of wcxb_dev, of its folds and of its types of page."""
    scores: dict[str, list[tuple[float, float]]] = defaultdict(list)
    by_fold: dict[int, list[float]] = defaultdict(list)
    for page in pages:
        if page.gold.strip():
            key = page.where, page.number
            pair = (word_f1(page.gold, ours[key]), word_f1(page.gold, theirs[key]))
            scores["all"].append(pair)
            scores[page.kind].append(pair)
            by_fold[folds[key]].append(pair[0])
    for kind, pairs in sorted(scores.items()):
        values = np.array(pairs)
        low, high = bootstrap(values[:, 0], values[:, 1], np.mean)
        means = f"blocks {values[:, 0].mean():.4f}, trafilatura {values[:, 1].mean():.4f}"
        print(f"wcxb_dev {kind}, {len(pairs)} pages: {means}, difference {low:.4f} to {high:.4f}")
        if kind != "all":
            checks[f"wcxb_dev {kind} difference, upper bound"] = [round(high, 4), "≥ 0", high >= 0]
    spread = [round(float(np.mean(by_fold[fold])), 4) for fold in sorted(by_fold)]
    print(f"wcxb_dev by fold: {spread}, standard deviation {np.std(spread):.4f}")
    mean = float(np.mean([pair[0] for pair in scores["all"]]))
    checks["wcxb_dev F1"] = [round(mean, 4), f"≥ {LEAST['wcxb_dev']}", mean >= LEAST["wcxb_dev"]]


def score_elements(pages: list[GoldPage], ours: Texts, theirs: Texts, checks: Checks) -> None:
    """Print and check how many elements of the gold text are kept, and which words are glued."""
    kept: Counter[tuple[str, bool]] = Counter()
    of_theirs: Counter[tuple[str, bool]] = Counter()
    glued: list[str] = []
    for page in pages:
        html = content_of(page.html).decode()
        if page.gold and len(html) < 1_000_000:
            key = page.where, page.number
            kept += kept_elements(html, page.gold, ours[key])
            of_theirs += kept_elements(html, page.gold, theirs[key])
            glued += glued_words(html, ours[key])
    for name in sorted({name for name, _ in kept}):
        whole, found = kept[name, True] + kept[name, False], kept[name, True]
        other = of_theirs[name, True]
        print(f"{name}: {found} of {whole} kept, trafilatura {other}")
        checks[f"{name} kept"] = [round(found / whole, 3), f"≥ {LEAST['elements']}", found >= LEAST["elements"] * whole]
    print(f"glued words: {len(glued)} {glued[:10]}")
    checks["glued words"] = [len(glued), "0", not glued]


def rates_of(pages: list[bytes], checks: Checks) -> dict[str, float]:
    """Return pages per second of the engines from bytes, and of ExtractText by each."""
    engines = {"blocks": by_blocks, "trafilatura": by_trafilatura, "resiliparse": by_resiliparse}
    batch = batch_of(pages)
    rates = {}
    for name, engine in engines.items():
        engine(pages[0])
        rates[name] = len(pages) / seconds(lambda engine=engine: [engine(page) for page in pages])  # type: ignore[misc]
        transform = ExtractText(name)  # type: ignore[arg-type]
        rates[f"ExtractText, {name}"] = len(pages) / seconds(lambda transform=transform: transform.apply(batch))  # type: ignore[misc]
    for name, rate in rates.items():
        print(f"{name:45} {rate:10.1f} pages/s")
    ratio = rates["blocks"] / rates["trafilatura"]
    checks["pages/s, blocks / trafilatura"] = [round(ratio, 2), f"≥ {LEAST['rate']}", ratio >= LEAST["rate"]]
    overhead = rates["ExtractText, trafilatura"] / rates["trafilatura"]
    bound = LEAST["overhead"]
    checks["ExtractText / bare trafilatura"] = [round(overhead, 2), f"≥ {bound}", overhead >= bound]
    return rates


def archive_rates() -> None:
    """Print records per second read from the sample archive, by us and by fastwarc."""
    data = ARCHIVE.read_bytes()
    count = sum(1 for _ in ArchiveIterator(io.BytesIO(data)))

    def by_fastwarc() -> None:
        for record in ArchiveIterator(io.BytesIO(data)):
            record.reader.read()

    ours = seconds(lambda: [None for _ in read_warc_events(io.BytesIO(data), ARCHIVE.name)])
    print(f"{'read_warc_events':45} {count / ours:10.0f} records/s")
    print(f"{'fastwarc, nothing checked or decoded':45} {count / seconds(by_fastwarc):10.0f} records/s")


def score_all(folder: Path, checks: Checks) -> list[bytes]:
    """Cross-validate; return the pages of aeb."""
    pages, ours, folds = cross_validated(folder)
    present = len(set(folds.values()))
    checks["folds scored"] = [present, str(FOLDS), present == FOLDS]
    theirs = {(page.where, page.number): by_trafilatura(page.html) for page in pages}
    score_news([page for page in pages if page.where == "aeb"], ours, theirs, checks)
    score_kinds([page for page in pages if page.where == "wcxb_dev"], ours, theirs, folds, checks)
    score_elements(pages, ours, theirs, checks)
    return [page.html for page in pages if page.where == "aeb"]


def score_packaged(checks: Checks) -> list[bytes]:
    """Score the packaged model on a few pages that it was trained on."""
    pages = list(read_gold(("aeb",)))[:SMALL]
    f1 = f1_of(shares([page.gold for page in pages], [by_blocks(page.html, packaged_model()) for page in pages]))
    checks["F1 of the packaged model"] = [round(f1, 4), f"≥ {LEAST['packaged']}", f1 >= LEAST["packaged"]]
    return [page.html for page in pages]


def main(arguments: list[str] | None = None) -> int:
    """Print tables, the checks and one line of JSON; return 1 if a check failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--size", choices=("small", "full"), default="small", help="(default: %(default)s)")
    parser.add_argument("--folds", type=Path, default=Path("build/extractor"), help="models (default: %(default)s)")
    options = parser.parse_args(arguments)
    if not ((DATA / "aeb.parquet").exists() and ARCHIVE.exists()):
        print("skipped: extraction/*.parquet or the Common Crawl sample is not in ../shared/data")
        return 0
    if options.size == "full" and not list(options.folds.glob("fold-*.npz")):
        parser.error(f"{options.folds} has no models: run python -m benchmarks.train_extractor --folds {options.folds}")
    checks: Checks = {}
    pages = score_packaged(checks) if options.size == "small" else score_all(options.folds, checks)
    rates = rates_of(pages, checks)
    archive_rates()
    for check, (value, bound, holds) in checks.items():
        print(f"{check:45} {value:10} {bound:12} {'holds' if holds else 'FAILS'}")
    report = {
        "name": "extraction",
        "unit": "pages/s",
        "ours": round(rates["blocks"], 1),
        "peers": {name: round(rates[name], 1) for name in ("trafilatura", "resiliparse")},
        "ratio": round(rates["blocks"] / rates["trafilatura"], 2),
        "checks": checks,
        "versions": {"python": platform.python_version(), **{package: version(package) for package in PACKAGES}},
    }
    print(json.dumps(report, ensure_ascii=False))
    return int(not all(holds for _, _, holds in checks.values()))


if __name__ == "__main__":
    sys.exit(main())
