"""Deduplication's arithmetic from Parquet to Parquet on one core, and whether its verdicts are right.

Run `python -m benchmarks.dedup_passages [--size small|full] [--folder DIR]`. It needs ../shared. Two corpora, made by
`benchmarks.dedup_corpora`:

Quality: 22,647 passages of 200 to 2,000 words of multidomain.parquet and 10,728 edited copies (small: a tenth).
Verdicts are compared with brute force over all pairs of distinct texts whose sizes allow the threshold; pairs that
never became candidates are listed. For pairs of a copy and its original the share of candidates is set beside the
curve. Speed: 200 MB of passages and visible text of web pages with words replaced per copy (small: 20 MB), read from
zstd Parquet and written to it, in one process; rates are MB (10^6 bytes of text) per second of CPU.

The last line is JSON; the exit status is 1 when a check fails, of quality or of speed.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.dedup_corpora import passages, texts_of, write_speed_corpus
from transforms.components import components
from transforms.duplicates import (
    STAYS,
    Candidates,
    EqualTexts,
    split_buckets,
    survivors,
    text_digests,
)
from transforms.minhash import MinHash, Sets, band_keys, sets_of, split_keys
from transforms.similarity import Edges, edges

Longs = npt.NDArray[np.int64]

PASSAGES: Final = {"small": 2_000, "full": 1 << 40}
BYTES: Final = {"small": 20_000_000, "full": 200_000_000}
LEAST_SIGN: Final = 150
LEAST_ALL: Final = 45
"""MB/s of CPU: signatures from Parquet, and everything."""
PACKAGES: Final = ("numpy", "numba", "pyarrow", "blake3")


@dataclass(slots=True)
class Clock:
    """CPU seconds by step; a step within a step counts for the inner one alone."""

    seconds: dict[str, float] = field(default_factory=dict)
    running: list[str] = field(default_factory=list)
    since: float = 0.0

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Add the CPU time of the block to step `name`."""
        self._pass()
        self.running.append(name)
        yield
        self._pass()
        self.running.pop()

    def _pass(self) -> None:
        now = time.process_time()
        if self.running:
            self.seconds[self.running[-1]] = self.seconds.get(self.running[-1], 0.0) + now - self.since
        self.since = now


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of the rows of a corpus: `exact` and `near` are keepers by row, `pairs` what was compared."""

    exact: Longs
    near: Longs
    pairs: Candidates
    found: Edges

    @property
    def stays(self) -> npt.NDArray[np.bool_]:
        """Which rows stay."""
        return np.asarray((self.exact == STAYS) & (self.near == STAYS))


def decide(batches: Iterator[pa.LargeStringArray], again: Any, minhash: MinHash, clock: Clock) -> Verdict:
    """Return the verdict on all rows, whose keep order is their order; `again` yields the texts of given rows."""
    signed, digests = [], []
    for text in batches:
        with clock.step("sign"):
            signed.append(band_keys(text, minhash))
        with clock.step("digest"):
            digests.append(text_digests(text))
    keys = np.concatenate(signed)
    with clock.step("equal texts"):
        exact = equal_texts(pa.concat_arrays(digests))
        left = np.flatnonzero(exact == STAYS)
    with clock.step("bucket"):
        keys, rows = keys[left], np.repeat(left, minhash.bands)
        pairs = split_buckets(keys.ravel(), split_keys(keys).ravel(), rows.astype(np.uint64), rows, minhash.cap)
    with clock.step("shingles"):
        candidates = np.zeros(len(exact), np.bool_)
        candidates[pairs.a] = candidates[pairs.b] = True
        names = np.flatnonzero(candidates)
        sets = joined([sets_of(text, minhash) for text in again(names)])
    with clock.step("verify"):
        a, b = np.searchsorted(names, pairs.a), np.searchsorted(names, pairs.b)
        found = edges(sets, a, b, minhash.ratio, minhash.measure)
    near = np.full(len(exact), STAYS, np.int64)
    with clock.step("decide"):
        for nodes, x, y, pair in by_component(pairs.a[found.pair], pairs.b[found.pair]):
            verdict = survivors(nodes, x, y, found.shared[pair], found.whole[pair])
            goes = verdict.keeper != STAYS
            near[nodes[goes]] = nodes[verdict.keeper[goes]]
    return Verdict(exact, near, pairs, found)


def equal_texts(digests: pa.FixedSizeBinaryArray) -> Longs:
    """Return for each row the first row with its digest, or `STAYS`."""
    rows = pa.table({"digest": digests, "row": np.arange(len(digests))})
    order = np.asarray(pc.sort_indices(rows, sort_keys=[("digest", "ascending"), ("row", "ascending")])).astype(
        np.int64
    )
    keys = pa.array([row.to_bytes(16, "big") for row in order.tolist()], pa.large_binary())
    found = EqualTexts().find(
        digests.take(pa.array(order)), pa.array([b""] * len(order), pa.large_binary()), keys, order
    )
    keeper = np.full(len(digests), STAYS, np.int64)
    keeper[order[found.rows]] = found.keepers
    return keeper


def joined(parts: list[Sets]) -> Sets:
    """Return one `Sets` of several."""
    sizes = np.concatenate([np.zeros(1, np.int64), *(np.diff(part.offsets) for part in parts)])
    return Sets(np.cumsum(sizes), np.concatenate([np.zeros(0, np.uint64), *(part.values for part in parts)]))


def by_component(a: Longs, b: Longs, tasks: int = 16) -> Iterator[tuple[Longs, Longs, Longs, Longs]]:
    """Yield groups of whole components: their nodes, the ends of their edges in these, and which edges they are."""
    roots = components(a, b).of(a)
    for task in range(tasks):
        mine = np.flatnonzero(roots % tasks == task)
        nodes, local = np.unique(np.concatenate([a[mine], b[mine]]), return_inverse=True)
        local = local.reshape(-1)
        yield nodes, local[: len(mine)], local[len(mine) :], mine


# --- quality ---------------------------------------------------------------------------------------------------------


def all_similar(sets: Sets, threshold: Any) -> tuple[Longs, Longs, Edges, int]:
    """Return all pairs at or above `threshold`, by comparing each set with all of a size that allows it."""
    sizes = np.diff(sets.offsets)
    order = np.argsort(sizes, kind="stable")
    ascending = sizes[order]
    largest = ascending * threshold.denominator // threshold.numerator
    ends = np.searchsorted(ascending, largest, "right")
    found: list[tuple[Longs, Longs, Edges]] = []
    compared = 0
    for first in range(0, len(order), 256):
        rows = np.arange(first, min(first + 256, len(order)))
        counts = np.maximum(ends[rows] - rows - 1, 0)
        a = np.repeat(rows, counts)
        b = np.arange(len(a)) - np.repeat(np.cumsum(counts) - counts, counts) + a + 1
        similar = edges(sets, order[a], order[b], threshold)
        found.append((order[a[similar.pair]], order[b[similar.pair]], similar))
        compared += len(a)
    a, b = (np.concatenate([part[i] for part in found]) for i in (0, 1))
    shared, whole = (np.concatenate([getattr(part[2], name) for part in found]) for name in ("shared", "whole"))
    return np.minimum(a, b), np.maximum(a, b), Edges(np.arange(len(a)), shared, whole), compared


def codes_of(a: Longs, b: Longs) -> Longs:
    """Return a number per pair a < b."""
    return np.asarray(a << 32 | b)


def quality(size: str, minhash: MinHash) -> dict[str, list[Any]]:
    """Return what must hold of the verdicts on passages; print what was found."""
    table = passages().slice(0, PASSAGES["full"])
    if size == "small":
        of = table.column("of").to_numpy()
        few = PASSAGES["small"]
        table = table.filter(pa.array((np.where(of < 0, np.arange(len(of)), of)) < few))
    text = pa.concat_arrays(table.column("text").chunks)

    def again(rows: Longs) -> Iterator[pa.LargeStringArray]:
        yield text.take(pa.array(rows))

    verdict = decide(iter([text]), again, minhash, Clock())
    left = np.flatnonzero(verdict.exact == STAYS)
    sets = sets_of(text.take(pa.array(left)), minhash)
    start = time.process_time()
    a, b, truth, compared = all_similar(sets, minhash.ratio)
    a, b = left[a], left[b]
    print(
        f"passages: {len(text):,} texts, {len(left):,} distinct; brute force: {compared:,} pairs compared in "
        f"{time.process_time() - start:.0f} s, {len(a):,} at or above {float(minhash.ratio):g}; "
        f"{len(verdict.pairs.a):,} candidates, {len(verdict.found):,} edges"
    )
    seen = np.isin(codes_of(a, b), codes_of(verdict.pairs.a, verdict.pairs.b))
    for x, y, shared, whole in zip(a[~seen], b[~seen], truth.shared[~seen], truth.whole[~seen], strict=True):
        print(f"  no candidate: rows {x} and {y}, {shared}/{whole} = {shared / whole:.4f}")
    curve(sets, left, table, verdict, minhash)
    return {
        **guarantees(verdict, a, b, truth, seen, minhash),
        "pairs given up": [verdict.pairs.given_up, "0", verdict.pairs.given_up == 0],
    }


def guarantees(
    verdict: Verdict, a: Longs, b: Longs, truth: Edges, seen: npt.NDArray[np.bool_], minhash: MinHash
) -> dict[str, list[Any]]:
    """Return the checks: survivors as the sequential rule over brute force says, recall as the curve says."""
    rows = len(verdict.exact)
    expected = survivors(np.arange(rows), a[seen], b[seen], truth.shared[seen], truth.whole[seen]).keeper
    other = int((expected != verdict.near).sum())
    goes = np.flatnonzero(verdict.near != STAYS)
    partner = codes_of(verdict.near[goes], goes)
    alone = int((~np.isin(partner, codes_of(a, b)) | (verdict.near[verdict.near[goes]] != STAYS)).sum())
    stays = verdict.near == STAYS
    together = int((stays[a] & stays[b] & seen).sum())
    jaccard = truth.shared / truth.whole
    near = jaccard < float(minhash.ratio) + 0.02
    checks: dict[str, list[Any]] = {
        "dropped without a survivor at the threshold": [alone, "0", alone == 0],
        "verdicts other than brute force gives": [other, "0", other == 0],
        "pairs of survivors that were compared and are similar": [together, "0", together == 0],
    }
    for name, chosen in (
        (f"recall, {near.sum()} pairs at the threshold", near),
        (f"recall, {len(a)} pairs", near | True),
    ):
        probabilities = np.array([minhash.recall(value) for value in jaccard[chosen]])
        least = probabilities.mean() - 2 * np.sqrt((probabilities * (1 - probabilities)).sum()) / len(probabilities)
        recall = float(seen[chosen].mean())
        checks[name] = [round(recall, 5), f"≥ {least:.5f}", bool(recall >= least)]
    return checks


def curve(sets: Sets, left: Longs, table: pa.Table, verdict: Verdict, minhash: MinHash) -> None:
    """Print the share of candidates among pairs of a copy and its original, by similarity, beside the curve."""
    of = table.column("of").to_numpy()
    names = {name: row for row, name in enumerate(table.column("id").to_pylist())}
    local = np.full(len(of), -1, np.int64)
    local[left] = np.arange(len(left))
    original = np.array([names.get(f"passage {row}", -1) for row in of.tolist()])
    copies = np.flatnonzero((of >= 0) & (original >= 0) & (local >= 0))
    copies = copies[local[original[copies]] >= 0]
    a, b = local[original[copies]], local[copies]
    every = edges(sets, a, b, minhash.ratio / 1000)
    jaccard = np.zeros(len(a))
    jaccard[every.pair] = every.shared / every.whole
    pair = codes_of(np.minimum(original[copies], copies), np.maximum(original[copies], copies))
    seen = np.isin(pair, codes_of(verdict.pairs.a, verdict.pairs.b))
    print("  similarity of copies   pairs  candidates  curve")
    for low in np.arange(0.3, 1.0, 0.05):
        inside = (jaccard >= low) & (jaccard < low + 0.05)
        if inside.sum() >= 10:
            theory = np.mean([minhash.recall(value) for value in jaccard[inside]])
            print(f"  {low:.2f} to {low + 0.05:.2f}       {inside.sum():8,}  {seen[inside].mean():10.4f}  {theory:.4f}")


# --- speed -----------------------------------------------------------------------------------------------------------


def batches_of(path: Path, clock: Clock) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a Parquet file; reading them counts as step "read"."""
    source = pq.ParquetFile(path).iter_batches(batch_size=2048)
    while True:
        with clock.step("read"):
            batch = next(source, None)
        if batch is None:
            return
        yield batch


