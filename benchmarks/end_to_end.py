"""From web archives to token caches: the whole way on real pages, stage by stage, checked, with datatrove beside it.

    python -m benchmarks.end_to_end [--size small|full|tiny] [--peers] [--scaling] [--runner local|ray]

Input: the Common Crawl sample of 2008 and pages of ../shared/data/extraction written as WARC, every tenth once more
under another address with a paragraph added. Where ../shared is absent it says so and ends. The way: text by our block
engine, English by lid.176 (.65), Gopher's repetition and quality filters, exact and near duplicates (MinHash, .8), ids
of gpt2's tokenizer. Datasets are made real between the stages of the table, so that each can be measured.

Rates are of CPU time of this process and of the child that extraction runs in, all threads, after a first run over a
few pages: kernels compiled, models and the child loaded; with `--runner ray`, of the clock with two workers. MB are
10^6 bytes of HTTP responses as they lie in the archives, unpacked. Checks, each of which can fail: every count and byte
of the store is verified, ids equal those of `tokenizers` document by document, no two surviving texts of a sample have
a Jaccard similarity of .8, texts are kept and copies are not. The last line is one JSON object; the exit status is 1
when a check fails.

`--peers` runs datatrove's steps on the same files in this process (`benchmarks.end_to_end_peer` says which of them),
and ours once more with trafilatura, its extractor, with its settings (precision, tables, no comments): 10 and 1.6 times
its rate are asked for at full size. `--scaling` runs the way over 1, 4 and 16 times as many pages
(`benchmarks.end_to_end_scaling`) instead.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import tokenizers

from benchmarks.end_to_end_recipe import (
    ARCHIVE,
    DATA,
    EOS,
    LANGUAGES,
    MODEL,
    NEAR,
    TOKENIZER,
    Extractor,
    outputs,
    size_of,
    write_inputs,
)
from benchmarks.end_to_end_scaling import Check, scaling
from benchmarks.processor_time import cpu_seconds
from curate.caches import TokenCache
from curate.digests import text_digest
from curate.recipes.compiling import compile_stages
from curate.run import Result, run
from curate.running.warm import warm
from curate.upkeep.verify import verify
from transforms.minhash import MinHash, shingle_sets

SIZES: Final = {"tiny": 12, "small": 90, "full": 1_000}
"""Pages of each set at most."""
SAMPLED: Final = 400
"""Documents whose ids are compared, and whose pairs are."""
PACKAGES: Final = ("numpy", "numba", "pyarrow", "trafilatura", "fastwarc", "tokenizers", "tensorstore", "datatrove")

TITLES: Final = {"hash inputs": "start, hash inputs", "read web": "read, extract", "language": "normalise, language"}

LEAST_RATIOS: Final = {"blocks": 10, "trafilatura": 1.6}
"""How many times datatrove's rate ours is to be at full size, by our extractor."""


@dataclass(frozen=True, slots=True)
class Stage:
    """What one row of the table says: seconds, and how many pages or documents came in and went out."""

    name: str
    seconds: float
    came: int
    left: int


def run_ours(root: Path, store: Path, runner: str, pages: int, extractor: Extractor) -> tuple[Result, list[Stage]]:
    """Run everything and return the result and the rows of the table."""
    clock: Callable[[], float] = cpu_seconds if runner == "local" else time.perf_counter
    marks: list[tuple[str, float]] = [("hash inputs", clock())]
    made = run(
        outputs(root, extractor),
        store,
        name="web",
        runner=runner,
        started=lambda stage, there: marks.append((stage.name, clock())),
    )
    marks.append(("", clock()))
    rows = {"hash inputs": pages} | {stage.name: stage.rows for stage in made.stages}
    stages, came = [], pages
    for (name, began), (_, ended) in pairwise(marks):
        left = rows.get(name, came)
        stages.append(Stage(TITLES.get(name, name), ended - began, came, left))
        came = left
    return made, stages


def texts_of(dataset: Any) -> list[str]:
    """Return the texts of a finished dataset."""
    return [text for batch in dataset.batches(["text"]) for text in batch.column("text").to_pylist()]


