"""Deduplication's arithmetic on one core: raw text to band keys, and the steps around it, beside other tools.

Run `python -m benchmarks.minhash [--size small|full] [--peers]`. It reads ../shared/data/corpora/multidomain.parquet
where it is present (5,689 documents, 70.6 MB: books, LaTeX, code, twelve languages), else text made here. Rates are
the best of several runs, in MB (10^6 bytes) of UTF-8 per CPU second or as the table says. A shared machine halves them
at times, so the check of speed compares with a loop measured in turn with ours: FNV-1a, one multiplication per byte.
Quality is measured on pairs of sets of known similarity and on the licence texts of ../shared/data/duplicates/. The
last line is JSON; the exit status is 1 when a check fails.

Peers do the same from the same Arrow column: split into lower-case words, form 5-grams, 120 MinHash values per text.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import re
import sys
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numba import njit

from transforms.components import components
from transforms.duplicates import jaccard_pairs, leading_bits, split_buckets, survivors, text_digests
from transforms.minhash import MinHash, Sets, band_keys, shingle_sets, signatures, split_keys
from transforms.segmentation import find_words, text_buffers
from transforms.similarity import edges
from transforms.word_hashes import hash_words

CORPUS: Final = Path(__file__).parents[2] / "shared" / "data" / "corpora" / "multidomain.parquet"
BYTES: Final = {"small": 8_000_000, "full": 80_000_000}
PEER_BYTES: Final = 4_000_000
LICENCES: Final = CORPUS.parents[1] / "duplicates" / "spdx_docs.parquet"
LEAST_RATIO: Final = 0.2
"""Of `band_keys` to FNV-1a. Both bound by one core: 285 and 800 MB/s on an idle machine of 2025."""
LEAST_RECALL: Final = Fraction(99, 100)
"""Of pairs at or above the threshold; 20 × 6 finds a pair at the threshold itself with probability .9977."""
PACKAGES: Final = ("numpy", "numba", "pyarrow", "blake3", "datasketch")


def read_corpus(size: int) -> tuple[str, pa.LargeStringArray]:
    """Return where the text is from and at most `size` bytes of it, spread over the corpus."""
    if CORPUS.exists():
        column = pq.read_table(CORPUS, columns=["text"]).column("text").cast(pa.large_string())
        texts, name = pa.concat_arrays(column.chunks), CORPUS.name
    else:
        texts, name = synthetic(size), "text made here"
    lengths = pc.binary_length(texts).to_numpy()
    mixed = np.random.default_rng(0).permutation(len(texts))
    chosen = np.sort(mixed[: int(np.searchsorted(np.cumsum(lengths[mixed]), size, side="right"))])
    return name, texts.take(pa.array(chosen))


def synthetic(size: int) -> pa.LargeStringArray:
    """Return about `size` bytes of texts of 400 words whose frequencies fall like 1 / rank."""
    draw = random.Random(0)
    words = ["".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=draw.randint(2, 9))) for _ in range(20_000)]
    weights = [1 / (rank + 1) for rank in range(len(words))]
    texts = [" ".join(draw.choices(words, weights, k=400)) for _ in range(size // 2500 + 1)]
    return pa.array(texts, pa.large_string())


def seconds(function: Callable[[], object], repeats: int = 7) -> float:
    """Return the least CPU time that `function` took, after one call that compiles what it needs."""
    function()
    times = []
    for _ in range(repeats):
        start = time.process_time()
        function()
        times.append(time.process_time() - start)
    return min(times)


@njit(cache=False)  # type: ignore[untyped-decorator]
def fnv(data: npt.NDArray[np.uint8], first: np.int64, last: np.int64) -> np.uint64:
    """Return the FNV-1a hash of data[first:last]: the plain loop that rates are compared with."""
    value = np.uint64(0xCBF29CE484222325)
    for place in range(first, last):
        value = (value ^ np.uint64(data[place])) * np.uint64(0x100000001B3)
    return value


def ratio_to_fnv(text: pa.LargeStringArray, repeats: int = 7) -> float:
    """Return the rate of `band_keys` over that of FNV-1a over the same bytes, both measured in turn."""
    data, bounds = text_buffers(text)
    times = {"ours": float("inf"), "fnv": float("inf")}
    for _ in range(repeats):
        times["ours"] = min(times["ours"], seconds(lambda: band_keys(text, MinHash()), 1))
        times["fnv"] = min(times["fnv"], seconds(lambda: fnv(data, bounds[0], bounds[-1]), 1))
    return times["fnv"] / times["ours"]


def recall_on_licences() -> tuple[int, int]:
    """Return how many pairs of different licence texts are similar, and how many of these are candidates."""
    text = pq.read_table(LICENCES, columns=["text"]).column("text").cast(pa.large_string())
    distinct = pa.array(sorted(set(text.to_pylist())), pa.large_string())
    minhash, sets = MinHash(), shingle_sets(distinct, 5)
    a, b = (index.astype(np.int64) for index in np.triu_indices(len(distinct), 1))
    similar = minhash.similar(*jaccard_pairs(sets, a, b))
    keys = band_keys(distinct, minhash)
    return int(similar.sum()), int((keys[a[similar]] == keys[b[similar]]).any(axis=1).sum())


def text_rates(text: pa.LargeStringArray) -> Iterator[tuple[str, float, str]]:
    """Yield the rates of every step that reads text."""
    size = int(pc.sum(pc.binary_length(text)).as_py()) / 1e6
    words, (data, bounds) = find_words(text), text_buffers(text)
    yield "FNV-1a, to compare with", size / seconds(lambda: fnv(data, bounds[0], bounds[-1])), "MB/s"
    yield "find_words", size / seconds(lambda: find_words(text)), "MB/s"
    yield "hash_words", size / seconds(lambda: hash_words(words)), "MB/s"
    for name, minhash in (("20 x 6", MinHash()), ("14 x 8", MinHash.fineweb()), ("26 x 11", MinHash.olmo())):
        rate = size / seconds(lambda minhash=minhash: band_keys(text, minhash))  # type: ignore[misc]
        yield f"band_keys {name}, from raw text", rate, "MB/s"
    yield "shingle_sets, from raw text", size / seconds(lambda: shingle_sets(text, 5), 2), "MB/s"
    yield "text_digests", size / seconds(lambda: text_digests(text)), "MB/s"
    short = pa.array([f"text {i}" for i in range(100_000)], pa.large_string())
    yield "text_digests, short texts", 0.1 / seconds(lambda: text_digests(short)), "M docs/s"


def pair_rates(text: pa.LargeStringArray) -> Iterator[tuple[str, float, str]]:
    """Yield the rates of the steps that compare documents."""
    keys = band_keys(text, MinHash())
    a, b = np.random.default_rng(0).permutation(1_000_000)[: 2 * 400_000].reshape(2, -1)
    yield "components, mixed", 0.4 / seconds(lambda: components(a, b), 2), "M edges/s"
    order = np.repeat(leading_bits(text_digests(text)), keys.shape[1])
    rows, buckets, splits = np.repeat(np.arange(len(text)), keys.shape[1]), keys.ravel(), split_keys(keys).ravel()
    rate = keys.size / 1e6 / seconds(lambda: split_buckets(buckets, splits, order, rows, 1000))
    yield "split_buckets", rate, "M rows/s"
    count = 200_000
    zeros, unlike = np.zeros(count, np.uint64), np.random.default_rng(0).integers(0, 1 << 63, count, np.uint64)
    rate = count / 1e6 / seconds(lambda: split_buckets(zeros, unlike, unlike, np.arange(count), 1000), 2)
    yield "split_buckets, one bucket of 200,000", rate, "M rows/s"
    for jaccard, what in ((0.82, "reached"), (0.7, "refused"), (0.5, "refused")):
        for pairs, place in ((2000, "memory"), (60, "cache")):
            sets, a, b = sets_of(jaccard, 500, pairs)
            a, b = np.tile(a, 2000 // pairs), np.tile(b, 2000 // pairs)
            spent = seconds(lambda sets=sets, a=a, b=b: edges(sets, a, b, Fraction(4, 5)))  # type: ignore[misc]
            yield f"edges, 500 shingles at {jaccard}, {what}, {place}", 1e6 * spent / len(a), "us/pair"
    chain, ones = np.arange(1_000_000), np.ones(999_999, np.int64)
    rate = 1 / seconds(lambda: survivors(chain, chain[:-1], chain[1:], ones, ones))
    yield "survivors, a chain of versions", rate, "M docs/s"


def sets_of(jaccard: float, size: int, pairs: int) -> tuple[Sets, npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return pairs of sets of `size` random shingles with the similarity `jaccard`."""
    both = round(2 * size * jaccard / (1 + jaccard))
    drawn = np.random.default_rng(0).integers(0, 1 << 64, (pairs, 2 * size - both), np.uint64)
    values = np.sort(np.stack([drawn[:, :size], drawn[:, size - both :]], axis=1), axis=2)
    offsets = np.arange(2 * pairs + 1, dtype=np.int64) * size
    first = np.arange(0, 2 * pairs, 2, dtype=np.int64)
    return Sets(offsets, values.reshape(-1)), first, first + 1


