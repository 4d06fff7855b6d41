"""Classifiers on matched pairs of held-out sites: gold text of a page against worse texts of the same page.

Run `python -m benchmarks.classifier [--size small|full] [--peers]`. Of each page of `../shared/data/extraction` there
are the gold text and three worse ones: the page's whole visible text (by resiliparse), a truncated copy (the first six
tenths of the words of each line), a shuffled copy (the words of the text in another order, lines as long as before).
Lines are stripped and empty ones removed in all of them, so no habit of an extractor gives one away. `train_classifier`
learns gold against worse in a recipe, the share .2 of the sites and one source left out; then pairs of held-out sites
are cut to equal length, and scored: the better must score higher in ≥ .9 of each kind. The visible text is also judged
as a whole. A second training, in another process on one CPU, must give the same model, scores and levels. Toxicity goes
through the same loop. `--peers`: fastText with the same windows, sites and pairs. Rates are MB of text per CPU second
of `Quality` on whole documents. The last line is JSON; exit status 1: a check failed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from fractions import Fraction
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from curate import Dataset, Outputs, field, grade, read_jsonl, train_classifier
from curate.recipes.models import FittedModel
from curate.run import Result, run
from transforms.learners import FastText, HashedLinear, Learner
from transforms.quality import Quality
from transforms.schema import documents
from transforms.sites import sites_of
from transforms.training_set import is_held_out

DATA: Final = Path(__file__).parents[2] / "shared" / "data"
SETS: Final = {"small": ("aeb", "wcxb_dev"), "full": ("aeb", "wcxb_dev", "wcxb_dev2")}
SHARE: Final = Fraction(1, 5)
LEAST: Final = 300
"""Characters that gold and visible text of a page have at least."""
KEPT: Final = 0.6
WORSE: Final = ("visible", "truncated", "shuffled")
PACKAGES: Final = ("numpy", "numba", "pyarrow", "fasttext-community", "resiliparse")

Page = dict[str, str]
"""Set, URL, page type, and the texts: gold and those of `WORSE`."""


def pages(sets: Sequence[str]) -> Iterator[Page]:
    """Yield the pages that have enough gold and visible text."""
    from resiliparse.extract.html2text import extract_plain_text

    for name in sets:
        table = pq.read_table(
            DATA / "extraction" / f"{name}.parquet", columns=["url", "page_type", "html", "gold_text"]
        )
        for row in table.to_pylist():
            html = row["html"].decode("utf-8", "replace")
            gold = tidy(row["gold_text"] or "")
            visible = tidy(extract_plain_text(html, main_content=False, list_bullets=False, alt_texts=False))
            if row["url"] and min(len(gold), len(visible)) >= LEAST:
                made = {"set": name, "url": row["url"], "topic": row["page_type"], "gold": gold, "visible": visible}
                yield {**made, "truncated": truncated(gold), "shuffled": shuffled(gold)}


def tidy(text: str) -> str:
    """Return `text` without white space around its lines, and without empty ones."""
    return "\n".join(line for raw in text.split("\n") if (line := raw.strip()))


def truncated(text: str) -> str:
    """Return the first six tenths of the words of each line."""
    lines = [line.split() for line in text.split("\n")]
    return "\n".join(" ".join(words[: max(1, int(len(words) * KEPT))]) for words in lines)


def shuffled(text: str) -> str:
    """Return the words of `text` in another order, in lines as long as before."""
    lines = [line.split() for line in text.split("\n")]
    words = [word for line in lines for word in line]
    random.Random(hashlib.blake2b(text.encode()).digest()).shuffle(words)
    left = iter(words)
    return "\n".join(" ".join(next(left) for _ in line) for line in lines)


def write(found: Sequence[Page], root: Path) -> None:
    """Write the texts of each set of pages as lines of its own folder."""
    for name in sorted({page["set"] for page in found}):
        (root / name).mkdir(parents=True)
        with (root / name / "pages.jsonl").open("w", encoding="utf-8") as file:
            for page, kind in product(found, ("gold", *WORSE)):
                if page["set"] == name:
                    row = {"text": page[kind], "kind": kind, "url": page["url"], "topic": page["topic"]}
                    file.write(json.dumps(row, ensure_ascii=False) + "\n")


def read(root: Path, source: str, *kinds: str) -> Dataset:
    """Return the texts of these kinds of a set of pages."""
    columns = {"url": "url", "topic": "topic", "kind": "kind"}
    return read_jsonl(root / source, source=source, columns=columns).where(field("kind").isin(kinds), reason="kind")


def classifier(root: Path, learner: Learner) -> FittedModel:
    """Return the classifier of gold texts against worse ones; one set is left out."""
    names = sorted(folder.name for folder in root.iterdir())
    sides = [[read(root, name, *kinds) for name in names] for kinds in (("gold",), WORSE)]
    return train_classifier(*sides, learner=learner, held_out=SHARE, leave_out="aeb")


def trained(root: Path, store: Path, learner: Learner) -> Result:
    """Return the result of training, and of grading the visible texts of one set in five levels."""
    model = classifier(root, learner)
    graded = grade(read(root, "wcxb_dev", "visible"), model, 5, of="characters")
    return run(Outputs(model=model, graded=graded), store, runner="local")


def digests(result: Result) -> list[str]:
    """Return what a second training must give again: model, and scored and graded documents."""
    return [str(result.models["model"].file("classifier.bin").digest), result.outputs["graded"].content]


def scores(result: Result, texts: Sequence[str]) -> list[int]:
    """Return the scores of `texts` by the model of `result`."""
    quality = Quality(result.models["model"].file("classifier.bin"))
    found: list[int] = []
    for first in range(0, len(texts), 256):
        found += quality.apply(rows(texts[first : first + 256])).kept.column("quality_score").to_pylist()
    return found


def rows(texts: Sequence[str]) -> pa.RecordBatch:
    """Return documents with these texts, and nothing else."""
    schema = documents()
    given = {"id": [n.to_bytes(16, "big") for n in range(len(texts))], "text": list(texts)}
    arrays = [pa.array(given[f.name], f.type) if f.name in given else pa.nulls(len(texts), f.type) for f in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema([f.with_nullable(True) for f in schema]))


def judged(result: Result, found: Sequence[Page]) -> dict[str, float]:
    """Return the share of pairs in which the gold text scores higher: of equal length, and of whole visible texts."""
    shares = {}
    for kind in WORSE:
        sizes = [min(len(page["gold"]), len(page[kind])) for page in found]
        cut = [[page[text][:size] for page, size in zip(found, sizes, strict=True)] for text in ("gold", kind)]
        shares[kind] = higher(scores(result, cut[0]), scores(result, cut[1]))
    whole = [scores(result, [page[text] for page in found]) for text in ("gold", "visible")]
    return {**shares, "visible, whole": higher(whole[0], whole[1])}


def higher(better: Sequence[int], worse: Sequence[int]) -> float:
    """Return the share of pairs in which the first is the larger."""
    return sum(a > b for a, b in zip(better, worse, strict=True)) / len(better)


def rate(result: Result, texts: Sequence[str]) -> float:
    """Return MB of text per CPU second, the best of three."""
    size, best = sum(len(text.encode()) for text in texts) / 1e6, float("inf")
    for _ in range(3):
        begin = time.process_time()
        scores(result, texts)
        best = min(best, time.process_time() - begin)
    return size / best


def toxicity(work: Path) -> dict[str, Any]:
    """Return what the card of a classifier of toxic comments says of those that judged."""
    table = pq.read_table(DATA / "quality" / "toxicity_en.parquet").to_pylist()
    for label, name in ((True, "toxic"), (False, "other")):
        (work / name).mkdir(parents=True)
        lines = [json.dumps({"text": row["text"]}) + "\n" for row in table if row["is_toxic"] is label]
        (work / name / "comments.jsonl").write_text("".join(lines), "utf-8")
    sides = [read_jsonl(work / name, source=name) for name in ("toxic", "other")]
    model = run(Outputs(model=train_classifier(*sides, held_out=0.25)), work / "store", runner="local").models["model"]
    return {name: share(model.card["auc"][name]) for name in ("pooled", "length alone")}


def share(ratio: list[int] | None) -> float | None:
    """Return a ratio of a card as a number."""
    return None if ratio is None else round(ratio[0] / ratio[1], 4)


def again(root: Path, store: Path) -> list[str]:
    """Return the digests of a second training: in another process, on one CPU."""
    command = [sys.executable, "-m", "benchmarks.classifier", "--again", str(root), str(store)]
    said = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[1])
    return list(json.loads(said.stdout.splitlines()[-1]))


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--size", choices=SETS, default="small")
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--again", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.again:
        if hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        print(json.dumps(digests(trained(Path(options.again[0]), Path(options.again[1]), HashedLinear()))))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        return measure(Path(folder), SETS[options.size], options.peers)


def measure(work: Path, sets: Sequence[str], with_peers: bool) -> int:
    """Measure in the folder `work`; return the exit status."""
    found = list(pages(sets))
    write(found, work / "raw")
    sites = sites_of(pa.array([page["url"] for page in found], pa.large_string())).to_pylist()
    pairs = [page for page, site in zip(found, sites, strict=True) if site and is_held_out(site.encode(), SHARE)]
    begin = time.process_time()
    result = trained(work / "raw", work / "store", HashedLinear())
    seconds = time.process_time() - begin
    card = result.models["model"].card
    shares = judged(result, pairs)
    equal = again(work / "raw", work / "again") == digests(result)
    figures: dict[str, Any] = {"pairs": len(pairs), **{kind: round(value, 4) for kind, value in shares.items()}}
    figures |= {f"AUC {name}": share(ratio) for name, ratio in card["auc"].items()}
    figures |= {"MB/s": round(rate(result, [page["visible"] for page in found]), 1), "CPU seconds": round(seconds, 1)}
    figures["toxicity"] = toxicity(work / "toxicity")
    for name, value in figures.items():
        print(f"{name:24} {value}")
    checks = {f"{kind}: better is higher": [round(shares[kind], 4), "≥ .9", shares[kind] >= 0.9] for kind in shares}
    checks["retraining on one CPU gives the same"] = [equal, "= True", equal]
    peers = {}
    if with_peers:
        peer = trained(work / "raw", work / "peer", FastText())
        theirs = judged(peer, pairs)
        peers = {kind: round(value, 4) for kind, value in theirs.items()}
        peers |= {"AUC pooled": share(peer.models["model"].card["auc"]["pooled"])}
        peers["MB/s"] = round(rate(peer, [page["visible"] for page in found]), 1)
        print("fastText", peers)
        pooled = (figures["AUC pooled"], peers["AUC pooled"])
        checks["AUC as good as fastText's"] = [list(pooled), "≥", pooled[0] >= pooled[1]]
    ratio = round(figures["MB/s"] / peers["MB/s"], 2) if peers else None
    told = {"name": "classifier", "unit": "share of pairs", "ours": figures, "peers": peers, "ratio": ratio}
    packages = {package: version(package) for package in PACKAGES}
    print(json.dumps({**told, "checks": checks, "versions": packages}))
    return 0 if all(check[2] for check in checks.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
