"""A small corpus of three sources, the recipe that takes it all the way to batches, and ways of looking at the store.

    curate run tests/road/corpus.py --store STORE --set root=DIR

Texts are made up here. Each family has a text and, in another source, one of about .84 Jaccard similarity with it:
too far apart to be duplicates, near enough to leave training when the other is held out.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

from curate import (
    Dataset,
    Outputs,
    decontaminate,
    deduplicate,
    hold_out,
    read_files,
    read_jsonl,
    recipe,
    tokenize,
    train_tokenizer,
)
from curate.recipes.compiling import compile_stages
from curate.run import Result, commit_result
from curate.running.engine import Engine, fingerprint_inputs, run_stages
from curate.running.journal import Journal
from curate.running.runners import LocalRunner, Runner
from curate.store import Store
from mixtures import AtMost, Chunks, Mixture, Phase
from tests.curate.corpus import Line, tree, write_lines
from transforms.benchmark_items import Benchmark
from transforms.minhash import MinHash
from transforms.pii import MaskPII
from transforms.user_function import EditText

__all__ = ["QUESTION", "road", "run_road", "text_of", "tree", "write_raw"]

WORDS = [
    f"{a}{b}" for a in ("ka", "lö", "mi", "su", "te", "vó", "ra", "nu") for b in ("ren", "tal", "mos", "bik", "dún")
]
SIGNS = ("🌊", "。", "—", "你好", "ß", "<|endoftext|>", "\t", "x\u0301", "\x1b[1m", "\u202e")
FAMILIES = 45
QUESTION = (
    "A ferry carries 24 passengers and 6 bicycles on each crossing of the fjord. If it crosses 9 times on Saturday and "
    "7 times on Sunday, how many passengers can it carry over the weekend in all?"
)
ANSWER = "On Saturday it carries 216 passengers and on Sunday 168 passengers, so that makes 384 passengers in all."


def text_of(number: int, words: int = 120) -> str:
    """Return the text of a family: made-up words, some signs of several bytes, an address to mask."""
    draw = random.Random(number)
    made = [draw.choice(SIGNS) if draw.random() < 0.04 else draw.choice(WORDS) for _ in range(words)]
    return f"{' '.join(made)} no{number} mail to a{number}@mail.example.net"


def near(text: str) -> str:
    """Return `text` with two words replaced, far apart: 106 of some 126 shingles of five words are shared."""
    parts = text.split(" ")
    parts[30], parts[80] = "other", "further"
    return " ".join(parts)


def write_raw(root: Path) -> Path:
    """Write the three sources and the benchmark below `root` and return it."""
    letters: list[Line] = [{"name": f"l{n}", "text": f"  {text_of(n)}\n"} for n in range(FAMILIES)]
    letters += [{"name": "copy", "text": text_of(3)}, {"name": "empty", "text": ""}]
    letters += [{"name": "leak", "text": f"{text_of(900, 60)}\n{QUESTION}\n{ANSWER}\n{text_of(901, 60)}"}]
    write_lines(root / "letters" / "a.jsonl", letters[::2])
    write_lines(root / "letters" / "b.jsonl.gz", [*letters[1::2], b"no json\n"])
    pages: list[Line] = [{"text": near(text_of(n))} for n in range(0, FAMILIES, 2)]
    pages += [{"text": text_of(n)} for n in range(100, 120)] + [{"text": text_of(7) + " end"}]
    write_lines(root / "pages" / "x.jsonl", pages[::2])
    write_lines(root / "pages" / "y.jsonl", pages[1::2])
    (root / "notes").mkdir()
    for n in range(200, 212):
        (root / "notes" / f"{n}.txt").write_text(text_of(n, 90), "utf-8")
    (root / "benchmark.jsonl").write_text(json.dumps({"question": QUESTION, "answer": ANSWER}) + "\n", "utf-8")
    return root


def tidy(text: str) -> str:
    """Cut white space at both ends."""
    return text.strip()


def documents(root: Path) -> Dataset:
    """Return the texts of all sources, without duplicates and benchmark items."""
    tidied = EditText(tidy, reason="white space", version=1)
    letters = read_jsonl(root / "letters", source="letters", columns={"key": "name"})
    pages = read_jsonl(root / "pages", source="pages")
    unique = deduplicate(
        letters.apply(tidied, MaskPII(), name="letters"),
        pages.apply(MaskPII(), name="pages"),
        read_files(root / "notes", source="notes").apply(MaskPII(), name="notes"),
        method=MinHash(threshold="0.9"),
    )
    ferry = Benchmark.jsonl("ferry", root / "benchmark.jsonl", question="question", answer="answer")
    return decontaminate(unique, ferry)


@recipe
def road(root: Path, second: float = 1.0) -> Outputs:
    """Return documents, caches of training and validation, and a mixture; `second` weighs letters in its last phase."""
    clean = documents(root)
    train, valid = hold_out(clean, documents=9, per="source")
    tokenizer = train_tokenizer(train, 512)
    mixture = Mixture(
        tokenize(train, tokenizer, by="source"),
        Phase("main", tokens=30_000, weights={"letters": 3, "pages": 2}, others=1),
        Phase("last", tokens=9_000, weights={"letters": second, "notes": 2}, others=0),
        sequences=Chunks(32),
        repeats=AtMost(8),
        batch=8,
        seed=11,
    )
    held = tokenize(valid, tokenizer, by="source", name="tokenize valid")
    return Outputs(mixture, documents=clean, train=train, valid=valid, validation=held, batches=[(0, 8)])


def run_road(
    root: Path,
    store: Path,
    runner: Runner | None = None,
    chunk_rows: int = 4096,
    failpoint: Callable[[str], None] | None = None,
    outputs: Outputs | None = None,
) -> Result:
    """Do what `curate.run.run` does with a runner of the test's own."""
    made_of = outputs or road(root=root)
    place = Store(store.resolve(), failpoint)
    stages = compile_stages(made_of.products)
    place.root.mkdir(parents=True, exist_ok=True)
    place.remove_stale_spool_files()
    log = Journal(place)
    try:
        engine = Engine(place, runner or LocalRunner(), log, chunk_rows)
        units = fingerprint_inputs(stages, engine)
        made = run_stages(stages, units, engine, lambda stage, there: None)
        result = commit_result(place, "road", stages, units, made, made_of)
        log.write("recipe", name="road", folder=result.folder.name, digest=result.digest)
        return result
    finally:
        log.close()
