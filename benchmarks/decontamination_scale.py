"""Decontamination at ten benchmarks of 50,000 items: seconds to load the index, memory, MB/s.

The five real benchmarks (6,292 items) and five more of the same mix of lengths (about 43,700), cut from every second
document of prose of the corpus (questions are no LaTeX source and no program): a stretch of 9 to 60 words asks, the
next 3 to 30 words answer, one in three has four choices.
Scanned is the other half of the corpus, so that most of what is found is the corpus repeating itself. Loading is
measured in a process that made nothing, kernels compiled and the index kept on the node before.
"""

from __future__ import annotations

import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.decontamination_items import DATA, benchmarks
from transforms.contamination import Benchmark, Decontaminate
from transforms.contamination_index import build_index, load_index

ITEMS: Final = 50_000
MADE: Final = ("reading", "books", "manuals", "lectures", "mixed")
PROSE: Final = ("books", "textbook", "tech-docs", "wiki", "wiki-tokenised", "speech", "drama-xml")


def make_files(texts: pa.LargeStringArray, count: int, folder: Path) -> None:
    """Write `count` items cut from `texts` into five files in `folder`."""
    items = made_items(texts, random.Random(5))
    for number, name in enumerate(MADE):
        share = count // len(MADE) + (number < count % len(MADE))
        lines = [json.dumps(item) + "\n" for item in islice(items, share)]
        (folder / f"{name}.jsonl").write_text("".join(lines), "utf-8")


def made_benchmarks(folder: Path) -> tuple[Benchmark, ...]:
    """Return the five files in `folder` as benchmarks."""
    fields = {"question": "question", "answer": "answer", "choices": "choices"}
    return tuple(Benchmark.jsonl(name, folder / f"{name}.jsonl", **fields) for name in MADE)


def made_items(texts: pa.LargeStringArray, draw: random.Random) -> Iterator[dict[str, Any]]:
    """Yield items cut from `texts`, one after the other from each, round and round."""
    streams = [text.split() for text in texts.to_pylist() if len(text) > 2_000]
    places = [0] * len(streams)
    ahead = list(range(len(streams)))
    while ahead:
        left = []
        for number in ahead:
            words, start = streams[number], places[number]
            asks, answers = draw.randint(9, 60), draw.randint(3, 30)
            if start + asks + answers > len(words):
                continue
            left.append(number)
            places[number] = start + asks + answers
            answer = " ".join(words[start + asks : start + asks + answers])
            choices = (
                [answer, *(" ".join(draw.sample(words[start : start + 400], 5)) for _ in range(3))]
                if number % 3 == 0
                else []
            )
            yield {"question": " ".join(words[start : start + asks]), "answer": answer, "choices": choices}
        ahead = left


def at_scale(size: str) -> dict[str, Any]:
    """Return what `measured` says, in a process of its own, of ten benchmarks ("small": a fifth of the items)."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "benchmarks.decontamination_scale", folder, size]
        subprocess.run([*command, "make"], check=True, stdout=subprocess.DEVNULL)
        done = subprocess.run([*command, "measure"], check=True, stdout=subprocess.PIPE, text=True)
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


def measured(benchmarks: tuple[Benchmark, ...], texts: pa.LargeStringArray) -> dict[str, Any]:
    """Return seconds of loading the stored index and of building it, memory, and MB per CPU second on `texts`."""
    before = _peak()
    start, cpu = time.perf_counter(), time.process_time()
    index = load_index(benchmarks)
    load, cpu, peak = time.perf_counter() - start, time.process_time() - cpu, _peak()
    decontaminate = Decontaminate(benchmarks)
    decontaminate.findings(texts.slice(0, 20))
    start = time.process_time()
    found = decontaminate.findings(texts)
    rate = int(pc.sum(pc.binary_length(texts)).as_py()) / 1e6 / (time.process_time() - start)
    return {
        "items": len(index.items),
        "units": len(index.units.item),
        "seeds": len(index.seeds.hashes),
        "load, s": round(load, 2),
        "load, CPU s": round(cpu, 2),
        "index, MB": round(index.nbytes / 1e6),
        "memory of loading, MB": round((peak - before) / 1e3),
        "MB/s": round(rate, 1),
        "documents found": len(found),
        "documents": len(texts),
        "build, CPU s": round(_building(benchmarks), 2),
    }


def _building(benchmarks: tuple[Benchmark, ...]) -> float:
    start = time.process_time()
    read = [(number, item) for number, benchmark in enumerate(benchmarks) for item in benchmark.items()]
    build_index(benchmarks, read)
    return time.process_time() - start


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main(arguments: list[str]) -> int:
    """Make the files and the stored index in a folder, or measure with them, in a process that made nothing."""
    folder, size, what = arguments
    table = pq.read_table(DATA / "corpora" / "multidomain.parquet", columns=["text", "domain"])
    texts = pa.concat_arrays(table.column("text").cast(pa.large_string()).chunks)
    if what == "make":
        count = (ITEMS if size == "full" else ITEMS // 5) - sum(len(benchmark.items()) for benchmark in benchmarks())
        prose = [row for row, domain in enumerate(table.column("domain").to_pylist()) if domain in PROSE and row % 2]
        make_files(texts.take(pa.array(prose)), count, Path(folder))
    named = benchmarks() + made_benchmarks(Path(folder))
    if what == "make":
        Decontaminate(named).ready()
    else:
        print(json.dumps(measured(named, texts.take(pa.array(range(0, len(texts), 2 if size == "full" else 20))))))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
