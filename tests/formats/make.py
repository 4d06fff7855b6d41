"""Freeze a small store with everything in it, as today's code writes it: `python -m tests.formats.make NUMBER`.

`python -m tests.formats.make checkpoint NUMBER` freezes a training run alone: checkpoints have numbers of their own.

Run it once, when a format gets a new number and before anything else changes; what it wrote is never made again, so
that `test_formats.py` opens what was really written then.
"""

from __future__ import annotations

import re
import shutil
import sys
import tarfile
import tempfile
from dataclasses import replace
from pathlib import Path

from curate import Outputs, deduplicate, hold_out, read_jsonl, read_warc, tokenize, train_tokenizer
from curate.accounting.quarantine import Verdict, write_quarantine
from curate.run import Result, run
from curate.store import Store
from mixtures import Chunks, Loader, Mixture, Phase, Plan
from tests.trainers.synthetic import MODEL, SHAPE, MarkovLoader
from trainers.config import Config, ExpertsConfig, ModelConfig, OptimizerConfig
from trainers.train import train
from transforms import ExtractText, GopherQuality, MaskPII, MinHash, NormalizeText

FOLDER = Path(__file__).parent
INPUTS = FOLDER.parent / "golden" / "inputs"
LENGTH = 16


def recipe() -> Outputs:
    """Return every kind of stage over a few texts."""
    columns = {"key": "no", "language": "lang"}
    letters = read_jsonl(INPUTS / "letters", source="letters", columns=columns, licence="CC0-1.0")
    letters = letters.apply(NormalizeText(), GopherQuality(min_words=8, min_stop_words=1), MaskPII(), name="letters")
    pages = read_warc(INPUTS / "pages", "*.warc", source="pages").apply(ExtractText(), NormalizeText(), name="pages")
    unique = deduplicate(letters, pages, method=MinHash(threshold="0.7"), prefer=("source", "-length"))
    train_part, valid = hold_out(unique, documents=2, near_duplicates=0.8)
    tokenizer = train_tokenizer(train_part, 300)
    mixture = Mixture(
        tokenize(train_part, tokenizer, by="source"),
        Phase("main", tokens=40 * 2 * LENGTH, weights={"letters": 2, "pages": 1}),
        sequences=Chunks(LENGTH),
        batch=2,
        seed=1,
    )
    validation = tokenize(valid, tokenizer, name="tokenize valid")
    return Outputs(mixture, texts=unique, validation=validation, batches=[(0, 8)])


def config(plan: Plan) -> Config:
    """Return a model that has next to no parameters."""
    model = ModelConfig(vocabulary=plan.vocabulary, width=16, layers=1, heads=2, kv_heads=1, hidden=16)
    return Config(model, OptimizerConfig(learning_rate=0.02, warmup=1, decay=1), steps=4, batch=2, length=LENGTH)


def make(archive: Path) -> None:
    """Write store and training run to `archive`.

    Raises:
        FileExistsError: there is one already; frozen stores are not made again.
    """
    with tempfile.TemporaryDirectory() as work, tarfile.open(archive, "x:xz") as file:
        place, trained = Path(work) / "store", Path(work) / "run"
        first = run(recipe(), Path(work) / "first", runner="local")
        _quarantine(Store(place), first)
        result = run(recipe(), place, runner="local")
        plan = Plan.load(place / Path(result.folder).name / "plan.json")
        train(Loader(plan, result.caches["training"].open()), config(plan), trained, keep=1)
        for folder in (place / "runs", place / "spool"):
            shutil.rmtree(folder, ignore_errors=True)
        _without_host(trained)
        for folder in (trained, place):
            file.add(folder, folder.name, filter=_nobody)


def make_checkpoint(archive: Path) -> None:
    """Write a run with experts, Muon and an average, two updates long, to `archive`.

    Raises:
        FileExistsError: there is one already; frozen runs are not made again.
    """
    model = replace(MODEL, layers=1, experts=ExpertsConfig(4, 2))
    optimizer = OptimizerConfig(0.02, warmup=1, matrices="muon")
    run = Config(model, optimizer, steps=2, batch=SHAPE[0], length=SHAPE[1], ema=0.5)
    with tempfile.TemporaryDirectory() as work, tarfile.open(archive, "x:xz") as file:
        trained = Path(work) / "run"
        train(MarkovLoader(), run, trained, keep=1)
        _without_host(trained)
        file.add(trained, trained.name, filter=_nobody)


def _without_host(trained: Path) -> None:
    log = trained / "log.jsonl"
    log.write_text(re.sub(r'"host": "[^"]*"', '"host": ""', log.read_text("utf-8")), "utf-8")


def _nobody(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


def _quarantine(store: Store, first: Result) -> None:
    """Give the store that is to be frozen a quarantine list: it stops the first document of the first shard."""
    (letters,) = (dataset for dataset in first.stages if dataset.name == "letters")
    document = next(letters.batches(["id"])).column("id")[0].as_py()
    write_quarantine(store, letters.shards()[0]["key"], [Verdict(document, "crashed", "MaskPII", None)])


if __name__ == "__main__":
    if sys.argv[1] == "checkpoint":
        make_checkpoint(FOLDER / f"checkpoint-{sys.argv[2]}.tar.xz")
    else:
        make(FOLDER / f"{sys.argv[1]}.tar.xz")
