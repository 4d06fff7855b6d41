"""From Parquet to finished token caches, beside a loop over `tokenizers` and TensorStore written the obvious way.

Run `python -m benchmarks.tokens [--size small|full] [--tokenizer gpt2|cl100k_base|deepseek]`. It reads
../shared/data (70 MB of books, LaTeX, code and twelve languages; tokenizers) where it is present, else text and a
tokenizer made here. Ours regroups documents, orders them by digest, checks BOS, EOS and control tokens, counts, and
writes five arrays; the loop encodes one text after the other and writes two. `encode_batch` alone shows what all of
that costs. MB are 10^6 bytes of UTF-8; rates are per second of CPU and per second, the best of some runs. The last line
is JSON; the exit status is 1 when a check fails.
"""

from __future__ import annotations

import argparse
import json
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass
from importlib.metadata import version
from io import StringIO
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.minhash import CORPUS, synthetic
from curate import Outputs, read_parquet
from curate.caches import TokenCache, Tokenization
from curate.datasets import Dataset
from curate.digests import text_digest
from curate.run import run
from curate.running.engine import Engine
from curate.running.journal import Journal
from curate.running.runners import LocalRunner
from transforms.token_training import train_bpe
from transforms.tokens import Tokenizer

TOKENIZERS: Final = CORPUS.parents[1] / "tokenizers"
EOS: Final = {"gpt2": "<|endoftext|>", "cl100k_base": "<|endoftext|>", "deepseek": "<｜end▁of▁sentence｜>"}
BYTES: Final = {"small": 3_000_000, "full": 24_000_000}
BATCH: Final = 256
LEAST_RATIO: Final = 0.9
"""Least rate of ours over that of the loop, per CPU second."""

PACKAGES: Final = ("tokenizers", "tensorstore", "numpy", "pyarrow")


@dataclass(frozen=True, slots=True)
class Rate:
    """MB per second of CPU and per second."""

    cpu: float
    wall: float

    def __str__(self) -> str:
        return f"{self.cpu:8.2f} MB per CPU second {self.wall:8.2f} MB/s"


@contextmanager
def work_folder() -> Iterator[Path]:
    """Yield a temporary folder, in memory where that is possible: this measures tokenizing, not the disk."""
    shared = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(prefix="curate-tokens-", dir=shared if shared.is_dir() else None))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def write_corpus(folder: Path, size: int) -> tuple[str, pa.Table]:
    """Write at most `size` bytes of text, spread over the corpus, and return where they are from and the rows."""
    if CORPUS.exists():
        table, name = pq.read_table(CORPUS, columns=["text", "domain"]), CORPUS.name
    else:
        text, name = synthetic(size), "text made here"
        table = pa.table({"text": text, "domain": pa.array(["made"] * len(text))})
    lengths = pc.binary_length(table.column("text")).to_numpy()
    mixed = np.random.default_rng(0).permutation(len(lengths))
    table = table.take(pa.array(np.sort(mixed[: int(np.searchsorted(np.cumsum(lengths[mixed]), size, side="right"))])))
    folder.mkdir()
    pq.write_table(table, folder / "corpus.parquet", row_group_size=2000)
    return name, table


def choose_tokenizer(folder: Path, name: str, texts: Sequence[str]) -> Tokenizer:
    """Return the shared tokenizer `name`, or one trained here where there is none."""
    path = TOKENIZERS / f"{name}.tokenizer.json"
    if path.exists():
        return Tokenizer(path, eos=EOS[name])
    made = folder / "made.tokenizer.json"
    made.write_bytes(train_bpe(texts[:500], 8192, ["<|endoftext|>"]))
    return Tokenizer(made, eos="<|endoftext|>")


def best(size: int, work: Callable[[int], object], repeats: int) -> Rate:
    """Return the best rates of `work`, which is told the number of the run."""
    found = []
    for number in range(repeats):
        cpu, wall = time.process_time(), time.perf_counter()
        work(number)
        found.append((size / 1e6 / (time.process_time() - cpu), size / 1e6 / (time.perf_counter() - wall)))
    return Rate(max(rate for rate, _ in found), max(rate for _, rate in found))


def our_caches(dataset: Dataset, tokenizer: Tokenizer, number: int) -> dict[str, TokenCache]:
    """Return the caches of a new tokenization of `dataset`, one per domain."""
    store = dataset.store
    log = Journal(store)
    try:
        with redirect_stderr(StringIO()):
            engine = Engine(store, LocalRunner(), log)
            receipts, _ = Tokenization(dataset, tokenizer, ("domain",), f"{number:064x}", engine).run()
    finally:
        log.close()
    return {receipt.unit["cell"]: TokenCache.open(store.path(receipt.unit["folder"])) for receipt in receipts}


