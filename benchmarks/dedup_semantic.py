"""Semantic deduplication and templates through the engine: what is found, what is missed, what it costs.

Run `python -m benchmarks.dedup_semantic [--size small|full]`. It needs ../shared. Corpus: the passages of
`benchmarks.dedup_corpora` with their edited copies, and beside each fifth passage one with its sentences in another
order, which no shingle finds and every vector does. Everything runs in this process.

- Semantic: the documents that go with the default clusters, with one cluster (the exact rule over all pairs), and with
  sixty-four; every cosine in the ledger is computed again; copies that go, by kind; what goes for another family.
- Templates: MinHash with and without `without_templates`, on the same documents of which every one has a header.

Rates are MB (10^6 bytes of text) per second of CPU. The last line is JSON; the exit status is 1 when a check fails.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.dedup_corpora import passages, thinned
from benchmarks.timed_runner import TimedRunner
from curate.datasets import Dataset, open_dataset
from curate.readers.reader import Column
from curate.recipes.compiling import compile_stages
from curate.recipes.duplicates import deduplicate
from curate.recipes.graph import Dataset as Described
from curate.recipes.reading import read_parquet
from curate.recipes.recipe import Outputs
from curate.recipes.semantic import deduplicate_semantic
from curate.running.engine import Engine, fingerprint_inputs, run_stages
from curate.running.journal import Journal
from curate.running.warm import warm
from curate.store import Store
from transforms.embedding import HashedTfidf, directions, document_frequencies, rarity_of
from transforms.minhash import MinHash
from transforms.semantic import SCALE, cosine_of

THINNED: Final = {"small": 16, "full": 1}
HEADER: Final = "All rights to this page are reserved by those who wrote it; it is shown with their permission only."
COSINE: Final = Fraction(9, 10)
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Corpus:
    """Texts, the family and the kind of each ("" for a passage)."""

    texts: list[str]
    family: list[int]
    kind: list[str]

    @property
    def size(self) -> int:
        """Bytes of text."""
        return sum(len(text.encode()) for text in self.texts)


def corpus(size: str) -> Corpus:
    """Return passages, their copies, and of each fifth passage one with its sentences in another order."""
    table = thinned(passages(), THINNED[size])
    ids, of = table.column("id").to_pylist(), table.column("of").to_pylist()
    number = [int(name.split()[1]) if own < 0 else own for name, own in zip(ids, of, strict=True)]
    texts, kind = table.column("text").to_pylist(), table.column("edit").to_pylist()
    for row in [row for row, own in enumerate(of) if own < 0][::5]:
        sentences = re.split(r"(?<=[.!?。\n])", texts[row])
        if len(sentences) > 3:
            texts.append("".join(sentences[1::2] + sentences[::2]))
            number.append(number[row])
            kind.append("sentences in another order")
    return Corpus(texts, number, kind)


def write(folder: Path, texts: list[str]) -> Path:
    """Write `texts` as one Parquet file whose ids are their numbers."""
    folder.mkdir()
    rows = list(range(len(texts)))
    table = pa.table({"id": list(map(str, rows)), "text": pa.array(texts, pa.large_string()), "place": rows})
    pq.write_table(table, folder / "texts.parquet", compression="zstd")
    return folder


def read(folder: Path) -> Described:
    """Return the documents that `write` wrote, which passages come first in."""
    return read_parquet(folder, source="s", columns={"key": "id", "place": Column("place", "int64")})


def run(folder: Path, described: Any) -> tuple[Dataset, list[Json], float]:
    """Return the outcome, its ledger, and the CPU seconds of the stage's own tasks."""
    stages = compile_stages(Outputs(described).products)
    warm(stages)
    store, runner = Store(folder), TimedRunner()
    with closing(Journal(store)) as journal:
        engine = Engine(store, runner, journal)
        made = run_stages(stages, fingerprint_inputs(stages, engine), engine, lambda stage, reused: None)
    last = [each for each in made.values() if isinstance(each, Dataset)][-1]
    own = sum(taken for name, taken in runner.seconds.items() if name.startswith(("semantic", "deduplicate")))
    return last, [row for batch in last.ledger() for row in batch.to_pylist()], own


def names(store: Dataset) -> dict[str, int]:
    """Return id → row of the corpus for what a deduplication was given, and all that it dropped."""
    (entry,) = store.manifest["inputs"]
    found: dict[str, int] = {}
    for batch in open_dataset(store.store, entry["name"], entry["key"]).batches(["id", "place"]):
        found |= {row["id"].hex(): int(row["place"]) for row in batch.to_pylist()}
    return found