def estimates(jaccard: float) -> tuple[float, float]:
    """Return bias (in standard errors) and rms error (over theory) of estimates from 120 values for 1,000 pairs."""
    pairs, minhash, size = 1000, MinHash(ngram=1), 200
    both = round(jaccard * size)
    half = both + (size - both) // 2
    left = [" ".join(f"w{i}x{j}" for j in range(half)) for i in range(pairs)]
    right = [" ".join(f"w{i}x{j}" for j in (*range(both), *range(half, size))) for i in range(pairs)]
    columns = [signatures(pa.array(texts, pa.large_string()), minhash) for texts in (left, right)]
    errors = (columns[0] == columns[1]).mean(axis=1) - both / size
    theory = (jaccard * (1 - jaccard) / columns[0].shape[1]) ** 0.5
    return float(errors.mean() / theory * pairs**0.5), float(np.sqrt((errors**2).mean()) / theory)


def shingles_in_python(texts: list[str]) -> list[list[bytes]]:
    """Return the 5-grams of each text the plain way: a regular expression and a join."""
    found = []
    for text in texts:
        words = re.findall(r"\w+", text.lower())
        found.append([" ".join(words[i : i + 5]).encode() for i in range(max(len(words) - 4, 1))])
    return found


def peer_rates(text: pa.LargeStringArray) -> dict[str, float]:
    """Return MB/s of other tools from the same column."""
    from datasketch import MinHash as Peer

    lengths = pc.binary_length(text).to_numpy()
    some = text.slice(0, max(1, int(np.searchsorted(np.cumsum(lengths), PEER_BYTES))))
    size = int(pc.sum(pc.binary_length(some)).as_py()) / 1e6

    def peer(scheme: str) -> Callable[[], object]:
        return lambda: Peer.bulk(shingles_in_python(some.to_pylist()), num_perm=120, scheme=scheme)

    return {
        "Python splitting alone": size / seconds(lambda: shingles_in_python(some.to_pylist()), 2),
        "datasketch bulk affine32, Python splitting": size / seconds(peer("affine32"), 2),
        "datasketch bulk legacy, Python splitting": size / seconds(peer("legacy"), 2),
    }


