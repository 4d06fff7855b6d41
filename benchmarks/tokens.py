"""From Parquet to finished token caches, beside datatrove and a loop over `tokenizers` and TensorStore.

Run `python -m benchmarks.tokens [--size small|full] [--tokenizer gpt2|cl100k_base|deepseek] [--peers]`. It reads
../shared/data (70 MB of books, LaTeX, code and twelve languages; tokenizers) where it is present, else text and a
tokenizer made here; where that is less than the size asked for, several times, each with a number in front. Ours
regroups documents, orders them by digest, checks BOS, EOS and control tokens, compares a sample with `tokenizers`,
counts, and writes five arrays; the loop, written the obvious way, encodes one text after the other and writes two;
datatrove's DocumentTokenizer (`--peers`) writes tokens and an index. Loop and datatrove get the first MB of the same
documents. What is loaded once per process is loaded before. `tokenizers alone` and `backend alone` are calls in
batches, without all of that.

MB are 10^6 bytes of UTF-8; rates are per second of CPU of all threads, and per second, the best of some runs. The
bounds hold for the full size. The last line is JSON; the exit status is 1 when a check fails.
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
from contextlib import contextmanager, redirect_stderr, suppress
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
from transforms.fast_tokens import FastEncoder, NoFastBackendError
from transforms.token_training import train_bpe
from transforms.tokens import Tokenizer

TOKENIZERS: Final = CORPUS.parents[1] / "tokenizers"
EOS: Final = {"gpt2": "<|endoftext|>", "cl100k_base": "<|endoftext|>", "deepseek": "<｜end▁of▁sentence｜>"}
BYTES: Final = {"small": 3_000_000, "full": 200_000_000}
PEER_BYTES: Final = {"small": 1_000_000, "full": 6_000_000}
BATCH: Final = 256
LEAST_RATIO: Final = {"small": 1.0, "full": 20.0}
"""Least rate of ours over that of the loop, and of datatrove, per CPU second."""

LEAST_RATE: Final = {"small": 1.0, "full": 60.0}
"""Least rate of ours, in MB per CPU second: MB/s of a core."""

PACKAGES: Final = ("tokenizers", "gigatoken", "datatrove", "tensorstore", "numpy", "pyarrow")


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
    copies = max(1, size // int(lengths.sum()))
    table = table.take(pa.array(np.sort(mixed[: int(np.searchsorted(np.cumsum(lengths[mixed]), size, side="right"))])))
    table = pa.concat_tables([_numbered(table, number) for number in range(copies)])
    folder.mkdir()
    pq.write_table(table, folder / "corpus.parquet", row_group_size=2000)
    return name, table


def _numbered(table: pa.Table, number: int) -> pa.Table:
    """Return the rows with a number before each text, so that texts are different; those of number 0 as they are."""
    if not number:
        return table
    texts = pc.binary_join_element_wise(f"Copy {number}. ", table.column("text"), "")
    return table.set_column(table.schema.get_field_index("text"), "text", texts)


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
            receipts, _, _ = Tokenization(dataset, tokenizer, ("domain",), f"{number:064x}", engine).run()
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


def by_datatrove(path: Path, tokenizer: Tokenizer, folder: Path) -> None:
    """Tokenize a file of Parquet by datatrove's own reader, step and executor."""
    from datatrove.executor.local import LocalPipelineExecutor
    from datatrove.pipeline.readers import ParquetReader
    from datatrove.pipeline.tokens import DocumentTokenizer
    from datatrove.utils.logging import logger

    logger.remove()
    LocalPipelineExecutor(
        [
            ParquetReader(str(path.parent), glob_pattern=path.name, doc_progress=False),
            DocumentTokenizer(
                output_folder=str(folder / "out"), tokenizer_name_or_path=str(tokenizer.path),
                eos_token=tokenizer.eos, shuffle_documents=False,
            ),
        ],
        tasks=1, workers=1, logging_dir=str(folder / "logs"),
    ).run()  # fmt: skip


