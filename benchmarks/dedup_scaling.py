"""Whether deduplication costs the same per document however many there are, and what a task takes of memory.

Once, four and sixteen times as many documents, in as many files, by `benchmarks.dedup_corpora.write_worlds`: files
share no text and repeat alike, so only what grows faster than the documents would show.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa

from benchmarks.dedup_corpora import write_worlds
from benchmarks.dedup_quality import Check
from benchmarks.dedup_runs import Measured, Spec, measure

BYTES: Final = {"small": 1_500_000, "full": 48_000_000}
"""Of one file."""
TIMES: Final = (1, 4, 16)
SPREAD: Final = 0.15
GROWTH: Final = 1.25
"""Memory of a kind of task at most, over that of the smallest run with full buffers, the one of four files."""


@dataclass(frozen=True, slots=True)
class Scale:
    """So many files: documents, bytes of text, and what the run took."""

    times: int
    documents: int
    size: int
    measured: Measured

    @property
    def microseconds(self) -> float:
        """CPU time per document."""
        return self.measured.cpu / self.documents * 1e6

    def __str__(self) -> str:
        made, megabytes = self.measured, self.size / 1e6
        return (
            f"{self.times:5} {self.documents:10,} {megabytes:7.0f} {made.cpu:8.2f} {self.microseconds:12.0f} "
            f"{megabytes / made.cpu:7.1f} {made.task_mb:8,} {made.disk / self.size:6.2f}"
        )


def scaling(work: Path, size: str, table: pa.Table) -> list[Scale]:
    """Measure each size of worlds of the passages in `table`, and print the table."""
    print("times  documents      MB    CPU s  us/document    MB/s  task MB   disk")
    worlds, found = work / "worlds", []
    documents, total = write_worlds(worlds, table, BYTES[size], max(TIMES))
    for times in TIMES:
        root = work / f"scale-{times}"
        (root / "in").mkdir(parents=True)
        for path in sorted(worlds.iterdir())[:times]:
            (root / "in" / path.name).hardlink_to(path)
        made = measure(Spec("unique", root / "in", root / "store"))
        shutil.rmtree(root)
        found.append(Scale(times, documents * times, total * times, made))
        print(found[-1], flush=True)
    shutil.rmtree(worlds)
    return found


def checks_of(found: Sequence[Scale], size: str) -> dict[str, Check]:
    """Return what must hold: on little text, where what is done once counts for much, only that it costs no more."""
    costs = [scale.microseconds for scale in found]
    if size != "full":
        more = costs[-1] / costs[0] - 1
        return {"CPU per document, 16 times over once, more by": [round(more, 3), f"≤ {SPREAD:g}", more <= SPREAD]}
    middle = (max(costs) + min(costs)) / 2
    spread = (max(costs) - min(costs)) / 2 / middle
    grown = growth(found[-2].measured, found[-1].measured)
    worst = max(grown, key=grown.__getitem__)
    most = round(grown[worst], 2)
    return {
        "CPU per document over 1, 4, 16 times, ±": [round(spread, 3), f"≤ {SPREAD:g}", spread <= SPREAD],
        f"peak memory of a task, 16 times over 4 ({worst})": [most, f"≤ {GROWTH:g}", grown[worst] <= GROWTH],
    }


def growth(less: Measured, more: Measured) -> Mapping[str, float]:
    """Return for each kind of task its peak memory in the larger run over that in the smaller one."""
    return {name: spent.peak_mb / less.jobs[name].peak_mb for name, spent in more.jobs.items() if name in less.jobs}
