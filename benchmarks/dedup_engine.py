"""Whole deduplication through the engine on one core: read, sign, bucket, verify, write, with books and receipts.

Run `python -m benchmarks.dedup_engine [--bytes N] [--folder DIR] [--profile FILE]`. It needs ../shared. The corpus is
the speed corpus of `benchmarks.dedup_corpora` in one zstd Parquet file. All tasks run in this process, one after the
other; rates are MB (10^6 bytes of text) per second of CPU, by job and in all: of the deduplication, and of everything
from the Parquet file on. The last line is JSON; the exit status is 1 when everything is slower than asked.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from benchmarks.dedup_corpora import passages, write_speed_corpus
from curate.datasets import Dataset
from curate.recipes.graph import deduplicate, read_parquet
from curate.recipes.recipe import Outputs
from curate.recipes.stages import compile_stages
from curate.running.engine import Engine, fingerprint_inputs, run_stages
from curate.running.jobs import Item, Job
from curate.running.journal import Journal
from curate.running.runners import Attempt, LocalRunner
from curate.running.warm import warm
from curate.store import Store
from transforms.minhash import MinHash

BYTES: Final = 200_000_000
LEAST: Final = 45
"""MB/s of CPU."""


@dataclass(frozen=True, slots=True)
class TimedRunner:
    """Runs items in this process and adds up CPU seconds by job."""

    seconds: dict[str, float] = field(default_factory=dict)

    def run(self, job: Job, items: Sequence[Item]) -> Iterator[Attempt]:
        """Run all items in order."""
        since = time.process_time()
        for attempt in LocalRunner().run(job, items):
            self.seconds[job.name] = self.seconds.get(job.name, 0.0) + time.process_time() - since
            yield attempt
            since = time.process_time()


def measure(folder: Path, size: int) -> tuple[int, float, dict[str, float], dict[str, int]]:
    """Return bytes of text, CPU seconds in all and by job, and what was counted."""
    corpus = folder / "in"
    corpus.mkdir()
    _, total = write_speed_corpus(corpus / "speed.parquet", passages(), size)
    source = read_parquet(corpus, source="speed", columns={"key": "id"})
    stages = compile_stages(Outputs(deduplicate(source, method=MinHash())).products)
    warm(stages)
    store, runner = Store(folder / "store"), TimedRunner()
    with closing(Journal(store)) as journal:
        engine = Engine(store, runner, journal)
        since = time.process_time()
        made = run_stages(stages, fingerprint_inputs(stages, engine), engine, lambda stage, reused: None)
        seconds = time.process_time() - since
    (last,) = (each for each in made.values() if isinstance(each, Dataset) and "duplicates" in each.statistics)
    return total, seconds, runner.seconds, last.statistics["duplicates"]


def main(arguments: list[str] | None = None) -> int:
    """Print the table and one line of JSON; return 1 if it is slower than asked."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--bytes", type=int, default=BYTES, help="how much text (default: %(default)s)")
    parser.add_argument("--folder", type=Path, help="an empty folder to work in (default: a temporary one)")
    parser.add_argument("--profile", type=Path, help="where to write a profile; it slows everything down")
    options = parser.parse_args(arguments)
    profile = cProfile.Profile() if options.profile else None
    with tempfile.TemporaryDirectory() as temporary, profile or nullcontext():
        total, seconds, jobs, counts = measure(options.folder or Path(temporary), options.bytes)
    if profile is not None:
        profile.dump_stats(options.profile)
    rates = {name: total / 1e6 / taken for name, taken in jobs.items() if taken > 0}
    own = sum(taken for name, taken in jobs.items() if name.startswith("deduplicate"))
    rates |= {"deduplication": total / 1e6 / own, "everything": total / 1e6 / seconds}
    for name, rate in rates.items():
        print(f"{name:40} {rate:10.1f} MB/s {total / 1e6 / rate:8.2f} s")
    print(json.dumps({"name": "dedup_engine", "unit": "MB/s", "ours": round(rates["everything"], 1), "counts": counts}))
    return int(rates["everything"] < LEAST)


if __name__ == "__main__":
    sys.exit(main())
