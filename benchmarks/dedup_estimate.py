"""What ten billion documents on a thousand cores would take, computed from what `benchmarks.dedup` measured.

The text of the estimate in docs/deduplication.md is what `paragraph` returns for the figures of the part "scaling" that
docs/comparisons.jsonl keeps; a test holds them together. `python -m benchmarks.comparisons run dedup --size full --only
scaling` measures anew and writes both.

What is assumed, and no more: CPU time grows with the documents, as measured over sixteen times; every core does at its
full rate what one core did here; and beyond one level of partitions, and beyond the files that one task opens, rows of
exchanges are written and read once more per level, at the rates of docs/log.md. Reading from and writing to an object
store is not in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill
from typing import Any, Final

from curate.deduplication.estimate import estimate
from curate.exchange import LIMITS
from curate.recipes.graph import Deduplicate
from curate.upkeep.compaction import TARGET
from transforms.minhash import MinHash

DOCS: Final = Path(__file__).parents[1] / "docs"
MEASURED: Final = "largest scale"
"""Under which name the last line of `benchmarks.dedup` has the figures."""
PAGE: Final = DOCS / "deduplication.md"
BEGIN: Final = "<!-- benchmarks.dedup_estimate writes this -->"
END: Final = "<!-- end -->"
DOCUMENTS: Final = 10_000_000_000
CORES: Final = 1_000
MERGE_RATE: Final = 160e6
WRITE_RATE: Final = 75e6
"""Bytes of rows per second of CPU that are read merged, and written sorted, by exchanges (docs/log.md)."""
DRIVER_MS: Final = 2.4
"""By which a driver on Ray can start one task after the other, with its receipt and journal (docs/log.md)."""
ROUNDS: Final = 20
"""Of large-star and small-star, each of which reads and writes every edge in both directions, 16 bytes each."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What was measured at the largest scale.

    Attributes:
        documents, text: that were deduplicated, and their bytes.
        cpu: seconds, from Parquet files to what stays.
        least_cpu: seconds per document where it was least, `most_cpu` where most, over 1, 4, 16 times.
        task_mb: memory of the task that took most.
        disk: bytes of all files that were written.
        edges: pairs at the threshold.
        tasks: of all kinds.
    """

    documents: int
    text: int
    cpu: float
    least_cpu: float
    most_cpu: float
    task_mb: int
    disk: int
    edges: int
    tasks: int

    @classmethod
    def kept(cls, records: Sequence[Mapping[str, Any]]) -> Figures | None:
        """Return those of the last day of which `records` (of `benchmarks.comparisons`) have some, None for none."""
        mine = [it for it in records if it["benchmark"] == "dedup" and it["result"].get(MEASURED)]
        return cls(**max(mine, key=lambda it: str(it["date"]))["result"][MEASURED]) if mine else None


@dataclass(frozen=True, slots=True)
class Forecast:
    """What so many documents are and take: `minutes` of all cores at least and at most, and of these `more`.

    `more` goes into what a small run has not; `driver` is the minutes in which one driver starts all `tasks`.
    """

    text_tb: float
    shards: int
    minutes: tuple[float, float]
    more: float
    between_tb: float
    files_tb: float
    levels: int
    edges: float
    tasks: float
    driver: float


def forecast(figures: Figures, documents: int = DOCUMENTS, cores: int = CORES) -> Forecast:
    """Return what `documents` documents like the measured ones would take."""
    times = documents / figures.documents
    text = int(figures.text * times)
    shards = -(-text // TARGET)
    operation = Deduplicate((), MinHash(), None, ("source",), ())
    once = estimate(operation, figures.documents, figures.text, 1, LIMITS).disk * times
    between = estimate(operation, documents, text, shards, LIMITS).disk
    again = max(0.0, between - once) + 2 * 16 * figures.edges * times * ROUNDS
    more = again * (1 / MERGE_RATE + 1 / WRITE_RATE) / cores / 60
    low, high = (cost * documents / cores / 60 + more for cost in (figures.least_cpu, figures.most_cpu))
    return Forecast(
        text / 1e12,
        shards,
        (low, high),
        more,
        between / 1e12,
        figures.disk * times / 1e12,
        len(LIMITS.radices(LIMITS.partitions(int(once)))),
        figures.edges * times,
        figures.tasks * times,
        figures.tasks * times * DRIVER_MS / 60_000,
    )


def paragraph(figures: Figures) -> str:
    """Return the estimate as it stands in the guide."""
    f, documents, memory = forecast(figures), figures.documents, figures.task_mb
    least, mean, most = (cost * 1e6 for cost in (figures.least_cpu, figures.cpu / documents, figures.most_cpu))
    longest = "The driver takes longer than the work" if f.driver > f.minutes[1] else "The work takes longer"
    measured = (
        f"Measured on one core: {documents:,} documents of {figures.text / documents:,.0f} bytes in "
        f"{figures.cpu:,.0f} s of CPU, {mean:,.0f} µs each (over 1, 4 and 16 times {least:,.0f} to {most:,.0f}), "
        f"{memory:,} MB of memory for the task that took most, {figures.disk / figures.text:.2f} bytes of files per "
        "byte of text."
    )
    then = (
        f"So {DOCUMENTS / 1e9:.0f} billion such documents, {f.text_tb:.0f} TB of text in {f.shards:,} shards, take "
        f"{f.minutes[0]:.0f} to {f.minutes[1]:.0f} minutes of {CORES:,} cores. {f.more:.0f} of these go into what a "
        "small run has not: rows of exchanges that are written again, as there are more files and partitions than one "
        f"level takes ({f.levels} levels, {f.between_tb:.0f} TB between tasks), and {ROUNDS} rounds of finding "
        f"components, as {f.edges / 1e9:.1f} billion edges are more than one task decides on. Memory per task stays "
        f"{memory:,} MB, so {CORES:,} tasks at a time take {memory * CORES / 1e6:.1f} TB over the cluster. Disk: "
        f"{f.files_tb:.0f} TB of files, what stays of the text included."
    )
    driver = (
        f"One driver starts {f.tasks / 1e6:.1f} million tasks in {f.driver:.0f} minutes, at {DRIVER_MS:g} ms each. "
        f"{longest}, so count with {max(f.driver, *f.minutes):.0f} minutes. Object storage, failures and stragglers "
        "come on top of all this."
    )
    texts = (measured, then, driver)
    return "\n\n".join(fill(text, 116, break_long_words=False, break_on_hyphens=False) for text in texts)


def recorded(page: str, figures: Figures) -> str:
    """Return the guide with the estimate from `figures` in its place.

    Raises:
        ValueError: the guide has no place for it.
    """
    before, found, rest = page.partition(BEGIN)
    _, ended, after = rest.partition(END)
    if not (found and ended):
        raise ValueError(f"{PAGE.name} has no {BEGIN} … {END}")
    return f"{before}{BEGIN}\n{paragraph(figures)}\n{END}{after}"


def record(figures: Figures) -> None:
    """Write the guide's estimate."""
    PAGE.write_text(recorded(PAGE.read_text("utf-8"), figures), "utf-8")


def figures_of(scales: list[Any]) -> Figures:
    """Return the figures of the scales that `benchmarks.dedup_scaling.scaling` measured."""
    last = scales[-1]
    costs = [scale.measured.cpu / scale.documents for scale in scales]
    counts: Mapping[str, int] = last.measured.counts
    return Figures(
        last.documents,
        last.size,
        round(last.measured.cpu, 1),
        round(min(costs), 8),
        round(max(costs), 8),
        last.measured.task_mb,
        last.measured.disk,
        counts["edges"],
        sum(spent.tasks for spent in last.measured.jobs.values()),
    )
