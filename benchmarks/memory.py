"""Peak memory of every kind of task, on one shard of made-up texts and on one several times as large.

Run `python -m benchmarks.memory [--size small|full]`. The recipe has every dataset-wide operation: deduplication with
MinHash, a join, a hold-out, tokens. Every task runs in a process of its own. A kind of task fails when what it takes
grows by more than `GROWTH` of what its shard grows by, or is more than it declares. The last line is JSON; the exit
status is 1 when one fails.
"""

from __future__ import annotations

import argparse
import json
import platform
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stderr
from dataclasses import dataclass
from importlib.metadata import version
from multiprocessing import Pipe, get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final

from benchmarks.engine_stream import Nothing, texts, write_input
from curate import Outputs, deduplicate, hold_out, read_parquet, tokenize
from curate.recipes.compiling import compile_stages
from curate.running.engine import Engine, fingerprint_inputs, run_stages
from curate.running.jobs import Item, Job, resources_of
from curate.running.journal import Journal
from curate.running.runners import Attempt, run_item
from curate.store import Store
from transforms.minhash import MinHash
from transforms.token_training import train_bpe
from transforms.tokens import Tokenizer

GROWTH: Final = 0.25
"""MiB of memory per MiB of shard at most; what is held per document (ids, verdicts) is far below."""

FILLED: Final = 256 << 20
"""Bytes of a shard that fill all buffers: from there on memory may grow no more."""

LENGTH: Final = 3000
SIZES: Final = {"small": (16 << 20, 96 << 20), "full": (256 << 20, 1 << 30)}


@dataclass(frozen=True, slots=True)
class Peak:
    """What one kind of task took at most and what it declares, in MiB, and seconds over all its tasks."""

    megabytes: int
    declared: int
    seconds: float


def tokenizer(folder: Path) -> Tokenizer:
    """Return a small byte-level tokenizer of made-up texts."""
    some = [text.as_py() for text in texts(200_000, LENGTH)]
    path = folder / "tokenizer.json"
    path.write_bytes(train_bpe(some, 2000))
    return Tokenizer(path, bos=None, eos=None)


def recipe(root: Path, tokens: Tokenizer | None) -> Outputs:
    """Return every dataset-wide operation over one shard."""
    documents = read_parquet(root, source="s", columns={"name": "id"}).keep("read")
    scored = documents.apply(Nothing(), name="scored")
    joined = documents.join(scored, {"again": "name"}, name="join")
    unique = deduplicate(joined, method=MinHash())
    train, valid = hold_out(unique, documents=1000)
    return Outputs(valid=valid, train=train if tokens is None else tokenize(train, tokens))


class Forked:
    """A runner that runs every task in a process of its own: what that takes is not what an earlier task left."""

    def __init__(self) -> None:
        self.peaks: dict[str, Peak] = {}

    def run(self, job: Job, items: Sequence[Item]) -> Iterator[Attempt]:
        """Run all items in order."""
        for item in items:
            receiving, sending = Pipe(duplex=False)
            process = get_context("fork").Process(target=_attempt, args=(job, item, sending))
            process.start()
            sending.close()
            attempt: Attempt = receiving.recv()
            process.join()
            had = self.peaks.get(job.name, Peak(0, 0, 0.0))
            megabytes, declared = max(had.megabytes, attempt.peak_mb), resources_of(job).memory >> 20
            self.peaks[job.name] = Peak(megabytes, declared, had.seconds + attempt.seconds)
            yield attempt


def _attempt(job: Job, item: Item, sending: Connection) -> None:
    sending.send(run_item(job, item))


def peaks(work: Path, total: int, tokens: bool) -> dict[str, Peak]:
    """Return kind of task → what it took at most, for one shard of `total` bytes of text."""
    folder, runner = work / str(total), Forked()
    process = get_context("spawn").Process(target=write_input, args=(folder / "in", total, LENGTH, "parquet", True))
    process.start()
    process.join()
    stages = compile_stages(recipe(folder / "in", tokenizer(folder) if tokens else None).products)
    store = Store(folder / "store")
    journal = Journal(store)
    try:
        with open("/dev/null", "w") as nowhere, redirect_stderr(nowhere):
            engine = Engine(store, runner, journal)
            run_stages(stages, fingerprint_inputs(stages, engine), engine, lambda stage, there: None)
    finally:
        journal.close()
    shutil.rmtree(folder)
    return runner.peaks


def judged(
    small: Mapping[str, Peak], large: Mapping[str, Peak], sizes: tuple[int, int]
) -> dict[str, tuple[int, str, bool]]:
    """Return name of a check → (MiB, what it may be, whether it is), and print what each kind of task took."""
    checks = {}
    most = int(GROWTH * (sizes[1] - sizes[0])) >> 20
    for job, peak in large.items():
        less = small.get(job, Peak(0, 0, 0.0)).megabytes
        print(f"{job:<30} {less:>6} {peak.megabytes:>6} of {peak.declared:>6} MiB {peak.seconds:>7.1f} s")
        if peak.declared:
            checks[f"{job}: peak"] = (peak.megabytes, f"≤ {peak.declared} MiB", peak.megabytes <= peak.declared)
        if sizes[0] >= FILLED:
            checks[f"{job}: growth"] = (peak.megabytes - less, f"≤ {most} MiB", peak.megabytes - less <= most)
    return checks


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", choices=SIZES, default="small")
    parser.add_argument("--no-tokens", action="store_true", help="without tokenization, which takes longest")
    chosen = parser.parse_args(arguments)
    less, more = SIZES[chosen.size]
    work = Path(tempfile.mkdtemp(prefix="curate-memory-"))
    try:
        small, large = (peaks(work, total, not chosen.no_tokens) for total in (less, more))
    finally:
        shutil.rmtree(work, ignore_errors=True)
    checks = judged(small, large, (less, more))
    report = {
        "name": f"memory, {chosen.size}: one shard of {more >> 20} MiB",
        "unit": "MiB of the task that takes most",
        "ours": max(peak.megabytes for peak in large.values()),
        "peers": {},
        "ratio": None,
        "checks": checks,
        "versions": {"python": platform.python_version(), "pyarrow": version("pyarrow")},
    }
    print(json.dumps(report))
    return 0 if all(right for _, _, right in checks.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