def speed(folder: Path, size: str, minhash: MinHash) -> tuple[dict[str, float], dict[str, list[Any]]]:
    """Return MB/s by step, and the checks of speed."""
    path = folder / "speed.parquet"
    documents, total = write_speed_corpus(path, BYTES[size])
    band_keys(texts_of(path).slice(0, 64), minhash)
    clock = Clock()

    def again(rows: Longs) -> Iterator[pa.LargeStringArray]:
        first = 0
        for batch in batches_of(path, clock):
            mine = rows[(rows >= first) & (rows < first + batch.num_rows)] - first
            yield batch.column("text").take(pa.array(mine))
            first += batch.num_rows

    warm = Clock()
    few = texts_of(path).slice(0, 2000)
    decide(iter([few]), lambda rows: iter([few.take(pa.array(rows))]), minhash, warm)
    verdict = decide((batch.column("text") for batch in batches_of(path, clock)), again, minhash, clock)
    stays, first = verdict.stays, 0
    with pq.ParquetWriter(folder / "kept.parquet", pq.read_schema(path), compression="zstd") as writer:
        for batch in batches_of(path, clock):
            with clock.step("write"):
                writer.write_batch(batch.filter(pa.array(stays[first : first + batch.num_rows])))
            first += batch.num_rows
    rates = {name: total / 1e6 / seconds for name, seconds in clock.seconds.items() if seconds > 0}
    reading = clock.seconds["read"] / 3
    rates["signatures from Parquet"] = total / 1e6 / (reading + clock.seconds["sign"])
    rates["everything"] = total / 1e6 / sum(clock.seconds.values())
    print(
        f"speed: {documents:,} documents, {total / 1e6:.0f} MB, {len(verdict.pairs.a):,} candidates, "
        f"{len(verdict.found):,} edges, {int(stays.sum()):,} stay"
    )
    for name, rate in rates.items():
        print(f"  {name:25} {rate:10.1f} MB/s  {clock.seconds.get(name, 0):8.2f} s")
    checks: dict[str, list[Any]] = {}
    for name, least in (("signatures from Parquet", LEAST_SIGN), ("everything", LEAST_ALL)):
        checks[f"MB/s, {name}"] = [round(rates[name], 1), f"≥ {least}", rates[name] >= least]
    return rates, checks


def main(arguments: list[str] | None = None) -> int:
    """Print tables, the checks and one line of JSON; return 1 if a check failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--size", choices=sorted(BYTES), default="full", help="how much text (default: %(default)s)")
    parser.add_argument("--folder", type=Path, help="where to write the corpora (default: a temporary folder)")
    options = parser.parse_args(arguments)
    minhash = MinHash()
    checks = quality(options.size, minhash)
    with tempfile.TemporaryDirectory() as temporary:
        rates, fast = speed(options.folder or Path(temporary), options.size, minhash)
    checks |= fast
    for check, (value, bound, holds) in checks.items():
        print(f"{check:55} {value:10} {bound:12} {'holds' if holds else 'FAILS'}")
    report = {
        "name": "dedup_passages",
        "unit": "MB/s",
        "ours": round(rates["everything"], 1),
        "steps": {name: round(rate, 1) for name, rate in rates.items()},
        "checks": checks,
        "versions": {"python": platform.python_version(), **{package: version(package) for package in PACKAGES}},
    }
    print(json.dumps(report, ensure_ascii=False))
    return int(not all(holds for _, _, holds in checks.values()))


if __name__ == "__main__":
    sys.exit(main())
