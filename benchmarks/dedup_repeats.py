"""What it costs to find what texts repeat beside whole near duplicates: equal texts, lines, paragraphs, spans.

The corpus is the speed corpus of `benchmarks.dedup_corpora`. Each operation is a run of its own over documents that are
there already: it reads, regroups, cuts, writes and commits.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

import pyarrow as pa

from benchmarks.dedup_corpora import write_speed_corpus
from benchmarks.dedup_quality import Check
from benchmarks.dedup_runs import Spec, measure

BYTES: Final = {"small": 3_000_000, "full": 50_000_000}
OPERATIONS: Final = ("equal_texts", "lines", "paragraphs", "spans")


def repeats(work: Path, size: str, table: pa.Table) -> tuple[dict[str, Check], dict[str, float]]:
    """Measure each operation on the speed corpus of the passages in `table`; return what must hold, and MB/s."""
    root, rates, checks = work / "repeats", dict[str, float](), dict[str, Check]()
    (root / "in").mkdir(parents=True)
    _, total = write_speed_corpus(root / "in" / "speed.parquet", table, BYTES[size])
    measure(Spec("documents", root / "in", root / "store"))
    print(f"{'':12} {'MB/CPU-s':>8} {'documents':>10} {'left':>8} {'characters left':>16} {'task MB':>8}")
    for name in OPERATIONS:
        made = measure(Spec(name, root / "in", root / "store"))
        rates[name], left = total / 1e6 / made.cpu, made.left / made.characters
        print(
            f"{name:12} {rates[name]:8.1f} {made.documents:10,} {made.kept:8,} {left:16.3f} {made.task_mb:8,}",
            flush=True,
        )
        less = made.left < made.characters or made.kept < made.documents
        checks[f"{name}: share of characters left"] = [
            round(left, 3),
            "0 < … < 1, or documents gone",
            left > 0 and less,
        ]
    shutil.rmtree(root)
    return checks, rates