def different_ids(cache: TokenCache, texts: Sequence[str], documents: Sequence[int]) -> int:
    """Return how many of `documents` of the cache have other ids than `tokenizers` gives their text, one by one."""
    model: Any = tokenizers.Tokenizer.from_file(str(TOKENIZER))
    model.encode_special_tokens = True
    by_digest = {text_digest(text): text for text in texts}
    digests = cache.text_digests()
    return sum(
        cache[number].tolist()
        != [
            *model.encode(by_digest[digests[number].tobytes()], add_special_tokens=False).ids,
            model.token_to_id(EOS),
        ]
        for number in documents
    )


def similar_pairs(texts: Sequence[str]) -> int:
    """Return how many pairs of `texts` have a Jaccard similarity of `NEAR`, by comparing all with all."""
    sets = shingle_sets(pa.array(texts, pa.large_string()), MinHash().ngram)
    plain = [set(sets.values[start:stop].tolist()) for start, stop in pairwise(sets.offsets.tolist())]
    return sum(len(a & b) >= NEAR * len(a | b) for a, b in combinations(plain, 2))


def checks_of(result: Result, stages: Sequence[Stage]) -> dict[str, Check]:
    """Return name → [value, what it must be, whether it is]."""
    found, texts = verify(result.folder.parent), texts_of(result.outputs["unique"])
    (cache,) = result.caches["cells"].open().values()
    draw = random.Random(1)
    documents = draw.sample(range(len(cache)), min(SAMPLED, len(cache)))
    different = different_ids(cache, texts, documents)
    sample = draw.sample(texts, min(SAMPLED, len(texts)))
    pairs = similar_pairs(sample)
    rows = {stage.name: stage for stage in stages}
    copies = rows["deduplicate"].came - rows["deduplicate"].left
    return {
        "problems that verify finds": [len(found.problems), "0", found.ok],
        "documents with other ids than tokenizers": [different, f"0 of {len(documents)}", different == 0],
        f"surviving pairs of at least {NEAR}": [pairs, f"0 among {len(sample)}", pairs == 0],
        "documents of the cache": [len(cache), f"= {len(texts)}", len(cache) == len(texts)],
        "texts kept": [len(texts), "≥ 1", len(texts) >= 1],
        "duplicates found": [copies, "≥ 1", copies >= 1],
    }


def show(stages: Sequence[Stage], megabytes: float) -> None:
    """Print the table of a chain."""
    print(f"{'stage':28} {'seconds':>8} {'came':>7} {'left':>7} {'pages/s':>9} {'MB/s':>8}")
    whole = Stage("all", sum(stage.seconds for stage in stages), stages[0].came, stages[-1].left)
    for stage in (*stages, whole):
        rate = megabytes / stage.seconds if stage.seconds > 1e-3 else float("inf")
        pages = stage.came / max(stage.seconds, 1e-9)
        print(f"{stage.name:28} {stage.seconds:8.2f} {stage.came:7,} {stage.left:7,} {pages:9,.0f} {rate:8.2f}")


@contextmanager
def work_folder() -> Iterator[Path]:
    """Yield a temporary folder, in memory where that is possible: a slow disk is not what is measured."""
    shared = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(prefix="curate-end-to-end-", dir=shared if shared.is_dir() else None))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class Inputs:
    """What is measured on: the archives, a folder to work in, and how many responses and MB there are."""

    root: Path
    work: Path
    pages: int
    megabytes: float

    def rate(self, stages: Sequence[Stage]) -> float:
        """Return MB per second of a whole chain."""
        return self.megabytes / sum(stage.seconds for stage in stages)


def measured(inputs: Inputs, runner: str, extractor: Extractor) -> tuple[list[Stage], dict[str, Check]]:
    """Run our way, print its table, and return it with its checks."""
    store = inputs.work / f"store {extractor}"
    if runner == "local":  # so that kernels are compiled and models loaded
        few = inputs.work / f"few {extractor}"
        made = outputs(write_inputs(few, 4), extractor)
        warm(compile_stages(made.products))  # also those that a few pages have no need of
        run(made, inputs.work / f"few store {extractor}", runner=runner)
    result, stages = run_ours(inputs.root, store, runner, inputs.pages, extractor)
    print(f"\nours, text by {extractor}")
    show(stages, inputs.megabytes)
    return stages, checks_of(result, stages)


