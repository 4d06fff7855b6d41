"""Random windows of 4,096 tokens from a token cache, compressed and mapped, beside numpy and the readers of others.

Run `python -m benchmarks.windows [--size small|full] [--peers] [--layouts]`. Tokens are drawn like words of a language
(rank r as often as 1 / r), so that they compress about as real ones do (1.3 times). Every window is compared with
numpy. Rates are windows per second of CPU, of all threads, the best of three runs, of windows whose values are added
up, so that mapped ones are read. `--peers`: readers of Megatron, datatrove and litdata on our own exports, in
.venv-peer-tokens. `--layouts`: zstd levels and inner chunks for windows of 512 to 8,192 tokens. A cache of 1,000 shards
is opened in a process of its own after the kernel has dropped its files. The last line is JSON; the exit status is 1
when a check fails.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import numpy as np
import numpy.typing as npt

from benchmarks.install_peers import Environment
from benchmarks.tokens import work_folder
from curate.caches import TokenCache, export_cache, layout
from curate.caches.description import Description
from curate.caches.layout import LAYOUT, MAPPED, Layout
from curate.caches.standalone import Documents, write_cache
from curate.store import Store

TOKENS: Final = {"small": 10_000_000, "full": 100_000_000}
WINDOWS: Final = {"small": 1600, "full": 9600}
LENGTH: Final = 4096
BATCH: Final = 32
VOCABULARY: Final = 50_257
DOCUMENT: Final = 1000
SHARDS: Final = 1000
LEAST_IN_BATCHES: Final = 15_000.0
LEAST_MAPPED: Final = 0.7
PEER: Final = Environment("tokens")
PACKAGES: Final = ("tensorstore", "numpy")

Tokens = npt.NDArray[np.uint16]


def draw_tokens(count: int) -> Tokens:
    """Return `count` ids whose frequencies fall like 1 / rank."""
    ranks = np.exp(np.random.default_rng(0).random(count, np.float32) * np.log(VOCABULARY))
    return np.minimum(ranks, VOCABULARY - 1).astype(np.uint16)


class Drawn:
    """Documents of 1,000 tokens of an array."""

    def __init__(self, tokens: Tokens) -> None:
        self.tokens = tokens

    def gather(self, documents: npt.NDArray[np.int64]) -> Tokens:
        """Return the tokens of `documents` one after the other."""
        starts = documents * DOCUMENT
        return np.concatenate([self.tokens[start : start + DOCUMENT] for start in starts.tolist()])

    def masks(self, documents: npt.NDArray[np.int64]) -> None:
        """Return None: all tokens are targets."""


def made_cache(folder: Path, tokens: Tokens, cut: Layout = LAYOUT) -> tuple[TokenCache, Tokens]:
    """Write a cache of `tokens`, documents of 1,000 each, and return it with its tokens in their order."""
    count = len(tokens) // DOCUMENT
    digests = np.random.default_rng(1).integers(0, 256, (count, 16), np.uint8)
    zeros, numbers = np.zeros(count, np.int64), np.arange(count, dtype=np.int64)
    documents = Documents(zeros, numbers, zeros + DOCUMENT, digests, digests, np.zeros((count, 2), np.uint64))
    like = Description(
        name="drawn", key="0" * 64, dataset={}, tokenizer="0" * 64, bos_text=None, eos_text=None, bos=None, eos=None,
        forbidden=(), vocabulary=VOCABULARY, library="", canary_text="", canary=(), dtype="uint16", tokens=0,
        documents=0, content="", blocks={}, arrays={}, files={}, statistics={},
    )  # fmt: skip
    cache = write_cache(Store(folder), like, documents, [Drawn(tokens)], cut)
    return cache, Drawn(tokens).gather(documents.ordered().place)


def best(count: int, work: Callable[[], object]) -> float:
    """Return the best rate of three runs of `work`, which reads `count` windows, per second of CPU of all threads."""
    seconds = []
    for _ in range(3):
        began = time.process_time()
        work()
        seconds.append(time.process_time() - began)
    return count / min(seconds)


def sums(cache: TokenCache, starts: npt.NDArray[np.int64]) -> int:
    """Return the sum of windows read one after the other."""
    return sum(int(cache.read(start, start + LENGTH).sum()) for start in starts.tolist())


def measure(
    cache: TokenCache, mapped: TokenCache, tokens: Tokens, raw: Path, count: int
) -> tuple[dict[str, float], int]:
    """Return the rates, and how many windows differ from numpy's."""
    starts = np.random.default_rng(2).integers(0, len(tokens) - LENGTH, count)
    flat = np.memmap(raw, np.uint16, "r")
    batches = [starts[i : i + BATCH] for i in range(0, count, BATCH)]
    rates = {
        "alone": best(count, lambda: sums(cache, starts)),
        "in batches of 32": best(count, lambda: [cache.read_windows(batch, LENGTH).sum() for batch in batches]),
        "mapped, alone": best(count, lambda: sums(mapped, starts)),
        "mapped, in batches of 32": best(count, lambda: [mapped.read_windows(b, LENGTH).sum() for b in batches]),
        "numpy memmap": best(count, lambda: [flat[start : start + LENGTH].sum() for start in starts.tolist()]),
        "borders of a window": best(count, lambda: [cache.borders(s, s + LENGTH) for s in starts.tolist()]),
    }
    wrong = 0
    for batch in batches:
        for found in (cache.read_windows(batch, LENGTH), mapped.read_windows(batch, LENGTH)):
            for start, window in zip(batch.tolist(), found, strict=True):
                wrong += not np.array_equal(window, tokens[start : start + LENGTH])
    return rates, wrong


