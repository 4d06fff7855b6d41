"""A small corpus of two sources, recipes over it, and ways of looking at the store that a run leaves."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from curate import Column, Dataset, Outputs, datasets, deduplicate, field, read_jsonl
from curate.digests import digest_file
from curate.recipes.compiling import compile_stages
from curate.recipes.recipe import Recipe
from curate.run import Result, commit_result
from curate.running.engine import Engine, fingerprint_inputs, run_stages
from curate.running.jobs import Item, Job
from curate.running.journal import Journal
from curate.running.runners import Attempt, LocalRunner, Runner, run_item
from curate.store import Store
from transforms.gopher_rules import GopherQuality
from transforms.gopher_stop_words import GERMAN
from transforms.minhash import MinHash
from transforms.pii import MaskPII
from transforms.switch import Switch
from transforms.user_function import EditText

WORDS = [
    f"{a}{b}" for a in ("ka", "lo", "mi", "su", "te", "vo", "ra", "nu") for b in ("ren", "tal", "mos", "bik", "dun")
]
METHOD = MinHash(threshold="0.6")
Line = dict[str, Any]


def sentence(seed: int, words: int = 40) -> str:
    """Return a made-up text that the filters of `small` keep, different for each seed."""
    draw = random.Random(seed)
    return f"The {' '.join(draw.choice(WORDS) for _ in range(words))} and number{seed} of it."


def changed(text: str, word: str = "changed") -> str:
    """Return `text` with its third word replaced: a near duplicate."""
    parts = text.split(" ")
    return " ".join([*parts[:2], word, *parts[3:]])


def books() -> dict[str, list[Line]]:
    """Return the lines of each file of the source of books, which has a key column."""
    first: list[Line] = [
        {"isbn": f"b{n}", "lang": "en", "text": sentence(n), "pages": n, "shelf": "A"} for n in range(6)
    ]
    first += [
        {"isbn": "b6", "lang": "en", "text": "Too short."},
        {"isbn": "b7", "lang": "de", "text": "Die Katze und das Haus " + sentence(7), "pages": None},
        {"isbn": "b8", "lang": "fr", "text": sentence(8)},
        {"isbn": "b9", "lang": "en", "text": sentence(9) + " Write to someone.else@mail.example.net today."},
        {"isbn": "b10", "lang": "en", "text": ""},
    ]
    second: list[Line] = [
        {"isbn": "b20", "lang": "en", "text": changed(sentence(0)), "pages": 2.5},
        {"isbn": "b21", "lang": "en", "text": sentence(1)},
        {"isbn": "b2", "lang": "en", "text": sentence(2), "pages": 2, "shelf": "A"},  # the record of the first file
        {"isbn": "b22", "lang": "de", "text": "Das Boot und die See " + sentence(22) + "   \n"},
        {"isbn": "b23", "lang": "en", "text": changed(sentence(9)) + " Write to someone.else@mail.example.net today."},
    ]
    return {"a.jsonl": first, "more/b.jsonl.gz": second}


def web() -> dict[str, list[Line]]:
    """Return the lines of each file of the source of pages, named by place."""
    first: list[Line] = [{"lang": "en", "text": sentence(n)} for n in (3, 30, 31, 32)]
    first += [{"lang": "en", "text": changed(sentence(30), "other")}, {"lang": None, "text": sentence(33)}]
    second: list[Line] = [{"lang": "en", "text": sentence(n), "site": {"b": 1, "a": None}} for n in (34, 30, 35)]
    return {"x.jsonl": first, "y.jsonl": second}


def write_lines(path: Path, lines: Sequence[Line | bytes]) -> None:
    """Write `lines` as JSON lines, compressed where the name ends in .gz; bytes stand as they are."""
    content = b"".join(line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n" for line in lines)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)


def write_corpus(root: Path) -> Path:
    """Write both sources below `root` and return it."""
    for name, lines in books().items():
        write_lines(root / "books" / name, [*lines, b"not json\n", b"\n"] if name == "a.jsonl" else lines)
    for name, lines in web().items():
        write_lines(root / "web" / name, lines)
    return root


def tidy(text: str) -> str:
    """Cut white space at both ends."""
    return text.strip()


def filters() -> list[Any]:
    """Return the transforms that both sources go through, one after the other."""
    low: dict[str, Any] = {"min_words": 8, "min_stop_words": 1, "max_mean_word_length": 20}
    return [
        EditText(tidy, reason="white space", version=1),
        Switch("language", en=[GopherQuality(**low)], de=[GopherQuality(stop_words=GERMAN, **low)]),
        MaskPII(),
    ]


def read_books(root: Path, **options: Any) -> Dataset:
    """Return the source of books."""
    columns: dict[str, str | Column] = {"key": "isbn", "language": "lang", "pages": Column("pages", "int64")}
    return read_jsonl(root / "books", source="books", columns=columns, licence="CC0-1.0", **options)


def read_web(root: Path) -> Dataset:
    """Return the source of pages."""
    return read_jsonl(root / "web", source="web", columns={"language": "lang"})


def small_outputs(root: Path) -> Outputs:
    """Return every kind of stage over both sources."""
    sources = [
        dataset.where(field("language").isin(("en", "de")), reason="language").apply(*filters())
        for dataset in (read_books(root), read_web(root))
    ]
    kept = sources[0].keep("books")
    unique = deduplicate(kept, sources[1], method=METHOD)
    return Outputs(texts=unique, shouting=unique.apply(EditText(str.swapcase, reason="case", version=1), name="case"))


small = Recipe(small_outputs)


def tree(root: Path) -> dict[str, str]:
    """Return name → digest of every file of a store that is part of its promise."""
    names = {path.relative_to(root).as_posix(): path for path in sorted(root.rglob("*")) if path.is_file()}
    return {name: digest_file(path) for name, path in names.items() if not name.startswith(("runs/", "spool/"))}


def journal(root: Path, run: int = -1) -> list[dict[str, Any]]:
    """Return the events of one run of a store, by default the last."""
    runs = [
        [json.loads(line) for line in path.read_text().splitlines()] for path in (root / "runs").glob("*/journal.jsonl")
    ]
    return sorted(runs, key=lambda events: float(events[0]["time"]))[run]


def tasks(root: Path, run: int = -1) -> dict[str, list[str]]:
    """Return job → labels of the tasks that one run of a store did, by default the last; hashing apart."""
    done: dict[str, list[str]] = {}
    for event in journal(root, run):
        if event["event"] == "task" and event["job"] != "fingerprint inputs":
            done.setdefault(event["job"], []).append(event["label"])
    return {job: sorted(labels) for job, labels in done.items()}


@dataclass(frozen=True)
class ShuffledRunner:
    """Runs the items of each job in an order of its own."""

    seed: int

    def run(self, job: Job, items: Sequence[Item]) -> Iterator[Attempt]:
        shuffled = list(items)
        random.Random(self.seed).shuffle(shuffled)
        for item in shuffled:
            yield run_item(job, item)


def staged(result: Result, name: str) -> datasets.Dataset:
    """Return the dataset that the stage `name` made."""
    return next(dataset for dataset in result.stages if dataset.name == name)


def run_on(
    outputs: Outputs,
    store: Path,
    runner: Runner | None = None,
    chunk_rows: int = 4096,
    failpoint: Callable[[str], None] | None = None,
) -> Result:
    """Do what `curate.run.run` does with a runner of the test's own."""
    place = Store(store.resolve(), failpoint)
    stages = compile_stages(outputs.products)
    place.root.mkdir(parents=True, exist_ok=True)
    place.remove_stale_spool_files()
    log = Journal(place)
    try:
        engine = Engine(place, runner or LocalRunner(), log, chunk_rows)
        units = fingerprint_inputs(stages, engine)
        made = run_stages(stages, units, engine, lambda stage, there: None)
        return commit_result(place, "recipe", stages, units, made)
    finally:
        log.close()


def texts(dataset: Any) -> list[str]:
    """Return the texts of a finished dataset in order."""
    return [text for batch in dataset.batches(["text"]) for text in batch.column("text").to_pylist()]


def ledger(dataset: Any, kind: str | None = None) -> list[dict[str, Any]]:
    """Return the ledger of a finished dataset, of one kind or all."""
    rows = [row for batch in dataset.ledger() for row in batch.to_pylist()]
    return rows if kind is None else [row for row in rows if row["kind"] == kind]
