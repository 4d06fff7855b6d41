"""What the engine itself costs: per task in this process and on Ray, per document of a cheap transform, and of none.

Run `python -m benchmarks.engine [--part tasks|stream] [--size small|full] [--no-ray] [--no-peers]`. Tasks are shards of
one short document each (read, kept, published: three files, each synced twice); their cost is the time between the ends
of two of them. The filter is one Parquet file through a filter by a column, once by the engine, which digests, counts
and samples every document, once by datatrove's reader, filter and writer, which do not, and once by pyarrow alone.
Their times are wall clock, the best of several runs. In full size `benchmarks.engine_scale` goes from 10 to 10,000
shards. The stream is text through a transform that changes nothing, beside a plain loop that hashes as well:
`benchmarks.engine_stream`. The last line is JSON; the exit status is 1 when a check fails.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.engine_scale import scale_report
from benchmarks.engine_stream import LENGTH, MOST, STREAM_SIZES, stream_report
from curate import Column, Outputs, deduplicate, field, read_jsonl, read_parquet
from curate.run import Result, run
from transforms.minhash import MinHash

WORDS: Final = [a + b for a in ("ka", "lo", "mi", "su", "te", "vo", "ra") for b in ("ren", "tal", "mos", "bik", "dun")]
PACKAGES: Final = ("pyarrow", "ray", "datatrove", "numpy")
WARM: Final = 10  # tasks after which no worker is new
MOST_MS_PER_TASK: Final = 60.0
LEAST_DOCUMENTS_PER_SECOND: Final = 5000.0
SHARDS_ON_RAY: Final = 2_000


@dataclass(frozen=True, slots=True)
class Size:
    """Shards of the task runs, documents of the stream, repetitions."""

    shards: int
    documents: int
    repeats: int


SIZES: Final = {"small": Size(60, 20_000, 2), "full": Size(400, 200_000, 3)}


@contextmanager
def work_folder() -> Iterator[Path]:
    """Yield a temporary folder, in memory where that is possible: this measures the engine, not the disk."""
    shared = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(prefix="curate-engine-", dir=shared if shared.is_dir() else None))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def seconds_of(work: Callable[[], object]) -> float:
    """Return the seconds that `work` takes; what it says of its progress is thrown away."""
    with open("/dev/null", "w") as nowhere, redirect_stderr(nowhere):
        began = time.perf_counter()
        work()
        return time.perf_counter() - began


def sentences(count: int, words: int, seed: int) -> list[str]:
    """Return made-up texts."""
    draw = random.Random(seed)
    return [f"{number} " + " ".join(draw.choices(WORDS, k=words)) for number in range(count)]


# --- tasks -----------------------------------------------------------------------------------------------------------


def write_shards(root: Path, count: int) -> Path:
    """Write `count` files of one document each."""
    root.mkdir(parents=True)
    for number, text in enumerate(sentences(count, 20, 1)):
        (root / f"{number:05d}.jsonl").write_text(json.dumps({"text": text}) + "\n")
    return root


def seconds_per_task(work: Path, shards: int, repeats: int, runner: str) -> float:
    """Return the seconds from one finished task to the next, by the journal, once every worker has done some."""
    root = write_shards(work / runner, shards)
    found: list[float] = []
    for turn in range(repeats):
        store = work / f"{runner}-{turn}"
        seconds_of(partial(run, Outputs(read_jsonl(root, source="s")), store, runner=runner))
        (journal,) = store.glob("runs/*/journal.jsonl")
        events = [json.loads(line) for line in journal.read_text().splitlines()]
        times = [float(event["time"]) for event in events if event["event"] == "task" and event["key"]][WARM:]
        found.append((times[-1] - times[0]) / (len(times) - 1))
    return min(found)


def seconds_to_reuse(work: Path, shards: int) -> float:
    """Return the seconds per shard of a stage whose shards are all there, and whose manifest is not."""
    root = write_shards(work / "reuse", shards)
    result = run_quietly(Outputs(read_jsonl(root, source="s")), work / "reuse-store")
    shutil.rmtree(result.folder.parent / result.stages[0].folder)
    return seconds_of(lambda: run(Outputs(read_jsonl(root, source="s")), work / "reuse-store", runner="local")) / shards


def run_quietly(outputs: Outputs, store: Path) -> Result:
    """Run in this process without a word."""
    with open("/dev/null", "w") as nowhere, redirect_stderr(nowhere):
        return run(outputs, store, runner="local")


# --- a stream of documents -------------------------------------------------------------------------------------------


def write_stream(path: Path, documents: int) -> int:
    """Write one Parquet file of `documents` texts with a number each, and return the bytes of the texts."""
    texts = sentences(documents, 60, 2)
    path.parent.mkdir(parents=True)
    table = pa.table(
        {"text": texts, "id": [str(n) for n in range(documents)], "stars": [n % 10 for n in range(documents)]}
    )
    pq.write_table(table, path, row_group_size=10_000)
    return sum(map(len, texts))


def through_engine(path: Path, store: Path) -> Result:
    """Keep the documents of nine stars in ten, with everything accounted for."""
    columns: dict[str, str | Column] = {"stars": Column("stars", "int64"), "name": "id"}
    stream = read_parquet(path.parent, source="s", columns=columns).where(field("stars") > 0, reason="stars")
    return run_quietly(Outputs(stream), store)


def through_datatrove(path: Path, target: Path) -> int:
    """Do the same with datatrove's reader, filter and writer, one task; return the rows written."""
    from datatrove.executor.local import LocalPipelineExecutor
    from datatrove.pipeline.filters import LambdaFilter
    from datatrove.pipeline.readers import ParquetReader
    from datatrove.pipeline.writers import ParquetWriter
    from datatrove.utils.logging import logger

    logger.remove()
    pipeline = [
        ParquetReader(str(path.parent), doc_progress=False),
        LambdaFilter(_stars),
        ParquetWriter(str(target / "out")),
    ]
    LocalPipelineExecutor(pipeline, logging_dir=str(target / "logs"), skip_completed=False).run()
    return sum(pq.read_metadata(file).num_rows for file in (target / "out").glob("*.parquet"))


