"""How fast MinHash deduplication is, from a Parquet file to what stays, on one core; other tools on the same file.

The corpus is the speed corpus of `benchmarks.dedup_corpora` in one zstd Parquet file: passages and web pages, again and
again with words replaced. Ours reads, signs, buckets, verifies and writes with books, ledger and digests; rates are MB
(10^6 bytes of text) per second of CPU. Beside each rate stands what was lost for it: documents that went although no
survivor resembles them at .8, and pairs at .8 that both stayed, by exact Jaccard similarity of our 5-grams.

A host's other guests move single figures by a tenth. So ours is measured again right before each other tool, both as
often in one process, and of both the fastest turn counts.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.dedup_corpora import write_speed_corpus
from benchmarks.dedup_peers import PEERS, run_peer
from benchmarks.dedup_quality import Check, Truth, fast_truth_of
from benchmarks.dedup_runs import Measured, Spec, measure, stays_of
from transforms.minhash import MinHash

BYTES: Final = {"small": 12_000_000, "full": 200_000_000}
TURNS: Final = {"small": 1, "full": 5}
LEAST: Final = 45
"""MB per second of CPU, of a corpus of 200 MB; on less, what is done once counts for too much."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: MB per second, documents kept, dropped, without a survivor, similar pairs left.

    `ours` is the rate of ours right before it, and `turns` how often both were measured.
    """

    name: str
    rate: float
    kept: int
    dropped: int
    alone: int
    left: int
    settings: str
    ours: float
    turns: int

    @property
    def ratio(self) -> float:
        """How many times as fast ours is."""
        return self.ours / self.rate

    def __str__(self) -> str:
        return (
            f"{self.name:22} {self.rate:8.2f} {self.ours:8.1f} {self.ratio:6.2f} {self.turns:5} {self.kept:9,} "
            f"{self.dropped:9,} {self.alone:12,} {self.left:11,}  {self.settings}"
        )


@dataclass(frozen=True, slots=True)
class Speed:
    """What was measured: our row first; `versions` of what other tools ran on."""

    rows: tuple[Row, ...]
    measured: Measured
    size: int
    checks: Mapping[str, Check]
    versions: Mapping[str, str]


def speed(work: Path, size: str, passages: pa.Table, peers: Sequence[str] = (), profile: Path | None = None) -> Speed:
    """Measure ours, and those of `peers`, on the speed corpus of `passages`, and print the tables."""
    corpus = work / "speed" / "in" / "speed.parquet"
    corpus.parent.mkdir(parents=True)
    _, total = write_speed_corpus(corpus, passages, BYTES[size])
    store = work / "speed" / "store"
    made = measure(Spec("unique", corpus.parent, store, profile, TURNS[size]))
    show_jobs(made, total)
    table = pq.read_table(corpus)
    truth = fast_truth_of(pa.concat_arrays(table.column("text").chunks), MinHash())
    rate = total / 1e6 / made.cpu
    ours = row_of("ours", rate, stays_of(store), truth, "20 x 6, all verified", rate, TURNS[size])
    shutil.rmtree(store)
    print(
        f"\n{'':22} {'MB/CPU-s':>8} {'ours':>8} {'ratio':>6} {'turns':>5} {'kept':>9} {'dropped':>9} "
        f"{'no survivor':>12} {'pairs left':>11}"
    )
    print(ours, flush=True)
    rows = [ours]
    versions: dict[str, str] = {}
    for peer in PEERS:
        if peer.name in peers:
            beside = total / 1e6 / measure(Spec("unique", corpus.parent, store, turns=peer.turns)).cpu
            shutil.rmtree(store)
            ran = run_peer(peer, corpus, table.column("id").to_pylist(), work / "peers")
            rate = total / 1e6 / ran.cpu
            rows.append(row_of(peer.name, rate, ran.stays, truth, ran.settings, beside, peer.turns))
            versions |= ran.versions
            shutil.rmtree(work / "peers")
            print(rows[-1], flush=True)
    return Speed(tuple(rows), made, total, checks_of(rows, truth, size), versions)


def row_of(name: str, rate: float, stays: Any, truth: Truth, settings: str, ours: float, turns: int) -> Row:
    """Return a line of the table."""
    return Row(name, rate, int(stays.sum()), *truth.judge(stays), settings, ours, turns)


def show_jobs(made: Measured, total: int) -> None:
    """Print what kinds of tasks took."""
    print(f"{made.documents:,} documents, {total / 1e6:.0f} MB; pairs: {dict(made.counts)}")
    print(f"{'task':32} {'seconds':>8} {'MB/s':>8} {'peak MB':>8}")
    for name, spent in made.jobs.items():
        print(f"{name:32} {spent.seconds:8.2f} {total / 1e6 / max(spent.seconds, 1e-3):8.0f} {spent.peak_mb:8,}")
    print(f"{'all, CPU, of the fastest turn':32} {made.cpu:8.2f} {total / 1e6 / made.cpu:8.1f} {made.peak_mb:8,}")


def checks_of(rows: Sequence[Row], truth: Truth, size: str) -> dict[str, Check]:
    """Return what must hold of quality, and of speed where the corpus is large enough."""
    ours, missed = rows[0], int((~truth.seen).sum())
    checks: dict[str, Check] = {
        "speed corpus: dropped without a survivor": [ours.alone, f"0 of {ours.dropped:,}", ours.alone == 0],
        "speed corpus: similar pairs that stay": [ours.left, f"≤ {missed} without a common band", ours.left <= missed],
    }
    if size == "full":
        fastest = max(row.ours for row in rows)
        checks["MB per CPU second, from Parquet to Parquet"] = [round(fastest, 1), f"≥ {LEAST}", fastest >= LEAST]
        least = {peer.name: peer.least_ratio for peer in PEERS if peer.least_ratio}
        for row in rows:
            if (ratio := least.get(row.name)) is not None:
                checks[f"ours / {row.name}"] = [round(row.ratio, 2), f"≥ {ratio:g}", row.ratio >= ratio]
    return checks