def semantic(folder: Path, given: Corpus) -> tuple[Json, Json, float]:
    """Return figures, checks and the rate with the default clusters."""
    source = read(write(folder / "in", given.texts))
    texts = pa.array(given.texts, pa.large_string())
    embedder = HashedTfidf().fitted(rarity_of(document_frequencies(texts), len(texts), lightest=1))
    vectors = directions(embedder, texts).astype(np.int64)
    gone: dict[str, int] = {}
    figures: Json = {}
    wrong = others = 0
    rate = 0.0
    for label, clusters, cap in (("all pairs", 1, 65_536), ("default clusters", None, 8192), ("64 clusters", 64, 8192)):
        described = deduplicate_semantic(source, similarity=COSINE, clusters=clusters, cap=cap, prefer=("place",))
        made, ledger, seconds = run(folder / "store", described)
        row_of = names(made)
        pairs = [
            (row_of[row["id"].hex()], row_of[json.loads(row["evidence"])["survivor"]], row["numerator"])
            for row in ledger
        ]
        went = {a for a, _, _ in pairs}
        for a, b, told in pairs:
            x, y = vectors[a], vectors[b]
            cosine = cosine_of(int(x @ y), int(x @ x), int(y @ y))
            wrong += cosine != told or cosine < COSINE * SCALE or b in went
        gone[label] = len(pairs)
        others += sum(given.family[a] != given.family[b] for a, b, _ in pairs) if clusters is None else 0
        if clusters is None:
            rate = given.size / 1e6 / seconds
            kinds = Counter(given.kind[a] for a in went)
            figures["copies that go, by kind"] = {
                kind: f"{kinds[kind]} of {given.kind.count(kind)}" for kind in sorted(set(given.kind))
            }
        figures[label] = {"gone": len(pairs), "MB/s": round(given.size / 1e6 / seconds, 1), **_counted(made)}
    figures["gone for a text of another family"] = others
    checks = {
        "cosines told wrongly, or below the threshold, or survivors that went": [wrong, "0", wrong == 0],
        "gone with default clusters / over all pairs": _share(gone["default clusters"], gone["all pairs"], 0.97),
        "gone with 64 clusters / over all pairs": _share(gone["64 clusters"], gone["all pairs"], 0.97),
    }
    return figures, checks, rate


def _counted(made: Dataset) -> Json:
    return {**made.statistics["duplicates"], "clusters": made.statistics["semantic"]["clusters"]}


def _share(part: int, whole: int, least: float) -> list[Any]:
    value = round(part / max(1, whole), 4)
    return [value, f"≥ {least}", value >= least]


def templates(folder: Path, given: Corpus) -> tuple[Json, Json]:
    """Return figures and checks of MinHash over texts that all have one header, with and without it."""
    headed = [f"{HEADER}\n\n{text}" for text in given.texts]
    source, plain = read(write(folder / "headed", headed)), read(folder / "in")
    figures: Json = {}
    rows = {}
    for label, described in (
        ("no headers", deduplicate(plain, method=MinHash(), prefer=("place",))),
        ("headers", deduplicate(source, method=MinHash(), prefer=("place",))),
        ("headers left out", deduplicate(source, method=MinHash(), prefer=("place",), without_templates=0.2)),
    ):
        made, _, seconds = run(folder / "templates", described)
        size = given.size if label == "no headers" else sum(len(text.encode()) for text in headed)
        rows[label] = made.rows
        left_out = made.statistics.get("templates", {}).get("s", {}).get("shingles", 0)
        figures[label] = {"stay": made.rows, "MB/s": round(size / 1e6 / seconds, 1), "shingles left out": left_out}
    apart = abs(rows["headers left out"] - rows["no headers"]) / rows["no headers"]
    return figures, {
        "documents that stay: headers left out against no headers": [round(apart, 4), "≤ .002", apart <= 0.002]
    }


def main(arguments: list[str] | None = None) -> int:
    """Print the figures and one line of JSON; return 1 if a check fails."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--size", choices=list(THINNED), default="full")
    given = corpus(parser.parse_args(arguments).size)
    with tempfile.TemporaryDirectory() as temporary:
        figures, checks, rate = semantic(Path(temporary), given)
        more, further = templates(Path(temporary), given)
    checks |= further
    print(json.dumps({"documents": len(given.texts), "MB": round(given.size / 1e6, 1), **figures, **more}, indent=1))
    told = {"name": "dedup_semantic", "unit": "MB/s", "ours": round(rate, 1), "checks": checks}
    print(json.dumps(told, ensure_ascii=False))
    return int(not all(check[2] for check in checks.values()))


if __name__ == "__main__":
    sys.exit(main())