NUMPY: Final = "numpy memmap"
PEERS: Final = {
    "Megatron": """
from megatron.core.datasets.indexed_dataset import IndexedDataset
data = IndexedDataset(folder + "/megatron/drawn")
read = lambda start: np.concatenate([data[d] for d in range(start // 1000, start // 1000 + 5)])[start % 1000 :][:4096]
""",
    "datatrove": """
from datatrove.utils.dataset import DatatroveFileDataset
data = DatatroveFileDataset(folder + "/datatrove/drawn.ds", 4095, 2)
read = lambda start: data[start // 4096]["input_ids"].numpy()
""",
    "litdata": """
from litdata import StreamingDataset
from litdata.streaming.item_loader import TokensLoader
data = StreamingDataset(folder + "/litdata", item_loader=TokensLoader(block_size=4096))
read = lambda start: data[start // 4096 % len(data)].numpy()
""",
}
"""How each reads 4,096 tokens: Megatron documents, the others the block that a place lies in."""


def peers(cache: TokenCache, folder: Path, count: int) -> dict[str, float]:
    """Return the rates of the readers that are installed in .venv-peer-tokens."""
    PEER.make()
    found = {}
    for form, (name, code) in zip(("megatron", "datatrove", "litdata"), PEERS.items(), strict=True):
        export_cache(cache, folder / form, form)
        program = f"""
import sys, time, warnings; warnings.simplefilter("ignore")
import numpy as np
folder, tokens, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
{code}
starts = np.random.default_rng(2).integers(0, tokens - 8192, count).tolist()
times = []
for _ in range(3):
    began = time.process_time(); total = sum(int(read(start).sum()) for start in starts)
    times.append(time.process_time() - began)
print("RATE", count / min(times))
"""
        run = subprocess.run(
            [PEER.interpreter, "-c", program, folder, str(cache.tokens), str(count)], capture_output=True, text=True
        )
        if "RATE" in run.stdout:
            found[name] = float(run.stdout.rpartition("RATE")[2])
        else:
            print(f"{name}: {run.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
    return found


FIRST_BATCH: Final = """
import sys, time
import numpy as np
from curate.caches import TokenCache
began = time.perf_counter()
cache = TokenCache.open(sys.argv[1])
starts = np.random.default_rng(0).integers(0, cache.tokens - 4096, 32)
cache.read_windows(starts, 4096)
print(time.perf_counter() - began)
"""


def first_batch(folder: Path) -> tuple[int, float]:
    """Return objects and seconds to a first batch of a cache of 1,000 shards whose files the kernel has dropped."""
    tokens = draw_tokens(SHARDS * 2 * LAYOUT.inner_tokens // DOCUMENT * DOCUMENT)
    cut = replace(LAYOUT, shard_tokens=2 * LAYOUT.inner_tokens, block_tokens=2 * LAYOUT.inner_tokens)
    cache, _ = made_cache(folder, tokens, cut)
    files = [path for path in folder.rglob("*") if path.is_file()]
    for path in files:
        with path.open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    run = subprocess.run([sys.executable, "-c", FIRST_BATCH, folder], capture_output=True, text=True, check=True)
    return cache.description.array("tokens").shards, float(run.stdout)


def layouts(tokens: Tokens, folder: Path) -> None:
    """Print size and rates of zstd levels and inner chunks, for windows of several lengths in batches of 32."""
    print("inner zstd times smaller  windows/s of 512, 2,048, 4,096, 8,192")
    for inner in (4096, 8192, 16384, 32768):
        for level in (1, 3, 9):
            with patch.object(layout, "ZSTD_LEVEL", level):
                cache, _ = made_cache(folder / f"{inner}-{level}", tokens, replace(LAYOUT, inner_tokens=inner))
            stored = sum(path.stat().st_size for path in (folder / f"{inner}-{level}" / "tokens").rglob("*"))
            rates = []
            for length in (512, 2048, 4096, 8192):
                starts = np.random.default_rng(2).integers(0, cache.tokens - length, 1600)
                batches = [starts[i : i + BATCH] for i in range(0, len(starts), BATCH)]
                rates.append(best(1600, lambda b=batches, n=length, c=cache: [c.read_windows(x, n) for x in b]))
            print(f"{inner:5} {level} {tokens.nbytes / stored:.3f}", *(f"{rate:9,.0f}" for rate in rates))


def main(arguments: list[str] | None = None) -> int:
    """Print a table, the checks and one line of JSON; return 1 if a check failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--size", choices=sorted(TOKENS), default="small", help="how many tokens (default: %(default)s)"
    )
    parser.add_argument("--peers", action="store_true", help="readers of others, too")
    parser.add_argument("--layouts", action="store_true", help="only compare layouts")
    options = parser.parse_args(arguments)
    drawn = draw_tokens(TOKENS[options.size])
    with work_folder() as folder:
        if options.layouts:
            layouts(drawn, folder)
            return 0
        began = time.perf_counter()
        cache, tokens = made_cache(folder / "cache", drawn)
        written = tokens.nbytes / 1e6 / (time.perf_counter() - began)
        mapped, _ = made_cache(folder / "mapped", drawn, MAPPED)
        stored = sum(path.stat().st_size for path in (folder / "cache" / "tokens").rglob("*") if path.is_file())
        tokens.tofile(folder / "raw")
        rates, wrong = measure(cache, mapped, tokens, folder / "raw", WINDOWS[options.size])
        others = peers(cache, folder, WINDOWS[options.size]) if options.peers else {}
    place = Path(tempfile.mkdtemp(prefix="curate-windows-"))  # on a disk
    try:
        shards, first = first_batch(place)
    finally:
        shutil.rmtree(place)
    print(f"{len(tokens):,} tokens, {tokens.nbytes / stored:.2f} times smaller stored, written at {written:.0f} MB/s")
    print(f"{f'opening and a first batch, {shards:,} shards':45} {first * 1e3:12.1f} ms")
    for name, rate in {**rates, **others}.items():
        print(f"{name:45} {rate:12,.0f} windows/s")
    rate = rates["in batches of 32"]
    share = rates["mapped, alone"] / rates[NUMPY]
    checks: dict[str, list[Any]] = {
        "windows that differ from numpy": [wrong, "= 0", wrong == 0],
        "windows/s of CPU in batches of 32": [round(rate), f"≥ {LEAST_IN_BATCHES:.0f}", rate >= LEAST_IN_BATCHES],
        "mapped / numpy memmap": [round(share, 2), f"≥ {LEAST_MAPPED}", share >= LEAST_MAPPED],
        "seconds to a first batch of 1,000 shards": [round(first, 3), "≤ 1", first <= 1],
    }
    for check, (value, bound, holds) in checks.items():
        print(f"{check:45} {value:12} {bound:8} {'holds' if holds else 'FAILS'}")
    report = {
        "name": "windows of a mapped cache, one by one",
        "unit": "windows per CPU second",
        "ours": round(rates["mapped, alone"]),
        "peers": (beside := {name: round(rate) for name, rate in {NUMPY: rates[NUMPY], **others}.items()}),
        "ratio": round(rates["mapped, alone"] / max(beside.values()), 3),
        "rows": [
            {"what": f"ours, {name}", "ours": round(rate), "peers": {}}
            for name, rate in rates.items()
            if name not in ("mapped, alone", NUMPY)
        ],
        "checks": checks,
        "versions": {"python": platform.python_version(), **{package: version(package) for package in PACKAGES}},
    }
    print(json.dumps(report, ensure_ascii=False))
    return int(not all(holds for _, _, holds in checks.values()))


if __name__ == "__main__":
    sys.exit(main())