def _stars(document: Any) -> bool:
    return bool(document.metadata["stars"] > 0)


def through_pyarrow(path: Path, target: Path) -> int:
    """Filter with pyarrow alone: what no tool that reads and writes Parquet can be faster than."""
    table = pq.read_table(path)
    kept = table.filter(pa.compute.greater(table.column("stars"), 0))
    pq.write_table(kept, target, compression="zstd", compression_level=3, use_dictionary=False)
    return int(kept.num_rows)


def deduplicated(path: Path, store: Path) -> Result:
    """Read and deduplicate the stream."""
    columns: dict[str, str | Column] = {"stars": Column("stars", "int64"), "name": "id"}
    return run_quietly(
        Outputs(deduplicate(read_parquet(path.parent, source="s", columns=columns), method=MinHash())), store
    )


def measure_stream(work: Path, size: Size, peers: bool) -> dict[str, Any]:
    """Return documents per second of the ways through, and what they kept."""
    path = work / "stream" / "a.parquet"
    write_stream(path, size.documents)
    kept: dict[str, int] = {}

    def engine(turn: int) -> None:
        kept["curate"] = through_engine(path, work / f"engine-{turn}").stages[0].rows

    def plain(turn: int) -> None:
        kept["pyarrow"] = through_pyarrow(path, work / f"plain-{turn}.parquet")

    def trove(turn: int) -> None:
        kept["datatrove"] = through_datatrove(path, work / f"trove-{turn}")

    ways = {"curate": engine, "pyarrow": plain, **({"datatrove": trove} if peers else {})}
    rates = {
        name: size.documents / min(seconds_of(partial(way, turn)) for turn in range(size.repeats))
        for name, way in ways.items()
    }
    again = seconds_of(lambda: deduplicated(path, work / "unique"))
    return {"rates": rates, "kept": kept, "with deduplication": size.documents / again}


Checks = dict[str, tuple[Any, str, bool]]
"""What is checked: value, bound, whether it holds."""