def measure(folder: Path, size: str, name: str, peers: bool) -> tuple[dict[str, Rate], dict[str, list[Any]]]:
    """Return the rates and the checks."""
    origin, table = write_corpus(folder / "raw", BYTES[size])
    lengths = pc.binary_length(table.column("text")).to_numpy()
    total = int(lengths.sum())
    some = table.slice(0, max(1, int(np.searchsorted(np.cumsum(lengths), PEER_BYTES[size]))))
    part = int(lengths[: len(some)].sum())
    (folder / "part").mkdir()
    pq.write_table(some.append_column("id", pa.array(map(str, range(len(some))))), folder / "part" / "corpus.parquet")
    tokenizer = choose_tokenizer(folder, name, table.column("text").to_pylist())
    print(f"{origin}: {len(table):,} documents, {total / 1e6:.1f} MB; {tokenizer}")
    source = read_parquet(folder / "raw", source="corpus", columns={"text": "text", "domain": "domain"})
    with redirect_stderr(StringIO()):
        dataset = run(Outputs(texts=source), folder / "store", runner="local").outputs["texts"]
    caches: dict[str, TokenCache] = {}
    ids: list[list[int]] = []

    def ours(number: int) -> None:
        caches.update(our_caches(dataset, tokenizer, number))

    def loop(number: int) -> None:
        (folder / f"loop{number}").mkdir()
        ids[:] = plain_loop(folder / "part" / "corpus.parquet", tokenizer, folder / f"loop{number}")

    def datatrove(number: int) -> None:
        (folder / f"peer{number}").mkdir()
        by_datatrove(folder / "part" / "corpus.parquet", tokenizer, folder / f"peer{number}")

    ours(1000)  # loads and tries out what encodes
    rates = {"ours": best(total, ours, 3), "loop": best(part, loop, 2)}
    if peers:
        rates["datatrove"] = best(part, datatrove, 2)
    rates |= alone(tokenizer, table.column("text"), some.column("text"), total, part)
    return rates, checks_of(size, rates, caches, different(some, caches, ids, tokenizer), dataset, tokenizer)


def alone(tokenizer: Tokenizer, texts: Any, some: Any, total: int, part: int) -> dict[str, Rate]:
    """Return the rates of encoding in batches, and nothing else."""
    encoders: dict[str, tuple[Any, Any, int]] = {"tokenizers alone": (tokenizer.encoder(), some, part)}
    with suppress(NoFastBackendError):
        fast = FastEncoder(tokenizer.encoder())
        fast.try_out()
        encoders["backend alone"] = (fast, texts, total)
    found = {}
    for name, (encoder, column, size) in encoders.items():
        plain = column.cast(pa.large_string()).combine_chunks()
        plain = plain.chunk(0) if isinstance(plain, pa.ChunkedArray) else plain

        def work(_: int, encoder: Any = encoder, plain: Any = plain) -> None:
            for first in range(0, len(plain), BATCH):
                encoder.encode_column(plain.slice(first, BATCH))

        found[name] = best(size, work, 2)
    return found


def checks_of(
    size: str, rates: dict[str, Rate], caches: dict[str, TokenCache], wrong: int, dataset: Dataset, tokenizer: Tokenizer
) -> dict[str, list[Any]]:
    """Return the checks."""
    problems = [problem for cache in caches.values() for problem in cache.verify()]
    again = [cache.digest for cache in our_caches(dataset, tokenizer, 2000).values()]
    changed = sum(a != cache.digest for a, cache in zip(again, caches.values(), strict=True))
    checks: dict[str, list[Any]] = {
        "documents with other ids than in the loop": [wrong, "= 0", wrong == 0],
        "problems that verify finds": [len(problems), "= 0", not problems],
        "caches whose content differs when made again": [changed, "= 0", changed == 0],
        "MB per CPU second": [
            round(rates["ours"].cpu, 1), f"≥ {LEAST_RATE[size]}", rates["ours"].cpu >= LEAST_RATE[size],
        ],
    }  # fmt: skip
    for peer in ("loop", "datatrove"):
        if peer in rates:
            ratio, least = rates["ours"].cpu / rates[peer].cpu, LEAST_RATIO[size]
            checks[f"rate of ours / of {peer}, per CPU second"] = [round(ratio, 2), f"≥ {least}", ratio >= least]
    return checks


def main(arguments: list[str] | None = None) -> int:
    """Print a table, the checks and one line of JSON; return 1 if a check failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--size", choices=sorted(BYTES), default="small", help="how much text (default: %(default)s)")
    parser.add_argument("--tokenizer", choices=sorted(EOS), default="gpt2", help="default: %(default)s")
    parser.add_argument("--peers", action="store_true", help="datatrove's DocumentTokenizer, too")
    options = parser.parse_args(arguments)
    with work_folder() as folder:
        rates, checks = measure(folder, options.size, options.tokenizer, options.peers)
    for name, rate in rates.items():
        print(f"{name:25} {rate}")
    for check, (value, bound, holds) in checks.items():
        print(f"{check:50} {value:10} {bound:8} {'holds' if holds else 'FAILS'}")
    report = {
        "name": "tokens",
        "unit": "MB per CPU second",
        "ours": round(rates["ours"].cpu, 2),
        "peers": {name: round(rate.cpu, 2) for name, rate in rates.items() if name in ("loop", "datatrove")},
        "rows": [
            {"what": f"ids only: {name}", "ours": round(rate.cpu, 2), "peers": {}}
            for name, rate in rates.items()
            if name.endswith("alone")
        ],
        "ratio": round(rates["ours"].cpu / max(rates[name].cpu for name in ("loop", "datatrove") if name in rates), 2),
        "checks": checks,
        "versions": {"python": platform.python_version(), **{package: version(package) for package in PACKAGES}},
    }
    print(json.dumps(report, ensure_ascii=False))
    return int(not all(holds for _, _, holds in checks.values()))


if __name__ == "__main__":
    sys.exit(main())
