"""Random windows of 4,096 tokens from a token cache: alone, and in batches of 32; beside numpy's memmap of raw tokens.

Run `python -m benchmarks.windows [--size small|full]`. Tokens are drawn like words of a language (rank r as often as
1 / r), so that they compress about as real ones do (1.3 times). Every window is compared with numpy. Rates are windows
per second on this machine's cores, the best of three runs. The last line is JSON; the exit status is 1 when a check
fails.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from benchmarks.tokens import work_folder
from curate.caches import TokenCache
from curate.caches.arrays import block_digests, shard_bytes
from curate.caches.description import NAME, Description, content_of
from curate.caches.layout import ARRAYS, GROUP, LAYOUT
from curate.digests import digest_bytes
from curate.store import json_line

TOKENS: Final = {"small": 10_000_000, "full": 100_000_000}
WINDOWS: Final = {"small": 1600, "full": 9600}
LENGTH: Final = 4096
BATCH: Final = 32
VOCABULARY: Final = 50_257
DOCUMENT: Final = 1000
LEAST_IN_BATCHES: Final = 5000.0
PACKAGES: Final = ("tensorstore", "numpy")

Tokens = npt.NDArray[np.uint16]


def draw_tokens(count: int) -> Tokens:
    """Return `count` ids whose frequencies fall like 1 / rank."""
    ranks = np.exp(np.random.default_rng(0).random(count, np.float32) * np.log(VOCABULARY))
    return np.minimum(ranks, VOCABULARY - 1).astype(np.uint16)


def write_cache(folder: Path, tokens: Tokens) -> TokenCache:
    """Write a cache of `tokens`, documents of 1,000 each, and open it."""
    offsets = np.append(np.arange(0, len(tokens), DOCUMENT), len(tokens)).astype(np.uint64)
    documents = len(offsets) - 1
    digests = np.random.default_rng(1).integers(0, 256, (documents, 16), np.uint8)
    origin = np.zeros((documents, 2), np.uint64)
    values = dict(zip(ARRAYS, (tokens, offsets, digests, origin, digests), strict=True))
    files = {"zarr.json": _write(folder / "zarr.json", json_line(GROUP))}
    arrays = {}
    for name, rows in values.items():
        spec = LAYOUT.array(name, "uint16", len(tokens), documents)
        arrays[name] = {"shard": spec.shard, "inner": spec.inner}
        files[f"{name}/zarr.json"] = _write(folder / name / "zarr.json", json_line(spec.metadata()))
        for shard in range(spec.shards):
            first, stop = spec.rows_of(shard)
            content = shard_bytes(spec, shard, rows[first:stop])
            files[f"{name}/{spec.file(shard)}"] = _write(folder / name / spec.file(shard), content)
    blocks = {name: block_digests(values[name], LAYOUT.block(name)) for name in ("tokens", "offsets")}
    description = Description(
        name="drawn", key="0" * 64, dataset={}, tokenizer="0" * 64, bos_text=None, eos_text=None, bos=None, eos=None,
        forbidden=(), vocabulary=VOCABULARY, library="", canary_text="", canary=(), dtype="uint16", tokens=len(tokens),
        documents=documents, content=content_of("uint16", len(tokens), documents, blocks),
        blocks={name: LAYOUT.block(name) for name in blocks}, arrays=arrays, files=files, statistics={},
    )  # fmt: skip
    _write(folder / NAME, description.to_bytes())
    return TokenCache.open(folder)


def _write(path: Path, content: bytes) -> dict[str, Any]:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return {"bytes": len(content), "digest": digest_bytes(content)}


def best(count: int, work: Callable[[], object]) -> float:
    """Return the best rate of three runs of `work`, which reads `count` windows."""
    seconds = []
    for _ in range(3):
        began = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - began)
    return count / min(seconds)


def measure(cache: TokenCache, tokens: Tokens, raw: Path, count: int) -> tuple[dict[str, float], int]:
    """Return the rates, and how many windows differ from numpy's."""
    starts = np.random.default_rng(2).integers(0, len(tokens) - LENGTH, count)
    mapped = np.memmap(raw, np.uint16, "r")
    batches = [starts[i : i + BATCH] for i in range(0, count, BATCH)]
    alone = starts[: count // 4]
    rates = {
        "alone": best(len(alone), lambda: [cache.read(start, start + LENGTH) for start in alone.tolist()]),
        "in batches of 32": best(count, lambda: [cache.read_windows(batch, LENGTH) for batch in batches]),
        "numpy memmap, uncompressed": best(
            count, lambda: [mapped[start : start + LENGTH].sum() for start in starts.tolist()]
        ),
        "borders of a window": best(count, lambda: [cache.borders(s, s + LENGTH) for s in starts.tolist()]),
    }
    wrong = 0
    for batch in batches:
        for start, window in zip(batch.tolist(), cache.read_windows(batch, LENGTH), strict=True):
            wrong += not np.array_equal(window, tokens[start : start + LENGTH])
    wrong += sum(not np.array_equal(cache.read(s, s + LENGTH), tokens[s : s + LENGTH]) for s in alone.tolist())
    return rates, wrong


def main(arguments: list[str] | None = None) -> int:
    """Print a table, the checks and one line of JSON; return 1 if a check failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--size", choices=sorted(TOKENS), default="full", help="how many tokens (default: %(default)s)")
    options = parser.parse_args(arguments)
    tokens = draw_tokens(TOKENS[options.size])
    with work_folder() as folder:
        began = time.perf_counter()
        write_cache(folder / "cache", tokens)
        written = tokens.nbytes / 1e6 / (time.perf_counter() - began)
        stored = sum(path.stat().st_size for path in (folder / "cache" / "tokens").rglob("*") if path.is_file())
        tokens.tofile(folder / "raw")
        began = time.perf_counter()
        cache = TokenCache.open(folder / "cache")
        cache.read(len(tokens) // 2, len(tokens) // 2 + LENGTH)
        first = time.perf_counter() - began
        rates, wrong = measure(cache, tokens, folder / "raw", WINDOWS[options.size])
    print(f"{len(tokens):,} tokens, {tokens.nbytes / stored:.2f} times smaller stored, written at {written:.0f} MB/s")
    print(f"{'opening and a first window':45} {first * 1e3:12.1f} ms")
    for name, rate in rates.items():
        print(f"{name:45} {rate:12,.0f} windows/s")
    rate = rates["in batches of 32"]
    checks: dict[str, list[Any]] = {
        "windows that differ from numpy": [wrong, "= 0", wrong == 0],
        "windows/s in batches": [round(rate), f"≥ {LEAST_IN_BATCHES:.0f}", rate >= LEAST_IN_BATCHES],
        "seconds to a first window": [round(first, 3), "≤ 1", first <= 1],
    }
    for check, (value, bound, holds) in checks.items():
        print(f"{check:45} {value:12} {bound:8} {'holds' if holds else 'FAILS'}")
    report = {
        "name": "windows",
        "unit": "windows/s",
        "ours": round(rate),
        "peers": {name: round(value) for name, value in rates.items() if name != "in batches of 32"},
        "ratio": round(rate / rates["numpy memmap, uncompressed"], 3),
        "checks": checks,
        "versions": {"python": platform.python_version(), **{package: version(package) for package in PACKAGES}},
    }
    print(json.dumps(report, ensure_ascii=False))
    return int(not all(holds for _, _, holds in checks.values()))


if __name__ == "__main__":
    sys.exit(main())