def checks_of(text: pa.LargeStringArray) -> dict[str, list[Any]]:
    """Return what must hold: speed, estimates as the theory of MinHash says, near-duplicates found."""
    ratio = ratio_to_fnv(text)
    checks: dict[str, list[Any]] = {
        "rate of band_keys / of FNV-1a": [round(ratio, 3), f"≥ {LEAST_RATIO}", ratio >= LEAST_RATIO]
    }
    for jaccard in (0.2, 0.5, 0.8):
        bias, error = estimates(jaccard)
        checks[f"bias at {jaccard}, standard errors"] = [round(bias, 2), "≤ 4 in size", abs(bias) <= 4]
        checks[f"rms error at {jaccard} / theory"] = [round(error, 3), "≤ 1.1", error <= 1.1]
    if LICENCES.exists():
        similar, found = recall_on_licences()
        holds = similar > 0 and found >= LEAST_RECALL * similar
        checks["similar pairs of licences that are candidates"] = [found, f"≥ .99 · {similar}", holds]
    return checks


def main(arguments: list[str] | None = None) -> int:
    """Print a table, the checks and one line of JSON; return 1 if a check failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--size", choices=sorted(BYTES), default="full", help="how much text (default: %(default)s)")
    parser.add_argument("--peers", action="store_true", help="measure other tools, too")
    options = parser.parse_args(arguments)
    name, text = read_corpus(BYTES[options.size])
    print(f"{name}: {len(text):,} documents, {pc.sum(pc.binary_length(text)).as_py() / 1e6:.1f} MB, one core")
    rates = {}
    for step, rate, unit in [*text_rates(text), *pair_rates(text)]:
        rates[step] = rate
        print(f"{step:45} {rate:10.2f} {unit}")
    peers = peer_rates(text) if options.peers else {}
    for peer, rate in peers.items():
        print(f"{peer:45} {rate:10.2f} MB/s")
    ours = rates["band_keys 20 x 6, from raw text"]
    checks = checks_of(text)
    for check, (value, bound, holds) in checks.items():
        print(f"{check:51} {value:10} {bound:14} {'holds' if holds else 'FAILS'}")
    best = max((rate for peer, rate in peers.items() if peer.startswith("datasketch")), default=None)
    report = {
        "name": "minhash",
        "unit": "MB/s",
        "ours": round(ours, 1),
        "peers": {peer: round(rate, 1) for peer, rate in peers.items()},
        "ratio": None if best is None else round(ours / best, 1),
        "checks": checks,
        "versions": {"python": platform.python_version(), **{package: version(package) for package in PACKAGES}},
    }
    print(json.dumps(report, ensure_ascii=False))
    return int(not all(holds for _, _, holds in checks.values()))


if __name__ == "__main__":
    sys.exit(main())