def measured_peer(inputs: Inputs) -> list[Stage]:
    """Run datatrove's chain, print its table, and return it."""
    from benchmarks.end_to_end_peer import ABOUT, run_datatrove

    rows = run_datatrove(inputs.root, inputs.work / "datatrove", inputs.pages, TOKENIZER, MODEL, LANGUAGES, cpu_seconds)
    print(f"\ndatatrove: {ABOUT}")
    stages = [Stage(*row) for row in rows]
    show(stages, inputs.megabytes)
    return stages


def ratio_checks(rates: Mapping[str, float], peer: float, size: str) -> dict[str, Check]:
    """Return whether our rates are so many times the peer's as is asked for at full size."""
    checks = {}
    for extractor, rate in rates.items():
        least, ratio = LEAST_RATIOS[extractor], rate / peer
        holds = size != "full" or ratio >= least
        checks[f"times datatrove's chain, text by {extractor}"] = [round(ratio, 2), f"≥ {least}", holds]
    return checks


def compared(inputs: Inputs, options: argparse.Namespace) -> dict[str, Any]:
    """Measure ours, and the peer where it is asked for; return what the last line says beyond names and versions."""
    stages, checks = measured(inputs, options.runner, "blocks")
    rates, tables = {"blocks": inputs.rate(stages)}, {"ours": stages}
    peers, rows = {}, []
    if options.peers:
        tables["datatrove"] = measured_peer(inputs)
        again, _ = measured(inputs, options.runner, "trafilatura")
        tables["ours, trafilatura"] = again
        rates["trafilatura"] = inputs.rate(again)
        peers = {"datatrove": round(inputs.rate(tables["datatrove"]), 3)}
        rows = [{"what": "trafilatura on both sides", "ours": round(rates["trafilatura"], 3), "peers": peers}]
        checks |= ratio_checks(rates, peers["datatrove"], options.size)
    return {
        "ours": round(rates["blocks"], 3),
        "peers": peers,
        "ratio": round(rates["blocks"] / peers["datatrove"], 2) if peers else None,
        "rows": rows,
        "pages per second": {
            name: round(inputs.pages / sum(stage.seconds for stage in table), 1) for name, table in tables.items()
        },
        "stages": {
            name: {stage.name: [round(stage.seconds, 2), stage.came, stage.left] for stage in table}
            for name, table in tables.items()
        },
        "checks": checks,
    }


def options_of(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--size", choices=SIZES, default="small", help="how many pages (default: %(default)s)")
    parser.add_argument("--peers", action="store_true", help="run datatrove's steps, too")
    parser.add_argument("--scaling", action="store_true", help="1, 4 and 16 times as many pages, ours alone")
    parser.add_argument("--runner", choices=["local", "ray"], default="local", help="ray: two workers, by the clock")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables, the checks and one line of JSON; return 1 if a check failed."""
    options = options_of(arguments)
    if not all(path.exists() for path in (ARCHIVE, TOKENIZER, MODEL)):
        print(f"nothing was measured: {DATA} is not there")
        return 0
    name, unit = f"end to end, {options.size}, text by blocks", "MB of HTML per CPU second"
    with work_folder() as work:
        if options.scaling:
            name, found = f"end to end, 1, 4 and 16 times, {options.size}", scaling(work, options.size)
        else:
            root = write_inputs(work / "crawl", SIZES[options.size])
            inputs = Inputs(root, work, *size_of(root))
            print(f"{inputs.pages:,} responses, {inputs.megabytes:.1f} MB", flush=True)
            found = compared(inputs, options)
            unit = unit if options.runner == "local" else "MB of HTML per second, 2 workers"
    print()
    for check, (value, bound, holds) in found["checks"].items():
        print(f"{check:55} {value:8,} {bound:12} {'holds' if holds else 'FAILS'}")
    versions = {"python": platform.python_version(), **{package: version(package) for package in PACKAGES}}
    print(json.dumps({"name": name, "unit": unit, **found, "versions": versions}, ensure_ascii=False))
    return int(not all(holds for _, _, holds in found["checks"].values()))


if __name__ == "__main__":
    sys.exit(main())
