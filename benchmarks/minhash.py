"""MinHash's arithmetic on one core: signatures from Parquet, the steps around them, and whether the hash family is one.

    python -m benchmarks.minhash [--size small|full] [--peers]

Rates of kernels are over ../shared/data/corpora/multidomain.parquet where it is present (5,689 documents, 70.6 MB:
books, LaTeX, code, twelve languages; small: 8 MB of it), else over text made here; signatures from Parquet are over the
speed corpus of `benchmarks.dedup_corpora`, 200 MB of passages and web pages (small: 20). Rates are the best of several
runs, in MB (10^6 bytes) of UTF-8 per CPU second or as the table says. A shared machine halves them at times, so one
check compares with a loop measured in turn with ours: FNV-1a, one multiplication per byte. The family's bias, variance,
independence and curve are held against theory (`benchmarks.minhash_family`), its recall also on the licence texts of
../shared/data/duplicates. The last line is JSON; the exit status is 1 when a check fails.

`--peers`: rensa, datasketch, text-dedup and datatrove, each in an environment of its own, sign the same Parquet file.
What deduplication makes of signatures, and how fast, is `python -m benchmarks.dedup`.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import sys
import tempfile
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

from benchmarks import minhash_family
from benchmarks.dedup_corpora import PAGES, passages, size_of, write_speed_corpus
from benchmarks.dedup_peers import DATASKETCH, DATATROVE, RENSA, TEXT_DEDUP, Peer, run_peer
from transforms.components import components
from transforms.duplicates import jaccard_pairs, leading_bits, split_buckets, survivors, text_digests
from transforms.minhash import MinHash, Sets, band_keys, shingle_sets, split_keys
from transforms.segmentation import find_words, text_buffers
from transforms.similarity import edges
from transforms.word_hashes import hash_words

CORPUS: Final = Path(__file__).parents[2] / "shared" / "data" / "corpora" / "multidomain.parquet"
BYTES: Final = {"small": 8_000_000, "full": 80_000_000}
SIGNED_BYTES: Final = {"small": 20_000_000, "full": 200_000_000}
PEER_BYTES: Final = {"small": 2_000_000, "full": 20_000_000}
PEERS: Final = (
    Peer("rensa", RENSA, "signatures", "rensa"),
    Peer("datasketch", DATASKETCH, "signatures", "datasketch"),
    Peer("text-dedup", TEXT_DEDUP, "signatures", "text-dedup"),
    Peer("datatrove", DATATROVE, "signatures", "datatrove"),
)
LICENCES: Final = CORPUS.parents[1] / "duplicates" / "spdx_docs.parquet"
LEAST_RATIO: Final = 0.2
"""Of `band_keys` to FNV-1a. Both bound by one core: 285 and 800 MB/s on an idle machine of 2025."""
LEAST_SIGNED: Final = 150
"""MB per CPU second, from a zstd Parquet file to signatures."""
LEAST_RECALL: Final = Fraction(99, 100)
"""Of pairs at or above the threshold; 20 × 6 finds a pair at the threshold itself with probability .9977."""
PACKAGES: Final = ("numpy", "numba", "pyarrow", "blake3")


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


def write_texts(path: Path, size: int) -> int:
    """Write texts of about `size` bytes as a zstd Parquet file; return the bytes of all."""
    if all(page.exists() for page in (CORPUS, *PAGES)):
        return write_speed_corpus(path, passages(), size)[1]
    text = synthetic(size)
    names = pa.array(list(map(str, range(len(text)))), pa.large_string())
    pq.write_table(pa.table({"id": names, "text": text}), path, compression="zstd", row_group_size=2048)
    return size_of(text)


def sign_file(path: Path) -> None:
    """Read a Parquet file and sign every text of it."""
    for batch in pq.ParquetFile(path).iter_batches(2048, columns=["text"]):
        band_keys(batch.column("text"), MinHash())


def peer_rates(folder: Path, size: str) -> tuple[dict[str, float], dict[str, str]]:
    """Return MB/s of signatures from one Parquet file, ours first, and the versions of other tools."""
    path, versions = folder / "peers.parquet", dict[str, str]()
    total = write_texts(path, PEER_BYTES[size]) / 1e6
    rates = {"ours, same file": total / seconds(lambda: sign_file(path), 3)}
    for peer in PEERS:
        ran = run_peer(peer, path, (), folder / "peers")
        rates[peer.name] = total / ran.cpu
        versions |= ran.versions
    return rates, versions


def checks_of(text: pa.LargeStringArray, signed: float, size: str) -> dict[str, list[Any]]:
    """Return what must hold: speed, a family as the theory of MinHash says, near-duplicates found."""
    ratio = ratio_to_fnv(text)
    checks: dict[str, list[Any]] = {
        "MB per CPU second, Parquet to signatures": [round(signed, 1), f"≥ {LEAST_SIGNED}", signed >= LEAST_SIGNED],
        "rate of band_keys / of FNV-1a": [round(ratio, 3), f"≥ {LEAST_RATIO}", ratio >= LEAST_RATIO],
        **minhash_family.checks_of(size),
    }
    if LICENCES.exists():
        similar, found = recall_on_licences()
        holds = similar > 0 and found >= LEAST_RECALL * similar
        checks["similar pairs of licences that are candidates"] = [found, f"≥ .99 · {similar}", holds]
    return checks


def measured_rates(text: pa.LargeStringArray, folder: Path, size: str) -> dict[str, float]:
    """Return rates by step, and print them."""
    path = folder / "signed.parquet"
    total = write_texts(path, SIGNED_BYTES[size]) / 1e6
    signed = ("Parquet to signatures", total / seconds(lambda: sign_file(path), 3), "MB/s")
    rates = {}
    for step, rate, unit in [signed, *text_rates(text), *pair_rates(text)]:
        rates[step] = rate
        print(f"{step:45} {rate:10.2f} {unit}", flush=True)
    return rates


def main(arguments: list[str] | None = None) -> int:
    """Print a table, the checks and one line of JSON; return 1 if a check failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--size", choices=sorted(BYTES), default="small", help="how much text (default: %(default)s)")
    parser.add_argument("--peers", action="store_true", help="other tools too, each in an environment made for it")
    options = parser.parse_args(arguments)
    name, text = read_corpus(BYTES[options.size])
    print(f"{name}: {len(text):,} documents, {size_of(text) / 1e6:.1f} MB, one core")
    with tempfile.TemporaryDirectory() as folder:
        rates = measured_rates(text, Path(folder), options.size)
        peers, versions = peer_rates(Path(folder), options.size) if options.peers else ({}, {})
    for peer, rate in peers.items():
        print(f"{'signatures: ' + peer:45} {rate:10.2f} MB/s")
    ours = rates["Parquet to signatures"]
    checks = checks_of(text, ours, options.size)
    for check, (value, bound, holds) in checks.items():
        print(f"{check:57} {value:10} {bound:14} {'holds' if holds else 'FAILS'}")
    here = peers.pop("ours, same file", None)
    report = {
        "name": f"minhash, {options.size}",
        "unit": "MB per CPU second, from Parquet to signatures",
        "ours": round(ours, 1),
        "peers": {peer: round(rate, 2) for peer, rate in peers.items()},
        "ratio": round(here / max(peers.values()), 1) if here else None,
        "steps": {step: round(rate, 2) for step, rate in rates.items()},
        "checks": checks,
        "versions": {"python": platform.python_version(), **{package: version(package) for package in PACKAGES}}
        | versions,
    }
    print(json.dumps(report, ensure_ascii=False))
    return int(not all(holds for _, _, holds in checks.values()))


if __name__ == "__main__":
    sys.exit(main())