def plain_loop(path: Path, tokenizer: Tokenizer, folder: Path) -> list[list[int]]:
    """Encode one text after the other, write tokens and offsets to a zarr3 store, and return the ids."""
    import tensorstore
    import tokenizers

    library = tokenizers.Tokenizer.from_file(str(tokenizer.path))
    eos = library.token_to_id(str(tokenizer.eos))
    texts = pq.read_table(path, columns=["text"]).column("text").to_pylist()
    ids = [[*library.encode(text, add_special_tokens=False).ids, eos] for text in texts]
    arrays = {
        "tokens": np.concatenate([np.array(document, np.uint32) for document in ids]),
        "offsets": np.cumsum([0, *map(len, ids)]).astype(np.uint64),
    }
    for name, values in arrays.items():
        spec = {
            "driver": "zarr3",
            "kvstore": {"driver": "file", "path": f"{folder / name}/"},
            "metadata": {
                "shape": [len(values)],
                "data_type": str(values.dtype),
                "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1 << 18]}},
                "codecs": [{"name": "zstd", "configuration": {"level": 3}}],
            },
        }
        tensorstore.open(spec, create=True).result().write(values).result()
    return ids


def different(table: pa.Table, caches: dict[str, TokenCache], ids: list[list[int]], tokenizer: Tokenizer) -> int:
    """Return how many documents have other ids than in the loop; those that hold special text are left out."""
    controls = list(tokenizer.encoder().controls)
    found = {}
    for cache in caches.values():
        for digest, document in zip(cache.text_digests(), cache, strict=True):
            found[digest.tobytes()] = document.tolist()
    wrong = 0
    for text, expected in zip(table.column("text").to_pylist(), ids, strict=True):
        if not any(control in text for control in controls):
            wrong += found.get(text_digest(text)) != expected
    return wrong


def measure(folder: Path, size: str, name: str) -> tuple[dict[str, Rate], dict[str, list[Any]]]:
    """Return the rates and the checks."""
    origin, table = write_corpus(folder / "raw", BYTES[size])
    texts = table.column("text").to_pylist()
    total = int(pc.sum(pc.binary_length(table.column("text"))).as_py())
    tokenizer = choose_tokenizer(folder, name, texts)
    print(f"{origin}: {len(texts):,} documents, {total / 1e6:.1f} MB; {tokenizer}")
    source = read_parquet(folder / "raw", source="corpus", columns={"text": "text", "domain": "domain"})
    with redirect_stderr(StringIO()):
        dataset = run(Outputs(texts=source), folder / "store", runner="local").outputs["texts"]
    encoder = tokenizer.encoder()
    repeats = 2
    caches: dict[str, TokenCache] = {}
    ids: list[list[int]] = []

    def ours(number: int) -> None:
        caches.update(our_caches(dataset, tokenizer, number))

    def loop(number: int) -> None:
        (folder / f"loop{number}").mkdir()
        ids[:] = plain_loop(folder / "raw" / "corpus.parquet", tokenizer, folder / f"loop{number}")

    def alone(number: int) -> None:
        for first in range(0, len(texts), BATCH):
            encoder.encode_batch(texts[first : first + BATCH])

    rates = {"ours": best(total, ours, repeats), "loop": best(total, loop, repeats)}
    rates["encode_batch alone"] = best(total, alone, repeats)
    ratio = rates["ours"].cpu / rates["loop"].cpu
    wrong = different(table, caches, ids, tokenizer)
    problems = [problem for cache in caches.values() for problem in cache.verify()]
    again = [cache.digest for cache in our_caches(dataset, tokenizer, repeats).values()]
    checks: dict[str, list[Any]] = {
        "documents with other ids than in the loop": [wrong, "= 0", wrong == 0],
        "problems that verify finds": [len(problems), "= 0", not problems],
        "caches whose content differs when made again": [
            sum(a != cache.digest for a, cache in zip(again, caches.values(), strict=True)), "= 0",
            again == [cache.digest for cache in caches.values()],
        ],
        "rate of ours / of the loop, per CPU second": [
            round(ratio, 2), f"≥ {LEAST_RATIO}", ratio >= LEAST_RATIO,
        ],
    }  # fmt: skip
    return rates, checks


def main(arguments: list[str] | None = None) -> int:
    """Print a table, the checks and one line of JSON; return 1 if a check failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--size", choices=sorted(BYTES), default="full", help="how much text (default: %(default)s)")
    parser.add_argument("--tokenizer", choices=sorted(EOS), default="gpt2", help="default: %(default)s")
    options = parser.parse_args(arguments)
    with work_folder() as folder:
        rates, checks = measure(folder, options.size, options.tokenizer)
    for name, rate in rates.items():
        print(f"{name:25} {rate}")
    for check, (value, bound, holds) in checks.items():
        print(f"{check:50} {value:10} {bound:8} {'holds' if holds else 'FAILS'}")
    report = {
        "name": "tokens",
        "unit": "MB per CPU second",
        "ours": round(rates["ours"].cpu, 2),
        "peers": {name: round(rate.cpu, 2) for name, rate in rates.items() if name != "ours"},
        "ratio": round(rates["ours"].cpu / rates["loop"].cpu, 2),
        "checks": checks,
        "versions": {"python": platform.python_version(), **{package: version(package) for package in PACKAGES}},
    }
    print(json.dumps(report, ensure_ascii=False))
    return int(not all(holds for _, _, holds in checks.values()))


if __name__ == "__main__":
    sys.exit(main())
