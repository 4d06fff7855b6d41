"""Decontamination at ten benchmarks of 50,000 items: seconds to load the index, memory, MB/s.

The five real benchmarks (6,292 items) and five more of the same mix of lengths (about 43,700), cut from every second
document of the corpus: a stretch of 9 to 60 words asks, the next 3 to 30 words answer, one in three has four choices.
Scanned is the other half of the corpus, so that most of what is found is the corpus repeating itself. Loading is
measured in a fresh process (`python -m benchmarks.decontamination_scale FOLDER`), kernels compiled before.
"""

from __future__ import annotations

import json
import random
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from transforms.contamination import Benchmark, Decontaminate
from transforms.contamination_index import load_index

ITEMS: Final = 50_000
MADE: Final = ("reading", "books", "manuals", "lectures", "mixed")


def made_benchmarks(texts: pa.LargeStringArray, count: int, folder: Path) -> tuple[Benchmark, ...]:
    """Write `count` items cut from `texts` into five files in `folder`, and return them as benchmarks."""
    draw = random.Random(5)
    items = made_items(texts, draw)
    result = []
    for number, name in enumerate(MADE):
        share = count // len(MADE) + (number < count % len(MADE))
        path = folder / f"{name}.jsonl"
        path.write_text("".join(json.dumps(next(items)) + "\n" for _ in range(share)), "utf-8")
        fields = {"question": "question", "answer": "answer", "choices": "choices"}
        result.append(Benchmark.jsonl(name, path, **fields))
    return tuple(result)


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
            choices = [answer, *(" ".join(draw.sample(words[start : start + 400], 5)) for _ in range(3))] if number % 3 == 0 else []
            yield {"question": " ".join(words[start : start + asks]), "answer": answer, "choices": choices}
        ahead = left


def measured(benchmarks: tuple[Benchmark, ...], texts: pa.LargeStringArray) -> dict[str, Any]:
    """Return seconds of loading (wall and CPU, files read and index made), MB of memory it takes, MB/s."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    wall, cpu = time.perf_counter(), time.process_time()
    index = load_index(benchmarks)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    decontaminate = Decontaminate(benchmarks)
    decontaminate.findings(texts.slice(0, 20))
    start = time.process_time()
    found = decontaminate.findings(texts)
    rate = int(pc.sum(pc.binary_length(texts)).as_py()) / 1e6 / (time.process_time() - start)
    return {
        "items": len(index.items),
        "units": len(index.units.item),
        "seeds": len(index.seeds.hashes),
        "load, s": round(wall, 2),
        "load, CPU s": round(cpu, 2),
        "index, MB": round(index.nbytes / 1e6),
        "peak, MB": round((peak - before) / 1e3),
        "MB/s": round(rate, 1),
        "documents found": len(found),
    }