def tasks_part(work: Path, size: Size, ray: bool, peers: bool) -> tuple[dict[str, Any], Checks]:
    """Measure tasks and the filter; return the report and its checks."""
    local = seconds_per_task(work, size.shards, size.repeats, "local")
    reuse = seconds_to_reuse(work, size.shards)
    on_ray = seconds_per_task(work, size.shards, size.repeats, "ray") if ray else None
    stream = measure_stream(work, size, peers)
    rates = stream["rates"]
    print(f"a task in this process: {local * 1e3:.1f} ms, {1 / local:,.0f} shards/s; reused: {reuse * 1e3:.2f} ms")
    if on_ray is not None:
        print(f"a task on Ray with 2 workers: {on_ray * 1e3:.1f} ms, {1 / on_ray:,.0f} shards/s")
    for name, rate in rates.items():
        print(f"a cheap filter over Parquet, {name}: {rate:,.0f} documents/s")
    print(f"reading and deduplicating, curate: {stream['with deduplication']:,.0f} documents/s")
    wanted = size.documents - len(range(0, size.documents, 10))
    checks: Checks = {
        "milliseconds of a task": (round(local * 1e3, 1), f"≤ {MOST_MS_PER_TASK:g}", local * 1e3 <= MOST_MS_PER_TASK),
        "documents/s of a cheap filter": (
            round(rates["curate"]),
            f"≥ {LEAST_DOCUMENTS_PER_SECOND:g}",
            rates["curate"] >= LEAST_DOCUMENTS_PER_SECOND,
        ),
        "all ways keep as many": (stream["kept"], f"= {wanted}", set(stream["kept"].values()) == {wanted}),
    }
    report = {
        "documents/s of a cheap filter": {name: round(rate) for name, rate in rates.items()},
        "ms per task, local": round(local * 1e3, 2),
        "ms per task, Ray": None if on_ray is None else round(on_ray * 1e3, 2),
        "ms per shard reused": round(reuse * 1e3, 3),
        "documents/s with deduplication": round(stream["with deduplication"]),
    }
    return report, checks


def stream_part(work: Path, size: str, peers: bool) -> tuple[dict[str, Any], Checks]:
    """Measure the stream; return the report and its check."""
    report = stream_report(work, STREAM_SIZES[size], peers)
    for name, found in report.items():
        costs = ", ".join(f"{way} {cost}" for way, cost in found["µs of processor per document"].items())
        print(f"{name}: µs of processor per document: {costs}" + (f"; {found['ratio']}" if "ratio" in found else ""))
    ratio = report[f"{LENGTH} B"]["ratio"]
    return report, {"seconds per second of a plain loop that hashes": (ratio, f"≤ {MOST}", ratio <= MOST)}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--part", choices=("tasks", "stream"), help="both unless given")
    parser.add_argument("--size", choices=SIZES, default="small")
    parser.add_argument("--no-ray", action="store_true")
    parser.add_argument("--no-peers", action="store_true")
    given = parser.parse_args(arguments)
    unit = "seconds of a processor per second of a plain loop that reads, hashes and writes"
    report: dict[str, Any] = {"name": f"engine, {given.size}", "unit": unit, "ours": None, "peers": {}, "ratio": None}
    checks: Checks = {}
    with work_folder() as work:
        if given.part != "stream":
            report["tasks"], checks = tasks_part(work, SIZES[given.size], not given.no_ray, not given.no_peers)
        if given.part != "tasks":
            report["stream"], found = stream_part(work, given.size, not given.no_peers)
            report["ours"] = report["stream"][f"{LENGTH} B"]["ratio"]
            checks |= found
    if given.part != "stream" and given.size == "full":
        checks |= scale_report(ray=0 if given.no_ray else SHARDS_ON_RAY)["checks"]
    report["checks"] = checks
    report["versions"] = {"python": platform.python_version(), **{name: version(name) for name in PACKAGES}}
    print(json.dumps(report, ensure_ascii=False))
    return 0 if all(right for _, _, right in checks.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
